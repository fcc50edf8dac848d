-- 70_download.sql: no byte leaves before its audit row is committed, none after
-- the end of the window, none that is not what the ledger says.
\set VERBOSITY terse
CREATE ROLE regress_ann;
CREATE ROLE regress_ben;
SELECT evidence.grant_capability('regress_ann', 'requester');
SELECT evidence.grant_capability('regress_ben', 'requester');
GRANT CREATE ON SCHEMA test TO regress_ann;
-- Rows that do not compress to less than some chunks.
INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
SELECT timestamptz '2020-05-01 00:00+00' + n * interval '1 s', 'actor', 'test.bulk',
       md5(n::text) || md5((n + 10000)::text) || md5((n + 20000)::text)
  FROM generate_series(1, 4000) AS n;
SET ROLE regress_ann;
SELECT evidence.request_audit_export('2020-05-01 00:00+00', '2020-05-02 00:00+00', 'download') AS id \gset
RESET ROLE;
CALL evidence.run_once();
SELECT state, archive_chunks >= 3 AS some_chunks FROM evidence.audit_export WHERE id = :'id';

-- The plain way: grant, commit, fetch -------------------------------------------------
SET ROLE regress_ann;
SELECT evidence.grant_audit_export_download(:'id', 'for the auditor') AS "grant" \gset
SELECT :'grant' ~ '^[0-9a-f]{64}$' AS opaque;
RESET ROLE;
SELECT subject, reason, expires_at - granted_at AS ttl, revoked_at, secret_sha256 = sha256(:'grant'::bytea) AS only_the_digest
  FROM evidence.download_grant WHERE export_id = :'id';
SELECT action, actor_id, outcome, summary FROM evidence.audit_log WHERE target_id = :'id' ORDER BY id;
SELECT event, actor, version, reason, detail ? 'grant' AS names_the_grant FROM evidence.export_event
 WHERE export_id = :'id' AND event = 'download_granted';
SET ROLE regress_ann;
CREATE TABLE test.fetched AS SELECT * FROM evidence.fetch_audit_export(:'grant');
RESET ROLE;
SELECT encode(sha256(string_agg(f.data, ''::bytea ORDER BY f.seq)), 'hex') = e.archive_sha256 AS whole,
       count(*) = e.archive_chunks AS chunks, min(seq) AS first, max(seq) = e.archive_chunks - 1 AS last
  FROM test.fetched AS f, evidence.audit_export AS e WHERE e.id = :'id' GROUP BY e.id;
-- Again, in parts, in the SELECT list, by a cursor: the same bytes.
SET ROLE regress_ann;
SELECT string_agg(data, ''::bytea ORDER BY seq) = (SELECT string_agg(data, ''::bytea ORDER BY seq) FROM test.fetched) AS same FROM (
    SELECT * FROM evidence.fetch_audit_export(:'grant', 0, 1)
    UNION ALL SELECT (evidence.fetch_audit_export(:'grant', 1, 1)).*
    UNION ALL SELECT * FROM evidence.fetch_audit_export(:'grant', 2)) AS parts;
SELECT seq FROM evidence.fetch_audit_export(:'grant', max_chunks => 0);
SELECT seq FROM evidence.fetch_audit_export(:'grant', 1000000);
SELECT seq FROM evidence.fetch_audit_export(:'grant', 2147483647, 2147483647);
SELECT seq FROM evidence.fetch_audit_export(:'grant', 1, 2147483647) LIMIT 1;
BEGIN READ ONLY;
DECLARE c CURSOR FOR SELECT evidence.fetch_audit_export(:'grant');
MOVE 1 FROM c;
SELECT count(*) AS while_open FROM evidence.fetch_audit_export(:'grant', 1, 1);
MOVE 1 FROM c;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM evidence.fetch_audit_export(:'grant', 0, 2);
COMMIT;

