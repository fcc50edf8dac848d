/*-------------------------------------------------------------------------
 *
 * run.c
 *	  Carry out one job, from the claim to READY.
 *
 * A job is five steps, each in a transaction of its own or in none, so that
 * the process can die between any two of them and the ledger still says what
 * is to be done:
 *
 *	claim	 attempt, token and lease are committed; the export is PROCESSING
 *	prepare	 the contract is loaded and the right to carry it out looked up
 *			 again; what is wrong here is a failure of the attempt
 *	read	 REPEATABLE READ, READ ONLY: count, read, format, redact, hash and
 *			 compress into a temporary file; writes nothing
 *	assemble the archive, in that file; no snapshot is held
 *	stage	 the chunks and the move to READY, fenced by the token; all or
 *			 nothing
 *
 * An error ends the step's transaction and is recorded in a new one, fenced
 * by the token as well.  A worker that finds its export cancelled or its lease
 * lost touches nothing more.  Used by the exporter and by run_once().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "base/errors.h"
#include "base/pause.h"
#include "base/settings.h"
#include "ledger/capability.h"
#include "ledger/instance.h"
#include "ledger/tables.h"
#include "process/failure.h"
#include "process/producer.h"
#include "process/run.h"
#include "process/shmem.h"
#include "process/store.h"

/* How often, at most, a safe point looks at more than a flag. */
#define SAFE_POINT_MS 50

/* How often a worker looks whether the ledger's tables are free again. */
#define TABLES_POLL_MS 20

typedef struct Run
{
	MemoryContext context;		/* lives as long as the job */
	EvTransaction transaction;
	EvClaim		claim;
	char	   *name;			/* the export's id */
	EvContract	contract;
	EvProducer *producer;
	EvTempFile *spool;
	int64		archive_start;	/* in spool */
	EvArchiveFacts facts;
	bool		claimed;		/* the claim is committed */
	bool		ready;			/* so is the move to READY */
	TimestampTz last_look;
} Run;

static void settle(Run *run, ErrorData *error, EvVerdict verdict);
static void begin_writing(Run *run);
static bool claim_job(Run *run, int64 job_id, EvAttemptKind kind);
static void prepare(Run *run);
static void check_requester(const char *requested_by);
static void read_rows(Run *run);
static void at_safe_point(void *arg, int64 rows_total, int64 rows_done,
						  int64 bytes_done);
static void look_around(Run *run);
static void assemble(Run *run);
static EvVerdict stage(Run *run);
static EvVerdict record_failure(Run *run, ErrorData *error);
static void finish(Run *run, EvVerdict verdict);
static void report(Run *run, const char *step);

