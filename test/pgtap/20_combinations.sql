-- 20_combinations.sql: every combination of three states that can be written
-- down, legal or not, against the functions that move them (S1.17, S3.22).
--
-- A call may lead to a legal combination only; from anywhere else it ends in
-- PE006 or 55000 and changes nothing.
ALTER SYSTEM SET pg_evidence.debug_pause = 'launcher-round';
DO $$ BEGIN PERFORM pg_reload_conf(); END $$;
BEGIN;
SELECT plan(11);

CREATE TEMP TABLE triple AS
SELECT lpad(row_number() OVER ()::text, 32, '0')::uuid AS id, -row_number() OVER () AS n, e.state AS export, j.state AS job, o.state AS event
  FROM (SELECT DISTINCT export FROM evidence.state_combination) AS e (state),
       unnest('{QUEUED,RUNNING,SUCCEEDED,FAILED,CANCELLED}'::text[]) AS j (state),
       unnest('{PENDING,DELIVERED,DEAD,CLOSED}'::text[]) AS o (state);
SELECT is(count(*), 160::bigint, '8 times 5 times 4 combinations are tried') FROM triple;
SELECT results_eq($$SELECT count(*) FROM triple JOIN evidence.state_combination USING (export, job, event)$$,
                  $$SELECT count(*) FROM evidence.state_combination$$, 'every legal one is among them');

-- Rows that are consistent in themselves.
INSERT INTO evidence.audit_export
SELECT (jsonb_populate_record(NULL::evidence.audit_export, jsonb_build_object(
    'id', id, 'state', export, 'version', 1, 'generation', 1, 'source', 'audit_log', 'start_at', '2020-01-01', 'end_at', '2020-01-02',
    'filters', '{}'::jsonb, 'columns', '{id}'::text[], 'column_version', 1, 'purpose', 'test', 'policy_version', 1,
    'redaction', true, 'ruleset_version', 1, 'ruleset_sha256', repeat('0', 64), 'request_digest', repeat('0', 64),
    'consistency', 'as-of-request', 'snapshot_at', '2020-01-03', 'snapshot', '3:3:', 'request_xid', '3',
    'system_identifier', '1', 'incarnation', id, 'requested_by', 'nobody', 'session_role', 'nobody', 'requested_at', '2020-01-03',
    'attempt_token', CASE WHEN export = 'PROCESSING' THEN id END,
    'failed_at', CASE WHEN export = 'FAILED' THEN '2020-01-04' END, 'error_code', CASE WHEN export = 'FAILED' THEN '58030' END,
    'cancelled_at', CASE WHEN export = 'CANCELLED' THEN '2020-01-04' END)
  || CASE WHEN export IN ('READY', 'EXPIRED', 'REVOKED') THEN jsonb_build_object(
        'archive_token', id, 'archive_bytes', 1, 'archive_chunks', 1, 'archive_sha256', repeat('0', 64),
        'chunks_sha256', repeat('0', 64), 'records_bytes', 1, 'records_sha256', repeat('0', 64), 'record_count', 0,
        'ready_at', '2020-01-04', 'expires_at', '9999-01-01')
     WHEN export = 'STAGED' THEN jsonb_build_object(
        'archive_token', id, 'archive_bytes', 1, 'archive_chunks', 1, 'archive_sha256', repeat('0', 64),
        'chunks_sha256', repeat('0', 64), 'records_bytes', 1, 'records_sha256', repeat('0', 64), 'record_count', 0,
        'staged_at', '2020-01-04') ELSE '{}' END)).*
  FROM triple;
INSERT INTO evidence.background_job (id, export_id, state, attempt_token, next_attempt_at, created_at, finished_at)
SELECT n, id, job, CASE WHEN job = 'RUNNING' THEN id END, '2020-01-03', '2020-01-03',
       CASE WHEN job IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN '2020-01-04'::timestamptz END
  FROM triple;
INSERT INTO evidence.outbox_event (id, kind, export_id, job_id, generation, state, next_attempt_at, created_at, settled_at)
SELECT n, 'audit_export.generate', id, n, 1, event, '2020-01-03', '2020-01-03',
       CASE WHEN event <> 'PENDING' THEN '2020-01-04'::timestamptz END
  FROM triple;

