/*-------------------------------------------------------------------------
 *
 * retry.c
 *	  Bounded repetition of a whole transaction, with jitter.
 *
 * The ledger's functions may answer 40001 at every isolation level when two
 * requests meet on one quota or watermark row.  The server cannot repeat its
 * caller's transaction, so the caller does (requirements S1.26, X9).  Every
 * attempt is a complete transaction: nothing read in an earlier one is used
 * again.
 *
 * Pauses double from 50 ms to 2 s, and half of each is random: clients that
 * collided once would otherwise collide again in step.  rand_r is good enough
 * for that; nothing secret depends on it.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "retry.h"
#include "stop.h"

#define PAUSE_FIRST 0.05		/* seconds */
#define PAUSE_LAST 2.0

/* How long one lost connection may take to come back within a transaction. */
#define RECONNECT_SECONDS 30.0

double
ev_retry_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

void
ev_retry_sleep(double seconds)
{
	double		deadline = ev_retry_clock() + seconds;

	while (ev_retry_clock() < deadline && !ev_stop_requested())
		ev_stop_poll(-1, deadline - ev_retry_clock());
}

/* The pause before attempt number attempt, counted from 1. */
static double
pause_before(int attempt)
{
	static unsigned seed = 0;
	double		pause = PAUSE_FIRST;

	if (seed == 0)
		seed = (unsigned) getpid() ^ (unsigned) (ev_retry_clock() * 1e6);
	while (--attempt > 0 && pause < PAUSE_LAST)
		pause *= 2;
	if (pause > PAUSE_LAST)
		pause = PAUSE_LAST;
	return pause / 2 + pause / 2 * ((double) rand_r(&seed) / RAND_MAX);
}

EvStatus
ev_retry_reconnect(EvLedger *ledger, double seconds, EvFailure *failure)
{
	double		deadline = ev_retry_clock() + seconds;
	int			attempt = 0;

	for (;;)
	{
		EvStatus	status = ev_ledger_reconnect(ledger, failure);
		double		pause;

		if (status != EV_STATUS_CONNECTION)
			return status;
		pause = pause_before(++attempt);
		if (ev_retry_clock() + pause > deadline || ev_stop_requested())
			return status;
		ev_retry_sleep(pause);
	}
}

EvStatus
ev_retry_run(EvLedger *ledger, bool repeatable, EvAttemptFunction attempt,
			 void *arg, EvFailure *failure)
{
	int			tries = 0;

	for (;;)
	{
		EvStatus	status;
		bool		lost;

		status = attempt(arg, failure);
		if (status == EV_STATUS_OK)
			return status;
		lost = ev_ledger_lost(ledger);
		if (lost ? !repeatable : !ev_failure_is_conflict(failure))
			return status;
		if (lost && ev_stop_requested())
			return status;
		if (++tries == EV_RETRY_ATTEMPTS)
		{
			if (lost)
				return status;
			failure->status = EV_STATUS_RETRIES;
			return ev_fail_hint(failure, "The server refused %d attempts because of other transactions. Try again later.",
								tries);
		}
		if (lost)
		{
			ev_log_note("connection lost, connecting again");
			status = ev_retry_reconnect(ledger, RECONNECT_SECONDS, failure);
			if (status != EV_STATUS_OK)
				return status;
		}
		else
			ev_retry_sleep(pause_before(tries));
	}
}
