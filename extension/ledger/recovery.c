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
#include "base/settings.h"
#include "ledger/expiry.h"
#include "ledger/recovery.h"
#include "ledger/statement.h"

static void add_operator(EvParameters *p, const pg_uuid_t *id,
						 const char *actor, const char *session_role,
						 const char *reason);
static bool was_sent(const pg_uuid_t *id, const EvExportStatus *status,
					 const EvFoundObject *object, bool *in_work);
static void take_up_upload(const pg_uuid_t *id,
						   const EvExportStatus *status);

/* $1 to $5 of most statements below. */
static void
add_operator(EvParameters *p, const pg_uuid_t *id, const char *actor,
			 const char *session_role, const char *reason)
{
	ev_add_uuid(p, id);
	ev_add_time(p, ev_clock_now());
	ev_add_text(p, actor);
	ev_add_text(p, session_role);
	ev_add_text(p, reason);
}

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

/*
 * A freeze is an open finding like any other that speaks against an archive,
 * so there is one place where a download is stopped.
 */
bool
ev_recovery_freeze(const pg_uuid_t *id, const char *actor,
				   const char *session_role, const char *reason)
{
	static EvStatement freeze = {
		"WITH export AS ("
		"  SELECT id, version FROM evidence.audit_export WHERE id = $1"
		"), finding AS ("
		"  INSERT INTO evidence.finding (rule, scope, subject, export_id,"
		"         severity, action, detail, found_at, seen_at)"
		"  SELECT 'frozen', 'operator', id::text, id, 'high', 'unfreeze',"
		"         jsonb_build_object('by', $3::text, 'reason', $5::text),"
		"         $2, $2"
		"    FROM export"
		"  ON CONFLICT (scope, rule, subject) WHERE closed_at IS NULL"
		"  DO NOTHING"
		"  RETURNING export_id"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, version,"
		"       actor, session_role, reason)"
		"SELECT $2, id, 'frozen', version, $3, $4, $5"
		"  FROM export JOIN finding ON finding.export_id = export.id"
	};
	EvParameters p = {0};
	bool		done;

	ev_statements_begin();
	add_operator(&p, id, actor, session_role, reason);
	done = ev_statement_run_latest(&freeze, &p) == 1;
	ev_statements_end();
	return done;
}

bool
ev_recovery_unfreeze(const pg_uuid_t *id, const char *actor,
					 const char *session_role, const char *reason,
					 int64 *others)
{
	static EvStatement unfreeze = {
		"WITH finding AS ("
		"  UPDATE evidence.finding SET closed_at = $2, closed_by = $3"
		"   WHERE export_id = $1 AND closed_at IS NULL"
		"     AND scope = 'operator' AND rule = 'frozen'"
		"  RETURNING export_id"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, version,"
		"       actor, session_role, reason)"
		"SELECT $2, e.id, 'unfrozen', e.version, $3, $4, $5"
		"  FROM evidence.audit_export AS e"
		"  JOIN finding ON finding.export_id = e.id"
	};
	static EvStatement count = {
		"SELECT count(*) FROM evidence.finding"
		" WHERE export_id = $1 AND closed_at IS NULL AND severity = 'high'"
	};
	EvParameters p = {0};
	EvParameters left = {0};
	bool		done;

	ev_statements_begin();
	add_operator(&p, id, actor, session_role, reason);
	done = ev_statement_run_latest(&unfreeze, &p) == 1;
	ev_add_uuid(&left, id);
	(void) ev_statement_run_latest(&count, &left);
	*others = ev_result_int8(0, 1);
	ev_statements_end();
	return done;
}

