-- 90_rules.sql: redaction rules are versioned; an export keeps the version of
-- its request, whatever is changed afterwards.
\set VERBOSITY terse
SELECT count(*) > 10 AS some_rules, count(DISTINCT name) = count(*) AS each_once, min(added_in) AS first, max(added_in) AS last,
       bool_and(builtin) AS builtin, bool_and(pattern IS NOT NULL) AS in_use, count(DISTINCT position) = count(*) AS ordered
  FROM evidence.redaction_rule;

-- What cannot be a rule (22023), with the place in the pattern.  Newer versions of PCRE2
-- name the end of what is wrong instead of its beginning. --------------------------------
SELECT s.what, regexp_replace(test.try(format('SELECT evidence.add_redaction_rule(%s)', s.arguments)),
                              'at byte [0-2]:', 'at byte N:') AS answer FROM (VALUES
    ('name is null', $$NULL, 'x', 'why'$$), ('name is empty', $$'', 'x', 'why'$$), ('name in capitals', $$'Badge', 'x', 'why'$$),
    ('name of 41', $$repeat('n', 41), 'x', 'why'$$), ('name with a bracket', $$'a]b', 'x', 'why'$$),
    ('pattern is null', $$'badge', NULL, 'why'$$), ('pattern is empty', $$'badge', '', 'why'$$),
    ('open bracket', $$'badge', 'BADGE-(\d+', 'why'$$), ('nothing to repeat', $$'badge', '*x', 'why'$$),
    ('unknown escape', $$'badge', '\j', 'why'$$), ('too long', $$'badge', repeat('x', 10001), 'why'$$),
    ('no reason', $$'badge', 'x', NULL$$), ('blank reason', $$'badge', 'x', ' '$$),
    ('empty anchor', $$'badge', 'x', 'why', ARRAY['']$$), ('null anchor', $$'badge', 'x', 'why', ARRAY[NULL]$$),
    ('anchor not ASCII', $$'badge', 'x', 'why', ARRAY[U&'\00e4\00e4\00e4']$$)) AS s (what, arguments);
SELECT test.try($$SELECT evidence.retire_redaction_rule('no-such-rule', 'why')$$) AS unknown,
       test.code($$SELECT evidence.retire_redaction_rule(NULL, 'why')$$) AS null_name,
       test.code($$SELECT evidence.retire_redaction_rule('badge', NULL)$$) AS no_reason;
SELECT max(added_in) AS still_the_first FROM evidence.redaction_rule;

-- The text of records.csv, computed here, for rows that need no quotes and no guard -----
INSERT INTO evidence.audit_log (created_at, actor_id, action, summary) VALUES
    ('2020-07-01 00:00:01+00', 'a', 'test.rules', 'badge BADGE-1234 shown'),
    ('2020-07-01 00:00:02+00', 'b', 'test.rules', 'no badge'),
    ('2020-07-01 00:00:03+00', 'c', 'test.rules', 'visitor VISIT-77 with badge-9');
CREATE FUNCTION test.expect(pattern text, replacement text) RETURNS text LANGUAGE sql AS $$
SELECT encode(sha256(convert_to(E'actor_id,summary\r\n'
           || string_agg(concat(actor_id, ',', regexp_replace(summary, pattern, replacement, 'g'), E'\r\n'), '' ORDER BY created_at, id), 'UTF8')), 'hex')
  FROM evidence.audit_log WHERE created_at >= '2020-07-01 00:00+00' AND created_at < '2020-07-02 00:00+00'
