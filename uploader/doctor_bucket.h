/*-------------------------------------------------------------------------
 *
 * doctor_bucket.h
 *	  What "doctor" reads of a bucket: lifecycle, versions, locks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_DOCTOR_BUCKET_H
#define EV_UPLOADER_DOCTOR_BUCKET_H

#include "diagnosis.h"
#include "ledger_delivery.h"
#include "options.h"

/* delivery may be empty when the server could not be asked. */
extern void ev_doctor_bucket(const EvOptions *options,
							 const EvDeliveryStatus *delivery, EvS3 *s3,
							 EvDiagnosis *diagnosis);

/* Add a check that failed with an answer of the store (doctor.c). */
extern void ev_doctor_result(EvDiagnosis *diagnosis, const char *name,
							 const char *doing, const EvS3Result *result);

#endif							/* EV_UPLOADER_DOCTOR_BUCKET_H */
