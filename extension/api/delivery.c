/*-------------------------------------------------------------------------
 *
 * delivery.c
 *	  What an uploader calls: claim, read, confirm, remove, fail, compare.
 *
 * The uploader is a program of its own that may run anywhere.  It knows no
 * table, and its capability opens these functions and nothing else.  Each
 * call is meant to be a transaction of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "api/call.h"
#include "base/errors.h"
#include "base/pause.h"
#include "ledger/archive.h"
#include "ledger/delivery.h"
#include "ledger/instance.h"
#include "ledger/reconcile.h"
#include "process/scrub.h"

#define NAME_LIMIT 200
#define CODE_LIMIT 64
#define PREFIX_LIMIT 200
#define MULTIPART_LIMIT 1024
#define RETRY_AFTER_LIMIT 86400

static Tuplestorestate *begin_rows(FunctionCallInfo fcinfo);
static pg_uuid_t *token_argument(FunctionCallInfo fcinfo);
static char *bucket_argument(FunctionCallInfo fcinfo, int argument);
static char *prefix_argument(FunctionCallInfo fcinfo, int argument);
static char *sha256_argument(FunctionCallInfo fcinfo, int argument);
static EvDeliveryFailure class_argument(FunctionCallInfo fcinfo, int argument);
static void refuse_lost(void);

PG_FUNCTION_INFO_V1(ev_sql_claim_delivery);
PG_FUNCTION_INFO_V1(ev_sql_renew_delivery);
PG_FUNCTION_INFO_V1(ev_sql_read_delivery_chunk);
PG_FUNCTION_INFO_V1(ev_sql_record_sending);
PG_FUNCTION_INFO_V1(ev_sql_confirm_delivery);
PG_FUNCTION_INFO_V1(ev_sql_confirm_removal);
PG_FUNCTION_INFO_V1(ev_sql_fail_delivery);
PG_FUNCTION_INFO_V1(ev_sql_delivery_status);
PG_FUNCTION_INFO_V1(ev_sql_known_objects);
PG_FUNCTION_INFO_V1(ev_sql_record_reconciliation);

static Tuplestorestate *
begin_rows(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	return ((ReturnSetInfo *) fcinfo->resultinfo)->setResult;
}

static pg_uuid_t *
token_argument(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("delivery_token must not be null"),
				 errhint("Pass the token that claim_delivery() returned.")));
	return PG_GETARG_UUID_P(0);
}

/* What every store allows as the name of a bucket. */
static char *
bucket_argument(FunctionCallInfo fcinfo, int argument)
{
	char	   *bucket = ev_call_required_text(fcinfo, argument, "bucket", 63);

	if (strlen(bucket) < 3 ||
		strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") !=
		strlen(bucket))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bucket has no valid name"),
				 errhint("A bucket's name has 3 to 63 of a-z, 0-9, \".\" and \"-\".")));
	return bucket;
}

/*
 * The prefix becomes part of keys, so it is made of the same letters as they
 * are (case C53).
 */
static char *
prefix_argument(FunctionCallInfo fcinfo, int argument)
{
	char	   *prefix = ev_call_text(fcinfo, argument);
	size_t		length = prefix == NULL ? 0 : strlen(prefix);

	if (length == 0)
		return pstrdup("");
	if (length > PREFIX_LIMIT || prefix[0] == '/' ||
		prefix[length - 1] == '/' || strstr(prefix, "//") != NULL ||
		strspn(prefix, "abcdefghijklmnopqrstuvwxyz0123456789-/") != length)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("prefix has no valid form"),
				 errhint("Use names of a-z, 0-9 and \"-\", separated by single slashes, without one at either end.")));
	return prefix;
}

static char *
sha256_argument(FunctionCallInfo fcinfo, int argument)
{
	char	   *sha256 = ev_call_required_text(fcinfo, argument, "sha256", 64);

	if (strspn(sha256, "0123456789abcdef") != 64)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sha256 must be 64 lower-case hexadecimal digits"),
				 errhint("Pass the SHA-256 of what lies in the store.")));
	return sha256;
}

static void
refuse_lost(void)
{
	ereport(ERROR,
			(errcode(EV_ERRCODE_LOST_LEASE),
			 errmsg("delivery has lost its lease"),
			 errdetail("Its time ran out, or the export was cancelled or has ended meanwhile."),
			 errhint("Stop working on it; claim_delivery() tells what to do next.")));
}

