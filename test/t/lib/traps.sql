-- traps.sql: what an ordinary role can lay out to be called in place of what
-- somebody means: functions, operators, aggregates, types, casts, relations,
-- collations and conversions that are named like those of pg_catalog and of
-- the extension, with the same argument types and with types that would fit
-- a call better.
--
-- Run by role mallory, who owns schema trap.  Each one says SPRUNG in the
-- server log, with the role that it runs as.  Variables: names, a list of
-- function names that the extension's SQL uses.
SET check_function_bodies = off;
SET client_min_messages = error;

CREATE FUNCTION trap.spring(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE LOG 'SPRUNG: % as "%" in the session of "%"', what, current_user, session_user;
END
$$;

-- One function for all operators of the same types and result.
CREATE FUNCTION trap.make_function(name text, arguments text[], result text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE pg_catalog.format('CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', name,
        pg_catalog.array_to_string(arguments, ', '), result,
        pg_catalog.format('BEGIN PERFORM trap.spring(%L); %s END', pg_catalog.format('%s(%s)', name, arguments),
               CASE WHEN result LIKE 'SETOF %' THEN 'RETURN;' WHEN result = 'void' THEN '' ELSE 'RETURN NULL;' END));
EXCEPTION WHEN duplicate_function OR invalid_function_definition THEN
    NULL;
END
$$;
CREATE FUNCTION trap.make_operator(operator text, left_type text, right_type text, result text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    arguments text[] := pg_catalog.array_remove(ARRAY[left_type, right_type], NULL);
    name text := 'op ' || result;
BEGIN
    PERFORM trap.make_function(name, arguments, result);
    EXECUTE pg_catalog.format('CREATE OPERATOR trap.%s (%s RIGHTARG = %s, FUNCTION = trap.%I)', operator,
        'LEFTARG = ' || left_type || ',', right_type, name);
EXCEPTION WHEN duplicate_function THEN
    NULL;
END
$$;

-- Types by which an argument could be meant better than in pg_catalog.
CREATE VIEW trap.kind AS
SELECT t::regtype AS type, format_type(t::regtype, NULL) AS name
  FROM unnest('{text,varchar,name,bool,int4,int8,oid,regrole,regclass,uuid,timestamptz,interval,jsonb,bytea,xid8,pg_snapshot,text[],uuid[],float8,numeric}'::text[]) AS t;

-- The same as in pg_catalog.
SELECT count(trap.make_operator(o.oprname, format_type(nullif(o.oprleft, 0), NULL), format_type(o.oprright, NULL), format_type(o.oprresult, NULL)))
  FROM pg_operator AS o
 WHERE o.oprnamespace = 'pg_catalog'::regnamespace
   AND NOT EXISTS (SELECT FROM pg_type AS t WHERE t.oid IN (o.oprleft, o.oprright, o.oprresult) AND t.typtype = 'p');
SELECT count(trap.make_function(p.proname, ARRAY(SELECT format_type(a, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS u (a, n) ORDER BY n),
                                CASE WHEN p.proretset THEN 'SETOF ' ELSE '' END || format_type(p.prorettype, NULL)))
  FROM pg_proc AS p
 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a') AND p.oid <> 'count()'::regprocedure
   AND NOT EXISTS (SELECT FROM pg_type AS t WHERE t.typtype = 'p'
                      AND (t.oid = p.prorettype AND t.typname NOT IN ('void', 'record') OR t.oid = ANY (p.proargtypes::oid[])));
CREATE AGGREGATE trap.count(*) (SFUNC = int8inc, STYPE = bigint, INITCOND = '1000000');

-- And every other combination of types for what the extension uses.
SELECT count(trap.make_operator(o, a.name, b.name, CASE o WHEN '||' THEN 'text' ELSE 'boolean' END))
  FROM unnest('{=,<>,<,<=,>,>=,||,~,!~,^@,->,->>,?,@>,+,-}'::text[]) AS o, trap.kind AS a, trap.kind AS b;
SELECT count(trap.make_function(n, arguments, 'text'))
  FROM unnest(:'names'::text[]) AS n,
       (SELECT ARRAY[a.name] AS arguments FROM trap.kind AS a
        UNION ALL
        SELECT ARRAY[a.name, b.name] FROM trap.kind AS a, trap.kind AS b
         WHERE a.type IN ('text'::regtype, 'jsonb'::regtype, 'text[]'::regtype, 'timestamptz'::regtype, 'int8'::regtype)
           AND b.type IN ('text'::regtype, 'jsonb'::regtype, 'text[]'::regtype, 'timestamptz'::regtype, 'int4'::regtype)) AS t;

-- Types, with casts that call something.
SELECT format('CREATE DOMAIN trap.%I AS pg_catalog.%1$I CHECK (trap.spring(%1$L) IS NULL)', t) AS statement
  FROM unnest('{text,name,uuid,jsonb,bytea,timestamptz,regrole,regclass,xid8,pg_snapshot,bool,int4,int8,float8,numeric}'::text[]) AS t \gexec
CREATE TYPE trap.envelope AS (letter pg_catalog.text);
CREATE FUNCTION trap.open(trap.envelope) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$BEGIN PERFORM trap.spring('cast from'); RETURN NULL; END$$;
CREATE FUNCTION trap.seal(pg_catalog.text) RETURNS trap.envelope LANGUAGE plpgsql AS $$BEGIN PERFORM trap.spring('cast to'); RETURN NULL; END$$;
CREATE CAST (trap.envelope AS pg_catalog.text) WITH FUNCTION trap.open(trap.envelope) AS IMPLICIT;
CREATE CAST (pg_catalog.text AS trap.envelope) WITH FUNCTION trap.seal(pg_catalog.text) AS IMPLICIT;
CREATE COLLATION trap."C" FROM pg_catalog."POSIX";
CREATE COLLATION trap."default" FROM pg_catalog."POSIX";
CREATE DEFAULT CONVERSION trap.to_latin FOR 'UTF8' TO 'LATIN1' FROM pg_catalog.utf8_to_iso8859_1;

-- A domain that looks who evaluates it.
CREATE FUNCTION trap.look() RETURNS pg_catalog.bool LANGUAGE plpgsql AS $$
BEGIN
    IF current_user OPERATOR(pg_catalog.<>) session_user THEN
        PERFORM trap.spring('domain');
    END IF;
    RETURN true;
END
$$;
CREATE DOMAIN trap.looking AS pg_catalog.text CHECK (trap.look());

-- Relations of the extension and of the catalog, to be made in each session:
-- temporary ones that spring when written to and lie when read.
CREATE FUNCTION trap.written() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM trap.spring(TG_RELID::pg_catalog.regclass::pg_catalog.text); RETURN NEW; END$$;
CREATE VIEW trap.temporary AS
SELECT c.oid, c.relname,
       format('CREATE TEMPORARY TABLE %I (%s); CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON pg_temp.%1$I FOR EACH ROW EXECUTE FUNCTION trap.written();',
              c.relname, string_agg(format('%I %s', a.attname, format_type(a.atttypid, NULL)), ', ' ORDER BY a.attnum)) AS statement
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  JOIN pg_type AS t ON t.oid = a.atttypid AND t.typtype <> 'p'
 WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'evidence') AND c.relkind IN ('r', 'v')
    OR c.oid IN ('pg_class'::regclass, 'pg_attribute'::regclass, 'pg_roles'::regclass, 'pg_extension'::regclass, 'pg_locks'::regclass,
                 'pg_namespace'::regclass, 'pg_stat_activity'::regclass)
 GROUP BY c.oid, c.relname;

GRANT USAGE ON SCHEMA trap TO PUBLIC;
GRANT SELECT ON trap.temporary TO PUBLIC;
SELECT (SELECT count(*) FROM pg_operator WHERE oprnamespace = 'trap'::regnamespace),
       (SELECT count(*) FROM pg_proc WHERE pronamespace = 'trap'::regnamespace);
