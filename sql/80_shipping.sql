-- 80_shipping.sql: audit records are promised, shipped, put off and never lost.
--
-- No shipper runs here, since the launcher stands still: each pass is a CALL.
\set VERBOSITY terse
\set SHOW_CONTEXT never

CREATE VIEW test.shipping AS
SELECT l.action, d.state, d.attempts, d.next_attempt_at > evidence._now() AS later, d.last_error, d.sink
  FROM evidence.audit_delivery AS d
  JOIN evidence.audit_log AS l ON l.created_at = d.audit_created_at AND l.id = d.audit_id
 ORDER BY l.id;
CREATE VIEW test.pass AS
SELECT counts ->> 'shipped' AS shipped, counts ->> 'deferred' AS deferred, counts ->> 'stuck' AS stuck,
       counts ->> 'batches' AS batches, scope, error_code, error_message
  FROM evidence.pass_log WHERE kind = 'ship' ORDER BY id DESC LIMIT 1;
-- What stands in the file: one JSON object per line.
CREATE FUNCTION test.shipped(file text DEFAULT 'log/pg_evidence_audit.jsonl') RETURNS SETOF json LANGUAGE sql AS $$
SELECT line::json FROM string_to_table(trim(trailing E'\n' FROM pg_read_file(file)), E'\n') AS line
$$;
CREATE FUNCTION test.record(action text, summary text DEFAULT NULL, metadata jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $$
SELECT evidence.record_audit_event(action, 'shipping', summary => summary, metadata => metadata)
$$;

-- Off: nothing is promised, and nobody pretends to ship ------------------------
SELECT test.record('ship.before');
SELECT count(*) AS promised FROM evidence.audit_delivery;
CALL evidence.ship_pass();
CALL evidence.ship_audit_records('-infinity');
SELECT state, reason, depth FROM evidence.queue_health WHERE lane = 'shipping';

-- On: promised in the same transaction, or not at all --------------------------
ALTER SYSTEM SET pg_evidence.ship = on;
SELECT pg_reload_conf() AS reloaded \gset
\c -
BEGIN;
SELECT test.record('ship.rolled_back');
SELECT * FROM test.shipping;
ROLLBACK;
BEGIN;
SAVEPOINT a;
SELECT test.record('ship.rolled_back');
ROLLBACK TO a;
SELECT test.record('ship.first', 'password=Qx7_planted and more', '{"password": "Qx8_planted", "list": [1, null, "password=Qx9_planted"]}');
COMMIT;
-- An import by the owner is promised as well, and by a role that may do no more than that.
INSERT INTO evidence.audit_log (created_at, actor_id, action) VALUES ('2019-01-01 00:00+00', 'shipping', 'ship.import');
CREATE ROLE regress_importer;
GRANT USAGE ON SCHEMA evidence TO regress_importer;
GRANT INSERT ON evidence.audit_log TO regress_importer;
GRANT EXECUTE ON FUNCTION evidence._now() TO regress_importer;
SET ROLE regress_importer;
INSERT INTO evidence.audit_log (actor_id, action) VALUES ('shipping', 'ship.import_by_role');
RESET ROLE;
DROP OWNED BY regress_importer;
DROP ROLE regress_importer;
SELECT * FROM test.shipping;
SELECT state, reason, depth, depth_is_exact, head_age > '1 year' AS old, deferred FROM evidence.queue_health WHERE lane = 'shipping';

-- Two states, and one way between them -------------------------------------------
SELECT test.code($$UPDATE evidence.audit_delivery SET state = 'lost'$$) AS no_third_state;
SELECT test.code($$UPDATE evidence.audit_delivery SET state = 'sent'$$) AS sent_without_time;
SELECT test.try($$UPDATE evidence.audit_delivery SET audit_id = -audit_id$$) AS other_record;
SELECT test.try($$UPDATE evidence.audit_delivery SET attempts = attempts - 1$$) AS uncounted;
SELECT test.try($$DELETE FROM evidence.audit_delivery$$) AS deleted;
SELECT test.try($$TRUNCATE evidence.audit_delivery$$) AS truncated;
SELECT test.code($$INSERT INTO evidence.audit_delivery (audit_created_at, audit_id, state) VALUES (now(), 1, 'lost')$$) AS inserted;
SELECT test.code($$INSERT INTO evidence.audit_delivery (audit_created_at, audit_id, state) VALUES (NULL, 1, 'pending')$$) AS inserted;
SELECT test.code($$INSERT INTO evidence.audit_delivery (audit_created_at, audit_id, state) VALUES (now(), 1, 'sent')$$) AS inserted;
SET session_replication_role = replica;
SELECT test.code($$DELETE FROM evidence.audit_delivery$$) AS as_replica;
RESET session_replication_role;

-- A pass ships all of it, the record as documented ---------------------------------
CALL evidence.ship_pass();
SELECT * FROM test.shipping;
SELECT * FROM test.pass;
SELECT test.try($$UPDATE evidence.audit_delivery SET state = 'pending', sent_at = NULL$$) AS back;
SELECT test.try($$UPDATE evidence.audit_delivery SET sent_at = now()$$) AS rewritten;
SELECT array_agg(key) AS members FROM test.shipped() AS s, json_object_keys(s) AS key WHERE s ->> 'event' = 'ship.first';
SELECT array_agg(key) AS fields FROM test.shipped() AS s, json_object_keys(s -> 'fields') AS key WHERE s ->> 'event' = 'ship.first';
SELECT s -> 'id' #>> '{}' = l.id::text AS id, (s ->> 'created_at')::timestamptz = l.created_at AS created_at,
       s ->> 'created_at' ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$' AS utc, s -> 'fields' ->> 'summary' AS summary,
       s -> 'fields' -> 'metadata' AS metadata, s -> 'fields' ->> 'recorded_xid' = l.recorded_xid::text AS recorded_xid
  FROM test.shipped() AS s JOIN evidence.audit_log AS l ON l.action = s ->> 'event'
 WHERE l.action = 'ship.first';
SELECT s ->> 'event' AS event, s ->> 'created_at' AS created_at FROM test.shipped() AS s WHERE s ->> 'event' = 'ship.import';
SELECT test.code('CALL evidence.ship_pass()') AS in_a_block, test.code($$CALL evidence.ship_audit_records('-infinity', NULL, 0)$$) AS in_a_block;
-- Nothing to ship is an answer of its own.
CALL evidence.ship_pass();
SELECT * FROM test.pass;
SELECT state, reason, depth, head_age, deferred, last_pass_at IS NOT NULL AS passed FROM evidence.queue_health WHERE lane = 'shipping';

-- Always one valid line, whatever the record holds ----------------------------------
SELECT test.record(E'ship.hostile\n"\\\x01', E'line\r\nbreak\u2028 \u202e "quoted" {"a": \u0001 \x7f', '{"key \" \\ \n": "\u0001\n\t\"", "secret": {"api_key": "sk_live_Qx7planted8901234567890"}}');
SELECT test.record('ship.large', repeat('0123456789', 300000), jsonb_build_object('large', repeat('a"', 500000)));
CALL evidence.ship_pass();
SELECT s ->> 'event' = l.action AS event, s -> 'fields' ->> 'summary' = l.summary AS summary,
       (s -> 'fields' ->> 'metadata')::jsonb = l.metadata AS metadata
  FROM test.shipped() AS s JOIN evidence.audit_log AS l ON l.id = (s ->> 'id')::bigint
 WHERE s ->> 'event' LIKE 'ship.hostile%' OR s ->> 'event' = 'ship.large' ORDER BY l.id;
SELECT s -> 'fields' -> 'metadata' -> 'secret' AS secret FROM test.shipped() AS s WHERE s ->> 'event' LIKE 'ship.hostile%';
SELECT pg_read_file('log/pg_evidence_audit.jsonl') ~ 'planted' AS told;

-- Older records are shipped when somebody asks, once --------------------------------
CALL evidence.ship_audit_records('2100-01-01 00:00+00');
CALL evidence.ship_audit_records(NULL);
CALL evidence.ship_audit_records('2020-01-02 00:00+00', '2020-01-02 00:00+00');
SELECT count(*) AS older FROM evidence.audit_log AS l WHERE action LIKE 'ship.before' \gset
SELECT created_at AS start FROM evidence.audit_log WHERE action = 'ship.before' \gset
CALL evidence.ship_audit_records(:'start', :'start'::timestamptz + interval '1 microsecond');
CALL evidence.ship_audit_records(:'start', :'start'::timestamptz + interval '1 microsecond');
SELECT action, actor_id = current_user AS actor, target_id FROM evidence.audit_log WHERE action = 'shipping.backfill' ORDER BY id DESC LIMIT 1;
CALL evidence.ship_pass();
SELECT count(*) FROM test.shipped() AS s WHERE s ->> 'event' = 'ship.before';

-- A refused record holds up nobody, and is tried again when its pause is over ----------
SELECT setval('evidence.audit_log_id_seq', 3 * (nextval('evidence.audit_log_id_seq') / 3 + 1), false) % 3 AS third;
SELECT test.record('ship.refused');
SELECT test.record('ship.taken');
SELECT test.record('ship.taken');
ALTER SYSTEM SET pg_evidence.debug_sink = 'refuse=3 garbled';
SELECT pg_reload_conf() AS reloaded \gset
\c -
CALL evidence.ship_pass();
SELECT * FROM test.shipping WHERE action IN ('ship.refused', 'ship.taken');
SELECT * FROM test.pass;
SELECT state, reason, depth, deferred FROM evidence.queue_health WHERE lane = 'shipping';
-- Not before its time.
CALL evidence.ship_pass();
SELECT * FROM test.pass;
ALTER SYSTEM SET pg_evidence.clock_offset = '1min';
SELECT pg_reload_conf() AS reloaded \gset
\c -
CALL evidence.ship_pass();
SELECT * FROM test.shipping WHERE action = 'ship.refused';
-- If not even the refusal can be recorded the record is stuck, unmoved, and still nobody is held up.
CREATE FUNCTION test.break_retry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state = 'pending' THEN
        RAISE EXCEPTION 'no retry';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER break_retry BEFORE UPDATE ON evidence.audit_delivery FOR EACH ROW EXECUTE FUNCTION test.break_retry();
ALTER TABLE evidence.audit_delivery ENABLE ALWAYS TRIGGER break_retry;
SELECT test.record('ship.refused_too');
SELECT test.record('ship.taken_too');
ALTER SYSTEM SET pg_evidence.clock_offset = '10min';
SELECT pg_reload_conf() AS reloaded \gset
\c -
CALL evidence.ship_pass();
SELECT * FROM test.shipping WHERE action IN ('ship.refused', 'ship.refused_too', 'ship.taken_too');
SELECT * FROM test.pass;
DROP TRIGGER break_retry ON evidence.audit_delivery;
ALTER SYSTEM RESET pg_evidence.debug_sink;
SELECT pg_reload_conf() AS reloaded \gset
\c -
CALL evidence.ship_pass();
SELECT * FROM test.shipping WHERE action = 'ship.refused';
SELECT count(*) AS pending FROM evidence.audit_delivery WHERE state = 'pending';

-- If the database fails, the pass says so, and the records wait -------------------------
CREATE FUNCTION test.break_sent() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'password=Qx7_planted'; END$$;
CREATE TRIGGER break_sent BEFORE UPDATE ON evidence.audit_delivery FOR EACH ROW EXECUTE FUNCTION test.break_sent();
ALTER TABLE evidence.audit_delivery ENABLE ALWAYS TRIGGER break_sent;
SELECT test.record('ship.unsaid');
CALL evidence.ship_pass();
SELECT * FROM test.pass;
SELECT * FROM test.shipping WHERE action = 'ship.unsaid';
SELECT state, reason, depth FROM evidence.queue_health WHERE lane = 'shipping';
DROP TRIGGER break_sent ON evidence.audit_delivery;
CALL evidence.ship_pass();
SELECT * FROM test.shipping WHERE action = 'ship.unsaid';
SELECT count(*) AS twice FROM test.shipped() AS s WHERE s ->> 'event' = 'ship.unsaid';
-- A promise whose record is gone is put off like any other.
SET session_replication_role = replica;
INSERT INTO evidence.audit_delivery (audit_created_at, audit_id) VALUES ('2018-01-01 00:00+00', -5);
RESET session_replication_role;
CALL evidence.ship_pass();
SELECT state, attempts, last_error FROM evidence.audit_delivery WHERE audit_id = -5;
ALTER TABLE evidence.audit_delivery DISABLE TRIGGER guard;
DELETE FROM evidence.audit_delivery WHERE audit_id = -5;
ALTER TABLE evidence.audit_delivery ENABLE ALWAYS TRIGGER guard;

-- The same sink check everywhere: a setting is no fault, and costs no attempt ------------
SELECT test.record('ship.muted');
ALTER SYSTEM SET pg_evidence.ship_sink = 'server_log';
SELECT pg_reload_conf() AS reloaded \gset
\c -
SET log_min_messages = 'fatal';
CALL evidence.ship_pass();
SELECT * FROM test.shipping WHERE action = 'ship.muted';
SELECT * FROM test.pass;
SELECT state, reason, depth FROM evidence.queue_health WHERE lane = 'shipping';
SELECT value FROM evidence.metrics WHERE name = 'pg_evidence_lane_up' AND labels ->> 'lane' = 'shipping';
RESET log_min_messages;
CALL evidence.ship_pass();
SELECT * FROM test.shipping WHERE action = 'ship.muted';
ALTER SYSTEM RESET pg_evidence.ship_sink;
ALTER SYSTEM SET pg_evidence.ship_file = 'no_such_folder/audit.jsonl';
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT test.record('ship.broken');
\set VERBOSITY sqlstate
CALL evidence.ship_pass();
\set VERBOSITY terse
SELECT * FROM test.shipping WHERE action = 'ship.broken';
SELECT error_code, regexp_replace(error_message, '"/.*/no_such', '"/.../no_such') AS error_message FROM test.pass;
SELECT state FROM evidence.queue_health WHERE lane = 'shipping';

-- A file that is full is renamed; nothing is lost or doubled on the way ------------------
ALTER SYSTEM SET pg_evidence.ship_file = 'regress_rotated';
ALTER SYSTEM SET pg_evidence.ship_file_max_size = '1kB';
ALTER SYSTEM SET pg_evidence.ship_batch = 2;
SELECT pg_reload_conf() AS reloaded \gset
\c -
SELECT count(test.record('ship.rotated', repeat('x', 400))) FROM generate_series(1, 20);
CALL evidence.ship_pass();
SELECT count(*) > 5 AS files FROM pg_ls_dir('.') AS file WHERE file ~ '^regress_rotated\.\d{8}T\d{6}\.\d{6}Z$';
SELECT count(*) AS lines, count(DISTINCT s ->> 'id') AS records
  FROM pg_ls_dir('.') AS file, test.shipped(file) AS s WHERE file ~ '^regress_rotated' AND s ->> 'event' = 'ship.rotated';
ALTER SYSTEM RESET pg_evidence.ship_batch;
ALTER SYSTEM RESET pg_evidence.ship_file_max_size;
ALTER SYSTEM RESET pg_evidence.ship_file;
ALTER SYSTEM RESET pg_evidence.clock_offset;
SELECT pg_reload_conf() AS reloaded \gset
\c -

-- A restored row is united with the one that is there --------------------------------------
SELECT test.record('ship.restored');
SELECT audit_created_at AS at, audit_id AS id FROM evidence.audit_delivery ORDER BY audit_id DESC LIMIT 1 \gset
INSERT INTO evidence.audit_delivery (audit_created_at, audit_id, attempts) VALUES (:'at', :id, 3);
SELECT state, attempts FROM evidence.audit_delivery WHERE audit_id = :id;
INSERT INTO evidence.audit_delivery (audit_created_at, audit_id, state, attempts, sink, sent_at) VALUES (:'at', :id, 'sent', 2, 'file', now());
INSERT INTO evidence.audit_delivery (audit_created_at, audit_id, attempts) VALUES (:'at', :id, 9);
SELECT state, attempts, sink FROM evidence.audit_delivery WHERE audit_id = :id;

-- What monitoring sees: the conventions of Prometheus ---------------------------------------
SELECT DISTINCT name, kind FROM evidence.metrics ORDER BY 1;
SELECT count(*) AS unfit FROM evidence.metrics
 WHERE name !~ '^[a-z][a-z0-9_]*$' OR (kind = 'counter') <> (name ~ '_total$') OR jsonb_typeof(labels) <> 'object' OR value IS NULL OR help = '';
SELECT lane, (depth = 0) = (state = 'idle') AS depth_fits FROM evidence.queue_health WHERE lane <> 'shipping' ORDER BY lane;

ALTER SYSTEM RESET pg_evidence.ship;
SELECT pg_reload_conf() AS reloaded \gset
\c -
