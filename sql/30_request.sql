-- 30_request.sql: what a request may ask for, what it writes, and when two
-- requests are the same one.
\set VERBOSITY terse
CREATE ROLE regress_ann;
CREATE ROLE regress_ben;
CREATE ROLE regress_oscar;
SELECT evidence.grant_capability('regress_ann', 'requester');
SELECT evidence.grant_capability('regress_ben', 'requester');
SELECT evidence.grant_capability('regress_oscar', 'operator');

-- A request, as SQL text, with one argument replaced.
CREATE FUNCTION test.request(start_at text DEFAULT $$'2020-01-01 00:00+00'$$, end_at text DEFAULT $$'2020-01-02 00:00+00'$$,
                             purpose text DEFAULT $$'case 7'$$, idempotency_key text DEFAULT 'NULL',
                             source text DEFAULT $$'audit_log'$$, filters text DEFAULT $$'{}'$$,
                             columns text DEFAULT 'NULL')
    RETURNS text LANGUAGE sql AS $$
SELECT format('SELECT evidence.request_audit_export(%s, %s, %s, %s, %s, %s, %s)',
              start_at, end_at, purpose, idempotency_key, source, filters, columns)
$$;
-- Digest of a request that is taken back again.
CREATE FUNCTION test.digest(request text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    export uuid;
    answer text;
BEGIN
    EXECUTE request INTO export;
    SELECT request_digest INTO STRICT answer FROM evidence.audit_export WHERE id = export;
    RAISE EXCEPTION USING ERRCODE = 'TT000';
EXCEPTION WHEN SQLSTATE 'TT000' THEN
    RETURN answer;
END
$$;

-- Range: both ends finite, start before end, at most 31 days (S1.3, C18, C20) --
SELECT s.what, test.try(s.request) AS answer FROM (VALUES
    ('start is null', test.request(start_at => 'NULL')),
    ('end is null', test.request(end_at => 'NULL')),
    ('start is -infinity', test.request(start_at => $$'-infinity'$$)),
    ('end is infinity', test.request(end_at => $$'infinity'$$)),
    ('empty', test.request(end_at => $$'2020-01-01 00:00+00'$$)),
    ('reversed', test.request(end_at => $$'2019-12-31 23:59:59.999999+00'$$)),
    ('31 days and 1 us', test.request(end_at => $$'2020-02-01 00:00:00.000001+00'$$)),
    ('widest of all', test.request(start_at => $$'4713-01-01 BC'$$, end_at => $$'294276-12-31'$$))) AS s (what, request);
SELECT s.what, test.code(s.request) AS answer FROM (VALUES
    ('1 us', test.request(end_at => $$'2020-01-01 00:00:00.000001+00'$$)),
    ('31 days exactly', test.request(end_at => $$'2020-02-01 00:00+00'$$)),
    ('before the common era', test.request(start_at => $$'0044-03-15 BC'$$, end_at => $$'0044-03-16 BC'$$))) AS s (what, request);
SELECT evidence.cancel_audit_export(id, 'only tried') AS state FROM evidence.audit_export;

-- C20: 31 days are 31 times 24 hours, whatever the client's time zone does.
SET timezone = 'Europe/Berlin';
SELECT s.what, test.code(s.request) AS answer FROM (VALUES
    ('31 local days, hour lost', test.request($$'2020-03-01 00:00'$$, $$'2020-04-01 00:00'$$)),
    ('31 local days, hour won', test.request($$'2020-10-01 00:00'$$, $$'2020-11-01 00:00'$$)),
    ('31 times 24 hours over the change', test.request($$'2020-10-01 00:00'$$, $$'2020-10-31 23:00'$$))) AS s (what, request);
RESET timezone;
SELECT count(evidence.cancel_audit_export(id, 'only tried')) FROM evidence.audit_export WHERE state = 'QUEUED';

-- Purpose, key, source -----------------------------------------------------------
SELECT s.what, test.try(s.request) AS answer FROM (VALUES
    ('purpose is null', test.request(purpose => 'NULL')),
    ('purpose is empty', test.request(purpose => $$''$$)),
    ('purpose is blank', test.request(purpose => $$E' \t\r\n '$$)),
    ('purpose of 2,001 bytes', test.request(purpose => $$repeat('p', 2001)$$)),
    ('key is empty', test.request(idempotency_key => $$''$$)),
    ('key of 201 bytes', test.request(idempotency_key => $$repeat('k', 201)$$)),
    ('source is null', test.request(source => 'NULL')),
    ('source is unknown', test.request(source => $$'pg_authid'$$)),
    ('source is a table', test.request(source => $$'evidence.audit_log'$$))) AS s (what, request);
SELECT test.digest(test.request(purpose => $$repeat('p', 2000)$$)) <> '' AS longest_purpose,
       test.digest(test.request(idempotency_key => $$repeat('k', 200)$$)) <> '' AS longest_key;

-- Filters: known keys, a string or a list of strings --------------------------------
SELECT s.filters, test.try(test.request(filters => quote_literal(s.filters))) AS answer FROM (VALUES
    ('[]'), ('"x"'), ('null'), ('7'),
    ('{"metadata": ["x"]}'), ('{"Outcome": ["denied"]}'), ('{"": ["x"]}'), ('{"recorded_xid": "3"}'),
    ('{"outcome": []}'), ('{"outcome": null}'), ('{"outcome": 7}'), ('{"outcome": true}'),
    ('{"outcome": {"is": "denied"}}'), ('{"outcome": ["denied", null]}'), ('{"outcome": ["denied", 7]}'),
    ('{"outcome": [["denied"]]}')) AS s (filters);
SELECT test.try(test.request(filters => $$jsonb_build_object('actor_id', (SELECT jsonb_agg(n::text) FROM generate_series(1, 1001) AS n))$$)) AS values_1001;
SELECT test.digest(test.request(filters => $$jsonb_build_object('actor_id', (SELECT jsonb_agg(n::text) FROM generate_series(1, 1000) AS n))$$)) <> '' AS values_1000;
-- A refused value may be confidential: no message repeats it.
SELECT test.try(test.request(filters => $$'{"actor_id": ["confidential", 7]}'$$)) LIKE '%confidential%' AS told;

-- Columns: those of the source only, each once -----------------------------------
SELECT s.what, test.try(test.request(columns => s.columns)) AS answer FROM (VALUES
    ('metadata is never exported', $$'{id,metadata}'$$), ('nor recorded_xid', $$'{recorded_xid}'$$),
    ('unknown', $$'{id,no_such}'$$), ('system column', $$'{ctid}'$$), ('case counts', $$'{ID}'$$),
    ('expression', $$ARRAY['id, metadata']$$), ('twice', $$'{id,action,id}'$$),
    ('null', $$'{id,NULL}'$$)) AS s (what, columns);
BEGIN;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7', columns => '{summary,id}') AS id \gset
SELECT columns FROM evidence.audit_export WHERE id = :'id';
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7') AS id \gset
SELECT cardinality(columns) AS all_columns, columns FROM evidence.audit_export WHERE id = :'id';
ROLLBACK;

-- Canonical form: the same question has the same digest (S3.7) ---------------------
SELECT test.digest(test.request()) AS digest \gset
SELECT :'digest' = encode(sha256(convert_to(
           '{"columns":["id","created_at","tenant_id","actor_id","actor_role","action","target_type","target_id",'
           '"outcome","error_code","request_id","source_fingerprint","summary"],"end":"2020-01-02T00:00:00.000000Z",'
           '"filters":{},"purpose":"case 7","source":"audit_log","start":"2020-01-01T00:00:00.000000Z"}', 'UTF8')), 'hex')
       AS computed_elsewhere;
SELECT s.what, test.digest(s.request) = :'digest' AS same FROM (VALUES
    ('other time zone', test.request($$'2020-01-01 05:30+05:30'$$, $$'2020-01-01 19:00-05'$$)),
    ('filters null', test.request(filters => 'NULL')),
    ('columns empty', test.request(columns => $$'{}'$$)),
    ('all columns in another order', test.request(columns => $$'{summary,source_fingerprint,request_id,error_code,outcome,target_id,target_type,action,actor_role,actor_id,tenant_id,created_at,id}'$$)),
    ('with a key', test.request(idempotency_key => $$'k'$$)),
    ('start 1 us later', test.request($$'2020-01-01 00:00:00.000001+00'$$)),
    ('end 1 us later', test.request(end_at => $$'2020-01-02 00:00:00.000001+00'$$)),
    ('other purpose', test.request(purpose => $$'case 8'$$)),
    ('purpose with a blank more', test.request(purpose => $$'case 7 '$$)),
    ('one column fewer', test.request(columns => $$'{id,created_at,tenant_id,actor_id,actor_role,action,target_type,target_id,outcome,error_code,request_id,source_fingerprint}'$$)),
    ('a filter', test.request(filters => $$'{"outcome": "denied"}'$$))) AS s (what, request);
SELECT test.digest(test.request(filters => $$'{"outcome": ["failure", "denied"], "actor_id": ["b", "a"]}'$$)) AS digest \gset
SELECT s.what, test.digest(test.request(filters => s.filters)) = :'digest' AS same FROM (VALUES
    ('keys and values permuted', $$'{"actor_id": ["a", "b"], "outcome": ["denied", "failure"]}'$$),
    ('values doubled', $$'{"actor_id": ["a", "b", "a"], "outcome": ["denied", "failure", "denied"]}'$$),
    ('other case', $$'{"actor_id": ["A", "b"], "outcome": ["denied", "failure"]}'$$),
    ('one value fewer', $$'{"actor_id": ["a"], "outcome": ["denied", "failure"]}'$$),
    ('one value in two', $$'{"actor_id": ["a\",\"b"], "outcome": ["denied", "failure"]}'$$)) AS s (what, filters);
SELECT test.digest(test.request(filters => $$'{"outcome": "denied"}'$$))
     = test.digest(test.request(filters => $$'{"outcome": ["denied"]}'$$)) AS a_string_is_a_list_of_one;
-- Session settings change nothing (C19).
SELECT test.digest(test.request()) AS digest \gset
SET datestyle = 'German';
SET timezone = 'Asia/Kathmandu';
SET intervalstyle = 'sql_standard';
SET bytea_output = 'escape';
SET standard_conforming_strings = off;
SET search_path = pg_temp;
SELECT test.digest(test.request()) = :'digest' AS same;
RESET datestyle; RESET timezone; RESET intervalstyle; RESET bytea_output; RESET standard_conforming_strings;
RESET search_path;

-- What a request writes, all in the caller's transaction (S1.19) ------------------
CREATE VIEW test.counts AS
SELECT (SELECT count(*) FROM evidence.audit_export) AS exports,
       (SELECT count(*) FROM evidence.background_job) AS jobs,
       (SELECT count(*) FROM evidence.outbox_event) AS events,
       (SELECT count(*) FROM evidence.export_event) AS history,
       (SELECT count(*) FROM evidence.audit_log WHERE action = 'audit_export.request') AS audit_rows;
CREATE TABLE test.counts_before AS TABLE test.counts;
BEGIN;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7') IS NOT NULL AS requested;
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7') IS NOT NULL AS requested;
ROLLBACK TO s;
COMMIT;
TABLE test.counts EXCEPT TABLE test.counts_before;
SET ROLE regress_ann;
BEGIN;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7', 'ann-1', 'audit_log',
                                     '{"outcome": "denied"}', '{action,id}') AS id \gset
