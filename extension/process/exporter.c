/*-------------------------------------------------------------------------
 *
 * exporter.c
 *	  The background worker that makes packages, one after the other.
 *
 * Started by the launcher for one job, which it claims by itself.  If somebody
 * else was faster, or keeps the job's row locked, it takes the next one that
 * is due, so that no session can hold up the exports of others.  Then it waits
 * a while for another one, because to start a process costs as much as a small
 * package, and a request should not wait for it.  A reload of the settings
 * ends a worker that waits: the next one gets the new ones, its role among
 * them.  It is never restarted by the server: what is to be done stands in the
 * ledger, and the launcher starts another worker for it.
 *
 * SIGTERM ends it at the next interrupt, wherever it is.  SIGINT, sent by a
 * cancellation, interrupts the running statement; the job then asks the ledger
 * what happened.  At exit its slot in shared memory says that it is gone and
 * whether it had been asked to stop, and the launcher puts back what it left.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "base/owner.h"
#include "base/pause.h"
#include "process/exporter.h"
#include "process/run.h"
#include "process/shmem.h"

/* How long a worker waits for another job. */
#define LINGER_MS 30000

StaticAssertDecl(sizeof(EvExporterArguments) <= BGW_EXTRALEN,
				 "arguments must fit into the registration");

static volatile sig_atomic_t asked_to_stop = false;

static void handle_sigterm(SIGNAL_ARGS);
static int64 wait_for_job(bool wake_launcher);
static void leave_slot(int code, Datum arg);

bool
ev_exporter_start(const EvExporterArguments *arguments,
				  BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name),
			 "pg_evidence");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name),
			 "ev_exporter_main");
	snprintf(worker.bgw_name, BGW_MAXLEN,
			 "pg_evidence exporter in slot %d", arguments->slot);
	snprintf(worker.bgw_type, BGW_MAXLEN, "pg_evidence exporter");
	memcpy(worker.bgw_extra, arguments, sizeof(*arguments));
	worker.bgw_notify_pid = MyProcPid;
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

static void
handle_sigterm(SIGNAL_ARGS)
{
	asked_to_stop = true;
	die(postgres_signal_arg);
}

void
ev_exporter_main(Datum main_arg)
{
	EvExporterArguments arguments;
	int64		job_id;
	bool		claimed;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, handle_sigterm);
	pqsignal(SIGINT, StatementCancelHandler);
	BackgroundWorkerUnblockSignals();
	/* A reload between the fork and the handler has passed unnoticed. */
	ProcessConfigFile(PGC_SIGHUP);

	memcpy(&arguments, MyBgworkerEntry->bgw_extra, sizeof(arguments));
	before_shmem_exit(leave_slot, (Datum) 0);
	if (!ev_shmem_attach(arguments.slot, arguments.job_id))
		return;
	ev_pause_at("attached");

	ev_owner_pin_search_path();
	BackgroundWorkerInitializeConnectionByOid(arguments.database,
											  arguments.role, 0);
	SetConfigOption("application_name", "pg_evidence exporter", PGC_USERSET,
					PGC_S_SESSION);
	EV_LIFT_TRANSACTION_TIMEOUT();

	MemoryContextSwitchTo(AllocSetContextCreate(TopMemoryContext,
												"pg_evidence exporter",
												ALLOCSET_DEFAULT_SIZES));
	for (job_id = arguments.job_id; job_id != 0;
		 job_id = wait_for_job(claimed))
		claimed = ev_run_job(job_id, EV_ATTEMPT_EXPORTER) ||
			ev_run_job(0, EV_ATTEMPT_EXPORTER);
}

/*
 * Returns 0 when it is time to end.  After a job that could not be claimed,
 * the launcher is left to its own pace: somebody may hold the job's row for
 * long, and the two would chase each other.
 */
static int64
wait_for_job(bool wake_launcher)
{
	TimestampTz until;
	int64		job_id;

	if (ConfigReloadPending || !ev_shmem_idle(wake_launcher))
		return 0;
	pgstat_report_activity(STATE_IDLE, NULL);
	until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LINGER_MS);
	while ((job_id = ev_shmem_next_job()) == 0)
	{
		long		rest;

		rest = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until);
		if ((rest == 0 || ConfigReloadPending) && ev_shmem_leave_idle())
			return 0;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 rest, EV_WAIT_EVENT("EvidenceExporterIdle"));
		ResetLatch(MyLatch);
		QueryCancelPending = false;
		CHECK_FOR_INTERRUPTS();
	}
	/* A cancellation may have come after the end of its own export. */
	QueryCancelPending = false;
	return job_id;
}

static void
leave_slot(int code, Datum arg)
{
	ev_shmem_leave(asked_to_stop);
}
