-- attack_calls.sql: every function, view and trigger of the extension, called
-- as somebody careful would who cannot trust his search path.
--
-- 085_attacks.pl runs it with and without traps and compares what it prints.
-- Variables: ready (an archive of the caller, or of somebody else where the
-- caller may request nothing), own (another one of his to revoke), foreign,
-- key (not used before).
\set VERBOSITY sqlstate
\set id 00000000-0000-0000-0000-000000000000
\set late 00000000-0000-0000-0000-000000000000
\set granted nothing
\set opened -1
\echo request
\warn request
SELECT evidence.request_audit_export('2026-01-01 00:00+00', '2026-01-02 00:00+00', 'attack', :'key', 'audit_log', '{"outcome": ["success"], "action": ["made.*", "x"], "tenant_id": "default"}', '{id,action,summary}') AS id \gset
SELECT id OPERATOR(pg_catalog.=) :'id'::pg_catalog.uuid, state, source, purpose, progress, rows_total, record_count, error_code,
       eta_low IS NULL, requested_by OPERATOR(pg_catalog.=) CURRENT_USER
  FROM evidence.audit_export_status WHERE id OPERATOR(pg_catalog.=) :'id'::pg_catalog.uuid;
SELECT evidence.request_audit_export('2026-01-01 00:00+00', '2026-01-02 00:00+00', 'attack', :'key', 'audit_log', '{"action": ["x", "made.*"], "outcome": "success", "tenant_id": ["default"]}', '{summary,action,id}')
       OPERATOR(pg_catalog.=) :'id'::pg_catalog.uuid AS the_same;
