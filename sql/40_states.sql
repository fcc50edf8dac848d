-- 40_states.sql: facts move only as design section 4 says, whoever tries it.
--
-- Everything happens in one transaction that is rolled back at the end, so
-- that no made-up fact stays behind.
\set VERBOSITY terse
SET timezone = 'UTC';

-- The tables of the design, as far as they are built -----------------------------
CREATE TABLE test.legal_move AS
SELECT fact, from_state, unnest(string_to_array(to_states, ' ')) AS to_state FROM (VALUES
    ('export', 'QUEUED', 'PROCESSING CANCELLED FAILED'),
    ('export', 'PROCESSING', 'QUEUED STAGED READY FAILED CANCELLED'),
    ('export', 'STAGED', 'READY FAILED CANCELLED'),
    ('export', 'READY', 'EXPIRED REVOKED'),
    ('export', 'FAILED', 'QUEUED'),
    ('job', 'QUEUED', 'RUNNING FAILED CANCELLED'),
    ('job', 'RUNNING', 'QUEUED SUCCEEDED FAILED CANCELLED'),
    ('job', 'SUCCEEDED', 'FAILED CANCELLED'),
    ('job', 'FAILED', 'QUEUED'),
    ('outbox', 'PENDING', 'DELIVERED DEAD CLOSED'),
    ('outbox', 'DEAD', 'PENDING CLOSED')) AS t (fact, from_state, to_states);
CREATE TABLE test.legal_combination AS
SELECT export, job, unnest(string_to_array(events, ' ')) AS event
  FROM (VALUES
    ('QUEUED', 'QUEUED', 'PENDING DELIVERED DEAD'),
    ('PROCESSING', 'RUNNING', 'DELIVERED'),
    ('STAGED', 'SUCCEEDED', 'DELIVERED'),
    ('READY', 'SUCCEEDED', 'DELIVERED'), ('EXPIRED', 'SUCCEEDED', 'DELIVERED'), ('REVOKED', 'SUCCEEDED', 'DELIVERED'),
    ('FAILED', 'FAILED', 'DELIVERED DEAD CLOSED'),
    ('CANCELLED', 'CANCELLED', 'DELIVERED CLOSED')) AS t (export, job, events);
(TABLE evidence.state_move EXCEPT TABLE test.legal_move)
UNION ALL (TABLE test.legal_move EXCEPT TABLE evidence.state_move);
(TABLE evidence.state_combination EXCEPT TABLE test.legal_combination)
UNION ALL (TABLE test.legal_combination EXCEPT TABLE evidence.state_combination);
SELECT count(*) AS moves, count(DISTINCT (fact, from_state, to_state)) AS different FROM evidence.state_move;
SELECT count(*) AS combinations, count(DISTINCT (export, job, event)) AS different FROM evidence.state_combination;
CREATE VIEW test.state AS
SELECT fact, from_state AS state FROM test.legal_move UNION SELECT fact, to_state FROM test.legal_move;

-- Facts in any state, each consistent in itself -----------------------------------
CREATE FUNCTION test.export_as(id uuid, state text) RETURNS evidence.audit_export LANGUAGE sql AS $$
SELECT jsonb_populate_record(NULL::evidence.audit_export, jsonb_build_object(
    'id', id, 'state', state, 'version', 1, 'generation', 1, 'source', 'audit_log', 'start_at', '2020-01-01', 'end_at', '2020-01-02',
    'filters', '{}'::jsonb, 'columns', '{id}'::text[], 'column_version', 1, 'purpose', 'test', 'policy_version', 1,
    'redaction', true, 'ruleset_version', 1, 'ruleset_sha256', repeat('0', 64), 'request_digest', repeat('0', 64),
    'consistency', 'as-of-request', 'snapshot_at', '2020-01-03', 'snapshot', '3:3:', 'request_xid', '3',
    'system_identifier', '1', 'incarnation', '00000000-0000-0000-0000-000000000001', 'requested_by', session_user,
    'session_role', session_user, 'requested_at', '2020-01-03')
  || CASE state
     WHEN 'PROCESSING' THEN '{"attempt_token": "00000000-0000-0000-0000-00000000000a"}'::jsonb
     WHEN 'FAILED' THEN '{"failed_at": "2020-01-04", "error_code": "58030"}'
     WHEN 'CANCELLED' THEN '{"cancelled_at": "2020-01-04"}'
     ELSE '{}' END
  || CASE WHEN state IN ('READY', 'EXPIRED', 'REVOKED') THEN jsonb_build_object(
        'archive_token', '00000000-0000-0000-0000-00000000000a', 'archive_bytes', 1, 'archive_chunks', 1,
        'archive_sha256', repeat('0', 64), 'chunks_sha256', repeat('0', 64), 'records_bytes', 1,
        'records_sha256', repeat('0', 64), 'record_count', 0, 'ready_at', '2020-01-04', 'expires_at', '9999-01-01')
     WHEN state = 'STAGED' THEN jsonb_build_object(
        'archive_token', '00000000-0000-0000-0000-00000000000a', 'archive_bytes', 1, 'archive_chunks', 1,
        'archive_sha256', repeat('0', 64), 'chunks_sha256', repeat('0', 64), 'records_bytes', 1,
        'records_sha256', repeat('0', 64), 'record_count', 0, 'staged_at', '2020-01-04')
     ELSE '{}' END)
