/*-------------------------------------------------------------------------
 *
 * pass.c
 *	  What was done in one pass over something.
 *
 * That there was nothing to do, that nothing could be done, and that it could
 * not even be looked: these are three things, so the counts and the error are
 * columns of their own (requirements S2.16, S2.17).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/pass.h"
#include "ledger/statement.h"

void
ev_pass_write(EvPassRow *row)
{
	static EvStatement insert = {
		"INSERT INTO evidence.pass_log (kind, scope, actor, started_at,"
		"       finished_at, counts, error_code, error_message)"
		" VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7, $8) RETURNING id"
	};
	static EvStatement update = {
		"UPDATE evidence.pass_log"
		"   SET finished_at = $2, counts = $3::jsonb, error_code = $4,"
		"       error_message = $5"
		" WHERE id = $1 AND started_at = $6"
	};
	EvParameters p = {0};

	ev_statements_begin();
	if (row->id == 0)
	{
		ev_add_text(&p, row->kind);
		ev_add_text(&p, row->scope);
		ev_add_text(&p, row->actor);
		ev_add_time(&p, row->started_at);
	}
	else
		ev_add_int8(&p, row->id);
	ev_add_time(&p, ev_clock_now());
	ev_add_text(&p, row->counts);
	ev_add_text(&p, row->error_code);
	ev_add_text(&p, row->error_message);
	if (row->id != 0)
		ev_add_time(&p, row->started_at);
	(void) ev_statement_run(row->id == 0 ? &insert : &update, &p);
	if (row->id == 0)
		row->id = ev_result_int8(0, 1);
	ev_statements_end();
}

/*
 * Kept for as long as somebody may ask what happened.  Only the oldest few
 * are looked at, so this costs the same whatever the size of the table.
 */
void
ev_pass_forget(const char *kind)
{
	static EvStatement forget = {
		"DELETE FROM evidence.pass_log WHERE id IN ("
		"  SELECT id FROM ("
		"    SELECT id, finished_at FROM evidence.pass_log"
		"     WHERE kind = $1 ORDER BY id LIMIT 10) AS oldest"
		"   WHERE finished_at < $2 - interval '30 days')"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_text(&p, kind);
	ev_add_time(&p, ev_clock_now());
	(void) ev_statement_run(&forget, &p);
	ev_statements_end();
}
