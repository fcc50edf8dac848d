-- 50_rights.sql: who may do what (design section 5), and that nobody lends
-- another one's rights.
\set VERBOSITY terse
SELECT test.fill('2020-03-01 00:00+00', 3);

CREATE ROLE regress_requester;
CREATE ROLE regress_other_requester;
CREATE ROLE regress_operator;
CREATE ROLE regress_auditor;
CREATE ROLE regress_writer;
CREATE ROLE regress_uploader;
CREATE ROLE regress_nobody;
SELECT count(evidence.grant_capability(('regress_' || c)::regrole, c))
  FROM unnest('{requester,operator,auditor,writer,uploader}'::text[]) AS c;
SELECT evidence.grant_capability('regress_other_requester', 'requester');
GRANT CREATE, USAGE ON SCHEMA test TO PUBLIC;

-- Two READY exports of two requesters, made in this session.
SET ROLE regress_requester;
SELECT evidence.request_audit_export('2020-03-01 00:00+00', '2020-03-02 00:00+00', 'own') AS own \gset
SET ROLE regress_other_requester;
SELECT evidence.request_audit_export('2020-03-01 00:00+00', '2020-03-02 00:00+00', 'foreign') AS foreign \gset
RESET ROLE;
CALL evidence.run_once();
CALL evidence.run_once();
SET ROLE regress_requester;
SELECT evidence.grant_audit_export_download(:'own') AS own_grant \gset
RESET ROLE;
SELECT state, count(*) FROM evidence.audit_export WHERE id IN (:'own', :'foreign') GROUP BY 1;

-- The matrix: every function for every capability, on a foreign export ----------
-- "ok": the right is there, whatever else the call has to say.
CREATE TABLE test.call AS
SELECT row_number() OVER () AS n, name, replace(statement, '$foreign', :'foreign') AS statement FROM (VALUES
    ('request', $$SELECT evidence.request_audit_export('2020-03-01', '2020-03-02', 'matrix')$$),
    ('cancel any', $$SELECT evidence.cancel_audit_export('$foreign', 'matrix')$$),
    ('revoke any', $$SELECT evidence.revoke_audit_export('$foreign', 'matrix')$$),
    ('grant any', $$SELECT evidence.grant_audit_export_download('$foreign')$$),
    ('fetch', $$SELECT evidence.fetch_audit_export(NULL)$$),
    ('verify any', $$SELECT count(*) FROM evidence.verify_audit_export('$foreign')$$),
    ('record', $$SELECT evidence.record_audit_event('a.b', 'c')$$),
    ('fingerprint', $$SELECT evidence.fingerprint(NULL)$$),
    ('add rule', $$SELECT evidence.add_redaction_rule('x', 'y', NULL)$$),
    ('retire rule', $$SELECT evidence.retire_redaction_rule('x', NULL)$$),
    ('run_once', $$CALL evidence.run_once()$$),
    ('ship_pass', $$CALL evidence.ship_pass()$$),
    ('ship_audit_records', $$CALL evidence.ship_audit_records('2020-03-01', NULL, 0)$$),
    ('see shipping', $$SELECT count(*) FROM evidence.audit_delivery$$),
    ('see health', $$SELECT count(*) FROM evidence.queue_health, evidence.metrics$$),
    ('retry', $$SELECT evidence.retry_audit_export('$foreign', 'matrix')$$),
    ('recreate', $$SELECT evidence.recreate_audit_export('$foreign', 'matrix')$$),
    ('freeze', $$SELECT evidence.freeze_audit_export('$foreign', 'matrix')$$),
    ('unfreeze', $$SELECT evidence.unfreeze_audit_export('$foreign', 'matrix')$$),
    ('fail', $$SELECT evidence.fail_audit_export('$foreign', 'matrix')$$),
    ('fill in', $$SELECT evidence.fill_in_audit_export('$foreign', 'b', 'k', 1, 'x', 'matrix')$$),
    ('trace any', $$SELECT count(*) FROM evidence.trace_audit_export('$foreign')$$),
    ('trace download', $$SELECT evidence.trace_download(NULL)$$),
    ('dossier', $$SELECT evidence.audit_export_dossier('$foreign')$$),
    ('recovery report', $$SELECT count(*) FROM evidence.recovery_report('2020-01-01')$$),
    ('duplicates', $$SELECT count(*) FROM evidence.duplicate_exports()$$),
    ('open case', $$SELECT evidence.open_human_case('matrix', 'me', '2999-01-01', 'matrix')$$),
    ('recheck case', $$SELECT evidence.recheck_human_case(-1, '2999-01-01', 'matrix')$$),
    ('close case', $$SELECT evidence.close_human_case(-1, 'matrix')$$),
    ('see cases', $$SELECT count(*) FROM evidence.human_case, evidence.human_queue$$),
    ('adopt', $$SELECT evidence.adopt_instance('matrix')$$),
    ('grant capability', $$SELECT evidence.grant_capability('regress_nobody', 'writer')$$),
    ('revoke capability', $$SELECT evidence.revoke_capability('regress_writer', 'writer')$$),
    ('version', $$SELECT evidence.evidence_version()$$),
    ('see status', $$SELECT 1 / (count(*) FILTER (WHERE id = '$foreign'))::int FROM evidence.audit_export_status$$),
    ('see history', $$SELECT count(*) FROM evidence.export_event$$),
    ('see rules', $$SELECT count(*) FROM evidence.redaction_rule$$),
    ('see moves', $$SELECT count(*) FROM evidence.state_move$$),
    ('see combinations', $$SELECT count(*) FROM evidence.state_combination$$),
    ('begin incarnation', $$SELECT evidence._begin_incarnation()$$)) AS t (name, statement);
