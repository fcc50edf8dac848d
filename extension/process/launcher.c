/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The one process that starts, watches and recovers the others.
 *
 * A round: put back what dead workers left, deliver due outbox events, renew
 * the leases of workers that show signs of life, start an exporter for each
 * job that is due while there is a free place.  All of it in short
 * transactions that never wait for a lock; if somebody holds the tables the
 * round is left out.  A round that finds nothing to do writes nothing.
 *
 * It sleeps until the next thing is due, at most NAPTIME_MS, and is woken by
 * the commit of a request and by the start and end of a worker.  An error ends
 * the process; the server starts it again after RESTART_SECONDS.
 *
 * It serves the one database named by pg_evidence.database and waits there
 * for the extension to be created.  On a standby it is not started before the
 * promotion, and never by pg_upgrade.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/clock.h"
#include "base/compat.h"
#include "base/owner.h"
#include "base/pause.h"
#include "base/settings.h"
#include "ledger/instance.h"
#include "ledger/expiry.h"
#include "ledger/job.h"
#include "ledger/tables.h"
#include "process/exporter.h"
#include "process/housekeeping.h"
#include "process/launcher.h"
#include "process/periodic.h"
#include "process/shmem.h"

#define NAPTIME_MS 5000
#define BUSY_NAPTIME_MS 1000
#define RESTART_SECONDS 2

/* Why the launcher has nothing to do here; each is logged once. */
typedef enum LauncherState
{
	LAUNCHER_UNKNOWN,
	LAUNCHER_SERVES,
	LAUNCHER_NO_EXTENSION,
	LAUNCHER_FOREIGN
} LauncherState;

static LauncherState state = LAUNCHER_UNKNOWN;

/* What the launcher remembers about the worker in a slot. */
typedef struct WatchedWorker
{
	BackgroundWorkerHandle *handle;
	uint64		heartbeat;		/* the last one seen */
	TimestampTz moved_at;		/* when it was seen to move */
	uint64		renewed_heartbeat;	/* the one of the last renewal */
	TimestampTz renewed_at;
} WatchedWorker;

static WatchedWorker watched[EV_SLOTS];

static long run_round(EvTransaction *transaction);
static bool look_at_database(void);
static void change_state(LauncherState new_state);
static void watch_workers(EvTransaction *transaction);
static void renew_leases(EvTransaction *transaction,
						 const pg_uuid_t *tokens, int ntokens);
static void start_exporters(EvTransaction *transaction);
static void start_periodic(EvTransaction *transaction);
static void watch_anew(WatchedWorker *watch);
static bool start_exporter(const EvExporterArguments *arguments);
static Oid	worker_role(void);
static void free_unstarted_slots(void);
static long time_to_sleep(EvTransaction *transaction);

void
ev_launcher_register(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = RESTART_SECONDS;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name),
			 "pg_evidence");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name),
			 "ev_launcher_main");
	snprintf(worker.bgw_name, BGW_MAXLEN, "pg_evidence launcher");
	snprintf(worker.bgw_type, BGW_MAXLEN, "pg_evidence launcher");
	RegisterBackgroundWorker(&worker);
}

/*
 * SIGTERM must be ours before connecting: DROP DATABASE ... WITH (FORCE)
 * could not end a launcher that waits for the lock on the database otherwise.
 */
void
ev_launcher_main(Datum main_arg)
{
	EvTransaction transaction = {0};
	MemoryContext round_context;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	/* A reload between the fork and the handler has passed unnoticed. */
	ConfigReloadPending = true;
	ev_owner_pin_search_path();
	BackgroundWorkerInitializeConnection(ev_database, NULL, 0);
	SetConfigOption("application_name", "pg_evidence launcher", PGC_USERSET,
					PGC_S_SESSION);
	EV_LIFT_TRANSACTION_TIMEOUT();
	ev_shmem_set_launcher();

	ereport(LOG,
			(errmsg("pg_evidence launcher started for database \"%s\"",
					ev_database)));
	if (ev_clock_is_moved())
		ereport(WARNING,
				(errmsg("pg_evidence.clock_offset is not zero: no deadline means anything on this server")));

	round_context = AllocSetContextCreate(TopMemoryContext,
										  "pg_evidence launcher round",
										  ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		long		timeout;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		MemoryContextSwitchTo(round_context);
		timeout = run_round(&transaction);
		MemoryContextReset(round_context);

		pgstat_report_activity(STATE_IDLE, NULL);
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 timeout, EV_WAIT_EVENT("EvidenceLauncherMain"));
		ResetLatch(MyLatch);
	}
}

