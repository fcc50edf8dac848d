/*-------------------------------------------------------------------------
 *
 * transaction.c
 *	  One transaction of a worker, or of a procedure that commits inside.
 *
 * Launcher, exporter and CALL evidence.run_once() do the same work, but a
 * background worker owns its transactions while a procedure borrows those of
 * a session.  This file is the difference.
 *
 * In a procedure each transaction is wrapped in a subtransaction: only rolling
 * that back cleans up snapshots, portals and locks after an error so that the
 * procedure can go on.  The user is switched inside it, so that a rollback
 * switches back.
 *
 * The isolation level is set outright.  A default_transaction_isolation or
 * default_transaction_read_only of the database or role must not change what
 * the ledger's statements rest on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "pgstat.h"
#include "utils/snapmgr.h"

#include "ledger/statement.h"
#include "process/transaction.h"

void
ev_transaction_begin(EvTransaction *transaction, EvTransactionMode mode)
{
	transaction->context = CurrentMemoryContext;

	if (transaction->session)
		ev_statements_commit();
	else
	{
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
	}
	XactIsoLevel = mode == EV_TRANSACTION_SNAPSHOT ?
		XACT_REPEATABLE_READ : XACT_READ_COMMITTED;
	XactReadOnly = mode == EV_TRANSACTION_SNAPSHOT;

	if (transaction->session)
	{
		transaction->resource_owner = CurrentResourceOwner;
		BeginInternalSubTransaction(NULL);
	}
	transaction->open = true;
	PushActiveSnapshot(GetTransactionSnapshot());
	ev_owner_enter(&transaction->owner);
	MemoryContextSwitchTo(transaction->context);
}

void
ev_transaction_commit(EvTransaction *transaction)
{
	ev_owner_leave(&transaction->owner);
	PopActiveSnapshot();
	transaction->open = false;
	if (transaction->session)
	{
		ReleaseCurrentSubTransaction();
		CurrentResourceOwner = transaction->resource_owner;
		ev_statements_commit();
	}
	else
	{
		CommitTransactionCommand();
		pgstat_report_stat(true);
	}
	MemoryContextSwitchTo(transaction->context);
}

void
ev_transaction_abort(EvTransaction *transaction)
{
	if (transaction->session)
	{
		if (transaction->open)
		{
			RollbackAndReleaseCurrentSubTransaction();
			CurrentResourceOwner = transaction->resource_owner;
		}
		ev_statements_rollback();
	}
	else
		AbortCurrentTransaction();
	transaction->open = false;
	MemoryContextSwitchTo(transaction->context);
}
