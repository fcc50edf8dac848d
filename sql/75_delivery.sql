-- 75_delivery.sql: an archive goes into an object store and out of it, as far
-- as the ledger is concerned; this session plays the uploader.
\set VERBOSITY terse
CREATE ROLE regress_uploader;
CREATE ROLE regress_cleo;
SELECT evidence.grant_capability('regress_uploader', 'uploader');
SELECT evidence.grant_capability('regress_cleo', 'requester');
ALTER SYSTEM SET pg_evidence.delivery = 'object_store';
ALTER SYSTEM SET pg_evidence.max_active_per_requester = 100;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT test.fill('2019-06-01 00:00+00', 3);
CREATE TABLE test.made (name text PRIMARY KEY, id uuid);
GRANT SELECT ON test.made TO regress_uploader, regress_cleo;
GRANT USAGE ON SCHEMA test TO regress_uploader, regress_cleo;
-- Requests and makes an archive, which is then STAGED.
CREATE PROCEDURE test.stage(name text) LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL ROLE regress_cleo;
    name := name || '/' || evidence.request_audit_export('2019-06-01 00:00+00', '2019-06-02 00:00+00', name);
    RESET ROLE;
    INSERT INTO test.made SELECT split_part(name, '/', 1), split_part(name, '/', 2)::uuid;
END
$$;
CREATE VIEW test.delivery AS
SELECT m.name, e.state AS export, j.state AS job, u.state AS upload, d.state AS removal,
       (SELECT count(*) FROM evidence.archive_chunk AS c WHERE c.export_id = e.id) AS chunks,
       e.object_key IS NOT NULL AS in_store, e.error_code
  FROM test.made AS m JOIN evidence.audit_export AS e USING (id)
  JOIN evidence.background_job AS j ON j.export_id = e.id
  LEFT JOIN evidence.outbox_event AS u ON u.export_id = e.id AND u.kind = 'archive.upload'
  LEFT JOIN evidence.outbox_event AS d ON d.export_id = e.id AND d.kind = 'object.delete'
 ORDER BY m.name;
CREATE FUNCTION test.id_of(name text) RETURNS uuid LANGUAGE sql SECURITY DEFINER AS
    'SELECT id FROM test.made WHERE made.name = id_of.name';
CREATE FUNCTION test.sha_of(name text) RETURNS text LANGUAGE sql SECURITY DEFINER AS
    'SELECT archive_sha256 FROM evidence.audit_export WHERE id = test.id_of(name)';
