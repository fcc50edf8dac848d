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
 WHERE e.start_at = '2018-05-01 00:00+00' ORDER BY e.requested_at, e.recreated_from IS NOT NULL, o.generation;
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

-- A freeze stops downloads, also those under way (S3.26, S3.95) -------------------------
SET ROLE regress_asker;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'frozen, key=AKIAIOSFODNN7EXAMPLE') AS cold \gset
RESET ROLE;
CALL evidence.run_once();
SET ROLE regress_asker;
SELECT evidence.grant_audit_export_download(:'cold', 'before') AS "grant" \gset
SELECT count(*) AS chunks FROM evidence.fetch_audit_export(:'grant');
SELECT test.code(format('SELECT evidence.freeze_audit_export(%L, ''mine'')', :'cold')) AS by_the_requester;
SET ROLE regress_repairer;
SELECT evidence.freeze_audit_export(:'cold', 'the digest is doubted');
SELECT evidence.freeze_audit_export(:'cold', 'twice changes nothing');
SET ROLE regress_asker;
SELECT test.try(format('SELECT evidence.fetch_audit_export(%L)', :'grant')) AS granted_before,
       test.code(format('SELECT evidence.grant_audit_export_download(%L)', :'cold')) AS granted_now;
SELECT state FROM evidence.audit_export_status WHERE id = :'cold';
RESET ROLE;
SELECT rule, scope, subject = :'cold' AS subject, severity, action, detail, closed_at FROM evidence.finding WHERE export_id = :'cold';
-- Another finding keeps the downloads stopped.
INSERT INTO evidence.finding (rule, scope, subject, export_id, severity, action, found_at, seen_at)
VALUES ('object_differs', 'bucket', 'key', :'cold', 'high', 'record', evidence._now(), evidence._now());
SET ROLE regress_repairer;
SELECT evidence.unfreeze_audit_export(:'cold', 'the digest is right') AS others;
SELECT test.try(format('SELECT evidence.unfreeze_audit_export(%L, ''again'')', :'cold')) AS twice;
SET ROLE regress_asker;
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'grant')) AS still_stopped;
RESET ROLE;
UPDATE evidence.finding SET closed_at = evidence._now(), closed_by = 'test' WHERE export_id = :'cold' AND rule = 'object_differs';
SET ROLE regress_asker;
SELECT count(*) AS chunks FROM evidence.fetch_audit_export(:'grant');
RESET ROLE;
SELECT event, actor, reason FROM evidence.export_event WHERE export_id = :'cold' AND event LIKE '%frozen' ORDER BY id;
SELECT action, actor_id, summary FROM evidence.audit_log WHERE target_id = :'cold' AND action LIKE '%freeze' ORDER BY id;

-- Failing an export from each unfinished state ------------------------------------------
-- Waiting:
SET ROLE regress_asker;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'failed by hand') AS stuck \gset
SET ROLE regress_repairer;
SELECT evidence.fail_audit_export(:'stuck', 'not now');
SELECT test.try(format('SELECT evidence.fail_audit_export(%L, ''why'')', :'stuck')) AS twice,
       test.try(format('SELECT evidence.fail_audit_export(%L, ''why'')', :'cold')) AS of_a_ready_one;
SELECT evidence.retry_audit_export(:'stuck', 'now');
RESET ROLE;
-- Running: the attempt of a worker that stands still ends with it, so a retry can be
-- claimed at once, and the worker has lost its lease.
UPDATE evidence.outbox_event SET state = 'DELIVERED', version = version + 1, settled_at = evidence._now() WHERE export_id = :'stuck' AND state = 'PENDING';
UPDATE evidence.background_job SET state = 'RUNNING', version = version + 1, attempt_token = md5('still')::uuid, attempts = 1 WHERE export_id = :'stuck';
UPDATE evidence.audit_export SET state = 'PROCESSING', version = version + 1, attempt_token = md5('still')::uuid WHERE id = :'stuck';
INSERT INTO evidence.attempt (token, job_id, export_id, generation, kind, boot_id, pid, started_at, lease_until)
SELECT md5('still')::uuid, j.id, :'stuck', 2, 'exporter', (SELECT max(boot_id) FROM evidence.attempt), 1, evidence._now(), evidence._now() + interval '1 hour'
  FROM evidence.background_job AS j WHERE j.export_id = :'stuck';
