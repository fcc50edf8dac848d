/*-------------------------------------------------------------------------
 *
 * job.c
 *	  The execution of an export: claim, lease, result, recovery.
 *
 * A claim is one statement: the attempt with its token, and the export and
 * the job that point to it.  The number of running exports is limited there
 * and not by the number of processes (requirement S1.35); a row of the table
 * guard is locked first and the running jobs are counted in a later
 * statement, since a count in the same statement would use the snapshot of
 * before the wait.  The rows are locked FOR NO KEY UPDATE: chunks that a
 * worker which stands still has not committed hold a key lock on the export,
 * and must not keep another worker from it (case C43).
 *
 * Every later statement of a worker joins its live attempt: not ended, and
 * with a lease that has not run out by the clock at that moment, read again
 * after a wait for a row that another session changed (case C44).  After a
 * wait for one that was only locked it is not; but whoever would take the
 * attempt over needs that same lock.  An attempt of run_once() has nobody to
 * renew its lease; it stays alive while its session holds the advisory lock.
 *
 * Attempts are counted when they begin, so a job that kills its worker every
 * time comes to an end too (case C42).  An attempt that is given back is
 * counted as a deferral instead.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "storage/lock.h"
#include "utils/timestamp.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/delivery.h"
#include "ledger/export.h"
#include "ledger/guard.h"
#include "ledger/job.h"
#include "ledger/statement.h"

/* The pause after the Nth failure: 5 s doubling to 5 min, with jitter. */
#define BACKOFF_SQL(attempts) \
	"least(300, 5 * power(2, greatest(" attempts " - 1, 0)))" \
	" * (0.75 + random() / 2) * interval '1 second'"

/* Alive by the clock now, or held by a session that runs run_once(). */
#define LIVE_SQL \
	"a.ended_at IS NULL AND" \
	" (a.kind = 'session' OR a.lease_until > evidence._now())"

/*
 * Key space of our session-level advisory locks: two numbers, "evid" and the
 * first 32 bits of the attempt's token.
 */
#define ADVISORY_CLASS 1702259044
#define ADVISORY_KEYS_SQL(token) \
	"1702259044, ('x' || left(" token "::text, 8))::bit(32)::integer"

static const char *attempt_kind_name(EvAttemptKind kind);
static void hold_attempt(EvClaim *claim);
static void set_advisory_tag(LOCKTAG *tag, const pg_uuid_t *token);
static void add_claim(EvParameters *p, const EvClaim *claim);
static EvVerdict verdict_of(const EvClaim *claim, bool done);
static bool find_dead_attempt(int64 boot_id, const pg_uuid_t *gone, int ngone,
							  pg_uuid_t *token, pg_uuid_t *export_id,
							  bool *other_life, bool *cancelled);
static void end_cancelled_attempt(const pg_uuid_t *token,
								  const pg_uuid_t *export_id);
static bool end_lost_attempt(const pg_uuid_t *token,
							 const pg_uuid_t *export_id, bool clean,
							 bool *failed);

int
ev_job_list_due(int64 *jobs, int places)
{
	static EvStatement due = {
		"SELECT j.id"
		"  FROM evidence.background_job AS j"
		"  JOIN evidence.audit_export AS e ON e.id = j.export_id"
		"  JOIN evidence.outbox_event AS o ON o.job_id = j.id"
		"   AND o.kind = 'audit_export.generate' AND o.state = 'DELIVERED'"
		"   AND o.generation = e.generation"
		" WHERE j.state = 'QUEUED' AND j.next_attempt_at <= $1"
		" ORDER BY j.next_attempt_at, j.id"
		" LIMIT greatest(0, $2 - (SELECT count(*)"
		"                           FROM evidence.background_job"
		"                          WHERE state = 'RUNNING'))"
	};
	EvParameters p = {0};
	int			count;
	int			i;

	ev_statements_begin();
	ev_add_time(&p, ev_clock_now());
	ev_add_int4(&p, places);
	count = (int) ev_statement_run(&due, &p);
	for (i = 0; i < count; i++)
		jobs[i] = ev_result_int8(i, 1);
	ev_statements_end();
	return count;
}

