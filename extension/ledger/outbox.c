/*-------------------------------------------------------------------------
 *
 * outbox.c
 *	  Hand over what a commit has promised.
 *
 * The launcher is the only bridge between a request and its execution.  Events
 * of the other kinds are claimed by uploaders (ledger/delivery.c).  One
 * event is delivered per transaction, so a failing one holds up nobody: its
 * pause is stored in its row and the next event is taken meanwhile (case
 * C45).  Delivering twice is harmless, because what is delivered is the
 * permission to claim one job, which has one deterministic id.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/delivery.h"
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
		" WHERE kind = 'audit_export.generate' AND state = 'PENDING'"
		"   AND next_attempt_at <= $1"
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

/*
 * The facts are looked at again under the lock: an event whose export has
 * gone on without it would do harm or nothing.
 */
EvRequeue
ev_outbox_requeue(int64 event_id, const char *actor, const char *session_role,
				  const char *reason, pg_uuid_t *export_id, char **kind)
{
	static EvStatement find = {
		"SELECT o.export_id, o.kind, o.state = 'DEAD',"
		"       o.settled_at > $2 - $3 * interval '1 second',"
		"       e.generation = o.generation AND CASE o.kind"
		"         WHEN 'audit_export.generate' THEN"
		"           e.state = 'QUEUED' AND j.state = 'QUEUED'"
		"         WHEN 'archive.upload' THEN e.state = 'STAGED'"
		"         ELSE e.state NOT IN ('QUEUED', 'PROCESSING', 'STAGED')"
		"         END OR (o.kind = 'object.delete'"
		"                 AND e.generation > o.generation)"
		"  FROM evidence.outbox_event AS o"
		"  JOIN evidence.audit_export AS e ON e.id = o.export_id"
		"  JOIN evidence.background_job AS j ON j.id = o.job_id"
		" WHERE o.id = $1"
		"   FOR NO KEY UPDATE OF e, o"
	};
	static EvStatement requeue = {
		"WITH event AS ("
		"  UPDATE evidence.outbox_event"
		"     SET state = 'PENDING', version = version + 1, attempts = 0,"
		"         next_attempt_at = $2, settled_at = NULL, reason = NULL"
		"   WHERE id = $1 AND state = 'DEAD'"
		"  RETURNING id, kind, export_id"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, version,"
		"       actor, session_role, reason, detail)"
		"SELECT $2, e.id, 'requeued', e.version, $3, $4, $5,"
		"       jsonb_build_object('event', event.id, 'kind', event.kind)"
		"  FROM event JOIN evidence.audit_export AS e ON e.id = event.export_id"
	};
	EvParameters due = {0};
	EvParameters p = {0};
	EvRequeue	answer = EV_REQUEUE_UNKNOWN;

	ev_statements_begin();
	ev_add_int8(&due, event_id);
	ev_add_time(&due, ev_clock_now());
	ev_add_int4(&due, ev_requeue_window);
	if (ev_statement_run_latest(&find, &due) == 1)
	{
		(void) ev_result_uuid(0, 1, export_id);
		*kind = ev_result_text(0, 2);
		answer = !ev_result_bool(0, 3) ? EV_REQUEUE_NOT_DEAD :
			!ev_result_bool(0, 4) ? EV_REQUEUE_TOO_LATE :
			!ev_result_bool(0, 5) ? EV_REQUEUE_OVERTAKEN : EV_REQUEUE_DONE;
	}
	if (answer == EV_REQUEUE_DONE)
	{
		ev_add_int8(&p, event_id);
		ev_add_time(&p, ev_clock_now());
		ev_add_text(&p, actor);
		ev_add_text(&p, session_role);
		ev_add_text(&p, reason);
		(void) ev_statement_run_latest(&requeue, &p);
		if (strcmp(*kind, "audit_export.generate") != 0)
			ev_delivery_announce();
	}
	ev_statements_end();
	if (answer == EV_REQUEUE_DONE)
		ev_export_check_combination(export_id);
	return answer;
}