GRANT SELECT ON test.call TO PUBLIC;
CREATE FUNCTION test.may(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    code text;
BEGIN
    BEGIN
        EXECUTE statement;
        RAISE EXCEPTION USING ERRCODE = 'TT000';
    EXCEPTION WHEN OTHERS THEN
        code := SQLSTATE;
    END;
    RETURN CASE code WHEN '42501' THEN '-' WHEN '22012' THEN 'hidden' ELSE 'ok' END;
END
$$;
CREATE TABLE test.matrix (role text, n bigint, answer text);
GRANT INSERT ON test.matrix TO PUBLIC;
SET ROLE regress_requester;
INSERT INTO test.matrix SELECT 'requester', n, test.may(statement) FROM test.call;
SET ROLE regress_operator;
INSERT INTO test.matrix SELECT 'operator', n, test.may(statement) FROM test.call;
SET ROLE regress_auditor;
INSERT INTO test.matrix SELECT 'auditor', n, test.may(statement) FROM test.call;
SET ROLE regress_writer;
INSERT INTO test.matrix SELECT 'writer', n, test.may(statement) FROM test.call;
SET ROLE regress_uploader;
INSERT INTO test.matrix SELECT 'uploader', n, test.may(statement) FROM test.call;
SET ROLE regress_nobody;
INSERT INTO test.matrix SELECT 'nobody', n, test.may(statement) FROM test.call;
RESET ROLE;
INSERT INTO test.matrix SELECT 'superuser', n, test.may(statement) FROM test.call;
SELECT c.name, max(answer) FILTER (WHERE role = 'requester') AS requester, max(answer) FILTER (WHERE role = 'operator') AS operator,
       max(answer) FILTER (WHERE role = 'auditor') AS auditor, max(answer) FILTER (WHERE role = 'writer') AS writer,
       max(answer) FILTER (WHERE role = 'uploader') AS uploader, max(answer) FILTER (WHERE role = 'nobody') AS nobody,
       max(answer) FILTER (WHERE role = 'superuser') AS superuser
  FROM test.matrix AS m JOIN test.call AS c USING (n) GROUP BY n, c.name ORDER BY n;

-- Nobody has any privilege on a table or sequence but those that let one look.
SELECT DISTINCT c.relname, a.grantee::regrole, a.privilege_type
  FROM pg_class AS c, aclexplode(c.relacl) AS a
 WHERE c.relnamespace = 'evidence'::regnamespace AND a.grantee <> c.relowner ORDER BY 1, 2, 3;

-- A requester: own exports, nothing of others; one text for unknown and foreign -----
SET ROLE regress_requester;
SELECT id = :'own' AS own, state, purpose, record_count, progress FROM evidence.audit_export_status;
SELECT test.try(format('SELECT evidence.cancel_audit_export(%L, ''x'')', :'foreign')) AS foreign_id;
SELECT bool_and(test.try(format(call, :'foreign')) = test.try(format(call, '00000000-0000-0000-0000-000000000000'))) AS same_answer,
       count(*) AS calls
  FROM (VALUES ('SELECT evidence.cancel_audit_export(%L, ''x'')'), ('SELECT evidence.revoke_audit_export(%L, ''x'')'),
               ('SELECT evidence.grant_audit_export_download(%L)'), ('SELECT evidence.verify_audit_export(%L)')) AS t (call);
SELECT count(*) > 0 AS verified, bool_and(ok) AS all_ok FROM evidence.verify_audit_export(:'own');
SELECT seq, length(data) > 0 AS has_bytes FROM evidence.fetch_audit_export(:'own_grant');
-- The same answer to a grant of another subject, even an operator's, and to none at all.
SET ROLE regress_other_requester;
SELECT test.try(format('SELECT evidence.fetch_audit_export(%L)', :'own_grant')) AS others_grant,
       test.try(format('SELECT evidence.fetch_audit_export(%L)', :'own_grant'))
       = test.try(format('SELECT evidence.fetch_audit_export(%L)', repeat('0', 64))) AS same_answer;
SET ROLE regress_operator;
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'own_grant')) AS operator_with_others_grant;
RESET ROLE;
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'own_grant')) AS superuser_with_others_grant;
-- No message or hint names a foreign export or its requester.
SET ROLE regress_requester;
SELECT test.try(format('SELECT evidence.cancel_audit_export(%L, ''x'')', :'foreign')) ~ (:'foreign' || '|other_requester') AS told;
RESET ROLE;