TimestampTz
ev_job_next_due(void)
{
	static EvStatement next = {
		"SELECT coalesce(min(at), 'infinity')"
		"  FROM (SELECT min(next_attempt_at) FROM evidence.background_job"
		"         WHERE state = 'QUEUED'"
		"        UNION ALL"
		"        SELECT min(next_attempt_at) FROM evidence.outbox_event"
		"         WHERE kind = 'audit_export.generate' AND state = 'PENDING'"
		"        UNION ALL"
		"        SELECT min(lease_until) FROM evidence.attempt"
		"         WHERE ended_at IS NULL) AS due (at)"
	};
	TimestampTz at;

	ev_statements_begin();
	(void) ev_statement_run(&next, NULL);
	at = ev_result_time(0, 1);
	ev_statements_end();
	return at;
}

static const char *
attempt_kind_name(EvAttemptKind kind)
{
	return kind == EV_ATTEMPT_EXPORTER ? "exporter" : "session";
}

bool
ev_job_claim(int64 job_id, EvAttemptKind kind, int64 boot_id, EvClaim *claim)
{
	static EvStatement claim_job = {
		"WITH candidate AS MATERIALIZED ("
		"  SELECT j.id, j.export_id, j.version, e.version AS export_version,"
		"         e.generation"
		"    FROM evidence.background_job AS j"
		"    JOIN evidence.audit_export AS e ON e.id = j.export_id"
		"    JOIN evidence.outbox_event AS o ON o.job_id = j.id"
		"     AND o.kind = 'audit_export.generate'"
		"     AND o.generation = e.generation AND o.state = 'DELIVERED'"
		"   WHERE j.state = 'QUEUED' AND e.state = 'QUEUED'"
		"     AND j.next_attempt_at <= $5 AND ($1 = 0 OR j.id = $1)"
		"     AND (SELECT count(*) FROM evidence.background_job"
		"           WHERE state = 'RUNNING') < $7"
		"   ORDER BY j.next_attempt_at, j.id"
		"   LIMIT 1"
		"     FOR NO KEY UPDATE OF j, e SKIP LOCKED"
		"), attempt AS ("
		"  INSERT INTO evidence.attempt (token, job_id, export_id, generation,"
		"         kind, boot_id, pid, started_at, lease_until)"
		"  SELECT $2, id, export_id, generation, $3, $4, pg_backend_pid(), $5,"
		"         $5 + $6 * interval '1 second'"
		"    FROM candidate"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = 'RUNNING', version = j.version + 1,"
		"         attempts = j.attempts + 1, attempt_token = $2,"
		"         started_at = $5"
		"    FROM candidate AS c"
		"   WHERE j.id = c.id AND j.state = 'QUEUED' AND j.version = c.version"
		"  RETURNING j.id, j.attempts"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = 'PROCESSING', version = e.version + 1,"
		"         attempt_token = $2"
		"    FROM candidate AS c"
		"   WHERE e.id = c.export_id AND e.state = 'QUEUED'"
		"     AND e.version = c.export_version"
		"  RETURNING e.id, e.version, e.generation"
		"), history AS ("
		"  INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"         to_state, version, actor, session_role, attempt, detail)"
		"  SELECT $5, export.id, 'claimed', 'QUEUED', 'PROCESSING',"
		"         export.version, current_user, session_user,"
		"         left($2::text, 8),"
		"         jsonb_build_object('job', job.id, 'attempt', job.attempts,"
		"                            'worker', $3)"
		"    FROM export, job"
		")"
		"SELECT job.id, export.id, export.generation, job.attempts"
		"  FROM export, job"
	};
	EvParameters p = {0};
	bool		claimed;

	if (!pg_strong_random(&claim->token, UUID_LEN))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random token")));
	claim->kind = kind;
	claim->held = false;
	ev_guard_lock_pool();

	if (kind == EV_ATTEMPT_SESSION)
		hold_attempt(claim);
	ev_statements_begin();
	ev_add_int8(&p, job_id);
	ev_add_uuid(&p, &claim->token);
	ev_add_text(&p, attempt_kind_name(kind));
	ev_add_int8(&p, boot_id);
	ev_add_time(&p, ev_clock_now());
	ev_add_int4(&p, ev_lease);
	/* run_once() works even where no background exporter is wanted. */
	ev_add_int4(&p, Max(ev_max_exporters,
						kind == EV_ATTEMPT_SESSION ? 1 : 0));
	claimed = ev_statement_run(&claim_job, &p) == 1;
	if (claimed)
	{
		claim->job_id = ev_result_int8(0, 1);
		(void) ev_result_uuid(0, 2, &claim->export_id);
		claim->generation = ev_result_int4(0, 3);
		claim->attempt = ev_result_int4(0, 4);
	}
	ev_statements_end();

	if (claimed)
		ev_export_check_combination(&claim->export_id);
	else
		ev_job_let_go(claim);
	return claimed;
}

