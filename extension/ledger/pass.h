/*-------------------------------------------------------------------------
 *
 * pass.h
 *	  What was done in one pass over something.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_PASS_H
#define EV_LEDGER_PASS_H

#include "datatype/timestamp.h"

typedef struct EvPassRow
{
	int64		id;				/* 0: not written yet */
	const char *kind;			/* ship or maintain */
	const char *scope;
	const char *actor;
	TimestampTz started_at;
	const char *counts;			/* a JSON object */
	const char *error_code;		/* NULL: it did its work */
	const char *error_message;
} EvPassRow;

/*
 * Write the row, or write it anew with the counts so far: a pass of many
 * transactions does so in each of them, so that what it says is true when it
 * dies.  The id is set by the first call; take it back to 0 if the transaction
 * of that call fails.
 */
extern void ev_pass_write(EvPassRow *row);

/* Remove the oldest rows of the kind, a few at a time, once they are old. */
extern void ev_pass_forget(const char *kind);

#endif							/* EV_LEDGER_PASS_H */
