-- 10_install.sql: what CREATE EXTENSION makes, and what it refuses.
--
-- Runs first: the extension, the standing launcher and the helpers that it
-- leaves behind serve all other files of this folder.
\set VERBOSITY terse

-- C61: a schema that somebody planted before is not taken over ----------------
CREATE ROLE regress_planter;
CREATE SCHEMA evidence AUTHORIZATION regress_planter;
CREATE EXTENSION pg_evidence;
DROP SCHEMA evidence;
CREATE SCHEMA evidence;
CREATE TABLE evidence.guard (kind text);
CREATE EXTENSION pg_evidence;
DROP TABLE evidence.guard;
-- Nor one in which somebody has left, or could yet leave, what fits a call better.
CREATE FUNCTION evidence.num_nulls(text, bigint) RETURNS integer LANGUAGE sql AS 'SELECT 0';
CREATE EXTENSION pg_evidence;
DROP FUNCTION evidence.num_nulls;
CREATE FUNCTION public.unequal(oid, integer) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR evidence.<> (LEFTARG = oid, RIGHTARG = integer, FUNCTION = public.unequal);
CREATE EXTENSION pg_evidence;
DROP SCHEMA evidence CASCADE;
DROP FUNCTION public.unequal;
CREATE SCHEMA evidence;
GRANT CREATE ON SCHEMA evidence TO regress_planter;
CREATE EXTENSION pg_evidence;
-- What was granted beforehand is taken back: rights in the schema, and those that
-- come with each new table, function and type of the installing superuser.
REVOKE CREATE ON SCHEMA evidence FROM regress_planter;
GRANT USAGE ON SCHEMA evidence TO regress_planter;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_planter;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO regress_planter;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_planter;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO regress_planter;
ALTER DEFAULT PRIVILEGES IN SCHEMA evidence GRANT SELECT ON TABLES TO regress_planter;
CREATE EXTENSION pg_evidence;
SELECT classid::regclass AS catalog, deptype FROM pg_shdepend
 WHERE refobjid = 'regress_planter'::regrole AND classid <> 'pg_default_acl'::regclass;
DROP EXTENSION pg_evidence;
DROP SCHEMA evidence CASCADE;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM regress_planter;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM regress_planter;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON FUNCTIONS FROM regress_planter;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TYPES FROM regress_planter;

-- Only superusers install it ---------------------------------------------------
SELECT format('GRANT CREATE ON DATABASE %I TO regress_planter', current_database()) \gexec
SET ROLE regress_planter;
CREATE EXTENSION pg_evidence;
RESET ROLE;
SELECT format('REVOKE CREATE ON DATABASE %I FROM regress_planter', current_database()) \gexec

-- A second life in one session: plans that the library keeps must not go stale -
CREATE EXTENSION pg_evidence;
SELECT evidence.record_audit_event('test.first', 'install');
DROP EXTENSION pg_evidence;
CREATE EXTENSION pg_evidence;
SELECT evidence.record_audit_event('test.second', 'install');
SELECT action FROM evidence.audit_log;

-- In a server that serves this database, no other one can have it --------------
SELECT current_database() AS served \gset
CREATE DATABASE regress_other_database;
\c regress_other_database
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE EXTENSION pg_evidence;
\set VERBOSITY terse
\c :served
DROP DATABASE regress_other_database;

-- The launcher stands still from here on, so that nothing moves but by what ----
-- these files do; jobs are made by run_once().
ALTER SYSTEM SET pg_evidence.debug_pause = 'launcher-round';
SELECT pg_reload_conf();

-- Helpers: what is refused is shown as SQLSTATE, message and hint.
CREATE SCHEMA test;
GRANT USAGE ON SCHEMA test TO PUBLIC;
CREATE FUNCTION test.try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat(SQLSTATE, ': ', SQLERRM, E'\n  ' || nullif(detail, ''), E'\n  ' || nullif(hint, ''));
END
$$;
CREATE FUNCTION test.code(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END
$$;
-- Rows at one-second distances, by the owner's INSERT as an import would do.
CREATE FUNCTION test.fill(start_at timestamptz, rows int, tenant text DEFAULT 'default')
    RETURNS void LANGUAGE sql AS $$
INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id, action, summary)
SELECT start_at + n * interval '1 second', tenant, 'actor-' || n % 7, 'test.fill', 'row ' || n
  FROM generate_series(0, rows - 1) AS n
$$;

-- What was installed -----------------------------------------------------------
SELECT x.extversion = evidence.evidence_version() AS library_agrees, x.extrelocatable,
       n.nspname, r.rolsuper AS owner_is_superuser
  FROM pg_extension AS x
  JOIN pg_namespace AS n ON n.oid = x.extnamespace
  JOIN pg_roles AS r ON r.oid = x.extowner
 WHERE x.extname = 'pg_evidence';

