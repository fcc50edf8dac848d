/*-------------------------------------------------------------------------
 *
 * outbox.c
 *	  Hand over what a commit has promised.
 *
 * The launcher is the only bridge between a request and its execution.  One
 * event is delivered per transaction, so a failing one holds up nobody: its
 * pause is stored in its row and the next event is taken meanwhile (case
 * C45).  Delivering twice is harmless, because what is delivered is the
 * permission to claim one job, which has one deterministic id.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/export.h"
#include "ledger/outbox.h"
#include "ledger/statement.h"

/* After so many failed deliveries an event is DEAD. */
#define MAX_DELIVERIES 10

bool
ev_outbox_deliver_one(int64 *event_id)
{
	static EvStatement find = {
		"SELECT id, export_id FROM evidence.outbox_event"
		" WHERE state = 'PENDING' AND next_attempt_at <= $1"
		" ORDER BY next_attempt_at, id"
		" LIMIT 1"
		"   FOR UPDATE SKIP LOCKED"
	};
	static EvStatement settle = {
		"UPDATE evidence.outbox_event AS o"
		"   SET state = CASE WHEN f.startable THEN 'DELIVERED' ELSE 'CLOSED' END,"
		"       version = o.version + 1, settled_at = $2,"
		"       reason = CASE WHEN NOT f.startable THEN"
		"         format('export %s, job %s', f.export_state, f.job_state) END"
		"  FROM (SELECT e.state AS export_state, j.state AS job_state,"
		"               e.state = 'QUEUED' AND j.state = 'QUEUED'"
		"               AND e.generation = p.generation AS startable"
		"          FROM evidence.outbox_event AS p"
		"          JOIN evidence.audit_export AS e ON e.id = p.export_id"
		"          JOIN evidence.background_job AS j ON j.id = p.job_id"
		"         WHERE p.id = $1) AS f"
		" WHERE o.id = $1 AND o.state = 'PENDING'"
	};
	EvParameters due = {0};
	EvParameters p = {0};
	pg_uuid_t	export_id;
	bool		found;

	ev_statements_begin();
	ev_add_time(&due, ev_clock_now());
	found = ev_statement_run(&find, &due) == 1;
	if (found)
	{
		*event_id = ev_result_int8(0, 1);
		(void) ev_result_uuid(0, 2, &export_id);
		ev_add_int8(&p, *event_id);
		ev_add_time(&p, ev_clock_now());
		(void) ev_statement_run(&settle, &p);
	}
	ev_statements_end();
	if (found)
		ev_export_check_combination(&export_id);
	return found;
}

void
ev_outbox_delivery_failed(int64 event_id, const char *code)
{
	static EvStatement defer = {
		"UPDATE evidence.outbox_event"
		"   SET attempts = attempts + 1, error_code = $2,"
		"       state = CASE WHEN attempts + 1 >= $4 THEN 'DEAD' ELSE state END,"
		"       version = version + (attempts + 1 >= $4)::int,"
		"       settled_at = CASE WHEN attempts + 1 >= $4 THEN $3 END,"
		"       next_attempt_at = $3 + least(300, power(2, attempts))"
		"         * (0.75 + random() / 2) * interval '1 second'"
		" WHERE id = $1 AND state = 'PENDING'"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_int8(&p, event_id);
	ev_add_text(&p, code);
	ev_add_time(&p, ev_clock_now());
	ev_add_int4(&p, MAX_DELIVERIES);
	(void) ev_statement_run(&defer, &p);
	ev_statements_end();
}
