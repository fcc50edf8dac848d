/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  Rows to lock before something is counted or compared.
 *
 * A count under a lock is right only if it uses a snapshot taken after the
 * lock.  So each function here locks in a statement of its own, and what is
 * decided under the lock is read by a later statement.  The requester's row
 * is updated and not just locked: a lock alone would let a REPEATABLE READ
 * caller, whose snapshot is older than the wait, count too few (case C47).
 *
 * Rows are made when first needed, so that a dump holds all of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "ledger/guard.h"
#include "ledger/statement.h"

static void ensure_row(const char *kind, const char *name);
static void require_row(uint64 rows);

/*
 * Looks before it inserts: a row that is there costs no lock and no xid.
 */
static void
ensure_row(const char *kind, const char *name)
{
	static EvStatement find = {
		"SELECT 1 FROM evidence.guard WHERE kind = $1 AND name = $2"
	};
	static EvStatement make = {
		"INSERT INTO evidence.guard (kind, name) VALUES ($1, $2)"
		" ON CONFLICT (kind, name) DO NOTHING"
	};
	EvParameters p = {0};

	ev_add_text(&p, kind);
	ev_add_text(&p, name);
	if (ev_statement_run_latest(&find, &p) == 0)
		(void) ev_statement_run(&make, &p);
}

/*
 * The row is there, but a caller in REPEATABLE READ whose snapshot is older
 * than it cannot see it and would go on without the lock.
 */
static void
require_row(uint64 rows)
{
	if (rows != 1)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent request"),
				 errhint("Run the whole transaction again.")));
}

TimestampTz
ev_guard_share_source(const char *source)
{
	static EvStatement share = {
		"SELECT 1 FROM evidence.guard"
		" WHERE kind = 'source' AND name = $1 FOR SHARE"
	};
	static EvStatement watermark = {
		"SELECT coalesce(watermark, '-infinity') FROM evidence.guard"
		" WHERE kind = 'source' AND name = $1"
	};
	EvParameters p = {0};
	TimestampTz at;

	ev_statements_begin();
	ensure_row("source", source);
	ev_add_text(&p, source);
	require_row(ev_statement_run(&share, &p));
	(void) ev_statement_run_latest(&watermark, &p);
	at = ev_result_time(0, 1);
	ev_statements_end();
	return at;
}

void
ev_guard_touch_requester(const char *requester)
{
	static EvStatement touch = {
		"UPDATE evidence.guard SET touched = touched + 1"
		" WHERE kind = 'requester' AND name = $1"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ensure_row("requester", requester);
	ev_add_text(&p, requester);
	require_row(ev_statement_run(&touch, &p));
	ev_statements_end();
}

void
ev_guard_lock_pool(void)
{
	static EvStatement lock = {
		"SELECT 1 FROM evidence.guard"
		" WHERE kind = 'pool' AND name = 'exporters' FOR UPDATE"
	};

	ev_statements_begin();
	ensure_row("pool", "exporters");
	require_row(ev_statement_run(&lock, NULL));
	ev_statements_end();
}