CREATE VIEW test.object AS
WITH all_objects AS (
    SELECT 'pg_class'::regclass AS classid, oid AS objid,
           CASE relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' ELSE relkind::text END AS kind,
           relname::text AS name, relowner AS owner,
           coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner)) AS acl
      FROM pg_class WHERE relnamespace = 'evidence'::regnamespace AND relkind IN ('r', 'v', 'm', 'f', 'p', 'S')
    UNION ALL
    SELECT 'pg_proc'::regclass, oid, CASE prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
           oid::regprocedure::text, proowner, coalesce(proacl, acldefault('f', proowner))
      FROM pg_proc WHERE pronamespace = 'evidence'::regnamespace
    UNION ALL
    SELECT 'pg_type'::regclass, oid, 'type', typname::text, typowner, coalesce(typacl, acldefault('T', typowner))
      FROM pg_type WHERE typnamespace = 'evidence'::regnamespace AND typelem = 0
    UNION ALL
    SELECT 'pg_namespace'::regclass, oid, 'schema', nspname::text, nspowner, coalesce(nspacl, acldefault('n', nspowner))
      FROM pg_namespace WHERE nspname = 'evidence'
)
SELECT o.*, EXISTS (SELECT FROM pg_depend AS d
                     WHERE d.classid = o.classid AND d.objid = o.objid AND d.deptype = 'e') AS member
  FROM all_objects AS o;

SELECT kind, name FROM test.object WHERE kind IN ('table', 'view', 'sequence') ORDER BY kind, name COLLATE "C";

-- The interface: volatility (v), parallel (u), security definer (f), strict.
SELECT p.oid::regprocedure AS function, pg_get_function_result(p.oid) AS result,
       provolatile AS vol, proparallel AS par, prosecdef AS secdef, proisstrict AS strict
  FROM pg_proc AS p
 WHERE pronamespace = 'evidence'::regnamespace
 ORDER BY p.oid::regprocedure::text COLLATE "C";

-- Everything belongs to the extension and its owner; a table's row type and an
-- identity's sequence belong to the table.
SELECT kind, name FROM test.object AS o
 WHERE NOT member AND kind NOT IN ('type', 'schema')
   AND NOT EXISTS (SELECT FROM pg_depend AS d
                    WHERE d.classid = o.classid AND d.objid = o.objid AND d.deptype = 'i');
SELECT kind, name FROM test.object
 WHERE owner <> (SELECT extowner FROM pg_extension WHERE extname = 'pg_evidence');

-- Nothing is granted to PUBLIC or to anybody but the owner, anywhere.
SELECT o.kind, o.name, a.grantee::regrole, a.privilege_type
  FROM test.object AS o, aclexplode(o.acl) AS a
 WHERE a.grantee <> o.owner
 ORDER BY 1, 2, 4;
SELECT attrelid::regclass, attname FROM pg_attribute
 WHERE attacl IS NOT NULL
   AND attrelid IN (SELECT objid FROM test.object WHERE classid = 'pg_class'::regclass);

-- Every object says what it is.
SELECT kind, name FROM test.object
 WHERE kind NOT IN ('type', 'sequence') AND obj_description(objid, classid::regclass::name) IS NULL;
SELECT o.kind, o.name, a.attname
  FROM test.object AS o
  JOIN pg_attribute AS a ON a.attrelid = o.objid AND a.attnum > 0 AND NOT a.attisdropped
 WHERE o.kind IN ('table', 'view') AND col_description(a.attrelid, a.attnum) IS NULL
 ORDER BY 1, 2, a.attnum;

-- C65: what a dump takes along. Attempts, bytes and grants are not.
SELECT c.oid::regclass AS relation, condition
  FROM pg_extension AS x, unnest(x.extconfig, x.extcondition) AS u (relation, condition)
  JOIN pg_class AS c ON c.oid = u.relation
 WHERE x.extname = 'pg_evidence'
 ORDER BY c.relname COLLATE "C";

-- No trigger can be switched off by session_replication_role.
SELECT tgrelid::regclass AS relation, tgname, tgenabled,
       CASE WHEN tgtype & 1 = 1 THEN 'row' ELSE 'statement' END AS level,
       concat_ws(' ', CASE WHEN tgtype & 4 > 0 THEN 'insert' END, CASE WHEN tgtype & 16 > 0 THEN 'update' END,
                 CASE WHEN tgtype & 8 > 0 THEN 'delete' END, CASE WHEN tgtype & 32 > 0 THEN 'truncate' END) AS events
  FROM pg_trigger
 WHERE NOT tgisinternal AND tgrelid IN (SELECT objid FROM test.object)
 ORDER BY tgrelid::regclass::text COLLATE "C", tgname;

-- Settings: no session raises its own limit (sighup), paths only for superusers.
SELECT name, context, vartype, unit, boot_val
  FROM pg_settings WHERE name LIKE 'pg\_evidence.%' ORDER BY name COLLATE "C";
SET pg_evidence.max_records = 100;
SET pg_evidence.no_such_setting = 1;
SET ROLE regress_planter;
\set VERBOSITY sqlstate
SHOW pg_evidence.fingerprint_key_file;
\set VERBOSITY terse
SHOW pg_evidence.max_records;

-- Without a capability there is nothing to be seen: not even the schema.
SELECT evidence.evidence_version();
SELECT * FROM evidence.audit_export_status;
RESET ROLE;
DROP ROLE regress_planter;