CREATE FUNCTION test.bytes_of(name text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS
    'SELECT archive_bytes FROM evidence.audit_export WHERE id = test.id_of(name)';
-- A finished archive waits for its upload --------------------------------------------
CALL test.stage('a');
CALL evidence.run_once();
TABLE test.delivery;
SELECT state, progress, ready_at, expires_at FROM evidence.audit_export_status WHERE id = test.id_of('a');
SELECT event, from_state, to_state FROM evidence.export_event WHERE export_id = test.id_of('a') ORDER BY id;
SET ROLE regress_cleo;
SELECT test.code(format('SELECT evidence.grant_audit_export_download(%L)', test.id_of('a'))) AS not_ready;
SELECT test.code($$SELECT * FROM evidence.claim_delivery('me', 'bucket', '')$$) AS not_an_uploader;
RESET ROLE;

-- Arguments --------------------------------------------------------------------------
SELECT s.what, test.code(s.call) AS answer FROM (VALUES
    ('no size', $$SELECT evidence.confirm_delivery(gen_random_uuid(), NULL, repeat('a', 64))$$),
    ('chunk before the first', $$SELECT evidence.read_delivery_chunk(gen_random_uuid(), -1)$$),
    ('no grant', $$SELECT * FROM evidence.locate_download(NULL)$$),
    ('no size of a download', $$SELECT evidence.record_download('grant', NULL, repeat('a', 64))$$),
    ('no event', $$SELECT evidence.requeue_outbox_event(NULL, 'why')$$)) AS s (what, call);
SET ROLE regress_uploader;
SELECT s.what, test.code(s.call) AS answer FROM (VALUES
    ('no name', $$SELECT evidence.claim_delivery(NULL, 'bucket', '')$$),
    ('bucket too short', $$SELECT evidence.claim_delivery('me', 'bu', '')$$),
    ('bucket with a slash', $$SELECT evidence.claim_delivery('me', 'bu/cket', '')$$),
    ('prefix with dots', $$SELECT evidence.claim_delivery('me', 'bucket', '../a')$$),
    ('prefix with a slash in front', $$SELECT evidence.claim_delivery('me', 'bucket', '/a')$$),
    ('prefix with a slash behind', $$SELECT evidence.claim_delivery('me', 'bucket', 'a/')$$),
    ('prefix with two slashes', $$SELECT evidence.claim_delivery('me', 'bucket', 'a//b')$$),
    ('prefix in capitals', $$SELECT evidence.claim_delivery('me', 'bucket', 'A')$$),
    ('no token', $$SELECT evidence.renew_delivery(NULL)$$),
    ('digest too short', $$SELECT evidence.confirm_delivery(gen_random_uuid(), 1, 'ab')$$),
    ('unknown lock', $$SELECT evidence.confirm_delivery(gen_random_uuid(), 1, repeat('a', 64), lock_mode => 'SOFT')$$),
    ('unknown class', $$SELECT evidence.fail_delivery(gen_random_uuid(), 'odd', 'x', 'y')$$),
    ('unknown token', $$SELECT evidence.confirm_delivery(gen_random_uuid(), 1, repeat('a', 64))$$),
    ('unknown token, chunk', $$SELECT evidence.read_delivery_chunk(gen_random_uuid(), 0)$$),
    ('unknown token, sending', $$SELECT evidence.record_sending(gen_random_uuid())$$),
    ('unknown token, removal', $$SELECT evidence.confirm_removal(gen_random_uuid(), true)$$),
    ('unknown token, failure', $$SELECT evidence.fail_delivery(gen_random_uuid(), 'definite', 'x', 'y')$$),
    ('findings are no list', $$SELECT evidence.record_reconciliation('bucket', '', now(), 0, '{}')$$),
    ('nothing but functions', $$SELECT * FROM evidence.upload_attempt$$)) AS s (what, call);
SELECT evidence.renew_delivery(gen_random_uuid()) AS unknown_token;

-- The plain way: claim, read, send, look up, confirm ----------------------------------
SELECT *, multipart_id IS NULL AS in_one FROM evidence.claim_delivery('host:1', 'bucket', 'audit/main') \gset
SELECT :'kind' AS kind, :number AS number, :'look_up' AS look_up, :'in_one' AS in_one, :lease_seconds AS lease,
       :'object_key' ~ ('^audit/main/' || test.id_of('a') || '/attempts/[0-9a-f-]{36}\.zip$') AS key,
       :bytes = test.bytes_of('a') AS bytes, :'sha256' = test.sha_of('a') AS digest;
SELECT count(*) AS for_another_uploader FROM evidence.claim_delivery('host:2', 'bucket', 'audit/main');
SELECT sum(length(evidence.read_delivery_chunk(:'delivery_token', n))) = :bytes AS whole FROM generate_series(0, :chunks - 1) AS n;
SELECT test.code(format('SELECT evidence.read_delivery_chunk(%L, %s)', :'delivery_token', :chunks)) AS one_too_many;
SELECT evidence.renew_delivery(:'delivery_token');
SELECT evidence.record_sending(:'delivery_token');
SELECT delivery, uploads_waiting, uploads_dead, removals_waiting, removals_dead FROM evidence.delivery_status();
SELECT evidence.confirm_delivery(:'delivery_token', :bytes, :'sha256', lock_mode => 'GOVERNANCE', retain_until => '2099-01-01');
SELECT test.code(format('SELECT evidence.confirm_delivery(%L, %s, %L)', :'delivery_token', :bytes, :'sha256')) AS twice;
SELECT uploads_waiting, next_due FROM evidence.delivery_status();
RESET ROLE;
TABLE test.delivery;
SELECT object_bucket, object_key = :'object_key' AS key, object_version, locked_until, legal_hold,
       expires_at - ready_at AS download_window FROM evidence.audit_export WHERE id = test.id_of('a');
SELECT event, from_state, to_state, detail - '{bytes,sha256}'::text[] AS detail FROM evidence.export_event
 WHERE export_id = test.id_of('a') AND event = 'ready';
SELECT check_name, ok FROM evidence.verify_audit_export(test.id_of('a'));

-- A download: granted, located, opened ------------------------------------------------
SET ROLE regress_cleo;
SELECT evidence.grant_audit_export_download(test.id_of('a'), 'test') AS "grant" \gset
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'grant')) AS not_in_the_database;
SELECT bucket, object_key = :'object_key' AS key, object_version, bytes = :bytes AS bytes, sha256 = :'sha256' AS digest
  FROM evidence.locate_download(:'grant');
SELECT test.code(format('SELECT evidence.record_download(%L, %s, %L)', :'grant', :bytes + 1, :'sha256')) AS other_size,
       test.code(format('SELECT evidence.record_download(%L, %s, %L)', :'grant', :bytes, repeat('0', 64))) AS other_digest,
       test.code(format('SELECT evidence.record_download(%L, %s, %L)', repeat('0', 64), :bytes, :'sha256')) AS no_such_grant;