-- Membership: as pg_has_role(.., 'USAGE'), also for what "own" means ---------------
CREATE ROLE regress_member IN ROLE regress_requester;
CREATE ROLE regress_noinherit NOINHERIT IN ROLE regress_requester;
CREATE ROLE regress_grandchild IN ROLE regress_member;
SET ROLE regress_member;
SELECT count(*) AS sees_own FROM evidence.audit_export_status;
SELECT test.code(format('SELECT evidence.grant_audit_export_download(%L)', :'own')) AS grant_of_the_group;
SET ROLE regress_grandchild;
SELECT test.code(format('SELECT evidence.grant_audit_export_download(%L)', :'own')) AS grant_of_the_group;
SELECT evidence.request_audit_export('2020-03-01', '2020-03-02', 'of the grandchild') AS id \gset
SET ROLE regress_requester;
SELECT test.code(format('SELECT evidence.cancel_audit_export(%L, ''not mine'')', :'id')) AS group_on_members_export,
       (SELECT count(*) FROM evidence.audit_export_status WHERE id = :'id') AS sees_it;
SET ROLE regress_noinherit;
SELECT test.code($$SELECT count(*) FROM evidence.audit_export_status$$) AS status,
       test.code($$SELECT evidence.request_audit_export('2020-03-01', '2020-03-02', 'noinherit')$$) AS request;
RESET ROLE;
-- Also where somebody gave it EXECUTE by hand.
GRANT USAGE ON SCHEMA evidence TO regress_noinherit;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA evidence TO regress_noinherit;
GRANT SELECT ON evidence.audit_export_status TO regress_noinherit;
SET ROLE regress_noinherit;
SELECT (SELECT count(*) FROM evidence.audit_export_status) AS sees,
       test.code($$SELECT evidence.request_audit_export('2020-03-01', '2020-03-02', 'noinherit')$$) AS request,
       test.code(format('SELECT evidence.grant_audit_export_download(%L)', :'own')) AS grant_of_the_group;
