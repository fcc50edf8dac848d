-- 40_random_calls.sql: whatever legal calls are made in whatever order, with
-- failures in between, the ledger stays true.
--
-- 300 random calls; after each of them every invariant is looked at.  The seed
-- is fixed, so that a failure comes again.
ALTER SYSTEM SET pg_evidence.debug_pause = 'launcher-round';
DO $$ BEGIN PERFORM pg_reload_conf(); END $$;
\c -
SET client_min_messages = error;
SELECT plan(6);

CREATE SCHEMA random_calls;
INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
SELECT timestamptz '2018-01-01 00:00+00' + n * interval '1 h', 'actor-' || n % 5, 'test.random', md5(n::text)
  FROM generate_series(1, 240) AS n;

-- One row per violation.
CREATE VIEW random_calls.violation AS
WITH fact AS (
    SELECT e.*, j.state AS job, j.attempts, j.attempt_token AS job_token, j.id AS job_id, o.state AS event
      FROM evidence.audit_export AS e
      LEFT JOIN evidence.background_job AS j ON j.export_id = e.id
      LEFT JOIN evidence.outbox_event AS o ON o.job_id = j.id
     WHERE e.purpose = 'random'
)
SELECT 'illegal combination' AS rule, id FROM fact AS f
 WHERE NOT EXISTS (SELECT FROM evidence.state_combination AS c WHERE (c.export, c.job, c.event) = (f.state, f.job, f.event))
UNION ALL
SELECT 'READY without exactly its bytes', f.id FROM fact AS f
 WHERE f.state = 'READY' AND (SELECT (count(*), sum(length(c.data)), encode(sha256(string_agg(c.data, ''::bytea ORDER BY c.seq)), 'hex'))
                                FROM evidence.archive_chunk AS c WHERE c.attempt_token = f.archive_token)
                             IS DISTINCT FROM (f.archive_chunks::bigint, f.archive_bytes, f.archive_sha256)
UNION ALL
SELECT 'bytes that nobody selected', f.id FROM fact AS f JOIN evidence.archive_chunk AS c ON c.export_id = f.id
 WHERE c.attempt_token IS DISTINCT FROM f.archive_token
UNION ALL
SELECT 'count other than that of the contract', f.id FROM fact AS f
 WHERE f.state IN ('READY', 'EXPIRED', 'REVOKED') AND f.record_count <> (
       SELECT count(*) FROM evidence.audit_log AS l
        WHERE l.created_at >= f.start_at AND l.created_at < f.end_at AND l.recorded_xid <> f.request_xid
          AND pg_visible_in_snapshot(l.recorded_xid, f.snapshot)
          AND (f.filters = '{}' OR f.filters -> 'actor_id' ? l.actor_id))
UNION ALL
SELECT 'export and job point to different attempts', id FROM fact WHERE attempt_token IS DISTINCT FROM job_token
UNION ALL
SELECT 'an attempt that is open without a running job', f.id FROM fact AS f JOIN evidence.attempt AS a ON a.export_id = f.id
 WHERE a.ended_at IS NULL AND f.attempt_token IS DISTINCT FROM a.token
UNION ALL
SELECT 'attempts counted wrongly', f.id FROM fact AS f
 WHERE f.attempts <> (SELECT count(*) FROM evidence.attempt AS a WHERE a.export_id = f.id AND a.outcome IS DISTINCT FROM 'deferred')
    OR f.attempts > current_setting('pg_evidence.max_attempts')::int
UNION ALL
SELECT 'history with a gap or an illegal move', h.export_id
  FROM (SELECT v.*, lag(to_state) OVER w AS previous, lag(version) OVER w AS previous_version
          FROM evidence.export_event AS v WHERE to_state IS NOT NULL WINDOW w AS (PARTITION BY export_id ORDER BY id)) AS h
  JOIN fact AS f ON f.id = h.export_id
 WHERE h.from_state IS DISTINCT FROM h.previous OR h.version <> coalesce(h.previous_version, 0) + 1
    OR h.from_state IS NOT NULL AND NOT EXISTS (
       SELECT FROM evidence.state_move AS m WHERE (m.fact, m.from_state, m.to_state) = ('export', h.from_state, h.to_state))
