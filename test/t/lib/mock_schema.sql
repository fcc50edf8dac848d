-- A stand-in for the server side of pg_evidence, for tests of the client
-- program: the same functions and view, but every answer, delay and failure
-- is what the test asks for.  The real server cannot be made to send a wrong
-- byte or forty serialization failures in a row.
--
-- mock.version (a setting of the database) is the version it claims to be.
-- The purpose of a request says what happens to it:
--   'conflict CODE N'  the first N calls fail with that SQLSTATE
--   'lose N'           the first N calls end the connection
--   'code CODE'        it fails with that SQLSTATE
--   'hold'             it is never answered
--   'notice'           it is accepted with a notice
--   anything else      it is accepted

CREATE SCHEMA evidence;

-- Sequences keep what a failed transaction has counted.
CREATE SEQUENCE evidence.mock_calls;
CREATE SEQUENCE evidence.mock_grants;
CREATE SEQUENCE evidence.mock_losses;

CREATE TABLE evidence.mock_export (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    state text NOT NULL DEFAULT 'QUEUED',
    source text,
    start_at timestamptz,
    end_at timestamptz,
    purpose text,
    requested_by text DEFAULT current_user,
    requested_at timestamptz DEFAULT clock_timestamp(),
    key text UNIQUE,
    filters jsonb,
    columns text[],
    record_count bigint,
    archive_bytes bigint,
    archive_sha256 text,
    error_code text,
    error_message text,
    error_hint text,
    ready_after interval,       -- READY from then on, by the clock
    progress double precision,  -- in place of the one by the clock
    rows_per_second numeric DEFAULT 71000,
    eta_low interval DEFAULT '3 seconds',
    eta_high interval DEFAULT '5 seconds',
    fetch_mode text NOT NULL DEFAULT '',
    fetch_at int                -- the chunk at which that happens
);

CREATE TABLE evidence.mock_chunk (
    export_id uuid,
    seq int,
    data bytea,
    PRIMARY KEY (export_id, seq)
);

CREATE TABLE evidence.mock_grant (
    token text PRIMARY KEY,
    export_id uuid,
    reason text
);

CREATE VIEW evidence.audit_export_status AS
SELECT id,
       CASE WHEN clock_timestamp() >= requested_at + ready_after THEN 'READY'
            WHEN ready_after IS NOT NULL THEN 'PROCESSING'
            ELSE state END AS state,
       source, start_at, end_at, purpose, requested_by, requested_at,
       1 AS attempt,
       coalesce(progress,
                CASE WHEN ready_after IS NOT NULL
                     THEN least(1, extract(epoch FROM clock_timestamp() - requested_at)
                                   / extract(epoch FROM ready_after)) END) AS progress,
       1000::bigint AS rows_total, 420::bigint AS rows_done,
       92400::bigint AS bytes_done, rows_per_second, eta_low, eta_high,
       record_count, archive_bytes, archive_sha256,
       requested_at AS ready_at,
       requested_at + interval '24 hours' AS expires_at,
       NULL::timestamptz AS cancelled_at, NULL::timestamptz AS stopped_at,
       error_code, error_message, error_hint
  FROM evidence.mock_export;

CREATE FUNCTION evidence.evidence_version() RETURNS text
LANGUAGE sql AS $$
    SELECT coalesce(nullif(current_setting('mock.version', true), ''), '1.0')
$$;

