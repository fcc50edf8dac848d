-- data.sql: a deterministic audit log of :rows rows in the month after
-- :start, about 220 bytes each as CSV.
--
-- 2 % of the cells of column summary begin like a formula, 2.7 % hold an
-- invented secret, 2 % have two lines; one row in ten shares its time with
-- the one before.

INSERT INTO evidence.audit_log
       (created_at, tenant_id, actor_id, actor_role, action, target_type, target_id,
        outcome, error_code, request_id, source_fingerprint, summary)
SELECT timestamptz :'start'
           + interval '720 hours' * ((n - CASE WHEN n % 10 = 0 THEN 1 ELSE 0 END)::float8 / (:rows + 1)),
       'tenant-' || n % 3,
       'user-' || n * 7 % 5003,
       (ARRAY['clerk', 'manager', 'administrator'])[1 + n % 3],
       (ARRAY['record.read', 'record.update', 'session.login', 'report.print'])[1 + n % 4],
       'record',
       left(md5('target' || n), 12),
       CASE n % 20 WHEN 0 THEN 'failure' ELSE 'success' END,
       CASE n % 20 WHEN 0 THEN 'E' || n % 997 END,
       left(md5('request' || n / 5), 16),
       'k1:' || encode(sha256(('source' || n % 2003)::bytea), 'hex'),
       CASE WHEN n % 50 = 7 THEN '=SUM(A1:A' || n || ')'
            WHEN n % 37 = 5 THEN 'signed in with password=' || md5(n::text)
            WHEN n % 50 = 11 THEN E'changed by the job\nsee the note of run ' || n
            ELSE 'case ' || left(md5('case' || n), 10) || ' opened from the list' END
  FROM generate_series(1::bigint, :rows) AS n;