UNION ALL
SELECT 'history that does not end where the export stands', f.id FROM fact AS f
 WHERE (f.state, f.version) IS DISTINCT FROM (
       SELECT (v.to_state, v.version) FROM evidence.export_event AS v
        WHERE v.export_id = f.id AND v.to_state IS NOT NULL ORDER BY v.id DESC LIMIT 1)
UNION ALL
SELECT 'an action without exactly one audit row', f.id FROM fact AS f
 WHERE (SELECT count(*) FILTER (WHERE l.action = 'audit_export.request') <> 1
            OR count(*) FILTER (WHERE l.action = 'audit_export.cancel') <> (f.state = 'CANCELLED')::int
            OR count(*) FILTER (WHERE l.action = 'audit_export.revoke') <> (f.state = 'REVOKED')::int
            OR count(*) FILTER (WHERE l.action = 'audit_export.download') <> (SELECT count(*) FROM evidence.download_grant AS g WHERE g.export_id = f.id)
          FROM evidence.audit_log AS l WHERE l.target_type = 'audit_export' AND l.target_id = f.id::text)
UNION ALL
SELECT 'an open grant for a revoked export', f.id FROM fact AS f JOIN evidence.download_grant AS g ON g.export_id = f.id
 WHERE f.state = 'REVOKED' AND g.revoked_at IS NULL
UNION ALL
SELECT 'a grant for something that never was READY', f.id FROM fact AS f JOIN evidence.download_grant AS g ON g.export_id = f.id
 WHERE g.archive_token IS DISTINCT FROM f.archive_token
UNION ALL
SELECT 'more unfinished exports than allowed', NULL FROM fact WHERE state IN ('QUEUED', 'PROCESSING')
HAVING count(*) > current_setting('pg_evidence.max_active_per_requester')::int
UNION ALL
SELECT 'one key, several exports', NULL FROM fact WHERE idempotency_key IS NOT NULL GROUP BY requested_by, idempotency_key HAVING count(*) > 1;

-- Now and then the store of the bytes fails, in one of the three classes.
CREATE TABLE random_calls.failure (code text);
CREATE FUNCTION random_calls.fail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    chosen text;
BEGIN
    SELECT code INTO chosen FROM random_calls.failure;
    IF FOUND THEN
        RAISE EXCEPTION 'made up' USING ERRCODE = chosen;
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER random_failure BEFORE INSERT ON evidence.archive_chunk FOR EACH ROW EXECUTE FUNCTION random_calls.fail();

