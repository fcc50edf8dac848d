-- 70_privileges.sql: nobody but the owner has any right until it is granted
-- by grant_capability().

REVOKE ALL ON SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA evidence FROM PUBLIC;

-- A table that uses one of our row types would block every later ALTER TABLE
-- of ours, so nobody else may use them either.  There is no REVOKE for all
-- types of a schema.  The default privileges of the installing superuser, and
-- an earlier life of the schema, may have granted something to single roles
-- as well.
DO $$
DECLARE
    role_name text;
    row_type regtype;
BEGIN
    FOR role_name IN
        WITH acl AS (
            SELECT n.nspacl AS list FROM pg_catalog.pg_namespace AS n WHERE n.nspname = 'evidence'
            UNION ALL
            SELECT c.relacl FROM pg_catalog.pg_class AS c WHERE c.relnamespace = 'evidence'::pg_catalog.regnamespace
            UNION ALL
            SELECT p.proacl FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = 'evidence'::pg_catalog.regnamespace
            UNION ALL
            SELECT t.typacl FROM pg_catalog.pg_type AS t WHERE t.typnamespace = 'evidence'::pg_catalog.regnamespace
        )
        SELECT 'PUBLIC'
        UNION
        SELECT pg_catalog.quote_ident(r.rolname)
          FROM acl CROSS JOIN LATERAL pg_catalog.aclexplode(acl.list) AS a
          JOIN pg_catalog.pg_roles AS r ON r.oid = a.grantee
         WHERE r.oid <> (SELECT n.nspowner FROM pg_catalog.pg_namespace AS n WHERE n.nspname = 'evidence')
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON SCHEMA evidence FROM %s', role_name);
        EXECUTE pg_catalog.format('REVOKE ALL ON ALL TABLES IN SCHEMA evidence FROM %s', role_name);
        EXECUTE pg_catalog.format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA evidence FROM %s', role_name);
        EXECUTE pg_catalog.format('REVOKE ALL ON ALL ROUTINES IN SCHEMA evidence FROM %s', role_name);
        FOR row_type IN
            SELECT c.reltype FROM pg_catalog.pg_class AS c
             WHERE c.relnamespace = 'evidence'::pg_catalog.regnamespace AND c.reltype <> 0
        LOOP
            EXECUTE pg_catalog.format('REVOKE ALL ON TYPE %s FROM %s', row_type, role_name);
        END LOOP;
    END LOOP;
END
$$;
