-- 95_snapshot.sql: which rows belong to an export, and in what form.
--
-- The expected records.csv is computed here from the table, for text that needs
-- no guard; rows, order and form are compared by its SHA-256.
\set VERBOSITY terse
SET timezone = 'UTC';
CREATE FUNCTION test.cell(value text) RETURNS text LANGUAGE sql AS $$
SELECT CASE WHEN value IS NULL THEN ''
            WHEN value = '' OR value ~ '[",\r\n]|^ | $' THEN '"' || replace(value, '"', '""') || '"'
            ELSE value END
$$;
-- Does the export hold exactly the rows of which the condition is true?
CREATE FUNCTION test.holds(export uuid, condition text, OUT records bigint, OUT exactly boolean) LANGUAGE plpgsql AS $$
DECLARE
    digest text;
BEGIN
    EXECUTE format(
        $q$SELECT encode(sha256(convert_to(concat(E'id,created_at,actor_id,action,summary\r\n', string_agg(concat_ws(',', id,
               to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), test.cell(actor_id), test.cell(action), test.cell(summary)) || E'\r\n',
               '' ORDER BY created_at, id)), 'UTF8')), 'hex')
             FROM evidence.audit_log WHERE %s$q$, condition) INTO digest;
    SELECT e.record_count, e.records_sha256 = digest INTO records, exactly FROM evidence.audit_export AS e WHERE e.id = export;
END
$$;
CREATE FUNCTION test.ask(start_at timestamptz, end_at timestamptz, filters jsonb DEFAULT '{}') RETURNS uuid LANGUAGE sql AS $$
SELECT evidence.request_audit_export(start_at, end_at, 'snapshot', filters => filters, columns => '{id,created_at,actor_id,action,summary}')
$$;

-- The requesting transaction's own rows never belong, before or after the request --------
SELECT test.fill('2020-08-01 00:00+00', 5);
BEGIN;
INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES ('2020-08-01 00:00:01.5+00', 'own', 'test.before');
SAVEPOINT s;
INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES ('2020-08-01 00:00:01.6+00', 'own', 'test.savepoint');
RELEASE s;
SELECT test.ask('2020-08-01 00:00+00', '2020-08-02 00:00+00') AS id \gset
INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES ('2020-08-01 00:00:01.7+00', 'own', 'test.after');
COMMIT;
-- Nor do rows that are committed after it, whatever time they claim.
SELECT test.fill('2020-08-01 00:00:00.5+00', 3);
CALL evidence.run_once();
SELECT * FROM test.holds(:'id', $$created_at >= '2020-08-01' AND created_at < '2020-08-02' AND actor_id <> 'own' AND date_trunc('second', created_at) = created_at$$);
-- The next request has them all.
SELECT test.ask('2020-08-01 00:00+00', '2020-08-02 00:00+00') AS id \gset
CALL evidence.run_once();
SELECT * FROM test.holds(:'id', $$created_at >= '2020-08-01' AND created_at < '2020-08-02'$$);
-- A request's own audit row is in no export of the same range, but in the next one.
SELECT evidence.request_audit_export(evidence._now() - interval '1 hour', evidence._now() + interval '1 hour', 'now',
                                     filters => '{"action": "audit_export.request"}') AS first \gset
SELECT evidence.request_audit_export(evidence._now() - interval '1 hour', evidence._now() + interval '1 hour', 'now',
                                     filters => '{"action": "audit_export.request"}') AS second \gset
CALL evidence.run_once();
CALL evidence.run_once();
SELECT b.record_count - a.record_count AS rows_more FROM evidence.audit_export AS a, evidence.audit_export AS b
 WHERE a.id = :'first' AND b.id = :'second';

-- C20: from included, to excluded, to the microsecond; neighbours share nothing -----------
INSERT INTO evidence.audit_log (created_at, actor_id, action)
SELECT t, 'edge', 'test.edge' FROM unnest('{2020-09-01 00:00+00,2020-09-02 00:00+00}'::timestamptz[]) AS edge,
       unnest(ARRAY[edge - interval '1 us', edge, edge + interval '1 us']) AS t;
SELECT test.ask('2020-09-01 00:00+00', '2020-09-02 00:00+00') AS day1 \gset
SELECT test.ask('2020-09-02 00:00+00', '2020-09-03 00:00+00') AS day2 \gset
CALL evidence.run_once();
CALL evidence.run_once();
SELECT * FROM test.holds(:'day1', $$created_at >= '2020-09-01' AND created_at < '2020-09-02'$$);
SELECT * FROM test.holds(:'day2', $$created_at >= '2020-09-02' AND created_at < '2020-09-03'$$);

-- C18: rows with an infinite time are in no range -------------------------------------------
INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES ('infinity', 'never', 'test.edge'), ('-infinity', 'ever', 'test.edge');
SELECT test.ask('2020-09-01 00:00+00', '2020-09-02 00:00+00') AS id \gset
CALL evidence.run_once();
SELECT * FROM test.holds(:'id', $$created_at >= '2020-09-01' AND created_at < '2020-09-02'$$);