BEGIN;
SELECT evidence.grant_audit_export_download(test.id_of('a')) AS "open" \gset
SELECT test.code(format('SELECT evidence.locate_download(%L)', :'open')) AS uncommitted;
ROLLBACK;
SELECT evidence.record_download(:'grant', :bytes, :'sha256');
RESET ROLE;
SELECT action, actor_id FROM evidence.audit_log WHERE target_id = test.id_of('a')::text ORDER BY id;
SET ROLE regress_uploader;
SELECT test.code(format('SELECT evidence.locate_download(%L)', :'grant')) AS not_the_uploaders;
RESET ROLE;

-- Revoked: the object is to be deleted, and an uploader of another bucket leaves it ----
SELECT evidence.revoke_audit_export(test.id_of('a'), 'test');
TABLE test.delivery;
SET ROLE regress_uploader;
SELECT count(*) AS other_bucket FROM evidence.claim_delivery('host:1', 'another', 'audit/main');
SELECT * FROM evidence.claim_delivery('host:1', 'bucket', 'any') \gset
SELECT :'kind' AS kind, :'look_up' AS look_up, :'object_key' ~ '^audit/main/' AS key_where_it_lies;
SELECT evidence.fail_delivery(:'delivery_token', 'deferral', 'Locked', 'retention', locked_until => '2099-01-01');
RESET ROLE;
SELECT kind, state, attempts, error_code, reason, next_attempt_at FROM evidence.outbox_event
 WHERE export_id = test.id_of('a') AND kind = 'object.delete';
UPDATE evidence.outbox_event SET next_attempt_at = now() WHERE export_id = test.id_of('a') AND kind = 'object.delete';
SET ROLE regress_uploader;
SELECT * FROM evidence.claim_delivery('host:1', 'bucket', '') \gset
SELECT evidence.confirm_removal(:'delivery_token', true);
RESET ROLE;
TABLE test.delivery;

-- Other content under our key: quarantine ----------------------------------------------
CALL test.stage('b');
CALL evidence.run_once();
SET ROLE regress_uploader;
SELECT * FROM evidence.claim_delivery('host:1', 'bucket', '') \gset
SELECT evidence.record_sending(:'delivery_token');
SELECT evidence.confirm_delivery(:'delivery_token', :bytes, repeat('0', 64));
RESET ROLE;
SELECT * FROM test.delivery WHERE name = 'b';
SELECT rule, scope, subject = :'object_key' AS subject, severity, action, closed_at FROM evidence.finding WHERE export_id = test.id_of('b');
SET ROLE regress_uploader;
SELECT export_state, needed, busy FROM evidence.known_objects('bucket') WHERE export_id = test.id_of('b');
SELECT count(*) AS nothing_to_do FROM evidence.claim_delivery('host:1', 'bucket', '');
RESET ROLE;

-- Cancelled while it waits: with and without something in the store ---------------------
CALL test.stage('c');
CALL evidence.run_once();
CALL test.stage('d');
CALL evidence.run_once();
SET ROLE regress_uploader;
SELECT delivery_token AS c, export_id = test.id_of('c') AS is_c FROM evidence.claim_delivery('host:1', 'bucket', '') \gset
SELECT evidence.record_sending(:'c', 'parts-1');
RESET ROLE;
SET ROLE regress_cleo;
SELECT evidence.cancel_audit_export(id, 'test') FROM test.made WHERE name IN ('c', 'd');
RESET ROLE;
SELECT * FROM test.delivery WHERE name IN ('c', 'd');
SELECT stopped_at = cancelled_at AS stopped_at_once FROM evidence.audit_export WHERE id = test.id_of('c');
-- Its uploader learns of it with its next step, and the removal waits for its lease.
SET ROLE regress_uploader;
SELECT evidence.renew_delivery(:'c') AS goes_on, test.code(format('SELECT evidence.read_delivery_chunk(%L, 0)', :'c')) AS reads,
       test.code(format('SELECT evidence.record_sending(%L)', :'c')) AS sends,
       test.code(format('SELECT evidence.confirm_delivery(%L, 1, %L)', :'c', repeat('0', 64))) AS confirms;
