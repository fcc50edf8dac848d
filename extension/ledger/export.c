/*-------------------------------------------------------------------------
 *
 * export.c
 *	  The domain fact: what was asked for, and how it stands.
 *
 * A request writes four rows in the caller's own transaction: the export with
 * its contract, the job, the outbox event and the first row of history.  No
 * queue is told anything before the commit, so there is no half success that
 * somebody would have to repair (requirements S1.10, S1.19).
 *
 * Each change of state is one statement that names the state and the version
 * it starts from and moves all the facts that belong together.  If it hits no
 * row, somebody else was faster; the caller reads the state again and says
 * which of done, cancelled or lost it is (S3.25).  The guard trigger of the
 * tables holds every such statement against ledger/states once more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/snapmgr.h"

#include "base/clock.h"
#include "base/errors.h"
#include "ledger/delivery.h"
#include "ledger/expiry.h"
#include "ledger/export.h"
#include "ledger/statement.h"
#include "ledger/states.h"

static void read_contract(EvContract *contract);
static void after_end(const pg_uuid_t *id, const EvExportStatus *status);
static void require_legal(const pg_uuid_t *id, const char *export,
						  const char *job, const char *event);

char *
ev_export_id_text(const pg_uuid_t *id)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(id)));
}

bool
ev_source_load(const char *name, EvSource *source)
{
	static EvStatement load = {
		"SELECT table_name, columns, column_version, consistency"
		"  FROM evidence.audit_source"
		" WHERE name = $1"
	};
	EvParameters p = {0};
	bool		found;

	ev_statements_begin();
	ev_add_text(&p, name);
	found = ev_statement_run_latest(&load, &p) == 1;
	if (found)
	{
		source->table_name = ev_result_text(0, 1);
		source->columns = ev_result_texts(0, 2, &source->ncolumns);
		source->column_version = ev_result_int4(0, 3);
		source->consistency = ev_result_text(0, 4);
	}
	ev_statements_end();
	return found;
}

bool
ev_source_column_required(const EvSource *source, const char *column)
{
	static EvStatement look = {
		"SELECT attnotnull FROM pg_catalog.pg_attribute"
		" WHERE attrelid = $1::regclass AND attname = $2"
	};
	EvParameters p = {0};
	bool		required;

	ev_statements_begin();
	ev_add_text(&p, source->table_name);
	ev_add_text(&p, column);
	required = ev_statement_run_latest(&look, &p) == 1 && ev_result_bool(0, 1);
	ev_statements_end();
	return required;
}

/*
 * The transaction's own snapshot may be old: a REPEATABLE READ caller took it
 * with its first statement, before the locks of the request were waited for.
 * Rows that committed since then are part of what the caller asks for, so the
 * contract pins a new snapshot.
 */
void
ev_export_pin_snapshot(EvContract *contract)
{
	contract->system_identifier = psprintf(UINT64_FORMAT,
										   GetSystemIdentifier());
	contract->request_xid = GetTopFullTransactionId();
	contract->snapshot_at = ev_clock_now();
	PushActiveSnapshot(GetLatestSnapshot());
	contract->snapshot = DirectFunctionCall1(pg_current_snapshot, (Datum) 0);
	PopActiveSnapshot();
	contract->snapshot_text =
		DatumGetCString(DirectFunctionCall1(pg_snapshot_out,
											contract->snapshot));
}

bool
ev_export_find_key(const char *requested_by, const char *key, pg_uuid_t *id,
				   char **request_digest)
{
	static EvStatement find = {
		"SELECT id, request_digest FROM evidence.audit_export"
		" WHERE requested_by = $1 AND idempotency_key = $2"
	};
	EvParameters p = {0};
	bool		found;

	ev_statements_begin();
	ev_add_text(&p, requested_by);
	ev_add_text(&p, key);
	found = ev_statement_run_latest(&find, &p) == 1;
	if (found)
	{
		(void) ev_result_uuid(0, 1, id);
		*request_digest = ev_result_text(0, 2);
	}
	ev_statements_end();
	return found;
}

