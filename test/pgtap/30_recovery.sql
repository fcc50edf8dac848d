-- 30_recovery.sql: what dead attempts leave behind is put back, once, and comes
-- to an end (C42, C43, S1.33).
--
-- The attempts are written by hand: of an earlier life of the server (another
-- boot_id), of this life with a lease that has run out, and alive.
ALTER SYSTEM SET pg_evidence.debug_pause = 'launcher-round';
DO $$ BEGIN PERFORM pg_reload_conf(); END $$;
\c -
SET client_min_messages = warning;
SELECT plan(15);

CREATE SCHEMA recovery;
CREATE TABLE recovery.case (name text PRIMARY KEY, id uuid, token uuid);
-- Makes a request and moves its facts to where a worker that claimed it left them.
CREATE PROCEDURE recovery.leave_behind(new_case text, kind text, boot_id bigint, lease interval, attempts int) LANGUAGE plpgsql AS $$
DECLARE
    export uuid := evidence.request_audit_export('2019-01-01', '2019-01-02', new_case);
    new_token uuid := gen_random_uuid();
    j evidence.background_job;
BEGIN
    UPDATE evidence.outbox_event SET state = 'DELIVERED', version = version + 1, settled_at = evidence._now() WHERE export_id = export;
    UPDATE evidence.background_job SET state = 'RUNNING', version = version + 1, attempt_token = new_token,
           attempts = leave_behind.attempts, started_at = evidence._now() WHERE export_id = export RETURNING * INTO j;
    UPDATE evidence.audit_export SET state = 'PROCESSING', version = version + 1, attempt_token = new_token WHERE id = export;
    INSERT INTO evidence.attempt (token, job_id, export_id, generation, kind, boot_id, pid, started_at, lease_until)
    VALUES (new_token, j.id, export, 1, leave_behind.kind, leave_behind.boot_id, 1, evidence._now() - interval '1 hour', evidence._now() + lease);
    INSERT INTO recovery.case VALUES (new_case, export, new_token);
END
$$;
CREATE VIEW recovery.facts AS
SELECT c.name, concat_ws(' ', e.state, j.state, o.state) AS facts, j.attempts, j.deferrals, a.outcome, e.error_code, e.version
  FROM recovery.case AS c JOIN evidence.audit_export AS e USING (id) JOIN evidence.background_job AS j ON j.export_id = e.id
  JOIN evidence.outbox_event AS o ON o.job_id = j.id JOIN evidence.attempt AS a ON a.token = c.token;
-- The life of this server's shared memory, as an attempt of this session tells it.
SELECT evidence.request_audit_export('2019-01-01', '2019-01-02', 'which life') AS id \gset
CALL evidence.run_once();
SELECT boot_id AS this_life FROM evidence.attempt WHERE export_id = :'id' \gset

-- A lease that is alive is nobody else's business.
CALL recovery.leave_behind('alive', 'exporter', :this_life, '1 hour', 1);
CALL evidence.run_once();
SELECT is(facts, 'PROCESSING RUNNING DELIVERED', 'a live lease is left alone') FROM recovery.facts WHERE name = 'alive';
SELECT is(outcome, NULL, '... and its attempt stays open') FROM recovery.facts WHERE name = 'alive';

-- It runs out.  One export runs at a time: the recovered one is made at once.
UPDATE evidence.attempt SET lease_until = evidence._now() - interval '1 ms' WHERE token = (SELECT token FROM recovery.case WHERE name = 'alive');
CALL evidence.run_once();
SELECT is(outcome, 'lost', 'an attempt whose lease ran out is lost') FROM recovery.facts WHERE name = 'alive';
SELECT is(facts || ' ' || attempts, 'READY SUCCEEDED DELIVERED 2', '... and the export is made by the next one') FROM recovery.facts WHERE name = 'alive';
SELECT is(string_agg(v.event, ' ' ORDER BY v.id), 'requested retried claimed ready', '... with its history')
  FROM recovery.case AS c JOIN evidence.export_event AS v ON v.export_id = c.id WHERE c.name = 'alive';
SELECT isnt(e.archive_token, c.token, 'the archive is that of the new attempt')
  FROM recovery.case AS c JOIN evidence.audit_export AS e USING (id) WHERE c.name = 'alive';
SELECT is(count(*), 1::bigint, 'only one archive is stored')
  FROM recovery.case AS c, LATERAL (SELECT DISTINCT attempt_token FROM evidence.archive_chunk WHERE export_id = c.id) AS a WHERE c.name = 'alive';

-- An attempt of an earlier life is dead, however long its lease still is.
CALL recovery.leave_behind('earlier life', 'exporter', :this_life - 1, '1 hour', 1);
CALL evidence.run_once();
SELECT matches(facts, '^(READY SUCCEEDED|QUEUED QUEUED) DELIVERED$', 'an attempt of an earlier life is recovered at once') FROM recovery.facts WHERE name = 'earlier life';
SELECT isnt(outcome, NULL, '... and closed') FROM recovery.facts WHERE name = 'earlier life';

-- The attempt of a session that is gone holds no advisory lock any more.
CALL recovery.leave_behind('session', 'session', :this_life, '-1 s', 1);
CALL evidence.run_once();
SELECT is(facts || ' ' || outcome, 'READY SUCCEEDED DELIVERED lost', 'run_once() of a session that is gone is recovered') FROM recovery.facts WHERE name = 'session';

-- C42: a job that dies with every worker ends.
CALL recovery.leave_behind('poison', 'exporter', :this_life, '-1 s', 3);
CALL evidence.run_once();
SELECT is(facts || ' ' || error_code, 'FAILED FAILED DELIVERED PE004', 'the last allowed attempt that is lost fails the export') FROM recovery.facts WHERE name = 'poison';
SELECT isnt(error_hint, NULL, '... and says what to do') FROM recovery.case AS c JOIN evidence.audit_export USING (id) WHERE name = 'poison';
CALL evidence.run_once();
SELECT is(version, 3::bigint, '... for good') FROM recovery.facts WHERE name = 'poison';

-- A cancelled export whose worker died is stopped, not made.
CALL recovery.leave_behind('cancelled', 'exporter', :this_life, '-1 s', 1);
SELECT evidence.cancel_audit_export(id, 'test') AS state FROM recovery.case WHERE name = 'cancelled' \gset
CALL evidence.run_once();
SELECT is(facts || ' ' || outcome, 'CANCELLED CANCELLED DELIVERED cancelled', 'a cancelled export stays cancelled when its worker is gone') FROM recovery.facts WHERE name = 'cancelled';
SELECT is(num_nulls(cancelled_at, stopped_at), 0, '... and has both times (S3.66)') FROM recovery.case AS c JOIN evidence.audit_export USING (id) WHERE name = 'cancelled';

SELECT * FROM finish();
DROP SCHEMA recovery CASCADE;
