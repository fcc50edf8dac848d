-- 50_sqlstates.sql: each SQLSTATE of design section 5 is raised by what the
-- design says, with a hint that tells what to do next.
ALTER SYSTEM SET pg_evidence.debug_pause = 'launcher-round';
ALTER SYSTEM SET pg_evidence.max_records = 1;
DO $$ BEGIN PERFORM pg_reload_conf(); END $$;
\c -
SET client_min_messages = error;
-- Two rows where one is allowed.
INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES
    ('2016-01-01 00:00:01+00', 'a', 'b.c'), ('2016-01-01 00:00:02+00', 'a', 'b.c');
SELECT evidence.request_audit_export('2016-01-01 00:00+00', '2016-01-02 00:00+00', 'states') AS id \gset
CALL evidence.run_once();
ALTER SYSTEM RESET pg_evidence.max_records;
DO $$ BEGIN PERFORM pg_reload_conf(); END $$;
\c -
SET client_min_messages = error;
SELECT plan(26);

CREATE SCHEMA sqlstates;
CREATE FUNCTION sqlstates.code_and_hint(statement text, OUT code text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    code := 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
END
$$;
-- One test per condition: the code, and a hint in whole sentences.
CREATE FUNCTION sqlstates.raises(statement text, code text, what text) RETURNS text LANGUAGE sql AS $$
SELECT is(concat(r.code, CASE WHEN r.hint ~ '^[A-Z"].*[.]$' THEN ' with a hint' ELSE ' without a hint: ' || r.hint END),
          raises.code || ' with a hint', what)
  FROM sqlstates.code_and_hint(statement) AS r
$$;
INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES ('2017-01-01 00:00:01+00', 'a', 'b.c');
SELECT evidence.request_audit_export('2017-01-01 00:00+00', '2017-01-02 00:00+00', 'states', 'states') AS ready \gset
CALL evidence.run_once();
SELECT evidence.request_audit_export('2017-01-01 00:00+00', '2017-01-02 00:00+00', 'states') AS queued \gset
SELECT evidence.grant_audit_export_download(:'ready') AS granted \gset

SELECT sqlstates.raises($$SELECT evidence.request_audit_export(NULL, '2017-01-02', 'x')$$, '22023', '22023: bad argument of a request');
SELECT sqlstates.raises($$SELECT evidence.request_audit_export('2017-01-01', '2017-01-02', '')$$, '22023', '22023: no purpose');
SELECT sqlstates.raises($$SELECT evidence.record_audit_event('', 'x')$$, '22023', '22023: bad argument of an audit row');
SELECT sqlstates.raises($$SELECT evidence.add_redaction_rule('x', '(', 'y')$$, '22023', '22023: bad pattern');
SELECT sqlstates.raises($$SELECT evidence.grant_capability('postgres', 'x')$$, '22023', '22023: bad capability');
SELECT sqlstates.raises($$SELECT evidence.fetch_audit_export('x', -1)$$, '22023', '22023: bad number of a chunk');
SELECT sqlstates.raises($$SELECT evidence.cancel_audit_export(NULL, 'x')$$, '22023', '22023: no id');
SELECT sqlstates.raises($$SELECT evidence.cancel_audit_export(gen_random_uuid(), 'x')$$, '42501', '42501: unknown export');
SELECT sqlstates.raises($$SELECT evidence.fetch_audit_export('x')$$, '42501', '42501: unknown grant');
CREATE ROLE sqlstates_nobody;
GRANT USAGE ON SCHEMA evidence, sqlstates TO sqlstates_nobody;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA evidence TO sqlstates_nobody;
SET ROLE sqlstates_nobody;
SELECT code AS no_right, hint AS no_right_hint FROM sqlstates.code_and_hint($$SELECT evidence.record_audit_event('a.b', 'c')$$) \gset
RESET ROLE;
SELECT is(:'no_right'::text, '42501', '42501: no capability');
SELECT matches(:'no_right_hint'::text, 'grant_capability', '... and the hint names the way to get it');
DROP OWNED BY sqlstates_nobody;
DROP ROLE sqlstates_nobody;
SELECT sqlstates.raises($$CALL evidence.run_once()$$, '25001', '25001: run_once() inside a function');
SELECT count(evidence.request_audit_export('2017-01-01 00:00+00', '2017-01-02 00:00+00', 'fill')) AS filled FROM generate_series(1, 2) \gset
SELECT sqlstates.raises($$SELECT evidence.request_audit_export('2017-01-01', '2017-01-02', 'x')$$, '53400', '53400: quota');
SELECT count(evidence.cancel_audit_export(id, 'test')) AS cancelled FROM evidence.audit_export WHERE purpose = 'fill' \gset
SELECT sqlstates.raises($$SELECT evidence.fingerprint('x')$$, '55000', '55000: no key file');
SELECT sqlstates.raises($$SELECT evidence.adopt_instance('x')$$, '55000', '55000: nothing to adopt');
SELECT sqlstates.raises(format('SELECT evidence.revoke_audit_export(%L, ''x'')', :'queued'), '55000', '55000: wrong state to revoke');
SELECT sqlstates.raises(format('SELECT evidence.cancel_audit_export(%L, ''x'')', :'ready'), '55000', '55000: wrong state to cancel');
SELECT sqlstates.raises($$UPDATE evidence.audit_log SET summary = 'x'$$, '55000', '55000: append-only');
SELECT sqlstates.raises(format('SELECT evidence.fetch_audit_export(evidence.grant_audit_export_download(%L))', :'ready'), '55000', '55000: grant not committed yet');
SELECT sqlstates.raises($$SELECT evidence.request_audit_export('2017-01-01', '2017-01-02', 'other', 'states')$$, 'PE001', 'PE001: idempotency conflict');
SELECT sqlstates.raises(format('SELECT evidence.grant_audit_export_download(%L)', :'queued'), 'PE005', 'PE005: not ready yet, at the grant');
SELECT sqlstates.raises(format('SELECT * FROM evidence.verify_audit_export(%L)', :'queued'), 'PE005', 'PE005: not ready yet, at the verification');
BEGIN;
UPDATE evidence.archive_chunk SET data = '\x00' WHERE export_id = :'ready';
SELECT sqlstates.raises(format('SELECT evidence.fetch_audit_export(%L)', :'granted'), 'PE006', 'PE006: other bytes');
ROLLBACK;
SELECT evidence.revoke_audit_export(:'ready', 'test') AS state \gset
SELECT sqlstates.raises(format('SELECT evidence.fetch_audit_export(%L)', :'granted'), 'PE003', 'PE003: revoked');

-- PE002 is the failure of an attempt: the export says so.
SELECT is(error_code, 'PE002', 'PE002: too many rows') FROM evidence.audit_export WHERE id = :'id';
SELECT matches(error_hint, '^[A-Z].*[.]$', '... with a hint') FROM evidence.audit_export WHERE id = :'id';

SELECT * FROM finish();
DROP SCHEMA sqlstates CASCADE;
