-- 56_recovery.sql: what an operator does by hand after a failure, and what
-- tells how an export came to stand where it stands.

CREATE FUNCTION evidence.retry_audit_export(export_id uuid, reason text)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_retry_audit_export';
COMMENT ON FUNCTION evidence.retry_audit_export(uuid, text) IS
    'Opens a FAILED export again, with the same id and contract and the next generation, and returns QUEUED. Capability operator; the quota is the requester''s. Errors: 42501 unknown id; 53400 above pg_evidence.max_active_per_requester; 55000 not FAILED, recreated meanwhile, records of its range have been retired, or requested in an earlier incarnation (S3.26 to S3.28).';

CREATE FUNCTION evidence.recreate_audit_export(export_id uuid, reason text)
    RETURNS uuid
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_recreate_audit_export';
COMMENT ON FUNCTION evidence.recreate_audit_export(uuid, text) IS
    'Makes a new export with the whole contract of one that has ended (EXPIRED, REVOKED, CANCELLED or FAILED), requester and snapshot included, so records.csv is the same; returns its id. Capability operator; the quota is the requester''s. Errors: 42501 unknown id; 53400 above pg_evidence.max_active_per_requester; 55000 not ended, recreated already, records of its range have been retired, or requested in an earlier incarnation (S3.76).';

CREATE FUNCTION evidence.freeze_audit_export(export_id uuid, reason text)
    RETURNS void
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_freeze_audit_export';
COMMENT ON FUNCTION evidence.freeze_audit_export(uuid, text) IS
    'Stops every download of this export, those that were granted or have begun included, until unfreeze_audit_export(); its state, bytes and deadlines stay as they are. One that is frozen already stays so. Capability operator. Errors: 42501 unknown id (S3.26, S3.81, S3.95).';

CREATE FUNCTION evidence.unfreeze_audit_export(export_id uuid, reason text)
    RETURNS bigint
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_unfreeze_audit_export';
COMMENT ON FUNCTION evidence.unfreeze_audit_export(uuid, text) IS
    'Ends a freeze; returns how many other open findings stop the downloads all the same. Capability operator. Errors: 42501 unknown id; 55000 not frozen.';

CREATE FUNCTION evidence.fail_audit_export(export_id uuid, reason text)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_fail_audit_export';
COMMENT ON FUNCTION evidence.fail_audit_export(uuid, text) IS
    'Ends an unfinished export (QUEUED, PROCESSING or STAGED) so that it can be retried, and returns FAILED. Its worker or uploader can change nothing any more; bytes that it made are removed. Capability operator. Errors: 42501 unknown id; 55000 finished already (S3.26).';

CREATE FUNCTION evidence.fill_in_audit_export(
        export_id uuid, bucket text, object_key text, bytes bigint, sha256 text, reason text,
        object_version text DEFAULT NULL)
    RETURNS text
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_fill_in_audit_export';
COMMENT ON FUNCTION evidence.fill_in_audit_export(uuid, text, text, bigint, text, text, text) IS
    'Writes down where an archive lies that was sent and whose receipt was lost, after somebody has looked at the object: a STAGED export becomes READY, a READY one without bytes and key gets its key. Returns READY. Capability operator. Errors: 22023; 42501 unknown id; 55000 nothing is missing, it was never sent there, or an uploader is at work on it; PE006 the object is not the archive (S3.26).';

CREATE FUNCTION evidence.trace_audit_export(
        export_id uuid, OUT at timestamptz, OUT actor text, OUT event text, OUT detail jsonb)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_trace_audit_export';
COMMENT ON FUNCTION evidence.trace_audit_export(uuid) IS
    'Everything on record about an export in the order of time: contract, history, audit rows, promised work, attempts, archive, uploads and removals, grants, findings. A row "missing" names a link that must be there and is not. Capability requester for own, without audit rows and places in the object store; operator and auditor for any. Errors: 42501 unknown or foreign id (S3.106).';

CREATE FUNCTION evidence.trace_download(
        grant_id bigint, OUT at timestamptz, OUT actor text, OUT event text, OUT detail jsonb)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_trace_download';
COMMENT ON FUNCTION evidence.trace_download(bigint) IS
    'The way back from one download: its opening, audit row, grant and the subject''s capabilities, object, archive, attempt and contract, newest first. Capability operator or auditor. Errors: 22023; 42501 unknown grant (S3.106).';

CREATE FUNCTION evidence.audit_export_dossier(export_id uuid)
    RETURNS jsonb
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_audit_export_dossier';
COMMENT ON FUNCTION evidence.audit_export_dossier(uuid) IS
    'All rows of the ledger that belong to an export, for a person who must decide about it: contract, job, events, attempts, uploads, stored bytes, grants, findings, recreations, exports of the same request, history. Tokens are left out. Capability operator or auditor. Errors: 42501 unknown id (S3.99).';

-- What a person has to decide ----------------------------------------------

CREATE TABLE evidence.human_case (
    id           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    task         text NOT NULL CHECK (task ~ '\S'),
    owner        text NOT NULL CHECK (owner ~ '\S'),
    due_at       timestamptz NOT NULL,
    export_id    uuid,
    opened_at    timestamptz NOT NULL,
    opened_by    text NOT NULL,
    reason       text NOT NULL,
    rechecked_at timestamptz,
    closed_at    timestamptz,
    closed_by    text,
    resolution   text,
    CONSTRAINT human_case_closed CHECK (num_nulls(closed_at, closed_by, resolution) IN (0, 3))
);
CREATE INDEX human_case_open ON evidence.human_case (due_at) WHERE closed_at IS NULL;
COMMENT ON TABLE evidence.human_case IS
    'What a person has to decide, who, and until when (S3.98); see human_queue.';
