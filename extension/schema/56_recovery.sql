-- 56_recovery.sql: what an operator does by hand after a failure, and what
-- tells how an export came to stand where it stands.

CREATE FUNCTION evidence.retry_audit_export(export_id uuid, reason text)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_retry_audit_export';
COMMENT ON FUNCTION evidence.retry_audit_export(uuid, text) IS
    'Opens a FAILED export again, with the same id and contract and the next generation, and returns QUEUED. Capability operator; the quota is the requester''s. Errors: 42501 unknown id; 53400 above pg_evidence.max_active_per_requester; 55000 not FAILED, records of its range have been retired, or requested in an earlier incarnation (S3.26 to S3.28).';

CREATE FUNCTION evidence.recreate_audit_export(export_id uuid, reason text)
    RETURNS uuid
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_recreate_audit_export';
COMMENT ON FUNCTION evidence.recreate_audit_export(uuid, text) IS
    'Makes a new export with the whole contract of one that has ended (EXPIRED, REVOKED, CANCELLED or FAILED), requester and snapshot included, so records.csv is the same; returns its id. Capability operator; the quota is the requester''s. Errors: 42501 unknown id; 53400 above pg_evidence.max_active_per_requester; 55000 not ended, recreated already, records of its range have been retired, or requested in an earlier incarnation (S3.76).';
