/*-------------------------------------------------------------------------
 *
 * periodic.c
 *	  The single workers that the launcher keeps running.
 *
 * Each has a lane in shared memory, which one process at most can hold.  So a
 * launcher that was started again, and knows of no worker, starts no second
 * one.  A worker that ends by itself is started again when the launcher next
 * looks, but not before RESTART_MS have passed since its last start.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "base/owner.h"
#include "base/settings.h"
#include "process/periodic.h"

#define RESTART_MS 2000

/* What the launcher tells it; copied into the registration. */
typedef struct PeriodicArguments
{
	Oid			database;
	Oid			role;
} PeriodicArguments;

StaticAssertDecl(sizeof(PeriodicArguments) <= BGW_EXTRALEN,
				 "arguments must fit into the registration");

typedef struct PeriodicWorker
{
	const char *name;
	const char *function;
	bool	   *enabled;		/* a setting */
} PeriodicWorker;

/* In the order of EvLane. */
static const PeriodicWorker workers[EV_LANES] = {
	{"pg_evidence shipper", "ev_shipper_main", &ev_ship}
};

/* The launcher's own memory of when it started each. */
static TimestampTz started_at[EV_LANES];

static bool is_wanted(int lane);
static void start(int lane, Oid role);

static bool
is_wanted(int lane)
{
	return *workers[lane].enabled && !ev_lane_taken(lane) &&
		TimestampDifferenceExceeds(started_at[lane], GetCurrentTimestamp(),
								   RESTART_MS);
}

bool
ev_periodic_wanted(void)
{
	int			lane;

	for (lane = 0; lane < EV_LANES; lane++)
	{
		if (is_wanted(lane))
			return true;
	}
	return false;
}

void
ev_periodic_start(Oid role)
{
	int			lane;

	for (lane = 0; lane < EV_LANES; lane++)
	{
		if (is_wanted(lane))
			start(lane, role);
	}
}

static void
start(int lane, Oid role)
{
	BackgroundWorker worker = {0};
	PeriodicArguments arguments = {0};

	arguments.database = MyDatabaseId;
	arguments.role = role;
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name),
			 "pg_evidence");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name),
			 "%s", workers[lane].function);
	snprintf(worker.bgw_name, BGW_MAXLEN, "%s", workers[lane].name);
	snprintf(worker.bgw_type, BGW_MAXLEN, "%s", workers[lane].name);
	memcpy(worker.bgw_extra, &arguments, sizeof(arguments));
	started_at[lane] = GetCurrentTimestamp();
	if (!RegisterDynamicBackgroundWorker(&worker, NULL))
		ereport(LOG,
				(errmsg("could not start \"%s\": no free background worker",
						workers[lane].name),
				 errhint("Raise max_worker_processes.")));
}

bool
ev_periodic_connect(EvLane lane, const char *name)
{
	PeriodicArguments arguments;

	BackgroundWorkerUnblockSignals();
	/* A reload between the fork and the handler has passed unnoticed. */
	ProcessConfigFile(PGC_SIGHUP);
	memcpy(&arguments, MyBgworkerEntry->bgw_extra, sizeof(arguments));
	if (!ev_lane_enter(lane))
		return false;

	ev_owner_pin_search_path();
	BackgroundWorkerInitializeConnectionByOid(arguments.database,
											  arguments.role, 0);
	SetConfigOption("application_name", name, PGC_USERSET, PGC_S_SESSION);
	EV_LIFT_TRANSACTION_TIMEOUT();
	return true;
}

char *
ev_periodic_role(void)
{
	MemoryContext context = CurrentMemoryContext;
	char	   *name;

	StartTransactionCommand();
	name = MemoryContextStrdup(context,
							   GetUserNameFromId(GetUserId(), false));
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return name;
}

/*
 * A worker waits for the time, or for being told to stop; a cancellation that
 * comes while it does nothing means nothing.
 */
void
ev_periodic_wait(long milliseconds)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													milliseconds);

	pgstat_report_activity(STATE_IDLE, NULL);
	for (;;)
	{
		long		rest;

		rest = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until);
		if (ShutdownRequestPending)
			return;
		QueryCancelPending = false;
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			return;
		}
		if (rest <= 0)
			return;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 rest, EV_WAIT_EVENT("EvidencePeriodic"));
		ResetLatch(MyLatch);
	}
}
