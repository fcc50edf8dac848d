/*-------------------------------------------------------------------------
 *
 * lease.c
 *	  Keep a claimed piece of work while it is being done.
 *
 * The lease fences what happens outside of the database: the ledger refuses
 * the writes of a process that has lost it, but the store knows nothing of
 * leases.  So each step asks first.  A process that stood still for long
 * finds by the clock that its lease may be over and asks the server, before
 * it sends another byte.
 *
 * A server that cannot be reached is no loss yet: until the lease is over by
 * our own clock, which runs from before the server counted, nobody else can
 * have the work.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>

#include "lease.h"
#include "retry.h"

/* Seconds between two attempts to reach a server that cannot be reached. */
#define TRY_AGAIN 1.0

void
ev_lease_start(EvLease *lease, EvLedger *ledger, const EvDelivery *item,
			   double claimed)
{
	lease->ledger = ledger;
	snprintf(lease->token, sizeof(lease->token), "%s", item->token);
	lease->length = item->lease_seconds;
	lease->renewed = claimed;
	lease->tried = claimed;
	lease->lost = false;
}

/* Ask the server.  False when it could not be asked. */
static bool
renew(EvLease *lease, bool *held)
{
	double		now = ev_retry_clock();
	EvFailure	failure;

	ev_failure_clear(&failure);
	lease->tried = now;
	if (ev_ledger_lost(lease->ledger) &&
		ev_ledger_reconnect(lease->ledger, &failure) != EV_STATUS_OK)
		return false;
	if (ev_delivery_renew(lease->ledger, lease->token, held,
						  &failure) != EV_STATUS_OK)
	{
		*held = false;
		return ev_delivery_lost(&failure);
	}
	if (*held)
		lease->renewed = now;
	return true;
}

bool
ev_lease_keep(EvLease *lease)
{
	double		now = ev_retry_clock();
	bool		held;

	if (lease->lost)
		return false;
	if (now - lease->renewed < lease->length / 3)
		return true;

	/* Once the lease may be over, only the server's word counts. */
	if (now - lease->renewed < lease->length &&
		now - lease->tried < TRY_AGAIN)
		return true;
	if (renew(lease, &held))
		lease->lost = !held;
	else
		lease->lost = ev_retry_clock() - lease->renewed >= lease->length;
	return !lease->lost;
}