$$;
CREATE FUNCTION test.job_as(id bigint, export_id uuid, state text) RETURNS evidence.background_job LANGUAGE sql AS $$
SELECT jsonb_populate_record(NULL::evidence.background_job, jsonb_build_object(
    'id', id, 'export_id', export_id, 'state', state, 'version', 1, 'attempts', 0, 'deferrals', 0,
    'next_attempt_at', '2020-01-03', 'created_at', '2020-01-03')
  || CASE WHEN state = 'RUNNING' THEN '{"attempt_token": "00000000-0000-0000-0000-00000000000a"}'::jsonb ELSE '{}' END
  || CASE WHEN state IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN '{"finished_at": "2020-01-04"}'::jsonb ELSE '{}' END)
$$;
CREATE FUNCTION test.event_as(id bigint, export_id uuid, job_id bigint, state text) RETURNS evidence.outbox_event LANGUAGE sql AS $$
SELECT jsonb_populate_record(NULL::evidence.outbox_event, jsonb_build_object(
    'id', id, 'kind', 'audit_export.generate', 'export_id', export_id, 'job_id', job_id, 'generation', 1, 'state', state,
    'version', 1, 'attempts', 0, 'next_attempt_at', '2020-01-03', 'created_at', '2020-01-03')
  || CASE WHEN state = 'PENDING' THEN '{}' ELSE '{"settled_at": "2020-01-04"}'::jsonb END)
