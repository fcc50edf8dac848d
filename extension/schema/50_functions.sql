-- 50_functions.sql: the interface.
--
-- Functions that change something are VOLATILE, PARALLEL UNSAFE and SECURITY
-- INVOKER: C judges the right of the calling role and only then acts as the
-- owner.  They refuse to run in a security-restricted operation (42501).
-- Every function also raises 42501 without the capability named with it.

-- Writing the log ---------------------------------------------------------

CREATE FUNCTION evidence.record_audit_event(
        action text, actor_id text, actor_role text DEFAULT NULL, target_type text DEFAULT NULL,
        target_id text DEFAULT NULL, outcome text DEFAULT 'success', error_code text DEFAULT NULL,
        request_id text DEFAULT NULL, summary text DEFAULT NULL, tenant_id text DEFAULT 'default',
        source text DEFAULT NULL, metadata jsonb DEFAULT '{}')
    RETURNS bigint
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_record_audit_event';
COMMENT ON FUNCTION evidence.record_audit_event(text, text, text, text, text, text, text, text, text, text, text, jsonb) IS
    'Appends one row to the audit log in the caller''s transaction and returns its id. The time is the server''s, source is stored as its fingerprint only. Capability writer. Errors: 22023 for a missing or empty action, actor or tenant and for an unknown outcome; 55000 for a source without a key file (S1.45).';

CREATE FUNCTION evidence.fingerprint(raw_source text)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_fingerprint';
COMMENT ON FUNCTION evidence.fingerprint(text) IS
    'The fingerprint under which a source is stored: <key id>:<HMAC-SHA-256>. NULL for NULL. Capability writer. Error: 55000 without pg_evidence.fingerprint_key_file (S1.45).';

-- An export ---------------------------------------------------------------

CREATE FUNCTION evidence.request_audit_export(
        start_at timestamptz, end_at timestamptz, purpose text, idempotency_key text DEFAULT NULL,
        source text DEFAULT 'audit_log', filters jsonb DEFAULT '{}', columns text[] DEFAULT NULL)
    RETURNS uuid
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_request_audit_export';
COMMENT ON FUNCTION evidence.request_audit_export(timestamptz, timestamptz, text, text, text, jsonb, text[]) IS
    'Commits, with the caller''s transaction, the request for the records with start_at <= created_at < end_at, as this moment''s snapshot sees them, and returns its id. The same idempotency_key with the same parameters returns the first id again. filters: lists of values for tenant_id, actor_id, action (exact, or prefix.*), target_type, target_id, outcome, error_code. Capability requester. Errors: 22023 for a bad range, filter, column or purpose; 53400 above pg_evidence.max_active_per_requester; 55000 below what has been retired or in a foreign incarnation; PE001 for the key of another request; 40001 to be retried whole (S1.19, S3.7).';

CREATE FUNCTION evidence.cancel_audit_export(export_id uuid, reason text)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_cancel_audit_export';
COMMENT ON FUNCTION evidence.cancel_audit_export(uuid, text) IS
    'Cancels an export that is not READY yet and returns the state it led to, CANCELLED; one that is CANCELLED already stays so. A worker stops at its next safe point: cancelled_at is when the cancellation was accepted, stopped_at when the worker had stopped. Capability requester for own, operator for any. Errors: 42501 unknown or foreign id; 55000 already READY or final (S3.66 to S3.70).';

CREATE FUNCTION evidence.revoke_audit_export(export_id uuid, reason text)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_revoke_audit_export';
COMMENT ON FUNCTION evidence.revoke_audit_export(uuid, text) IS
    'Withdraws a READY archive and every grant for it; from the commit on nothing of it can be fetched. Returns the state it led to, REVOKED. Capability requester for own, operator for any. Errors: 42501 unknown or foreign id; 55000 not READY.';

CREATE FUNCTION evidence.grant_audit_export_download(export_id uuid, reason text DEFAULT NULL)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_grant_audit_export_download';
COMMENT ON FUNCTION evidence.grant_audit_export_download(uuid, text) IS
    'Checks the whole archive against the ledger, records the download in the audit log and returns a grant for the calling role. It opens the archive once this transaction is committed, for pg_evidence.grant_ttl. The audit row says that the download was authorised, not that it was received (S1.55). Capability requester for own, operator for any. Errors: 42501 unknown or foreign id; PE003 expired or revoked; PE005 not READY yet; PE006 the bytes are not those of the ledger.';

