-- hostile.sql: in the month after :start, texts on which a careless pattern
-- takes quadratic time (case C32), :length characters long, :rows times each.

INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
SELECT timestamptz :'start' + interval '1 second' * k, 'somebody',
       'text.write',
       CASE k % 2 WHEN 0 THEN repeat('a_.', :length / 3)
                  ELSE '"' || repeat('\', :length - 1) END
  FROM generate_series(0, :rows - 1) AS k;
