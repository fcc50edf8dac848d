/*-------------------------------------------------------------------------
 *
 * sink.h
 *	  Where audit records are shipped to: the contract of a sink.
 *
 * A sink is one file that fills an EvSink, one line in the table of sink.c,
 * and one value of setting ship_sink.  A record is accepted or it is not;
 * there is no third outcome (requirement S2.13).  A sink raises no error but
 * for an interrupt, reaches nothing outside of this machine, and holds nothing
 * from one batch to the next.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_SINK_H
#define EV_PROCESS_SINK_H

/* Can it take records at all? */
typedef enum EvSinkState
{
	EV_SINK_READY,
	EV_SINK_DISABLED,			/* a setting is in the way: rows wait */
	EV_SINK_BROKEN				/* something is out of order: rows wait */
} EvSinkState;

/* Room for the text of a reason: lower case, no full stop, no secret. */
#define EV_SINK_REASON 512

typedef struct EvSink
{
	const char *name;

	/*
	 * Asked at start, after each reload, before each pass, and in a pass
	 * after each batch of which something was refused.
	 */
	EvSinkState (*preflight) (char reason[EV_SINK_REASON]);

	/*
	 * A batch begins, within a transaction whose end must free everything.
	 * False: nothing can be shipped now, and no row counts as tried.
	 */
	bool		(*begin) (char reason[EV_SINK_REASON]);

	/* One record, which ends in a line feed.  True: accepted. */
	bool		(*ship) (const char *record, size_t length,
						 char reason[EV_SINK_REASON]);

	/*
	 * The batch ends.  True: what was accepted since begin survives a crash
	 * of the machine as far as this sink can know.  False: all of it counts
	 * as refused.
	 */
	bool		(*finish) (char reason[EV_SINK_REASON]);
} EvSink;

extern const EvSink ev_sink_file;
extern const EvSink ev_sink_server_log;

/* The sink of setting ship_sink. */
extern const EvSink *ev_sink_current(void);

/* Ship one record; the id is for setting debug_sink only. */
extern bool ev_sink_ship(const EvSink *sink, int64 id, const char *record,
						 size_t length, char reason[EV_SINK_REASON]);

/*
 * Wait; ends early, by an error, when the process is told to stop, and at
 * once with false when a worker is.
 */
extern bool ev_sink_wait(long milliseconds);

#endif							/* EV_PROCESS_SINK_H */