/*
 * Show that this session works on the attempt, for as long as it lives.
 */
static void
hold_attempt(EvClaim *claim)
{
	LOCKTAG		tag;

	set_advisory_tag(&tag, &claim->token);
	(void) LockAcquire(&tag, ExclusiveLock, true, false);
	claim->held = true;
}

void
ev_job_let_go(EvClaim *claim)
{
	LOCKTAG		tag;

	if (!claim->held)
		return;
	set_advisory_tag(&tag, &claim->token);
	(void) LockRelease(&tag, ExclusiveLock, true);
	claim->held = false;
}

static void
set_advisory_tag(LOCKTAG *tag, const pg_uuid_t *token)
{
	uint32		key;

	memcpy(&key, token->data, sizeof(key));
	/* 2: a key of two numbers, as pg_advisory_lock(int, int) makes it. */
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, ADVISORY_CLASS, pg_ntoh32(key),
						 2);
}

/* $1 to $4 of every statement by which a worker changes something. */
static void
add_claim(EvParameters *p, const EvClaim *claim)
{
	ev_add_uuid(p, &claim->token);
	ev_add_uuid(p, &claim->export_id);
	ev_add_int4(p, claim->generation);
	ev_add_time(p, ev_clock_now());
}

/*
 * A statement of the attempt hit its row, or else: why not?
 */
static EvVerdict
verdict_of(const EvClaim *claim, bool done)
{
	EvExportStatus status;

	if (done)
		return EV_VERDICT_DONE;
	if (ev_export_load_status(&claim->export_id, false, &status) &&
		strcmp(status.state, "CANCELLED") == 0)
		return EV_VERDICT_CANCELLED;
	return EV_VERDICT_LOST;
}

EvVerdict
ev_job_check(const EvClaim *claim)
{
	static EvStatement check = {
		"SELECT 1"
		"  FROM evidence.attempt AS a"
		"  JOIN evidence.audit_export AS e ON e.id = a.export_id"
		" WHERE a.token = $1 AND " LIVE_SQL
		"   AND e.id = $2 AND e.generation = $3 AND e.attempt_token = $1"
		"   AND e.state = 'PROCESSING'"
	};
	EvParameters p = {0};
	bool		alive;

	ev_statements_begin();
	ev_add_uuid(&p, &claim->token);
	ev_add_uuid(&p, &claim->export_id);
	ev_add_int4(&p, claim->generation);
	alive = ev_statement_run_latest(&check, &p) == 1;
	ev_statements_end();
	return verdict_of(claim, alive);
}

