/*-------------------------------------------------------------------------
 *
 * call.c
 *	  Around every SQL function: who calls, may they, and acting as the owner.
 *
 * The right is judged by current_user, the role whose privileges the calling
 * statement really has, and both current_user and session_user are written
 * down.  In a security-restricted operation nothing is done at all: that is
 * how autovacuum, ANALYZE, REINDEX and CREATE INDEX run other people's index
 * expressions, and a superuser's maintenance must not act on their behalf.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "api/call.h"

static void begin(EvCall *call, const char *function);
static void refuse_right(EvCall *call, const char *needed);

static void
begin(EvCall *call, const char *function)
{
	if (InSecurityRestrictedOperation())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot execute function \"%s\" within a security-restricted operation",
						function),
				 errhint("Call it from an ordinary statement, not from an index expression or another function that maintenance runs.")));

	call->function = function;
	ev_owner_enter(&call->owner);
	call->role = GetUserNameFromId(call->owner.caller, false);
	call->session_role = GetUserNameFromId(GetSessionUserId(), false);
}

void
ev_call_begin(EvCall *call, const char *function, int needed)
{
	begin(call, function);
	call->capabilities = ev_capabilities_of(call->owner.caller);
	if ((call->capabilities & needed) == 0)
		refuse_right(call,
					 needed & EV_REQUESTER ? "requester" :
					 needed & EV_WRITER ? "writer" :
					 needed & EV_UPLOADER ? "uploader" : "operator");
}

void
ev_call_begin_superuser(EvCall *call, const char *function)
{
	begin(call, function);
	call->capabilities = EV_ALL_CAPABILITIES;
	if (!superuser_arg(call->owner.caller))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function \"%s\"", function),
				 errhint("Only superusers can change capabilities.")));
}

static void
refuse_right(EvCall *call, const char *needed)
{
	ereport(LOG,
			(errmsg("function \"%s\" denied to role \"%s\" (session of \"%s\")",
					call->function, call->role, call->session_role)));
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for function \"%s\"", call->function),
			 errhint("It needs capability \"%s\", which a superuser grants with SELECT evidence.grant_capability('%s', '%s').",
					 needed, call->role, needed)));
}

void
ev_call_end(EvCall *call)
{
	ev_owner_leave(&call->owner);
}

void
ev_call_load_export(EvCall *call, const pg_uuid_t *id, int any, bool lock,
					EvExportStatus *status)
{
	if (!ev_export_load_status(id, lock, status))
		ev_call_refuse(call, "export");
	if ((call->capabilities & any) != 0)
		return;
	if ((call->capabilities & EV_REQUESTER) == 0 ||
		!ev_capability_owns(call->owner.caller, status->requested_by))
		ev_call_refuse(call, "export");
}

void
ev_call_refuse(EvCall *call, const char *what)
{
	ereport(LOG,
			(errmsg("function \"%s\" denied to role \"%s\" (session of \"%s\"): unknown or foreign %s",
					call->function, call->role, call->session_role, what)));
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("%s does not exist or is not yours", what),
			 errhint("View evidence.audit_export_status lists the exports that you may use.")));
	pg_unreachable();
}

char *
ev_call_text(FunctionCallInfo fcinfo, int argument)
{
	if (PG_ARGISNULL(argument))
		return NULL;
	return text_to_cstring(PG_GETARG_TEXT_PP(argument));
}

char *
ev_call_required_text(FunctionCallInfo fcinfo, int argument, const char *name,
					  int limit)
{
	char	   *value = ev_call_text(fcinfo, argument);

	if (value == NULL || value[strspn(value, " \t\r\n")] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not be empty", name),
				 errhint("State it in a few words; it is kept with the record.")));
	if (strlen(value) > limit)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is longer than %d bytes", name, limit),
				 errhint("Shorten it.")));
	return value;
}

pg_uuid_t *
ev_call_export_id(FunctionCallInfo fcinfo, int argument)
{
	if (PG_ARGISNULL(argument))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("export_id must not be null"),
				 errhint("Pass the id that request_audit_export() returned.")));
	return PG_GETARG_UUID_P(argument);
}
