-- 65_health.sql: how the queues stand, for people and for monitoring.
--
-- Nothing here reads a whole table: a queue is counted up to 10,000 rows, and
-- beyond that the number is the one that the last VACUUM or ANALYZE found.

CREATE FUNCTION evidence._shipping_status(
        OUT enabled boolean, OUT sink text, OUT is_foreign boolean, OUT state text, OUT reason text,
        OUT running boolean, OUT last_pass_at timestamptz, OUT passes bigint, OUT failed bigint,
        OUT shipped bigint, OUT deferred bigint, OUT stuck bigint)
    RETURNS record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_shipping_status';
COMMENT ON FUNCTION evidence._shipping_status() IS
    'How shipping is set and how the shipper stands; the counts are those since the server was started, NULL without shared memory.';

CREATE VIEW evidence.queue_health WITH (security_barrier) AS
WITH now AS (
    SELECT evidence._now() AS at
),
shipping AS (
    SELECT s.*, p.finished_at, p.error_code, p.error_message,
           (SELECT count(*) FROM (SELECT FROM evidence.audit_delivery AS d
                                   WHERE d.state = 'pending'
                                   ORDER BY d.audit_created_at, d.audit_id LIMIT 10001) AS counted) AS depth,
           (SELECT min(d.audit_created_at) FROM evidence.audit_delivery AS d
             WHERE d.state = 'pending') AS head_at,
           (SELECT count(*) FROM (SELECT FROM evidence.audit_delivery AS d
                                   WHERE d.state = 'pending' AND d.attempts > 0
                                   ORDER BY d.next_attempt_at LIMIT 10001) AS counted) AS waiting
      FROM evidence._shipping_status() AS s
      LEFT JOIN LATERAL (SELECT l.finished_at, l.error_code, l.error_message
                           FROM evidence.pass_log AS l
                          WHERE l.kind = 'ship'
                          ORDER BY l.id DESC LIMIT 1) AS p ON true
),
judged AS (
    -- A shipper that runs knows best; without one, the last pass does.
    SELECT s.*,
           CASE WHEN NOT s.enabled THEN 'off'
                WHEN s.is_foreign THEN 'foreign'
                WHEN s.running AND s.state IN ('disabled', 'broken') THEN s.state
                WHEN s.running IS NOT TRUE AND s.error_code = '55000' THEN 'disabled'
                WHEN s.running IS NOT TRUE AND s.error_code IS NOT NULL THEN 'broken'
                WHEN s.depth = 0 THEN 'idle'
                WHEN s.depth = s.waiting THEN 'deferred'
                ELSE 'working' END AS verdict
      FROM shipping AS s
)
SELECT 'shipping' AS lane, j.verdict AS state,
       CASE j.verdict
            WHEN 'off' THEN 'pg_evidence.ship is off'
            WHEN 'foreign' THEN 'the ledger belongs to another cluster; see adopt_instance()'
            WHEN 'disabled' THEN coalesce(CASE WHEN j.running THEN j.reason END, j.error_message)
            WHEN 'broken' THEN coalesce(CASE WHEN j.running THEN j.reason END, j.error_message)
            WHEN 'deferred' THEN 'sink "' || j.sink || '" refused every record that is pending; see audit_delivery.last_error'
            WHEN 'working' THEN CASE WHEN j.running IS NOT TRUE THEN 'no shipper runs; CALL evidence.ship_pass() does its work' END
       END AS reason,
       CASE WHEN j.depth <= 10000 THEN j.depth
            ELSE greatest(j.depth, (SELECT c.reltuples::bigint FROM pg_catalog.pg_class AS c
                                     WHERE c.oid = 'evidence.audit_delivery_pending'::pg_catalog.regclass))
       END AS depth,
       j.depth <= 10000 AS depth_is_exact,
       now.at - j.head_at AS head_age,
       j.waiting AS deferred,
       greatest(j.last_pass_at, j.finished_at) AS last_pass_at
  FROM judged AS j CROSS JOIN now
UNION ALL
SELECT l.lane,
       CASE WHEN count(q.created_at) = 0 THEN 'idle'
            WHEN count(*) FILTER (WHERE q.next_attempt_at <= now.at) = 0 THEN 'deferred'
            ELSE 'working' END,
       NULL, count(q.created_at), count(q.created_at) <= 10000, now.at - min(q.created_at),
       count(*) FILTER (WHERE q.next_attempt_at > now.at), NULL
  FROM now CROSS JOIN (VALUES ('generate'), ('archive.upload'), ('object.delete')) AS l (lane)
  LEFT JOIN LATERAL (
       (SELECT j.created_at, j.next_attempt_at FROM evidence.background_job AS j
         WHERE j.state = 'QUEUED' AND l.lane = 'generate'
         ORDER BY j.next_attempt_at, j.id LIMIT 10001)
        UNION ALL
       (SELECT o.created_at, o.next_attempt_at FROM evidence.outbox_event AS o
         WHERE o.kind = l.lane AND o.state = 'PENDING'
         ORDER BY o.next_attempt_at, o.id LIMIT 10001)) AS q ON true
 GROUP BY l.lane, now.at;
