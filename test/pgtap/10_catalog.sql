-- 10_catalog.sql: properties that every object of the extension must have,
-- also those that a later version adds.
BEGIN;
SELECT plan(17);

CREATE TEMP VIEW relation AS
SELECT c.* FROM pg_class AS c WHERE c.relnamespace = 'evidence'::regnamespace;
CREATE TEMP VIEW routine AS
SELECT p.*, l.lanname FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
 WHERE p.pronamespace = 'evidence'::regnamespace;

SELECT is_empty($$SELECT oid::regclass FROM relation
                   WHERE relkind IN ('r', 'v', 'm', 'p') AND obj_description(oid, 'pg_class') IS NULL$$,
                'every table and view says what it is');
SELECT is_empty($$SELECT r.oid::regclass, a.attname FROM relation AS r JOIN pg_attribute AS a ON a.attrelid = r.oid
                   WHERE r.relkind IN ('r', 'v', 'm', 'p') AND a.attnum > 0 AND NOT a.attisdropped
                     AND col_description(r.oid, a.attnum) IS NULL$$,
                'every column says what it is');
SELECT is_empty($$SELECT oid::regprocedure FROM routine WHERE obj_description(oid, 'pg_proc') IS NULL$$,
                'every function says what it does');
SELECT is_empty($$SELECT oid::regprocedure, obj_description(oid, 'pg_proc') FROM routine
                   WHERE obj_description(oid, 'pg_proc') !~ '[.?]$'$$,
                'in whole sentences');

-- design 5: what changes something is VOLATILE, PARALLEL UNSAFE, C, SECURITY INVOKER.
SELECT is_empty($$SELECT oid::regprocedure FROM routine WHERE prosecdef$$, 'no function is SECURITY DEFINER');
SELECT is_empty($$SELECT oid::regprocedure FROM routine
                   WHERE proname NOT LIKE '\_%' AND proname <> 'evidence_version'
                     AND (provolatile <> 'v' OR proparallel <> 'u' OR lanname <> 'c')$$,
                'each function of the interface is VOLATILE, PARALLEL UNSAFE and in C');
SELECT is_empty($$SELECT oid::regprocedure FROM routine
                   WHERE provolatile <> 'v' AND proname NOT IN ('evidence_version', '_state_known', '_state_moves',
                         '_state_combinations', '_builtin_rules', '_sees')$$,
                'only constants and the judgement of a row of the status are not VOLATILE');
SELECT is_empty($$SELECT oid::regprocedure FROM routine
                   WHERE lanname <> 'c' AND NOT coalesce(proconfig::text LIKE '%search_path=pg_catalog, %pg_temp%', false)$$,
                'each function that is not in C sets its search_path, pg_temp last (C61)');
SELECT is_empty($$SELECT oid::regprocedure FROM routine WHERE prokind = 'p' AND (prosecdef OR proconfig IS NOT NULL)$$,
                'a procedure that commits has neither SECURITY DEFINER nor a SET clause');

SELECT is_empty($$SELECT 'relation', oid::regclass::text FROM relation, aclexplode(relacl) AS a WHERE a.grantee = 0
                  UNION ALL
                  SELECT 'routine', oid::regprocedure::text FROM routine, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS a
                   WHERE a.grantee = 0
                  UNION ALL
                  SELECT 'type', t.oid::regtype::text FROM pg_type AS t, aclexplode(coalesce(typacl, acldefault('T', typowner))) AS a
                   WHERE t.typnamespace = 'evidence'::regnamespace AND t.typelem = 0 AND a.grantee = 0$$,
                'nothing is granted to PUBLIC');
SELECT is_empty($$SELECT r.oid::regclass FROM relation AS r WHERE r.relkind = 'v'
                     AND r.relname NOT LIKE 'state\_%' AND NOT coalesce('security_barrier=true' = ANY (r.reloptions), false)$$,
                'views that hide rows are security barriers');
SELECT is_empty($$SELECT tgrelid::regclass, tgname FROM pg_trigger JOIN relation AS r ON r.oid = tgrelid
                   WHERE NOT tgisinternal AND tgenabled <> 'A'$$,
                'every trigger is ENABLE ALWAYS');
SELECT is_empty($$SELECT conrelid::regclass, conname FROM pg_constraint JOIN relation AS r ON r.oid = conrelid
                   WHERE contype = 'f' AND (confdeltype <> 'a' OR confupdtype <> 'a')$$,
                'no foreign key cascades (S1.18, C64)');
SELECT is_empty($$SELECT conrelid::regclass, conname FROM pg_constraint JOIN relation AS r ON r.oid = conrelid
                   WHERE NOT convalidated$$,
                'every constraint is validated');
SELECT is_empty($$SELECT r.oid::regclass, a.attname FROM relation AS r JOIN pg_attribute AS a ON a.attrelid = r.oid
                   WHERE r.relkind = 'r' AND a.attnum > 0 AND a.atttypid = 'timestamp'::regtype$$,
                'every time has a time zone');

-- C61: no body, check, default or view caught a name outside.  What is in pg_catalog
-- is pinned and leaves no trace here.
SELECT is_empty($$SELECT o.identity, r.identity
                    FROM pg_depend AS d, pg_identify_object(d.classid, d.objid, d.objsubid) AS o,
                         pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) AS r
                   WHERE o.identity ~ '\mevidence\.' AND r.identity !~ '\mevidence\M'
                     AND r.identity NOT IN ('pg_evidence', 'plpgsql')$$,
                'no object of the extension depends on anything but pg_catalog and the extension itself (C61)');

-- S1.43: exactly the 13 columns; metadata and recorded_xid are never among them.
SELECT results_eq($$SELECT columns FROM evidence.audit_source WHERE name = 'audit_log'$$,
                  $$VALUES ('{id,created_at,tenant_id,actor_id,actor_role,action,target_type,target_id,outcome,error_code,request_id,source_fingerprint,summary}'::text[])$$,
                  'the log exports its 13 columns and no other');

SELECT * FROM finish();
ROLLBACK;
