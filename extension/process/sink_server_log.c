/*-------------------------------------------------------------------------
 *
 * sink_server_log.c
 *	  The sink "server_log": records as messages of the server's log.
 *
 * For sites that collect that log anyway.  The server does not tell whether a
 * message arrived: with a full disk, without a log_destination that works, or
 * with a collector that stands still, it is gone and nobody knows.  So this
 * sink accepts what it has handed over, and README says what that is worth.
 *
 * What can be known beforehand is asked beforehand: at log_min_messages FATAL
 * or PANIC nothing would be written at all, and every record would be sent to
 * nowhere (requirements S2.6, S2.36).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/memutils.h"

#include "process/sink.h"

/* A longer message cannot be put together. */
#define MESSAGE_LIMIT (MaxAllocSize / 4)

static EvSinkState preflight(char reason[EV_SINK_REASON]);
static bool begin(char reason[EV_SINK_REASON]);
static bool ship(const char *record, size_t length,
				 char reason[EV_SINK_REASON]);
static bool finish(char reason[EV_SINK_REASON]);

const EvSink ev_sink_server_log = {
	.name = "server_log",
	.preflight = preflight,
	.begin = begin,
	.ship = ship,
	.finish = finish
};

static EvSinkState
preflight(char reason[EV_SINK_REASON])
{
	if (!message_level_is_interesting(LOG_SERVER_ONLY))
	{
		snprintf(reason, EV_SINK_REASON,
				 "log_min_messages keeps messages of level LOG out of the server's log");
		return EV_SINK_DISABLED;
	}
	if (Log_destination == 0)
	{
		snprintf(reason, EV_SINK_REASON,
				 "log_destination is empty, so the server's log goes nowhere");
		return EV_SINK_DISABLED;
	}
	return EV_SINK_READY;
}

static bool
begin(char reason[EV_SINK_REASON])
{
	return preflight(reason) == EV_SINK_READY;
}

/*
 * The same check again, since the level is a setting of the session as well.
 */
static bool
ship(const char *record, size_t length, char reason[EV_SINK_REASON])
{
	if (preflight(reason) != EV_SINK_READY)
		return false;
	if (length > MESSAGE_LIMIT)
	{
		snprintf(reason, EV_SINK_REASON,
				 "record of %zu bytes is too long for a message of the server's log",
				 length);
		return false;
	}
	/* The line feed at the end is the log's own business. */
	ereport(LOG_SERVER_ONLY,
			(errmsg_internal("pg_evidence audit: %.*s",
							 (int) (length - 1), record),
			 errhidestmt(true),
			 errhidecontext(true)));
	return true;
}

static bool
finish(char reason[EV_SINK_REASON])
{
	return true;
}
