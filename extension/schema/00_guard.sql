-- 00_guard.sql: where this script may run.
--
-- The parts of this folder are joined by make, in the order of their names,
-- into pg_evidence--<version>.sql.

\echo Use "CREATE EXTENSION pg_evidence" to load this file. \quit

-- Whatever lies in schema evidence, a name without a schema means the one of
-- pg_catalog from here on: also in bodies, defaults, checks and views.
SET LOCAL search_path = pg_catalog, pg_temp;

-- The launcher serves one database.  An installation anywhere else would
-- accept requests that nobody ever carries out, so it is refused there.
DO $$
BEGIN
    IF 'pg_evidence' = ANY (pg_catalog.string_to_array(pg_catalog.regexp_replace(
            pg_catalog.current_setting('shared_preload_libraries'), '["\s]', '', 'g'), ','))
       AND pg_catalog.current_database() <> pg_catalog.current_setting('pg_evidence.database')
    THEN
        RAISE EXCEPTION 'cannot create extension "pg_evidence" in database "%": the launcher serves database "%"',
            pg_catalog.current_database(), pg_catalog.current_setting('pg_evidence.database')
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Create it there, or set pg_evidence.database to this database and restart the server.';
    END IF;
END
$$;

-- CREATE EXTENSION takes a schema that is there already: one that pg_restore
-- has made, or that an earlier life of the extension has left.  It has to be
-- empty and nobody else's.  Its owner could drop it with everything in it;
-- whoever may create in it could plant a function or an operator that fits a
-- call of ours better than the one of pg_catalog, and the superuser would run
-- it.
DO $$
DECLARE
    fault text;
BEGIN
    SELECT CASE
           WHEN NOT r.rolsuper THEN 'belongs to a role that is no superuser'
           WHEN EXISTS (SELECT FROM pg_catalog.pg_depend AS d
                         WHERE d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
                           AND d.refobjid = n.oid AND d.deptype = 'n'
                           AND d.classid <> 'pg_catalog.pg_extension'::pg_catalog.regclass)
                THEN 'is not empty'
           WHEN EXISTS (SELECT FROM pg_catalog.aclexplode(n.nspacl) AS a
                         WHERE a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner)
                THEN 'lets other roles create in it'
           END
      INTO fault
      FROM pg_catalog.pg_namespace AS n
      JOIN pg_catalog.pg_roles AS r ON r.oid = n.nspowner
     WHERE n.nspname = 'evidence';
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'cannot create extension "pg_evidence": schema "evidence" %', fault
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Drop or rename that schema; the extension makes its own.';
    END IF;
END
$$;

COMMENT ON SCHEMA evidence IS
    'pg_evidence: an audit log and the evidence packages made from it';