-- Arguments --------------------------------------------------------------------------
SELECT s.what, test.try(s.call) AS answer FROM (VALUES
    ('grant is null', $$SELECT evidence.fetch_audit_export(NULL)$$),
    ('from_seq is null', $$SELECT evidence.fetch_audit_export('x', NULL)$$),
    ('from_seq is negative', $$SELECT evidence.fetch_audit_export('x', -1)$$),
    ('max_chunks is negative', $$SELECT evidence.fetch_audit_export('x', 0, -1)$$)) AS s (what, call);
-- C57: one character changed, missing, more; another case; not a grant at all.
SELECT s.what, test.code(format('SELECT evidence.fetch_audit_export(%L)', s.try)) AS answer FROM (VALUES
    ('first changed', translate(left(:'grant', 1), '0123456789abcdef', '123456789abcdef0') || substr(:'grant', 2)),
    ('last changed', left(:'grant', 63) || translate(right(:'grant', 1), '0123456789abcdef', '123456789abcdef0')),
    ('one short', left(:'grant', 63)), ('one long', :'grant' || '0'), ('blank behind', :'grant' || ' '),
    ('upper case', upper(:'grant') || ''), ('empty', ''), ('digest instead', encode(sha256(:'grant'::bytea), 'hex')),
    ('id instead', :'id'), ('very long', repeat('0', 1000000))) AS s (what, try);
SET ROLE regress_ben;
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'grant')) AS of_another_subject;
RESET ROLE;
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'grant')) AS superuser;

-- S1.53: each way to get bytes before, or without, the commit of their grant ---------
CREATE VIEW test.audited AS SELECT count(*) FROM evidence.audit_log WHERE action = 'audit_export.download';
CREATE TABLE test.audited_before AS TABLE test.audited;
SET ROLE regress_ann;
-- the same transaction
BEGIN;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
SELECT evidence.fetch_audit_export(:'g');
ROLLBACK;
\set VERBOSITY default
BEGIN;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
SELECT evidence.fetch_audit_export(:'g');
ROLLBACK;
\set VERBOSITY terse
-- and after the rollback
SELECT evidence.fetch_audit_export(:'g');
-- one statement
SELECT evidence.fetch_audit_export(evidence.grant_audit_export_download(:'id'));
SELECT * FROM evidence.fetch_audit_export(evidence.grant_audit_export_download(:'id'));
SELECT f.* FROM evidence.grant_audit_export_download(:'id') AS g, evidence.fetch_audit_export(g) AS f;
-- a CTE
WITH g AS MATERIALIZED (SELECT evidence.grant_audit_export_download(:'id') AS g)
SELECT evidence.fetch_audit_export(g) FROM g;
-- a savepoint, open, released, and rolled back to
BEGIN;
SAVEPOINT s;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
SAVEPOINT t;
SELECT evidence.fetch_audit_export(:'g');
ROLLBACK TO t;
RELEASE s;
SELECT evidence.fetch_audit_export(:'g');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
ROLLBACK TO s;
SELECT evidence.fetch_audit_export(:'g');
ROLLBACK;
-- an exception block
DO $$
DECLARE
    granted text;
BEGIN
    BEGIN
        SELECT evidence.grant_audit_export_download(id) INTO granted FROM evidence.audit_export_status WHERE state = 'READY';
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
    BEGIN
        PERFORM evidence.fetch_audit_export(granted);
        RAISE NOTICE 'released';
    EXCEPTION WHEN OTHERS THEN
        RAISE NOTICE 'refused: %', SQLSTATE;
    END;
    BEGIN
        SELECT evidence.grant_audit_export_download(id) INTO granted FROM evidence.audit_export_status WHERE state = 'READY';
        RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
    PERFORM evidence.fetch_audit_export(granted);
