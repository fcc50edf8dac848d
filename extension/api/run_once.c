/*-------------------------------------------------------------------------
 *
 * run_once.c
 *	  CALL evidence.run_once(): one round of the launcher in a session.
 *
 * For schedulers, for servers without the preloaded library, and for tests.
 * It commits between its steps, so it cannot run inside a transaction block,
 * and can have neither SECURITY DEFINER nor a SET clause; C switches user and
 * search path for each of its transactions instead.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/parsenodes.h"

#include "api/call.h"
#include "ledger/instance.h"
#include "ledger/statement.h"
#include "process/housekeeping.h"
#include "process/run.h"

PG_FUNCTION_INFO_V1(ev_sql_run_once);

Datum
ev_sql_run_once(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvTransaction transaction = {0};
	pg_uuid_t	incarnation;

	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		((CallContext *) fcinfo->context)->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("run_once() cannot run inside a transaction block"),
				 errhint("CALL it as a statement of its own.")));

	ev_call_begin(&call, "run_once", EV_OPERATOR);
	ev_instance_require(&incarnation);
	ev_call_end(&call);

	ev_statements_begin_procedure();
	transaction.session = true;
	if (!ev_housekeeping(&transaction))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("another session holds the tables of the ledger"),
				 errhint("Run it again later.")));
	(void) ev_run_job(0, EV_ATTEMPT_SESSION);
	ev_statements_end();
	PG_RETURN_VOID();
}
