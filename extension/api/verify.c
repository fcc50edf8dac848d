/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  verify_audit_export(): make the records again and compare.
 *
 * The contract says which rows belong, for ever.  Reading them again now and
 * getting the same SHA-256 shows that the log has not been altered since the
 * export; comparing the chunks with their digests shows that the archive has
 * not been either.  A difference is a row with ok = false and not an error,
 * so that one call names all of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "api/call.h"
#include "base/clock.h"
#include "base/errors.h"
#include "ledger/archive.h"
#include "ledger/instance.h"
#include "ledger/ruleset.h"
#include "package/manifest.h"
#include "process/producer.h"

static void add_check(ReturnSetInfo *result, const char *name, bool ok,
					  char *detail);
static void check_contract(ReturnSetInfo *result, const EvContract *contract);
static void check_records(ReturnSetInfo *result, const EvContract *contract,
						  const EvExportStatus *status);
static void check_archive(ReturnSetInfo *result,
						  const EvExportStatus *status);

PG_FUNCTION_INFO_V1(ev_sql_verify_audit_export);

Datum
ev_sql_verify_audit_export(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	pg_uuid_t  *id = ev_call_export_id(fcinfo, 0);
	EvCall		call;
	EvExportStatus status;
	EvContract	contract;
	pg_uuid_t	incarnation;

	InitMaterializedSRF(fcinfo, 0);
	ev_call_begin(&call, "verify_audit_export",
				  EV_REQUESTER | EV_OPERATOR | EV_AUDITOR);
	ev_instance_require(&incarnation);
	ev_call_load_export(&call, id, EV_OPERATOR | EV_AUDITOR, false, &status);
	if (status.archive_sha256 == NULL)
		ereport(ERROR,
				(errcode(EV_ERRCODE_NOT_READY),
				 errmsg("export has nothing to verify: its state is %s",
						status.state),
				 errhint("Only an export that has become READY can be verified.")));
	if (!ev_export_load_contract(id, &contract))
		ev_call_refuse(&call, "export");

	add_check(result, "incarnation",
			  memcmp(&contract.incarnation, &incarnation, UUID_LEN) == 0,
			  "the contract was made by this ledger's present incarnation");
	check_contract(result, &contract);
	check_records(result, &contract, &status);
	check_archive(result, &status);
	ev_call_end(&call);
	PG_RETURN_NULL();
}

static void
add_check(ReturnSetInfo *result, const char *name, bool ok, char *detail)
{
	Datum		values[3];
	bool		nulls[3] = {false, false, false};

	values[0] = CStringGetTextDatum(name);
	values[1] = BoolGetDatum(ok);
	values[2] = CStringGetTextDatum(detail);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * The contract cannot be changed through any statement; these two show it for
 * somebody who does not believe that.
 */
static void
check_contract(ReturnSetInfo *result, const EvContract *contract)
{
	EvRequest	request;
	EvStoredRule *rules;
	EvError		error;
	char		digest[EV_SHA256_HEX];
	int			nrules;

	ev_producer_request(contract, &request);
	if (!ev_request_digest(&request, digest, &error))
		ev_raise(&error);
	add_check(result, "request_digest",
			  strcmp(digest, contract->request_digest) == 0,
			  psprintf("SHA-256 of the request, stored %s, computed %s",
					   contract->request_digest, digest));

	nrules = ev_ruleset_load(contract->ruleset_version, &rules);
	ev_producer_ruleset_digest(rules, nrules, contract->ruleset_version,
							   digest);
	add_check(result, "redaction_rules",
			  strcmp(digest, contract->ruleset_sha256) == 0,
			  psprintf("SHA-256 of ruleset version %d, stored %s, computed %s",
					   contract->ruleset_version, contract->ruleset_sha256,
					   digest));
}

/*
 * In the newest snapshot: one that is older than the contract's would miss
 * rows that belong.
 */
static void
check_records(ReturnSetInfo *result, const EvContract *contract,
			  const EvExportStatus *status)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_evidence verify",
												  ALLOCSET_DEFAULT_SIZES);
	EvProducer *producer;
	const EvRecords *records;

	PushActiveSnapshot(GetLatestSnapshot());
	producer = ev_producer_create(contract, NULL, context);
	ev_producer_read(producer, 0, NULL, NULL);
	PopActiveSnapshot();

	records = ev_producer_records(producer);
	add_check(result, "record_count",
			  ev_producer_count(producer) == status->record_count,
			  psprintf("exported " INT64_FORMAT ", in the log now " INT64_FORMAT,
					   status->record_count, ev_producer_count(producer)));
	add_check(result, "records_sha256",
			  strcmp(records->sha256, status->records_sha256) == 0,
			  psprintf("SHA-256 of records.csv, exported %s, from the log now %s",
					   status->records_sha256, records->sha256));
	MemoryContextDelete(context);
}

static void
check_archive(ReturnSetInfo *result, const EvExportStatus *status)
{
	bool		available = strcmp(status->state, "READY") == 0 &&
	status->expires_at > ev_clock_now();

	if (available && status->object_key != NULL)
	{
		add_check(result, "archive", true,
				  psprintf("in bucket %s, as it was when it became READY; pg_evidence reconcile looks whether it still is",
						   status->object_bucket));
		return;
	}
	if (!available && !ev_chunks_exist(status))
	{
		add_check(result, "archive", true,
				  "the archive is gone, as it must be after its window");
		return;
	}
	add_check(result, "archive_chunks", ev_chunks_check(status),
			  psprintf("%d chunks, " INT64_FORMAT " bytes",
					   status->archive_chunks, status->archive_bytes));
	add_check(result, "archive_sha256", ev_chunks_check_bytes(status),
			  psprintf("SHA-256 of the archive, stored %s",
					   status->archive_sha256));
}