RESET ROLE;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA evidence FROM regress_noinherit;
REVOKE ALL ON evidence.audit_export_status FROM regress_noinherit;
REVOKE ALL ON SCHEMA evidence FROM regress_noinherit;
SET ROLE regress_grandchild;
SELECT evidence.cancel_audit_export(:'id', 'done');
RESET ROLE;
-- A group without inheritance keeps its members' EXECUTE out of it; a privilege
-- that somebody gave by hand is no capability.
GRANT USAGE ON SCHEMA evidence TO regress_nobody;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA evidence TO regress_nobody;
GRANT SELECT ON evidence.audit_export_status TO regress_nobody;
SET ROLE regress_nobody;
SELECT test.try($$SELECT evidence.request_audit_export('2020-03-01', '2020-03-02', 'by hand')$$) AS request;
SELECT test.try($$SELECT evidence.record_audit_event('a.b', 'c')$$) AS record;
SELECT test.try($$SELECT evidence.adopt_instance('by hand')$$) AS adopt;
SELECT test.try($$SELECT evidence.grant_capability('regress_nobody', 'operator')$$) AS grant_capability;
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'own_grant')) AS fetch;
SELECT count(*) AS sees FROM evidence.audit_export_status;
RESET ROLE;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA evidence FROM regress_nobody;
REVOKE ALL ON evidence.audit_export_status FROM regress_nobody;
REVOKE ALL ON SCHEMA evidence FROM regress_nobody;

-- Granting and revoking ---------------------------------------------------------------
SELECT s AS call, test.try(s) AS answer FROM (VALUES
    ($$SELECT evidence.grant_capability('regress_nobody', 'owner')$$),
    ($$SELECT evidence.grant_capability('regress_nobody', 'Requester')$$),
    ($$SELECT evidence.grant_capability('regress_nobody', '')$$),
    ($$SELECT evidence.grant_capability('no_such_role', 'writer')$$),
    ($$SELECT evidence.revoke_capability('regress_nobody', 'owner')$$),
    ($$SELECT evidence.revoke_capability('regress_member', 'requester')$$)) AS t (s);
-- Who may do what is audited; granting twice changes nothing.
SELECT evidence.grant_capability('regress_nobody', 'auditor');
SELECT evidence.grant_capability('regress_nobody', 'auditor');
SELECT count(*) FROM evidence.capability WHERE role_name = 'regress_nobody';
SELECT action, actor_id = session_user AS by_us, target_type, target_id, summary FROM evidence.audit_log
 WHERE target_id = 'regress_nobody' ORDER BY id;
-- What another capability still needs stays.
SELECT evidence.grant_capability('regress_nobody', 'operator');
SELECT evidence.revoke_capability('regress_nobody', 'auditor');
SET ROLE regress_nobody;
SELECT count(*) > 0 AS still_sees FROM evidence.audit_export_status;
SELECT count(*) > 0 AS still_verifies FROM evidence.verify_audit_export(:'foreign');
RESET ROLE;
SELECT evidence.revoke_capability('regress_nobody', 'operator');
SELECT count(*) AS privileges_left FROM test.object AS o, aclexplode(o.acl) AS a WHERE a.grantee = 'regress_nobody'::regrole;

-- A revocation counts at once: for granted downloads and for open cursors.
BEGIN;
GRANT SELECT ON evidence.audit_export_status TO regress_requester;
SET LOCAL ROLE regress_requester;
DECLARE bytes CURSOR FOR SELECT (evidence.fetch_audit_export(:'own_grant')).seq;
DECLARE status CURSOR FOR SELECT id FROM evidence.audit_export_status;
RESET ROLE;
SELECT evidence.revoke_capability('regress_requester', 'requester');
SAVEPOINT s;
FETCH 1 FROM bytes;
ROLLBACK TO s;
GRANT USAGE ON SCHEMA evidence TO regress_requester;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA evidence TO regress_requester;
SET LOCAL ROLE regress_requester;
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'own_grant')) AS fetch;
ROLLBACK;

-- A definer's function is judged as its owner, a caller's rights are not lent --------
SET ROLE regress_requester;
CREATE FUNCTION test.wrapped_request() RETURNS uuid LANGUAGE sql SECURITY DEFINER AS
$$SELECT evidence.request_audit_export('2020-03-01', '2020-03-02', 'wrapped')$$;
SET ROLE regress_writer;
CREATE FUNCTION test.wrapped_by_writer() RETURNS uuid LANGUAGE sql SECURITY DEFINER AS
$$SELECT evidence.request_audit_export('2020-03-01', '2020-03-02', 'wrapped')$$;
SELECT test.wrapped_request() AS id \gset
RESET ROLE;
SELECT requested_by, session_role = session_user AS by_session FROM evidence.audit_export WHERE id = :'id';
-- A superuser who calls a writer's function asks with a writer's right.
SELECT test.code('SELECT test.wrapped_by_writer()') AS superuser_through_writer;
SET ROLE regress_operator;
SELECT test.code('SELECT test.wrapped_by_writer()') AS operator_through_writer;
RESET ROLE;
SELECT evidence.cancel_audit_export(:'id', 'done');