bool
ev_run_job(int64 job_id, EvAttemptKind kind)
{
	Run		   *run;
	MemoryContext old;
	MemoryContext context;
	bool		claimed;
	ErrorData  *volatile error = NULL;
	EvVerdict volatile verdict = EV_VERDICT_LOST;

	context = AllocSetContextCreate(CurrentMemoryContext, "pg_evidence job",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	run = palloc0(sizeof(Run));
	run->context = context;
	run->transaction.session = kind == EV_ATTEMPT_SESSION;

	PG_TRY();
	{
		if (claim_job(run, job_id, kind))
		{
			ev_pause_at("claimed");
			prepare(run);
			read_rows(run);
			ev_pause_at("read");
			assemble(run);
			ev_pause_at("assembled");
			verdict = stage(run);
		}
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		ev_transaction_abort(&run->transaction);
	}
	PG_END_TRY();

	/* Without a claim there is no attempt that could be recorded as failed. */
	if (error != NULL && !run->claimed)
	{
		ev_job_let_go(&run->claim);
		ReThrowError(error);
	}
	claimed = run->claimed;
	if (claimed)
		settle(run, error, verdict);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return claimed;
}

/*
 * Say in the ledger how the attempt ended.  A session's lock on it would
 * outlive even an error in here, so it is let go in any case.
 */
static void
settle(Run *run, ErrorData *error, EvVerdict verdict)
{
	PG_TRY();
	{
		finish(run, error ? record_failure(run, error) : verdict);
	}
	PG_CATCH();
	{
		ev_job_let_go(&run->claim);
		PG_RE_THROW();
	}
	PG_END_TRY();
	ev_job_let_go(&run->claim);
}

/*
 * Begin a transaction that holds the locks on all tables it will use.  While
 * somebody has a conflicting one, wait without holding any.
 */
static void
begin_writing(Run *run)
{
	for (;;)
	{
		ev_transaction_begin(&run->transaction, EV_TRANSACTION_WRITE);
		if (ev_tables_try_lock())
			return;
		if (!ev_tables_present())
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("extension \"%s\" was dropped or is of another version than the library",
							"pg_evidence")));
		ev_transaction_commit(&run->transaction);

		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 TABLES_POLL_MS, EV_WAIT_EVENT("EvidenceTables"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

static bool
claim_job(Run *run, int64 job_id, EvAttemptKind kind)
{
	pg_uuid_t	incarnation;
	bool		claimed;

	ev_pause_at("claim");
	begin_writing(run);
	report(run, "claim a job");
	ev_instance_require(&incarnation);
	claimed = ev_job_claim(job_id, kind, ev_shmem_boot_id(), &run->claim);
	if (claimed)
	{
		run->name = ev_export_id_text(&run->claim.export_id);
		ev_shmem_begin_attempt(run->claim.job_id, &run->claim.token,
							   &run->claim.export_id);
	}
	ev_pause_at("claiming");
	ev_transaction_commit(&run->transaction);
	run->claimed = claimed;
	return claimed;
}

/*
 * All that the reading transaction needs to know is read here, so that that
 * one touches no table but the log.
 */
static void
prepare(Run *run)
{
	pg_uuid_t	incarnation;

	begin_writing(run);
	if (!ev_export_load_contract(&run->claim.export_id, &run->contract))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("audit source of the export does not exist any more")));
	ev_instance_require(&incarnation);
	if (memcmp(&run->contract.incarnation, &incarnation, UUID_LEN) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("export belongs to another incarnation of the ledger"),
				 errhint("Request it again.")));
	check_requester(run->contract.requested_by);
	run->spool = ev_tempfile_create(run->context);
	run->producer = ev_producer_create(&run->contract, run->spool,
									   run->context);
	ev_transaction_commit(&run->transaction);
	ev_pause_at("prepared");
}

/*
 * A right that was taken back between request and run counts (case C63).  A
 * requester who is gone altogether does not stop the export: it must still
 * finish, expire and be audited (requirement S1.62).
 */
static void
check_requester(const char *requested_by)
{
	Oid			role = get_role_oid(requested_by, true);

	if (OidIsValid(role) &&
		(ev_capabilities_of(role) & (EV_REQUESTER | EV_OPERATOR)) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\" may no longer export records",
						requested_by),
				 errhint("The capability was taken back after the request.")));
}

static void
read_rows(Run *run)
{
	ev_transaction_begin(&run->transaction, EV_TRANSACTION_SNAPSHOT);
	report(run, psprintf("read export %s", run->name));
	ev_producer_read(run->producer, ev_max_records, at_safe_point, run);
	ev_producer_write_manifest(run->producer, run->claim.generation);
	ev_transaction_commit(&run->transaction);
}

/*
 * Raising an error is the way to stop: it ends the transaction, and what it
 * means is decided by the ledger afterwards.
 */
static void
at_safe_point(void *arg, int64 rows_total, int64 rows_done, int64 bytes_done)
{
	Run		   *run = arg;
	TimestampTz now;

	if (ev_shmem_heartbeat(rows_total, rows_done, bytes_done))
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("export was cancelled")));
	ev_pause_at("reading");
	if (rows_total >= 0)
		ev_pause_at("counted");
	if (rows_done > 0)
		ev_pause_at("half-read");

	now = GetCurrentTimestamp();
	if (TimestampDifferenceExceeds(run->last_look, now, SAFE_POINT_MS))
	{
		run->last_look = now;
		look_around(run);
	}
}

/*
 * Make way for a session that waits for the log's table, for instance to drop
 * the extension.  A session that runs run_once() has no slot in shared memory
 * through which it could be told of a cancellation, so it asks the ledger.
 */
static void
look_around(Run *run)
{
	if (ev_tables_in_the_way(run->contract.table_name))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("export makes way for a session that waits for table \"%s\"",
						run->contract.table_name)));

	if (run->transaction.session)
	{
		switch (ev_job_check(&run->claim))
		{
			case EV_VERDICT_DONE:
				break;
			case EV_VERDICT_CANCELLED:
				ereport(ERROR,
						(errcode(ERRCODE_QUERY_CANCELED),
						 errmsg("export was cancelled")));
				break;
			case EV_VERDICT_LOST:
				ereport(ERROR,
						(errcode(EV_ERRCODE_LOST_LEASE),
						 errmsg("attempt lost its lease")));
				break;
		}
	}
}