SET ROLE regress_repairer;
SELECT evidence.fail_audit_export(:'stuck', 'its worker stands still');
SELECT evidence.retry_audit_export(:'stuck', 'with another worker');
RESET ROLE;
SELECT outcome, error_code FROM evidence.attempt WHERE token = md5('still')::uuid;
CALL evidence.run_once();
SELECT export, job, generation, event_of, event, attempts FROM test.generations WHERE purpose = 'failed by hand';
SELECT event, from_state, to_state, attempt IS NOT NULL AS attempt, reason FROM evidence.export_event
 WHERE export_id = :'stuck' AND event IN ('given_up', 'reopened') ORDER BY id;
SELECT count(*) AS steps_with_audit FROM evidence.audit_log WHERE target_id = :'stuck' AND action IN ('audit_export.fail', 'audit_export.retry');

-- In an object store: the receipt was lost -----------------------------------------------
ALTER SYSTEM SET pg_evidence.delivery = 'object_store';
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET ROLE regress_asker;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'receipt lost') AS lost \gset
RESET ROLE;
CALL evidence.run_once();
SELECT archive_bytes AS bytes, archive_sha256 AS sha FROM evidence.audit_export WHERE id = :'lost' \gset
CREATE FUNCTION test.fill_in(id uuid, bucket text, key text, bytes bigint, sha256 text) RETURNS text LANGUAGE sql AS
    $$SELECT test.try(format('SELECT evidence.fill_in_audit_export(%L, %L, %L, %s, %L, ''seen in the store'')', id, bucket, key, bytes, sha256))$$;
SELECT test.fill_in(:'lost', 'bucket', 'nowhere.zip', :bytes, :'sha') AS never_sent;
SELECT delivery_token, object_key FROM evidence.claim_delivery('host:1', 'bucket', '') \gset
SELECT evidence.record_sending(:'delivery_token');
SELECT test.fill_in(:'lost', 'bucket', :'object_key', :bytes, :'sha') AS in_work;
SELECT evidence.fail_delivery(:'delivery_token', 'definite', 'Lost', 'no receipt');
SELECT split_part(test.fill_in(:'lost', 'bucket', :'object_key', :bytes, repeat('0', 64)), E'\n', 1) AS other_digest,
       split_part(test.fill_in(:'lost', 'bucket', :'object_key', :bytes + 1, :'sha'), E'\n', 1) AS other_size;
SELECT test.fill_in(:'lost', 'another', :'object_key', :bytes, :'sha') AS other_bucket;
SET ROLE regress_repairer;
SELECT evidence.fill_in_audit_export(:'lost', 'bucket', :'object_key', :bytes, :'sha', 'seen in the store', 'v1');
RESET ROLE;
SELECT e.state, e.object_bucket, e.object_key = :'object_key' AS key, e.object_version, e.expires_at - e.ready_at AS download_window, o.state AS upload,
       (SELECT count(*) FROM evidence.archive_chunk AS c WHERE c.export_id = e.id) AS chunks
  FROM evidence.audit_export AS e JOIN evidence.outbox_event AS o ON o.export_id = e.id AND o.kind = 'archive.upload' WHERE e.id = :'lost';