EvVerdict
ev_job_complete(const EvClaim *claim, const EvArchiveFacts *facts)
{
	static EvStatement complete = {
		"WITH live AS MATERIALIZED ("
		"  SELECT a.token, a.job_id FROM evidence.attempt AS a"
		"   WHERE a.token = $1 AND " LIVE_SQL
		"     FOR UPDATE"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = $13, version = e.version + 1,"
		"         attempt_token = NULL, archive_token = $1,"
		"         record_count = $5, archive_bytes = $6, archive_chunks = $7,"
		"         archive_sha256 = $8, chunks_sha256 = $9,"
		"         records_bytes = $10, records_sha256 = $11,"
		"         staged_at = CASE WHEN $13 = 'STAGED' THEN $4 END,"
		"         ready_at = CASE WHEN $13 = 'READY' THEN $4 END,"
		"         expires_at = CASE WHEN $13 = 'READY'"
		"           THEN $4 + $12 * interval '1 second' END,"
		"         error_code = NULL, error_message = NULL, error_hint = NULL"
		"    FROM live"
		"   WHERE e.id = $2 AND e.state = 'PROCESSING'"
		"     AND e.attempt_token = $1 AND e.generation = $3"
		"  RETURNING e.id, e.version, live.job_id"
		"), upload AS ("
		"  INSERT INTO evidence.outbox_event (kind, export_id, job_id,"
		"         generation, state, next_attempt_at, created_at)"
		"  SELECT 'archive.upload', id, job_id, $3, 'PENDING', $4, $4"
		"    FROM export WHERE $13 = 'STAGED'"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = 'SUCCEEDED', version = j.version + 1,"
		"         attempt_token = NULL, error_code = NULL, finished_at = $4"
		"    FROM export"
		"   WHERE j.id = export.job_id AND j.state = 'RUNNING'"
		"     AND j.attempt_token = $1"
		"), attempt AS ("
		"  UPDATE evidence.attempt AS a"
		"     SET ended_at = $4, outcome = 'succeeded'"
		"    FROM export WHERE a.token = $1"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, attempt, detail)"
		"SELECT $4, id, lower($13), 'PROCESSING', $13, version, current_user,"
		"       session_user, left($1::text, 8),"
		"       jsonb_build_object('records', $5::bigint, 'bytes', $6::bigint,"
		"                          'sha256', $8::text)"
		"  FROM export"
	};
	bool		staged = ev_delivery == EV_DELIVERY_OBJECT_STORE;
	EvParameters p = {0};
	bool		done;

	ev_statements_begin();
	add_claim(&p, claim);
	ev_add_int8(&p, facts->record_count);
	ev_add_int8(&p, facts->archive_bytes);
	ev_add_int4(&p, facts->chunks);
	ev_add_text(&p, facts->archive_sha256);
	ev_add_text(&p, facts->chunks_sha256);
	ev_add_int8(&p, facts->records_bytes);
	ev_add_text(&p, facts->records_sha256);
	ev_add_int4(&p, ev_download_window);
	ev_add_text(&p, staged ? "STAGED" : "READY");
	done = ev_statement_run(&complete, &p) == 1;
	ev_statements_end();

	if (done)
	{
		ev_export_check_combination(&claim->export_id);
		if (staged)
			ev_delivery_announce();
	}
	return verdict_of(claim, done);
}

/*
 * One statement for all three classes: a definite failure and the last
 * transient one end in FAILED, everything else goes back to the queue.
 */