int64
ev_export_count_active(const char *requested_by)
{
	static EvStatement active = {
		"SELECT count(*) FROM evidence.audit_export"
		" WHERE requested_by = $1"
		"   AND state IN ('QUEUED', 'PROCESSING', 'STAGED')"
	};
	EvParameters p = {0};
	int64		count;

	ev_statements_begin();
	ev_add_text(&p, requested_by);
	(void) ev_statement_run_latest(&active, &p);
	count = ev_result_int8(0, 1);
	ev_statements_end();
	return count;
}

void
ev_export_insert(EvContract *contract, const char *key,
				 const EvOrigin *origin)
{
	static EvStatement insert = {
		"WITH export AS ("
		"  INSERT INTO evidence.audit_export (id, state, source, start_at,"
		"         end_at, filters, columns, column_version, purpose,"
		"         policy_version, redaction, ruleset_version, ruleset_sha256,"
		"         request_digest, idempotency_key, consistency, snapshot_at,"
		"         snapshot, request_xid, system_identifier, incarnation,"
		"         requested_by, session_role, requested_at, recreated_from)"
		"  VALUES (gen_random_uuid(), 'QUEUED', $1, $2, $3, $4, $5, $6, $7, $8,"
		"         $9, $10, $11, $12, $13, $14, $15, $16::pg_snapshot, $17,"
		"         $18, $19, $20, $21, $22, $23)"
		"  RETURNING id, state, version"
		"), job AS ("
		"  INSERT INTO evidence.background_job (export_id, state,"
		"         next_attempt_at, created_at)"
		"  SELECT id, 'QUEUED', $24, $24 FROM export"
		"  RETURNING id, export_id, state"
		"), event AS ("
		"  INSERT INTO evidence.outbox_event (kind, export_id, job_id,"
		"         generation, state, next_attempt_at, created_at)"
		"  SELECT 'audit_export.generate', export_id, id, 1, 'PENDING', $24, $24"
		"    FROM job"
		"  RETURNING state"
		"), history AS ("
		"  INSERT INTO evidence.export_event (at, export_id, event, to_state,"
		"         version, actor, session_role, reason, detail)"
		"  SELECT $24, export.id,"
		"         CASE WHEN $23 IS NULL THEN 'requested' ELSE 'recreated' END,"
		"         'QUEUED', export.version, $25, $26, $27,"
		"         jsonb_strip_nulls(jsonb_build_object('job', job.id,"
		"           'digest', $12::text, 'from', $23))"
		"    FROM export JOIN job ON export.id = job.export_id"
		"  UNION ALL"
		/* The earlier export's own history leads on to this one. */
		"  SELECT $24, e.id, 'recreated', NULL, e.version, $25, $26, $27,"
		"         jsonb_build_object('to', export.id)"
		"    FROM export CROSS JOIN evidence.audit_export AS e"
		"   WHERE e.id = $23"
		")"
		"SELECT export.id, export.state, job.state, event.state"
		"  FROM export, job, event"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_text(&p, contract->source);
	ev_add_time(&p, contract->start_at);
	ev_add_time(&p, contract->end_at);
	ev_add_jsonb(&p, contract->filters);
	ev_add_texts(&p, (const char *const *) contract->columns,
				 contract->ncolumns);
	ev_add_int4(&p, contract->column_version);
	ev_add_text(&p, contract->purpose);
	ev_add_int4(&p, contract->policy_version);
	ev_add_bool(&p, contract->redaction);
	ev_add_int4(&p, contract->ruleset_version);
	ev_add_text(&p, contract->ruleset_sha256);
	ev_add_text(&p, contract->request_digest);
	ev_add_text(&p, key);
	ev_add_text(&p, contract->consistency);
	ev_add_time(&p, contract->snapshot_at);
	ev_add_text(&p, contract->snapshot_text);
	ev_add_xid8(&p, contract->request_xid);
	ev_add_text(&p, contract->system_identifier);
	ev_add_uuid(&p, &contract->incarnation);
	ev_add_text(&p, contract->requested_by);
	ev_add_text(&p, contract->session_role);
	ev_add_time(&p, contract->requested_at);
	ev_add_uuid(&p, origin ? &origin->from : NULL);
	ev_add_time(&p, origin ? ev_clock_now() : contract->requested_at);
	ev_add_text(&p, origin ? origin->actor : contract->requested_by);
	ev_add_text(&p, origin ? origin->session_role : contract->session_role);
	ev_add_text(&p, origin ? origin->reason : NULL);
	/* An earlier export may be younger than the transaction's snapshot. */
	if (origin)
		(void) ev_statement_run_latest(&insert, &p);
	else
		(void) ev_statement_run(&insert, &p);
	(void) ev_result_uuid(0, 1, &contract->export_id);
	require_legal(&contract->export_id, ev_result_text(0, 2),
				  ev_result_text(0, 3), ev_result_text(0, 4));
	ev_statements_end();
}

bool
ev_export_find_recreation(const pg_uuid_t *id, pg_uuid_t *recreation,
						  char **state)
{
	static EvStatement find = {
		"SELECT id, state FROM evidence.audit_export"
		" WHERE recreated_from = $1"
		"   AND (state IN ('QUEUED', 'PROCESSING', 'STAGED')"
		"        OR (state = 'READY' AND expires_at > $2))"
		" LIMIT 1"
	};
	EvParameters p = {0};
	bool		found;

	ev_statements_begin();
	ev_add_uuid(&p, id);
	ev_add_time(&p, ev_clock_now());
	found = ev_statement_run_latest(&find, &p) == 1;
	if (found)
	{
		(void) ev_result_uuid(0, 1, recreation);
		*state = ev_result_text(0, 2);
	}
	ev_statements_end();
	return found;
}

bool
ev_export_load_contract(const pg_uuid_t *id, EvContract *contract)
{
	static EvStatement load = {
		"SELECT e.id, e.source, s.table_name, e.start_at, e.end_at, e.filters,"
		"       e.columns, e.column_version, e.purpose, e.policy_version,"
		"       e.redaction, e.ruleset_version, e.ruleset_sha256,"
		"       e.request_digest, e.consistency, e.snapshot_at, e.snapshot,"
		"       e.snapshot::text, e.request_xid, e.system_identifier,"
		"       e.incarnation, e.requested_by, e.session_role, e.requested_at"
		"  FROM evidence.audit_export AS e"
		"  JOIN evidence.audit_source AS s ON s.name = e.source"
		" WHERE e.id = $1"
	};
	EvParameters p = {0};
	bool		found;

	ev_statements_begin();
	ev_add_uuid(&p, id);
	found = ev_statement_run_latest(&load, &p) == 1;
	if (found)
		read_contract(contract);
	ev_statements_end();
	return found;
}

static void
read_contract(EvContract *contract)
{
	bool		isnull;

	(void) ev_result_uuid(0, 1, &contract->export_id);
	contract->source = ev_result_text(0, 2);
	contract->table_name = ev_result_text(0, 3);
	contract->start_at = ev_result_time(0, 4);
	contract->end_at = ev_result_time(0, 5);
	contract->filters = DatumGetJsonbP(ev_result_datum(0, 6, &isnull));
	contract->columns = ev_result_texts(0, 7, &contract->ncolumns);
	contract->column_version = ev_result_int4(0, 8);
	contract->purpose = ev_result_text(0, 9);
	contract->policy_version = ev_result_int4(0, 10);
	contract->redaction = ev_result_bool(0, 11);
	contract->ruleset_version = ev_result_int4(0, 12);
	contract->ruleset_sha256 = ev_result_text(0, 13);
	contract->request_digest = ev_result_text(0, 14);
	contract->consistency = ev_result_text(0, 15);
	contract->snapshot_at = ev_result_time(0, 16);
	contract->snapshot = ev_result_datum(0, 17, &isnull);
	contract->snapshot_text = ev_result_text(0, 18);
	contract->request_xid =
		FullTransactionIdFromU64((uint64) ev_result_int8(0, 19));
	contract->system_identifier = ev_result_text(0, 20);
	(void) ev_result_uuid(0, 21, &contract->incarnation);
	contract->requested_by = ev_result_text(0, 22);
	contract->session_role = ev_result_text(0, 23);
	contract->requested_at = ev_result_time(0, 24);
}

/*
 * With a lock the row is read again after the wait, in a statement of its
 * own, because the state that counts is the one that the lock protects.
 */
bool
ev_export_load_status(const pg_uuid_t *id, bool lock, EvExportStatus *status)
{
	static EvStatement lock_row = {
		"SELECT 1 FROM evidence.audit_export WHERE id = $1 FOR NO KEY UPDATE"
	};
	static EvStatement load = {
		"SELECT state, version, generation, requested_by, record_count,"
		"       archive_token, archive_bytes, archive_chunks, archive_sha256,"
		"       chunks_sha256, records_bytes, records_sha256, expires_at,"
		"       object_bucket, object_key, object_version"
		"  FROM evidence.audit_export"
		" WHERE id = $1"
	};
	EvParameters p = {0};
	bool		found;

	ev_statements_begin();
	ev_add_uuid(&p, id);
	if (lock)
		(void) ev_statement_run(&lock_row, &p);
	found = ev_statement_run_latest(&load, &p) == 1;
	if (found)
	{
		status->state = ev_result_text(0, 1);
		status->version = ev_result_int8(0, 2);
		status->generation = ev_result_int4(0, 3);
		status->requested_by = ev_result_text(0, 4);
		status->record_count = ev_result_int8(0, 5);
		if (!ev_result_uuid(0, 6, &status->archive_token))
			memset(&status->archive_token, 0, sizeof(pg_uuid_t));
		status->archive_bytes = ev_result_int8(0, 7);
		status->archive_chunks = ev_result_int4(0, 8);
		status->archive_sha256 = ev_result_text(0, 9);
		status->chunks_sha256 = ev_result_text(0, 10);
		status->records_bytes = ev_result_int8(0, 11);
		status->records_sha256 = ev_result_text(0, 12);
		status->expires_at = ev_result_time(0, 13);
		status->object_bucket = ev_result_text(0, 14);
		status->object_key = ev_result_text(0, 15);
		status->object_version = ev_result_text(0, 16);
	}
	ev_statements_end();
	return found;
}

/*
 * The promise is kept or closed: an event that is still PENDING is CLOSED,
 * one that was delivered stays so.  The attempt row of a running worker is
 * left alone; its next statement finds the export gone and stops.
 */
bool
ev_export_cancel(const pg_uuid_t *id, const EvExportStatus *status,
				 const char *actor, const char *session_role,
				 const char *reason)
{
	static EvStatement cancel = {
		"WITH export AS ("
		"  UPDATE evidence.audit_export"
		"     SET state = 'CANCELLED', version = version + 1,"
		"         attempt_token = NULL, cancelled_at = $4,"
		"         stopped_at = CASE WHEN state <> 'PROCESSING' THEN $4 END,"
		EV_NO_ARCHIVE_SQL
		"   WHERE id = $1 AND state = $2 AND version = $3"
		"  RETURNING id, version"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = 'CANCELLED', version = j.version + 1,"
		"         attempt_token = NULL, finished_at = $4"
		"    FROM export"
		"   WHERE j.export_id = export.id"
		"     AND (j.state IN ('QUEUED', 'RUNNING')"
		"          OR (j.state = 'SUCCEEDED' AND $2 = 'STAGED'))"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'CLOSED', version = o.version + 1,"
		"         settled_at = $4, reason = 'the export was cancelled'"
		"    FROM export"
		"   WHERE o.export_id = export.id AND o.kind <> 'object.delete'"
		"     AND o.state IN ('PENDING', 'DEAD')"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, reason)"
		"SELECT $4, id, 'cancelled', $2, 'CANCELLED', version, $5, $6, $7"
		"  FROM export"
	};
	EvParameters p = {0};
	bool		done;

	ev_statements_begin();
	ev_add_uuid(&p, id);
	ev_add_text(&p, status->state);
	ev_add_int8(&p, status->version);
	ev_add_time(&p, ev_clock_now());
	ev_add_text(&p, actor);
	ev_add_text(&p, session_role);
	ev_add_text(&p, reason);
	done = ev_statement_run(&cancel, &p) == 1;
	ev_statements_end();
	if (done)
		after_end(id, status);
	return done;
}