SELECT event, from_state, to_state, version, actor, reason, detail - 'bytes' - 'sha256' AS detail FROM evidence.export_event WHERE export_id = :'lost' AND event = 'filled_in';
SELECT test.fill_in(:'lost', 'bucket', :'object_key', :bytes, :'sha') AS twice;
-- "Completed without object key": READY by hand, without bytes.
SET ROLE regress_asker;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'without key') AS keyless \gset
RESET ROLE;
CALL evidence.run_once();
SELECT archive_bytes AS bytes, archive_sha256 AS sha FROM evidence.audit_export WHERE id = :'keyless' \gset
SELECT delivery_token, object_key FROM evidence.claim_delivery('host:1', 'bucket', '') WHERE kind = 'archive.upload' \gset
SELECT evidence.record_sending(:'delivery_token');
SELECT evidence.confirm_delivery(:'delivery_token', :bytes, :'sha');
UPDATE evidence.audit_export SET object_bucket = NULL, object_key = NULL, legal_hold = NULL WHERE id = :'keyless';
SELECT event, detail FROM evidence.trace_audit_export(:'keyless') WHERE event = 'missing';
SELECT evidence.fill_in_audit_export(:'keyless', 'bucket', :'object_key', :bytes, :'sha', 'the row had lost it');
SELECT state, object_key = :'object_key' AS key FROM evidence.audit_export WHERE id = :'keyless';
SELECT count(*) AS missing FROM evidence.trace_audit_export(:'keyless') WHERE event = 'missing';
SELECT from_state, to_state, version FROM evidence.export_event WHERE export_id = :'keyless' AND event = 'filled_in';
-- Revoked, it is removed from where it was found.
SELECT evidence.revoke_audit_export(:'lost', 'done');
SELECT kind, state FROM evidence.outbox_event WHERE export_id = :'lost' ORDER BY id;
-- A STAGED one that is failed drops its archive and closes its upload.
SET ROLE regress_asker;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'staged') AS staged \gset
RESET ROLE;
CALL evidence.run_once();
SELECT evidence.fail_audit_export(:'staged', 'the store is gone');
SELECT e.state, e.archive_sha256, o.state AS upload, (SELECT count(*) FROM evidence.archive_chunk AS c WHERE c.export_id = e.id) AS chunks
  FROM evidence.audit_export AS e JOIN evidence.outbox_event AS o ON o.export_id = e.id AND o.kind = 'archive.upload' WHERE e.id = :'staged';
ALTER SYSTEM SET pg_evidence.delivery = 'database';
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT evidence.retry_audit_export(:'staged', 'into the database');
CALL evidence.run_once();
SELECT state, generation, object_key FROM evidence.audit_export WHERE id = :'staged';

SET timezone = 'UTC';
-- The trace, forwards and from a download back (S3.106) -------------------------------------
SET ROLE regress_asker;
SELECT actor, event, detail - '{digest,ruleset,sha256,records_sha256,bytes,snapshot_at,attempt,grant,expires_at,until,job,id,event,settled_at,ended_at,columns,finding,closed_at,capabilities,recreated_from,of}'::text[] AS detail
  FROM evidence.trace_audit_export(:'cold') WHERE actor IS NULL OR actor LIKE 'regress%' OR actor = 'session';
SET ROLE regress_repairer;
SELECT event, detail ->> 'action' AS action FROM evidence.trace_audit_export(:'cold') WHERE event IN ('audit_row', 'missing');
SELECT id AS grant_id FROM evidence.trace_audit_export(:'cold') AS t, LATERAL (SELECT (t.detail ->> 'grant')::bigint AS id) AS g WHERE t.event = 'grant' \gset
SELECT event, actor LIKE 'regress%' AS by_a_person, detail ->> 'action' AS action FROM evidence.trace_download(:grant_id);
SELECT test.code('SELECT * FROM evidence.trace_download(-1)') AS unknown, test.code('SELECT * FROM evidence.trace_download(NULL)') AS no_number;
RESET ROLE;
SET ROLE regress_asker;
SELECT test.code(format('SELECT * FROM evidence.trace_download(%s)', :grant_id)) AS by_the_requester,
       test.code('SELECT * FROM evidence.trace_audit_export(''ffffffff-0000-0000-0000-000000000001'')') AS unknown;
