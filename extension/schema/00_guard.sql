-- 00_guard.sql: where this script may run.
--
-- The parts of this folder are joined by make, in the order of their names,
-- into pg_evidence--<version>.sql.

\echo Use "CREATE EXTENSION pg_evidence" to load this file. \quit

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

-- CREATE EXTENSION takes a schema that is there already, and whoever owns it
-- could drop it with everything in it.
DO $$
BEGIN
    IF NOT (SELECT r.rolsuper
              FROM pg_catalog.pg_namespace AS n
              JOIN pg_catalog.pg_roles AS r ON r.oid = n.nspowner
             WHERE n.nspname = 'evidence')
    THEN
        RAISE EXCEPTION 'cannot create extension "pg_evidence": schema "evidence" belongs to a role that is no superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Drop or rename that schema; the extension makes its own.';
    END IF;
END
$$;

COMMENT ON SCHEMA evidence IS
    'pg_evidence: an audit log and the evidence packages made from it';
