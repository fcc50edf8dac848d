/*-------------------------------------------------------------------------
 *
 * acceptance.c
 *	  Has the ledger recovered?
 *
 * Four gates are looked at in full, over every export and every stored byte;
 * one that is shut fails the whole, whatever the score (requirements S3.107
 * to S3.109).  The score weighs six parts.  What nobody can know from here,
 * such as an object that no comparison has looked at since, is an unknown:
 * with one, the best answer is "partial" (S3.110).
 *
 * An empty queue alone is no recovery: a watch window in which nothing was
 * made shows nothing, and is an unknown as well.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/acceptance.h"
#include "ledger/statement.h"

/* Work that has been due for so long does not converge. */
#define LATE_SQL "interval '15 minutes'"

/* $1 begin of the watch window, $2 now; each row: good ones of all. */
#define MEASURES_SQL \
	"stand AS MATERIALIZED (" \
	"  SELECT e.id, e.state, e.requested_by, e.archive_token," \
	"         e.archive_chunks, e.archive_bytes, e.chunks_sha256," \
	"         e.object_bucket, EXISTS (" \
	"         SELECT FROM evidence._state_combinations() AS c" \
	"          WHERE c.export = e.state AND c.job = j.state" \
	"            AND c.event = o.state) AS legal" \
	"    FROM evidence.audit_export AS e" \
	"    LEFT JOIN evidence.background_job AS j ON j.export_id = e.id" \
	"    LEFT JOIN evidence.outbox_event AS o ON o.job_id = j.id" \
	"     AND o.kind = 'audit_export.generate'" \
	"     AND o.generation = e.generation" \
	"), stored AS MATERIALIZED (" \
	/* All bytes are read, chunk by chunk, and none is sampled. */ \
	"  SELECT s.id, s.archive_chunks = count(c.seq)" \
	"           AND s.archive_bytes = coalesce(sum(length(c.data)), 0)" \
	"           AS whole," \
	"         s.chunks_sha256 = encode(sha256(coalesce(" \
	"           string_agg(sha256(c.data), ''::bytea ORDER BY c.seq)," \
	"           ''::bytea)), 'hex') AS same" \
	"    FROM stand AS s" \
	"    LEFT JOIN evidence.archive_chunk AS c" \
	"      ON c.attempt_token = s.archive_token" \
	"   WHERE s.object_bucket IS NULL" \
	"     AND (s.state = 'STAGED' OR (s.state = 'READY' AND EXISTS (" \
	"          SELECT FROM evidence.audit_export AS e" \
	"           WHERE e.id = s.id AND e.expires_at > $2)))" \
	"   GROUP BY s.id, s.archive_chunks, s.archive_bytes, s.chunks_sha256" \
	"), granted AS MATERIALIZED (" \
	"  SELECT g.id, r.oid IS NULL AS unknown, r.rolsuper" \
	"         OR g.subject = s.requested_by" \
	"         OR (q.oid IS NOT NULL" \
	"             AND pg_catalog.pg_has_role(r.oid, q.oid, 'USAGE'))" \
	"         OR EXISTS (" \
	"            SELECT FROM evidence.capability AS c" \
	"              JOIN pg_catalog.pg_roles AS h ON h.rolname = c.role_name" \
	"             WHERE c.capability = 'operator'" \
	"               AND pg_catalog.pg_has_role(r.oid, h.oid, 'USAGE'))" \
	"         AS allowed" \
	"    FROM evidence.download_grant AS g" \
	"    JOIN stand AS s ON s.id = g.export_id" \
	"    LEFT JOIN pg_catalog.pg_roles AS r ON r.rolname = g.subject" \
	"    LEFT JOIN pg_catalog.pg_roles AS q ON q.rolname = s.requested_by" \
	"   WHERE g.granted_at >= $1" \
	"), due AS MATERIALIZED (" \
	"  SELECT next_attempt_at FROM evidence.background_job" \
	"   WHERE state = 'QUEUED'" \
	"  UNION ALL" \
	"  SELECT next_attempt_at FROM evidence.outbox_event" \
	"   WHERE state = 'PENDING'" \
	"), act AS MATERIALIZED (" \
	"  SELECT EXISTS (" \
	"         SELECT FROM evidence.audit_log AS l" \
	"          WHERE l.created_at >= v.at" \
	"            AND l.created_at < v.at + interval '1 minute'" \
	"            AND l.target_id = v.export_id::text) AS audited" \
	"    FROM evidence.export_event AS v" \
	"   WHERE v.at >= $1 AND v.event IN ('requested', 'reopened'," \
	"         'cancelled', 'revoked', 'download_granted'," \
	"         'download_opened')" \
	"), measure (kind, place, name, weight, good, total, unknown) AS (" \
	"  SELECT 'gate', 1, 'authorisation', NULL::int," \
	"         count(*) FILTER (WHERE allowed OR unknown), count(*)," \
	"         count(*) FILTER (WHERE unknown) FROM granted" \
	"  UNION ALL" \
	"  SELECT 'gate', 2, 'legal state', NULL, count(*) FILTER (WHERE legal)," \
	"         count(*), 0 FROM stand" \
	"  UNION ALL" \
	"  SELECT 'gate', 3, 'completeness', NULL," \
	"         count(*) FILTER (WHERE whole), count(*), 0 FROM stored" \
	"  UNION ALL" \
	"  SELECT 'gate', 4, 'digests', NULL, count(*) FILTER (WHERE same)," \
	"         count(*), 0 FROM stored" \
	"  UNION ALL" \
	"  SELECT 'score', 5, 'states', 20, count(*) FILTER (WHERE legal)," \
	"         count(*), 0 FROM stand" \
	"  UNION ALL" \
	"  SELECT 'score', 6, 'archives', 25," \
	"         count(*) FILTER (WHERE whole AND same), count(*), 0" \
	"    FROM stored" \
	"  UNION ALL" \
	"  SELECT 'score', 7, 'objects and grants', 20," \
	"         count(*) FILTER (WHERE NOT EXISTS (" \
	"           SELECT FROM evidence.finding AS f" \
	"            WHERE f.export_id = s.id AND f.closed_at IS NULL" \
	"              AND f.severity = 'high'))," \
	/* A comparison since the window began has looked at the object. */ \
	"         count(*), count(*) FILTER (WHERE s.object_bucket IS NOT NULL" \
	"           AND NOT EXISTS (" \
	"             SELECT FROM evidence.pass_log AS p" \
	"              WHERE p.kind = 'reconcile' AND p.started_at >= $1" \
	"                AND split_part(p.scope, '/', 1) = s.object_bucket))" \
	"    FROM stand AS s WHERE s.state = 'READY'" \
	"  UNION ALL" \
	"  SELECT 'score', 8, 'backlog', 15, count(*) FILTER (" \
	"         WHERE next_attempt_at > $2 - " LATE_SQL "), count(*), 0" \
	"    FROM due" \
	"  UNION ALL" \
	"  SELECT 'score', 9, 'stability', 15," \
	"         count(*) FILTER (WHERE outcome = 'succeeded'), count(*)," \
	"         (count(*) = 0)::int" \
	"    FROM evidence.attempt" \
	"   WHERE ended_at >= $1 AND outcome IN ('succeeded', 'failed', 'lost')" \
	"  UNION ALL" \
	"  SELECT 'score', 10, 'audit', 5, count(*) FILTER (WHERE audited)," \
	"         count(*), 0 FROM act" \
	"  UNION ALL" \
	"  SELECT 'open', 11, 'work given up', NULL, 0, count(*), count(*)" \
	"    FROM evidence.outbox_event WHERE state = 'DEAD'" \
	"  UNION ALL" \
	"  SELECT 'open', 12, 'sent, receipt unknown', NULL, 0, count(*)," \
	"         count(*)" \
	"    FROM stand AS s WHERE s.state = 'STAGED' AND EXISTS (" \
	"         SELECT FROM evidence.upload_attempt AS u" \
	"          WHERE u.export_id = s.id AND u.sent_at IS NOT NULL" \
	"            AND u.archive_token = s.archive_token)" \
	"  UNION ALL" \
	"  SELECT 'open', 13, 'findings', NULL, 0, count(*), count(*)" \
	"    FROM evidence.finding" \
	"   WHERE closed_at IS NULL AND severity = 'high'" \
	"  UNION ALL" \
	"  SELECT 'open', 14, 'human cases', NULL, 0, count(*), count(*)" \
	"    FROM evidence.human_case WHERE closed_at IS NULL" \
	")"

