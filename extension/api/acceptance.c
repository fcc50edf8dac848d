/*-------------------------------------------------------------------------
 *
 * acceptance.c
 *	  recovery_report() and duplicate_exports(), and the cases that a person
 *	  has to decide.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "api/call.h"
#include "base/clock.h"
#include "ledger/acceptance.h"
#include "ledger/audit.h"
#include "ledger/human_case.h"
#include "process/scrub.h"

#define NAME_LIMIT 200

static TimestampTz due_argument(FunctionCallInfo fcinfo, int argument);
static void change_case(EvCall *call, FunctionCallInfo fcinfo,
						const char *action, TimestampTz due_at,
						const char *reason);

PG_FUNCTION_INFO_V1(ev_sql_recovery_report);
PG_FUNCTION_INFO_V1(ev_sql_duplicate_exports);
PG_FUNCTION_INFO_V1(ev_sql_open_human_case);
PG_FUNCTION_INFO_V1(ev_sql_recheck_human_case);
PG_FUNCTION_INFO_V1(ev_sql_close_human_case);

Datum
ev_sql_recovery_report(PG_FUNCTION_ARGS)
{
	EvCall		call;

	if (PG_ARGISNULL(0) || TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(0)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("since must be a finite time"),
				 errhint("Pass the time from when on the ledger was watched, for instance when the repair ended.")));
	InitMaterializedSRF(fcinfo, 0);
	ev_call_begin(&call, "recovery_report", EV_OPERATOR | EV_AUDITOR);
	ev_acceptance_report(PG_GETARG_TIMESTAMPTZ(0),
						 ((ReturnSetInfo *) fcinfo->resultinfo)->setResult);
	ev_call_end(&call);
	PG_RETURN_NULL();
}

Datum
ev_sql_duplicate_exports(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	EvCall		call;

	InitMaterializedSRF(fcinfo, 0);
	ev_call_begin(&call, "duplicate_exports", EV_OPERATOR | EV_AUDITOR);
	ev_acceptance_duplicates(result->setResult);
	ev_call_end(&call);
	PG_RETURN_NULL();
}

static TimestampTz
due_argument(FunctionCallInfo fcinfo, int argument)
{
	if (PG_ARGISNULL(argument) ||
		TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(argument)) ||
		PG_GETARG_TIMESTAMPTZ(argument) <= ev_clock_now())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("due_at must be a time to come"),
				 errhint("State until when the case has to be decided.")));
	return PG_GETARG_TIMESTAMPTZ(argument);
}

Datum
ev_sql_open_human_case(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	char	   *task = ev_scrub(ev_call_required_text(fcinfo, 0, "task",
													  EV_REASON_LIMIT));
	char	   *owner = ev_call_required_text(fcinfo, 1, "owner", NAME_LIMIT);
	TimestampTz due_at = due_argument(fcinfo, 2);
	char	   *reason = ev_scrub(ev_call_required_text(fcinfo, 3, "reason",
														EV_REASON_LIMIT));
	pg_uuid_t  *export_id = PG_ARGISNULL(4) ? NULL : PG_GETARG_UUID_P(4);
	int64		id;

	ev_call_begin(&call, "open_human_case", EV_OPERATOR);
	if (export_id != NULL)
		ev_call_load_export(&call, export_id, EV_OPERATOR, false, &status);
	id = ev_human_case_open(task, owner, due_at, export_id, call.role, reason);
	ev_audit_append_action("human_case.open", call.role, call.session_role,
						   "human_case", psprintf(INT64_FORMAT, id), reason);
	ev_call_end(&call);
	PG_RETURN_INT64(id);
}

Datum
ev_sql_recheck_human_case(PG_FUNCTION_ARGS)
{
	EvCall		call;
	TimestampTz due_at = due_argument(fcinfo, 1);
	char	   *reason = ev_scrub(ev_call_required_text(fcinfo, 2, "reason",
														EV_REASON_LIMIT));

	ev_call_begin(&call, "recheck_human_case", EV_OPERATOR);
	change_case(&call, fcinfo, "human_case.recheck", due_at, reason);
	ev_call_end(&call);
	PG_RETURN_VOID();
}

Datum
ev_sql_close_human_case(PG_FUNCTION_ARGS)
{
	EvCall		call;
	char	   *resolution = ev_scrub(ev_call_required_text(fcinfo, 1,
															"resolution",
															EV_REASON_LIMIT));

	ev_call_begin(&call, "close_human_case", EV_OPERATOR);
	change_case(&call, fcinfo, "human_case.close", 0, resolution);
	ev_call_end(&call);
	PG_RETURN_VOID();
}

static void
change_case(EvCall *call, FunctionCallInfo fcinfo, const char *action,
			TimestampTz due_at, const char *reason)
{
	int64		id = PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0);

	if (!ev_human_case_recheck(id, due_at, call->role, reason))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("there is no open case with this number"),
				 errhint("View evidence.human_queue lists the open ones.")));
	ev_audit_append_action(action, call->role, call->session_role,
						   "human_case", psprintf(INT64_FORMAT, id), reason);
}