END
$$;
-- a deferred trigger, which runs while the transaction commits
CREATE TABLE test.deferred (g text);
CREATE FUNCTION test.at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM evidence.fetch_audit_export(new.g);
    RAISE NOTICE 'released';
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON test.deferred DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION test.at_commit();
BEGIN;
INSERT INTO test.deferred SELECT evidence.grant_audit_export_download(:'id');
COMMIT;
-- a cursor that is held over the commit is read before it
BEGIN;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
DECLARE held CURSOR WITH HOLD FOR SELECT evidence.fetch_audit_export(:'g');
COMMIT;
FETCH 1 FROM held;
-- a prepared transaction: not visible, and never was after ROLLBACK PREPARED
BEGIN;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
PREPARE TRANSACTION 'regress_grant';
SELECT evidence.fetch_audit_export(:'g');
ROLLBACK PREPARED 'regress_grant';
SELECT evidence.fetch_audit_export(:'g');
-- a procedure that rolls back
CREATE PROCEDURE test.rolls_back() LANGUAGE plpgsql AS $$
DECLARE
    granted text;
BEGIN
    SELECT evidence.grant_audit_export_download(id) INTO granted FROM evidence.audit_export_status WHERE state = 'READY';
    ROLLBACK;
    PERFORM evidence.fetch_audit_export(granted);