EvVerdict
ev_job_fail(const EvClaim *claim, const EvFailure *failure)
{
	static EvStatement fail = {
		"WITH live AS MATERIALIZED ("
		"  SELECT a.token, a.job_id,"
		"         $9 = 'definite' OR ($9 = 'transient' AND j.attempts >= $10)"
		"           AS final"
		"    FROM evidence.attempt AS a"
		"    JOIN evidence.background_job AS j ON j.id = a.job_id"
		"   WHERE a.token = $1 AND " LIVE_SQL
		"     FOR UPDATE OF a"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = CASE WHEN live.final THEN 'FAILED' ELSE 'QUEUED' END,"
		"         version = e.version + 1, attempt_token = NULL,"
		"         failed_at = CASE WHEN live.final THEN $4 END,"
		"         record_count = CASE WHEN $8 >= 0 THEN $8 END,"
		"         error_code = $5, error_message = $6, error_hint = $7"
		"    FROM live"
		"   WHERE e.id = $2 AND e.state = 'PROCESSING'"
		"     AND e.attempt_token = $1 AND e.generation = $3"
		"  RETURNING e.id, e.state, e.version, live.job_id, live.final"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = CASE WHEN export.final THEN 'FAILED' ELSE 'QUEUED' END,"
		"         version = j.version + 1, attempt_token = NULL,"
		"         attempts = j.attempts - ($9 = 'deferral')::int,"
		"         deferrals = j.deferrals + ($9 = 'deferral')::int,"
		"         error_code = $5,"
		"         finished_at = CASE WHEN export.final THEN $4 END,"
		"         next_attempt_at = $4 + CASE WHEN $9 = 'deferral'"
		"           THEN interval '1 second'"
		"           ELSE " BACKOFF_SQL("j.attempts") " END"
		"    FROM export"
		"   WHERE j.id = export.job_id AND j.state = 'RUNNING'"
		"     AND j.attempt_token = $1"
		"), attempt AS ("
		"  UPDATE evidence.attempt AS a"
		"     SET ended_at = $4, error_code = $5,"
		"         outcome = CASE WHEN $9 = 'deferral' THEN 'deferred'"
		"                        ELSE 'failed' END"
		"    FROM export WHERE a.token = $1"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, attempt, reason)"
		"SELECT $4, id,"
		"       CASE WHEN final THEN 'failed' WHEN $9 = 'deferral'"
		"            THEN 'deferred' ELSE 'retried' END,"
		"       'PROCESSING', state, version, current_user, session_user,"
		"       left($1::text, 8), $5"
		"  FROM export"
	};
	static const char *const class_names[] = {
		"definite", "transient", "deferral"
	};
	EvParameters p = {0};
	bool		done;

	ev_statements_begin();
	add_claim(&p, claim);
	ev_add_text(&p, failure->code);
	ev_add_text(&p, failure->message);
	ev_add_text(&p, failure->hint);
	ev_add_int8(&p, failure->record_count);
	ev_add_text(&p, class_names[failure->failure_class]);
	ev_add_int4(&p, ev_max_attempts);
	done = ev_statement_run(&fail, &p) == 1;
	ev_statements_end();

	if (done)
		ev_export_check_combination(&claim->export_id);
	return verdict_of(claim, done);
}

void
ev_job_stopped(const EvClaim *claim)
{
	ev_statements_begin();
	end_cancelled_attempt(&claim->token, &claim->export_id);
	ev_statements_end();
}

/*
 * A worker that is just committing its result has locked its attempt.  It is
 * left out, since one that stands still there must not stop the launcher and
 * with it the renewal of all others; and without a wait for a lock no lease
 * that ran out meanwhile is brought back to life (case C44).  A setting that
 * was lowered meanwhile does not shorten a lease that has been given.
 */
int64
ev_job_renew(const pg_uuid_t *tokens, int count)
{
	static EvStatement renew = {
		"WITH live AS MATERIALIZED ("
		"  SELECT a.token FROM evidence.attempt AS a"
		"   WHERE a.token = ANY ($1) AND " LIVE_SQL
		"     FOR NO KEY UPDATE SKIP LOCKED"
		")"
		"UPDATE evidence.attempt AS a"
		"   SET lease_until = greatest(a.lease_until,"
		"         evidence._now() + $2 * interval '1 second')"
		"  FROM live WHERE a.token = live.token"
	};
	EvParameters p = {0};
	int64		renewed;

	ev_statements_begin();
	ev_add_uuids(&p, tokens, count);
	ev_add_int4(&p, ev_lease);
	renewed = ev_statement_run(&renew, &p);
	ev_statements_end();
	return renewed;
}

