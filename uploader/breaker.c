/*-------------------------------------------------------------------------
 *
 * breaker.c
 *	  Pause when the object store as a whole is in trouble.
 *
 * Pauses double from 1 s to 5 min, and half of each is random: many uploaders
 * meet one store, and after an outage they must not come back in step.  A
 * pause that the store itself asks for is kept, up to the longest of ours.
 *
 * A bucket that is there is not yet proof that work succeeds.  So the pauses
 * go on growing until a piece of work has been done.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "breaker.h"
#include "retry.h"

#define PAUSE_FIRST 1.0			/* seconds */
#define PAUSE_LAST 300.0
#define FAILURES_LIMIT 3		/* in a row, until they count as trouble */

void
ev_breaker_trip(EvBreaker *breaker, int retry_after)
{
	static unsigned seed = 0;
	double		pause = PAUSE_FIRST;
	int			i;

	if (seed == 0)
		seed = (unsigned) getpid() ^ (unsigned) (ev_retry_clock() * 1e6);
	for (i = 0; i < breaker->trips && pause < PAUSE_LAST; i++)
		pause *= 2;
	pause = fmin(pause, PAUSE_LAST);
	pause = pause / 2 + pause / 2 * ((double) rand_r(&seed) / RAND_MAX);
	if (retry_after > 0)
		pause = fmax(pause, fmin(retry_after, PAUSE_LAST));
	breaker->open = true;
	breaker->trips++;
	breaker->failures = 0;
	breaker->until = ev_retry_clock() + pause;
}

void
ev_breaker_count(EvBreaker *breaker, int retry_after)
{
	if (++breaker->failures >= FAILURES_LIMIT)
		ev_breaker_trip(breaker, retry_after);
}

void
ev_breaker_half_open(EvBreaker *breaker)
{
	breaker->open = false;
}

void
ev_breaker_close(EvBreaker *breaker)
{
	memset(breaker, 0, sizeof(*breaker));
}