/*
 * Returns how long to sleep, in milliseconds.
 */
static long
run_round(EvTransaction *transaction)
{
	free_unstarted_slots();
	if (!look_at_database())
		return NAPTIME_MS;

	ev_pause_at("launcher-round");
	if (!ev_housekeeping(transaction))
		return BUSY_NAPTIME_MS;
	ev_pause_at("launcher-delivered");
	watch_workers(transaction);
	start_exporters(transaction);
	start_periodic(transaction);
	return time_to_sleep(transaction);
}

/*
 * The extension may come and go at any time, so this is asked in every round
 * and before anything of it is used.
 */
static bool
look_at_database(void)
{
	LauncherState found = LAUNCHER_NO_EXTENSION;
	MemoryContext context = CurrentMemoryContext;
	pg_uuid_t	incarnation;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (ev_tables_present())
	{
		EvOwner		owner;

		ev_owner_enter(&owner);
		/* While somebody holds the tables, things stay as they were. */
		if (!ev_tables_try_lock())
			found = state;
		else
			found = ev_instance_current(&incarnation) ?
				LAUNCHER_SERVES : LAUNCHER_FOREIGN;
		ev_owner_leave(&owner);
	}
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);

	change_state(found);
	return found == LAUNCHER_SERVES;
}

static void
change_state(LauncherState new_state)
{
	if (new_state == state)
		return;
	state = new_state;
	switch (new_state)
	{
		case LAUNCHER_SERVES:
			ereport(LOG,
					(errmsg("pg_evidence launcher serves database \"%s\"",
							ev_database)));
			break;
		case LAUNCHER_NO_EXTENSION:
			ereport(LOG,
					(errmsg("pg_evidence launcher waits: extension \"%s\" version %s is not installed in database \"%s\"",
							"pg_evidence", EV_VERSION, ev_database)));
			break;
		case LAUNCHER_FOREIGN:
			ereport(LOG,
					(errmsg("pg_evidence launcher waits: the evidence ledger in database \"%s\" belongs to another cluster",
							ev_database),
					 errhint("If this copy shall become a ledger of its own, run SELECT evidence.adopt_instance('<reason>').")));
			break;
		case LAUNCHER_UNKNOWN:
			break;
	}
}

/*
 * A worker whose heartbeat moves gets its lease renewed once a third of it has
 * passed.  One that has stood still for a whole lease is given up: it is told
 * to end, for the day it wakes up, and its place is free for another.  What
 * it may still try is refused by its token.
 */
static void
watch_workers(EvTransaction *transaction)
{
	EvLiveWorker workers[EV_SLOTS];
	pg_uuid_t	tokens[EV_SLOTS];
	TimestampTz now = GetCurrentTimestamp();
	int			nworkers = ev_shmem_live_workers(workers);
	int			ntokens = 0;
	int			i;

	for (i = 0; i < nworkers; i++)
	{
		WatchedWorker *watch = &watched[workers[i].slot];

		/* A launcher that has just been started again knows of no time. */
		if (watch->moved_at == 0 || watch->heartbeat != workers[i].heartbeat)
		{
			watch->heartbeat = workers[i].heartbeat;
			watch->moved_at = now;
		}
		else if (TimestampDifferenceExceeds(watch->moved_at, now,
											ev_lease * 1000))
		{
			ereport(LOG,
					(errmsg("pg_evidence exporter in slot %d stands still and is given up",
							workers[i].slot)));
			ev_shmem_abandon(workers[i].slot);
			if (watch->handle != NULL)
				TerminateBackgroundWorker(watch->handle);
			continue;
		}

		if (workers[i].has_attempt &&
			watch->heartbeat != watch->renewed_heartbeat &&
			TimestampDifferenceExceeds(watch->renewed_at, now,
									   ev_lease * 1000 / 3))
		{
			watch->renewed_heartbeat = watch->heartbeat;
			watch->renewed_at = now;
			tokens[ntokens++] = workers[i].token;
		}
	}
	if (ntokens > 0)
		renew_leases(transaction, tokens, ntokens);
}

static void
renew_leases(EvTransaction *transaction, const pg_uuid_t *tokens, int ntokens)
{
	ev_transaction_begin(transaction, EV_TRANSACTION_WRITE);
	if (ev_tables_try_lock())
		(void) ev_job_renew(tokens, ntokens);
	ev_pause_at("renewing");
	ev_transaction_commit(transaction);
	ev_pause_at("renewed");
}