void
ev_recovery_lock_attempts(const pg_uuid_t *id)
{
	static EvStatement lock = {
		"SELECT 1 FROM evidence.attempt AS a"
		" WHERE a.job_id = (SELECT j.id FROM evidence.background_job AS j"
		"                    WHERE j.export_id = $1)"
		"   AND a.ended_at IS NULL"
		"   FOR NO KEY UPDATE"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_uuid(&p, id);
	(void) ev_statement_run_latest(&lock, &p);
	ev_statements_end();
}

/*
 * The attempt ends here and not by its worker: a retry may claim the job at
 * once, and finds the worker that still runs without its lease.
 */
bool
ev_recovery_fail(const pg_uuid_t *id, const EvExportStatus *status,
				 const char *actor, const char *session_role,
				 const char *reason)
{
	static EvStatement fail = {
		"WITH before AS MATERIALIZED ("
		"  SELECT id, state, attempt_token FROM evidence.audit_export"
		"   WHERE id = $1"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = 'FAILED', version = e.version + 1,"
		"         attempt_token = NULL, failed_at = $2, error_code = '57014',"
		"         error_message = 'an operator ended the export',"
		"         error_hint = 'An operator can open it again with evidence.retry_audit_export().',"
		EV_NO_ARCHIVE_SQL
		"    FROM before"
		"   WHERE e.id = before.id AND e.version = $6"
		"     AND e.state IN ('QUEUED', 'PROCESSING', 'STAGED')"
		"  RETURNING e.id, e.version, before.state AS from_state,"
		"            before.attempt_token"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = 'FAILED', version = j.version + 1,"
		"         attempt_token = NULL, finished_at = $2,"
		"         error_code = '57014'"
		"    FROM export"
		"   WHERE j.export_id = export.id"
		"     AND (j.state IN ('QUEUED', 'RUNNING')"
		"          OR (j.state = 'SUCCEEDED'"
		"              AND export.from_state = 'STAGED'))"
		"), attempt AS ("
		"  UPDATE evidence.attempt AS a"
		"     SET ended_at = $2, outcome = 'lost', error_code = 'PE004'"
		"    FROM export"
		"   WHERE a.token = export.attempt_token AND a.ended_at IS NULL"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'CLOSED', version = o.version + 1,"
		"         settled_at = $2, reason = 'an operator ended the export'"
		"    FROM export"
		"   WHERE o.export_id = export.id AND o.kind <> 'object.delete'"
		"     AND o.state IN ('PENDING', 'DEAD')"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, attempt, reason)"
		"SELECT $2, id, 'given_up', from_state, 'FAILED', version, $3, $4,"
		"       left(attempt_token::text, 8), $5"
		"  FROM export"
	};
	EvParameters p = {0};
	bool		done;

	ev_statements_begin();
	add_operator(&p, id, actor, session_role, reason);
	ev_add_int8(&p, status->version);
	done = ev_statement_run_latest(&fail, &p) == 1;
	ev_statements_end();
	if (done)
	{
		if (status->archive_sha256 != NULL)
			ev_expiry_remove(id, status->generation, &status->archive_token);
		ev_export_check_combination(id);
	}
	return done;
}

/*
 * Only what an uploader has said it would send can be the archive, and only
 * of that the ledger knows later that it must be removed.
 */
static bool
was_sent(const pg_uuid_t *id, const EvExportStatus *status,
		 const EvFoundObject *object, bool *in_work)
{
	static EvStatement look = {
		"SELECT count(*) FILTER (WHERE u.bucket = $3 AND u.object_key = $4"
		"         AND u.sent_at IS NOT NULL) > 0,"
		"       count(*) FILTER (WHERE u.ended_at IS NULL"
		"         AND u.lease_until > $5) > 0"
		"  FROM evidence.upload_attempt AS u"
		" WHERE u.export_id = $1 AND u.archive_token = $2"
	};
	EvParameters p = {0};
	bool		sent;

	ev_add_uuid(&p, id);
	ev_add_uuid(&p, &status->archive_token);
	ev_add_text(&p, object->bucket);
	ev_add_text(&p, object->key);
	ev_add_time(&p, ev_clock_now());
	(void) ev_statement_run_latest(&look, &p);
	sent = ev_result_bool(0, 1);
	*in_work = ev_result_bool(0, 2);
	return sent;
}

