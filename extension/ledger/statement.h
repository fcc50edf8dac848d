/*-------------------------------------------------------------------------
 *
 * statement.h
 *	  Run one prepared SQL statement of the ledger and read its result.
 *
 * Only files of this folder may use it: all SQL text lives here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_STATEMENT_H
#define EV_LEDGER_STATEMENT_H

#include "access/transam.h"
#include "datatype/timestamp.h"
#include "executor/spi.h"
#include "utils/jsonb.h"
#include "utils/tuplestore.h"
#include "utils/uuid.h"

#define EV_MAX_PARAMETERS 32

/*
 * A statement with its plan, which is made at the first use and kept for the
 * life of the process.  Declare it static, with only the text set.
 */
typedef struct EvStatement
{
	const char *text;
	SPIPlanPtr	plan;
} EvStatement;

/* Values for $1, $2, ... in the order in which they are added. */
typedef struct EvParameters
{
	int			count;
	Oid			types[EV_MAX_PARAMETERS];
	Datum		values[EV_MAX_PARAMETERS];
	char		nulls[EV_MAX_PARAMETERS];
} EvParameters;

/* A NULL pointer, where one is taken, is SQL NULL. */
extern void ev_add_text(EvParameters *p, const char *value);
extern void ev_add_uuid(EvParameters *p, const pg_uuid_t *value);
extern void ev_add_int4(EvParameters *p, int32 value);
extern void ev_add_int8(EvParameters *p, int64 value);
extern void ev_add_bool(EvParameters *p, bool value);
extern void ev_add_time(EvParameters *p, TimestampTz value);
extern void ev_add_xid8(EvParameters *p, FullTransactionId value);
extern void ev_add_jsonb(EvParameters *p, Jsonb *value);
extern void ev_add_bytes(EvParameters *p, const void *data, size_t length);
extern void ev_add_texts(EvParameters *p, const char *const *values,
						 int count);
extern void ev_add_datum(EvParameters *p, Oid type, Datum value);
extern void ev_add_uuids(EvParameters *p, const pg_uuid_t *values, int count);

/*
 * Open and close an SPI level around one or more statements.  What the
 * ev_result functions return lives in the memory context that was current at
 * ev_statements_begin.
 */
extern void ev_statements_begin(void);
extern void ev_statements_end(void);

/*
 * For a procedure that commits inside: the outermost level, and the ends of
 * the session's transactions within it.
 */
extern void ev_statements_begin_procedure(void);
extern void ev_statements_commit(void);
extern void ev_statements_rollback(void);

/* Run a statement in the transaction's own snapshot; returns its rows. */
extern uint64 ev_statement_run(EvStatement *statement, EvParameters *p);

/*
 * The same in the newest snapshot there is, whatever the isolation level:
 * for rights, grants and quotas, where an old snapshot would be a hole.
 */
extern uint64 ev_statement_run_latest(EvStatement *statement, EvParameters *p);

/* One column of the result, counted from 1; NULL, 0 or false for SQL NULL. */
extern bool ev_result_is_null(uint64 row, int column);
extern char *ev_result_text(uint64 row, int column);
extern bool ev_result_uuid(uint64 row, int column, pg_uuid_t *value);
extern int32 ev_result_int4(uint64 row, int column);
extern int64 ev_result_int8(uint64 row, int column);
extern bool ev_result_bool(uint64 row, int column);
extern TimestampTz ev_result_time(uint64 row, int column);

/* A copy of any value, for types that have no function of their own here. */
extern Datum ev_result_datum(uint64 row, int column, bool *isnull);

/* Put all rows into a tuplestore, whose columns must have the same types. */
extern void ev_result_store(Tuplestorestate *store);

/* A copy of a bytea in this memory context; NULL for NULL. */
extern bytea *ev_result_bytes(uint64 row, int column, MemoryContext context);

/* The elements of a text[] without NULLs. */
extern char **ev_result_texts(uint64 row, int column, int *count);

#endif							/* EV_LEDGER_STATEMENT_H */
