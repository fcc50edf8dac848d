/*-------------------------------------------------------------------------
 *
 * request.c
 *	  request_audit_export(): commit a durable request.
 *
 * The order of the steps is what makes it right at every isolation level.
 * First the arguments, which need no lock.  Then the locks: the source's row
 * against retention, the requester's row against other requests.  Only then
 * what they protect is read, each time in the newest snapshot: the key, the
 * watermark, the quota.  Last the snapshot of the contract is pinned and the
 * rows are written, with the audit row, in the caller's transaction
 * (requirements S1.19, S1.20; cases C37, C38, C47).
 *
 * Nothing outside the transaction happens before its commit, which wakes the
 * launcher.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/admission.h"
#include "api/call.h"
#include "api/filters.h"
#include "base/clock.h"
#include "base/errors.h"
#include "base/settings.h"
#include "ledger/audit.h"
#include "ledger/instance.h"
#include "ledger/ruleset.h"
#include "package/manifest.h"
#include "process/producer.h"
#include "process/wakeup.h"

#define KEY_LIMIT 200

/* There is one export policy so far. */
#define POLICY_VERSION 1

static void read_range(FunctionCallInfo fcinfo, EvContract *contract);
static void choose_columns(FunctionCallInfo fcinfo, const EvSource *source,
						   EvContract *contract);
static void pin_rules(EvContract *contract);
static char *digest_request(const EvContract *contract);
static bool find_earlier(const EvContract *contract, const char *key,
						 pg_uuid_t *id);

PG_FUNCTION_INFO_V1(ev_sql_request_audit_export);

Datum
ev_sql_request_audit_export(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvSource	source;
	EvContract	contract = {0};
	TimestampTz watermark;
	char	   *key = ev_call_text(fcinfo, 3);
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

	ev_call_begin(&call, "request_audit_export", EV_REQUESTER | EV_OPERATOR);
	ev_instance_require(&contract.incarnation);

	read_range(fcinfo, &contract);
	contract.purpose = ev_call_required_text(fcinfo, 2, "purpose",
											 EV_REASON_LIMIT);
	if (key != NULL && (key[0] == '\0' || strlen(key) > KEY_LIMIT))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("idempotency_key must have between 1 and %d bytes",
						KEY_LIMIT),
				 errhint("Use a short unique text for each intended export, or leave it out.")));
	contract.source = ev_call_text(fcinfo, 4);
	if (contract.source == NULL || !ev_source_load(contract.source, &source))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("audit source \"%s\" does not exist",
						contract.source ? contract.source : ""),
				 errhint("The built-in source is \"audit_log\".")));
	contract.table_name = source.table_name;
	contract.column_version = source.column_version;
	contract.consistency = source.consistency;
	contract.filters =
		ev_filters_canonical(PG_ARGISNULL(5) ? NULL : PG_GETARG_JSONB_P(5));
	choose_columns(fcinfo, &source, &contract);
	contract.policy_version = POLICY_VERSION;
	pin_rules(&contract);
	contract.request_digest = digest_request(&contract);
	contract.requested_by = call.role;
	contract.session_role = call.session_role;

	watermark = ev_admission_lock(&contract);

	if (key == NULL || !find_earlier(&contract, key, id))
	{
		ev_admission_check(&contract, watermark);
		contract.requested_at = ev_clock_now();
		ev_export_pin_snapshot(&contract);
		ev_export_insert(&contract, key, NULL);
		ev_audit_append_action("audit_export.request", call.role,
							   call.session_role,
							   "audit_export", ev_export_id_text(&contract.export_id),
							   contract.purpose);
		ev_wakeup_at_commit();
		*id = contract.export_id;
	}
	ev_call_end(&call);
	PG_RETURN_UUID_P(id);
}

/*
 * Half-open, finite, and at most max_range long; a day is 24 hours whatever
 * the session's time zone says (case C20).
 */