COMMENT ON COLUMN evidence.human_case.id IS 'Number of the case.';
COMMENT ON COLUMN evidence.human_case.task IS 'What is to be decided.';
COMMENT ON COLUMN evidence.human_case.owner IS 'Who decides; a role or a name.';
COMMENT ON COLUMN evidence.human_case.due_at IS 'Until when.';
COMMENT ON COLUMN evidence.human_case.export_id IS 'The export it is about, if any.';
COMMENT ON COLUMN evidence.human_case.opened_at IS 'When it was opened.';
COMMENT ON COLUMN evidence.human_case.opened_by IS 'By whom.';
COMMENT ON COLUMN evidence.human_case.reason IS 'Why.';
COMMENT ON COLUMN evidence.human_case.rechecked_at IS 'When somebody last looked at it again.';
COMMENT ON COLUMN evidence.human_case.closed_at IS 'When it was decided.';
COMMENT ON COLUMN evidence.human_case.closed_by IS 'By whom.';
COMMENT ON COLUMN evidence.human_case.resolution IS 'What was decided.';

SELECT pg_catalog.pg_extension_config_dump('evidence.human_case', '');
SELECT pg_catalog.pg_extension_config_dump('evidence.human_case_id_seq', '');

CREATE VIEW evidence.human_queue WITH (security_barrier) AS
SELECT c.id AS case_id, c.export_id, c.task, c.owner, c.due_at, c.due_at <= evidence._now() AS overdue, c.opened_at, c.rechecked_at
  FROM evidence.human_case AS c
 WHERE c.closed_at IS NULL
UNION ALL
SELECT NULL, f.export_id, 'finding ' || f.rule || ' on ' || f.subject, NULL, NULL, true, f.found_at, NULL
  FROM evidence.finding AS f
 WHERE f.closed_at IS NULL AND f.severity = 'high'
   AND NOT EXISTS (SELECT FROM evidence.human_case AS c
                    WHERE c.export_id = f.export_id AND c.closed_at IS NULL);
COMMENT ON VIEW evidence.human_queue IS
    'What waits for a person: open cases, and findings of severity high that nobody has taken.';
COMMENT ON COLUMN evidence.human_queue.case_id IS 'Number of the case; NULL for a finding that has none.';
COMMENT ON COLUMN evidence.human_queue.export_id IS 'The export it is about, if any.';
COMMENT ON COLUMN evidence.human_queue.task IS 'What is to be decided.';
COMMENT ON COLUMN evidence.human_queue.owner IS 'Who decides; NULL: nobody yet.';
COMMENT ON COLUMN evidence.human_queue.due_at IS 'Until when.';
COMMENT ON COLUMN evidence.human_queue.overdue IS 'Is that over? True for what nobody has taken.';
COMMENT ON COLUMN evidence.human_queue.opened_at IS 'Since when it waits.';
COMMENT ON COLUMN evidence.human_queue.rechecked_at IS 'When somebody last looked at it again.';

CREATE FUNCTION evidence.open_human_case(
        task text, owner text, due_at timestamptz, reason text, export_id uuid DEFAULT NULL)
    RETURNS bigint
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_open_human_case';
COMMENT ON FUNCTION evidence.open_human_case(text, text, timestamptz, text, uuid) IS
    'Puts a case into the human queue, with an owner and the time until when it has to be decided; returns its number. Capability operator. Errors: 22023 nothing said, or a time that is over; 42501 unknown export (S3.98).';

CREATE FUNCTION evidence.recheck_human_case(case_id bigint, due_at timestamptz, reason text)
    RETURNS void
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_recheck_human_case';
COMMENT ON FUNCTION evidence.recheck_human_case(bigint, timestamptz, text) IS
    'Somebody has looked at the case again and gives it another time. Capability operator. Errors: 22023; 55000 no such open case (S3.98).';

CREATE FUNCTION evidence.close_human_case(case_id bigint, resolution text)
    RETURNS void
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_close_human_case';
COMMENT ON FUNCTION evidence.close_human_case(bigint, text) IS
    'The case has been decided, and how. Capability operator. Errors: 22023; 55000 no such open case.';

-- Has it recovered? -----------------------------------------------------------

CREATE FUNCTION evidence.duplicate_exports(
        OUT requested_by text, OUT request_digest text, OUT export_id uuid, OUT state text, OUT requested_at timestamptz,
        OUT records_sha256 text, OUT downloads bigint, OUT proposal text)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_duplicate_exports';
COMMENT ON FUNCTION evidence.duplicate_exports() IS
    'Exports in use that are the same request of the same requester, and what is proposed for each: keep, cancel, revoke (nobody has taken it), keep and notify (somebody has). It changes nothing. Capability operator or auditor (S3.91).';

CREATE FUNCTION evidence.recovery_report(
        since timestamptz, OUT kind text, OUT name text, OUT weight integer, OUT score numeric, OUT ok boolean,
        OUT detail text)
    RETURNS SETOF record
    LANGUAGE C VOLATILE PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'ev_sql_recovery_report';
COMMENT ON FUNCTION evidence.recovery_report(timestamptz) IS
    'Judges whether the ledger has recovered, watched since that time: hard gates (kind gate) over all exports and all stored bytes, a weighted score of 100, what is open, and the result: failed if a gate is shut, whatever the score; partial if something is open or unknown; else recovered. Reads every stored archive. Capability operator or auditor. Errors: 22023 (S3.107 to S3.110).';
