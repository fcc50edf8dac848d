-- host_events.sql: :events audit events as many machines report them, over
-- the last 20 days: messages of several lines with tabs, paths, command
-- lines, identifiers, names of many scripts, bursts of events in one
-- millisecond, arriving out of order.  The same call gives the same events,
-- times aside.
--
-- One event in fifty holds a secret.  All secrets are in table planted, and
-- nothing else in the events is one.  Everything is invented.

-- A die that falls the same way for the same number and question.
CREATE FUNCTION pg_temp.dice(n bigint, question text, sides integer)
    RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$
        SELECT ((hashtextextended(question, n) & 9223372036854775807) % sides)::integer
    $$;

-- In object and message, # is a number, ~ an identifier, ^ the actor.
CREATE TEMPORARY TABLE kind (
    id      integer GENERATED ALWAYS AS IDENTITY,
    often   integer NOT NULL,
    code    text NOT NULL,
    type    text,
    object  text,
    message text
);
INSERT INTO kind (often, code, type, object, message)
VALUES (22, 'logon', 'Session', '0x#',
            E'An account was logged on.\r\n\r\nSubject:\r\n\tSecurity id:\t\tS-1-5-21-#-500\r\n\tAccount:\t\t^\r\n\tDomain:\t\tSHOP\r\n\r\nKind of logon:\t\t3\r\n\r\nOrigin:\r\n\tAddress:\t\t-\r\n\tPort:\t\t#'),
       (16, 'handle', 'File', E'\\Device\\Disk2\\Data\\~\\',
            E'A handle to an object was asked for.\r\n\tObject:\t\t\\Device\\Disk2\\Data\\~\\\r\n\tAccess:\t\t%%1538\r\n\t\t\t%%4416\r\n\tMask:\t\t0x#'),
       (14, 'process', 'Process', E'C:\\Program Files\\Tool "#"\\run.exe',
            E'A process was started.\r\n\tCommand line:\t\t"C:\\Program Files\\Tool ""#""\\run.exe" --id={~} --list=a,b;c|d --since=2026-03-01'),
       ( 9, 'registry', 'Key', E'HKLM\\SOFTWARE\\Shop\\{~}', E'value "Path" = C:\\bin;C:\\tools;%PATH%\r\nold value = -'),
       ( 8, 'script', 'Script', '~', E'-NoProfile -File "start.ps1" -Count #'),
       ( 6, 'script', 'Script', '~', E'=Get-Item "#" | Select-Object -First 1'),
       ( 5, 'policy', 'Policy', '', E'+ Success removed\r\n- Failure added'),
       ( 5, 'share', 'Share', E'\\\\host-#\\data$', E'@everyone: read'),
       ( 4, 'service', NULL, NULL, NULL),
       ( 4, 'user', 'User', 'user-#', U&'User \201E\00C5sa \00D8degaard\201C, \041E\043B\044C\0433\0430, \6771\4EAC #, \05D3\05D5\05D3, \0639\0645\0631'),
       ( 3, 'note', 'Note', 'note #', U&'\202Edecrypted\202C \200Bnote\2028with a line end \+01F512'),
       ( 2, 'hash', 'File', 'backup-#.tar', 'sha256:~~ of release v#.4.1-rc.2+build.7'),
       ( 2, 'dash', '-', '-', '-');

-- How secrets get into messages; $ is the secret.
CREATE TEMPORARY TABLE leak (id integer, message text);
INSERT INTO leak
VALUES (0, E'Command line:\tdeploy --user ops --password=$ --host shop.invalid'),
       (1, E'A header was logged:\r\n\tAuthorization: Bearer $\r\n\tAccept: text/plain'),
       (2, 'connected to postgres://ops:$@db.shop.invalid:5432/orders, 3 tables'),
       (3, '{"event": "sync", "api_key": "$", "page": 4}'),
       (4, E'\t=password=$');

CREATE TEMPORARY TABLE face AS
SELECT row_number() OVER (ORDER BY id, copy) - 1 AS face, id AS kind
  FROM kind, generate_series(1, often) AS copy;

CREATE TEMPORARY TABLE event AS
SELECT n, host, account,
       -- Bursts: up to 84 neighbours share a millisecond.
       date_trunc('hour', now()) - interval '20 days' + date_trunc('milliseconds',
           interval '20 days' * (n - n % 84 % (1 + pg_temp.dice(n / 84, 'burst', 84))) / :events) AS created_at,
       kind.code, kind.type, fill.object,
       CASE WHEN leaks THEN replace(leak.message, '$', secret) ELSE fill.message END AS message,
       CASE WHEN leaks THEN secret END AS secret
  FROM (SELECT n, 'host-' || pg_temp.dice(n, 'host', 40) AS host,
               (ARRAY['-', 'HOST-7$', 'SHOP\anna', 'LOCAL SERVICE', '@ops', U&'j\00F6rg', 'S-1-5-18', 'o''neil', '"quoted", twice'])
                   [1 + pg_temp.dice(n, 'account', 9)] AS account,
               pg_temp.dice(n, 'face', 100) AS face,
               pg_temp.dice(n, 'number', 100000)::text AS number,
               md5('identifier' || n) AS identifier,
               'Xq7' || translate(encode(sha256(convert_to('secret' || n, 'UTF8')), 'base64'), '+/=' || E'\n', 'abcd') AS secret,
               pg_temp.dice(n, 'leak?', 50) = 0 AS leaks,
               pg_temp.dice(n, 'leak', 5) AS leak_id
          FROM generate_series(1, :events) AS n) AS thrown
  JOIN face USING (face)
  JOIN kind ON kind.id = face.kind
  JOIN leak ON leak.id = thrown.leak_id
 CROSS JOIN LATERAL (SELECT replace(replace(kind.object, '#', number), '~', identifier) AS object,
                            replace(replace(replace(kind.message, '#', number), '~', identifier), '^', account) AS message) AS fill;

CREATE TABLE planted AS SELECT secret FROM event WHERE secret IS NOT NULL;

INSERT INTO evidence.audit_log
       (created_at, tenant_id, actor_id, action, target_type, target_id, outcome,
        error_code, request_id, summary)
SELECT created_at, host, account, 'host.' || code, type, object,
       CASE pg_temp.dice(n, 'outcome', 9) WHEN 0 THEN 'denied' WHEN 1 THEN 'failure' ELSE 'success' END,
       CASE pg_temp.dice(n, 'error', 4) WHEN 0 THEN '0xC000006D' WHEN 1 THEN '' END,
       CASE WHEN code = 'logon' THEN '0x' || to_hex(n) END,
       message
  FROM event
 ORDER BY n / 50, pg_temp.dice(n, 'late', 50), n;

ANALYZE evidence.audit_log;