bool
ev_export_revoke(const pg_uuid_t *id, const EvExportStatus *status,
				 const char *actor, const char *session_role,
				 const char *reason)
{
	static EvStatement revoke = {
		"WITH export AS ("
		"  UPDATE evidence.audit_export"
		"     SET state = 'REVOKED', version = version + 1"
		"   WHERE id = $1 AND state = 'READY' AND version = $2"
		"  RETURNING id, version"
		"), grants AS ("
		"  UPDATE evidence.download_grant AS g SET revoked_at = $3"
		"    FROM export"
		"   WHERE g.export_id = export.id AND g.revoked_at IS NULL"
		"  RETURNING g.id"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, reason, detail)"
		"SELECT $3, id, 'revoked', 'READY', 'REVOKED', version, $4, $5, $6,"
		"       jsonb_build_object('grants', (SELECT count(*) FROM grants))"
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
	done = ev_statement_run(&revoke, &p) == 1;
	ev_statements_end();
	if (done)
		after_end(id, status);
	return done;
}

/* Whoever had selected an archive has one no more. */
static void
after_end(const pg_uuid_t *id, const EvExportStatus *status)
{
	if (status->archive_sha256 != NULL)
		ev_expiry_remove(id, status->generation, &status->archive_token);
	ev_export_check_combination(id);
}

