/*-------------------------------------------------------------------------
 *
 * retry.h
 *	  Bounded repetition of a whole transaction, with jitter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_RETRY_H
#define EV_UPLOADER_RETRY_H

#include "ledger.h"

#define EV_RETRY_ATTEMPTS 8		/* of one transaction, all told */

/* One attempt: one transaction from begin to end. */
typedef EvStatus (*EvAttemptFunction) (void *arg, EvFailure *failure);

/*
 * Run attempt until it succeeds, fails for another reason, or has been tried
 * EV_RETRY_ATTEMPTS times, which is EV_STATUS_RETRIES.
 *
 * After a serialization failure or its like nothing has been done, so it is
 * always repeated.  After a lost connection nobody knows whether the commit
 * went through: only with repeatable set is it tried again on a new
 * connection, which is right when a second run has no further effect.
 */
extern EvStatus ev_retry_run(EvLedger *ledger, bool repeatable,
							 EvAttemptFunction attempt, void *arg,
							 EvFailure *failure);

/*
 * Make a new connection, with growing pauses, for at most seconds.  Returns
 * the last failure when the time is up; a version mismatch ends at once.
 */
extern EvStatus ev_retry_reconnect(EvLedger *ledger, double seconds,
								   EvFailure *failure);

/* Sleep; only being asked to end (stop.h) shortens it. */
extern void ev_retry_sleep(double seconds);

/* A clock that never goes backwards, in seconds. */
extern double ev_retry_clock(void);

#endif							/* EV_UPLOADER_RETRY_H */
