-- 46_shipping.sql: which audit records have been shipped, and which have not.
--
-- A row is written in the transaction that writes the audit record, so a
-- record that is committed is either promised here or was not to be shipped.

-- The key begins with the id, so that it can never stand in for the partial
-- index below: an index on all rows would be read past every row that was
-- ever sent.  There is no reference to the log, since a dump restores the two
-- tables in any order.  Every row is changed once, so VACUUM comes often.
CREATE TABLE evidence.audit_delivery (
    audit_created_at timestamptz NOT NULL,
    audit_id         bigint NOT NULL,
    state            text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent')),
    attempts         integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    next_attempt_at  timestamptz,
    last_error       text,
    sink             text,
    sent_at          timestamptz,
    CONSTRAINT audit_delivery_pkey PRIMARY KEY (audit_id, audit_created_at),
    CONSTRAINT audit_delivery_sent CHECK ((state = 'sent') = (sent_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX audit_delivery_pending ON evidence.audit_delivery (audit_created_at, audit_id)
    WHERE state = 'pending';
CREATE INDEX audit_delivery_deferred ON evidence.audit_delivery (next_attempt_at)
    WHERE state = 'pending' AND attempts > 0;
COMMENT ON TABLE evidence.audit_delivery IS
    'One row per audit record to be shipped: pending until the sink has accepted it, then sent, for good.';
COMMENT ON COLUMN evidence.audit_delivery.audit_created_at IS 'Time of the audit record.';
COMMENT ON COLUMN evidence.audit_delivery.audit_id IS 'Its id.';
COMMENT ON COLUMN evidence.audit_delivery.state IS 'pending or sent; there is no third one, and no way back.';
COMMENT ON COLUMN evidence.audit_delivery.attempts IS 'How many times the sink was given the record.';
COMMENT ON COLUMN evidence.audit_delivery.next_attempt_at IS 'Not to be tried before; NULL: at once.';
COMMENT ON COLUMN evidence.audit_delivery.last_error IS 'Why the sink refused it the last time, in a few words without secrets.';
COMMENT ON COLUMN evidence.audit_delivery.sink IS 'Name of the sink that accepted or refused it.';
COMMENT ON COLUMN evidence.audit_delivery.sent_at IS 'When the sink had accepted it.';

CREATE FUNCTION evidence._promise_shipping() RETURNS trigger
    LANGUAGE C
    AS 'MODULE_PATHNAME', 'ev_sql_promise_shipping';
COMMENT ON FUNCTION evidence._promise_shipping() IS
    'Puts an audit record that was just written into audit_delivery, if pg_evidence.ship is on.';

CREATE FUNCTION evidence._guard_delivery() RETURNS trigger
    LANGUAGE C
    AS 'MODULE_PATHNAME', 'ev_sql_guard_delivery';
COMMENT ON FUNCTION evidence._guard_delivery() IS
    'Refuses any change of audit_delivery but from pending to sent, and unites a row that a dump restores with the one that is there.';

CREATE TRIGGER promise_shipping AFTER INSERT ON evidence.audit_log
    FOR EACH ROW EXECUTE FUNCTION evidence._promise_shipping();
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON evidence.audit_delivery
    FOR EACH ROW EXECUTE FUNCTION evidence._guard_delivery();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON evidence.audit_delivery
    FOR EACH STATEMENT EXECUTE FUNCTION evidence._refuse_change();
ALTER TABLE evidence.audit_log ENABLE ALWAYS TRIGGER promise_shipping;
ALTER TABLE evidence.audit_delivery ENABLE ALWAYS TRIGGER guard;
ALTER TABLE evidence.audit_delivery ENABLE ALWAYS TRIGGER guard_truncate;

SELECT pg_catalog.pg_extension_config_dump('evidence.audit_delivery', '');

-- Procedures ----------------------------------------------------------------

CREATE PROCEDURE evidence.ship_pass()
    LANGUAGE C
    AS 'MODULE_PATHNAME', 'ev_sql_ship_pass';
COMMENT ON PROCEDURE evidence.ship_pass() IS
    'Does in this session what one pass of the shipper would do: gives all audit records that are due to the sink, in batches, and commits after each. What it did stands in pass_log. Capability operator. Errors: 25001 inside a transaction block; 55000 shipping is off, the sink is disabled or out of order, or a foreign incarnation.';

CREATE PROCEDURE evidence.ship_audit_records(
        from_at timestamptz, until_at timestamptz DEFAULT NULL, INOUT queued bigint DEFAULT 0)
    LANGUAGE C
    AS 'MODULE_PATHNAME', 'ev_sql_ship_audit_records';
COMMENT ON PROCEDURE evidence.ship_audit_records(timestamptz, timestamptz, bigint) IS
    'Has the audit records of [from_at, until_at) shipped that are not in audit_delivery yet, for instance those from before shipping was switched on. Works in batches and commits after each; queued: how many there were. Capability operator. Errors: 22023 bad range; 25001 inside a transaction block; 55000 shipping is off, or a foreign incarnation.';