/*
 * The limit that counts is kept by the claim.  Here it only avoids starting
 * processes that would find no place.
 */
static void
start_exporters(EvTransaction *transaction)
{
	int64		jobs[EV_MAX_EXPORTERS];
	EvExporterArguments arguments = {0};
	int			njobs;
	int			room = ev_max_exporters - ev_shmem_count_busy();
	int			i;

	if (room <= 0)
		return;
	ev_transaction_begin(transaction, EV_TRANSACTION_WRITE);
	njobs = ev_tables_try_lock() ?
		ev_job_list_due(jobs, ev_max_exporters) : 0;
	if (njobs > 0)
	{
		arguments.database = MyDatabaseId;
		arguments.role = worker_role();
	}
	ev_transaction_commit(transaction);

	for (i = 0; i < njobs && room > 0; i++)
	{
		if (ev_shmem_has_job(jobs[i]))
			continue;
		arguments.job_id = jobs[i];
		arguments.slot = ev_shmem_hand_over(jobs[i]);
		if (arguments.slot >= 0)
		{
			watch_anew(&watched[arguments.slot]);
			ev_pause_at("handed-over");
		}
		else
		{
			arguments.slot = ev_shmem_reserve(jobs[i]);
			ev_pause_at("starting");
			if (arguments.slot < 0 || !start_exporter(&arguments))
				return;
			ev_pause_at("started");
		}
		room--;
	}
}

/*
 * The handle stays: it is of the process, not of its job.
 */
static void
watch_anew(WatchedWorker *watch)
{
	watch->heartbeat = watch->renewed_heartbeat = 0;
	watch->moved_at = watch->renewed_at = GetCurrentTimestamp();
}

/*
 * The handle lives as long as the slot is watched, not just for this round.
 */
static bool
start_exporter(const EvExporterArguments *arguments)
{
	WatchedWorker *watch = &watched[arguments->slot];
	MemoryContext old;
	bool		started;

	if (watch->handle != NULL)
		pfree(watch->handle);
	watch->handle = NULL;
	watch_anew(watch);

	old = MemoryContextSwitchTo(TopMemoryContext);
	started = ev_exporter_start(arguments, &watch->handle);
	MemoryContextSwitchTo(old);
	if (!started)
	{
		ev_shmem_free(arguments->slot);
		ereport(LOG,
				(errmsg("could not start an exporter: no free background worker"),
				 errhint("Raise max_worker_processes.")));
	}
	return started;
}

static void
start_periodic(EvTransaction *transaction)
{
	Oid			role;

	if (!ev_periodic_wanted())
		return;
	ev_transaction_begin(transaction, EV_TRANSACTION_WRITE);
	role = worker_role();
	ev_transaction_commit(transaction);
	ev_periodic_start(role);
}

static Oid
worker_role(void)
{
	if (ev_worker_role == NULL || ev_worker_role[0] == '\0')
		return ev_owner_oid();
	return get_role_oid(ev_worker_role, false);
}

/*
 * A worker that could not even connect leaves its slot reserved.  After a
 * restart of the launcher the handles are gone; then a reserved slot is freed
 * too, and a worker that comes late finds that it is not its own any more.
 */
static void
free_unstarted_slots(void)
{
	int			i;

	for (i = 0; i < EV_SLOTS; i++)
	{
		pid_t		pid;

		if (ev_shmem_is_reserved(i) &&
			(watched[i].handle == NULL ||
			 GetBackgroundWorkerPid(watched[i].handle,
									&pid) == BGWH_STOPPED))
			ev_shmem_free(i);
	}
}

static long
time_to_sleep(EvTransaction *transaction)
{
	TimestampTz due;
	long		sleep = NAPTIME_MS;
	long		until;

	if (ev_shmem_count_busy() > 0)
		sleep = Min(BUSY_NAPTIME_MS, ev_lease * 1000 / 4);

	ev_transaction_begin(transaction, EV_TRANSACTION_WRITE);
	due = DT_NOEND;
	if (ev_tables_try_lock())
		due = Min(ev_job_next_due(), ev_expiry_next());
	ev_transaction_commit(transaction);
	if (due == DT_NOEND)
		return sleep;

	/* What is due already, and was not done, waits for a place or a lock. */
	until = TimestampDifferenceMilliseconds(ev_clock_now(), due);
	return Min(sleep, until > 0 ? until : BUSY_NAPTIME_MS);
}