$$;
-- Three facts of one export, numbered n.
CREATE FUNCTION test.make(n int, export text, job text, event text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    export_id uuid := lpad(n::text, 32, '0')::uuid;
BEGIN
    INSERT INTO evidence.audit_export SELECT * FROM test.export_as(export_id, export);
    INSERT INTO evidence.background_job SELECT * FROM test.job_as(-n, export_id, job);
    INSERT INTO evidence.outbox_event SELECT * FROM test.event_as(-n, export_id, -n, event);
    RETURN export_id;
END
$$;

-- Every move of every fact, tried by a superuser's plain UPDATE --------------------
CREATE FUNCTION test.try_move(fact text, from_state text, to_state text, raise_version int DEFAULT 1)
    RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM test.make(9999, CASE fact WHEN 'export' THEN from_state ELSE 'QUEUED' END,
                      CASE fact WHEN 'job' THEN from_state ELSE 'QUEUED' END,
                      CASE fact WHEN 'outbox' THEN from_state ELSE 'PENDING' END);
    CASE fact
    WHEN 'export' THEN
        UPDATE evidence.audit_export AS e
           SET state = n.state, version = e.version + raise_version, attempt_token = n.attempt_token,
               failed_at = n.failed_at, error_code = n.error_code, cancelled_at = n.cancelled_at,
               archive_token = n.archive_token, archive_bytes = n.archive_bytes, archive_chunks = n.archive_chunks,
               archive_sha256 = n.archive_sha256, chunks_sha256 = n.chunks_sha256, records_bytes = n.records_bytes,
               records_sha256 = n.records_sha256, record_count = n.record_count, staged_at = n.staged_at, ready_at = n.ready_at, expires_at = n.expires_at
          FROM test.export_as(lpad('9999', 32, '0')::uuid, to_state) AS n WHERE e.id = n.id;
    WHEN 'job' THEN
        UPDATE evidence.background_job AS j
           SET state = n.state, version = j.version + raise_version, attempt_token = n.attempt_token, finished_at = n.finished_at
          FROM test.job_as(-9999, NULL, to_state) AS n WHERE j.id = n.id;
    WHEN 'outbox' THEN
        UPDATE evidence.outbox_event AS o
           SET state = n.state, version = o.version + raise_version, settled_at = n.settled_at
          FROM test.event_as(-9999, NULL, NULL, to_state) AS n WHERE o.id = n.id;
    END CASE;
    IF NOT FOUND THEN
        RETURN 'nothing updated';
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'TT000';
EXCEPTION
    WHEN SQLSTATE 'TT000' THEN RETURN 'moved';
    WHEN OTHERS THEN RETURN SQLSTATE;
END
$$;
CREATE TABLE test.tried AS
SELECT a.fact, a.state AS from_state, b.state AS to_state, test.try_move(a.fact, a.state, b.state) AS answer
  FROM test.state AS a JOIN test.state AS b ON a.fact = b.fact AND a.state <> b.state;
SELECT fact, answer, count(*) FROM test.tried GROUP BY 1, 2 ORDER BY 1, 2;
SELECT t.*, l.fact IS NOT NULL AS legal
  FROM test.tried AS t LEFT JOIN test.legal_move AS l USING (fact, from_state, to_state)
 WHERE (t.answer = 'moved') IS DISTINCT FROM (l.fact IS NOT NULL) OR t.answer NOT IN ('moved', '55000');
-- The version goes up by one with a move, and only then.
SELECT raise_version, answer, count(*) FROM (
    SELECT r AS raise_version, test.try_move(fact, from_state, to_state, r) AS answer
      FROM test.legal_move, generate_series(-1, 2) AS r) AS t GROUP BY 1, 2 ORDER BY 1, 2;
SELECT raise_version, answer, count(*) FROM (
    SELECT r AS raise_version, test.try_move(fact, state, state, r) AS answer
      FROM test.state, generate_series(-1, 1) AS r) AS t GROUP BY 1, 2 ORDER BY 1, 2;
SELECT DISTINCT s.fact, test.try_move(s.fact, s.state, 'NO SUCH STATE') AS answer FROM test.state AS s ORDER BY 1;

BEGIN;
SELECT count(test.make(n::int, export, job, event))
  FROM (SELECT row_number() OVER (ORDER BY export, job, event) AS n, export, job, event FROM test.legal_combination) AS t;
-- As text, to see the reasons.
SELECT test.try($$UPDATE evidence.audit_export SET state = 'READY', version = version + 1 WHERE state = 'QUEUED'$$) AS answer;
SELECT test.try($$UPDATE evidence.background_job SET version = version + 1 WHERE version = 1$$) AS answer;
SELECT test.try($$UPDATE evidence.audit_export SET purpose = 'another'$$) AS answer;
SELECT test.try($$DELETE FROM evidence.audit_export$$) AS answer;
-- Which tables a TRUNCATE would reach is not the question here.
SET LOCAL client_min_messages = warning;
SELECT test.try($$TRUNCATE evidence.audit_export CASCADE$$) AS answer;

-- The contract never changes: every column of it, in every state ------------------
CREATE FUNCTION test.other_value(type regtype, col text) RETURNS text LANGUAGE sql AS $$
SELECT CASE type::text
       WHEN 'text' THEN format('%I || ''x''', col)
       WHEN 'timestamp with time zone' THEN format('%I + interval ''1 us''', col)
       WHEN 'integer' THEN format('%I + 1', col)
       WHEN 'bigint' THEN format('%I + 1', col)
       WHEN 'boolean' THEN format('NOT %I', col)
       WHEN 'uuid' THEN 'gen_random_uuid()'
       WHEN 'jsonb' THEN '''{"a": ["b"]}'''
       WHEN 'text[]' THEN format('array_append(%I, ''action'')', col)
       WHEN 'pg_snapshot' THEN '''10:20:'''
       WHEN 'xid8' THEN '''4''' END
$$;
CREATE TABLE test.fixed_column AS
SELECT a.attrelid::regclass AS tab, a.attname AS col, a.atttypid::regtype AS type
  FROM pg_attribute AS a
 WHERE a.attnum > 0 AND NOT a.attisdropped AND (
       a.attrelid = 'evidence.audit_export'::regclass AND a.attname <> ALL ('{state,version,generation,attempt_token,record_count,error_code,error_message,error_hint,cancelled_at,stopped_at,failed_at,staged_at,archive_token,archive_bytes,archive_chunks,archive_sha256,chunks_sha256,records_bytes,records_sha256,ready_at,expires_at,object_bucket,object_key,object_version,locked_until,legal_hold}')
       OR a.attrelid = 'evidence.background_job'::regclass AND a.attname <> ALL ('{state,version,attempts,deferrals,attempt_token,next_attempt_at,error_code,started_at,finished_at}')
       OR a.attrelid = 'evidence.outbox_event'::regclass AND a.attname <> ALL ('{state,version,attempts,next_attempt_at,error_code,reason,settled_at}'));
SELECT tab, string_agg(col, ' ' ORDER BY col) AS fixed_columns FROM test.fixed_column GROUP BY 1 ORDER BY 1;
SELECT tab, col, answer FROM (
    SELECT tab, col, CASE WHEN col = 'idempotency_key'
                          THEN test.code(format('UPDATE %s SET %I = %L', tab, col, 'k'))
                          ELSE test.code(format('UPDATE %s SET %I = %s', tab, col, test.other_value(type, col))) END AS answer
      FROM test.fixed_column) AS t WHERE answer <> '55000';
SELECT tab, col, answer FROM (
    SELECT tab, col, test.code(format('SET LOCAL session_replication_role = replica; UPDATE %s SET %I = NULL', tab, col)) AS answer
      FROM test.fixed_column WHERE col NOT IN ('idempotency_key', 'recreated_from')) AS t WHERE answer <> '55000';
-- A large value that is stored elsewhere counts by its content.
INSERT INTO evidence.audit_export
SELECT (jsonb_populate_record(e, jsonb_build_object('id', lpad('500', 32, '0'), 'purpose', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) AS i)))).*
  FROM test.export_as(NULL, 'QUEUED') AS e;