void
ev_export_check_combination(const pg_uuid_t *id)
{
	static EvStatement load = {
		"SELECT e.state, j.state, o.state, u.state"
		"  FROM evidence.audit_export AS e"
		"  LEFT JOIN evidence.background_job AS j ON j.export_id = e.id"
		"  LEFT JOIN evidence.outbox_event AS o ON o.job_id = j.id"
		"   AND o.kind = 'audit_export.generate'"
		"   AND o.generation = e.generation"
		"  LEFT JOIN evidence.outbox_event AS u ON u.export_id = e.id"
		"   AND u.kind = 'archive.upload' AND u.generation = e.generation"
		" WHERE e.id = $1"
	};
	EvParameters p = {0};
	char	   *export;
	char	   *job;
	char	   *event;
	char	   *upload;

	ev_statements_begin();
	ev_add_uuid(&p, id);
	if (ev_statement_run(&load, &p) != 1)
		elog(ERROR, "export without exactly one job and event");
	export = ev_result_text(0, 1);
	job = ev_result_text(0, 2);
	event = ev_result_text(0, 3);
	upload = ev_result_text(0, 4);
	ev_statements_end();
	require_legal(id, export, job, event);
	if (!ev_upload_combination_legal(export, upload))
		ereport(ERROR,
				(errcode(EV_ERRCODE_MISMATCH),
				 errmsg("illegal combination of export %s and upload event %s",
						export, upload ? upload : "none"),
				 errdetail("Export \"%s\".", ev_export_id_text(id)),
				 errhint("Nothing was changed. Look at the export's rows in evidence.outbox_event and evidence.export_event.")));
}

static void
require_legal(const pg_uuid_t *id, const char *export, const char *job,
			  const char *event)
{
	if (job == NULL || event == NULL ||
		!ev_combination_legal(export, job, event))
		ereport(ERROR,
				(errcode(EV_ERRCODE_MISMATCH),
				 errmsg("illegal combination of export %s, job %s and event %s",
						export, job ? job : "none", event ? event : "none"),
				 errdetail("Export \"%s\".",
						   ev_export_id_text(id)),
				 errhint("Nothing was changed. Compare the rows of the export, its job and its event with view evidence.state_combination.")));
}