Datum
ev_sql_claim_delivery(PG_FUNCTION_ARGS)
{
	Tuplestorestate *rows = begin_rows(fcinfo);
	EvCall		call;
	char	   *uploader = ev_call_required_text(fcinfo, 0, "uploader",
												 NAME_LIMIT);
	char	   *bucket = bucket_argument(fcinfo, 1);
	char	   *prefix = prefix_argument(fcinfo, 2);
	pg_uuid_t	incarnation;

	ev_call_begin(&call, "claim_delivery", EV_UPLOADER);
	ev_instance_require(&incarnation);
	if (prefix[0] != '\0')
		prefix = psprintf("%s/", prefix);
	ev_delivery_claim(ev_scrub(uploader), call.role, bucket, prefix, rows);
	ev_call_end(&call);
	PG_RETURN_NULL();
}

Datum
ev_sql_renew_delivery(PG_FUNCTION_ARGS)
{
	EvCall		call;
	pg_uuid_t  *token = token_argument(fcinfo);
	bool		alive;

	ev_call_begin(&call, "renew_delivery", EV_UPLOADER);
	alive = ev_delivery_renew(token);
	ev_call_end(&call);
	PG_RETURN_BOOL(alive);
}

Datum
ev_sql_read_delivery_chunk(PG_FUNCTION_ARGS)
{
	EvCall		call;
	pg_uuid_t  *token = token_argument(fcinfo);
	pg_uuid_t	archive_token;
	bytea	   *data;

	if (PG_ARGISNULL(1) || PG_GETARG_INT32(1) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("seq must not be null or negative"),
				 errhint("Chunks are counted from 0.")));
	ev_call_begin(&call, "read_delivery_chunk", EV_UPLOADER);
	if (!ev_delivery_archive(token, &archive_token))
		refuse_lost();
	data = ev_chunk_read(&archive_token, PG_GETARG_INT32(1));
	ev_call_end(&call);
	if (data == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("archive has no chunk %d", PG_GETARG_INT32(1)),
				 errhint("claim_delivery() tells how many there are.")));
	PG_RETURN_BYTEA_P(data);
}

Datum
ev_sql_record_sending(PG_FUNCTION_ARGS)
{
	EvCall		call;
	pg_uuid_t  *token = token_argument(fcinfo);
	char	   *multipart_id = ev_call_text(fcinfo, 1);

	if (multipart_id != NULL)
		multipart_id = ev_call_required_text(fcinfo, 1, "multipart_id",
											 MULTIPART_LIMIT);
	ev_call_begin(&call, "record_sending", EV_UPLOADER);
	if (!ev_delivery_sending(token, multipart_id))
		refuse_lost();
	ev_pause_at("sending");
	ev_call_end(&call);
	PG_RETURN_VOID();
}

Datum
ev_sql_confirm_delivery(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvDelivered found = {0};
	pg_uuid_t  *token = token_argument(fcinfo);
	const char *answer = "READY";

	if (PG_ARGISNULL(1) || PG_GETARG_INT64(1) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bytes must not be null or negative"),
				 errhint("Pass the size of what lies in the store.")));
	found.bytes = PG_GETARG_INT64(1);
	found.sha256 = sha256_argument(fcinfo, 2);
	found.version = ev_call_text(fcinfo, 3);
	found.lock_mode = ev_call_text(fcinfo, 4);
	if (!PG_ARGISNULL(5))
		found.locked_until = PG_GETARG_TIMESTAMPTZ(5);
	found.legal_hold = !PG_ARGISNULL(6) && PG_GETARG_BOOL(6);
	if (found.lock_mode != NULL &&
		strcmp(found.lock_mode, "GOVERNANCE") != 0 &&
		strcmp(found.lock_mode, "COMPLIANCE") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("lock_mode must be GOVERNANCE or COMPLIANCE"),
				 errhint("Leave it out where the store keeps no retention.")));

	ev_call_begin(&call, "confirm_delivery", EV_UPLOADER);
	switch (ev_delivery_confirm(token, &found))
	{
		case EV_DELIVERY_DONE:
			break;
		case EV_DELIVERY_QUARANTINED:
			answer = "QUARANTINED";
			break;
		case EV_DELIVERY_LOST:
			refuse_lost();
			break;
	}
	ev_pause_at("confirming");
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text(answer));
}