-- C39: 1,000 rows on one time, in the order of their ids ------------------------------------
INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
SELECT '2020-10-01 00:00+00', 'tie', 'test.tie', 'row ' || n FROM generate_series(1, 1000) AS n;
SELECT test.ask('2020-10-01 00:00+00', '2020-10-01 00:00:00.000001+00') AS id \gset
CALL evidence.run_once();
SELECT * FROM test.holds(:'id', $$created_at = '2020-10-01'$$);

-- C36: an empty range is a valid package with a header line and no rows --------------------
SELECT test.ask('1999-01-01 00:00+00', '1999-01-02 00:00+00') AS id \gset
CALL evidence.run_once();
SELECT * FROM test.holds(:'id', 'false');
SELECT state, record_count, records_bytes = length(E'id,created_at,actor_id,action,summary\r\n') AS header_only FROM evidence.audit_export WHERE id = :'id';
SELECT count(*) FILTER (WHERE NOT ok) AS faults FROM evidence.verify_audit_export(:'id');

-- C12, C13: NULL, '', blank and the word NULL are four different cells ----------------------
INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
SELECT timestamptz '2020-11-01 00:00+00' + n * interval '1 s', 'cell', 'test.cell', v
  FROM unnest(ARRAY[NULL, '', ' ', 'NULL', '"', '""', 'a"b,c"d', ',', 'ends with \', '\"', 'a;b', '007', '1E5']) WITH ORDINALITY AS u (v, n);
SELECT test.ask('2020-11-01 00:00+00', '2020-11-02 00:00+00') AS id \gset
CALL evidence.run_once();
SELECT * FROM test.holds(:'id', $$created_at >= '2020-11-01' AND created_at < '2020-11-02'$$);

-- Filters: any value of a key, all keys together; a prefix is text, no pattern ---------------
INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action, target_type, target_id, outcome, error_code)
SELECT timestamptz '2020-12-01 00:00+00' + row_number() OVER () * interval '1 s', t, 'filter', a, y, i, o, e
  FROM unnest('{t1,t2}'::text[]) AS t,
       unnest('{user,user.,user.login,user.login.x,users.login,userXlogin,USER.login,%.x,a_b.c,aXb.c,.x,user.*}'::text[]) AS a,
       (VALUES ('doc', '1', 'success', NULL), ('doc', '2', 'denied', 'E1'), (NULL, NULL, 'failure', 'E2')) AS v (y, i, o, e);
CREATE TABLE test.filter_case (n int PRIMARY KEY, filters jsonb, condition text, id uuid);
INSERT INTO test.filter_case (n, filters, condition) VALUES
    (1, '{"tenant_id": "t1"}', $$tenant_id = 't1'$$),
    (2, '{"outcome": ["denied", "failure"]}', $$outcome IN ('denied', 'failure')$$),
    (3, '{"outcome": ["denied"], "tenant_id": ["t2"], "error_code": "E1"}', $$outcome = 'denied' AND tenant_id = 't2' AND error_code = 'E1'$$),
    (4, '{"target_type": "doc", "target_id": ["1", "3"]}', $$target_type = 'doc' AND target_id = '1'$$),
    (5, '{"action": "user.*"}', $$left(action, 5) = 'user.'$$),
    (6, '{"action": ["user.login", "a_b.*"]}', $$action = 'user.login' OR left(action, 4) = 'a_b.'$$),
    (7, '{"action": "%.*"}', $$left(action, 2) = '%.'$$),
    (8, '{"action": ".*"}', $$left(action, 1) = '.'$$),
    (9, '{"action": "*"}', 'false'),
    (10, '{"action": "user*"}', 'false'),
    (11, '{"action": "user"}', $$action = 'user'$$),
    (12, '{"actor_id": "FILTER"}', 'false'),
    (13, '{"error_code": ""}', 'false'),
    (14, '{"tenant_id": ["t1'' OR true --", "t1\") OR (true"]}', 'false'),
    (15, '{"action": ["user.*", "user.login"], "outcome": "success"}', $$left(action, 5) = 'user.' AND outcome = 'success'$$);
-- One after the other: the quota is three.
DO $$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT * FROM test.filter_case ORDER BY n LOOP
        UPDATE test.filter_case SET id = test.ask('2020-12-01 00:00+00', '2020-12-02 00:00+00', c.filters) WHERE n = c.n;
        COMMIT;
        CALL evidence.run_once();
    END LOOP;
END
$$;
SELECT n, filters, h.records, h.exactly
  FROM test.filter_case, test.holds(id, format($$created_at >= '2020-12-01' AND created_at < '2020-12-02' AND (%s)$$, condition)) AS h ORDER BY n;

-- S1.6, C35: the same contract gives the same records, whatever the session is set to ------
SELECT test.ask('2020-11-01 00:00+00', '2020-11-02 00:00+00') AS id \gset
SET datestyle = 'German';
SET timezone = 'Asia/Kathmandu';
SET lc_messages = 'C';
SET extra_float_digits = 0;
SET standard_conforming_strings = off;
SET enable_indexscan = off;
SET work_mem = '64kB';
CALL evidence.run_once();
RESET ALL;
SET timezone = 'UTC';
SELECT * FROM test.holds(:'id', $$created_at >= '2020-11-01' AND created_at < '2020-11-02'$$);

DROP FUNCTION test.holds, test.cell, test.ask;
DROP TABLE test.filter_case;