SELECT count(*) AS not_yet FROM evidence.claim_delivery('host:2', 'bucket', '');
SELECT evidence.fail_delivery(:'c', 'deferral', 'Stopped', 'the export was cancelled');
RESET ROLE;
SELECT outcome FROM evidence.upload_attempt WHERE token = :'c';
UPDATE evidence.outbox_event SET next_attempt_at = now() WHERE export_id = test.id_of('c') AND kind = 'object.delete';
SET ROLE regress_uploader;
SELECT * FROM evidence.claim_delivery('host:2', 'bucket', '') \gset
SELECT :'kind' AS kind, :'look_up' AS look_up, :'multipart_id' AS multipart_id;
SELECT evidence.confirm_removal(:'delivery_token', false);
RESET ROLE;
SELECT event, detail FROM evidence.export_event WHERE export_id = test.id_of('c') AND event = 'object_removed';

-- A lost lease: another one looks up what the first one may have sent -------------------
CALL test.stage('e');
CALL evidence.run_once();
SET ROLE regress_uploader;
SELECT delivery_token AS first FROM evidence.claim_delivery('host:1', 'bucket', 'one') \gset
SELECT evidence.record_sending(:'first', 'parts-2');
RESET ROLE;
ALTER SYSTEM SET pg_evidence.clock_offset = 120;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET ROLE regress_uploader;
SELECT evidence.renew_delivery(:'first') AS goes_on;
SELECT count(*) AS not_in_another_bucket FROM evidence.claim_delivery('host:2', 'another', 'two');
SELECT delivery_token AS second, number, look_up, multipart_id, object_key ~ '^one/' AS same_key
  FROM evidence.claim_delivery('host:2', 'bucket', 'two') \gset
SELECT :number AS number, :'look_up' AS look_up, :'multipart_id' AS multipart_id, :'same_key' AS same_key;
SELECT test.code(format('SELECT evidence.confirm_delivery(%L, %s, %L)', :'first', test.bytes_of('e'), test.sha_of('e'))) AS zombie_confirms,
       test.code(format('SELECT evidence.fail_delivery(%L, ''definite'', ''x'', ''y'')', :'first')) AS zombie_fails,
       test.code(format('SELECT evidence.record_sending(%L)', :'first')) AS zombie_sends;
-- Failures are counted, the last one is the end, and an operator takes it up again.
SELECT evidence.fail_delivery(:'second', 'transient', 'SlowDown', 'the store is busy', 3600);
RESET ROLE;
SELECT state, attempts, error_code, reason, next_attempt_at - evidence._now() > interval '59 min' AS pause
  FROM evidence.outbox_event WHERE export_id = test.id_of('e') AND kind = 'archive.upload';
UPDATE evidence.outbox_event SET next_attempt_at = now() WHERE export_id = test.id_of('e') AND kind = 'archive.upload';
SET ROLE regress_uploader;
SELECT delivery_token AS third FROM evidence.claim_delivery('host:2', 'bucket', '') \gset
SELECT evidence.fail_delivery(:'third', 'definite', 'EntityTooLarge', 'refused');
RESET ROLE;
SELECT id AS event FROM evidence.outbox_event WHERE export_id = test.id_of('e') AND kind = 'archive.upload' \gset
SELECT * FROM test.delivery WHERE name = 'e';
SELECT evidence.requeue_outbox_event(:event, 'the limit was raised');
SELECT state, attempts, reason FROM evidence.outbox_event WHERE id = :event;
SELECT action, actor_id = session_user AS actor, summary FROM evidence.audit_log WHERE target_type = 'outbox_event';
SELECT test.code(format('SELECT evidence.requeue_outbox_event(%s, ''again'')', :event)) AS not_dead,
       test.try('SELECT evidence.requeue_outbox_event(-1, ''x'')') AS unknown,
       test.code(format('SELECT evidence.requeue_outbox_event(%s, '' '')', :event)) AS no_reason;
-- A log that cannot be written stops no recovery (S1.54): a warning says so.
SET ROLE regress_uploader;
SELECT delivery_token AS fourth FROM evidence.claim_delivery('host:2', 'bucket', '') \gset
SELECT evidence.fail_delivery(:'fourth', 'definite', 'EntityTooLarge', 'refused again');
RESET ROLE;
CREATE FUNCTION test.no_log() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no room for %'', NEW.summary USING ERRCODE = ''disk_full''; END';
CREATE TRIGGER no_log BEFORE INSERT ON evidence.audit_log FOR EACH ROW EXECUTE FUNCTION test.no_log();
SELECT evidence.requeue_outbox_event(:event, 'while the log is down');
DROP TRIGGER no_log ON evidence.audit_log;
SELECT state, attempts FROM evidence.outbox_event WHERE id = :event;
SELECT count(*) AS audit_rows FROM evidence.audit_log WHERE target_type = 'outbox_event';
SELECT reason, detail ->> 'kind' AS kind FROM evidence.export_event WHERE export_id = test.id_of('e') AND event = 'requeued' ORDER BY id;
-- Too late is too late (S1.56).
SET ROLE regress_uploader;
SELECT delivery_token AS fifth FROM evidence.claim_delivery('host:2', 'bucket', '') \gset
SELECT evidence.fail_delivery(:'fifth', 'definite', 'EntityTooLarge', 'refused for good');
RESET ROLE;
ALTER SYSTEM SET pg_evidence.clock_offset = 86600;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT test.code(format('SELECT evidence.requeue_outbox_event(%s, ''after a day'')', :event)) AS too_late;

