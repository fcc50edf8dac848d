-- 20_audit_log.sql: the log takes rows from those who may write, sets what
-- nobody may forge, and never changes.
\set VERBOSITY terse
CREATE ROLE regress_writer;
CREATE ROLE regress_nobody;
SELECT evidence.grant_capability('regress_writer', 'writer');

-- record_audit_event: the time and the transaction are the server's -----------
SET ROLE regress_writer;
SELECT clock_timestamp() AS before \gset
SELECT evidence.record_audit_event('user.login', 'alice', 'admin', 'session', 's-1', 'denied', 'E7',
                                   'req-1', 'three tries', 'tenant-a', NULL, '{"ip_seen": false}') > 0 AS has_id;
SELECT evidence.record_audit_event(action => 'user.logout', actor_id => 'alice') > 0 AS has_id;
RESET ROLE;
SELECT created_at BETWEEN :'before' AND clock_timestamp() AS time_is_now, tenant_id, actor_id, actor_role, action,
       target_type, target_id, outcome, error_code, request_id, source_fingerprint, summary, metadata
  FROM evidence.audit_log WHERE actor_id = 'alice' ORDER BY id;

-- What it refuses (22023, each with what to do).
SELECT s AS call, test.try(s) AS answer FROM (VALUES
    ($$SELECT evidence.record_audit_event(NULL, 'alice')$$),
    ($$SELECT evidence.record_audit_event('', 'alice')$$),
    ($$SELECT evidence.record_audit_event('a.b', NULL)$$),
    ($$SELECT evidence.record_audit_event('a.b', '')$$),
    ($$SELECT evidence.record_audit_event('a.b', 'alice', tenant_id => NULL)$$),
    ($$SELECT evidence.record_audit_event('a.b', 'alice', tenant_id => '')$$),
    ($$SELECT evidence.record_audit_event('a.b', 'alice', outcome => NULL)$$),
    ($$SELECT evidence.record_audit_event('a.b', 'alice', outcome => 'SUCCESS')$$),
    ($$SELECT evidence.record_audit_event('a.b', 'alice', source => '192.0.2.7')$$)) AS t (s);
-- A writer has nothing else: no table, and no other function.
SET ROLE regress_writer;
SELECT count(*) FROM evidence.audit_log;
INSERT INTO evidence.audit_log (actor_id, action) VALUES ('x', 'y');
SELECT nextval('evidence.audit_log_id_seq');
SELECT evidence._now();
SET ROLE regress_nobody;
SELECT evidence.record_audit_event('a.b', 'mallory');
RESET ROLE;

-- recorded_xid is the top-level transaction, whoever inserts and whatever ------
-- the INSERT says (design 3).
BEGIN;
INSERT INTO evidence.audit_log (actor_id, action, recorded_xid) VALUES ('forger', 'x.1', '3');
SAVEPOINT a;
INSERT INTO evidence.audit_log (actor_id, action, recorded_xid) VALUES ('forger', 'x.2', '18446744073709551615');
SAVEPOINT b;
SELECT evidence.record_audit_event('x.3', 'forger') > 0 AS done;
RELEASE SAVEPOINT b;
COPY evidence.audit_log (actor_id, action, recorded_xid) FROM STDIN;
forger	x.4	7
\.
DO $$ BEGIN
    INSERT INTO evidence.audit_log (actor_id, action) VALUES ('forger', 'x.5');
EXCEPTION WHEN division_by_zero THEN
    RAISE;
END $$;
SET LOCAL session_replication_role = replica;
INSERT INTO evidence.audit_log (actor_id, action, recorded_xid) VALUES ('forger', 'x.6', '4');
SELECT action, recorded_xid = pg_current_xact_id() AS own_transaction
  FROM evidence.audit_log WHERE actor_id = 'forger' ORDER BY action;
COMMIT;

-- The owner's plain INSERT may set the time (imports), the table keeps its shape.
INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES ('2001-02-03 04:05:06.789012+00', 'import', 'x.y')
    RETURNING created_at AT TIME ZONE 'UTC' AS created_at, tenant_id, outcome, metadata;
SELECT s AS statement, test.code(s) AS code FROM (VALUES
    ($$INSERT INTO evidence.audit_log (actor_id, action) VALUES (NULL, 'x')$$),
    ($$INSERT INTO evidence.audit_log (actor_id, action) VALUES ('a', '')$$),
    ($$INSERT INTO evidence.audit_log (actor_id, action, outcome) VALUES ('a', 'x', 'maybe')$$),
    ($$INSERT INTO evidence.audit_log (actor_id, action, created_at) VALUES ('a', 'x', NULL)$$),
    ($$INSERT INTO evidence.audit_log (actor_id, action, source_fingerprint) VALUES ('a', 'x', '192.0.2.7')$$),
    ($$INSERT INTO evidence.audit_log (actor_id, action, source_fingerprint) VALUES ('a', 'x', 'k:' || repeat('A', 64))$$)) AS t (s);

-- C64: append-only, for the owner and for superusers ---------------------------
CREATE TABLE test.log_before AS SELECT * FROM evidence.audit_log;
SELECT s AS statement, test.try(s) AS answer FROM (VALUES
    ($$UPDATE evidence.audit_log SET summary = 'nothing happened' WHERE actor_id = 'alice'$$)) AS t (s);