RESET ROLE;
SELECT a.exports - b.exports AS exports, a.jobs - b.jobs AS jobs, a.events - b.events AS events,
       a.history - b.history AS history, a.audit_rows - b.audit_rows AS audit_rows
  FROM test.counts AS a, test.counts_before AS b;
\x on
SELECT state, version, generation, source, start_at AT TIME ZONE 'UTC' AS start_at, end_at AT TIME ZONE 'UTC' AS end_at,
       filters, columns, column_version, purpose, policy_version, redaction, ruleset_version, idempotency_key,
       consistency, request_xid = pg_current_xact_id() AS own_xid, pg_visible_in_snapshot(request_xid, snapshot) AS sees_itself,
       system_identifier = (SELECT c.system_identifier::text FROM pg_control_system() AS c) AS this_cluster,
       incarnation = (SELECT DISTINCT i.incarnation FROM evidence.instance AS i) AS this_incarnation,
       requested_by, session_role = session_user AS session_role,
       snapshot_at - requested_at < interval '1 s' AS one_moment, num_nonnulls(attempt_token, record_count, error_code, ready_at, expires_at) AS run_facts
  FROM evidence.audit_export WHERE id = :'id';
SELECT state, version, attempts, deferrals, attempt_token, error_code, started_at, finished_at
  FROM evidence.background_job WHERE export_id = :'id';