static void
assemble(Run *run)
{
	const EvRecords *records = ev_producer_records(run->producer);

	run->facts.record_count = ev_producer_count(run->producer);
	run->facts.records_bytes = (int64) records->bytes;
	memcpy(run->facts.records_sha256, records->sha256, EV_SHA256_HEX);

	ev_producer_write_archive(run->producer, &run->archive_start,
							  &run->facts.archive_bytes);
	(void) ev_shmem_heartbeat(run->facts.record_count,
							  run->facts.record_count,
							  run->facts.archive_bytes);
}

static EvVerdict
stage(Run *run)
{
	EvVerdict	verdict;

	begin_writing(run);
	report(run, psprintf("store export %s", run->name));
	ev_store_archive(&run->claim, run->spool, run->archive_start,
					 &run->facts);
	ev_pause_at("stored");
	verdict = ev_job_complete(&run->claim, &run->facts);
	ev_pause_at("completed");
	if (verdict == EV_VERDICT_DONE)
		ev_transaction_commit(&run->transaction);
	else
		ev_transaction_abort(&run->transaction);
	run->ready = verdict == EV_VERDICT_DONE;
	ev_pause_at("ready");
	return verdict;
}

/*
 * Only an attempt that still owns the export can record its failure; for any
 * other, the error was a consequence of having lost it.
 */
static EvVerdict
record_failure(Run *run, ErrorData *error)
{
	EvFailure	failure = {0};
	EvVerdict	verdict;

	/* Who cancelled waits for the end, and it needs no reason. */
	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
	{
		begin_writing(run);
		verdict = ev_job_check(&run->claim);
		ev_transaction_commit(&run->transaction);
		if (verdict == EV_VERDICT_CANCELLED)
			return verdict;
	}

	failure.failure_class = ev_failure_classify(error->sqlerrcode);
	failure.code = pstrdup(unpack_sql_state(error->sqlerrcode));
	failure.message = ev_failure_text(error->message);
	failure.hint = error->hint ? ev_failure_text(error->hint) : NULL;
	failure.record_count = -1;
	if (error->sqlerrcode == EV_ERRCODE_TOO_MANY_ROWS && run->producer != NULL)
		failure.record_count = ev_producer_count(run->producer);

	begin_writing(run);
	verdict = ev_job_fail(&run->claim, &failure);
	ev_pause_at("failing");
	ev_transaction_commit(&run->transaction);
	ev_pause_at("failed");

	if (verdict == EV_VERDICT_DONE)
		ereport(WARNING,
				(errcode(error->sqlerrcode),
				 errmsg("attempt %d of export %s failed: %s",
						run->claim.attempt, run->name,
						failure.message)));
	else if (verdict == EV_VERDICT_LOST)
		ereport(WARNING,
				(errcode(error->sqlerrcode),
				 errmsg("attempt %d of export %s had lost its lease when it failed: %s",
						run->claim.attempt, run->name, failure.message)));
	return verdict;
}

static void
finish(Run *run, EvVerdict verdict)
{
	if (verdict == EV_VERDICT_CANCELLED)
	{
		begin_writing(run);
		ev_job_stopped(&run->claim);
		ev_pause_at("stopping");
		ev_transaction_commit(&run->transaction);
		ev_pause_at("stopped");
	}
	ev_shmem_end_attempt();

	if (verdict == EV_VERDICT_CANCELLED)
		ereport(LOG,
				(errmsg("attempt %d of export %s stopped: the export was cancelled",
						run->claim.attempt, run->name)));
	else if (verdict == EV_VERDICT_LOST)
		ereport(LOG,
				(errmsg("attempt %d of export %s stopped: it lost its lease",
						run->claim.attempt, run->name)));
	else if (run->ready)
		ereport(LOG,
				(errmsg("export %s is ready: " INT64_FORMAT " records, " INT64_FORMAT " bytes",
						run->name, run->facts.record_count,
						run->facts.archive_bytes)));
}

/*
 * A session goes on showing the statement that its user sent.
 */
static void
report(Run *run, const char *step)
{
	if (!run->transaction.session)
		pgstat_report_activity(STATE_RUNNING,
							   psprintf("pg_evidence: %s", step));
}
