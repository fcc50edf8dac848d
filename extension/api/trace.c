/*-------------------------------------------------------------------------
 *
 * trace.c
 *	  trace_audit_export(), trace_download() and audit_export_dossier(): what
 *	  is on record about an export.
 *
 * Nothing here changes anything.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "utils/tuplestore.h"

#include "api/call.h"
#include "ledger/trace.h"

PG_FUNCTION_INFO_V1(ev_sql_trace_audit_export);
PG_FUNCTION_INFO_V1(ev_sql_trace_download);
PG_FUNCTION_INFO_V1(ev_sql_audit_export_dossier);

Datum
ev_sql_trace_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);

	InitMaterializedSRF(fcinfo, 0);
	ev_call_begin(&call, "trace_audit_export",
				  EV_REQUESTER | EV_OPERATOR | EV_AUDITOR);
	ev_call_load_export(&call, id, EV_OPERATOR | EV_AUDITOR, false, &status);
	ev_trace_export(id,
					(call.capabilities & (EV_OPERATOR | EV_AUDITOR)) != 0,
					((ReturnSetInfo *) fcinfo->resultinfo)->setResult);
	ev_call_end(&call);
	PG_RETURN_NULL();
}

Datum
ev_sql_trace_download(PG_FUNCTION_ARGS)
{
	EvCall		call;
	pg_uuid_t	id;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("grant_id must not be null"),
				 errhint("Pass the number of a grant, as evidence.export_event and evidence.trace_audit_export() tell it.")));
	InitMaterializedSRF(fcinfo, 0);
	ev_call_begin(&call, "trace_download", EV_OPERATOR | EV_AUDITOR);
	if (!ev_trace_find_grant(PG_GETARG_INT64(0), &id))
		ev_call_refuse(&call, "download grant");
	ev_trace_download(&id, PG_GETARG_INT64(0),
					  ((ReturnSetInfo *) fcinfo->resultinfo)->setResult);
	ev_call_end(&call);
	PG_RETURN_NULL();
}

Datum
ev_sql_audit_export_dossier(PG_FUNCTION_ARGS)
{
	EvCall		call;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	Jsonb	   *dossier;

	ev_call_begin(&call, "audit_export_dossier", EV_OPERATOR | EV_AUDITOR);
	dossier = ev_trace_dossier(id);
	if (dossier == NULL)
		ev_call_refuse(&call, "export");
	ev_call_end(&call);
	PG_RETURN_JSONB_P(dossier);
}
