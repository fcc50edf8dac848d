/*-------------------------------------------------------------------------
 *
 * housekeeping.c
 *	  Put back what dead workers left, deliver what commits have promised, and
 *	  end what is over.
 *
 * What a round of the launcher does before it starts anything, and what
 * run_once() does before it looks for a job.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/pause.h"
#include "ledger/expiry.h"
#include "ledger/job.h"
#include "ledger/outbox.h"
#include "ledger/tables.h"
#include "process/housekeeping.h"
#include "process/shmem.h"

/* Exports that cannot be ended: so many in one pass, then a minute's pause. */
#define FAILURES_LIMIT 100
#define FAILURES_PAUSE (60 * USECS_PER_SEC)

static bool begin(EvTransaction *transaction);
static bool recover_all(EvTransaction *transaction, EvRecovery *recovery);
static bool deliver_all(EvTransaction *transaction);
static bool end_all(EvTransaction *transaction);

/*
 * Each dead attempt and each event has a transaction of its own, so that one
 * that fails does not hold up the others.  Every transaction takes its table
 * locks without waiting.
 */
static bool
begin(EvTransaction *transaction)
{
	ev_transaction_begin(transaction, EV_TRANSACTION_WRITE);
	if (ev_tables_try_lock())
		return true;
	ev_transaction_commit(transaction);
	return false;
}

static bool
recover_all(EvTransaction *transaction, EvRecovery *recovery)
{
	EvGoneWorker gone[EV_SLOTS];
	pg_uuid_t	tokens[EV_SLOTS];
	bool		clean[EV_SLOTS];
	int			ngone = ev_shmem_attached() ? ev_shmem_gone_workers(gone) : 0;
	int			nattempts = 0;
	bool		found;
	int			i;

	for (i = 0; i < ngone; i++)
	{
		if (!gone[i].has_attempt)
			continue;
		tokens[nattempts] = gone[i].token;
		clean[nattempts++] = gone[i].clean;
	}
	do
	{
		if (!begin(transaction))
			return false;
		found = ev_job_recover_one(ev_shmem_boot_id(), ev_shmem_boot_clean(),
								   tokens, clean, nattempts, recovery);
		if (found)
			ev_pause_at("recovering");
		ev_transaction_commit(transaction);
	} while (found);
	if (recovery->lost > 0)
		ev_pause_at("recovered");

	if (ngone == 0)
		return true;

	/*
	 * A slot is used again once nothing of its worker is left open.  Until
	 * then it keeps what is known of that worker's end.
	 */
	if (!begin(transaction))
		return false;
	for (i = 0; i < ngone; i++)
	{
		if (!gone[i].has_attempt || !ev_job_is_open(&gone[i].token))
			ev_shmem_free(gone[i].slot);
	}
	ev_transaction_commit(transaction);
	return true;
}

static bool
deliver_all(EvTransaction *transaction)
{
	bool volatile found = true;

	while (found)
	{
		int64		event_id = 0;
		int volatile code = 0;

		if (!begin(transaction))
			return false;
		PG_TRY();
		{
			found = ev_outbox_deliver_one(&event_id);
			if (found)
				ev_pause_at("delivering");
			ev_transaction_commit(transaction);
		}
		PG_CATCH();
		{
			code = geterrcode();
			EmitErrorReport();
			FlushErrorState();
			ev_transaction_abort(transaction);
		}
		PG_END_TRY();

		if (code != 0 && event_id != 0)
		{
			ev_transaction_begin(transaction, EV_TRANSACTION_WRITE);
			ev_outbox_delivery_failed(event_id, unpack_sql_state(code));
			ev_transaction_commit(transaction);
		}
	}
	return true;
}

/*
 * Exports whose time is over.  One that cannot be ended is told of in the log,
 * not more than once a minute, and does not hold up the others.
 */
static bool
end_all(EvTransaction *transaction)
{
	static TimestampTz not_before = DT_NOBEGIN;
	EvExpiryPlace place = {DT_NOBEGIN, {{0}}};
	bool volatile found = true;
	int volatile failures = 0;

	if (ev_clock_now() < not_before)
		return true;
	while (found && failures < FAILURES_LIMIT)
	{
		if (!begin(transaction))
			return false;
		PG_TRY();
		{
			found = ev_expiry_end_next(&place);
			if (found)
				ev_pause_at("expiring");
			ev_transaction_commit(transaction);
		}
		PG_CATCH();
		{
			EmitErrorReport();
			FlushErrorState();
			ev_transaction_abort(transaction);
			failures++;
		}
		PG_END_TRY();
	}
	if (failures > 0)
		not_before = ev_clock_now() + FAILURES_PAUSE;
	return true;
}

bool
ev_housekeeping(EvTransaction *transaction)
{
	EvRecovery	recovery = {0};

	if (!recover_all(transaction, &recovery) || !deliver_all(transaction) ||
		!end_all(transaction))
		return false;
	if (recovery.lost > 0)
		ereport(LOG,
				(errmsg("recovered " INT64_FORMAT " attempts: " INT64_FORMAT " exports queued again, " INT64_FORMAT " failed, " INT64_FORMAT " had been cancelled",
						recovery.lost, recovery.requeued, recovery.failed,
						recovery.stopped)));
	return true;
}
