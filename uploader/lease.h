/*-------------------------------------------------------------------------
 *
 * lease.h
 *	  Keep a claimed piece of work while it is being done.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_LEASE_H
#define EV_UPLOADER_LEASE_H

#include "ledger_delivery.h"

typedef struct EvLease
{
	EvLedger   *ledger;
	char		token[EV_ID_TEXT];
	double		length;			/* seconds */
	double		renewed;		/* when it was last known to be ours */
	double		tried;			/* when that was last asked for */
	bool		lost;			/* stays true */
} EvLease;

/* claimed is the clock's time (retry.h) before the claim was sent. */
extern void ev_lease_start(EvLease *lease, EvLedger *ledger,
						   const EvDelivery *item, double claimed);

/*
 * Renew the lease when a third of it has passed.  False when it is lost: then
 * nothing may be done in the store any more.  To be called before each step
 * and, several times a second, during long ones.
 */
extern bool ev_lease_keep(EvLease *lease);

#endif							/* EV_UPLOADER_LEASE_H */
