-- 10_internal.sql: functions that constraints, triggers and views of the
-- following parts rest on.  Names with an underscore are internal.

CREATE FUNCTION evidence.evidence_version() RETURNS text
    LANGUAGE C IMMUTABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'ev_sql_version';
COMMENT ON FUNCTION evidence.evidence_version() IS
    'Version of the loaded library; the client program compares it with its own.';

CREATE FUNCTION evidence._now() RETURNS timestamptz
    LANGUAGE C VOLATILE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'ev_sql_now';
COMMENT ON FUNCTION evidence._now() IS
    'The clock by which deadlines are decided: the server''s time at the call.';

CREATE FUNCTION evidence._state_known(fact text, state text) RETURNS boolean
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'ev_sql_state_known';
COMMENT ON FUNCTION evidence._state_known(text, text) IS
    'Is this a state of the fact export, job or outbox?';

CREATE FUNCTION evidence._state_moves(OUT fact text, OUT from_state text, OUT to_state text)
    RETURNS SETOF record
    LANGUAGE C IMMUTABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'ev_sql_state_moves';
COMMENT ON FUNCTION evidence._state_moves() IS
    'Every legal move of every fact (requirement S3.22).';

CREATE FUNCTION evidence._state_combinations(OUT export text, OUT job text, OUT event text)
    RETURNS SETOF record
    LANGUAGE C IMMUTABLE PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'ev_sql_state_combinations';
COMMENT ON FUNCTION evidence._state_combinations() IS
    'Every legal combination of an export, its job and its outbox event (requirement S1.17).';

-- Trigger functions.  All triggers are ENABLE ALWAYS, so that
-- session_replication_role = replica does not switch them off.

CREATE FUNCTION evidence._stamp_audit_row() RETURNS trigger
    LANGUAGE C
    AS 'MODULE_PATHNAME', 'ev_sql_stamp_audit_row';
COMMENT ON FUNCTION evidence._stamp_audit_row() IS
    'Sets recorded_xid to the inserting transaction, whatever the INSERT says.';

CREATE FUNCTION evidence._refuse_change() RETURNS trigger
    LANGUAGE C
    AS 'MODULE_PATHNAME', 'ev_sql_refuse_change';
COMMENT ON FUNCTION evidence._refuse_change() IS
    'Refuses UPDATE, DELETE and TRUNCATE of an append-only table.';

CREATE FUNCTION evidence._guard_fact() RETURNS trigger
    LANGUAGE C
    AS 'MODULE_PATHNAME', 'ev_sql_guard_fact';
COMMENT ON FUNCTION evidence._guard_fact() IS
    'Refuses any move of a fact that the table of moves does not know, and any change of its contract.';
