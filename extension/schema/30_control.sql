-- 30_control.sql: who may do what, what is locked first, which cluster this
-- is, and which redaction rules there are.

CREATE TABLE evidence.capability (
    role_name  text NOT NULL,
    capability text NOT NULL
        CHECK (capability IN ('requester', 'operator', 'auditor', 'writer', 'uploader')),
    granted_by text NOT NULL,
    granted_at timestamptz NOT NULL,
    PRIMARY KEY (role_name, capability)
);
COMMENT ON TABLE evidence.capability IS
    'What a role may do; members inherit it. Changed by grant_capability() and revoke_capability() only.';
COMMENT ON COLUMN evidence.capability.role_name IS 'The role, by name so that a dump restores it.';
COMMENT ON COLUMN evidence.capability.capability IS 'requester, operator, auditor, writer or uploader.';
COMMENT ON COLUMN evidence.capability.granted_by IS 'Who granted it.';
COMMENT ON COLUMN evidence.capability.granted_at IS 'When it was granted.';

CREATE TABLE evidence.guard (
    kind      text NOT NULL CHECK (kind IN ('source', 'requester', 'pool')),
    name      text NOT NULL,
    watermark timestamptz,
    touched   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, name)
);
COMMENT ON TABLE evidence.guard IS
    'Rows that are locked before something is counted or compared: one per source (watermark), per requester (quota) and for the pool of exporters.';
COMMENT ON COLUMN evidence.guard.kind IS 'What the row guards: source, requester or pool.';
COMMENT ON COLUMN evidence.guard.name IS 'Name of the source, requester or pool.';
COMMENT ON COLUMN evidence.guard.watermark IS 'Rows of the source below this time have been retired; NULL while none has.';
COMMENT ON COLUMN evidence.guard.touched IS 'Raised by each request, so that two requests with old snapshots conflict instead of both counting too few.';

-- The incarnation witness.  A row written by this script carries, as xmin,
-- the transaction that wrote it, and so do its copies in a base backup, on a
-- promoted standby and after pg_upgrade.  A restored dump writes the rows
-- again, under other transactions.  Two rows with two different xmins are
-- needed: a restore in one transaction could, by chance, repeat one number,
-- but it can never give two rows two different ones in the same COPY.
CREATE TABLE evidence.instance (
    incarnation       uuid NOT NULL,
    witness           smallint NOT NULL,
    witness_xid       bigint NOT NULL,
    system_identifier text NOT NULL,
    created_at        timestamptz NOT NULL,
    retired_at        timestamptz,
    retired_by        text,
    reason            text,
    PRIMARY KEY (incarnation, witness)
);
COMMENT ON TABLE evidence.instance IS
    'Proof that the rows of this database were written by this cluster; see adopt_instance().';
COMMENT ON COLUMN evidence.instance.incarnation IS 'Identity of one life of this ledger; each export belongs to one.';
COMMENT ON COLUMN evidence.instance.witness IS '1 or 2.';
COMMENT ON COLUMN evidence.instance.witness_xid IS 'The xmin that this row had when it was written.';
COMMENT ON COLUMN evidence.instance.system_identifier IS 'System identifier of the cluster that wrote it; for people, not for the decision.';
COMMENT ON COLUMN evidence.instance.created_at IS 'When the incarnation began.';
COMMENT ON COLUMN evidence.instance.retired_at IS 'When adopt_instance() took over its rows.';
COMMENT ON COLUMN evidence.instance.retired_by IS 'Who adopted them.';
COMMENT ON COLUMN evidence.instance.reason IS 'Why.';