SELECT o.kind, o.state, o.version, o.generation, o.attempts, o.settled_at, o.job_id = j.id AS same_job
  FROM evidence.outbox_event AS o JOIN evidence.background_job AS j USING (export_id) WHERE export_id = :'id';
SELECT event, from_state, to_state, v.version, actor, v.session_role = session_user AS session_role, detail ->> 'digest' = request_digest AS digest
  FROM evidence.export_event AS v JOIN evidence.audit_export AS e ON e.id = v.export_id WHERE e.id = :'id';
SELECT action, actor_id, target_type, target_id = :'id' AS target, outcome, summary
  FROM evidence.audit_log WHERE recorded_xid = pg_current_xact_id();
\x off
COMMIT;

-- S1.22: the event holds ids and nothing else, so it has no other text column.
SELECT attname FROM pg_attribute
 WHERE attrelid = 'evidence.outbox_event'::regclass AND attnum > 0 AND atttypid IN ('text'::regtype, 'jsonb'::regtype)
 ORDER BY attnum;

-- Idempotency: keys are per requester and compare the canonical request (C47) ------
SET ROLE regress_ann;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7', 'ann-1', 'audit_log',
                                     '{"outcome": ["denied", "denied"]}', '{id,action}') = :'id' AS same_export;
SELECT test.try($$SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7', 'ann-1')$$)
       = concat('PE001: idempotency key was used for another request', E'\n  It belongs to export "', :'id',
                E'", which has other parameters.\n  Repeat that request unchanged to get its id, or use a new key.') AS conflict;
SET ROLE regress_ben;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7', 'ann-1', 'audit_log',
                                     '{"outcome": "denied"}', '{action,id}') <> :'id' AS bens_own;
