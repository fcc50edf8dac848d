/*-------------------------------------------------------------------------
 *
 * wakeup.c
 *	  Tell the processes what a transaction has done, once it is committed.
 *
 * A signal sent earlier would make the launcher look before there is anything
 * to see.  One that gets lost costs a few seconds at most, because the
 * launcher also looks by itself; nothing rests on it.
 *
 * A savepoint that is rolled back after the request leaves a wake-up for
 * nothing, which is harmless, so subtransactions are not tracked.  For a
 * cancellation the worker looks into the ledger before it believes it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "base/pause.h"
#include "process/shmem.h"
#include "process/wakeup.h"

static bool registered = false;
static bool wake_launcher = false;
static List *cancelled = NIL;	/* of pg_uuid_t, in TopTransactionContext */

static void register_once(void);
static void at_end_of_transaction(XactEvent event, void *arg);

void
ev_wakeup_at_commit(void)
{
	register_once();
	wake_launcher = true;
}

void
ev_cancel_at_commit(const pg_uuid_t *export_id)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	pg_uuid_t  *copy = palloc(sizeof(pg_uuid_t));

	*copy = *export_id;
	cancelled = lappend(cancelled, copy);
	MemoryContextSwitchTo(old);
	ev_wakeup_at_commit();
}

static void
register_once(void)
{
	if (!registered)
		RegisterXactCallback(at_end_of_transaction, NULL);
	registered = true;
}

/*
 * Runs while the transaction's memory is still there.  A PREPAREd transaction
 * is committed by somebody else later; the launcher finds its rows by itself.
 */
static void
at_end_of_transaction(XactEvent event, void *arg)
{
	ListCell   *cell;

	if (event == XACT_EVENT_COMMIT)
	{
		if (cancelled != NIL)
			ev_pause_at("telling");
		foreach(cell, cancelled)
			ev_shmem_cancel((pg_uuid_t *) lfirst(cell));
		if (wake_launcher)
		{
			ev_pause_at("waking");
			ev_shmem_wake_launcher();
		}
	}
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PREPARE)
	{
		cancelled = NIL;
		wake_launcher = false;
	}
}