$$;
CREATE FUNCTION test.ask(key text) RETURNS uuid LANGUAGE sql AS $$
SELECT evidence.request_audit_export('2020-07-01 00:00+00', '2020-07-02 00:00+00', 'rules', key, columns => '{actor_id,summary}')
$$;
SELECT test.ask('version 1') IS NOT NULL AS requested;
-- The rule is added while that one waits; it keeps version 1.
SELECT evidence.add_redaction_rule('badge', 'BADGE-\d+', 'numbers of badges are personal') AS version;
SELECT test.ask('version 2') IS NOT NULL AS requested;
-- Replaced: group 1 only, in any case, found by its anchors.
SELECT evidence.add_redaction_rule('badge', '(?i)badge-(\d+)', 'any case', ARRAY['badge-'], false) AS version;
SELECT test.ask('version 3') IS NOT NULL AS requested;
CALL evidence.run_once();
CALL evidence.run_once();
CALL evidence.run_once();
SELECT evidence.retire_redaction_rule('badge', 'there are no badges any more') AS version;
SELECT test.ask('version 4') IS NOT NULL AS requested;
CALL evidence.run_once();
SELECT idempotency_key, state, ruleset_version, dense_rank() OVER (ORDER BY ruleset_sha256) > 0 AS has_digest,
       records_sha256 = CASE ruleset_version WHEN 2 THEN test.expect('BADGE-\d+', '[redacted:badge]')
                                             WHEN 3 THEN test.expect('(BADGE-|badge-)\d+', '\1[redacted:badge]')
                                             ELSE test.expect('no such text', '') END AS as_expected
  FROM evidence.audit_export WHERE purpose = 'rules' ORDER BY requested_at;
SELECT count(DISTINCT ruleset_sha256) AS different_rulesets FROM evidence.audit_export WHERE purpose = 'rules';
SELECT name, added_in, position = first_value(position) OVER () AS same_place, pattern, anchors, join_lines, builtin,
       added_by = session_user AS by_us, reason
  FROM evidence.redaction_rule WHERE name = 'badge' ORDER BY added_in;
-- All of them can still be verified.
SELECT e.idempotency_key, bool_and(v.ok) AS all_ok
  FROM evidence.audit_export AS e, evidence.verify_audit_export(e.id) AS v WHERE e.purpose = 'rules' GROUP BY 1 ORDER BY 1;
-- A retired rule is not in use, and may come again. No anchors are none.
SELECT test.code($$SELECT evidence.retire_redaction_rule('badge', 'twice')$$) AS retired_twice;
SELECT evidence.add_redaction_rule('badge', 'BADGE-\d+', 'they are back', anchors => NULL) AS version;
-- A shipped rule can be retired, or replaced, like any other.
BEGIN;
SELECT evidence.retire_redaction_rule(name, 'false alarms') AS version FROM evidence.redaction_rule WHERE position = 10;
SELECT evidence.add_redaction_rule(name, 'x{40}', 'other shape') AS version FROM evidence.redaction_rule WHERE position = 10 AND builtin;
ROLLBACK;
-- A pattern that needs very long is refused or ends with the row, it does not hang (C32).
SET statement_timeout = '30s';
INSERT INTO evidence.audit_log (created_at, actor_id, action, summary)
VALUES ('2020-07-03 00:00:01+00', 'a', 'test.rules', repeat('a', 5000));
SELECT evidence.add_redaction_rule('slow', '(a+)+b', 'a bad idea') AS version;
SELECT evidence.request_audit_export('2020-07-03 00:00+00', '2020-07-04 00:00+00', 'slow') AS id \gset
SET client_min_messages = error;
CALL evidence.run_once();
RESET client_min_messages;
RESET statement_timeout;
SELECT state IN ('READY', 'FAILED', 'QUEUED') AS has_come_to_an_end FROM evidence.audit_export WHERE id = :'id';
SELECT evidence.retire_redaction_rule('slow', 'end of test') AS version;
SELECT count(evidence.cancel_audit_export(id, 'end of test')) < 2 AS cancelled FROM evidence.audit_export WHERE state = 'QUEUED';

-- Who changed which rule is in the log.
SELECT action, target_type, target_id, summary FROM evidence.audit_log WHERE action LIKE 'redaction\_rule.%' ORDER BY id;
-- Redaction switched off: the contract says so.
ALTER SYSTEM SET pg_evidence.redaction = off;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT test.ask('not redacted') AS id \gset
ALTER SYSTEM RESET pg_evidence.redaction;
SELECT pg_reload_conf() AS reloaded \gset
\c -
CALL evidence.run_once();
SELECT redaction, records_sha256 = test.expect('no such text', '') AS plain_text FROM evidence.audit_export WHERE id = :'id';
SELECT evidence.retire_redaction_rule('badge', 'end of test') > 0 AS retired;
DROP FUNCTION test.ask, test.expect;