SELECT s AS statement, test.code(s) AS code FROM (VALUES
    ($$UPDATE evidence.audit_log SET created_at = now() WHERE actor_id = 'alice'$$),
    ($$UPDATE evidence.audit_log SET recorded_xid = '3'$$),
    ($$UPDATE evidence.audit_log SET metadata = metadata$$),
    ($$DELETE FROM evidence.audit_log$$),
    ($$DELETE FROM ONLY evidence.audit_log WHERE actor_id = 'alice'$$),
    ($$WITH gone AS (DELETE FROM evidence.audit_log RETURNING 1) SELECT count(*) FROM gone$$),
    ($$TRUNCATE evidence.audit_log$$),
    ($$TRUNCATE evidence.audit_log RESTART IDENTITY CASCADE$$),
    ($$INSERT INTO evidence.audit_log (id, created_at, actor_id, action)
       SELECT id, created_at, 'x', 'y' FROM evidence.audit_log LIMIT 1
       ON CONFLICT (created_at, id) DO UPDATE SET summary = 'gone'$$),
    ($$MERGE INTO evidence.audit_log AS l USING (SELECT 1) AS o ON l.actor_id = 'alice'
       WHEN MATCHED THEN DELETE$$),
    ($$SET LOCAL session_replication_role = replica; DELETE FROM evidence.audit_log$$),
    ($$SET LOCAL session_replication_role = replica; UPDATE evidence.audit_log SET summary = NULL$$),
    ($$SET LOCAL session_replication_role = replica; TRUNCATE evidence.audit_log$$),
    ($$TRUNCATE evidence.export_event$$),
    ($$UPDATE evidence.redaction_rule SET pattern = 'x'$$),
    ($$DELETE FROM evidence.redaction_rule$$),
    ($$TRUNCATE evidence.redaction_rule$$)) AS t (s);
SELECT count(*) AS changed FROM (
    (TABLE evidence.audit_log EXCEPT TABLE test.log_before)
    UNION ALL
    (TABLE test.log_before EXCEPT TABLE evidence.audit_log)) AS difference;
DROP TABLE test.log_before;

-- The trigger functions are nothing that one can call.
SELECT evidence._refuse_change();

-- S1.45: a source is stored as a keyed fingerprint or not at all ---------------
SET ROLE regress_writer;
SELECT evidence.fingerprint(NULL) IS NULL AS null_stays_null;
RESET ROLE;
ALTER SYSTEM SET pg_evidence.fingerprint_key_file = 'regress_key';
SELECT pg_reload_conf() AS reloaded \gset
\c -
\set key '''umask 077; cat >regress_key'''
SELECT test.try($$SELECT evidence.fingerprint('192.0.2.7')$$) AS no_file;
COPY (SELECT 'k1:0123456789abcdef') TO PROGRAM 'umask 022; cat >regress_key';
SELECT test.try($$SELECT evidence.fingerprint('192.0.2.7')$$) AS others_can_read;
COPY (SELECT '') TO PROGRAM 'rm regress_key; umask 077; cat >regress_key';
SELECT test.try($$SELECT evidence.fingerprint('192.0.2.7')$$) AS empty;
COPY (SELECT 'k1 0123456789abcdef') TO PROGRAM :key;
SELECT test.try($$SELECT evidence.fingerprint('192.0.2.7')$$) AS no_colon;
COPY (SELECT ':0123456789abcdef') TO PROGRAM :key;
SELECT test.code($$SELECT evidence.fingerprint('192.0.2.7')$$) AS no_id;
COPY (SELECT 'k 1:0123456789abcdef') TO PROGRAM :key;
SELECT test.try($$SELECT evidence.fingerprint('192.0.2.7')$$) AS bad_id;
COPY (SELECT 'k1:0123456789abcde') TO PROGRAM :key;
SELECT test.try($$SELECT evidence.fingerprint('192.0.2.7')$$) AS short_key;
COPY (SELECT repeat('k', 65) || ':0123456789abcdef') TO PROGRAM :key;
SELECT test.code($$SELECT evidence.fingerprint('192.0.2.7')$$) AS long_id;
COPY (SELECT 'k1:0123456789abcdef') TO PROGRAM :key;
-- The HMAC was computed elsewhere.
SET ROLE regress_writer;
SELECT evidence.fingerprint('192.0.2.7') = 'k1:9fbed8536e880124770a33603f35e90613c616caa9ce283fe40f7c2975e8bfde' AS right_digest;
SELECT evidence.record_audit_event('user.login', 'bob', source => '192.0.2.7') > 0 AS done;
RESET ROLE;
-- A new key takes effect at once and has its own id.
COPY (SELECT 'k2:fedcba9876543210') TO PROGRAM :key;
SELECT evidence.record_audit_event('user.login', 'bob', source => '192.0.2.7') > 0 AS done;
SELECT source_fingerprint FROM evidence.audit_log WHERE actor_id = 'bob' ORDER BY id;
SELECT count(*) AS rows_with_the_raw_source FROM evidence.audit_log AS l WHERE l::text LIKE '%192.0.2.7%';
-- A bad file does not leave the old key in use.
COPY (SELECT 'rubbish') TO PROGRAM :key;
SELECT test.code($$SELECT evidence.fingerprint('192.0.2.7')$$) AS bad_file;
COPY (SELECT '') TO PROGRAM 'rm regress_key; mkdir regress_key';
SELECT test.try($$SELECT evidence.fingerprint('192.0.2.7')$$) AS a_folder;
COPY (SELECT '') TO PROGRAM 'rmdir regress_key';
ALTER SYSTEM RESET pg_evidence.fingerprint_key_file;
SELECT pg_reload_conf() AS reloaded \gset
\c -

SELECT evidence.revoke_capability('regress_writer', 'writer');
DROP ROLE regress_writer, regress_nobody;
