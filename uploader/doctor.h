/*-------------------------------------------------------------------------
 *
 * doctor.h
 *	  The command "doctor": try everything that delivery needs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_DOCTOR_H
#define EV_UPLOADER_DOCTOR_H

#include "options.h"

/*
 * Print each check and its result.  EV_STATUS_OPEN when one has failed;
 * *reported tells that standard output says so.
 */
extern EvStatus ev_doctor(const EvOptions *options, bool *reported,
						  EvFailure *failure);

#endif							/* EV_UPLOADER_DOCTOR_H */
