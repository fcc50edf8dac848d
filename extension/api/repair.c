/*-------------------------------------------------------------------------
 *
 * repair.c
 *	  freeze_audit_export(), unfreeze_audit_export(), fail_audit_export() and
 *	  fill_in_audit_export(): what an operator does to an export that is stuck.
 *
 * None of them makes an archive or lets one be downloaded that the ledger does
 * not know: a freeze stops, a failure ends, and what is filled in must be the
 * archive whose size and digest are on record (requirement S3.26).
 *
 * Each writes an audit row in the same transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "api/call.h"
#include "base/errors.h"
#include "ledger/archive.h"
#include "ledger/audit.h"
#include "ledger/instance.h"
#include "ledger/recovery.h"
#include "process/scrub.h"
#include "process/wakeup.h"

#define BUCKET_LIMIT 63
#define KEY_LIMIT 1024
#define VERSION_LIMIT 1024

static char *reason_argument(FunctionCallInfo fcinfo, int argument);
static void audit(const EvCall *call, const char *action,
				  const pg_uuid_t *id, const char *reason);
static void require_archive(FunctionCallInfo fcinfo,
							const EvExportStatus *status);
static void refuse_changed(void);

PG_FUNCTION_INFO_V1(ev_sql_freeze_audit_export);
PG_FUNCTION_INFO_V1(ev_sql_unfreeze_audit_export);
PG_FUNCTION_INFO_V1(ev_sql_fail_audit_export);
PG_FUNCTION_INFO_V1(ev_sql_fill_in_audit_export);

static char *
reason_argument(FunctionCallInfo fcinfo, int argument)
{
	return ev_scrub(ev_call_required_text(fcinfo, argument, "reason",
										  EV_REASON_LIMIT));
}

static void
audit(const EvCall *call, const char *action, const pg_uuid_t *id,
	  const char *reason)
{
	ev_audit_append_action(action, call->role, call->session_role,
						   "audit_export", ev_export_id_text(id), reason);
}

Datum
ev_sql_freeze_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = reason_argument(fcinfo, 1);

	ev_call_begin(&call, "freeze_audit_export", EV_OPERATOR);
	ev_call_load_export(&call, id, EV_OPERATOR, true, &status);
	if (ev_recovery_freeze(id, call.role, call.session_role, reason))
		audit(&call, "audit_export.freeze", id, reason);
	ev_call_end(&call);
	PG_RETURN_VOID();
}

Datum
ev_sql_unfreeze_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = reason_argument(fcinfo, 1);
	int64		others;

	ev_call_begin(&call, "unfreeze_audit_export", EV_OPERATOR);
	ev_call_load_export(&call, id, EV_OPERATOR, true, &status);
	if (!ev_recovery_unfreeze(id, call.role, call.session_role, reason,
							  &others))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the export is not frozen"),
				 errhint("Table evidence.finding tells what else may stop its downloads.")));
	audit(&call, "audit_export.unfreeze", id, reason);
	ev_call_end(&call);
	PG_RETURN_INT64(others);
}

Datum
ev_sql_fail_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = reason_argument(fcinfo, 1);

	ev_call_begin(&call, "fail_audit_export", EV_OPERATOR);
	ev_recovery_lock_attempts(id);
	ev_call_load_export(&call, id, EV_OPERATOR, true, &status);
	if (strcmp(status.state, "QUEUED") != 0 &&
		strcmp(status.state, "PROCESSING") != 0 &&
		strcmp(status.state, "STAGED") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot fail an export in state %s", status.state),
				 errhint("Only an unfinished export can be failed. A READY one is withdrawn with evidence.revoke_audit_export().")));
	if (!ev_recovery_fail(id, &status, call.role, call.session_role, reason))
		refuse_changed();
	audit(&call, "audit_export.fail", id, reason);
	ev_cancel_at_commit(id);
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text("FAILED"));
}

Datum
ev_sql_fill_in_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	EvFoundObject object;
	pg_uuid_t	incarnation;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = reason_argument(fcinfo, 5);

	object.bucket = ev_call_required_text(fcinfo, 1, "bucket", BUCKET_LIMIT);
	object.key = ev_call_required_text(fcinfo, 2, "object_key", KEY_LIMIT);
	object.version = PG_ARGISNULL(6) ? NULL :
		ev_call_required_text(fcinfo, 6, "object_version", VERSION_LIMIT);

	ev_call_begin(&call, "fill_in_audit_export", EV_OPERATOR);
	ev_instance_require(&incarnation);
	ev_call_load_export(&call, id, EV_OPERATOR, true, &status);
	if (strcmp(status.state, "STAGED") != 0 &&
		(strcmp(status.state, "READY") != 0 || status.object_key != NULL ||
		 ev_chunks_exist(&status)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the export does not lack an object: its state is %s",
						status.state),
				 errhint("Only a STAGED export, or a READY one whose bytes are neither in the database nor known to be in a store, can be completed.")));
	require_archive(fcinfo, &status);
	switch (ev_recovery_fill_in(id, &status, &object, call.role,
								call.session_role, reason))
	{
		case EV_FILL_IN_DONE:
			break;
		case EV_FILL_IN_NEVER_SENT:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("no uploader has sent this archive to that bucket and key"),
					 errhint("Table evidence.upload_attempt lists where it was sent. Otherwise use evidence.fail_audit_export() and retry.")));
			break;
		case EV_FILL_IN_IN_WORK:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("an uploader is at work on this archive"),
					 errhint("Let it finish, or stop it and wait until its lease is over (evidence.upload_attempt.lease_until).")));
			break;
		case EV_FILL_IN_MOVED:
			refuse_changed();
			break;
	}
	audit(&call, "audit_export.fill_in", id, reason);
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text("READY"));
}

/* What was found must be what the ledger knows, byte for byte. */
static void
require_archive(FunctionCallInfo fcinfo, const EvExportStatus *status)
{
	char	   *sha256 = ev_call_required_text(fcinfo, 4, "sha256", 64);

	if (PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bytes must not be null"),
				 errhint("Pass the size of what lies in the store.")));
	if (PG_GETARG_INT64(3) != status->archive_bytes ||
		strcmp(sha256, status->archive_sha256) != 0)
		ereport(ERROR,
				(errcode(EV_ERRCODE_MISMATCH),
				 errmsg("what was found is not the archive of the ledger"),
				 errdetail("The archive has " INT64_FORMAT " bytes and SHA-256 %s.",
						   status->archive_bytes, status->archive_sha256),
				 errhint("Leave the object as it is for whoever examines it. evidence.fail_audit_export() and a retry make the archive again.")));
}

static void
refuse_changed(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not change the export: it changed at the same moment"),
			 errhint("Run the transaction again.")));
}