SELECT test.code($$UPDATE evidence.audit_export SET purpose = purpose || '' WHERE length(purpose) > 1000$$) AS same_content,
       test.code($$UPDATE evidence.audit_export SET purpose = left(purpose, -1) || 'x' WHERE length(purpose) > 1000$$) AS other_content;

-- Nothing is deleted -----------------------------------------------------------------
SELECT s AS statement, test.code(s) AS code FROM (
    SELECT unnest(ARRAY[format('DELETE FROM evidence.%I', t), format('TRUNCATE evidence.%I CASCADE', t),
                        format('SET LOCAL session_replication_role = replica; DELETE FROM evidence.%I', t),
                        format('SET LOCAL session_replication_role = replica; TRUNCATE evidence.%I CASCADE', t)]) AS s
      FROM unnest('{audit_export,background_job,outbox_event}'::text[]) AS t) AS u;

-- A row that contradicts itself does not even get in --------------------------------
SELECT s.what, test.code(format('INSERT INTO evidence.audit_export SELECT (jsonb_populate_record(e, %L)).* FROM test.export_as(gen_random_uuid(), %L) AS e', s.change, s.state)) AS code
  FROM (VALUES
    ('consistent', 'QUEUED', '{}'),
    ('unknown state', 'MADE', '{}'),
    ('STAGED without time', 'STAGED', '{"staged_at": null}'),
    ('STAGED with an expiry', 'STAGED', '{"expires_at": "9999-01-01"}'),
    ('STAGED with an object', 'STAGED', '{"object_bucket": "b", "object_key": "k"}'),
    ('READY with half an object', 'READY', '{"object_key": "k"}'),
    ('READY with an object', 'READY', '{"object_bucket": "b", "object_key": "k"}'),
    ('READY with a lock of nothing', 'READY', '{"locked_until": "9999-01-01"}'),
    ('QUEUED with a token', 'QUEUED', '{"attempt_token": "00000000-0000-0000-0000-00000000000a"}'),
    ('PROCESSING without', 'PROCESSING', '{"attempt_token": null}'),
    ('READY without digest', 'READY', '{"archive_sha256": null}'),
    ('READY without expiry', 'READY', '{"expires_at": null}'),
    ('READY without count', 'READY', '{"record_count": null}'),
    ('EXPIRED without size', 'EXPIRED', '{"archive_bytes": null}'),
    ('READY and expired before', 'READY', '{"expires_at": "2020-01-04"}'),
    ('QUEUED with an archive', 'QUEUED', '{"archive_sha256": "0000000000000000000000000000000000000000000000000000000000000000"}'),
    ('FAILED without time', 'FAILED', '{"failed_at": null}'),
    ('FAILED without code', 'FAILED', '{"error_code": null}'),
    ('QUEUED but failed', 'QUEUED', '{"failed_at": "2020-01-04"}'),
    ('CANCELLED without time', 'CANCELLED', '{"cancelled_at": null}'),
    ('READY but cancelled', 'READY', '{"cancelled_at": "2020-01-04"}'),
    ('stopped, not cancelled', 'READY', '{"stopped_at": "2020-01-04"}'),
    ('empty range', 'QUEUED', '{"end_at": "2020-01-01"}'),
    ('infinite range', 'QUEUED', '{"end_at": "infinity"}'),
    ('blank purpose', 'QUEUED', '{"purpose": " "}'),
    ('no column', 'QUEUED', '{"columns": []}'),
    ('filters are no object', 'QUEUED', '{"filters": []}'),
    ('version 0', 'QUEUED', '{"version": 0}'),
    ('digest in capitals', 'QUEUED', '{"request_digest": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}')) AS s (what, state, change);
