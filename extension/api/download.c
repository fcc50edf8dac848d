/*-------------------------------------------------------------------------
 *
 * download.c
 *	  grant_audit_export_download() and fetch_audit_export(), and for archives
 *	  in an object store locate_download() and record_download().
 *
 * The grant is the act that is audited: it and its audit row are committed
 * before any byte can be fetched, see ledger/grant.c.  It checks all bytes of
 * the archive once.  The fetch then hands out chunk after chunk; before each
 * one the caller's capability and the grant are looked up again in the newest
 * snapshot, and the chunk is held against its own digest.
 *
 * The grant is 32 random bytes in hex.  Only its digest is stored, so neither
 * a dump nor a reader of the table can use it.
 *
 * The bytes of an archive in an object store do not come by here.  The program
 * that fetches them opens the object, tells record_download() what the store
 * says it is, commits, and only then hands out the first byte (requirement
 * S1.53).
 *
 * Rows are returned one at a time, so that a server-side cursor or a SELECT
 * list holds one chunk in memory, whatever the archive's size.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "api/call.h"
#include "base/clock.h"
#include "base/errors.h"
#include "base/pause.h"
#include "ledger/archive.h"
#include "ledger/audit.h"
#include "ledger/grant.h"
#include "ledger/reconcile.h"
#include "process/scrub.h"

#define SECRET_BYTES 32
#define SECRET_HEX (2 * SECRET_BYTES)

/* Where a fetch stands, from one row to the next. */
typedef struct Fetch
{
	unsigned char secret_sha256[EV_SHA256_BYTES];
	int32		next;
	int32		end;			/* one past the last chunk to give out */
	bool		checked;		/* the list of chunks is that of the ledger */
} Fetch;

static void require_ready(const EvExportStatus *status);
static char *make_secret(unsigned char sha256[EV_SHA256_BYTES]);
static Fetch *begin_fetch(FunctionCallInfo fcinfo);
static void open_grant(EvCall *call, const unsigned char *secret_sha256,
					   EvGrant *grant);
static void check_chunks(const EvGrant *grant);
static void hash_secret(FunctionCallInfo fcinfo,
						unsigned char sha256[EV_SHA256_BYTES]);
static void refuse_on_standby(void);
static void refuse_mismatch(void);
static void refuse_frozen(void);

PG_FUNCTION_INFO_V1(ev_sql_grant_audit_export_download);
PG_FUNCTION_INFO_V1(ev_sql_fetch_audit_export);
PG_FUNCTION_INFO_V1(ev_sql_locate_download);
PG_FUNCTION_INFO_V1(ev_sql_record_download);

Datum
ev_sql_grant_audit_export_download(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvExportStatus status;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	char	   *reason = ev_call_text(fcinfo, 1);
	unsigned char sha256[EV_SHA256_BYTES];
	char	   *secret;

	if (reason != NULL)
		reason = ev_scrub(ev_call_required_text(fcinfo, 1, "reason",
												EV_REASON_LIMIT));

	ev_call_begin(&call, "grant_audit_export_download",
				  EV_REQUESTER | EV_OPERATOR);
	ev_call_load_export(&call, id, EV_OPERATOR, false, &status);
	require_ready(&status);
	if (ev_reconcile_freezes(id))
		refuse_frozen();
	if (status.object_key == NULL &&
		(!ev_chunks_check(&status) || !ev_chunks_check_bytes(&status)))
		refuse_mismatch();

	secret = make_secret(sha256);
	(void) ev_grant_create(id, &status, sha256, call.role, call.session_role,
						   reason);
	ev_audit_append_action("audit_export.download", call.role,
						   call.session_role, "audit_export", ev_export_id_text(id), reason);
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text(secret));
}

/*
 * The clock alone decides whether an archive is expired; whether its bytes
 * are still there does not matter (requirement S1.46).
 */
static void
require_ready(const EvExportStatus *status)
{
	if (strcmp(status->state, "QUEUED") == 0 ||
		strcmp(status->state, "PROCESSING") == 0 ||
		strcmp(status->state, "STAGED") == 0)
		ereport(ERROR,
				(errcode(EV_ERRCODE_NOT_READY),
				 errmsg("export is not ready yet: its state is %s",
						status->state),
				 errhint("Watch evidence.audit_export_status, or run pg_evidence wait.")));
	if (strcmp(status->state, "FAILED") == 0 ||
		strcmp(status->state, "CANCELLED") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("export has no archive: its state is %s",
						status->state),
				 errhint("evidence.audit_export_status says why; request the export again.")));
	if (strcmp(status->state, "READY") != 0)
		ereport(ERROR,
				(errcode(EV_ERRCODE_GONE),
				 errmsg("archive is gone: its state is %s", status->state),
				 errhint("Request the export again if it is still needed.")));
	if (status->expires_at <= ev_clock_now())
		ereport(ERROR,
				(errcode(EV_ERRCODE_GONE),
				 errmsg("archive is gone: it expired at %s",
						timestamptz_to_str(status->expires_at)),
				 errhint("Request the export again if it is still needed.")));
}

