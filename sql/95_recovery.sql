-- 95_recovery.sql: what an operator does by hand after a failure.
\set VERBOSITY terse
\set SHOW_CONTEXT never
SET timezone = 'UTC';
CREATE ROLE regress_repairer;
CREATE ROLE regress_asker;
SELECT evidence.grant_capability('regress_repairer', 'operator');
SELECT evidence.grant_capability('regress_asker', 'requester');
SELECT test.fill('2018-05-01 00:00+00', 5);
CREATE VIEW test.generations AS
SELECT e.purpose, e.state AS export, j.state AS job, e.generation, o.generation AS event_of, o.state AS event, j.attempts,
       e.version, e.record_count, e.error_code
  FROM evidence.audit_export AS e JOIN evidence.background_job AS j ON j.export_id = e.id
  JOIN evidence.outbox_event AS o ON o.job_id = j.id AND o.kind = 'audit_export.generate'
 WHERE e.start_at = '2018-05-01 00:00+00' ORDER BY e.id, o.generation;
GRANT USAGE ON SCHEMA test TO regress_repairer, regress_asker;

-- A retry: the same export, the next generation (S3.26, S3.28) ------------------------
ALTER SYSTEM SET pg_evidence.max_records = 3;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET ROLE regress_asker;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'retried') AS id \gset
RESET ROLE;
-- Its warning names the export.
SET client_min_messages = error;
CALL evidence.run_once();
RESET client_min_messages;
TABLE test.generations;
ALTER SYSTEM RESET pg_evidence.max_records;
SELECT pg_reload_conf() AS reloaded \gset
\c -
-- What commits between the request and the retry does not belong.
SELECT test.fill('2018-05-01 12:00+00', 2);
SET ROLE regress_asker;
SELECT test.code(format('SELECT evidence.retry_audit_export(%L, ''mine'')', :'id')) AS by_the_requester;
SET ROLE regress_repairer;
SELECT evidence.retry_audit_export(:'id', 'the limit was too low, password=Zz9Yy8Xx7Ww6');
SELECT test.try(format('SELECT evidence.retry_audit_export(%L, ''again'')', :'id')) AS twice;
RESET ROLE;
TABLE test.generations;
CALL evidence.run_once();
TABLE test.generations;
SELECT event, from_state, to_state, version, actor = 'regress_repairer' AS by_operator, reason, detail - '{job,digest,bytes,sha256}'::text[] AS detail
  FROM evidence.export_event WHERE export_id = :'id' ORDER BY id;
SELECT action, actor_id, summary FROM evidence.audit_log WHERE target_id = :'id' ORDER BY id;
SELECT check_name, ok FROM evidence.verify_audit_export(:'id');
SELECT generation, outcome FROM evidence.attempt WHERE export_id = :'id' ORDER BY started_at;
SELECT test.try(format('SELECT evidence.retry_audit_export(%L, ''why'')', :'id')) AS of_a_ready_one;

-- An event of the first generation that was given up stays so.
BEGIN;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'dead') AS dead \gset
UPDATE evidence.outbox_event SET state = 'DEAD', version = version + 1, settled_at = evidence._now() WHERE export_id = :'dead';
UPDATE evidence.audit_export SET state = 'FAILED', version = version + 1, failed_at = evidence._now(), error_code = '58030' WHERE id = :'dead';
UPDATE evidence.background_job SET state = 'FAILED', version = version + 1, finished_at = evidence._now() WHERE export_id = :'dead';
SELECT evidence.retry_audit_export(:'dead', 'why');
SELECT generation, state, reason FROM evidence.outbox_event WHERE export_id = :'dead' ORDER BY generation;
SELECT test.code(format('SELECT evidence.requeue_outbox_event(%s, ''why'')', min(id))) AS requeue
  FROM evidence.outbox_event WHERE export_id = :'dead';
ROLLBACK;