bool
ev_job_recover_one(int64 boot_id, bool boot_clean, const pg_uuid_t *gone,
				   const bool *gone_clean, int ngone, EvRecovery *recovery)
{
	pg_uuid_t	token;
	pg_uuid_t	export_id;
	bool		other_life;
	bool		cancelled;
	bool		clean;
	bool		failed = false;
	int			i;

	ev_statements_begin();
	if (!find_dead_attempt(boot_id, gone, ngone, &token, &export_id,
						   &other_life, &cancelled))
	{
		ev_statements_end();
		return false;
	}

	clean = other_life && boot_clean;
	for (i = 0; i < ngone; i++)
	{
		if (memcmp(&gone[i], &token, UUID_LEN) == 0)
			clean = gone_clean[i];
	}

	recovery->lost++;
	if (cancelled)
	{
		end_cancelled_attempt(&token, &export_id);
		recovery->stopped++;
	}
	else if (end_lost_attempt(&token, &export_id, clean, &failed))
	{
		if (failed)
			recovery->failed++;
		else
			recovery->requeued++;
	}
	ev_statements_end();
	if (!cancelled)
		ev_export_check_combination(&export_id);
	return true;
}

/*
 * The lock of a session's attempt is tried in this transaction; holding it
 * until the end keeps the answer true.  Exports that somebody has locked, for
 * instance in a transaction that cancelled one and is still open, are left for
 * a later round, because the launcher must not wait.
 */
static bool
find_dead_attempt(int64 boot_id, const pg_uuid_t *gone, int ngone,
				  pg_uuid_t *token, pg_uuid_t *export_id, bool *other_life,
				  bool *cancelled)
{
	static EvStatement find = {
		"SELECT a.token, a.export_id,"
		"       a.boot_id <> $1,"
		"       e.attempt_token IS DISTINCT FROM a.token"
		"  FROM evidence.attempt AS a"
		"  JOIN evidence.audit_export AS e ON e.id = a.export_id"
		" WHERE a.ended_at IS NULL"
		"   AND CASE WHEN a.boot_id <> $1 OR a.token = ANY ($2) THEN true"
		"            WHEN a.lease_until > evidence._now() THEN false"
		"            WHEN a.kind = 'session' THEN pg_try_advisory_xact_lock("
		"                   " ADVISORY_KEYS_SQL("a.token") ")"
		"            ELSE true END"
		" LIMIT 1"
		"   FOR NO KEY UPDATE OF a, e SKIP LOCKED"
	};
	EvParameters p = {0};

	ev_add_int8(&p, boot_id);
	ev_add_uuids(&p, gone, ngone);
	if (ev_statement_run(&find, &p) != 1)
		return false;
	(void) ev_result_uuid(0, 1, token);
	(void) ev_result_uuid(0, 2, export_id);
	*other_life = ev_result_bool(0, 3);
	*cancelled = ev_result_bool(0, 4);
	return true;
}

bool
ev_job_is_open(const pg_uuid_t *token)
{
	static EvStatement find = {
		"SELECT 1 FROM evidence.attempt WHERE token = $1 AND ended_at IS NULL"
	};
	EvParameters p = {0};
	bool		open;

	ev_statements_begin();
	ev_add_uuid(&p, token);
	open = ev_statement_run(&find, &p) == 1;
	ev_statements_end();
	return open;
}

/*
 * The export no longer points to the attempt.  Only a cancellation leaves an
 * attempt behind like that; stopped_at is set once, and not by a worker whose
 * attempt had ended before, since another one may still be at work.
 */
