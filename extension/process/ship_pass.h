/*-------------------------------------------------------------------------
 *
 * ship_pass.h
 *	  One pass of the shipper: all that is due, in batches.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_SHIP_PASS_H
#define EV_PROCESS_SHIP_PASS_H

#include "process/ship_record.h"
#include "process/sink.h"
#include "process/transaction.h"

/* How a pass came to its end. */
typedef enum EvPassEnd
{
	EV_PASS_DONE,				/* nothing is due any more */
	EV_PASS_TIME,				/* it took too long: go on in the next one */
	EV_PASS_STOPPED,			/* the process is to end, or was cancelled */
	EV_PASS_BUSY,				/* somebody holds the tables */
	EV_PASS_FOREIGN,			/* foreign incarnation */
	EV_PASS_DISABLED,			/* a setting keeps the sink from working */
	EV_PASS_BROKEN,				/* the sink is out of order */
	EV_PASS_FAILED				/* the database failed us */
} EvPassEnd;

typedef struct EvPass
{
	EvPassEnd	end;
	int64		shipped;
	int64		deferred;		/* refused; to be tried again later */
	int64		stuck;			/* refused, and not even that was recorded */
	int64		batches;
	const char *sink;
	char		reason[EV_SINK_REASON]; /* DISABLED, BROKEN, FAILED */
	char		code[6];		/* SQLSTATE of these three */
} EvPass;

/*
 * Make a pass, and write its row in pass_log: always, or only if it did or
 * met something that the caller's pass before did not (see same_as).  Raises
 * no error but one that ends the process, or for a session its statement.
 */
extern void ev_ship_pass(EvTransaction *transaction, EvRecorder *recorder,
						 const char *actor, const EvPass *same_as,
						 EvPass *pass);

#endif							/* EV_PROCESS_SHIP_PASS_H */
