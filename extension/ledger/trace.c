/*-------------------------------------------------------------------------
 *
 * trace.c
 *	  How an export came to stand where it stands, from everything on record.
 *
 * The tables name each other by the export's id, the generation, the token of
 * the attempt and the number of the grant.  A trace puts all of them in the
 * order of time, and says where one that must be there is not: an act without
 * its audit row, an archive without the attempt that made it or without
 * bytes, a grant that is on record and gone (requirement S3.106).
 *
 * What has been retired from the log, and what a dump leaves behind, is not
 * missed.  An audit row is written in the transaction of its act, right after
 * it, so it is looked for in the minute that follows: the log has no index but
 * that of its time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/statement.h"
#include "ledger/trace.h"

/* Which audit row each act of a person has. */
#define ACTS_SQL \
	"(VALUES ('requested', 'audit_export.request')," \
	"        ('recreated', 'audit_export.recreate')," \
	"        ('reopened', 'audit_export.retry')," \
	"        ('cancelled', 'audit_export.cancel')," \
	"        ('revoked', 'audit_export.revoke')," \
	"        ('frozen', 'audit_export.freeze')," \
	"        ('unfrozen', 'audit_export.unfreeze')," \
	"        ('filled_in', 'audit_export.fill_in')," \
	"        ('given_up', 'audit_export.fail')," \
	"        ('download_granted', 'audit_export.download')," \
	"        ('download_opened', 'audit_export.open')) AS a (event, action)"

