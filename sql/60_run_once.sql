-- 60_run_once.sql: CALL run_once() carries a request out without any worker.
\set VERBOSITY terse
-- No exporter is wanted; what is made here is made by this session.
ALTER SYSTEM SET pg_evidence.max_exporters = 0;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT test.fill('2020-04-01 00:00+00', 10);
CREATE VIEW test.facts AS
SELECT e.purpose, e.state AS export, j.state AS job, o.state AS event, j.attempts, j.deferrals, e.version, e.record_count,
       e.error_code
  FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id
  JOIN evidence.outbox_event AS o ON o.job_id = j.id
 WHERE e.start_at = '2020-04-01 00:00+00' ORDER BY e.requested_at;

-- Nothing to do is no error ----------------------------------------------------------
CALL evidence.run_once();

-- From the request to READY (design 3) ---------------------------------------------
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'made by hand') AS id \gset
TABLE test.facts;
SELECT state, attempt, progress, rows_total, rows_done, record_count FROM evidence.audit_export_status WHERE id = :'id';
CALL evidence.run_once();
TABLE test.facts;
\x on
SELECT state, attempt, progress, record_count, archive_bytes > 0 AS has_bytes, archive_sha256 ~ '^[0-9a-f]{64}$' AS has_digest,
       expires_at - ready_at AS download_window, ready_at > requested_at AS later, error_code, error_message, error_hint
  FROM evidence.audit_export_status WHERE id = :'id';
SELECT a.token = e.archive_token AS selected, a.kind, a.generation, a.outcome, a.pid = pg_backend_pid() AS this_session,
       a.lease_until > a.started_at AS has_lease, a.ended_at >= a.started_at AS has_end
  FROM evidence.attempt AS a JOIN evidence.audit_export AS e ON e.id = a.export_id WHERE e.id = :'id';
\x off
SELECT event, from_state, to_state, version, actor = current_user AS by_owner, attempt IS NOT NULL AS attempt, reason, detail - '{job,digest,bytes,sha256}'::text[] AS detail
  FROM evidence.export_event WHERE export_id = :'id' ORDER BY id;
-- The ledger's digests are those of the bytes, and the archive is a ZIP.
SELECT e.archive_sha256 = encode(sha256(string_agg(c.data, ''::bytea ORDER BY c.seq)), 'hex') AS archive_digest,
       e.archive_bytes = sum(length(c.data)) AS archive_size, e.archive_chunks = count(*) AS chunks,
       e.chunks_sha256 = encode(sha256(string_agg(c.sha256, ''::bytea ORDER BY c.seq)), 'hex') AS chunks_digest,
       bool_and(c.sha256 = sha256(c.data)) AS each_chunk, substr((array_agg(c.data ORDER BY c.seq))[1], 1, 4) = '\x504b0304' AS zip
  FROM evidence.audit_export AS e JOIN evidence.archive_chunk AS c ON c.attempt_token = e.archive_token
 WHERE e.id = :'id' GROUP BY e.id;
-- One archive per export: a second round makes none.
CALL evidence.run_once();
SELECT count(DISTINCT attempt_token) AS archives FROM evidence.archive_chunk WHERE export_id = :'id';
-- It left no lock and no other user behind.
SELECT count(*) AS advisory_locks FROM pg_locks WHERE locktype = 'advisory';
SELECT current_user = session_user AS same_user, current_setting('transaction_isolation') AS level,
       current_setting('transaction_read_only') AS read_only, current_setting('search_path') AS search_path;

-- One job a round, oldest first (C41) ------------------------------------------------
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', p) IS NOT NULL AS requested
  FROM unnest('{first,second,third}'::text[]) AS p;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_hashagg = off;
SET enable_material = off;
CALL evidence.run_once();
SELECT purpose, export, job, event FROM test.facts WHERE purpose IN ('first', 'second', 'third');
CALL evidence.run_once();
CALL evidence.run_once();
SELECT purpose, export, job, event FROM test.facts WHERE purpose IN ('first', 'second', 'third');
RESET ALL;

-- Where it cannot run (25001), each time without doing anything ------------------------
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'waits') AS id \gset
\set VERBOSITY default
BEGIN;
CALL evidence.run_once();
ROLLBACK;
\set VERBOSITY terse
CREATE FUNCTION test.in_a_function() RETURNS void LANGUAGE plpgsql AS $$BEGIN CALL evidence.run_once(); END$$;
SELECT test.in_a_function();
DO $$
BEGIN
    BEGIN
        CALL evidence.run_once();
    EXCEPTION WHEN OTHERS THEN
        RAISE NOTICE 'refused in a subtransaction: %', SQLSTATE;
    END;