-- No second job of an export, no second event of a generation.
SELECT test.code($$INSERT INTO evidence.background_job SELECT * FROM test.job_as(-600, '00000000-0000-0000-0000-000000000001', 'QUEUED')$$) AS second_job,
       test.code($$INSERT INTO evidence.outbox_event SELECT * FROM test.event_as(-600, '00000000-0000-0000-0000-000000000001', -1, 'PENDING')$$) AS second_event,
       test.code($$INSERT INTO evidence.outbox_event SELECT (jsonb_populate_record(o, '{"kind": "other"}')).* FROM test.event_as(-600, '00000000-0000-0000-0000-000000000500', -1, 'PENDING') AS o$$) AS unknown_kind;

-- cancel and revoke in every legal combination (S3.66 to S3.70) ---------------------
CREATE VIEW test.triple AS
SELECT e.id, e.state AS export, j.state AS job, o.state AS event
  FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id
  JOIN evidence.outbox_event AS o ON o.job_id = j.id;
CREATE FUNCTION test.try_call(call text, id uuid, OUT answer text, OUT after text, OUT history text, OUT audit_rows bigint)
    LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE format(call, id) INTO answer;
        SELECT concat_ws(' ', t.export, t.job, t.event) INTO after FROM test.triple AS t WHERE t.id = try_call.id;
        SELECT string_agg(concat_ws(' ', v.event, v.from_state, v.to_state, v.version), ', ') INTO history
          FROM evidence.export_event AS v WHERE v.export_id = try_call.id;
        SELECT count(*) INTO audit_rows FROM evidence.audit_log WHERE target_id = try_call.id::text;
        RAISE EXCEPTION USING ERRCODE = 'TT000';
    EXCEPTION
        WHEN SQLSTATE 'TT000' THEN
            NULL;
        WHEN OTHERS THEN
            answer := SQLSTATE;
    END;
END
$$;
SELECT concat_ws(' ', export, job, event) AS before, c.*
  FROM test.triple, test.try_call('SELECT evidence.cancel_audit_export(%L, ''why'')', id) AS c
 WHERE id < '00000000-0000-0000-0000-000000000099' ORDER BY id;
SELECT concat_ws(' ', export, job, event) AS before, c.*
  FROM test.triple, test.try_call('SELECT evidence.revoke_audit_export(%L, ''why'')', id) AS c
 WHERE id < '00000000-0000-0000-0000-000000000099' ORDER BY id;