SELECT evidence.request_audit_export('2026-01-01 00:00+00', '2026-01-02 00:00+00', 'another', :'key');
SELECT evidence.request_audit_export('2026-01-01 00:00+00', '2026-03-02 00:00+00', 'too long');
\echo run
\warn run
CALL evidence.run_once();
SELECT state, record_count, attempt, progress FROM evidence.audit_export_status WHERE id OPERATOR(pg_catalog.=) :'id'::pg_catalog.uuid;
CALL evidence.ship_pass();
CALL evidence.ship_audit_records('2026-01-01 00:00+00', '2026-01-02 00:00+00');
\echo cancel
\warn cancel
SELECT evidence.request_audit_export('2026-01-01 00:00+00', '2026-01-02 00:00+00', 'to be cancelled') AS late \gset
SELECT evidence.cancel_audit_export(:'id', 'attack');
SELECT evidence.cancel_audit_export(:'late', 'attack');
SELECT evidence.cancel_audit_export(:'foreign', 'attack');
\echo download
\warn download
SELECT check_name, ok FROM evidence.verify_audit_export(:'ready');
SELECT evidence.grant_audit_export_download(:'ready', 'attack') AS granted \gset
SELECT (f).seq, pg_catalog.length((f).data) OPERATOR(pg_catalog.>) 500 AS long FROM (SELECT evidence.fetch_audit_export(:'granted') AS f) AS c;
SELECT seq, pg_catalog.substr(data, 1, 4) AS begin FROM evidence.fetch_audit_export(:'granted', 0, 1);
SELECT evidence.grant_audit_export_download(:'foreign') IS NULL;
SELECT evidence.fetch_audit_export('0000');
SELECT evidence.revoke_audit_export(:'own', 'attack');
SELECT evidence.revoke_audit_export(:'foreign', 'attack') OPERATOR(pg_catalog.=) 'nothing';
\echo deliver
\warn deliver
SELECT delivery_token, number FROM evidence.claim_delivery('attack', 'bucket', 'attack');
SELECT evidence.renew_delivery(:'id');
SELECT evidence.read_delivery_chunk(:'id', 0);
SELECT evidence.record_sending(:'id', 'attack');
SELECT evidence.confirm_delivery(:'id', 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa');
SELECT evidence.confirm_removal(:'id', true);
SELECT evidence.fail_delivery(:'id', 'transient', 'Attack', 'attack');
SELECT delivery, download_window OPERATOR(pg_catalog.>) 0 AS window, uploads_waiting, removals_waiting FROM evidence.delivery_status();
SELECT pg_catalog.count(*) FROM evidence.known_objects('bucket');
SELECT evidence.record_reconciliation('bucket', 'attack', '2026-01-01 00:00+00', 0, '[{"rule": "object_orphan", "key": "attack/a", "action": "clean"}]');
SELECT evidence.record_reconciliation('bucket', 'attack', '2026-01-01 00:00+00', 0, '[]');
SELECT bucket FROM evidence.locate_download(:'granted');
SELECT evidence.record_download(:'granted', 1, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa');
SELECT evidence.requeue_outbox_event(-1, 'attack');
\echo recover
\warn recover
SELECT evidence.retry_audit_export(:'own', 'attack');
SELECT evidence.cancel_audit_export(evidence.recreate_audit_export(:'own', 'attack'), 'attack') AS recreated;
SELECT evidence.freeze_audit_export(:'own', 'attack');
SELECT evidence.unfreeze_audit_export(:'own', 'attack');
SELECT evidence.fail_audit_export(:'own', 'attack');
SELECT evidence.fill_in_audit_export(:'own', 'bucket', 'key', 1, 'x', 'attack');
SELECT event FROM evidence.trace_audit_export(:'own');
SELECT event FROM evidence.trace_download(-1);
SELECT kind, name, weight FROM evidence.recovery_report('2026-01-01 00:00+00') WHERE kind OPERATOR(pg_catalog.=) 'gate';
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>=) 0 AS listed FROM evidence.duplicate_exports();
SELECT evidence.open_human_case('attack', 'mallory', '2999-01-01 00:00+00', 'attack') AS opened \gset
SELECT evidence.recheck_human_case(:opened, '2999-01-02 00:00+00', 'attack');
SELECT task, owner, due_at OPERATOR(pg_catalog.=) '2999-01-02 00:00+00'::pg_catalog.timestamptz AS postponed FROM evidence.human_queue WHERE case_id OPERATOR(pg_catalog.=) :opened;
SELECT evidence.close_human_case(:opened, 'attack');
SELECT pg_catalog.count(*) FROM evidence.human_case WHERE owner OPERATOR(pg_catalog.=) 'nobody';
SELECT evidence.audit_export_dossier(:'own') OPERATOR(pg_catalog.->) 'export' OPERATOR(pg_catalog.->>) 'state' AS state;
\echo write
\warn write
SELECT evidence.record_audit_event('attack.write', 'mallory', source => '192.0.2.1', metadata => '{"a": 1}') OPERATOR(pg_catalog.>) 0 AS written;
SELECT evidence.fingerprint('192.0.2.1');
SELECT evidence.evidence_version();
\echo rules
\warn rules
SELECT evidence.add_redaction_rule('trapped', 'zzz[0-9]{4}', 'attack', '{zzz}') OPERATOR(pg_catalog.>) 1 AS added;
SELECT evidence.retire_redaction_rule('trapped', 'attack') OPERATOR(pg_catalog.>) 1 AS retired;
\echo administer
\warn administer
SELECT evidence.adopt_instance('attack');
SELECT evidence.grant_capability('target', 'auditor');
SELECT evidence.revoke_capability('target', 'auditor');
\echo views
\warn views
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 0, pg_catalog.bool_and(state IS NOT NULL) FROM evidence.audit_export_status;
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 0 FROM evidence.export_event;
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 10 FROM evidence.redaction_rule;
SELECT pg_catalog.count(*) FROM evidence.state_move;
SELECT pg_catalog.count(*) FROM evidence.state_combination;
SELECT lane, reason FROM evidence.queue_health WHERE lane OPERATOR(pg_catalog.=) 'shipping';
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 10, pg_catalog.bool_and(value IS NOT NULL) FROM evidence.metrics;
SELECT pg_catalog.count(*) FROM evidence.audit_log WHERE tenant_id OPERATOR(pg_catalog.=) 'none';
SELECT pg_catalog.count(*) FROM evidence.capability WHERE role_name OPERATOR(pg_catalog.=) 'target';
\echo internal
\warn internal
SELECT evidence._now() IS NOT NULL;
SELECT evidence._state_known('export', 'READY');
SELECT pg_catalog.count(*) FROM evidence._state_moves();
SELECT pg_catalog.count(*) FROM evidence._state_combinations();
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 10 FROM evidence._builtin_rules();
SELECT evidence._sees('anna');
SELECT evidence._scrub('password=Qw8Er7Ty6Ui5');
SELECT rows_total FROM evidence._progress(:'ready');
SELECT enabled, is_foreign FROM evidence._shipping_status();
BEGIN;
SELECT evidence._begin_incarnation() IS NOT NULL;
ROLLBACK;
\echo triggers
\warn triggers
INSERT INTO evidence.audit_log (actor_id, action) VALUES ('mallory', 'attack.insert') RETURNING recorded_xid::pg_catalog.text OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id()::pg_catalog.text AS stamped;
UPDATE evidence.audit_log SET summary = 'attack' WHERE actor_id OPERATOR(pg_catalog.=) 'mallory';
UPDATE evidence.audit_export SET purpose = 'attack' WHERE id OPERATOR(pg_catalog.=) :'ready'::pg_catalog.uuid;
UPDATE evidence.audit_export SET state = 'QUEUED' WHERE id OPERATOR(pg_catalog.=) :'ready'::pg_catalog.uuid;
DELETE FROM evidence.background_job WHERE export_id OPERATOR(pg_catalog.=) :'ready'::pg_catalog.uuid;
UPDATE evidence.audit_delivery SET attempts = 1 WHERE audit_id OPERATOR(pg_catalog.=) -1;
DELETE FROM evidence.audit_delivery WHERE audit_id OPERATOR(pg_catalog.=) -1;
SELECT evidence._stamp_audit_row();
SELECT evidence._promise_shipping();
SELECT evidence._guard_delivery();
SELECT evidence._refuse_change();
SELECT evidence._guard_fact();
