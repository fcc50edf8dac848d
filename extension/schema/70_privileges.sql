-- 70_privileges.sql: nobody but the owner has any right until it is granted
-- by grant_capability().

REVOKE ALL ON SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA evidence FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA evidence FROM PUBLIC;

-- A table that uses one of our row types would block every later ALTER TABLE
-- of ours, so nobody else may use them either.  There is no REVOKE for all
-- types of a schema.
DO $$
DECLARE
    row_type regtype;
BEGIN
    FOR row_type IN
        SELECT c.reltype FROM pg_catalog.pg_class AS c
         WHERE c.relnamespace = 'evidence'::pg_catalog.regnamespace AND c.reltype <> 0
    LOOP
        EXECUTE pg_catalog.format('REVOKE ALL ON TYPE %s FROM PUBLIC', row_type);
    END LOOP;
END
$$;