END
$$;
BEGIN \; CALL evidence.run_once() \; COMMIT;
ROLLBACK;
SELECT 1 AS two_statements \; CALL evidence.run_once();
CREATE PROCEDURE test.with_set() LANGUAGE plpgsql SET search_path = pg_catalog AS $$BEGIN CALL evidence.run_once(); END$$;
CALL test.with_set();
CREATE PROCEDURE test.definer() LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN CALL evidence.run_once(); END$$;
CALL test.definer();
SELECT export, job, event FROM test.facts WHERE purpose = 'waits';
-- A plain procedure and DO may commit, so there it runs.
CREATE PROCEDURE test.plain() LANGUAGE plpgsql AS $$BEGIN CALL evidence.run_once(); END$$;
CALL test.plain();
SELECT export, job, event FROM test.facts WHERE purpose = 'waits';
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'in DO') IS NOT NULL AS requested;
DO $$BEGIN CALL evidence.run_once(); END$$;
SELECT export, job, event FROM test.facts WHERE purpose = 'in DO';
-- At another default level the rounds are right as well, and the level stays.
SET default_transaction_isolation = 'serializable';
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'serializable') IS NOT NULL AS requested;
CALL evidence.run_once();
SELECT export, job, event FROM test.facts WHERE purpose = 'serializable';
SHOW transaction_isolation;
SET default_transaction_isolation = 'repeatable read';
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'repeatable read') IS NOT NULL AS requested;
CALL evidence.run_once();
SELECT export, job, event FROM test.facts WHERE purpose = 'repeatable read';
RESET default_transaction_isolation;
SET default_transaction_read_only = on;
CALL evidence.run_once();
SHOW transaction_read_only;
RESET default_transaction_read_only;

-- S1.4, C40: too many rows is a definite failure with the real count, never a cut ------
ALTER SYSTEM SET pg_evidence.max_records = 10;
SELECT pg_reload_conf() AS reloaded \gset
\c -
-- The warning of a failed attempt names the export, whose id is random.
SET client_min_messages = error;
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'exactly the limit') AS id \gset
CALL evidence.run_once();
SELECT test.fill('2020-04-01 12:00+00', 1);
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'one too many') AS id \gset
CALL evidence.run_once();
SELECT * FROM test.facts WHERE purpose IN ('exactly the limit', 'one too many');
SELECT state, record_count, error_code, error_message, error_hint, archive_bytes FROM evidence.audit_export_status WHERE id = :'id';
SELECT count(*) AS chunks FROM evidence.archive_chunk WHERE export_id = :'id';
SELECT event, from_state, to_state, reason FROM evidence.export_event WHERE export_id = :'id' ORDER BY id;
SELECT outcome, error_code FROM evidence.attempt WHERE export_id = :'id';
-- It is final: no further round tries it.
CALL evidence.run_once();
SELECT attempts FROM test.facts WHERE purpose = 'one too many';
-- A failed one takes no place of the quota.
SELECT count(evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', p)) AS requested FROM unnest('{a,b,c}'::text[]) AS p;
SELECT count(evidence.cancel_audit_export(id, 'tried')) AS cancelled FROM evidence.audit_export WHERE state = 'QUEUED';
ALTER SYSTEM RESET pg_evidence.max_records;
SELECT pg_reload_conf() AS reloaded \gset
\c -

-- A transient failure: tried again after a growing pause, and at last FAILED -----------
SET client_min_messages = error;
-- A trigger of the superuser stands for a disk that is full.
CREATE FUNCTION test.disk_full() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not write: password=hunter2hunter2' USING ERRCODE = 'disk_full', HINT = 'Make room, then log in with password=hunter2hunter2.';
END
$$;
CREATE TRIGGER disk_full BEFORE INSERT ON evidence.archive_chunk FOR EACH ROW EXECUTE FUNCTION test.disk_full();
CREATE VIEW test.pause AS
SELECT e.purpose, j.state, j.attempts, j.error_code, e.error_code AS export_code,
       extract(epoch FROM j.next_attempt_at - a.ended_at) AS seconds
  FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id
  JOIN LATERAL (SELECT ended_at FROM evidence.attempt WHERE job_id = j.id ORDER BY started_at DESC LIMIT 1) AS a ON true;
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'disk full') AS id \gset
CALL evidence.run_once();
SELECT state, attempts, error_code, export_code, seconds BETWEEN 3.75 AND 6.25 AS pause_of_5_s FROM test.pause WHERE purpose = 'disk full';
-- Not before its time.
CALL evidence.run_once();
SELECT attempts FROM test.pause WHERE purpose = 'disk full';
UPDATE evidence.background_job SET next_attempt_at = evidence._now() WHERE export_id = :'id';
CALL evidence.run_once();
SELECT state, attempts, error_code, seconds BETWEEN 7.5 AND 12.5 AS pause_of_10_s FROM test.pause WHERE purpose = 'disk full';
UPDATE evidence.background_job SET next_attempt_at = evidence._now() WHERE export_id = :'id';
CALL evidence.run_once();
SELECT * FROM test.facts WHERE purpose = 'disk full';
-- What is kept of the message is redacted (S1.11, C33).
SELECT state, error_code, error_message, error_hint FROM evidence.audit_export_status WHERE id = :'id';
SELECT event, from_state, to_state, reason FROM evidence.export_event WHERE export_id = :'id' ORDER BY id;
SELECT count(*) AS attempts, count(*) FILTER (WHERE outcome = 'failed' AND error_code = '53100') AS failed FROM evidence.attempt WHERE export_id = :'id';
SELECT count(*) AS chunks FROM evidence.archive_chunk WHERE export_id = :'id';
SELECT count(*) AS found FROM evidence.audit_export AS e, evidence.export_event AS v
 WHERE concat(e::text, v::text) LIKE '%hunter2%';