Datum
ev_sql_confirm_removal(PG_FUNCTION_ARGS)
{
	EvCall		call;
	pg_uuid_t  *token = token_argument(fcinfo);

	ev_call_begin(&call, "confirm_removal", EV_UPLOADER);
	if (!ev_delivery_removed(token, !PG_ARGISNULL(1) && PG_GETARG_BOOL(1)))
		refuse_lost();
	ev_pause_at("removing");
	ev_call_end(&call);
	PG_RETURN_VOID();
}

static EvDeliveryFailure
class_argument(FunctionCallInfo fcinfo, int argument)
{
	char	   *name = ev_call_required_text(fcinfo, argument, "class", 20);

	if (strcmp(name, "deferral") == 0)
		return EV_DELIVERY_DEFERRAL;
	if (strcmp(name, "transient") == 0)
		return EV_DELIVERY_TRANSIENT;
	if (strcmp(name, "definite") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("class must be deferral, transient or definite"),
				 errhint("A deferral is no fault of the item; a definite failure cannot be helped by trying again.")));
	return EV_DELIVERY_DEFINITE;
}

Datum
ev_sql_fail_delivery(PG_FUNCTION_ARGS)
{
	EvCall		call;
	pg_uuid_t  *token = token_argument(fcinfo);
	EvDeliveryFailure failure = class_argument(fcinfo, 1);
	char	   *code = ev_call_required_text(fcinfo, 2, "code", CODE_LIMIT);
	char	   *message = ev_scrub(ev_call_required_text(fcinfo, 3, "message",
														 EV_REASON_LIMIT));
	int			retry_after = 0;
	TimestampTz not_before = 0;
	char	   *state;

	if (!PG_ARGISNULL(4))
		retry_after = Min(Max(PG_GETARG_INT32(4), 0), RETRY_AFTER_LIMIT);
	if (!PG_ARGISNULL(5))
		not_before = PG_GETARG_TIMESTAMPTZ(5);
	ev_call_begin(&call, "fail_delivery", EV_UPLOADER);
	state = ev_delivery_fail(token, failure, code, message, retry_after,
							 not_before);
	if (state == NULL)
		refuse_lost();
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text(state));
}

Datum
ev_sql_delivery_status(PG_FUNCTION_ARGS)
{
	Tuplestorestate *rows = begin_rows(fcinfo);
	EvCall		call;

	ev_call_begin(&call, "delivery_status", EV_UPLOADER | EV_OPERATOR);
	ev_delivery_status(rows);
	ev_call_end(&call);
	PG_RETURN_NULL();
}

Datum
ev_sql_known_objects(PG_FUNCTION_ARGS)
{
	Tuplestorestate *rows = begin_rows(fcinfo);
	EvCall		call;
	char	   *bucket = bucket_argument(fcinfo, 0);
	pg_uuid_t	incarnation;

	/* A restored copy knows nothing of what the store got since. */
	ev_call_begin(&call, "known_objects", EV_UPLOADER);
	ev_instance_require(&incarnation);
	ev_reconcile_known(bucket, rows);
	ev_call_end(&call);
	PG_RETURN_NULL();
}

Datum
ev_sql_record_reconciliation(PG_FUNCTION_ARGS)
{
	EvCall		call;
	char	   *bucket = bucket_argument(fcinfo, 0);
	char	   *prefix = prefix_argument(fcinfo, 1);
	int64		open;

	if (PG_ARGISNULL(2) || PG_ARGISNULL(3) || PG_ARGISNULL(4) ||
		!JB_ROOT_IS_ARRAY(PG_GETARG_JSONB_P(4)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("started_at, objects and findings must be given, findings as an array"),
				 errhint("An empty array says that nothing was found.")));
	ev_call_begin(&call, "record_reconciliation", EV_UPLOADER);
	open = ev_reconcile_record(bucket, prefix, call.role,
							   PG_GETARG_TIMESTAMPTZ(2), PG_GETARG_INT64(3),
							   PG_GETARG_JSONB_P(4));
	ev_call_end(&call);
	PG_RETURN_INT64(open);
}
