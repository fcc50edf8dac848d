-- events.sql: :rows real events of a Windows Security log in the month after
-- :start.  :events is a file with one JSON object a line; it is repeated as
-- often as needed, in its order.

CREATE TEMPORARY TABLE raw (n bigint GENERATED ALWAYS AS IDENTITY, event jsonb);
-- A line of JSON is one CSV value between two characters that none contains.
COPY raw (event) FROM :'events' (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02');

INSERT INTO evidence.audit_log
       (created_at, tenant_id, actor_id, action, target_type, target_id,
        outcome, error_code, request_id, summary)
SELECT timestamptz :'start' + interval '720 hours' * k / (:rows + 1),
       event->>'host', coalesce(event->>'actor', 'unknown'),
       'security.' || (event->>'event_id'), event->>'object_type',
       event->>'object_name', event->>'outcome', event->>'status',
       event->>'logon_id', event->>'message'
  FROM generate_series(0, :rows - 1) AS k
  JOIN raw ON raw.n = 1 + k % (SELECT count(*) FROM raw)
 ORDER BY k;
