/*-------------------------------------------------------------------------
 *
 * cancel.c
 *	  cancel_audit_export() and revoke_audit_export(): end an export early.
 *
 * A cancellation is a fact of the ledger, committed at once; the worker is
 * told afterwards and stops at its next safe point.  If it finishes first, the
 * cancellation loses the race and says so: then the archive is READY and can
 * be revoked (requirements S3.66, S3.67).
 *
 * Both write an audit row in the same transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "api/call.h"
#include "ledger/audit.h"
#include "process/scrub.h"
#include "process/wakeup.h"

PG_FUNCTION_INFO_V1(ev_sql_cancel_audit_export);
PG_FUNCTION_INFO_V1(ev_sql_revoke_audit_export);

Datum
ev_sql_cancel_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = ev_scrub(ev_call_required_text(fcinfo, 1, "reason",
														EV_REASON_LIMIT));

	ev_call_begin(&call, "cancel_audit_export", EV_REQUESTER | EV_OPERATOR);
	ev_call_load_export(&call, id, EV_OPERATOR, true, &status);

	if (strcmp(status.state, "CANCELLED") != 0)
	{
		if (strcmp(status.state, "QUEUED") != 0 &&
			strcmp(status.state, "PROCESSING") != 0 &&
			strcmp(status.state, "STAGED") != 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot cancel an export in state %s",
							status.state),
					 strcmp(status.state, "READY") == 0 ?
					 errhint("It was finished before. Use evidence.revoke_audit_export() to withdraw the archive.") :
					 errhint("This state is final; there is nothing to cancel.")));
		if (!ev_export_cancel(id, &status, call.role, call.session_role,
							  reason))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not cancel the export: it changed at the same moment"),
					 errhint("Run the transaction again.")));
		ev_audit_append_action("audit_export.cancel", call.role,
							   call.session_role, "audit_export", ev_export_id_text(id),
							   reason);
		ev_cancel_at_commit(id);
	}
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text("CANCELLED"));
}

Datum
ev_sql_revoke_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = ev_scrub(ev_call_required_text(fcinfo, 1, "reason",
														EV_REASON_LIMIT));

	ev_call_begin(&call, "revoke_audit_export", EV_REQUESTER | EV_OPERATOR);
	ev_call_load_export(&call, id, EV_OPERATOR, true, &status);

	if (strcmp(status.state, "REVOKED") != 0)
	{
		if (strcmp(status.state, "READY") != 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot revoke an export in state %s",
							status.state),
					 errhint("Only a READY archive can be revoked; use evidence.cancel_audit_export() for an unfinished export.")));
		if (!ev_export_revoke(id, &status, call.role, call.session_role,
							  reason))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not revoke the export: it changed at the same moment"),
					 errhint("Run the transaction again.")));
		ev_audit_append_action("audit_export.revoke", call.role,
							   call.session_role, "audit_export", ev_export_id_text(id),
							   reason);
	}
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text("REVOKED"));
}