RESET ROLE;
-- A broken link is told: somebody with the rights of a superuser took an audit row away.
BEGIN;
ALTER TABLE evidence.audit_log DISABLE TRIGGER append_only;
DELETE FROM evidence.audit_log WHERE target_id = :'cold' AND action = 'audit_export.download';
DELETE FROM evidence.download_grant WHERE id = :grant_id;
SELECT event, detail - '{grant,of}'::text[] AS detail FROM evidence.trace_audit_export(:'cold') WHERE event = 'missing';
-- Not so once the rows of that time have been retired.
UPDATE evidence.guard SET watermark = 'infinity' WHERE kind = 'source' AND name = 'audit_log';
SELECT event, detail - '{grant,of}'::text[] AS detail FROM evidence.trace_audit_export(:'cold') WHERE event = 'missing';
ROLLBACK;
-- The dossier (S3.99): no token, no secret of a purpose.
SELECT evidence.audit_export_dossier(:'cold') AS dossier \gset
SELECT key, jsonb_typeof(value) AS type FROM jsonb_each(:'dossier') ORDER BY key;
SELECT :'dossier'::jsonb -> 'export' ->> 'purpose' AS purpose, :'dossier'::jsonb ->> 'belongs_here' AS belongs_here,
       position(encode(g.secret_sha256, 'hex') IN :'dossier') AS grants_digest, position(a.token::text IN :'dossier' ) > 0 AS archive_token
  FROM evidence.download_grant AS g, evidence.attempt AS a WHERE g.export_id = :'cold' AND a.export_id = :'cold';
SELECT test.code('SELECT evidence.audit_export_dossier(''ffffffff-0000-0000-0000-000000000001'')') AS unknown;

-- What a person has to decide (S3.98) ------------------------------------------------------
SELECT s.what, test.code(s.call) AS answer FROM (VALUES
    ('no task', $$SELECT evidence.open_human_case(' ', 'olga', '2999-01-01', 'why')$$),
    ('nobody', $$SELECT evidence.open_human_case('look', NULL, '2999-01-01', 'why')$$),
    ('over', $$SELECT evidence.open_human_case('look', 'olga', '2020-01-01', 'why')$$),
    ('never', $$SELECT evidence.open_human_case('look', 'olga', 'infinity', 'why')$$),
    ('unknown export', $$SELECT evidence.open_human_case('look', 'olga', '2999-01-01', 'why', 'ffffffff-0000-0000-0000-000000000001')$$),
    ('no such case', $$SELECT evidence.recheck_human_case(-1, '2999-01-01', 'why')$$),
    ('none to close', $$SELECT evidence.close_human_case(NULL, 'why')$$)) AS s (what, call);
INSERT INTO evidence.finding (rule, scope, subject, export_id, severity, action, found_at, seen_at)
VALUES ('object_missing', 'bucket', 'key', :'cold', 'high', 'record', evidence._now(), evidence._now());
SELECT case_id, task, owner, overdue FROM evidence.human_queue WHERE export_id = :'cold';
SET ROLE regress_repairer;
SELECT evidence.open_human_case('where is the object?', 'olga', '2999-01-01 00:00+00', 'token=Aa1Bb2Cc3Dd4', :'cold') AS taken \gset
SELECT case_id = :taken AS this_one, task, owner, due_at, overdue, rechecked_at FROM evidence.human_queue WHERE export_id = :'cold';
SELECT evidence.recheck_human_case(:taken, '2999-02-01 00:00+00', 'not found yet');
SELECT case_id = :taken AS this_one, due_at, rechecked_at IS NOT NULL AS rechecked FROM evidence.human_queue WHERE export_id = :'cold';
SELECT evidence.close_human_case(:taken, 'it was in the other bucket');
SELECT test.code(format('SELECT evidence.close_human_case(%s, ''again'')', :taken)) AS twice;
RESET ROLE;
SELECT reason, closed_by, resolution FROM evidence.human_case WHERE id = :taken;
SELECT action, actor_id, summary FROM evidence.audit_log WHERE target_type = 'human_case' AND target_id = :'taken' ORDER BY id;
UPDATE evidence.finding SET closed_at = evidence._now(), closed_by = 'test' WHERE export_id = :'cold' AND closed_at IS NULL;
SELECT count(*) AS waiting FROM evidence.human_queue WHERE export_id = :'cold';