-- Nobody uploads it in time ------------------------------------------------------------
ALTER SYSTEM SET pg_evidence.clock_offset = 180000;
SELECT pg_reload_conf() AS reloaded \gset
\c -
CALL evidence.run_once();
SELECT * FROM test.delivery WHERE name = 'e';
SELECT error_message, error_hint FROM evidence.audit_export_status WHERE id = test.id_of('e');
SET ROLE regress_uploader;
SELECT * FROM evidence.claim_delivery('host:1', 'bucket', '') \gset
SELECT :'kind' AS kind, export_id = test.id_of('e') AS is_e FROM evidence.known_objects('bucket') WHERE object_key = :'object_key';
SELECT evidence.confirm_removal(:'delivery_token', true);
RESET ROLE;
ALTER SYSTEM RESET pg_evidence.clock_offset;
SELECT pg_reload_conf() AS reloaded \gset
\c -

-- A day later it expires: the clock decides, the object follows --------------------------
CALL test.stage('f');
CALL evidence.run_once();
SET ROLE regress_uploader;
SELECT * FROM evidence.claim_delivery('host:1', 'bucket', 'f') \gset
SELECT evidence.record_sending(:'delivery_token');
SELECT evidence.confirm_delivery(:'delivery_token', :bytes, :'sha256', 'version-1');
SELECT object_version, export_state, needed, busy FROM evidence.known_objects('bucket') WHERE export_id = test.id_of('f');
RESET ROLE;
ALTER SYSTEM SET pg_evidence.clock_offset = 90000;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT test.code(format('SELECT evidence.grant_audit_export_download(%L)', test.id_of('f'))) AS gone_before_anybody_cleaned;
CALL evidence.run_once();
SELECT * FROM test.delivery WHERE name = 'f';
SET ROLE regress_uploader;
SELECT export_state, needed, busy FROM evidence.known_objects('bucket') WHERE export_id = test.id_of('f');
SELECT kind, object_version, look_up, export_id = test.id_of('f') AS is_f FROM evidence.claim_delivery('host:1', 'bucket', '');
RESET ROLE;
ALTER SYSTEM RESET pg_evidence.clock_offset;
SELECT pg_reload_conf() AS reloaded \gset
\c -

-- A comparison of store and ledger -------------------------------------------------------
CALL test.stage('g');
CALL evidence.run_once();
SET ROLE regress_uploader;
SELECT * FROM evidence.claim_delivery('host:1', 'bucket', 'g') \gset
SELECT evidence.record_sending(:'delivery_token');
SELECT evidence.confirm_delivery(:'delivery_token', :bytes, :'sha256');
SELECT evidence.record_reconciliation('bucket', 'g', now(), 2, jsonb_build_array(
    jsonb_build_object('rule', 'object_missing', 'key', :'object_key', 'export_id', test.id_of('g'), 'action', 'revoke', 'fixed', false),
    jsonb_build_object('rule', 'object_orphan', 'key', 'g/orphan', 'action', 'clean', 'fixed', true, 'detail', '{"bytes": 3}'::jsonb))) AS open;
RESET ROLE;
SELECT rule, subject = :'object_key' AS is_g, severity, action, detail, closed_at IS NOT NULL AS closed FROM evidence.finding
 WHERE scope = 'bucket' AND subject LIKE 'g/%' ORDER BY rule;
SELECT kind, scope, actor, counts FROM evidence.pass_log;
SELECT test.code(format('SELECT evidence.grant_audit_export_download(%L)', test.id_of('g'))) AS frozen;
SET ROLE regress_uploader;
SELECT evidence.record_reconciliation('bucket', 'g', now(), 1, '[]') AS open;
RESET ROLE;
SELECT test.code(format('SELECT evidence.grant_audit_export_download(%L)', test.id_of('g'))) AS free_again;

ALTER SYSTEM RESET pg_evidence.delivery;
ALTER SYSTEM RESET pg_evidence.max_active_per_requester;
SELECT pg_reload_conf() AS reloaded \gset
