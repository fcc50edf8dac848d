-- texts.sql: :rows rows in the month after :start, each with a text of :length
-- words that deflate cannot shorten by more than a quarter, so that an archive
-- of a wanted size is made of few rows.

INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
SELECT timestamptz :'start' + interval '1 second' * k, 'somebody',
       'text.write', words.text
  FROM generate_series(1, :rows) AS k
 CROSS JOIN LATERAL (
       SELECT string_agg(encode(sha384((k || ' ' || n)::bytea), 'base64'), ' ') AS text
         FROM generate_series(1, :length) AS n) AS words;
