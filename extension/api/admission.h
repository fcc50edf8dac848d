/*-------------------------------------------------------------------------
 *
 * admission.h
 *	  What stands before every export that begins: locks, watermark, quota.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_API_ADMISSION_H
#define EV_API_ADMISSION_H

#include "ledger/export.h"

/*
 * Take the locks of a request on the contract's source and requester; they
 * are held to the end of the transaction.  Returns the time below which
 * records have been retired.  55P03 if somebody else holds them too long,
 * 40001 if the transaction must be run again.
 */
extern TimestampTz ev_admission_lock(const EvContract *contract);

/*
 * Under those locks: refuse a range whose records have been retired (55000)
 * and a requester who has too many unfinished exports (53400).
 */
extern void ev_admission_check(const EvContract *contract,
							   TimestampTz watermark);

#endif							/* EV_API_ADMISSION_H */