SET ROLE regress_oscar;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7', 'ann-1') <> :'id' AS oscars_own;
RESET ROLE;
SELECT requested_by, count(*) FROM evidence.audit_export WHERE idempotency_key = 'ann-1' GROUP BY 1 ORDER BY 1;
-- Within one transaction, and over a rollback to a savepoint.
BEGIN;
SET LOCAL ROLE regress_ann;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 9', 'ann-2') AS first \gset
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 9', 'ann-2') = :'first' AS same_export;
ROLLBACK;
SET ROLE regress_ann;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 10', 'ann-2') <> :'first' AS key_is_free_again;
-- The key outlives the export's end.
SELECT evidence.cancel_audit_export(:'id', 'not needed');
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'case 7', 'ann-1', 'audit_log',
                                     '{"outcome": "denied"}', '{action,id}') = :'id' AS same_export;

-- Quota: 3 unfinished exports; a finished or a repeated one takes no place ----------
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'second', 'q-2') IS NOT NULL AS ok;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'third', 'q-3') AS third \gset
SELECT test.try($$SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'fourth')$$) AS fourth;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'third', 'q-3') = :'third' AS a_repeat_is_no_fourth;
SELECT test.code($$SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'other', 'q-3')$$) AS a_conflict_is_told_first;
BEGIN;
SELECT evidence.cancel_audit_export(:'third', 'make room');
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'fourth') IS NOT NULL AS room;
SELECT test.code($$SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'fifth')$$) AS fifth;
ROLLBACK;
SELECT test.code($$SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'fourth')$$) AS fourth;
SET ROLE regress_ben;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'of another') IS NOT NULL AS others_have_their_own;
RESET ROLE;

-- The snapshot that a request pins is a new one, at every level; a statement that
-- fails leaves no lock limit and no other user behind.
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT test.code(test.request(purpose => 'NULL')) AS code, current_setting('lock_timeout') AS lock_timeout,
       current_user = session_user AS same_user, current_setting('search_path') AS search_path;
SELECT evidence.request_audit_export('2020-01-01', '2020-01-02', 'serializable') IS NOT NULL AS ok;
SELECT current_setting('lock_timeout') AS lock_timeout, current_user = session_user AS same_user,
       current_setting('search_path') AS search_path;
ROLLBACK;
BEGIN READ ONLY;
SELECT test.code(test.request()) AS read_only;
ROLLBACK;

-- Below the watermark of what has been retired (55000).
BEGIN;
UPDATE evidence.guard SET watermark = '2020-01-01 00:00:00.000001+00' WHERE kind = 'source' AND name = 'audit_log';
SET LOCAL timezone = 'UTC';
SET LOCAL datestyle = 'ISO';
SELECT test.try(test.request()) AS below;
SELECT test.code(test.request(start_at => $$'2020-01-01 00:00:00.000001+00'$$)) AS at_it;
ROLLBACK;

-- Leave nothing unfinished to the next file.
SELECT count(evidence.cancel_audit_export(id, 'end of test')) > 0 AS cancelled FROM evidence.audit_export WHERE state = 'QUEUED';
DROP VIEW test.counts;
DROP TABLE test.counts_before;
DROP FUNCTION test.request, test.digest;
SELECT evidence.revoke_capability('regress_ann', 'requester');
SELECT evidence.revoke_capability('regress_ben', 'requester');
SELECT evidence.revoke_capability('regress_oscar', 'operator');
DROP ROLE regress_ann, regress_ben, regress_oscar;