COMMENT ON VIEW evidence.queue_health IS
    'How each queue stands. Operators and auditors.';
COMMENT ON COLUMN evidence.queue_health.lane IS 'shipping (audit records), generate (exports that wait for an exporter), archive.upload and object.delete (what waits for an uploader).';
COMMENT ON COLUMN evidence.queue_health.state IS 'idle: nothing waits; working: something is due; deferred: all that waits was put off; off, foreign, disabled (a setting is in the way), broken (something is out of order): nothing moves.';
COMMENT ON COLUMN evidence.queue_health.reason IS 'Why nothing moves, and what to do; NULL if it does.';
COMMENT ON COLUMN evidence.queue_health.depth IS 'How many wait.';
COMMENT ON COLUMN evidence.queue_health.depth_is_exact IS 'Were they counted? Above 10,000 depth is an estimate.';
COMMENT ON COLUMN evidence.queue_health.head_age IS 'For how long the oldest has been waiting; NULL: none does.';
COMMENT ON COLUMN evidence.queue_health.deferred IS 'How many of them were put off, counted up to 10,001.';
COMMENT ON COLUMN evidence.queue_health.last_pass_at IS 'When the last pass ended; NULL if there was none, and for lanes that have no passes.';

CREATE VIEW evidence.metrics WITH (security_barrier) AS
WITH status AS MATERIALIZED (
    SELECT s.*, pg_catalog.jsonb_build_object('sink', s.sink) AS labels FROM evidence._shipping_status() AS s
),
health AS MATERIALIZED (
    SELECT h.*, pg_catalog.jsonb_build_object('lane', h.lane) AS labels FROM evidence.queue_health AS h
)
SELECT 'pg_evidence_queue_depth' AS name, h.labels, h.depth::double precision AS value, 'gauge' AS kind,
       'Items that wait in a lane; above 10,000 an estimate.' AS help
  FROM health AS h
UNION ALL
SELECT 'pg_evidence_queue_head_age_seconds', h.labels, coalesce(extract(epoch FROM h.head_age), 0)::double precision, 'gauge',
       'For how long the oldest item of a lane has been waiting.'
  FROM health AS h
UNION ALL
SELECT 'pg_evidence_queue_deferred', h.labels, h.deferred::double precision, 'gauge',
       'Items of a lane that were put off, counted up to 10,001.'
  FROM health AS h
UNION ALL
SELECT 'pg_evidence_lane_up', h.labels, (h.state IN ('idle', 'working', 'deferred'))::int::double precision, 'gauge',
       '1 if a lane can move at all, 0 if it is off, disabled, broken or foreign.'
  FROM health AS h
UNION ALL
SELECT 'pg_evidence_shipper_running', s.labels, s.running::int::double precision, 'gauge',
       '1 if the background worker that ships audit records is there.'
  FROM status AS s WHERE s.running IS NOT NULL
UNION ALL
SELECT 'pg_evidence_ship_last_pass_timestamp_seconds', s.labels, extract(epoch FROM s.last_pass_at)::double precision, 'gauge',
       'When the last shipping pass ended.'
  FROM status AS s WHERE s.last_pass_at IS NOT NULL
UNION ALL
SELECT c.name, s.labels, c.value::double precision, 'counter', c.help
  FROM status AS s
 CROSS JOIN LATERAL (VALUES
       ('pg_evidence_ship_passes_total', s.passes, 'Shipping passes since the server was started.'),
       ('pg_evidence_ship_pass_errors_total', s.failed, 'Shipping passes that could not do their work.'),
       ('pg_evidence_shipped_records_total', s.shipped, 'Audit records that the sink accepted.'),
       ('pg_evidence_ship_deferred_records_total', s.deferred, 'Times that the sink refused an audit record.'),
       ('pg_evidence_ship_stuck_records_total', s.stuck, 'Times that not even the refusal could be recorded.'))
       AS c (name, value, help)
 WHERE c.value IS NOT NULL;
COMMENT ON VIEW evidence.metrics IS
    'Numbers for a monitoring system, named by the conventions of Prometheus. Operators and auditors.';
COMMENT ON COLUMN evidence.metrics.name IS 'Name of the metric.';
COMMENT ON COLUMN evidence.metrics.labels IS 'Its labels.';
COMMENT ON COLUMN evidence.metrics.value IS 'Its value now.';
COMMENT ON COLUMN evidence.metrics.kind IS 'gauge, or counter: only ever goes up, from 0 at the start of the server.';
COMMENT ON COLUMN evidence.metrics.help IS 'What it counts.';
