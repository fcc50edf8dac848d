/*-------------------------------------------------------------------------
 *
 * recovery.c
 *	  What an operator does to an export by hand.
 *
 * Nothing is ever corrected in place without a trace: each step is a move that
 * ledger/states knows, or fills in what was missing, and leaves a row of
 * history with the operator's reason (requirement S3.27).  What opens an
 * export again raises its generation, so that whoever worked on an older one
 * can commit nothing any more (S3.28).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/recovery.h"
#include "ledger/statement.h"

/*
 * The attempts of the new generation are counted from 0.  An event of an older
 * one that was given up is closed: a requeue must not bring it back.
 */
bool
ev_recovery_retry(const pg_uuid_t *id, const EvExportStatus *status,
				  const char *actor, const char *session_role,
				  const char *reason)
{
	static EvStatement retry = {
		"WITH before AS MATERIALIZED ("
		"  SELECT id, error_code FROM evidence.audit_export WHERE id = $1"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = 'QUEUED', version = e.version + 1,"
		"         generation = e.generation + 1, failed_at = NULL,"
		"         staged_at = NULL, record_count = NULL, error_code = NULL,"
		"         error_message = NULL, error_hint = NULL"
		"    FROM before"
		"   WHERE e.id = before.id AND e.state = 'FAILED' AND e.version = $2"
		"  RETURNING e.id, e.version, e.generation, before.error_code"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = 'QUEUED', version = j.version + 1, attempts = 0,"
		"         deferrals = 0, next_attempt_at = $3, error_code = NULL,"
		"         started_at = NULL, finished_at = NULL"
		"    FROM export"
		"   WHERE j.export_id = export.id AND j.state = 'FAILED'"
		"  RETURNING j.id"
		"), earlier AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'CLOSED', version = o.version + 1,"
		"         settled_at = $3, reason = 'the export was opened again'"
		"    FROM export"
		"   WHERE o.export_id = export.id AND o.kind <> 'object.delete'"
		"     AND o.state IN ('PENDING', 'DEAD')"
		"), event AS ("
		"  INSERT INTO evidence.outbox_event (kind, export_id, job_id,"
		"         generation, state, next_attempt_at, created_at)"
		"  SELECT 'audit_export.generate', export.id, job.id,"
		"         export.generation, 'PENDING', $3, $3"
		"    FROM export CROSS JOIN job"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, reason, detail)"
		"SELECT $3, id, 'reopened', 'FAILED', 'QUEUED', version, $4, $5, $6,"
		"       jsonb_build_object('generation', generation,"
		"                          'error_code', error_code)"
		"  FROM export"
	};
	EvParameters p = {0};
	bool		done;

	ev_statements_begin();
	ev_add_uuid(&p, id);
	ev_add_int8(&p, status->version);
	ev_add_time(&p, ev_clock_now());
	ev_add_text(&p, actor);
	ev_add_text(&p, session_role);
	ev_add_text(&p, reason);
	done = ev_statement_run_latest(&retry, &p) == 1;
	ev_statements_end();
	if (done)
		ev_export_check_combination(id);
	return done;
}
