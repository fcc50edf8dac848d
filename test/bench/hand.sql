-- hand.sql: tables of the same shape as those that a request and an audit
-- event write to, without triggers, and what a site might write by hand.

CREATE SCHEMA hand;
CREATE TABLE hand.audit_log (LIKE evidence.audit_log INCLUDING ALL);
-- A time of the server's own, which is what somebody would write here.
ALTER TABLE hand.audit_log ALTER COLUMN created_at SET DEFAULT now();
CREATE TABLE hand.audit_export (LIKE evidence.audit_export INCLUDING ALL);
CREATE TABLE hand.background_job (LIKE evidence.background_job INCLUDING ALL);
CREATE TABLE hand.outbox_event (LIKE evidence.outbox_event INCLUDING ALL);
CREATE TABLE hand.export_event (LIKE evidence.export_event INCLUDING ALL);
CREATE TABLE hand.audit_delivery (LIKE evidence.audit_delivery INCLUDING ALL);

-- The five INSERTs of hand_request.sql in one call.
CREATE FUNCTION hand.request() RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    export_id uuid;
    job_id bigint;
BEGIN
    INSERT INTO hand.audit_export
           (id, state, source, start_at, end_at, filters, columns,
            column_version, purpose, policy_version, redaction,
            ruleset_version, ruleset_sha256, request_digest, consistency,
            snapshot_at, snapshot, request_xid, system_identifier,
            incarnation, requested_by, session_role, requested_at)
    VALUES (gen_random_uuid(), 'QUEUED', 'audit_log', '2025-01-01 00:00+00',
            '2025-01-31 00:00+00', '{}',
            '{id,created_at,tenant_id,actor_id,actor_role,action,target_type,target_id,outcome,error_code,request_id,source_fingerprint,summary}',
            1, 'benchmark', 1, true, 1, repeat('ab', 32), repeat('cd', 32),
            'as-of-request', now(), pg_current_snapshot(),
            pg_current_xact_id(), '7000000000000000000',
            '00000000-0000-0000-0000-000000000001', current_user,
            session_user, now())
    RETURNING id INTO export_id;
    INSERT INTO hand.background_job
           (export_id, state, next_attempt_at, created_at)
    VALUES (export_id, 'QUEUED', now(), now())
    RETURNING id INTO job_id;
    INSERT INTO hand.outbox_event
           (kind, export_id, job_id, generation, state, next_attempt_at,
            created_at)
    VALUES ('audit_export.generate', export_id, job_id, 1, 'PENDING', now(),
            now());
    INSERT INTO hand.export_event
           (at, export_id, event, to_state, version, actor, session_role,
            detail)
    VALUES (now(), export_id, 'requested', 'QUEUED', 1, current_user,
            session_user, jsonb_build_object('job', job_id));
    INSERT INTO hand.audit_log
           (tenant_id, actor_id, actor_role, action, target_type, target_id,
            outcome, summary)
    VALUES ('default', current_user, session_user, 'audit_export.request',
            'audit_export', export_id::text, 'success', 'benchmark');
    RETURN export_id;
END
$$;