static char *
make_secret(unsigned char sha256[EV_SHA256_BYTES])
{
	unsigned char bytes[SECRET_BYTES];
	char	   *secret = palloc(SECRET_HEX + 1);
	EvError		error;
	int			i;

	if (!pg_strong_random(bytes, sizeof(bytes)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a random grant")));
	for (i = 0; i < SECRET_BYTES; i++)
		snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
	if (!ev_sha256(secret, SECRET_HEX, sha256, &error))
		ev_raise(&error);
	return secret;
}

Datum
ev_sql_fetch_audit_export(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	Fetch	   *fetch;
	EvCall		call;
	EvGrant		grant;
	bytea	   *data;
	Datum		values[2];
	bool		nulls[2] = {false, false};
	int32		seq;

	if (SRF_IS_FIRSTCALL())
	{
		TupleDesc	descriptor;
		MemoryContext old;

		context = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(context->multi_call_memory_ctx);
		if (get_call_result_type(fcinfo, NULL,
								 &descriptor) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		context->tuple_desc = BlessTupleDesc(descriptor);
		context->user_fctx = begin_fetch(fcinfo);
		MemoryContextSwitchTo(old);
	}
	context = SRF_PERCALL_SETUP();
	fetch = context->user_fctx;

	ev_call_begin(&call, "fetch_audit_export", EV_REQUESTER | EV_OPERATOR);
	open_grant(&call, fetch->secret_sha256, &grant);
	if (grant.in_store)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("archive lies in an object store, not in the database"),
				 errhint("Use \"pg_evidence download\", which opens and checks the object, with keys that may read the bucket.")));
	if (!fetch->checked)
		check_chunks(&grant);
	fetch->checked = true;

	seq = fetch->next;
	if (seq >= Min(fetch->end, grant.archive_chunks))
	{
		ev_call_end(&call);
		SRF_RETURN_DONE(context);
	}
	if (seq == 0)
		ev_pause_at("fetching");
	else
		ev_pause_at("half-fetched");
	data = ev_chunk_read(&grant.archive_token, seq);
	if (data == NULL)
		refuse_mismatch();
	fetch->next++;
	ev_call_end(&call);

	values[0] = Int32GetDatum(seq);
	values[1] = PointerGetDatum(data);
	SRF_RETURN_NEXT(context,
					HeapTupleGetDatum(heap_form_tuple(context->tuple_desc,
													  values, nulls)));
}

static Fetch *
begin_fetch(FunctionCallInfo fcinfo)
{
	Fetch	   *fetch = palloc0(sizeof(Fetch));
	int32		max_chunks = PG_INT32_MAX;

	if (!PG_ARGISNULL(2))
		max_chunks = PG_GETARG_INT32(2);

	refuse_on_standby();
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_GETARG_INT32(1) < 0 ||
		max_chunks < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("download_grant, from_seq and max_chunks must be given and not be negative"),
				 errhint("Chunks are counted from 0; leave max_chunks out to get all.")));
	hash_secret(fcinfo, fetch->secret_sha256);
	fetch->next = PG_GETARG_INT32(1);
	fetch->end = max_chunks > PG_INT32_MAX - fetch->next ?
		PG_INT32_MAX : fetch->next + max_chunks;
	return fetch;
}

static void
refuse_on_standby(void)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot fetch an archive on a standby"),
				 errdetail("A standby may not know yet that a grant was revoked."),
				 errhint("Connect to the primary.")));
}

static void
hash_secret(FunctionCallInfo fcinfo, unsigned char sha256[EV_SHA256_BYTES])
{
	char	   *secret = ev_call_text(fcinfo, 0);
	EvError		error;

	if (secret == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("download_grant must not be null"),
				 errhint("Pass what grant_audit_export_download() returned.")));
	if (!ev_sha256(secret, strlen(secret), sha256, &error))
		ev_raise(&error);
}

/*
 * Where the archive is, for a grant that is committed.  No row says that it
 * lies in the database.
 */