-- Duplicates: the same request twice (S3.91) -----------------------------------------------
SET ROLE regress_asker;
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'double') AS first \gset
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'double') AS second \gset
SELECT evidence.request_audit_export('2018-05-01 00:00+00', '2018-05-02 00:00+00', 'double') AS third \gset
RESET ROLE;
CALL evidence.run_once();
CALL evidence.run_once();
SET ROLE regress_asker;
SELECT length(evidence.grant_audit_export_download(:'second')) AS granted;
RESET ROLE;
SELECT CASE export_id WHEN :'first' THEN 'first' WHEN :'second' THEN 'second' ELSE 'third' END AS export, state, downloads, proposal,
       records_sha256 IS NOT NULL AS has_digest
  FROM evidence.duplicate_exports() WHERE export_id IN (:'first', :'second', :'third');
SELECT evidence.cancel_audit_export(:'third', 'a duplicate');
SELECT evidence.revoke_audit_export(:'second', 'a duplicate');
SELECT count(*) AS left FROM evidence.duplicate_exports() WHERE export_id = :'first';

-- Has it recovered?  A shut gate fails all, whatever the score (S3.107 to S3.109). -------------
SELECT test.code('SELECT * FROM evidence.recovery_report(NULL)') AS no_time, test.code($$SELECT * FROM evidence.recovery_report('-infinity')$$) AS no_begin;
SELECT evidence._now() AS since \gset
SELECT kind, name, weight FROM evidence.recovery_report(:'since') WHERE kind <> 'result';
CREATE FUNCTION test.report(since timestamptz) RETURNS text LANGUAGE sql AS $$
SELECT string_agg(name, ', ') FILTER (WHERE kind = 'gate' AND NOT ok) || ': ' || max(name) FILTER (WHERE kind = 'result')
  FROM evidence.recovery_report(since)
$$;
SELECT sum(weight) FILTER (WHERE kind = 'score') AS weights, bool_and(ok) FILTER (WHERE kind = 'gate') AS gates,
       sum(score) FILTER (WHERE kind = 'score') = max(score) FILTER (WHERE kind = 'result') AS summed
  FROM evidence.recovery_report(:'since');
BEGIN;
UPDATE evidence.archive_chunk SET data = data || '\x00' WHERE export_id = :'first';
SELECT test.report(:'since') AS longer;
ROLLBACK;
BEGIN;
UPDATE evidence.archive_chunk SET data = set_byte(data, 100, 255 - get_byte(data, 100)) WHERE export_id = :'first';
SELECT test.report(:'since') AS altered;
ROLLBACK;
BEGIN;
DELETE FROM evidence.archive_chunk WHERE export_id = :'first';
SELECT test.report(:'since') AS bytes_gone;
ROLLBACK;
BEGIN;
UPDATE evidence.background_job SET state = 'FAILED', version = version + 1, finished_at = evidence._now() WHERE export_id = :'first';
SELECT test.report(:'since') AS illegal;
ROLLBACK;
BEGIN;
CREATE ROLE regress_intruder;
INSERT INTO evidence.download_grant (secret_sha256, export_id, archive_token, subject, session_role, granted_at, expires_at)
SELECT sha256('x'), id, archive_token, 'regress_intruder', 'regress_intruder', evidence._now(), expires_at FROM evidence.audit_export WHERE id = :'first';
SELECT test.report(:'since') AS intruder;
ROLLBACK;