CREATE FUNCTION evidence._begin_incarnation() RETURNS uuid
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    identity uuid := pg_catalog.gen_random_uuid();
BEGIN
    FOR number IN 1 .. 2 LOOP
        -- The block makes a subtransaction, which has an xid of its own; the
        -- UPDATE in it then gives the row a version with that xmin.
        BEGIN
            INSERT INTO evidence.instance (incarnation, witness, witness_xid, system_identifier, created_at)
            SELECT identity, number, 0, c.system_identifier::text, evidence._now()
              FROM pg_catalog.pg_control_system() AS c;
            UPDATE evidence.instance AS i
               SET witness_xid = i.xmin::text::bigint
             WHERE i.incarnation = identity AND i.witness = number;
        EXCEPTION
            WHEN unique_violation THEN
                RAISE;
        END;
    END LOOP;
    RETURN identity;
END
$$;
COMMENT ON FUNCTION evidence._begin_incarnation() IS
    'Writes the two witness rows of a new incarnation.';

DO $$ BEGIN PERFORM evidence._begin_incarnation(); END $$;

CREATE TABLE evidence.redaction_rule (
    name       text NOT NULL CHECK (name ~ '^[a-z0-9_-]{1,40}$'),
    added_in   integer NOT NULL CHECK (added_in > 0),
    position   integer NOT NULL,
    pattern    text,
    anchors    text[] NOT NULL DEFAULT '{}',
    join_lines boolean NOT NULL DEFAULT false,
    builtin    boolean NOT NULL DEFAULT false,
    added_by   text NOT NULL,
    reason     text NOT NULL,
    PRIMARY KEY (name, added_in)
);
COMMENT ON TABLE evidence.redaction_rule IS
    'Shapes of secrets that exports replace. Version N of the ruleset holds, of each name, the newest row with added_in <= N. Rows are only ever added, so a version never changes and an old export can be repeated.';
COMMENT ON COLUMN evidence.redaction_rule.name IS 'Stands in the mark, as in [redacted:name].';
COMMENT ON COLUMN evidence.redaction_rule.added_in IS 'First ruleset version that has this row.';
COMMENT ON COLUMN evidence.redaction_rule.position IS 'Order of use; lower first.';
COMMENT ON COLUMN evidence.redaction_rule.pattern IS 'PCRE2 pattern; group 1, or else the whole match, is replaced. NULL: the rule is retired from this version on.';
COMMENT ON COLUMN evidence.redaction_rule.anchors IS 'ASCII literals of which a matching text must contain one, in any case; empty: the rule is tried on every text.';
COMMENT ON COLUMN evidence.redaction_rule.join_lines IS 'Tried also with line breaks and tabs taken out.';
COMMENT ON COLUMN evidence.redaction_rule.builtin IS 'Shipped with the extension, therefore not dumped.';
COMMENT ON COLUMN evidence.redaction_rule.added_by IS 'Who added it.';
COMMENT ON COLUMN evidence.redaction_rule.reason IS 'Why.';

CREATE FUNCTION evidence._builtin_rules(OUT name text, OUT "position" integer, OUT pattern text,
                                        OUT anchors text[], OUT join_lines boolean)
    RETURNS SETOF record
    LANGUAGE C IMMUTABLE
    AS 'MODULE_PATHNAME', 'ev_sql_builtin_rules';
COMMENT ON FUNCTION evidence._builtin_rules() IS
    'The redaction rules that the library ships.';

INSERT INTO evidence.redaction_rule (name, added_in, position, pattern, anchors, join_lines, builtin, added_by, reason)
SELECT r.name, 1, r.position, r.pattern, r.anchors, r.join_lines, true, 'pg_evidence', 'shipped with the extension'
  FROM evidence._builtin_rules() AS r;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON evidence.redaction_rule
    FOR EACH ROW EXECUTE FUNCTION evidence._refuse_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON evidence.redaction_rule
    FOR EACH STATEMENT EXECUTE FUNCTION evidence._refuse_change();
ALTER TABLE evidence.redaction_rule ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE evidence.redaction_rule ENABLE ALWAYS TRIGGER append_only_truncate;

SELECT pg_catalog.pg_extension_config_dump('evidence.capability', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.guard', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.instance', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.redaction_rule', 'WHERE NOT builtin');