Datum
ev_sql_locate_download(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	EvCall		call;
	EvGrant		grant;
	EvExportStatus status;
	unsigned char sha256[EV_SHA256_BYTES];
	Datum		values[5];
	bool		nulls[5] = {false, false, false, false, false};

	InitMaterializedSRF(fcinfo, 0);
	refuse_on_standby();
	hash_secret(fcinfo, sha256);
	ev_call_begin(&call, "locate_download", EV_REQUESTER | EV_OPERATOR);
	open_grant(&call, sha256, &grant);
	if (grant.in_store)
	{
		if (!ev_export_load_status(&grant.export_id, false, &status))
			refuse_mismatch();
		values[0] = CStringGetTextDatum(status.object_bucket);
		values[1] = CStringGetTextDatum(status.object_key);
		nulls[2] = status.object_version == NULL;
		values[2] = nulls[2] ? (Datum) 0 :
			CStringGetTextDatum(status.object_version);
		values[3] = Int64GetDatum(status.archive_bytes);
		values[4] = CStringGetTextDatum(status.archive_sha256);
		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	ev_call_end(&call);
	PG_RETURN_NULL();
}

/*
 * The strict audit of a download from the store: authorised, and the stream
 * is open.  Its commit reaches the disk whatever synchronous_commit says.
 */
Datum
ev_sql_record_download(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvGrant		grant;
	EvExportStatus status;
	unsigned char sha256[EV_SHA256_BYTES];
	char	   *found = ev_call_required_text(fcinfo, 2, "sha256",
											  EV_SHA256_HEX);

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bytes must not be null"),
				 errhint("Pass the size that the store tells.")));
	refuse_on_standby();
	hash_secret(fcinfo, sha256);
	ev_call_begin(&call, "record_download", EV_REQUESTER | EV_OPERATOR);
	open_grant(&call, sha256, &grant);
	if (!ev_export_load_status(&grant.export_id, false, &status) ||
		status.object_key == NULL ||
		status.archive_bytes != PG_GETARG_INT64(1) ||
		strcmp(status.archive_sha256, found) != 0)
		refuse_mismatch();
	ev_grant_opened(&grant, call.role, call.session_role);
	ev_audit_append_action("audit_export.open", call.role, call.session_role,
						   "audit_export",
						   ev_export_id_text(&grant.export_id), NULL);
	ForceSyncCommit();
	ev_call_end(&call);
	PG_RETURN_VOID();
}

static void
open_grant(EvCall *call, const unsigned char *secret_sha256, EvGrant *grant)
{
	switch (ev_grant_check(secret_sha256, call->role, grant))
	{
		case EV_GRANT_OPEN:
			break;
		case EV_GRANT_UNKNOWN:
			ev_call_refuse(call, "download grant");
			break;
		case EV_GRANT_UNCOMMITTED:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("download grant is not committed yet"),
					 errhint("Commit the transaction that granted the download, then fetch in a later one.")));
			break;
		case EV_GRANT_EXPIRED:
			ereport(ERROR,
					(errcode(EV_ERRCODE_GONE),
					 errmsg("download grant has expired"),
					 errhint("Get a new one from evidence.grant_audit_export_download(); the limit is pg_evidence.grant_ttl.")));
			break;
		case EV_GRANT_FROZEN:
			refuse_frozen();
			break;
		case EV_GRANT_REVOKED:
		case EV_GRANT_ARCHIVE_GONE:
			ereport(ERROR,
					(errcode(EV_ERRCODE_GONE),
					 errmsg("archive is gone: it expired or was revoked"),
					 errhint("Request the export again if it is still needed.")));
			break;
	}
}

/*
 * Are all chunks there, and those of the ledger?  Asked once per fetch, before
 * its first byte.
 */
static void
check_chunks(const EvGrant *grant)
{
	EvExportStatus status;

	if (!ev_export_load_status(&grant->export_id, false, &status) ||
		!ev_chunks_check(&status))
		refuse_mismatch();
}

static void
refuse_mismatch(void)
{
	ereport(ERROR,
			(errcode(EV_ERRCODE_MISMATCH),
			 errmsg("stored archive is not the one of the ledger"),
			 errhint("Do not use it. Run evidence.verify_audit_export() for the details and request the export again.")));
}

static void
refuse_frozen(void)
{
	ereport(ERROR,
			(errcode(EV_ERRCODE_MISMATCH),
			 errmsg("downloads of this archive are stopped by an open finding"),
			 errhint("Table evidence.finding tells what was found. An operator's freeze ends with evidence.unfreeze_audit_export(); if the object store is wrong, put it right and run \"pg_evidence reconcile\", or revoke the export and request it again.")));
}