CREATE FUNCTION evidence.fetch_audit_export(
        download_grant text, from_seq integer DEFAULT 0, max_chunks integer DEFAULT NULL,
        OUT seq integer, OUT data bytea)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_fetch_audit_export';
COMMENT ON FUNCTION evidence.fetch_audit_export(text, integer, integer) IS
    'The chunks of the archive from from_seq on, at most max_chunks of them, one by one. Before each chunk the grant is looked up anew in the newest snapshot: it must be committed and flushed, unexpired, unrevoked and the caller''s. Call it in the SELECT list; in FROM the server gathers all rows first. Capability requester or operator, looked up anew too. Errors: 22023 bad number; 42501 unknown or foreign grant; 55000 granted by this very transaction, or on a standby; PE003 expired or revoked; PE006 the bytes are not those of the ledger (S1.46, S1.53).';

CREATE FUNCTION evidence.verify_audit_export(
        export_id uuid, OUT check_name text, OUT ok boolean, OUT detail text)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_verify_audit_export';
COMMENT ON FUNCTION evidence.verify_audit_export(uuid) IS
    'Recomputes records.csv from the live rows and compares its SHA-256 with the ledger''s, and the stored archive with its digests. Capability requester for own, operator and auditor for any. Errors: 42501 unknown or foreign id; 55000 in a foreign incarnation; PE005 not READY yet.';

-- Delivery to an object store ---------------------------------------------
--
-- Called by "pg_evidence upload" and "pg_evidence reconcile", each call in a
-- transaction of its own.

CREATE FUNCTION evidence.claim_delivery(
        uploader text, bucket text, prefix text,
        OUT delivery_token uuid, OUT kind text, OUT export_id uuid, OUT number integer, OUT object_key text,
        OUT object_version text, OUT bytes bigint, OUT chunks integer, OUT sha256 text, OUT look_up boolean,
        OUT multipart_id text, OUT lease_seconds integer)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_claim_delivery';
COMMENT ON FUNCTION evidence.claim_delivery(text, text, text) IS
    'Claims one due upload or removal for this uploader, for pg_evidence.lease; no row means that nothing is due. look_up: an earlier attempt may have put the object into the store, so look before sending. multipart_id: its unfinished upload in parts. Capability uploader. Errors: 22023 bad bucket or prefix; 55000 in a foreign incarnation (S1.27, S1.31, S3.53).';

CREATE FUNCTION evidence.renew_delivery(delivery_token uuid)
    RETURNS boolean
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_renew_delivery';
COMMENT ON FUNCTION evidence.renew_delivery(uuid) IS
    'Lengthens the lease by pg_evidence.lease from now on. False: it is lost, or the export was cancelled or has ended; stop. Capability uploader (S1.28).';

CREATE FUNCTION evidence.read_delivery_chunk(delivery_token uuid, seq integer)
    RETURNS bytea
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_read_delivery_chunk';
COMMENT ON FUNCTION evidence.read_delivery_chunk(uuid, integer) IS
    'Chunk seq, from 0, of the archive that this token may upload, checked against its digest; lengthens the lease when half of it is over. Capability uploader. Errors: 22023 no such chunk; PE004 lost lease; PE006 the chunk is not what was stored.';

CREATE FUNCTION evidence.record_sending(delivery_token uuid, multipart_id text DEFAULT NULL)
    RETURNS void
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_record_sending';
COMMENT ON FUNCTION evidence.record_sending(uuid, text) IS
    'To be committed before the first byte is sent: from here on nobody knows what the store has until somebody has looked. Keeps the name of an upload in parts, or forgets it. Capability uploader. Errors: PE004 lost lease (S3.52, S3.54).';

CREATE FUNCTION evidence.confirm_delivery(
        delivery_token uuid, bytes bigint, sha256 text, object_version text DEFAULT NULL,
        lock_mode text DEFAULT NULL, retain_until timestamptz DEFAULT NULL, legal_hold boolean DEFAULT false)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_confirm_delivery';