/* $1 the export, $2 whether to show the whole. */
#define TRACE_SQL \
	"WITH export AS MATERIALIZED (" \
	"  SELECT e.*, EXISTS (" \
	"         SELECT FROM evidence.instance AS i" \
	"          WHERE i.incarnation = e.incarnation" \
	"            AND i.retired_at IS NULL) AS at_home" \
	"    FROM evidence.audit_export AS e WHERE e.id = $1" \
	"), history AS MATERIALIZED (" \
	"  SELECT v.* FROM evidence.export_event AS v WHERE v.export_id = $1" \
	"), act AS (" \
	"  SELECT v.id, v.at, v.actor, v.detail -> 'grant' AS opened," \
	"         a.action, l.id AS audit_id," \
	"         l.created_at AS audit_at, l.actor_id," \
	"         v.at < coalesce((SELECT g.watermark FROM evidence.guard AS g" \
	"                           WHERE g.kind = 'source'" \
	"                             AND g.name = 'audit_log')," \
	"                         '-infinity') AS retired" \
	"    FROM history AS v JOIN " ACTS_SQL " ON a.event = v.event" \
	"    LEFT JOIN LATERAL (" \
	"         SELECT * FROM evidence.audit_log AS l" \
	"          WHERE l.created_at >= v.at" \
	"            AND l.created_at < v.at + interval '1 minute'" \
	"            AND l.action = a.action" \
	"            AND l.target_id = coalesce(v.detail ->> 'to', $1::text)" \
	"          ORDER BY l.created_at, l.id LIMIT 1) AS l ON true" \
	"   WHERE $2" \
	"), trace (at, place, actor, event, detail) AS (" \
	"  SELECT requested_at, 1, requested_by, 'contract', jsonb_build_object(" \
	"         'source', source, 'start_at', start_at, 'end_at', end_at," \
	"         'filters', filters, 'columns', columns," \
	"         'digest', request_digest, 'ruleset', ruleset_version," \
	"         'consistency', consistency, 'snapshot_at', snapshot_at," \
	"         'recreated_from', recreated_from)" \
	"    FROM export" \
	"  UNION ALL" \
	"  SELECT at, 2, actor, event, detail || jsonb_build_object(" \
	"         'from', from_state, 'to', to_state, 'version', version," \
	"         'attempt', attempt, 'reason', reason)" \
	"    FROM history" \
	"  UNION ALL" \
	"  SELECT audit_at, 3, actor_id, 'audit_row', jsonb_build_object(" \
	"         'action', action, 'id', audit_id, 'of', id, 'grant', opened)" \
	"    FROM act WHERE audit_id IS NOT NULL" \
	"  UNION ALL" \
	"  SELECT at, 3, actor, 'missing', jsonb_build_object(" \
	"         'expected', 'audit row', 'action', action, 'of', id," \
	"         'grant', opened)" \
	"    FROM act WHERE audit_id IS NULL AND NOT retired" \
	"  UNION ALL" \
	"  SELECT created_at, 4, NULL, 'promised', jsonb_build_object(" \
	"         'event', id, 'kind', kind, 'generation', generation," \
	"         'state', state, 'settled_at', settled_at, 'reason', reason)" \
	"    FROM evidence.outbox_event WHERE export_id = $1" \
	"  UNION ALL" \
	"  SELECT a.started_at, 5, a.kind, 'attempt', jsonb_build_object(" \
	"         'attempt', left(a.token::text, 8)," \
	"         'generation', a.generation, 'ended_at', a.ended_at," \
	"         'outcome', a.outcome, 'error_code', a.error_code)" \
	"    FROM evidence.background_job AS j" \
	"    JOIN evidence.attempt AS a ON a.job_id = j.id" \
	"   WHERE j.export_id = $1" \
	"  UNION ALL" \
	"  SELECT coalesce(staged_at, ready_at), 6, NULL, 'archive'," \
	"         jsonb_build_object('attempt', left(archive_token::text, 8)," \
	"         'bytes', archive_bytes, 'chunks', archive_chunks," \
	"         'sha256', archive_sha256, 'records', record_count," \
	"         'records_sha256', records_sha256," \
	"         'bucket', CASE WHEN $2 THEN object_bucket END," \
	"         'key', CASE WHEN $2 THEN object_key END)" \
	"    FROM export WHERE archive_token IS NOT NULL" \
	"  UNION ALL" \
	"  SELECT coalesce(staged_at, ready_at), 6, NULL, 'missing'," \
	"         jsonb_build_object('expected', 'attempt'," \
	"         'attempt', left(archive_token::text, 8))" \
	"    FROM export" \
	"   WHERE archive_token IS NOT NULL AND at_home AND NOT EXISTS (" \
	"         SELECT FROM evidence.attempt AS a" \
	"          WHERE a.token = export.archive_token)" \
	"  UNION ALL" \
	"  SELECT coalesce(ready_at, staged_at), 6, NULL, 'missing'," \
	"         jsonb_build_object('expected', 'bytes')" \
	"    FROM export" \
	"   WHERE object_key IS NULL AND at_home" \
	"     AND (state = 'STAGED'" \
	"          OR (state = 'READY' AND expires_at > evidence._now()))" \
	"     AND archive_chunks <> (SELECT count(*)" \
	"                              FROM evidence.archive_chunk AS c" \
	"                             WHERE c.attempt_token = archive_token)" \
	"  UNION ALL" \
	"  SELECT u.started_at, 7, u.actor," \
	"         CASE o.kind WHEN 'archive.upload' THEN 'upload'" \
	"              ELSE 'removal' END," \
	"         jsonb_build_object('attempt', left(u.archive_token::text, 8)," \
	"         'number', u.number, 'uploader', u.uploader," \
	"         'bucket', u.bucket, 'key', u.object_key," \
	"         'object_version', u.object_version, 'sent_at', u.sent_at," \
	"         'ended_at', u.ended_at, 'outcome', u.outcome," \
	"         'error_code', u.error_code)" \
	"    FROM evidence.upload_attempt AS u" \
	"    JOIN evidence.outbox_event AS o ON o.id = u.event_id" \
	"   WHERE u.export_id = $1 AND $2" \
	"  UNION ALL" \
	"  SELECT g.granted_at, 8, g.subject, 'grant', jsonb_build_object(" \
	"         'grant', g.id, 'attempt', left(g.archive_token::text, 8)," \
	"         'expires_at', g.expires_at, 'revoked_at', g.revoked_at," \
	"         'capabilities', (SELECT jsonb_object_agg(c.capability," \
	"                                                  c.granted_at)" \
	"                            FROM evidence.capability AS c" \
	"                           WHERE c.role_name = g.subject))" \
	"    FROM evidence.download_grant AS g WHERE g.export_id = $1" \
	"  UNION ALL" \
	"  SELECT v.at, 8, v.actor, 'missing', jsonb_build_object(" \
	"         'expected', 'grant', 'grant', v.detail -> 'grant')" \
	"    FROM history AS v JOIN export ON export.at_home" \
	"   WHERE v.event = 'download_granted' AND NOT EXISTS (" \
	"         SELECT FROM evidence.download_grant AS g" \
	"          WHERE g.id = (v.detail ->> 'grant')::bigint)" \
	"  UNION ALL" \
	"  SELECT f.found_at, 9, NULL, 'finding', jsonb_build_object(" \
	"         'finding', f.id, 'rule', f.rule, 'severity', f.severity," \
	"         'closed_at', f.closed_at, 'closed_by', f.closed_by)" \
	"    FROM evidence.finding AS f WHERE f.export_id = $1" \
	")" \
	"SELECT at, actor, event, jsonb_strip_nulls(detail)" \
	"  FROM trace"

