/*-------------------------------------------------------------------------
 *
 * clock.c
 *	  The one clock by which anything is decided.
 *
 * Leases, backoff, the download window and quotas all compare times.  If one
 * of them looked at the transaction's start or at a client's clock, a long
 * wait or a skewed host would change the answer, so every decision, in C and
 * through evidence._now() in SQL, asks here (cases C44 and C56).
 *
 * Tests move this clock instead of sleeping.  The offset is honoured only in
 * developer mode, which needs a server restart, so that nobody can shorten a
 * download window on a production server with a reload.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "base/clock.h"
#include "base/settings.h"

TimestampTz
ev_clock_now(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (ev_clock_is_moved())
		now += (TimestampTz) ev_clock_offset * USECS_PER_SEC;
	return now;
}

bool
ev_clock_is_moved(void)
{
	return ev_developer_mode && ev_clock_offset != 0;
}