COMMENT ON FUNCTION evidence.confirm_delivery(uuid, bigint, text, text, text, timestamptz, boolean) IS
    'Says what a look-up found in the store. If that is the archive of the ledger, the export becomes READY for pg_evidence.download_window and its chunks are deleted: returns READY. If it is something else, the export is FAILED with PE006 and a finding tells why: returns QUARANTINED. Capability uploader. Errors: 22023 bad digest or mode; PE004 lost lease (S1.30, S3.52, S3.57).';

CREATE FUNCTION evidence.confirm_removal(delivery_token uuid, existed boolean)
    RETURNS void
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_confirm_removal';
COMMENT ON FUNCTION evidence.confirm_removal(uuid, boolean) IS
    'Says that the object is gone, and whether it was there. Capability uploader. Errors: PE004 lost lease (S1.47, S3.71).';

CREATE FUNCTION evidence.fail_delivery(
        delivery_token uuid, class text, code text, message text, retry_after integer DEFAULT NULL,
        locked_until timestamptz DEFAULT NULL)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_fail_delivery';
COMMENT ON FUNCTION evidence.fail_delivery(uuid, text, text, text, integer, timestamptz) IS
    'Gives the work back. class deferral: no fault of this item, not counted; transient: tried again after a pause that grows from 2 s to 5 min, and given up after 100; definite: given up at once. retry_after seconds and locked_until are lower limits of the pause. Returns the state of the outbox event: PENDING, DEAD, or CLOSED if it is not wanted any more. Capability uploader. Errors: 22023 bad class; PE004 lost lease (S1.33, S3.55).';

CREATE FUNCTION evidence.delivery_status(
        OUT delivery text, OUT download_window integer, OUT staged_deadline integer, OUT lease integer,
        OUT uploads_waiting bigint, OUT uploads_dead bigint, OUT removals_waiting bigint, OUT removals_dead bigint,
        OUT oldest_waiting_at timestamptz, OUT next_due double precision)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_delivery_status';
COMMENT ON FUNCTION evidence.delivery_status() IS
    'One row: where finished archives go, the settings in seconds, how many uploads and removals wait or were given up, since when the oldest waits, and in how many seconds the next is due. Capabilities uploader and operator.';

CREATE FUNCTION evidence.known_objects(
        bucket text, OUT object_key text, OUT object_version text, OUT export_id uuid, OUT export_state text,
        OUT needed boolean, OUT busy boolean, OUT bytes bigint, OUT sha256 text, OUT multipart_id text)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_known_objects';
COMMENT ON FUNCTION evidence.known_objects(text) IS
    'Every key in this bucket that the ledger knows. needed: it must exist with these bytes and this digest. busy: an upload or a removal is on its way; leave it alone. export_state QUARANTINED: it holds something else, which is to be kept for examination. A key that is not listed belongs to no export. Capability uploader. Errors: 22023 bad bucket; 55000 in a foreign incarnation (S3.92, S3.93).';

CREATE FUNCTION evidence.record_reconciliation(
        bucket text, prefix text, started_at timestamptz, objects bigint, findings jsonb)
    RETURNS bigint
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_record_reconciliation';
COMMENT ON FUNCTION evidence.record_reconciliation(text, text, timestamptz, bigint, jsonb) IS
    'Writes down what a comparison of the store with known_objects() found, and closes earlier findings below the prefix that are not in it any more; returns how many are open. findings: array of objects with rule, key, export_id, action, fixed, detail. Capability uploader. Errors: 22023 (S3.92).';

CREATE FUNCTION evidence.locate_download(
        download_grant text, OUT bucket text, OUT object_key text, OUT object_version text, OUT bytes bigint,
        OUT sha256 text)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_locate_download';
COMMENT ON FUNCTION evidence.locate_download(text) IS
    'Where the archive of this committed grant lies in the object store; no row: it is in the database, see fetch_audit_export(). Capability requester for own, operator for any. Errors as fetch_audit_export().';

CREATE FUNCTION evidence.record_download(download_grant text, bytes bigint, sha256 text)
    RETURNS void
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_record_download';
COMMENT ON FUNCTION evidence.record_download(text, bigint, text) IS
    'To be committed after the object was opened and before its first byte is handed out: compares its size and digest with the ledger and writes the strict audit row. It says that the download was authorised and the stream prepared, not that it was received (S1.53, S1.55). Capability requester for own, operator for any. Errors as fetch_audit_export(); PE006 the object is not the archive.';