CREATE FUNCTION evidence.mock_fail(code text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'mock failure %', code
        USING ERRCODE = code, DETAIL = 'Mock detail.', HINT = 'Mock hint.';
END
$$;

CREATE FUNCTION evidence.request_audit_export(
    start_at timestamptz, end_at timestamptz, purpose text,
    idempotency_key text = NULL, source text = 'audit_log',
    filters jsonb = '{}', columns text[] = NULL) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
    word text[] := string_to_array(purpose, ' ');
    called bigint := nextval('evidence.mock_calls');
    result uuid;
BEGIN
    RAISE LOG 'mock request with key %', idempotency_key;
    IF word[1] = 'conflict' AND called <= word[3]::int THEN
        PERFORM evidence.mock_fail(word[2]);
    ELSIF word[1] = 'lose' AND called <= word[2]::int THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
        PERFORM pg_sleep(10);
    ELSIF word[1] = 'code' THEN
        PERFORM evidence.mock_fail(word[2]);
    ELSIF word[1] = 'hold' THEN
        PERFORM pg_sleep(3600);
    ELSIF word[1] = 'notice' THEN
        RAISE NOTICE 'mock notice';
    END IF;
    INSERT INTO evidence.mock_export AS e
           (source, start_at, end_at, purpose, key, filters, columns,
            ready_after)
    VALUES (source, start_at, end_at, purpose, idempotency_key, filters,
            columns, CASE word[1] WHEN 'timed' THEN interval '2 seconds' END)
    ON CONFLICT (key) DO UPDATE SET key = e.key
    RETURNING id INTO result;
    RETURN result;
END
$$;

CREATE FUNCTION evidence.cancel_audit_export(export_id uuid, reason text)
RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF reason LIKE 'code %' THEN
        PERFORM evidence.mock_fail(split_part(reason, ' ', 2));
    ELSIF reason = 'lose' THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
        PERFORM pg_sleep(10);
    END IF;
    UPDATE evidence.mock_export SET state = 'CANCELLED' WHERE id = export_id;
    RETURN 'CANCELLED';
END
$$;

CREATE FUNCTION evidence.grant_audit_export_download(
    export_id uuid, reason text = NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    token text := 'grant-' || nextval('evidence.mock_grants');
BEGIN
    IF reason LIKE 'code %' THEN
        PERFORM evidence.mock_fail(split_part(reason, ' ', 2));
    END IF;
    INSERT INTO evidence.mock_grant VALUES (token, export_id, reason);
    RETURN token;
END
$$;

CREATE FUNCTION evidence.fetch_audit_export(
    download_grant text, from_seq int = 0, max_chunks int = NULL,
    OUT seq int, OUT data bytea) RETURNS SETOF record
LANGUAGE plpgsql AS $$
DECLARE
    export evidence.mock_export;
    mode text;
BEGIN
    SELECT e.* INTO STRICT export
      FROM evidence.mock_grant AS g
      JOIN evidence.mock_export AS e ON e.id = g.export_id
     WHERE g.token = download_grant;
    FOR seq, data IN
        SELECT c.seq, c.data FROM evidence.mock_chunk AS c
         WHERE c.export_id = export.id AND c.seq >= from_seq
         ORDER BY c.seq LIMIT max_chunks
    LOOP
        mode := CASE WHEN seq = export.fetch_at THEN export.fetch_mode
                     ELSE '' END;
        IF mode = 'hold' THEN
            -- Until the test says otherwise.
            WHILE EXISTS (SELECT FROM evidence.mock_export AS e
                           WHERE e.id = export.id AND e.fetch_mode = 'hold')
            LOOP
                PERFORM pg_sleep(0.02);
            END LOOP;
        ELSIF mode = 'stop' THEN
            RETURN;
        ELSIF mode = 'skip' THEN
            CONTINUE;
        ELSIF mode = 'flip' THEN
            data := set_byte(data, 0, get_byte(data, 0) # 1);
        ELSIF mode = 'grow' THEN
            data := data || '\x00'::bytea;
        ELSIF mode = 'empty' THEN
            data := '';
        ELSIF mode = 'null' THEN
            data := NULL;
        ELSIF mode LIKE 'code %' THEN
            PERFORM evidence.mock_fail(split_part(mode, ' ', 2));
        ELSIF mode LIKE 'lose %'
              AND nextval('evidence.mock_losses') <= split_part(mode, ' ', 2)::int
        THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
            PERFORM pg_sleep(10);
        ELSIF mode = 'expire' AND download_grant = 'grant-1' THEN
            PERFORM evidence.mock_fail('PE003');
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- All archives lie in the database.
CREATE FUNCTION evidence.locate_download(
    download_grant text, OUT bucket text, OUT object_key text,
    OUT object_version text, OUT bytes bigint, OUT sha256 text)
RETURNS SETOF record
LANGUAGE plpgsql AS $$
BEGIN
    RETURN;
END
$$;

-- Make the export ready with this archive, in chunks of size bytes.
CREATE FUNCTION evidence.mock_store(export_id uuid, archive bytea, size int)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE evidence.mock_export
       SET state = 'READY', record_count = 11,
           archive_bytes = octet_length(archive),
           archive_sha256 = encode(sha256(archive), 'hex')
     WHERE id = export_id;
    INSERT INTO evidence.mock_chunk
    SELECT export_id, n, substr(archive, n * size + 1, size)
      FROM generate_series(0, (octet_length(archive) - 1) / size) AS n;
END
$$;
