/*-------------------------------------------------------------------------
 *
 * exporter.c
 *	  The background worker that makes one package.
 *
 * Started by the launcher for one job, which it claims by itself; if somebody
 * else was faster, it ends.  It is never restarted by the server: what is to
 * be done stands in the ledger, and the launcher starts another worker for
 * it.
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

#include "process/exporter.h"
#include "process/run.h"
#include "process/shmem.h"

StaticAssertDecl(sizeof(EvExporterArguments) <= BGW_EXTRALEN,
				 "arguments must fit into the registration");

static volatile sig_atomic_t asked_to_stop = false;

static void handle_sigterm(SIGNAL_ARGS);
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
			 "pg_evidence exporter for job " INT64_FORMAT,
			 arguments->job_id);
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

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, handle_sigterm);
	pqsignal(SIGINT, StatementCancelHandler);
	BackgroundWorkerUnblockSignals();

	memcpy(&arguments, MyBgworkerEntry->bgw_extra, sizeof(arguments));
	before_shmem_exit(leave_slot, (Datum) 0);
	if (!ev_shmem_attach(arguments.slot, arguments.job_id))
		return;

	BackgroundWorkerInitializeConnectionByOid(arguments.database,
											  arguments.role, 0);
	SetConfigOption("application_name", "pg_evidence exporter", PGC_USERSET,
					PGC_S_SESSION);

	MemoryContextSwitchTo(AllocSetContextCreate(TopMemoryContext,
												"pg_evidence exporter",
												ALLOCSET_DEFAULT_SIZES));
	(void) ev_run_job(arguments.job_id, EV_ATTEMPT_EXPORTER);
}

static void
leave_slot(int code, Datum arg)
{
	ev_shmem_leave(asked_to_stop);
}