void
ev_acceptance_report(TimestampTz since, Tuplestorestate *store)
{
	static EvStatement report = {
		"WITH " MEASURES_SQL ", judged AS MATERIALIZED ("
		"  SELECT kind, place, name, weight,"
		"         CASE WHEN weight IS NOT NULL THEN round(weight"
		"           * CASE WHEN total = 0 THEN (unknown = 0)::int"
		"                  ELSE good::numeric / total END, 2) END AS score,"
		"         good = total OR kind = 'score' AS passed, good, total,"
		"         unknown"
		"    FROM measure"
		"), result AS ("
		"  SELECT sum(score) AS score,"
		"         bool_and(passed) FILTER (WHERE kind = 'gate') AS gates,"
		"         sum(unknown) AS unknown"
		"    FROM judged"
		")"
		"SELECT kind, name, weight, score,"
		"       CASE kind WHEN 'score' THEN good = total AND unknown = 0"
		"                 WHEN 'open' THEN total = 0 ELSE passed END,"
		"       CASE kind WHEN 'open' THEN format('%s open', total)"
		"         ELSE format('%s of %s good', good, total)"
		"           || CASE WHEN unknown > 0"
		"                THEN format(', %s unknown', unknown) ELSE '' END END"
		"  FROM (SELECT kind, place, name, weight, score, passed, good, total,"
		"               unknown FROM judged ORDER BY place) AS ordered"
		" UNION ALL "
		"SELECT 'result',"
		"       CASE WHEN NOT gates THEN 'failed'"
		"            WHEN unknown > 0 THEN 'partial'"
		"            WHEN score < 100 THEN 'partial' ELSE 'recovered' END,"
		"       100, score, gates AND unknown = 0 AND score = 100,"
		"       CASE WHEN NOT gates"
		"            THEN 'a hard gate is shut; the score does not count'"
		"            WHEN unknown > 0 OR score < 100"
		"            THEN format('partial: %s unknown, watched since %s',"
		"                        unknown, $1)"
		"            ELSE format('watched since %s', $1) END"
		"  FROM result"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_time(&p, since);
	ev_add_time(&p, ev_clock_now());
	(void) ev_statement_run_latest(&report, &p);
	ev_result_store(store);
	ev_statements_end();
}

/*
 * An archive that nobody has taken can be withdrawn; one that was taken is
 * kept, and who took it must be told.  The oldest one that can still be used
 * is the current one.
 */
void
ev_acceptance_duplicates(Tuplestorestate *store)
{
	static EvStatement list = {
		"WITH same AS ("
		"  SELECT e.*, count(*) OVER w AS number,"
		"         first_value(e.id) OVER ("
		"           PARTITION BY e.requested_by, e.request_digest"
		"           ORDER BY e.state <> 'READY', e.requested_at, e.id)"
		"           AS current_id,"
		"         (SELECT count(*) FROM evidence.export_event AS v"
		"           WHERE v.export_id = e.id"
		"             AND v.event = 'download_granted') AS downloads"
		"    FROM evidence.audit_export AS e"
		"   WHERE e.state IN ('QUEUED', 'PROCESSING', 'STAGED', 'READY')"
		"  WINDOW w AS (PARTITION BY e.requested_by, e.request_digest)"
		")"
		"SELECT requested_by, request_digest, id, state, requested_at,"
		"       records_sha256, downloads,"
		"       CASE WHEN id = current_id THEN 'keep'"
		"            WHEN state <> 'READY' THEN 'cancel'"
		"            WHEN downloads = 0 THEN 'revoke'"
		"            ELSE 'keep and notify' END"
		"  FROM same WHERE number > 1"
		" ORDER BY requested_by, request_digest, requested_at, id"
	};

	ev_statements_begin();
	(void) ev_statement_run_latest(&list, NULL);
	ev_result_store(store);
	ev_statements_end();
}