-- A download of what is not READY: PE005 not yet, 55000 never, PE003 gone.  The
-- bytes of the READY one here are made up, and that is seen (PE006).
SELECT concat_ws(' ', export, job, event) AS before, c.answer, c.audit_rows
  FROM test.triple, test.try_call('SELECT evidence.grant_audit_export_download(%L)', id) AS c
 WHERE id < '00000000-0000-0000-0000-000000000099' ORDER BY id;
-- Texts, and two times: a queued export stops at once, a running one later.
SELECT DISTINCT export, test.try(format('SELECT evidence.cancel_audit_export(%L, ''why'')', id)) AS answer
  FROM test.triple WHERE export IN ('READY', 'EXPIRED') ORDER BY 1;
SELECT DISTINCT export, test.try(format('SELECT evidence.revoke_audit_export(%L, ''why'')', id)) AS answer
  FROM test.triple WHERE export = 'QUEUED';
SAVEPOINT s;
SELECT evidence.cancel_audit_export(id, 'why') FROM test.triple WHERE export IN ('QUEUED', 'PROCESSING') AND event = 'DELIVERED' ORDER BY id;
SELECT v.from_state, cancelled_at IS NOT NULL AS cancelled, stopped_at IS NOT NULL AS stopped, stopped_at = cancelled_at AS at_once
  FROM evidence.audit_export AS e JOIN evidence.export_event AS v ON v.export_id = e.id
 WHERE e.id < '00000000-0000-0000-0000-000000000099' ORDER BY 1;
ROLLBACK TO s;

-- Arguments (22023), and ids that nobody has (42501).
SELECT s AS call, test.try(s) AS answer FROM (VALUES
    ($$SELECT evidence.cancel_audit_export(NULL, 'why')$$),
    ($$SELECT evidence.cancel_audit_export('00000000-0000-0000-0000-000000000001', NULL)$$),
    ($$SELECT evidence.cancel_audit_export('00000000-0000-0000-0000-000000000001', ' ')$$),
    ($$SELECT evidence.cancel_audit_export('00000000-0000-0000-0000-000000000001', repeat('w', 2001))$$),
    ($$SELECT evidence.cancel_audit_export('ffffffff-0000-0000-0000-000000000001', 'why')$$),
    ($$SELECT evidence.revoke_audit_export(NULL, 'why')$$),
    ($$SELECT evidence.revoke_audit_export('00000000-0000-0000-0000-000000000001', '')$$),
    ($$SELECT evidence.revoke_audit_export('ffffffff-0000-0000-0000-000000000001', 'why')$$),
    ($$SELECT evidence.grant_audit_export_download(NULL)$$),
    ($$SELECT evidence.grant_audit_export_download('00000000-0000-0000-0000-000000000001', ' ')$$),
    ($$SELECT evidence.grant_audit_export_download('ffffffff-0000-0000-0000-000000000001')$$)) AS t (s);

-- S1.17: a combination that is illegal is told and changes nothing ------------------
SELECT test.make(700, 'QUEUED', 'SUCCEEDED', 'DELIVERED') AS id \gset
SELECT test.try(format('SELECT evidence.cancel_audit_export(%L, ''why'')', :'id')) AS answer;
SELECT export, job, event FROM test.triple WHERE id = :'id';

-- The history of exports is append-only as well (C64).
SELECT evidence.cancel_audit_export(id, 'why') FROM test.triple WHERE export = 'QUEUED' AND event = 'PENDING';
SELECT s AS statement, test.code(s) AS code FROM (VALUES
    ($$UPDATE evidence.export_event SET actor = 'somebody else'$$),
    ($$DELETE FROM evidence.export_event$$),
    ($$TRUNCATE evidence.export_event$$),
    ($$SET LOCAL session_replication_role = replica; DELETE FROM evidence.export_event$$)) AS t (s);
ROLLBACK;
RESET timezone;
DROP FUNCTION test.try_move, test.make, test.export_as, test.job_as, test.event_as;
DROP VIEW test.state;
DROP TABLE test.legal_move, test.legal_combination, test.tried;
