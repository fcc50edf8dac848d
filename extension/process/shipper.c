/*-------------------------------------------------------------------------
 *
 * shipper.c
 *	  The background worker that ships audit records.
 *
 * Started by the launcher while pg_evidence.ship is on.  It makes a pass every
 * ship_interval; nobody wakes it, since nothing depends on its speed (decision
 * S2.33).  As long as the sink cannot work it makes none, and says why in
 * queue_health and, once, in the log.  After a pass that the database failed
 * it waits longer each time, because such a pass may have shipped records
 * that it could not mark as sent, and would ship them again.
 *
 * SIGTERM and SIGINT end the pass after its batch; to be told to stop is no
 * error.  It also ends when shipping is switched off, when the extension is
 * dropped, and when the ledger turns out to be another cluster's; the launcher
 * starts another one when the time has come.
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
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "base/owner.h"
#include "base/pause.h"
#include "base/settings.h"
#include "ledger/tables.h"
#include "process/lane.h"
#include "process/periodic.h"
#include "process/ship_pass.h"
#include "process/shipper.h"

typedef struct Totals
{
	int64		shipped;
	int64		deferred;
	int64		stuck;
	int64		passes;
} Totals;

static void handle_sigterm(SIGNAL_ARGS);
static bool is_installed(void);
static void tell(const EvPass *before, const EvPass *pass);
static bool is_well(const EvPass *pass);
static long pause_after(const EvPass *pass, int failures);

/*
 * The work ends between two batches; but whoever waits within one, say for a
 * standby that does not answer, must be able to end.
 */
static void
handle_sigterm(SIGNAL_ARGS)
{
	ShutdownRequestPending = true;
	die(postgres_signal_arg);
}

void
ev_shipper_main(Datum main_arg)
{
	EvTransaction transaction = {0};
	EvPass		before = {0};
	EvPass		pass;
	EvRecorder *recorder;
	Totals		totals = {0};
	MemoryContext context;
	int			failures = 0;
	char	   *actor;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, handle_sigterm);
	pqsignal(SIGINT, StatementCancelHandler);
	if (!ev_periodic_connect(EV_LANE_SHIPPER, "pg_evidence shipper"))
		return;

	context = AllocSetContextCreate(TopMemoryContext, "pg_evidence shipper",
									ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	recorder = ev_recorder_create(context);
	actor = ev_periodic_role();
	before.sink = ev_sink_current()->name;
	ereport(LOG,
			(errmsg("pg_evidence shipper started: sink \"%s\"",
					before.sink)));
	while (!ShutdownRequestPending && ev_ship)
	{
		ev_ship_pass(&transaction, recorder, actor, &before, &pass);
		totals.shipped += pass.shipped;
		totals.deferred += pass.deferred;
		totals.stuck += pass.stuck;
		totals.passes++;
		if (pass.end == EV_PASS_FOREIGN ||
			((pass.end == EV_PASS_BUSY || pass.end == EV_PASS_FAILED) &&
			 !ShutdownRequestPending && !is_installed()))
			break;
		failures = pass.end == EV_PASS_FAILED ? failures + 1 : 0;
		tell(&before, &pass);
		before = pass;
		ev_periodic_wait(pause_after(&pass, failures));
	}
	ereport(LOG,
			(errmsg("pg_evidence shipper ends: " INT64_FORMAT " records shipped, " INT64_FORMAT " put off, " INT64_FORMAT " stuck in " INT64_FORMAT " passes",
					totals.shipped, totals.deferred, totals.stuck,
					totals.passes)));
	proc_exit(0);
}

static bool
is_installed(void)
{
	MemoryContext context = CurrentMemoryContext;
	bool		installed;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	installed = ev_tables_present();
	PopActiveSnapshot();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return installed;
}

/*
 * A setting that is in the way and something that is out of order are not the
 * same (S2.10), and each is told when it begins and when it ends.
 */
static void
tell(const EvPass *before, const EvPass *pass)
{
	bool		same = before->end == pass->end &&
	strcmp(before->reason, pass->reason) == 0 &&
	strcmp(before->sink, pass->sink) == 0;

	switch (pass->end)
	{
		case EV_PASS_DISABLED:
			ev_lane_set_state(EV_LANE_SHIPPER, EV_LANE_DISABLED, pass->reason);
			if (!same)
				ereport(LOG,
						(errmsg("sink \"%s\" is disabled: %s",
								pass->sink, pass->reason),
						 errhint("Audit records wait until the setting is changed.")));
			break;
		case EV_PASS_BROKEN:
			ev_lane_set_state(EV_LANE_SHIPPER, EV_LANE_BROKEN, pass->reason);
			if (!same)
				ereport(LOG,
						(errmsg("sink \"%s\" is out of order: %s",
								pass->sink, pass->reason),
						 errhint("Audit records wait until it works again.")));
			break;
		case EV_PASS_FAILED:
			ev_lane_set_state(EV_LANE_SHIPPER, EV_LANE_BROKEN, pass->reason);
			if (!same)
				ereport(LOG,
						(errmsg("audit records could not be shipped: %s",
								pass->reason),
						 errdetail("SQLSTATE %s.", pass->code)));
			break;
		default:
			ev_lane_set_state(EV_LANE_SHIPPER, EV_LANE_WORKS, NULL);
			if (!is_well(before) && is_well(pass))
				ereport(LOG,
						(errmsg("sink \"%s\" takes audit records again",
								pass->sink)));
			break;
	}
	if (pass->deferred > 0 && before->deferred == 0)
		ereport(LOG,
				(errmsg("sink \"%s\" refused " INT64_FORMAT " audit records",
						pass->sink, pass->deferred),
				 errdetail("Why stands in evidence.audit_delivery; they are tried again.")));
}

static bool
is_well(const EvPass *pass)
{
	return pass->end == EV_PASS_DONE || pass->end == EV_PASS_TIME;
}

static long
pause_after(const EvPass *pass, int failures)
{
	double		pause = ev_ship_interval;
	int			i;

	if (pass->end == EV_PASS_TIME)
		return 0;
	for (i = 1; i < failures && pause < ev_ship_backoff_max; i++)
		pause *= 2;
	return (long) Max(Min(pause, ev_ship_backoff_max), ev_ship_interval);
}
