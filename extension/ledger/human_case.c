/*-------------------------------------------------------------------------
 *
 * human_case.c
 *	  What a person has to decide, who, and until when.
 *
 * A case stays open until somebody closes it with what was decided.  Who
 * looks again before that gives it another time, so that none is forgotten
 * (requirement S3.98); what was said before stands in the audit log.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/human_case.h"
#include "ledger/statement.h"

int64
ev_human_case_open(const char *task, const char *owner, TimestampTz due_at,
				   const pg_uuid_t *export_id, const char *actor,
				   const char *reason)
{
	static EvStatement open = {
		"INSERT INTO evidence.human_case (task, owner, due_at, export_id,"
		"       opened_at, opened_by, reason)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id"
	};
	EvParameters p = {0};
	int64		id;

	ev_statements_begin();
	ev_add_text(&p, task);
	ev_add_text(&p, owner);
	ev_add_time(&p, due_at);
	ev_add_uuid(&p, export_id);
	ev_add_time(&p, ev_clock_now());
	ev_add_text(&p, actor);
	ev_add_text(&p, reason);
	(void) ev_statement_run(&open, &p);
	id = ev_result_int8(0, 1);
	ev_statements_end();
	return id;
}

bool
ev_human_case_recheck(int64 case_id, TimestampTz due_at, const char *actor,
					  const char *reason)
{
	static EvStatement recheck = {
		"UPDATE evidence.human_case"
		"   SET rechecked_at = $2,"
		"       due_at = CASE WHEN $6 THEN due_at ELSE $5 END,"
		"       closed_at = CASE WHEN $6 THEN $2 END,"
		"       closed_by = CASE WHEN $6 THEN $3 END,"
		"       resolution = CASE WHEN $6 THEN $4 END"
		" WHERE id = $1 AND closed_at IS NULL"
	};
	EvParameters p = {0};
	bool		done;

	ev_statements_begin();
	ev_add_int8(&p, case_id);
	ev_add_time(&p, ev_clock_now());
	ev_add_text(&p, actor);
	ev_add_text(&p, reason);
	ev_add_time(&p, due_at);
	ev_add_bool(&p, due_at == 0);
	done = ev_statement_run_latest(&recheck, &p) == 1;
	ev_statements_end();
	return done;
}
