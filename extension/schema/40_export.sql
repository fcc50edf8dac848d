-- 40_export.sql: the three facts of an export, its attempts, its bytes, who
-- may fetch them, and the history of it all.
--
-- Tables that are dumped have no foreign keys: these would be there before
-- the rows, which pg_restore --jobs brings in any order.  Nothing deletes rows
-- of theirs, and the functions of the ledger insert what belongs together.

CREATE TABLE evidence.audit_export (
    id                uuid PRIMARY KEY,
    state             text NOT NULL CHECK (evidence._state_known('export', state)),
    version           bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    generation        integer NOT NULL DEFAULT 1 CHECK (generation > 0),
    -- The contract: never changes.
    source            text NOT NULL,
    start_at          timestamptz NOT NULL CHECK (isfinite(start_at)),
    end_at            timestamptz NOT NULL CHECK (isfinite(end_at)),
    filters           jsonb NOT NULL CHECK (jsonb_typeof(filters) = 'object'),
    columns           text[] NOT NULL CHECK (cardinality(columns) > 0),
    column_version    integer NOT NULL,
    purpose           text NOT NULL CHECK (purpose ~ '\S'),
    policy_version    integer NOT NULL,
    redaction         boolean NOT NULL,
    ruleset_version   integer NOT NULL,
    ruleset_sha256    text NOT NULL CHECK (ruleset_sha256 ~ '^[0-9a-f]{64}$'),
    request_digest    text NOT NULL CHECK (request_digest ~ '^[0-9a-f]{64}$'),
    idempotency_key   text CHECK (idempotency_key <> ''),
    consistency       text NOT NULL,
    snapshot_at       timestamptz NOT NULL,
    snapshot          pg_snapshot NOT NULL,
    request_xid       xid8 NOT NULL,
    system_identifier text NOT NULL,
    incarnation       uuid NOT NULL,
    requested_by      text NOT NULL,
    session_role      text NOT NULL,
    requested_at      timestamptz NOT NULL,
    recreated_from    uuid,
    -- The run.
    attempt_token     uuid,
    record_count      bigint CHECK (record_count >= 0),
    error_code        text,
    error_message     text,
    error_hint        text,
    cancelled_at      timestamptz,
    stopped_at        timestamptz,
    failed_at         timestamptz,
    -- The selected archive.
    staged_at         timestamptz,
    archive_token     uuid,
    archive_bytes     bigint CHECK (archive_bytes > 0),
    archive_chunks    integer CHECK (archive_chunks > 0),
    archive_sha256    text CHECK (archive_sha256 ~ '^[0-9a-f]{64}$'),
    chunks_sha256     text CHECK (chunks_sha256 ~ '^[0-9a-f]{64}$'),
    records_bytes     bigint CHECK (records_bytes > 0),
    records_sha256    text CHECK (records_sha256 ~ '^[0-9a-f]{64}$'),
    ready_at          timestamptz,
    expires_at        timestamptz,
    -- Where it lies, if not in archive_chunk.
    object_bucket     text,
    object_key        text,
    object_version    text,
    locked_until      timestamptz,
    legal_hold        boolean,
    CONSTRAINT audit_export_range CHECK (start_at < end_at),
    CONSTRAINT audit_export_recreated CHECK (recreated_from <> id),
    CONSTRAINT audit_export_attempt CHECK ((state = 'PROCESSING') = (attempt_token IS NOT NULL)),
    CONSTRAINT audit_export_archive CHECK (
        CASE WHEN state IN ('READY', 'EXPIRED', 'REVOKED')
             THEN num_nulls(archive_token, archive_bytes, archive_chunks, archive_sha256, chunks_sha256,
                            records_bytes, records_sha256, record_count, ready_at, expires_at) = 0
             WHEN state = 'STAGED'
             THEN num_nulls(archive_token, archive_bytes, archive_chunks, archive_sha256, chunks_sha256,
                            records_bytes, records_sha256, record_count, staged_at) = 0
                  AND num_nonnulls(ready_at, expires_at) = 0
             ELSE num_nonnulls(archive_token, archive_bytes, archive_chunks, archive_sha256, chunks_sha256,
                               records_bytes, records_sha256, ready_at, expires_at) = 0
        END),
    CONSTRAINT audit_export_object CHECK (
        (object_bucket IS NULL) = (object_key IS NULL)
        AND (object_key IS NULL OR state IN ('READY', 'EXPIRED', 'REVOKED'))
        AND (object_key IS NOT NULL OR num_nonnulls(object_version, locked_until, legal_hold) = 0)),
    CONSTRAINT audit_export_window CHECK (expires_at > ready_at),
    CONSTRAINT audit_export_failed CHECK ((state = 'FAILED') = (failed_at IS NOT NULL)),
    CONSTRAINT audit_export_failure CHECK (state <> 'FAILED' OR error_code IS NOT NULL),
    CONSTRAINT audit_export_cancelled CHECK ((state = 'CANCELLED') = (cancelled_at IS NOT NULL)),
    CONSTRAINT audit_export_stopped CHECK (stopped_at IS NULL OR state = 'CANCELLED')
);
CREATE UNIQUE INDEX audit_export_idempotency ON evidence.audit_export (requested_by, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX audit_export_active ON evidence.audit_export (requested_by)
    WHERE state IN ('QUEUED', 'PROCESSING', 'STAGED');
CREATE INDEX audit_export_expiry ON evidence.audit_export (expires_at) WHERE state = 'READY';
CREATE INDEX audit_export_staged ON evidence.audit_export (staged_at) WHERE state = 'STAGED';
CREATE INDEX audit_export_recreated ON evidence.audit_export (recreated_from) WHERE recreated_from IS NOT NULL;
CREATE INDEX audit_export_object ON evidence.audit_export (object_bucket) WHERE object_bucket IS NOT NULL;
COMMENT ON TABLE evidence.audit_export IS
    'Fact 1: one export, its immutable contract, its state and its selected archive.';
COMMENT ON COLUMN evidence.audit_export.id IS 'Identity of the export.';
COMMENT ON COLUMN evidence.audit_export.state IS 'See _state_moves().';
COMMENT ON COLUMN evidence.audit_export.version IS 'Raised by one with every change of state.';
COMMENT ON COLUMN evidence.audit_export.generation IS 'Raised when an export is opened again; an older generation can commit nothing, and all attempts of one give the same archive.';
COMMENT ON COLUMN evidence.audit_export.source IS 'Contract: the audit source.';
COMMENT ON COLUMN evidence.audit_export.start_at IS 'Contract: first time of the range, included.';
COMMENT ON COLUMN evidence.audit_export.end_at IS 'Contract: end of the range, excluded.';
COMMENT ON COLUMN evidence.audit_export.filters IS 'Contract: lists of values by key, canonical.';
COMMENT ON COLUMN evidence.audit_export.columns IS 'Contract: the exported columns in their order.';
COMMENT ON COLUMN evidence.audit_export.column_version IS 'Contract: version of the source''s list of columns.';
COMMENT ON COLUMN evidence.audit_export.purpose IS 'Contract: why the records are taken.';
COMMENT ON COLUMN evidence.audit_export.policy_version IS 'Contract: version of the export policy.';
COMMENT ON COLUMN evidence.audit_export.redaction IS 'Contract: whether known shapes of secrets are replaced.';
COMMENT ON COLUMN evidence.audit_export.ruleset_version IS 'Contract: version of the redaction rules.';
COMMENT ON COLUMN evidence.audit_export.ruleset_sha256 IS 'Contract: their SHA-256.';
COMMENT ON COLUMN evidence.audit_export.request_digest IS 'Contract: SHA-256 of the canonical request.';
COMMENT ON COLUMN evidence.audit_export.idempotency_key IS 'The requester''s key; unique per requester for as long as the row exists.';
COMMENT ON COLUMN evidence.audit_export.consistency IS 'Contract: as-of-request or attempt-snapshot.';
COMMENT ON COLUMN evidence.audit_export.snapshot_at IS 'Contract: when the snapshot was taken.';
COMMENT ON COLUMN evidence.audit_export.snapshot IS 'Contract: a row belongs if its transaction is visible here.';
COMMENT ON COLUMN evidence.audit_export.request_xid IS 'Contract: the requesting transaction, whose own rows never belong.';
COMMENT ON COLUMN evidence.audit_export.system_identifier IS 'Contract: the cluster in which the transaction ids mean something.';
COMMENT ON COLUMN evidence.audit_export.incarnation IS 'Contract: the incarnation of the ledger, see table instance.';
COMMENT ON COLUMN evidence.audit_export.requested_by IS 'Role that asked (current_user), kept as text because the role may be dropped.';
COMMENT ON COLUMN evidence.audit_export.session_role IS 'Role that was logged in (session_user).';
COMMENT ON COLUMN evidence.audit_export.requested_at IS 'When.';
COMMENT ON COLUMN evidence.audit_export.recreated_from IS 'The export whose contract this one has, if recreate_audit_export() made it.';
COMMENT ON COLUMN evidence.audit_export.attempt_token IS 'The attempt that owns the export while it is PROCESSING.';
COMMENT ON COLUMN evidence.audit_export.record_count IS 'Rows exported, or found when they were too many.';
COMMENT ON COLUMN evidence.audit_export.error_code IS 'SQLSTATE of the last failure.';
COMMENT ON COLUMN evidence.audit_export.error_message IS 'Its message, redacted and short.';
COMMENT ON COLUMN evidence.audit_export.error_hint IS 'What to do next.';
COMMENT ON COLUMN evidence.audit_export.cancelled_at IS 'When the cancellation was accepted.';
COMMENT ON COLUMN evidence.audit_export.stopped_at IS 'When the worker had stopped.';
COMMENT ON COLUMN evidence.audit_export.failed_at IS 'When the export failed for good.';
COMMENT ON COLUMN evidence.audit_export.staged_at IS 'When the archive was finished and its way into the object store began.';
COMMENT ON COLUMN evidence.audit_export.archive_token IS 'The attempt whose bytes were selected; bytes of any other attempt are never read.';
COMMENT ON COLUMN evidence.audit_export.archive_bytes IS 'Size of the archive.';
COMMENT ON COLUMN evidence.audit_export.archive_chunks IS 'Number of its chunks.';
COMMENT ON COLUMN evidence.audit_export.archive_sha256 IS 'SHA-256 of the archive.';
COMMENT ON COLUMN evidence.audit_export.chunks_sha256 IS 'SHA-256 over the digests of the chunks, so that a fetch can be checked before its first byte without reading all bytes.';
COMMENT ON COLUMN evidence.audit_export.records_bytes IS 'Size of records.csv.';
COMMENT ON COLUMN evidence.audit_export.records_sha256 IS 'SHA-256 of records.csv.';
COMMENT ON COLUMN evidence.audit_export.ready_at IS 'When the archive became READY.';
COMMENT ON COLUMN evidence.audit_export.expires_at IS 'From this time on it cannot be downloaded.';
COMMENT ON COLUMN evidence.audit_export.object_bucket IS 'Bucket of the archive; NULL if the archive lies in archive_chunk.';
COMMENT ON COLUMN evidence.audit_export.object_key IS 'Its key there; not shown to requesters (S1.44).';
COMMENT ON COLUMN evidence.audit_export.object_version IS 'Its version there, in a bucket with versions.';
COMMENT ON COLUMN evidence.audit_export.locked_until IS 'Until when the store refuses to delete it, as read back from there.';
COMMENT ON COLUMN evidence.audit_export.legal_hold IS 'Whether the store holds it without an end, as read back from there.';

CREATE TABLE evidence.background_job (
    id              bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    export_id       uuid NOT NULL UNIQUE,
    state           text NOT NULL CHECK (evidence._state_known('job', state)),
    version         bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    attempts        integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    deferrals       integer NOT NULL DEFAULT 0 CHECK (deferrals >= 0),
    attempt_token   uuid,
    next_attempt_at timestamptz NOT NULL,
    error_code      text,
    created_at      timestamptz NOT NULL,
    started_at      timestamptz,
    finished_at     timestamptz,
    CONSTRAINT background_job_attempt CHECK ((state = 'RUNNING') = (attempt_token IS NOT NULL)),
    CONSTRAINT background_job_finished CHECK ((state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')) = (finished_at IS NOT NULL))
);
CREATE INDEX background_job_queue ON evidence.background_job (next_attempt_at, id) WHERE state = 'QUEUED';
CREATE INDEX background_job_running ON evidence.background_job (id) WHERE state = 'RUNNING';
COMMENT ON TABLE evidence.background_job IS
    'Fact 2: the execution of an export by the system; it belongs to no user and knows no filter.';
COMMENT ON COLUMN evidence.background_job.id IS 'Deterministic key of the delivery: delivering an event twice finds the same job.';
COMMENT ON COLUMN evidence.background_job.export_id IS 'The export it makes.';
COMMENT ON COLUMN evidence.background_job.state IS 'See _state_moves().';
COMMENT ON COLUMN evidence.background_job.version IS 'Raised by one with every change of state.';
COMMENT ON COLUMN evidence.background_job.attempts IS 'Attempts of this generation that began and were not given back; compared with pg_evidence.max_attempts.';
COMMENT ON COLUMN evidence.background_job.deferrals IS 'Attempts that were given back through no fault of the job.';
COMMENT ON COLUMN evidence.background_job.attempt_token IS 'The attempt that owns the job while it is RUNNING.';
COMMENT ON COLUMN evidence.background_job.next_attempt_at IS 'Not to be claimed before.';
COMMENT ON COLUMN evidence.background_job.error_code IS 'SQLSTATE of the last failure.';
COMMENT ON COLUMN evidence.background_job.created_at IS 'When it was created.';
COMMENT ON COLUMN evidence.background_job.started_at IS 'When its last attempt began.';
COMMENT ON COLUMN evidence.background_job.finished_at IS 'When it came to its end.';

CREATE TABLE evidence.outbox_event (
    id              bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    kind            text NOT NULL CHECK (kind IN ('audit_export.generate', 'archive.upload', 'object.delete')),
    export_id       uuid NOT NULL,
    job_id          bigint NOT NULL,
    generation      integer NOT NULL,
    state           text NOT NULL CHECK (evidence._state_known('outbox', state)),
    version         bigint NOT NULL DEFAULT 1 CHECK (version > 0),
    attempts        integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_attempt_at timestamptz NOT NULL,
    error_code      text,
    reason          text,
    created_at      timestamptz NOT NULL,
    settled_at      timestamptz,
    UNIQUE (kind, export_id, generation),
    CONSTRAINT outbox_event_settled CHECK ((state = 'PENDING') = (settled_at IS NULL))
);
CREATE INDEX outbox_event_due ON evidence.outbox_event (kind, next_attempt_at, id) WHERE state = 'PENDING';
CREATE INDEX outbox_event_job ON evidence.outbox_event (job_id);
COMMENT ON TABLE evidence.outbox_event IS
    'Fact 3: what was promised by a commit and not yet handed over; its payload is ids only.';
COMMENT ON COLUMN evidence.outbox_event.id IS 'Stable identity of the event.';
COMMENT ON COLUMN evidence.outbox_event.kind IS 'What is to be done: audit_export.generate, archive.upload or object.delete.';
COMMENT ON COLUMN evidence.outbox_event.export_id IS 'For which export.';
COMMENT ON COLUMN evidence.outbox_event.job_id IS 'By which job.';
COMMENT ON COLUMN evidence.outbox_event.generation IS 'For which generation of the export.';
COMMENT ON COLUMN evidence.outbox_event.state IS 'See _state_moves().';
COMMENT ON COLUMN evidence.outbox_event.version IS 'Raised by one with every change of state.';
COMMENT ON COLUMN evidence.outbox_event.attempts IS 'Deliveries that failed.';
COMMENT ON COLUMN evidence.outbox_event.next_attempt_at IS 'Not to be delivered before.';
COMMENT ON COLUMN evidence.outbox_event.error_code IS 'SQLSTATE of the last failed delivery.';
COMMENT ON COLUMN evidence.outbox_event.reason IS 'Why it was closed without being delivered.';
COMMENT ON COLUMN evidence.outbox_event.created_at IS 'When it was promised.';
COMMENT ON COLUMN evidence.outbox_event.settled_at IS 'When it was delivered, given up or closed.';

-- Leases and bytes belong to this running cluster; neither is dumped.
CREATE TABLE evidence.attempt (
    token       uuid PRIMARY KEY,
    job_id      bigint NOT NULL REFERENCES evidence.background_job,
    export_id   uuid NOT NULL REFERENCES evidence.audit_export,
    generation  integer NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('exporter', 'session')),
    boot_id     bigint NOT NULL,
    pid         integer NOT NULL,
    started_at  timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    ended_at    timestamptz,
    outcome     text CHECK (outcome IN ('succeeded', 'failed', 'deferred', 'lost', 'cancelled')),
    error_code  text,
    CONSTRAINT attempt_ended CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE UNIQUE INDEX attempt_live ON evidence.attempt (job_id) WHERE ended_at IS NULL;
COMMENT ON TABLE evidence.attempt IS
    'One lease by one worker. Every change that a worker makes joins its row here, so a worker without a lease changes nothing.';
COMMENT ON COLUMN evidence.attempt.token IS '128 random bits; the fence.';
COMMENT ON COLUMN evidence.attempt.job_id IS 'The job.';
COMMENT ON COLUMN evidence.attempt.export_id IS 'The export.';
COMMENT ON COLUMN evidence.attempt.generation IS 'Generation of the export when the attempt began.';
COMMENT ON COLUMN evidence.attempt.kind IS 'exporter: a background worker; session: run_once() in somebody''s session.';
COMMENT ON COLUMN evidence.attempt.boot_id IS 'Life of the shared memory in which the worker was started; another life means that the worker is dead.';
COMMENT ON COLUMN evidence.attempt.pid IS 'Its process.';
COMMENT ON COLUMN evidence.attempt.started_at IS 'When it was claimed.';
COMMENT ON COLUMN evidence.attempt.lease_until IS 'After this time the attempt can change nothing any more.';
COMMENT ON COLUMN evidence.attempt.ended_at IS 'When it came to its end.';
COMMENT ON COLUMN evidence.attempt.outcome IS 'How it ended.';
COMMENT ON COLUMN evidence.attempt.error_code IS 'SQLSTATE, if it failed.';

CREATE TABLE evidence.archive_chunk (
    attempt_token uuid NOT NULL,
    seq           integer NOT NULL CHECK (seq >= 0),
    sha256        bytea NOT NULL CHECK (length(sha256) = 32),
    data          bytea NOT NULL,
    export_id     uuid NOT NULL REFERENCES evidence.audit_export,
    PRIMARY KEY (attempt_token, seq)
);
-- Deflate leaves nothing to compress, and EXTERNAL lets a part be read alone.
ALTER TABLE evidence.archive_chunk ALTER COLUMN data SET STORAGE EXTERNAL;
COMMENT ON TABLE evidence.archive_chunk IS
    'The bytes of archives, in chunks of 64 kB.';
COMMENT ON COLUMN evidence.archive_chunk.attempt_token IS 'The attempt that wrote the chunk; only those of the export''s archive_token count.';
COMMENT ON COLUMN evidence.archive_chunk.seq IS 'Number of the chunk, from 0.';
COMMENT ON COLUMN evidence.archive_chunk.sha256 IS 'SHA-256 of data.';
COMMENT ON COLUMN evidence.archive_chunk.data IS '65,536 bytes, the last chunk fewer.';
COMMENT ON COLUMN evidence.archive_chunk.export_id IS 'The export.';

CREATE TABLE evidence.download_grant (
    id             bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    secret_sha256  bytea NOT NULL UNIQUE CHECK (length(secret_sha256) = 32),
    export_id      uuid NOT NULL REFERENCES evidence.audit_export,
    archive_token  uuid NOT NULL,
    subject        text NOT NULL,
    session_role   text NOT NULL,
    reason         text,
    granted_at     timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    revoked_at     timestamptz,
    CONSTRAINT download_grant_window CHECK (expires_at > granted_at)
);
CREATE INDEX download_grant_export ON evidence.download_grant (export_id);
COMMENT ON TABLE evidence.download_grant IS
    'One subject''s permission to fetch one archive. Not dumped: a grant means nothing in another cluster.';
COMMENT ON COLUMN evidence.download_grant.id IS 'Number that logs and events use; it opens nothing.';
COMMENT ON COLUMN evidence.download_grant.secret_sha256 IS 'Digest of the grant; the grant itself is stored nowhere.';
COMMENT ON COLUMN evidence.download_grant.export_id IS 'The export.';
COMMENT ON COLUMN evidence.download_grant.archive_token IS 'The archive that was selected when it was granted.';
COMMENT ON COLUMN evidence.download_grant.subject IS 'The one role that may use it (current_user at the grant).';
COMMENT ON COLUMN evidence.download_grant.session_role IS 'Role that was logged in.';
COMMENT ON COLUMN evidence.download_grant.reason IS 'Why, in the subject''s words.';
COMMENT ON COLUMN evidence.download_grant.granted_at IS 'When.';
COMMENT ON COLUMN evidence.download_grant.expires_at IS 'From this time on it opens nothing.';
COMMENT ON COLUMN evidence.download_grant.revoked_at IS 'When it was withdrawn.';

CREATE TABLE evidence.export_event (
    id            bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL,
    export_id     uuid NOT NULL,
    event         text NOT NULL CHECK (event ~ '^[a-z_]+$'),
    from_state    text,
    to_state      text,
    version       bigint,
    actor         text NOT NULL,
    session_role  text NOT NULL,
    attempt       text,
    reason        text,
    detail        jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX export_event_export ON evidence.export_event (export_id, id);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON evidence.export_event
    FOR EACH ROW EXECUTE FUNCTION evidence._refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON evidence.export_event
    FOR EACH STATEMENT EXECUTE FUNCTION evidence._refuse_change();
ALTER TABLE evidence.export_event ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE evidence.export_event ENABLE ALWAYS TRIGGER append_only_truncate;
COMMENT ON TABLE evidence.export_event IS
    'History of every export: each change of state, each grant. Append-only.';
COMMENT ON COLUMN evidence.export_event.id IS 'Order of the events.';
COMMENT ON COLUMN evidence.export_event.at IS 'When.';
COMMENT ON COLUMN evidence.export_event.export_id IS 'The export.';
COMMENT ON COLUMN evidence.export_event.event IS 'requested, claimed, retried, deferred, staged, ready, failed, cancelled, stopped, download_granted, download_opened, revoked, expired, object_removed, requeued, reopened, recreated, frozen, unfrozen, filled_in, given_up, adopted.';
COMMENT ON COLUMN evidence.export_event.from_state IS 'State before, if it changed.';
COMMENT ON COLUMN evidence.export_event.to_state IS 'State after, if it changed.';
COMMENT ON COLUMN evidence.export_event.version IS 'Version of the export after the event.';
COMMENT ON COLUMN evidence.export_event.actor IS 'Role that acted (current_user), or the worker''s role.';
COMMENT ON COLUMN evidence.export_event.session_role IS 'Role that was logged in (session_user).';
COMMENT ON COLUMN evidence.export_event.attempt IS 'First eight digits of the attempt''s token, enough to tell attempts apart and useless as a token.';
COMMENT ON COLUMN evidence.export_event.reason IS 'Why, in the actor''s words, or the code of the failure.';
COMMENT ON COLUMN evidence.export_event.detail IS 'Numbers and ids; never record contents, conditions or secrets.';

-- Facts move only as ledger/states knows, and their contract never changes:
-- the arguments name the columns that may.
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON evidence.audit_export
    FOR EACH ROW EXECUTE FUNCTION evidence._guard_fact('export',
        'state', 'version', 'generation', 'attempt_token', 'record_count', 'error_code', 'error_message', 'error_hint',
        'cancelled_at', 'stopped_at', 'failed_at', 'staged_at', 'archive_token', 'archive_bytes', 'archive_chunks',
        'archive_sha256', 'chunks_sha256', 'records_bytes', 'records_sha256', 'ready_at', 'expires_at',
        'object_bucket', 'object_key', 'object_version', 'locked_until', 'legal_hold');
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON evidence.background_job
    FOR EACH ROW EXECUTE FUNCTION evidence._guard_fact('job',
        'state', 'version', 'attempts', 'deferrals', 'attempt_token', 'next_attempt_at', 'error_code',
        'started_at', 'finished_at');
CREATE TRIGGER guard BEFORE UPDATE OR DELETE ON evidence.outbox_event
    FOR EACH ROW EXECUTE FUNCTION evidence._guard_fact('outbox',
        'state', 'version', 'attempts', 'next_attempt_at', 'error_code', 'reason', 'settled_at');
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON evidence.audit_export
    FOR EACH STATEMENT EXECUTE FUNCTION evidence._refuse_change();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON evidence.background_job
    FOR EACH STATEMENT EXECUTE FUNCTION evidence._refuse_change();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON evidence.outbox_event
    FOR EACH STATEMENT EXECUTE FUNCTION evidence._refuse_change();
ALTER TABLE evidence.audit_export ENABLE ALWAYS TRIGGER guard;
ALTER TABLE evidence.background_job ENABLE ALWAYS TRIGGER guard;
ALTER TABLE evidence.outbox_event ENABLE ALWAYS TRIGGER guard;
ALTER TABLE evidence.audit_export ENABLE ALWAYS TRIGGER guard_truncate;
ALTER TABLE evidence.background_job ENABLE ALWAYS TRIGGER guard_truncate;
ALTER TABLE evidence.outbox_event ENABLE ALWAYS TRIGGER guard_truncate;

SELECT pg_catalog.pg_extension_config_dump('evidence.audit_export', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.background_job', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.background_job_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.outbox_event', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.outbox_event_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.export_event', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.export_event_id_seq', '');
