-- 80_verify.sql: verify_audit_export() sees what was altered since the export,
-- although no statement short of a superuser's tricks can alter it.
\set VERBOSITY terse
INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
SELECT timestamptz '2020-06-01 00:00+00' + n * interval '1 s', 'actor-' || n, 'test.verify',
       md5(n::text) || md5((n + 10000)::text) || md5((n + 20000)::text)
  FROM generate_series(1, 3000) AS n;
SELECT evidence.request_audit_export('2020-06-01 00:00+00', '2020-06-02 00:00+00', 'verify',
                                     columns => '{id,created_at,actor_id,summary}') AS id \gset
SELECT test.code(format('SELECT * FROM evidence.verify_audit_export(%L)', :'id')) AS while_queued;
CALL evidence.run_once();
SELECT check_name, ok,
       regexp_replace(regexp_replace(detail, '[0-9a-f]{64}', '<digest>', 'g'), '\d+ bytes', '<n> bytes') AS detail
  FROM evidence.verify_audit_export(:'id');

-- What is wrong, after a change that is taken back again; an empty answer means
-- that every check was right.
CREATE FUNCTION test.faults(id uuid, change text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    faults text;
BEGIN
    EXECUTE replace(change, '$id', id::text);
    SELECT coalesce(string_agg(check_name, ' '), '') INTO faults FROM evidence.verify_audit_export(id) WHERE NOT ok;
    RAISE EXCEPTION USING ERRCODE = 'TT000';
EXCEPTION
    WHEN SQLSTATE 'TT000' THEN RETURN faults;
    WHEN OTHERS THEN RETURN concat(SQLSTATE, ': ', SQLERRM);
END
$$;
-- Triggers switched off by the superuser: the log ------------------------------------
CREATE FUNCTION test.unguarded(tab text, statement text) RETURNS text LANGUAGE sql AS $$
SELECT format('ALTER TABLE evidence.%I DISABLE TRIGGER USER; %s', tab, statement)
$$;
SELECT s.what, test.faults(:'id', test.unguarded('audit_log', s.change)) AS faults FROM (VALUES
    ('nothing', 'SELECT 1'),
    ('a row deleted', $$DELETE FROM evidence.audit_log WHERE actor_id = 'actor-1500' AND action = 'test.verify'$$),
    ('all rows deleted', $$DELETE FROM evidence.audit_log WHERE action = 'test.verify'$$),
    ('the table emptied', $$TRUNCATE evidence.audit_log$$),
    ('a cell changed', $$UPDATE evidence.audit_log SET actor_id = 'somebody' WHERE actor_id = 'actor-1' AND action = 'test.verify'$$),
    ('a cell emptied', $$UPDATE evidence.audit_log SET summary = NULL WHERE actor_id = 'actor-1' AND action = 'test.verify'$$),
    ('a time changed by 1 us', $$UPDATE evidence.audit_log SET created_at = created_at + interval '1 us' WHERE actor_id = 'actor-1' AND action = 'test.verify'$$),
    ('two rows exchanged', $$UPDATE evidence.audit_log SET actor_id = CASE actor_id WHEN 'actor-1' THEN 'actor-2' ELSE 'actor-1' END
                            WHERE actor_id IN ('actor-1', 'actor-2') AND action = 'test.verify'$$),
    ('a row forged into the past', $$INSERT INTO evidence.audit_log (created_at, actor_id, action, recorded_xid)
                                     SELECT created_at, 'forged', 'test.verify', recorded_xid FROM evidence.audit_log WHERE actor_id = 'actor-1' AND action = 'test.verify'$$),
    ('a row moved out of the snapshot', $$UPDATE evidence.audit_log SET recorded_xid = pg_current_xact_id() WHERE actor_id = 'actor-1' AND action = 'test.verify'$$),
    -- What is not part of the package is not its business.
    ('a column outside the contract', $$UPDATE evidence.audit_log SET metadata = '{"a": 1}', outcome = 'denied' WHERE action = 'test.verify'$$),
    ('a row outside the range', $$DELETE FROM evidence.audit_log WHERE created_at < '2020-06-01 00:00+00'$$)) AS s (what, change);
-- Rows that come later do not belong, whatever time they claim.
SELECT test.faults(:'id', $$INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES ('2020-06-01 12:00+00', 'late', 'test.verify')$$) AS faults_after_a_late_row;

-- The contract and the rules -----------------------------------------------------------
SELECT s.what, test.faults(:'id', test.unguarded(s.tab, s.change)) AS faults FROM (VALUES
    ('purpose', 'audit_export', $$UPDATE evidence.audit_export SET purpose = 'another' WHERE id = '$id'$$),
    ('range', 'audit_export', $$UPDATE evidence.audit_export SET end_at = '2020-06-01 00:10+00' WHERE id = '$id'$$),
    ('filters', 'audit_export', $$UPDATE evidence.audit_export SET filters = '{"outcome": ["denied"]}' WHERE id = '$id'$$),
    ('columns', 'audit_export', $$UPDATE evidence.audit_export SET columns = '{id}' WHERE id = '$id'$$),
    ('snapshot', 'audit_export', $$UPDATE evidence.audit_export SET snapshot = '3:3:' WHERE id = '$id'$$),
    ('count', 'audit_export', $$UPDATE evidence.audit_export SET record_count = record_count + 1 WHERE id = '$id'$$),
    ('digest of records', 'audit_export', $$UPDATE evidence.audit_export SET records_sha256 = repeat('0', 64) WHERE id = '$id'$$),
    ('digest of request', 'audit_export', $$UPDATE evidence.audit_export SET request_digest = repeat('0', 64) WHERE id = '$id'$$),
    ('incarnation', 'audit_export', $$UPDATE evidence.audit_export SET incarnation = gen_random_uuid() WHERE id = '$id'$$),
    ('a rule changed', 'redaction_rule', $$UPDATE evidence.redaction_rule SET pattern = 'zzz' WHERE name = (SELECT min(name) FROM evidence.redaction_rule)$$),
    ('a rule deleted', 'redaction_rule', $$DELETE FROM evidence.redaction_rule WHERE name = (SELECT min(name) FROM evidence.redaction_rule)$$),
    ('a rule planted', 'redaction_rule', $$INSERT INTO evidence.redaction_rule SELECT 'planted', 1, 5, 'actor', '{}', false, false, 'x', 'y'$$)) AS s (what, tab, change);

-- The bytes: each fault is a row with ok = false, so that one call names all of them ----
SELECT s.what, test.faults(:'id', s.change) AS faults FROM (VALUES
    ('one bit of chunk 1', $$UPDATE evidence.archive_chunk SET data = set_bit(data, 1000, 1 - get_bit(data, 1000)) WHERE export_id = '$id' AND seq = 1$$),
    ('chunk and its digest', $$UPDATE evidence.archive_chunk SET data = set_byte(data, 0, 0), sha256 = sha256(set_byte(data, 0, 0)) WHERE export_id = '$id' AND seq = 0$$),
    ('a chunk is gone', $$DELETE FROM evidence.archive_chunk WHERE export_id = '$id' AND seq = 1$$),
    ('all are gone', $$DELETE FROM evidence.archive_chunk WHERE export_id = '$id'$$),
    ('digest of the ledger', $$UPDATE evidence.audit_export SET archive_sha256 = repeat('0', 64) WHERE id = '$id'$$),
    ('a bit and a row', $$ALTER TABLE evidence.audit_log DISABLE TRIGGER USER;
                          DELETE FROM evidence.audit_log WHERE actor_id = 'actor-1' AND action = 'test.verify';
                          UPDATE evidence.archive_chunk SET data = set_bit(data, 1000, 1 - get_bit(data, 1000)) WHERE export_id = '$id' AND seq = 1$$)) AS s (what, change);

-- Settings of the session and of the server do not change the answer (C19).
SELECT test.faults(:'id', $$SET LOCAL datestyle = 'German'; SET LOCAL timezone = 'Asia/Kathmandu'; SET LOCAL bytea_output = 'escape';
                            SET LOCAL extra_float_digits = 0; SET LOCAL enable_indexscan = off; SET LOCAL work_mem = '64kB'$$) AS faults_under_other_settings;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT count(*) FILTER (WHERE NOT ok) AS faults FROM evidence.verify_audit_export(:'id');
COMMIT;

-- After the window the records can still be verified; that the archive is gone is right.
ALTER SYSTEM SET pg_evidence.clock_offset = 86401;
ALTER SYSTEM SET pg_evidence.redaction = off;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT check_name, ok FROM evidence.verify_audit_export(:'id');
BEGIN;
DELETE FROM evidence.archive_chunk WHERE export_id = :'id';
SELECT check_name, ok FROM evidence.verify_audit_export(:'id');
SELECT test.faults(:'id', test.unguarded('audit_log', $$DELETE FROM evidence.audit_log WHERE actor_id = 'actor-1' AND action = 'test.verify'$$)) AS faults;
ROLLBACK;
ALTER SYSTEM RESET pg_evidence.clock_offset;
ALTER SYSTEM RESET pg_evidence.redaction;
SELECT pg_reload_conf() AS reloaded \gset
\c -
-- Of a revoked one as well.
SELECT evidence.revoke_audit_export(:'id', 'end of test');
SELECT count(*) FILTER (WHERE NOT ok) AS faults FROM evidence.verify_audit_export(:'id');

-- Nothing to verify
SELECT evidence.request_audit_export('2020-06-01 00:00+00', '2020-06-02 00:00+00', 'cancelled') AS id \gset
SELECT evidence.cancel_audit_export(:'id', 'end of test');
SELECT s AS call, test.code(s) AS code FROM (VALUES
    ('SELECT * FROM evidence.verify_audit_export(NULL)'),
    ($$SELECT * FROM evidence.verify_audit_export('ffffffff-0000-0000-0000-000000000001')$$)) AS t (s);
SELECT test.try(format('SELECT * FROM evidence.verify_audit_export(%L)', :'id')) AS answer;
DROP FUNCTION test.faults, test.unguarded;
