-- 60_views.sql: what people look at.

CREATE VIEW evidence.audit_export_status WITH (security_barrier) AS
WITH pace AS (
    -- How long exports took lately, for those that still wait.
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds
      FROM (SELECT extract(epoch FROM j.finished_at - j.started_at)::double precision AS seconds
              FROM evidence.background_job AS j
             WHERE j.state = 'SUCCEEDED'
             ORDER BY j.finished_at DESC
             LIMIT 20) AS latest
),
visible AS (
    SELECT e.*, j.id AS job_id, j.attempts, j.deferrals, j.next_attempt_at,
           p.rows_total, p.rows_done, p.bytes_done,
           CASE WHEN p.seconds > 0 THEN p.rows_done / p.seconds END AS rows_per_second,
           CASE WHEN p.rows_total > 0 THEN p.rows_done::double precision / p.rows_total
                WHEN p.rows_total = 0 THEN 1 END AS progress,
           (SELECT count(*) FROM evidence.background_job AS q
             WHERE q.state IN ('QUEUED', 'RUNNING') AND q.id < j.id) AS ahead
      FROM evidence.audit_export AS e
      JOIN evidence.background_job AS j ON j.export_id = e.id
      LEFT JOIN LATERAL evidence._progress(e.attempt_token) AS p ON e.state = 'PROCESSING'
     WHERE evidence._sees(e.requested_by)
),
estimated AS (
    SELECT v.*,
           CASE WHEN v.state = 'PROCESSING' AND v.rows_per_second > 0
                THEN (v.rows_total - v.rows_done) / v.rows_per_second
                WHEN v.state = 'QUEUED'
                THEN (v.ahead + 1) * pace.seconds
                     + greatest(0, extract(epoch FROM v.next_attempt_at - evidence._now())::double precision)
           END AS seconds_left
      FROM visible AS v CROSS JOIN pace
)
SELECT id, state, source, start_at, end_at, evidence._scrub(purpose) AS purpose, requested_by, requested_at,
       attempts AS attempt,
       round((CASE WHEN state IN ('STAGED', 'READY', 'EXPIRED', 'REVOKED') THEN 1 ELSE progress END)::numeric, 4) AS progress,
       rows_total, rows_done, bytes_done,
       round(rows_per_second::numeric, 1) AS rows_per_second,
       make_interval(secs => round(seconds_left * 0.75)) AS eta_low,
       make_interval(secs => ceil(seconds_left * 1.5)) AS eta_high,
       record_count, archive_bytes, archive_sha256, ready_at, expires_at, cancelled_at, stopped_at,
       error_code, error_message, error_hint
  FROM estimated;
COMMENT ON VIEW evidence.audit_export_status IS
    'State and progress of exports. A requester sees those of the roles it is a member of; operators and auditors see all.';
COMMENT ON COLUMN evidence.audit_export_status.id IS 'Identity of the export.';
COMMENT ON COLUMN evidence.audit_export_status.state IS 'QUEUED, PROCESSING, STAGED (made, on its way into the object store), READY, EXPIRED, REVOKED, FAILED or CANCELLED.';
COMMENT ON COLUMN evidence.audit_export_status.source IS 'The audit source.';
COMMENT ON COLUMN evidence.audit_export_status.start_at IS 'First time of the range, included.';
COMMENT ON COLUMN evidence.audit_export_status.end_at IS 'End of the range, excluded.';
COMMENT ON COLUMN evidence.audit_export_status.purpose IS 'Why it was requested, without known shapes of secrets.';
COMMENT ON COLUMN evidence.audit_export_status.requested_by IS 'Role that asked.';
COMMENT ON COLUMN evidence.audit_export_status.requested_at IS 'When.';
COMMENT ON COLUMN evidence.audit_export_status.attempt IS 'Attempts begun.';
COMMENT ON COLUMN evidence.audit_export_status.progress IS 'From 0 to 1; NULL while the rows are not counted yet.';
COMMENT ON COLUMN evidence.audit_export_status.rows_total IS 'Rows that the running attempt counted.';
COMMENT ON COLUMN evidence.audit_export_status.rows_done IS 'Rows that it has written.';
COMMENT ON COLUMN evidence.audit_export_status.bytes_done IS 'Compressed bytes that it has written.';
COMMENT ON COLUMN evidence.audit_export_status.rows_per_second IS 'Its rate so far.';
COMMENT ON COLUMN evidence.audit_export_status.eta_low IS 'Shortest time to the end that the recent rate suggests.';
COMMENT ON COLUMN evidence.audit_export_status.eta_high IS 'Longest time to the end that the recent rate suggests.';
COMMENT ON COLUMN evidence.audit_export_status.record_count IS 'Rows exported, or found when they were too many.';
COMMENT ON COLUMN evidence.audit_export_status.archive_bytes IS 'Size of the archive.';
COMMENT ON COLUMN evidence.audit_export_status.archive_sha256 IS 'SHA-256 of the archive.';
COMMENT ON COLUMN evidence.audit_export_status.ready_at IS 'When it became READY.';
COMMENT ON COLUMN evidence.audit_export_status.expires_at IS 'Until when the archive can be downloaded.';
COMMENT ON COLUMN evidence.audit_export_status.cancelled_at IS 'When the cancellation was accepted.';
COMMENT ON COLUMN evidence.audit_export_status.stopped_at IS 'When the worker had stopped.';
COMMENT ON COLUMN evidence.audit_export_status.error_code IS 'SQLSTATE of the last failure.';
COMMENT ON COLUMN evidence.audit_export_status.error_message IS 'Its message, redacted and short.';
COMMENT ON COLUMN evidence.audit_export_status.error_hint IS 'What to do next.';

CREATE VIEW evidence.state_move AS
SELECT fact, from_state, to_state FROM evidence._state_moves();
COMMENT ON VIEW evidence.state_move IS
    'Every legal move of an export, a job and an outbox event.';
COMMENT ON COLUMN evidence.state_move.fact IS 'export, job or outbox.';
COMMENT ON COLUMN evidence.state_move.from_state IS 'State before.';
COMMENT ON COLUMN evidence.state_move.to_state IS 'State after.';

CREATE VIEW evidence.state_combination AS
SELECT export, job, event FROM evidence._state_combinations();
COMMENT ON VIEW evidence.state_combination IS
    'Every legal combination of the three facts of one export.';
COMMENT ON COLUMN evidence.state_combination.export IS 'State of the export.';
COMMENT ON COLUMN evidence.state_combination.job IS 'State of its job.';
COMMENT ON COLUMN evidence.state_combination.event IS 'State of its outbox event.';
