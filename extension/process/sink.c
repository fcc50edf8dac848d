/*-------------------------------------------------------------------------
 *
 * sink.c
 *	  The sinks there are.
 *
 * Setting debug_sink makes any of them misbehave, in developer mode only.  It
 * is a list of words:
 *
 *	refuse=N	every record whose id is a multiple of N is refused
 *	slow=N		the sink takes N milliseconds for each record
 *	garbled		the reason of a refusal is text that no database would store
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "base/settings.h"
#include "process/sink.h"

/* In the order of EvSinkKind. */
static const EvSink *const sinks[] = {
	&ev_sink_file,
	&ev_sink_server_log
};

static bool debug_number(const char *word, int *number);

const EvSink *
ev_sink_current(void)
{
	return sinks[ev_ship_sink];
}

bool
ev_sink_ship(const EvSink *sink, int64 id, const char *record, size_t length,
			 char reason[EV_SINK_REASON])
{
	int			number;

	if (debug_number("slow=", &number))
		(void) ev_sink_wait(number);
	if (debug_number("refuse=", &number) && number > 0 && id % number == 0)
	{
		snprintf(reason, EV_SINK_REASON, "refused as debug_sink says%s",
				 strstr(ev_debug_sink, "garbled") ? " \xff\xc3\x28\x01" : "");
		return false;
	}
	return sink->ship(record, length, reason);
}

static bool
debug_number(const char *word, int *number)
{
	const char *found;

	if (!ev_developer_mode || ev_debug_sink == NULL ||
		ev_debug_sink[0] == '\0')
		return false;
	found = strstr(ev_debug_sink, word);
	if (found == NULL)
		return false;
	*number = atoi(found + strlen(word));
	return true;
}

/*
 * The latch may be set for other reasons, so the time decides.
 */
bool
ev_sink_wait(long milliseconds)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													milliseconds);
	long		rest;

	while (!ShutdownRequestPending &&
		   (rest = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
												   until)) > 0)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 rest, EV_WAIT_EVENT("EvidenceSink"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return !ShutdownRequestPending;
}