-- Security-restricted operations: maintenance that runs somebody's expression does
-- nothing here, whoever runs it ---------------------------------------------------
CREATE ROLE regress_attacker;
SET ROLE regress_attacker;
CREATE FUNCTION test.bait(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM evidence.record_audit_event('bait.taken', 'attacker');
    RETURN $1;
END $$;
CREATE FUNCTION test.bait_grant(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM evidence.grant_capability('regress_attacker', 'operator');
    RETURN $1;
END $$;
CREATE FUNCTION test.bait_request(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM evidence.request_audit_export('2020-03-01', '2020-03-02', 'bait');
    RETURN $1;
END $$;
CREATE TABLE test.trap AS SELECT n AS a FROM generate_series(1, 10) AS n;
RESET ROLE;
-- CREATE INDEX, REINDEX, ANALYZE, VACUUM and REFRESH run by a superuser.
SELECT s AS statement, test.try(s) AS answer FROM (VALUES
    ('CREATE INDEX ON test.trap (test.bait(a))'),
    ('CREATE INDEX ON test.trap (a) WHERE test.bait_grant(a) > 0'),
    ('CREATE INDEX ON test.trap (test.bait_request(a))')) AS t (s);
-- An index that exists: its function was harmless when the index was made.
SET ROLE regress_attacker;
CREATE FUNCTION test.harmless(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN $1; END$$;
CREATE INDEX trap_index ON test.trap (test.harmless(a));
CREATE MATERIALIZED VIEW test.trap_view AS SELECT test.harmless(a) FROM test.trap;
CREATE OR REPLACE FUNCTION test.harmless(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM evidence.grant_capability('regress_attacker', 'operator');
    RETURN $1;
END $$;
RESET ROLE;
SELECT s AS statement, test.try(s) AS answer FROM (VALUES
    ('REINDEX INDEX test.trap_index'), ('REINDEX TABLE test.trap'), ('ANALYZE test.trap'), ('CLUSTER test.trap USING trap_index'),
    ('REFRESH MATERIALIZED VIEW test.trap_view')) AS t (s);
-- The same with functions that the attacker could call with the superuser's right.
SELECT evidence.grant_capability('regress_attacker', 'operator');
SELECT evidence.grant_capability('regress_attacker', 'writer');
SET ROLE regress_attacker;
CREATE OR REPLACE FUNCTION test.harmless(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM evidence.record_audit_event('bait.taken', 'attacker');
    RETURN $1;
END $$;
SELECT test.try('REFRESH MATERIALIZED VIEW test.trap_view') AS by_the_attacker_himself;
RESET ROLE;
SELECT test.try('ANALYZE test.trap') AS analyze, test.try('REINDEX INDEX test.trap_index') AS reindex;
SELECT evidence.revoke_capability('regress_attacker', 'operator');
SELECT evidence.revoke_capability('regress_attacker', 'writer');
SELECT count(*) AS capabilities FROM evidence.capability WHERE role_name = 'regress_attacker';
SELECT count(*) AS baits_taken FROM evidence.audit_log WHERE action = 'bait.taken' OR summary = 'bait';

-- C61: objects of the caller stand in nobody's way -----------------------------------
-- In a new session, so that no statement was prepared before the traps were set.
\c -
SET ROLE regress_requester;
CREATE TEMP TABLE audit_export (id uuid, requested_by text, idempotency_key text, state text, request_digest text);
CREATE TEMP TABLE audit_source (name text, table_name text, columns text[], column_version int, consistency text);
INSERT INTO audit_source VALUES ('audit_log', 'pg_catalog.pg_authid', '{rolname,rolpassword}', 1, 'as-of-request');
CREATE TEMP TABLE capability (role_name text, capability text);
INSERT INTO capability VALUES ('regress_requester', 'operator');
CREATE TEMP TABLE guard (kind text, name text, watermark timestamptz, touched bigint);
CREATE FUNCTION pg_temp.count(text) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (false);
CREATE DOMAIN pg_temp.uuid AS pg_catalog.uuid CHECK (false);
CREATE DOMAIN pg_temp.jsonb AS pg_catalog.jsonb CHECK (false);
CREATE DOMAIN pg_temp.pg_snapshot AS pg_catalog.pg_snapshot CHECK (false);
RESET ROLE;
CREATE SCHEMA regress_trap AUTHORIZATION regress_requester;
SET ROLE regress_requester;
CREATE FUNCTION regress_trap.gen_random_uuid() RETURNS pg_catalog.uuid LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped'; END$$;
CREATE FUNCTION regress_trap.now() RETURNS timestamptz LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped'; END$$;
CREATE FUNCTION regress_trap.equal(pg_catalog.text, pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'trapped'; END$$;
CREATE OPERATOR regress_trap.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = regress_trap.equal);
CREATE OPERATOR regress_trap.<> (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = regress_trap.equal);
CREATE FUNCTION regress_trap.pg_current_snapshot() RETURNS pg_catalog.pg_snapshot LANGUAGE sql AS $$SELECT '1:1:'::pg_catalog.pg_snapshot$$;
SET search_path = regress_trap, pg_temp, pg_catalog, evidence;
SELECT evidence.request_audit_export('2020-03-01', '2020-03-02', 'trapped?') AS id \gset
SELECT id OPERATOR(pg_catalog.=) :'id'::pg_catalog.uuid AS own, state FROM evidence.audit_export_status WHERE state OPERATOR(pg_catalog.=) 'QUEUED';
SELECT evidence.cancel_audit_export(:'foreign', 'as an operator');
SELECT evidence.cancel_audit_export(:'id', 'done');
SELECT count(*) OPERATOR(pg_catalog.>) 0 AS verified FROM evidence.verify_audit_export(:'own') WHERE ok;
RESET search_path;
DROP DOMAIN pg_temp.text, pg_temp.uuid, pg_temp.jsonb, pg_temp.pg_snapshot;
RESET ROLE;
SELECT columns <> '{rolname,rolpassword}' AS right_columns, snapshot::text <> '1:1:' AS right_snapshot FROM evidence.audit_export WHERE id = :'id';
SHOW search_path;

-- C62, S1.45: the grant itself, the token and the key stand nowhere to be read.
SELECT count(*) AS found FROM evidence.download_grant AS g WHERE g::text LIKE '%' || :'own_grant' || '%';
SELECT count(*) AS found FROM evidence.export_event AS v, evidence.audit_export AS e
 WHERE e.id = :'own' AND v.export_id = e.id AND (v::text LIKE '%' || :'own_grant' || '%' OR v::text LIKE '%' || e.archive_token || '%');
SELECT count(*) AS found FROM evidence.audit_log AS l WHERE l::text LIKE '%' || :'own_grant' || '%';
SELECT column_name FROM information_schema.columns
 WHERE table_schema = 'evidence' AND table_name = 'audit_export_status' AND column_name ~ 'token|secret|snapshot|filters|session';

-- Clean up
DROP SCHEMA regress_trap CASCADE;
DROP FUNCTION pg_temp.count;
DROP TABLE pg_temp.audit_export, pg_temp.audit_source, pg_temp.capability, pg_temp.guard;
DROP TABLE test.trap CASCADE;
DROP FUNCTION test.may, test.wrapped_request, test.wrapped_by_writer, test.bait, test.bait_grant, test.bait_request, test.harmless;
DROP TABLE test.matrix, test.call;
SELECT count(evidence.revoke_capability(role_name::regrole, capability)) FROM evidence.capability WHERE role_name LIKE 'regress\_%';
REVOKE CREATE ON SCHEMA test FROM PUBLIC;
DROP ROLE regress_grandchild, regress_member, regress_noinherit, regress_requester, regress_other_requester, regress_operator,
          regress_auditor, regress_writer, regress_uploader, regress_nobody, regress_attacker;
