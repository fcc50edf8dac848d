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