static void
end_cancelled_attempt(const pg_uuid_t *token, const pg_uuid_t *export_id)
{
	static EvStatement stop = {
		"WITH attempt AS ("
		"  UPDATE evidence.attempt"
		"     SET ended_at = $3, outcome = 'cancelled'"
		"   WHERE token = $1 AND ended_at IS NULL"
		"  RETURNING token"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET stopped_at = $3"
		"    FROM attempt"
		"   WHERE e.id = $2 AND e.state = 'CANCELLED'"
		"     AND e.stopped_at IS NULL"
		"  RETURNING e.id, e.version"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, version,"
		"       actor, session_role, attempt)"
		"SELECT $3, id, 'stopped', version, current_user, session_user,"
		"       left($1::text, 8)"
		"  FROM export"
	};
	EvParameters p = {0};

	ev_add_uuid(&p, token);
	ev_add_uuid(&p, export_id);
	ev_add_time(&p, ev_clock_now());
	(void) ev_statement_run(&stop, &p);
}

/*
 * The worker is dead.  Its attempt counts, unless it was ended in an orderly
 * way; after the last one the job is FAILED, because the next worker would
 * probably die of it too.
 */
static bool
end_lost_attempt(const pg_uuid_t *token, const pg_uuid_t *export_id,
				 bool clean, bool *failed)
{
	static EvStatement lose = {
		"WITH attempt AS ("
		"  UPDATE evidence.attempt AS a"
		"     SET ended_at = $3,"
		"         outcome = CASE WHEN $4 THEN 'deferred' ELSE 'lost' END,"
		"         error_code = 'PE004'"
		"   WHERE a.token = $1"
		"  RETURNING a.job_id"
		"), fate AS ("
		"  SELECT j.id, NOT $4 AND j.attempts >= $5 AS final"
		"    FROM evidence.background_job AS j"
		"    JOIN attempt ON attempt.job_id = j.id"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = CASE WHEN fate.final THEN 'FAILED' ELSE 'QUEUED' END,"
		"         version = e.version + 1, attempt_token = NULL,"
		"         failed_at = CASE WHEN fate.final THEN $3 END,"
		"         error_code = 'PE004',"
		"         error_message = 'the worker ended without a result',"
		"         error_hint = CASE WHEN fate.final THEN"
		"           'Look into the server log for the reason why the workers of this export died, then request it again.'"
		"           END"
		"    FROM fate"
		"   WHERE e.id = $2 AND e.state = 'PROCESSING'"
		"     AND e.attempt_token = $1"
		"  RETURNING e.id, e.state, e.version, fate.id AS job_id, fate.final"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = CASE WHEN export.final THEN 'FAILED' ELSE 'QUEUED' END,"
		"         version = j.version + 1, attempt_token = NULL,"
		"         attempts = j.attempts - $4::int,"
		"         deferrals = j.deferrals + $4::int,"
		"         error_code = 'PE004',"
		"         finished_at = CASE WHEN export.final THEN $3 END,"
		"         next_attempt_at = $3 + CASE WHEN $4 OR j.attempts <= 1"
		"           THEN interval '0'"
		"           ELSE " BACKOFF_SQL("j.attempts - 1") " END"
		"    FROM export"
		"   WHERE j.id = export.job_id AND j.state = 'RUNNING'"
		"), history AS ("
		"  INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"         to_state, version, actor, session_role, attempt, reason)"
		"  SELECT $3, id,"
		"         CASE WHEN final THEN 'failed' WHEN $4 THEN 'deferred'"
		"              ELSE 'retried' END,"
		"         'PROCESSING', state, version, current_user, session_user,"
		"         left($1::text, 8), 'PE004'"
		"    FROM export"
		")"
		"SELECT final FROM export"
	};
	EvParameters p = {0};

	ev_add_uuid(&p, token);
	ev_add_uuid(&p, export_id);
	ev_add_time(&p, ev_clock_now());
	ev_add_bool(&p, clean);
	ev_add_int4(&p, ev_max_attempts);
	if (ev_statement_run(&lose, &p) != 1)
		return false;
	*failed = ev_result_bool(0, 1);
	return true;
}
