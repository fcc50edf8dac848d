/*-------------------------------------------------------------------------
 *
 * reconcile.c
 *	  What the ledger knows of an object store, and where the two differ.
 *
 * The program lists the store first and asks the ledger afterwards.  A key is
 * written down here before anything is sent to it, so an object that was
 * listed and is not known here belongs to no export of this ledger
 * (requirements S3.92, S3.93).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/reconcile.h"
#include "ledger/statement.h"

/*
 * One row per key: what its newest attempt says, and how its export stands.
 * Until a planned removal is confirmed the object is somebody's work.
 */
void
ev_reconcile_known(const char *bucket, Tuplestorestate *store)
{
	static EvStatement known = {
		"WITH uploads AS ("
		"  SELECT DISTINCT ON (u.object_key) u.*"
		"    FROM evidence.upload_attempt AS u"
		"    JOIN evidence.outbox_event AS o ON o.id = u.event_id"
		"   WHERE u.bucket = $1 AND o.kind = 'archive.upload'"
		"   ORDER BY u.object_key, u.number DESC"
		"), keys AS ("
		"  SELECT object_key FROM uploads"
		"  UNION"
		"  SELECT object_key FROM evidence.audit_export"
		"   WHERE object_bucket = $1"
		")"
		"SELECT k.object_key, coalesce(e.object_version, u.object_version),"
		"       e.id,"
		"       CASE WHEN u.outcome = 'quarantined' THEN 'QUARANTINED'"
		"            ELSE e.state END,"
		"       e.state = 'READY' AND e.object_key = k.object_key,"
		"       e.state = 'STAGED' OR EXISTS ("
		"         SELECT FROM evidence.outbox_event AS o"
		"          WHERE o.export_id = e.id AND o.kind = 'object.delete'"
		"            AND o.generation = coalesce(u.generation, e.generation)"
		"            AND o.state = 'PENDING'),"
		"       e.archive_bytes, e.archive_sha256, u.multipart_id"
		"  FROM keys AS k"
		"  LEFT JOIN uploads AS u ON u.object_key = k.object_key"
		"  JOIN evidence.audit_export AS e"
		"    ON e.id = u.export_id"
		"    OR (u.export_id IS NULL AND e.object_key = k.object_key"
		"        AND e.object_bucket = $1)"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_text(&p, bucket);
	(void) ev_statement_run_latest(&known, &p);
	ev_result_store(store);
	ev_statements_end();
}

int64
ev_reconcile_record(const char *bucket, const char *prefix, const char *actor,
					TimestampTz started_at, int64 objects, Jsonb *findings)
{
	/* What was found and put right in one pass was a finding all the same. */
	static EvStatement write = {
		"INSERT INTO evidence.finding (rule, scope, subject, export_id,"
		"       severity, action, detail, found_at, seen_at)"
		"SELECT DISTINCT ON (f.rule, f.key) f.rule, $1, f.key, f.export_id,"
		"       CASE WHEN f.rule IN ('object_missing', 'object_differs')"
		"            THEN 'high' ELSE 'low' END,"
		"       f.action, coalesce(f.detail, '{}'), $3, $3"
		"  FROM jsonb_to_recordset($2) AS f (rule text, key text,"
		"       export_id uuid, action text, fixed boolean, detail jsonb)"
		" ON CONFLICT (scope, rule, subject) WHERE closed_at IS NULL"
		" DO UPDATE SET seen_at = $3, action = excluded.action,"
		"       detail = excluded.detail"
	};
	static EvStatement close = {
		"UPDATE evidence.finding AS f"
		"   SET closed_at = $4, closed_by = $5"
		" WHERE f.scope = $1 AND f.closed_at IS NULL"
		"   AND starts_with(f.subject, $2)"
		"   AND NOT EXISTS ("
		"       SELECT FROM jsonb_to_recordset($3) AS s (rule text, key text,"
		"              fixed boolean)"
		"        WHERE s.rule = f.rule AND s.key = f.subject"
		"          AND s.fixed IS NOT TRUE)"
	};
	static EvStatement pass = {
		"WITH open AS ("
		"  SELECT count(*) AS number FROM evidence.finding"
		"   WHERE scope = $1 AND closed_at IS NULL"
		"     AND starts_with(subject, $2)"
		")"
		"INSERT INTO evidence.pass_log (kind, scope, actor, started_at,"
		"       finished_at, counts)"
		"SELECT 'reconcile', concat_ws('/', $1, nullif($2, '')), $3, $4, $5,"
		"       jsonb_build_object('objects', $6::bigint, 'open', open.number,"
		"         'found', jsonb_array_length($7), 'fixed', ("
		"           SELECT count(*) FROM jsonb_to_recordset($7)"
		"                  AS s (fixed boolean) WHERE s.fixed))"
		"  FROM open"
		" RETURNING (counts ->> 'open')::bigint"
	};
	EvParameters written = {0};
	EvParameters closed = {0};
	EvParameters p = {0};
	TimestampTz now = ev_clock_now();
	int64		open;

	ev_statements_begin();
	ev_add_text(&written, bucket);
	ev_add_jsonb(&written, findings);
	ev_add_time(&written, now);
	(void) ev_statement_run(&write, &written);

	ev_add_text(&closed, bucket);
	ev_add_text(&closed, prefix);
	ev_add_jsonb(&closed, findings);
	ev_add_time(&closed, now);
	ev_add_text(&closed, actor);
	(void) ev_statement_run(&close, &closed);

	ev_add_text(&p, bucket);
	ev_add_text(&p, prefix);
	ev_add_text(&p, actor);
	ev_add_time(&p, started_at);
	ev_add_time(&p, now);
	ev_add_int8(&p, objects);
	ev_add_jsonb(&p, findings);
	(void) ev_statement_run(&pass, &p);
	open = ev_result_int8(0, 1);
	ev_statements_end();
	return open;
}

bool
ev_reconcile_freezes(const pg_uuid_t *export_id)
{
	static EvStatement find = {
		"SELECT 1 FROM evidence.finding"
		" WHERE export_id = $1 AND closed_at IS NULL AND severity = 'high'"
		" LIMIT 1"
	};
	EvParameters p = {0};
	bool		found;

	ev_statements_begin();
	ev_add_uuid(&p, export_id);
	found = ev_statement_run_latest(&find, &p) == 1;
	ev_statements_end();
	return found;
}