void
ev_trace_export(const pg_uuid_t *id, bool whole, Tuplestorestate *store)
{
	static EvStatement forwards = {
		TRACE_SQL
		" ORDER BY at, place, detail ->> 'version'"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_uuid(&p, id);
	ev_add_bool(&p, whole);
	(void) ev_statement_run_latest(&forwards, &p);
	ev_result_store(store);
	ev_statements_end();
}

/*
 * What came later, or by other grants, is left out; an audit row comes right
 * after the act that it records.
 */
void
ev_trace_download(const pg_uuid_t *id, int64 grant_id,
				  Tuplestorestate *store)
{
	static EvStatement backwards = {
		TRACE_SQL
		" WHERE coalesce((detail ->> 'grant')::bigint, $3) = $3"
		"   AND ((detail ->> 'grant')::bigint = $3"
		"        OR at <= (SELECT max(v.at) FROM history AS v"
		"                   WHERE (v.detail ->> 'grant')::bigint = $3))"
		" ORDER BY at DESC, place DESC"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_uuid(&p, id);
	ev_add_bool(&p, true);
	ev_add_int8(&p, grant_id);
	(void) ev_statement_run_latest(&backwards, &p);
	ev_result_store(store);
	ev_statements_end();
}

bool
ev_trace_find_grant(int64 grant_id, pg_uuid_t *id)
{
	static EvStatement find = {
		"SELECT export_id FROM evidence.download_grant WHERE id = $1"
	};
	EvParameters p = {0};
	bool		found;

	ev_statements_begin();
	ev_add_int8(&p, grant_id);
	found = ev_statement_run_latest(&find, &p) == 1;
	if (found)
		(void) ev_result_uuid(0, 1, id);
	ev_statements_end();
	return found;
}

/*
 * Tokens and digests of grants would let a reader act and are left out; what a
 * requester typed is shown without known shapes of secrets.
 */
Jsonb *
ev_trace_dossier(const pg_uuid_t *id)
{
	static EvStatement gather = {
		"SELECT jsonb_build_object("
		"  'at', $2,"
		"  'export', (to_jsonb(e) - '{attempt_token,purpose}'::text[])"
		"    || jsonb_build_object('purpose', evidence._scrub(e.purpose)),"
		"  'belongs_here', EXISTS ("
		"     SELECT FROM evidence.instance AS i"
		"      WHERE i.incarnation = e.incarnation AND i.retired_at IS NULL),"
		"  'records_retired', e.start_at < ("
		"     SELECT g.watermark FROM evidence.guard AS g"
		"      WHERE g.kind = 'source' AND g.name = e.source),"
		"  'stored', (SELECT jsonb_build_object('chunks', count(*),"
		"       'bytes', coalesce(sum(length(c.data)), 0))"
		"     FROM evidence.archive_chunk AS c"
		"    WHERE c.attempt_token = e.archive_token),"
		"  'job', (SELECT to_jsonb(j) - 'attempt_token'"
		"     FROM evidence.background_job AS j WHERE j.export_id = e.id),"
		"  'events', (SELECT jsonb_agg(to_jsonb(o) ORDER BY o.id)"
		"     FROM evidence.outbox_event AS o WHERE o.export_id = e.id),"
		"  'attempts', (SELECT jsonb_agg(to_jsonb(a)"
		"       || jsonb_build_object('token', left(a.token::text, 8))"
		"       ORDER BY a.started_at)"
		"     FROM evidence.background_job AS j"
		"     JOIN evidence.attempt AS a ON a.job_id = j.id"
		"    WHERE j.export_id = e.id),"
		"  'uploads', (SELECT jsonb_agg(to_jsonb(u) - 'token'"
		"       ORDER BY u.started_at)"
		"     FROM evidence.upload_attempt AS u WHERE u.export_id = e.id),"
		"  'grants', (SELECT jsonb_agg(to_jsonb(g) - 'secret_sha256'"
		"       ORDER BY g.id)"
		"     FROM evidence.download_grant AS g WHERE g.export_id = e.id),"
		"  'findings', (SELECT jsonb_agg(to_jsonb(f) ORDER BY f.id)"
		"     FROM evidence.finding AS f WHERE f.export_id = e.id),"
		"  'recreations', (SELECT jsonb_agg(jsonb_build_object('id', r.id,"
		"       'state', r.state) ORDER BY r.id)"
		"     FROM evidence.audit_export AS r WHERE r.recreated_from = e.id),"
		"  'same_request', (SELECT jsonb_agg(jsonb_build_object('id', s.id,"
		"       'state', s.state, 'requested_at', s.requested_at,"
		"       'archive_sha256', s.archive_sha256) ORDER BY s.requested_at)"
		"     FROM evidence.audit_export AS s"
		"    WHERE s.requested_by = e.requested_by AND s.id <> e.id"
		"      AND s.request_digest = e.request_digest),"
		"  'history', (SELECT jsonb_agg(to_jsonb(v) - 'export_id'"
		"       ORDER BY v.id)"
		"     FROM evidence.export_event AS v WHERE v.export_id = e.id))"
		"  FROM evidence.audit_export AS e WHERE e.id = $1"
	};
	EvParameters p = {0};
	Jsonb	   *dossier = NULL;
	bool		isnull;

	ev_statements_begin();
	ev_add_uuid(&p, id);
	ev_add_time(&p, ev_clock_now());
	if (ev_statement_run_latest(&gather, &p) == 1)
		dossier = DatumGetJsonbP(ev_result_datum(0, 1, &isnull));
	ev_statements_end();
	return dossier;
}