static void
read_range(FunctionCallInfo fcinfo, EvContract *contract)
{
	int64		length;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) ||
		TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(0)) ||
		TIMESTAMP_NOT_FINITE(PG_GETARG_TIMESTAMPTZ(1)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("start_at and end_at must be finite times"),
				 errhint("The range is start_at <= created_at < end_at.")));
	contract->start_at = PG_GETARG_TIMESTAMPTZ(0);
	contract->end_at = PG_GETARG_TIMESTAMPTZ(1);
	if (contract->end_at == contract->start_at)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("range is empty: start_at equals end_at"),
				 errhint("The end is excluded: the range is start_at <= created_at < end_at.")));
	if (contract->end_at < contract->start_at)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("range is reversed: end_at is before start_at"),
				 errhint("Exchange the two times.")));
	if (pg_sub_s64_overflow(contract->end_at, contract->start_at, &length) ||
		length > (int64) ev_max_range * USECS_PER_SEC)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("range is longer than %d hours (%.1f days)",
						ev_max_range / SECS_PER_HOUR,
						(double) ev_max_range / SECS_PER_DAY),
				 errhint("Split the request into neighbouring ranges; no record will be in two of them.")));
}

/*
 * Only columns of the source's list can ever be exported, and always in its
 * order.
 */
static void
choose_columns(FunctionCallInfo fcinfo, const EvSource *source,
			   EvContract *contract)
{
	Datum	   *wanted;
	bool	   *nulls;
	bool	   *chosen = palloc0(sizeof(bool) * source->ncolumns);
	int			nwanted = 0;
	int			i;
	int			j;

	if (!PG_ARGISNULL(6))
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(6), TEXTOID, -1, false,
						  TYPALIGN_INT, &wanted, &nulls, &nwanted);
	for (i = 0; i < nwanted; i++)
	{
		char	   *name = nulls[i] ? "" : TextDatumGetCString(wanted[i]);

		for (j = 0; j < source->ncolumns; j++)
		{
			if (strcmp(source->columns[j], name) == 0)
				break;
		}
		if (j == source->ncolumns)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("column \"%s\" cannot be exported", name),
					 errhint("Leave columns out to get all that can, or see evidence.audit_source.")));
		if (chosen[j])
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("column \"%s\" is named twice", name),
					 errhint("Name each column once; the file has the order of the source.")));
		chosen[j] = true;
	}

	contract->columns = palloc(sizeof(char *) * source->ncolumns);
	for (j = 0; j < source->ncolumns; j++)
	{
		if (nwanted == 0 || chosen[j])
			contract->columns[contract->ncolumns++] = source->columns[j];
	}

	/* NULL alone in a record would be an empty line, which readers skip. */
	if (contract->ncolumns == 1 &&
		!ev_source_column_required(source, contract->columns[0]))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("column \"%s\" cannot be exported alone, since it may be null",
						contract->columns[0]),
				 errhint("Add a second column, for instance id.")));
}

/*
 * A version never changes, so a session reads the rules once for all requests
 * that it makes.
 */
static void
pin_rules(EvContract *contract)
{
	static EvRuleset known;
	static char known_sha256[EV_SHA256_HEX];
	EvRuleset	newest = ev_ruleset_newest();

	if (known_sha256[0] == '\0' ||
		memcmp(&newest, &known, sizeof(EvRuleset)) != 0)
	{
		EvStoredRule *rules;
		int			nrules = ev_ruleset_load(newest.version, &rules);

		/* An error on the way must not leave half of it behind. */
		known_sha256[0] = '\0';
		ev_producer_ruleset_digest(rules, nrules, newest.version,
								   known_sha256);
		known = newest;
	}
	contract->redaction = ev_redaction;
	contract->ruleset_version = newest.version;
	contract->ruleset_sha256 = pstrdup(known_sha256);
}

static char *
digest_request(const EvContract *contract)
{
	EvRequest	request;
	EvError		error;
	char	   *hex = palloc(EV_SHA256_HEX);

	ev_producer_request(contract, &request);
	if (!ev_request_digest(&request, hex, &error))
		ev_raise(&error);
	return hex;
}

static bool
find_earlier(const EvContract *contract, const char *key, pg_uuid_t *id)
{
	char	   *digest;

	if (!ev_export_find_key(contract->requested_by, key, id, &digest))
		return false;
	if (strcmp(digest, contract->request_digest) != 0)
		ereport(ERROR,
				(errcode(EV_ERRCODE_CONFLICT),
				 errmsg("idempotency key was used for another request"),
				 errdetail("It belongs to export \"%s\", which has other parameters.",
						   ev_export_id_text(id)),
				 errhint("Repeat that request unchanged to get its id, or use a new key.")));
	return true;
}