-- A recreation: another export with the same contract (S3.76) ---------------------------
SELECT test.try(format('SELECT evidence.recreate_audit_export(%L, ''why'')', :'id')) AS of_a_ready_one;
SELECT evidence.revoke_audit_export(:'id', 'wrong reader');
SET ROLE regress_asker;
SELECT test.code(format('SELECT evidence.recreate_audit_export(%L, ''mine'')', :'id')) AS by_the_requester;
SET ROLE regress_repairer;
SELECT evidence.recreate_audit_export(:'id', 'needed after all') AS again \gset
SELECT test.try(format('SELECT evidence.recreate_audit_export(%L, ''why'')', :'id')) ~ ('already.*' || :'again' || '.*QUEUED') AS only_one;
SELECT test.try(format('SELECT evidence.recreate_audit_export(%L, ''why'')', :'again')) AS of_an_unfinished_one;
RESET ROLE;
CALL evidence.run_once();
TABLE test.generations;
SELECT n.recreated_from = o.id AS linked, n.records_sha256 = o.records_sha256 AS same_records, n.record_count,
       n.archive_sha256 <> o.archive_sha256 AS other_archive, n.request_digest = o.request_digest AS same_request,
       n.snapshot::text = o.snapshot::text AND n.request_xid = o.request_xid AND n.snapshot_at = o.snapshot_at AS same_snapshot,
       n.requested_by, n.requested_at = o.requested_at AS same_time, n.idempotency_key
  FROM evidence.audit_export AS n, evidence.audit_export AS o WHERE n.id = :'again' AND o.id = :'id';
SELECT export_id = :'again' AS of_the_new_one, event, from_state, to_state, actor, reason, (detail ->> 'to') = :'again' AS to, (detail ->> 'from') = :'id' AS from
  FROM evidence.export_event WHERE event = 'recreated' AND export_id IN (:'id', :'again') ORDER BY 1;
SELECT action, actor_id, target_id = :'again' AS of_the_new_one, summary FROM evidence.audit_log WHERE action = 'audit_export.recreate';
-- The requester sees and takes it as any other.
SET ROLE regress_asker;
SELECT state, record_count FROM evidence.audit_export_status WHERE id = :'again';
SELECT length(evidence.grant_audit_export_download(:'again')) AS granted;
RESET ROLE;
-- Once it has gone, another may be made.
SELECT evidence.revoke_audit_export(:'again', 'gone as well');
BEGIN;
SELECT evidence.recreate_audit_export(:'id', 'a third') IS NOT NULL AS recreated;
ROLLBACK;

-- Both are judged like a request -------------------------------------------------------
SET timezone = 'UTC';
-- The rows are gone: refused with the time, and not answered with fewer.
BEGIN;
UPDATE evidence.guard SET watermark = '2018-05-01 00:00:00.000001+00' WHERE kind = 'source' AND name = 'audit_log';
SELECT test.try(format('SELECT evidence.recreate_audit_export(%L, ''why'')', :'id')) AS retired;
UPDATE evidence.guard SET watermark = '2018-05-01 00:00:00+00' WHERE kind = 'source' AND name = 'audit_log';
SELECT test.code(format('SELECT evidence.recreate_audit_export(%L, ''why'')', :'id')) AS all_there;
ROLLBACK;
-- The quota is the requester's, not the operator's.
SHOW pg_evidence.max_active_per_requester;
ALTER SYSTEM SET pg_evidence.max_active_per_requester = 1;
SELECT pg_reload_conf() AS reloaded \gset
\c -
BEGIN;
SET LOCAL ROLE regress_asker;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'another') IS NOT NULL AS requested;
SET LOCAL ROLE regress_repairer;
SELECT test.try(format('SELECT evidence.recreate_audit_export(%L, ''why'')', :'id')) AS quota;
ROLLBACK;
ALTER SYSTEM SET pg_evidence.max_active_per_requester = 100;
SELECT pg_reload_conf() AS reloaded \gset
\c -
-- A contract of an earlier life of the ledger.
BEGIN;
SET LOCAL session_replication_role = replica;
ALTER TABLE evidence.audit_export DISABLE TRIGGER guard;
UPDATE evidence.audit_export SET incarnation = gen_random_uuid() WHERE id = :'id';
SELECT test.try(format('SELECT evidence.recreate_audit_export(%L, ''why'')', :'id')) AS earlier_life;
ROLLBACK;
SELECT s AS call, test.try(s) AS answer FROM (VALUES
    ($$SELECT evidence.retry_audit_export(NULL, 'why')$$),
    ($$SELECT evidence.retry_audit_export('ffffffff-0000-0000-0000-000000000001', 'why')$$),
    ($$SELECT evidence.retry_audit_export('ffffffff-0000-0000-0000-000000000001', ' ')$$),
    ($$SELECT evidence.recreate_audit_export(NULL, 'why')$$),
    ($$SELECT evidence.recreate_audit_export('ffffffff-0000-0000-0000-000000000001', 'why')$$),
    ($$SELECT evidence.recreate_audit_export('ffffffff-0000-0000-0000-000000000001', NULL)$$)) AS t (s);
