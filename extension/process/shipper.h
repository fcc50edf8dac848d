/*-------------------------------------------------------------------------
 *
 * shipper.h
 *	  The background worker that ships audit records.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_SHIPPER_H
#define EV_PROCESS_SHIPPER_H

#include "fmgr.h"

extern PGDLLEXPORT void ev_shipper_main(Datum main_arg);

#endif							/* EV_PROCESS_SHIPPER_H */
