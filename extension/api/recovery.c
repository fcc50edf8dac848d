/*-------------------------------------------------------------------------
 *
 * recovery.c
 *	  retry_audit_export() and recreate_audit_export(): make it after all.
 *
 * Both make an export active again and are judged as its request was: under
 * the same locks, against the watermark and the requester's quota.  The
 * contract stays what it was, so the records are those of the first request;
 * where some of them have been retired since, that is refused and not
 * answered with fewer (requirement S3.76).
 *
 * Both write an audit row in the same transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "api/admission.h"
#include "api/call.h"
#include "ledger/audit.h"
#include "ledger/instance.h"
#include "ledger/recovery.h"
#include "process/scrub.h"
#include "process/wakeup.h"

static TimestampTz lock_contract(EvCall *call, const pg_uuid_t *id,
								 EvContract *contract,
								 EvExportStatus *status);
static void refuse_recreated(const pg_uuid_t *id);
static void refuse_changed(void);

PG_FUNCTION_INFO_V1(ev_sql_retry_audit_export);
PG_FUNCTION_INFO_V1(ev_sql_recreate_audit_export);

Datum
ev_sql_retry_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvContract	contract;
	EvExportStatus status;
	TimestampTz watermark;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = ev_scrub(ev_call_required_text(fcinfo, 1, "reason",
														EV_REASON_LIMIT));

	ev_call_begin(&call, "retry_audit_export", EV_OPERATOR);
	watermark = lock_contract(&call, id, &contract, &status);
	if (strcmp(status.state, "FAILED") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot retry an export in state %s", status.state),
				 errhint("Only a FAILED export can be retried; evidence.recreate_audit_export() makes a new one from the contract of one that has ended.")));
	refuse_recreated(id);
	ev_admission_check(&contract, watermark);
	if (!ev_recovery_retry(id, &status, call.role, call.session_role, reason))
		refuse_changed();
	ev_audit_append_action("audit_export.retry", call.role, call.session_role,
						   "audit_export", ev_export_id_text(id), reason);
	ev_wakeup_at_commit();
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text("QUEUED"));
}

Datum
ev_sql_recreate_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvContract	contract;
	EvExportStatus status;
	EvOrigin	origin;
	TimestampTz watermark;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = ev_scrub(ev_call_required_text(fcinfo, 1, "reason",
														EV_REASON_LIMIT));
	pg_uuid_t  *recreation = palloc(sizeof(pg_uuid_t));

	ev_call_begin(&call, "recreate_audit_export", EV_OPERATOR);
	watermark = lock_contract(&call, id, &contract, &status);
	if (strcmp(status.state, "FAILED") != 0 &&
		strcmp(status.state, "EXPIRED") != 0 &&
		strcmp(status.state, "REVOKED") != 0 &&
		strcmp(status.state, "CANCELLED") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot recreate an export in state %s",
						status.state),
				 strcmp(status.state, "READY") == 0 ?
				 errhint("Its archive is still there. If it must not be used, withdraw it with evidence.revoke_audit_export() first.") :
				 errhint("It is not finished. Wait for its end, or cancel it first.")));
	refuse_recreated(id);
	ev_admission_check(&contract, watermark);

	origin.from = *id;
	origin.actor = call.role;
	origin.session_role = call.session_role;
	origin.reason = reason;
	ev_export_insert(&contract, NULL, &origin);
	ev_audit_append_action("audit_export.recreate", call.role,
						   call.session_role, "audit_export",
						   ev_export_id_text(&contract.export_id), reason);
	ev_wakeup_at_commit();
	*recreation = contract.export_id;
	ev_call_end(&call);
	PG_RETURN_UUID_P(recreation);
}

/*
 * The locks of a request come before that of the export, whose state counts as
 * it is after the wait.  A contract of another incarnation pins a snapshot
 * that means nothing here.
 */
static TimestampTz
lock_contract(EvCall *call, const pg_uuid_t *id, EvContract *contract,
			  EvExportStatus *status)
{
	pg_uuid_t	incarnation;
	TimestampTz watermark;

	ev_instance_require(&incarnation);
	if (!ev_export_load_contract(id, contract))
		ev_call_refuse(call, "export");
	if (memcmp(&contract->incarnation, &incarnation, UUID_LEN) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the export was requested in an earlier life of this ledger"),
				 errdetail("Its snapshot means nothing since the ledger was restored from a dump."),
				 errhint("Request the range again.")));
	watermark = ev_admission_lock(contract);
	ev_call_load_export(call, id, EV_OPERATOR, true, status);
	return watermark;
}

/* Two archives of one contract would leave open which is the valid one. */
static void
refuse_recreated(const pg_uuid_t *id)
{
	pg_uuid_t	recreation;
	char	   *state;

	if (ev_export_find_recreation(id, &recreation, &state))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the export has been recreated already"),
				 errdetail("Export \"%s\" has its contract and is %s.",
						   ev_export_id_text(&recreation), state),
				 errhint("Use that one, or cancel or revoke it first.")));
}

static void
refuse_changed(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not change the export: it changed at the same moment"),
			 errhint("Run the transaction again.")));
}
