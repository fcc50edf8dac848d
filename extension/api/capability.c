/*-------------------------------------------------------------------------
 *
 * capability.c
 *	  grant_capability() and revoke_capability().
 *
 * Superusers only: a role that could hand out capabilities could give itself
 * all of them.  Who may do what is itself worth an audit row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "api/call.h"
#include "ledger/audit.h"

static EvCapability read_capability(FunctionCallInfo fcinfo);

PG_FUNCTION_INFO_V1(ev_sql_grant_capability);
PG_FUNCTION_INFO_V1(ev_sql_revoke_capability);

static EvCapability
read_capability(FunctionCallInfo fcinfo)
{
	char	   *name = ev_call_text(fcinfo, 1);
	EvCapability capability;

	if (!ev_capability_from_name(name, &capability))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown capability \"%s\"", name),
				 errhint("Capabilities are requester, operator, auditor, writer and uploader.")));
	return capability;
}

Datum
ev_sql_grant_capability(PG_FUNCTION_ARGS)
{
	EvCall		call;
	Oid			role = PG_GETARG_OID(0);
	EvCapability capability = read_capability(fcinfo);

	ev_call_begin_superuser(&call, "grant_capability");
	ev_capability_give(role, capability, call.role);
	ev_audit_append_action("capability.grant", call.role, call.session_role,
						   "role", GetUserNameFromId(role, false),
						   ev_call_text(fcinfo, 1));
	ev_call_end(&call);
	PG_RETURN_VOID();
}

Datum
ev_sql_revoke_capability(PG_FUNCTION_ARGS)
{
	EvCall		call;
	Oid			role = PG_GETARG_OID(0);
	EvCapability capability = read_capability(fcinfo);

	ev_call_begin_superuser(&call, "revoke_capability");
	if (!ev_capability_take(role, capability))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("role \"%s\" does not have capability \"%s\"",
						GetUserNameFromId(role, false),
						ev_call_text(fcinfo, 1)),
				 errhint("It may have it as a member of another role; see evidence.capability.")));
	ev_audit_append_action("capability.revoke", call.role, call.session_role,
						   "role", GetUserNameFromId(role, false),
						   ev_call_text(fcinfo, 1));
	ev_call_end(&call);
	PG_RETURN_VOID();
}