CREATE FUNCTION pg_temp.try_call(call text, id uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format(call, id) INTO answer;
    SELECT concat_ws(' ', e.state, j.state, o.state) INTO answer
      FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id
      JOIN evidence.outbox_event AS o ON o.job_id = j.id WHERE e.id = try_call.id;
    RAISE EXCEPTION USING ERRCODE = 'TT000';
EXCEPTION
    WHEN SQLSTATE 'TT000' THEN RETURN answer;
    WHEN OTHERS THEN RETURN SQLSTATE;
END
$$;
CREATE TEMP VIEW legal AS SELECT concat_ws(' ', export, job, event) AS combination FROM evidence.state_combination;

-- What the three facts become by a cancellation, said once more in SQL.
CREATE TEMP TABLE cancelled AS
SELECT t.*, pg_temp.try_call('SELECT evidence.cancel_audit_export(%L, ''test'')', id) AS answer,
       CASE WHEN export IN ('QUEUED', 'PROCESSING', 'STAGED')
            THEN concat_ws(' ', 'CANCELLED',
                           CASE WHEN job IN ('QUEUED', 'RUNNING') OR (export = 'STAGED' AND job = 'SUCCEEDED')
                                THEN 'CANCELLED' ELSE job END,
                           CASE WHEN event IN ('PENDING', 'DEAD') THEN 'CLOSED' ELSE event END) END AS leads_to
  FROM triple AS t;
SELECT is_empty($$SELECT * FROM cancelled WHERE leads_to IN (TABLE legal) AND answer <> leads_to$$,
                'cancel: leads to CANCELLED wherever the result is legal');
SELECT is_empty($$SELECT * FROM cancelled WHERE leads_to NOT IN (TABLE legal) AND answer <> 'PE006'$$,
                'cancel: is refused (PE006) wherever it is not');
SELECT is_empty($$SELECT * FROM cancelled WHERE leads_to IS NULL
                     AND answer <> CASE export WHEN 'CANCELLED' THEN concat_ws(' ', export, job, event) ELSE '55000' END$$,
                'cancel: changes nothing from READY and the final states');

CREATE TEMP TABLE revoked AS
SELECT t.*, pg_temp.try_call('SELECT evidence.revoke_audit_export(%L, ''test'')', id) AS answer,
       CASE WHEN export = 'READY' THEN concat_ws(' ', 'REVOKED', job, event) END AS leads_to
  FROM triple AS t;
SELECT is_empty($$SELECT * FROM revoked WHERE leads_to IS NOT NULL
                     AND answer <> CASE WHEN leads_to IN (TABLE legal) THEN leads_to ELSE 'PE006' END$$,
                'revoke: leads to REVOKED where that is legal, PE006 elsewhere');
SELECT is_empty($$SELECT * FROM revoked WHERE leads_to IS NULL
                     AND answer <> CASE export WHEN 'REVOKED' THEN concat_ws(' ', export, job, event) ELSE '55000' END$$,
                'revoke: changes nothing outside READY');

-- An operator fails what is unfinished, so that it can be retried.
CREATE TEMP TABLE failed AS
SELECT t.*, pg_temp.try_call('SELECT evidence.fail_audit_export(%L, ''test'')', id) AS answer,
       CASE WHEN export IN ('QUEUED', 'PROCESSING', 'STAGED')
            THEN concat_ws(' ', 'FAILED',
                           CASE WHEN job IN ('QUEUED', 'RUNNING') OR (export = 'STAGED' AND job = 'SUCCEEDED')
                                THEN 'FAILED' ELSE job END,
                           CASE WHEN event IN ('PENDING', 'DEAD') THEN 'CLOSED' ELSE event END) END AS leads_to
  FROM triple AS t;
SELECT is_empty($$SELECT * FROM failed WHERE leads_to IN (TABLE legal) AND answer <> leads_to$$,
                'fail: leads to FAILED wherever the result is legal');
SELECT is_empty($$SELECT * FROM failed WHERE leads_to NOT IN (TABLE legal) AND answer <> 'PE006'$$,
                'fail: is refused (PE006) wherever it is not');
SELECT is_empty($$SELECT * FROM failed WHERE leads_to IS NULL AND answer <> '55000'$$,
                'fail: changes nothing from READY and the final states');

-- Facts that miss one another.
INSERT INTO evidence.audit_export
SELECT (jsonb_populate_record(e, '{"id": "ffffffff-0000-0000-0000-000000000000"}')).*
  FROM evidence.audit_export AS e WHERE e.state = 'QUEUED' LIMIT 1;
SELECT is(pg_temp.try_call('SELECT evidence.cancel_audit_export(%L, ''test'')', 'ffffffff-0000-0000-0000-000000000000'), 'PE006',
          'an export without job and event cannot be moved');

SELECT * FROM finish();
ROLLBACK;