-- One that recovers forgets its error.
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'recovers') AS id \gset
CALL evidence.run_once();
DROP TRIGGER disk_full ON evidence.archive_chunk;
UPDATE evidence.background_job SET next_attempt_at = evidence._now() WHERE export_id = :'id';
CALL evidence.run_once();
SELECT * FROM test.facts WHERE purpose = 'recovers';

-- A deferral is given back without counting as an attempt (S1.33).
CREATE FUNCTION test.busy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'busy' USING ERRCODE = 'lock_not_available';
END
$$;
CREATE TRIGGER busy BEFORE INSERT ON evidence.archive_chunk FOR EACH ROW EXECUTE FUNCTION test.busy();
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'given back') AS id \gset
CALL evidence.run_once();
SELECT purpose, export, job, event, attempts, deferrals FROM test.facts WHERE purpose = 'given back';
SELECT event, from_state, to_state, reason FROM evidence.export_event WHERE export_id = :'id' ORDER BY id;
DROP TRIGGER busy ON evidence.archive_chunk;
UPDATE evidence.background_job SET next_attempt_at = evidence._now() WHERE export_id = :'id';
CALL evidence.run_once();
SELECT purpose, export, job, event, attempts, deferrals FROM test.facts WHERE purpose = 'given back';

-- A cancelled promise is closed and never carried out ----------------------------------
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'cancelled before') AS id \gset
SELECT evidence.cancel_audit_export(:'id', 'changed my mind');
CALL evidence.run_once();
SELECT purpose, export, job, event, attempts FROM test.facts WHERE purpose = 'cancelled before';

-- S1.62: an export whose requester is gone is made all the same.
CREATE ROLE regress_leaver;
SELECT evidence.grant_capability('regress_leaver', 'requester');
SET ROLE regress_leaver;
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'of a leaver') AS id \gset
RESET ROLE;
SELECT evidence.revoke_capability('regress_leaver', 'requester');
DROP ROLE regress_leaver;
CALL evidence.run_once();
SELECT purpose, export, job, event FROM test.facts WHERE purpose = 'of a leaver';
SELECT requested_by FROM evidence.audit_export WHERE id = :'id';
-- C63: one who is there but has lost the right gets nothing made.
CREATE ROLE regress_loser;
SELECT evidence.grant_capability('regress_loser', 'requester');
SET ROLE regress_loser;
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'of a loser') AS id \gset
RESET ROLE;
SELECT evidence.revoke_capability('regress_loser', 'requester');
CALL evidence.run_once();
SELECT purpose, export, job, event, error_code FROM test.facts WHERE purpose = 'of a loser';
SELECT error_message, error_hint FROM evidence.audit_export_status WHERE id = :'id';
DROP ROLE regress_loser;

-- The right to run it is an operator's.
CREATE ROLE regress_operator;
SELECT evidence.grant_capability('regress_operator', 'operator');
SELECT evidence.request_audit_export('2020-04-01 00:00+00', '2020-04-02 00:00+00', 'by an operator') IS NOT NULL AS requested;
SET ROLE regress_operator;
CALL evidence.run_once();
SELECT current_user;
RESET ROLE;
SELECT purpose, export, job, event FROM test.facts WHERE purpose = 'by an operator';
SELECT evidence.revoke_capability('regress_operator', 'operator');
DROP ROLE regress_operator;

-- Every fact of this file is in a legal combination.
SELECT count(*) AS illegal FROM test.facts AS f
 WHERE NOT EXISTS (SELECT FROM evidence.state_combination AS c WHERE (c.export, c.job, c.event) = (f.export, f.job, f.event));
DROP VIEW test.facts, test.pause;
DROP FUNCTION test.in_a_function, test.disk_full, test.busy;
DROP PROCEDURE test.with_set, test.definer, test.plain;
ALTER SYSTEM RESET pg_evidence.max_exporters;
SELECT pg_reload_conf() AS reloaded \gset