END $$;
CALL test.rolls_back();
-- a wrapper that lies about itself
CREATE FUNCTION test.immutable_fetch(g text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
    'SELECT count(*) FROM evidence.fetch_audit_export(g)';
CREATE FUNCTION test.immutable_grant(id uuid) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
    'BEGIN RETURN evidence.grant_audit_export_download(id); END';
SELECT test.immutable_fetch(test.immutable_grant(:'id'));
-- asynchronous commit changes nothing of the order
SET synchronous_commit = off;
BEGIN;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
SELECT evidence.fetch_audit_export(:'g');
ROLLBACK;
RESET synchronous_commit;
RESET ROLE;
-- None of these left an audit row, and none released anything.
SELECT a.count - b.count AS audit_rows FROM test.audited AS a, test.audited_before AS b;
-- Ways that are right: the audit row is committed when the bytes leave.
SET ROLE regress_ann;
DO $$
DECLARE
    granted text;
BEGIN
    SELECT evidence.grant_audit_export_download(id) INTO granted FROM evidence.audit_export_status WHERE state = 'READY';
    COMMIT;
    PERFORM evidence.fetch_audit_export(granted);
END
$$;
BEGIN;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
PREPARE TRANSACTION 'regress_grant';
COMMIT PREPARED 'regress_grant';
SELECT count(*) > 0 AS released FROM evidence.fetch_audit_export(:'g');
SET synchronous_commit = off;
SELECT evidence.grant_audit_export_download(:'id') AS g \gset
SELECT count(*) > 0 AS released FROM evidence.fetch_audit_export(:'g');
RESET synchronous_commit;
BEGIN READ ONLY;
SELECT evidence.grant_audit_export_download(:'id');
ROLLBACK;
RESET ROLE;
SELECT a.count - b.count AS audit_rows FROM test.audited AS a, test.audited_before AS b;

-- The time of a grant, and of the archive, by the database's clock ----------------------
ALTER SYSTEM SET pg_evidence.clock_offset = 299;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET ROLE regress_ann;
SELECT evidence.grant_audit_export_download(:'id') AS late \gset
RESET ROLE;
ALTER SYSTEM SET pg_evidence.clock_offset = 301;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET ROLE regress_ann;
SELECT test.try(format('SELECT evidence.fetch_audit_export(%L)', :'grant')) AS first_grant;
SELECT count(*) > 0 AS later_grant_works FROM evidence.fetch_audit_export(:'late');
RESET ROLE;
-- 100 s before the end of the window a grant lives no longer than the archive.
ALTER SYSTEM SET pg_evidence.clock_offset = 86300;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET ROLE regress_ann;
SELECT evidence.grant_audit_export_download(:'id') AS last \gset
SELECT count(*) > 0 AS released FROM evidence.fetch_audit_export(:'last');
RESET ROLE;
SELECT g.expires_at = e.expires_at AS ends_with_the_archive
  FROM evidence.download_grant AS g JOIN evidence.audit_export AS e ON e.id = g.export_id ORDER BY g.id DESC LIMIT 1;
-- S1.46: after 24 hours it is gone, although the bytes are there and the state is READY.
ALTER SYSTEM SET pg_evidence.clock_offset = 86401;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET timezone = 'UTC';
SET ROLE regress_ann;
SELECT test.try(format('SELECT evidence.grant_audit_export_download(%L)', :'id')) LIKE 'PE003: archive is gone: it expired at %' AS grant_again;
SELECT test.code(format('SELECT evidence.fetch_audit_export(%L)', :'last')) AS fetch;
SELECT state FROM evidence.audit_export_status WHERE id = :'id';
RESET ROLE;
SELECT count(*) > 0 AS bytes_are_there FROM evidence.archive_chunk WHERE export_id = :'id';
-- A clock that is set back opens it again: the clock alone decides.
ALTER SYSTEM RESET pg_evidence.clock_offset;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET ROLE regress_ann;
SELECT evidence.grant_audit_export_download(:'id') AS "grant" \gset
SELECT count(*) > 0 AS released FROM evidence.fetch_audit_export(:'grant');
RESET ROLE;

-- PE006: bytes that are not those of the ledger, by a superuser's UPDATE ----------------
-- At the grant every byte is checked; at the fetch the list before the first byte and
-- each chunk before it leaves.
CREATE FUNCTION test.tamper(id uuid, g text, change text, OUT at_grant text, OUT at_fetch text, OUT chunks_released int)
    LANGUAGE plpgsql AS $$
BEGIN
    chunks_released := 0;
    BEGIN
        EXECUTE replace(change, '$id', id::text);
        SET LOCAL ROLE regress_ann;
        at_grant := test.code(format('SELECT evidence.grant_audit_export_download(%L)', id));
        at_fetch := 'no error';
        BEGIN
            FOR n IN 0 .. 1000 LOOP
                PERFORM evidence.fetch_audit_export(g, n, 1);
                EXIT WHEN NOT FOUND;
                chunks_released := n + 1;
            END LOOP;
        EXCEPTION WHEN OTHERS THEN
            at_fetch := SQLSTATE;
        END;
        RAISE EXCEPTION USING ERRCODE = 'TT000';
    EXCEPTION WHEN SQLSTATE 'TT000' THEN
        NULL;
    END;
END
$$;
SELECT s.what, t.* FROM (VALUES
    ('one bit of chunk 0', $$UPDATE evidence.archive_chunk SET data = set_bit(data, 1000, 1 - get_bit(data, 1000)) WHERE export_id = '$id' AND seq = 0$$),
    ('one bit of chunk 1', $$UPDATE evidence.archive_chunk SET data = set_bit(data, 1000, 1 - get_bit(data, 1000)) WHERE export_id = '$id' AND seq = 1$$),
    ('chunk and its digest', $$UPDATE evidence.archive_chunk SET data = set_byte(data, 0, 0), sha256 = sha256(set_byte(data, 0, 0)) WHERE export_id = '$id' AND seq = 1$$),
    ('shorter by a byte', $$UPDATE evidence.archive_chunk SET data = substr(data, 2) WHERE export_id = '$id' AND seq = 0$$),
    ('longer by a byte', $$UPDATE evidence.archive_chunk SET data = data || '\x00' WHERE export_id = '$id' AND seq = 1$$),
    ('first chunk gone', $$DELETE FROM evidence.archive_chunk WHERE export_id = '$id' AND seq = 0$$),
    ('last chunk gone', $$DELETE FROM evidence.archive_chunk WHERE export_id = '$id' AND seq = (SELECT archive_chunks - 1 FROM evidence.audit_export WHERE id = '$id')$$),
    ('all chunks gone', $$DELETE FROM evidence.archive_chunk WHERE export_id = '$id'$$),
    ('one chunk more', $$INSERT INTO evidence.archive_chunk SELECT attempt_token, 900, sha256, data, export_id FROM evidence.archive_chunk WHERE export_id = '$id' AND seq = 0$$),
    ('two exchanged', $$UPDATE evidence.archive_chunk AS c SET data = o.data, sha256 = o.sha256 FROM evidence.archive_chunk AS o
                        WHERE c.attempt_token = o.attempt_token AND c.export_id = '$id' AND (c.seq, o.seq) IN ((0, 1), (1, 0))$$),
    ('digest of the ledger', $$UPDATE evidence.audit_export SET chunks_sha256 = repeat('0', 64) WHERE id = '$id'$$),
    ('size of the ledger', $$UPDATE evidence.audit_export SET archive_bytes = archive_bytes - 1 WHERE id = '$id'$$),
    ('nothing', $$SELECT 1$$)) AS s (what, change), test.tamper(:'id', :'grant', s.change) AS t;
SELECT test.try(format($$UPDATE evidence.audit_export SET archive_sha256 = repeat('0', 64) WHERE id = %L$$, :'id')) AS can_be_tried;
SET ROLE regress_ann;
SELECT test.try(format('SELECT evidence.grant_audit_export_download(%L)', :'id')) AS answer;
RESET ROLE;
UPDATE evidence.audit_export AS e SET archive_sha256 = (SELECT encode(sha256(string_agg(data, ''::bytea ORDER BY seq)), 'hex') FROM test.fetched) WHERE id = :'id';

-- Revocation counts at once, also in the middle of a cursor, a prepared statement or a
-- wrapper that lies about itself -----------------------------------------------------------
SET ROLE regress_ann;
SELECT evidence.grant_audit_export_download(:'id') AS "grant" \gset
PREPARE again AS SELECT count(*) > 0 AS released FROM evidence.fetch_audit_export(:'grant');
EXECUTE again;
BEGIN;
DECLARE c CURSOR FOR SELECT (evidence.fetch_audit_export(:'grant')).seq;
FETCH 1 FROM c;
SELECT evidence.revoke_audit_export(:'id', 'given to the wrong person');
SAVEPOINT s;
FETCH 1 FROM c;
ROLLBACK TO s;
-- A revocation that is rolled back was none.
ROLLBACK;
EXECUTE again;
SELECT evidence.revoke_audit_export(:'id', 'given to the wrong person');
EXECUTE again;
SELECT test.try(format('SELECT evidence.fetch_audit_export(%L)', :'grant')) AS fetch;
SELECT test.immutable_fetch(:'grant');
SELECT test.try(format('SELECT evidence.grant_audit_export_download(%L)', :'id')) AS grant_again;
-- Revoking twice is one revocation; a cancellation comes too late.
SELECT evidence.revoke_audit_export(:'id', 'again');
SELECT test.code(format('SELECT evidence.cancel_audit_export(%L, ''x'')', :'id')) AS cancel;
RESET ROLE;
SELECT count(*) FILTER (WHERE revoked_at IS NULL) AS open_grants FROM evidence.download_grant WHERE export_id = :'id';
SELECT event, from_state, to_state, actor, reason FROM evidence.export_event WHERE export_id = :'id' AND event = 'revoked';
SELECT count(*) AS audit_rows FROM evidence.audit_log WHERE target_id = :'id' AND action = 'audit_export.revoke';

DROP TABLE test.deferred, test.fetched, test.audited_before;
DROP VIEW test.audited;
DROP FUNCTION test.at_commit, test.immutable_fetch, test.immutable_grant, test.tamper;
DROP PROCEDURE test.rolls_back;
REVOKE CREATE ON SCHEMA test FROM regress_ann;
SELECT evidence.revoke_capability('regress_ann', 'requester');
SELECT evidence.revoke_capability('regress_ben', 'requester');
DROP ROLE regress_ann, regress_ben;