/* An event that was given up is pending once more, and then delivered. */
static void
take_up_upload(const pg_uuid_t *id, const EvExportStatus *status)
{
	static EvStatement take_up = {
		"UPDATE evidence.outbox_event"
		"   SET state = 'PENDING', version = version + 1, settled_at = NULL"
		" WHERE export_id = $1 AND generation = $2"
		"   AND kind = 'archive.upload' AND state = 'DEAD'"
	};
	EvParameters p = {0};

	ev_add_uuid(&p, id);
	ev_add_int4(&p, status->generation);
	(void) ev_statement_run_latest(&take_up, &p);
}

EvFillIn
ev_recovery_fill_in(const pg_uuid_t *id, const EvExportStatus *status,
					const EvFoundObject *object, const char *actor,
					const char *session_role, const char *reason)
{
	static EvStatement fill_in = {
		"WITH before AS MATERIALIZED ("
		"  SELECT id, state FROM evidence.audit_export WHERE id = $1"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = 'READY',"
		"         version = e.version + (e.state = 'STAGED')::int,"
		"         ready_at = coalesce(e.ready_at, $2),"
		"         expires_at = coalesce(e.expires_at,"
		"           $2 + $7 * interval '1 second'),"
		"         object_bucket = $8, object_key = $9, object_version = $10"
		"    FROM before"
		"   WHERE e.id = before.id AND e.version = $6"
		"     AND e.state IN ('STAGED', 'READY') AND e.object_key IS NULL"
		"  RETURNING e.id, e.version, e.generation, e.archive_token,"
		"            e.archive_bytes, e.archive_sha256,"
		"            nullif(before.state, 'READY') AS from_state"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'DELIVERED', version = o.version + 1,"
		"         settled_at = $2, error_code = NULL, reason = NULL"
		"    FROM export"
		"   WHERE o.export_id = export.id AND o.kind = 'archive.upload'"
		"     AND o.generation = export.generation AND o.state = 'PENDING'"
		"), attempt AS ("
		"  UPDATE evidence.upload_attempt AS u"
		"     SET ended_at = $2, outcome = 'lost', error_code = 'PE004'"
		"    FROM export"
		"   WHERE u.export_id = export.id AND u.ended_at IS NULL"
		"     AND u.archive_token = export.archive_token"
		"), chunks AS ("
		"  DELETE FROM evidence.archive_chunk AS c"
		"   USING export WHERE c.attempt_token = export.archive_token"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, reason, detail)"
		"SELECT $2, id, 'filled_in', from_state,"
		"       CASE WHEN from_state IS NOT NULL THEN 'READY' END, version,"
		"       $3, $4, $5,"
		"       jsonb_build_object('bucket', $8, 'bytes', archive_bytes,"
		"                          'sha256', archive_sha256)"
		"  FROM export"
	};
	EvParameters p = {0};
	EvFillIn	answer = EV_FILL_IN_MOVED;
	bool		in_work;

	ev_statements_begin();
	if (!was_sent(id, status, object, &in_work))
		answer = EV_FILL_IN_NEVER_SENT;
	else if (in_work)
		answer = EV_FILL_IN_IN_WORK;
	else
	{
		take_up_upload(id, status);
		add_operator(&p, id, actor, session_role, reason);
		ev_add_int8(&p, status->version);
		ev_add_int4(&p, ev_download_window);
		ev_add_text(&p, object->bucket);
		ev_add_text(&p, object->key);
		ev_add_text(&p, object->version);
		if (ev_statement_run_latest(&fill_in, &p) == 1)
			answer = EV_FILL_IN_DONE;
	}
	ev_statements_end();
	if (answer == EV_FILL_IN_DONE)
		ev_export_check_combination(id);
	return answer;
}