CREATE TABLE random_calls.log (n int, call text, answer text, violations text);
-- One random call; its answer is a state, or the SQLSTATE of a refusal.
CREATE FUNCTION random_calls.make(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    chosen uuid := (SELECT id FROM evidence.audit_export WHERE purpose = 'random' ORDER BY random() LIMIT 1);
    start_at timestamptz := timestamptz '2018-01-01 00:00+00' + floor(random() * 10) * interval '1 day';
    answer text;
BEGIN
    CASE call
    WHEN 'request' THEN
        PERFORM evidence.request_audit_export(start_at, start_at + interval '1 day', 'random',
            CASE WHEN random() < 0.5 THEN 'key-' || floor(random() * 20) END,
            filters => CASE WHEN random() < 0.5 THEN '{}' ELSE '{"actor_id": ["actor-1", "actor-2"]}'::jsonb END);
        answer := 'requested';
    WHEN 'record' THEN
        INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES (start_at + random() * interval '1 day', 'actor-1', 'test.late');
        answer := 'recorded';
    WHEN 'cancel' THEN answer := evidence.cancel_audit_export(chosen, 'random');
    WHEN 'revoke' THEN answer := evidence.revoke_audit_export(chosen, 'random');
    WHEN 'grant' THEN
        PERFORM evidence.grant_audit_export_download(chosen);
        answer := 'granted';
    WHEN 'verify' THEN
        SELECT coalesce(string_agg(check_name, ' '), 'verified') INTO answer FROM evidence.verify_audit_export(chosen) WHERE NOT ok;
    END CASE;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END
$$;
CREATE PROCEDURE random_calls.run(calls int) LANGUAGE plpgsql AS $$
DECLARE
    call text;
    answer text;
BEGIN
    FOR n IN 1 .. calls LOOP
        call := (ARRAY['request', 'request', 'request', 'run', 'run', 'run', 'run', 'cancel', 'revoke', 'grant', 'grant', 'verify', 'record'])[1 + floor(random() * 13)];
        IF call = 'run' THEN
            DELETE FROM random_calls.failure;
            IF random() < 0.4 THEN
                INSERT INTO random_calls.failure VALUES ((ARRAY['53100', '55P03', 'PE006', '40001'])[1 + floor(random() * 4)]);
            END IF;
            UPDATE evidence.background_job SET next_attempt_at = evidence._now() WHERE state = 'QUEUED';
            COMMIT;
            CALL evidence.run_once();
            answer := '';
        ELSE
            answer := random_calls.make(call);
        END IF;
        INSERT INTO random_calls.log
        SELECT n, call, answer, (SELECT string_agg(rule || ' ' || coalesce(id::text, ''), '; ') FROM random_calls.violation);
        COMMIT;
    END LOOP;
END
$$;
SELECT setseed(0.42) \gset ignored_
CALL random_calls.run(300);

SELECT diag('seed 0.42: ' || string_agg(call || ' ' || answer || ' ' || n, ', ' ORDER BY call, answer))
  FROM (SELECT call, answer, count(*) AS n FROM random_calls.log GROUP BY 1, 2) AS t;
SELECT is_empty($$SELECT n, call, answer, violations FROM random_calls.log WHERE violations IS NOT NULL ORDER BY n LIMIT 3$$,
                'no invariant is broken after any of 300 random calls');
SELECT is_empty($$SELECT call, answer FROM random_calls.log
                   WHERE answer !~ '^(|requested|recorded|granted|verified|CANCELLED|REVOKED|53400|PE001|PE003|PE005|55000|22023)$'$$,
                'each call did its work or was refused with a code of the documentation');
SELECT is_empty($$SELECT state FROM unnest('{QUEUED,READY,REVOKED,CANCELLED,FAILED}'::text[]) AS state
                  EXCEPT SELECT to_state FROM evidence.export_event$$,
                'the calls led to every state that they can lead to');
SELECT cmp_ok((SELECT count(*) FROM evidence.attempt AS a JOIN evidence.audit_export AS e ON e.id = a.export_id
                WHERE e.purpose = 'random' AND a.outcome = 'failed'), '>', 3::bigint, 'attempts have failed');
SELECT cmp_ok((SELECT count(*) FROM random_calls.log WHERE call = 'verify' AND answer = 'verified'), '>', 3::bigint, 'exports were verified');
-- At the end all that waits is made, and all that is READY verifies.
DELETE FROM random_calls.failure;
UPDATE evidence.background_job SET next_attempt_at = evidence._now() WHERE state = 'QUEUED';
CALL evidence.run_once();
CALL evidence.run_once();
CALL evidence.run_once();
SELECT is_empty($$SELECT id, state, NULL AS check_name FROM evidence.audit_export
                   WHERE purpose = 'random' AND state IN ('QUEUED', 'PROCESSING')
                  UNION ALL
                  SELECT e.id, e.state, v.check_name
                    FROM (SELECT * FROM evidence.audit_export WHERE purpose = 'random' AND state = 'READY' OFFSET 0) AS e,
                         LATERAL evidence.verify_audit_export(e.id) AS v
                   WHERE NOT v.ok$$,
                'in the end nothing waits and every READY export is verified');

SELECT * FROM finish();
DROP TRIGGER random_failure ON evidence.archive_chunk;
DROP SCHEMA random_calls CASCADE;
