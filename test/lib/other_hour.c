/*-------------------------------------------------------------------------
 *
 * other_hour.c
 *	  A library to be preloaded, which moves the clock of a whole process.
 *
 * EVIDENCE_HOURS in the environment says how many hours every clock that
 * tells the time of day is ahead.  Clocks that only measure intervals are
 * left alone, so nothing waits longer or shorter.  For tests: a server that
 * lives in another hour has to make the same archives.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t
seconds_ahead(void)
{
	const char *hours = getenv("EVIDENCE_HOURS");

	return hours == NULL ? 0 : (time_t) atoi(hours) * 3600;
}

/* The kernel is asked directly, since these names are ours now. */
int
clock_gettime(clockid_t clock, struct timespec *now)
{
	int			result = (int) syscall(SYS_clock_gettime, clock, now);

	if (result == 0 &&
		(clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += seconds_ahead();
	return result;
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;

	(void) zone;
	clock_gettime(CLOCK_REALTIME, &precise);
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *now)
{
	struct timespec precise;

	clock_gettime(CLOCK_REALTIME, &precise);
	if (now != NULL)
		*now = precise.tv_sec;
	return precise.tv_sec;
}