CREATE FUNCTION evidence.requeue_outbox_event(event_id bigint, reason text)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_requeue_outbox_event';
COMMENT ON FUNCTION evidence.requeue_outbox_event(bigint, text) IS
    'Takes up an event again that was given up (DEAD), after what stood in its way has been repaired; returns PENDING. If its audit row cannot be written, a warning says so and the event is taken up all the same. Capability operator. Errors: 22023 unknown event or no reason; 55000 not DEAD, given up longer ago than pg_evidence.requeue_window, or not wanted any more (S1.54, S1.56).';

-- Rights ------------------------------------------------------------------

CREATE FUNCTION evidence.grant_capability(role regrole, capability text)
    RETURNS void
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_grant_capability';
COMMENT ON FUNCTION evidence.grant_capability(regrole, text) IS
    'Gives a role, and all its members, the capability requester, operator, auditor, writer or uploader, with USAGE and EXECUTE for it. Superusers only. Errors: 22023 unknown capability.';

CREATE FUNCTION evidence.revoke_capability(role regrole, capability text)
    RETURNS void
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_revoke_capability';
COMMENT ON FUNCTION evidence.revoke_capability(regrole, text) IS
    'Takes a capability back, with the privileges that only it needed; effective at once, also for sessions and grants that exist. Superusers only. Errors: 22023 unknown capability; 55000 the role does not have it.';

CREATE FUNCTION evidence._sees(requested_by text)
    RETURNS boolean
    LANGUAGE C STABLE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_sees';
COMMENT ON FUNCTION evidence._sees(text) IS
    'May the calling role read the status of exports that this role requested?';

CREATE FUNCTION evidence._scrub(shown text)
    RETURNS text
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_scrub';
COMMENT ON FUNCTION evidence._scrub(text) IS
    'The text without known shapes of secrets, for people to read.';

-- Redaction rules ---------------------------------------------------------

CREATE FUNCTION evidence.add_redaction_rule(
        name text, pattern text, reason text, anchors text[] DEFAULT '{}', join_lines boolean DEFAULT false)
    RETURNS integer
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_add_redaction_rule';
COMMENT ON FUNCTION evidence.add_redaction_rule(text, text, text, text[], boolean) IS
    'Adds a rule, or replaces the one of this name, from the next ruleset version on, which it returns; exports requested earlier keep theirs. Capability operator. Errors: 22023 for a name, a pattern or an anchor that cannot be used, with the place in the pattern.';

CREATE FUNCTION evidence.retire_redaction_rule(name text, reason text)
    RETURNS integer
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_retire_redaction_rule';
COMMENT ON FUNCTION evidence.retire_redaction_rule(text, text) IS
    'Leaves a rule out from the next ruleset version on, which it returns. Capability operator. Errors: 22023 if no rule of this name is in use.';

-- Running -----------------------------------------------------------------

CREATE PROCEDURE evidence.run_once()
    LANGUAGE C
    AS 'MODULE_PATHNAME', 'ev_sql_run_once';
COMMENT ON PROCEDURE evidence.run_once() IS
    'Does in this session what one round of the launcher and one exporter would do: recover dead attempts, deliver due events, make one archive. It commits in between. Capability operator. Errors: 25001 inside a transaction block; 55000 in a foreign incarnation.';

CREATE FUNCTION evidence.adopt_instance(reason text)
    RETURNS bigint
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_adopt_instance';
COMMENT ON FUNCTION evidence.adopt_instance(text) IS
    'Makes a restored dump this cluster''s own: unfinished exports become FAILED, READY ones EXPIRED since their bytes are not in a dump, and the rows of the log are stamped anew; returns the number of rows. Capability operator. Errors: 22023 without a reason; 55000 if the incarnation is not foreign.';

CREATE FUNCTION evidence._progress(
        attempt_token uuid, OUT rows_total bigint, OUT rows_done bigint, OUT bytes_done bigint,
        OUT seconds double precision)
    RETURNS record
    LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_progress';
COMMENT ON FUNCTION evidence._progress(uuid) IS
    'How far the exporter of this attempt has come; NULLs if there is none.';
