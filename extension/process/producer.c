/*-------------------------------------------------------------------------
 *
 * producer.c
 *	  From a contract to the bytes of records.csv and manifest.json.
 *
 * The reading loop of the ledger on one side, the package code on the other;
 * this file carries each value across: out of TOAST, into UTF-8, by its type.
 * Nothing here depends on the session's settings, since no output function of
 * the server is used (case C19).
 *
 * Memory is one row: a context that is reset after each of them.  The package
 * code's own memory comes from malloc and is freed by a callback of the
 * producer's context, so that an error frees it as well.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "base/errors.h"
#include "process/producer.h"
#include "process/utf8.h"

struct EvProducer
{
	const EvContract *contract;
	EvTempFile *spool;
	MemoryContext row_context;
	EvRedactor *redactor;
	EvPackage  *package;
	EvCsvWriter *csv;
	EvRecords	records;
	EvBuffer	manifest;
	EvError		error;
	EvProgressFunction progress;
	void	   *progress_arg;
	int64		rows_total;		/* -1 while counting */
	int64		rows_done;
	TimestampTz first_at;
	int64		first_id;
	TimestampTz last_at;
	int64		last_id;
};

static EvRule *to_package_rules(const EvStoredRule *rules, int nrules);
static void free_redactor(void *arg);
static void free_producer(void *arg);
static void on_reset(MemoryContext context, MemoryContextCallbackFunction func,
					 void *arg);
static EV_NORETURN void fail(EvProducer *producer);
static void write_header(EvProducer *producer);
static void write_row(void *arg, TupleTableSlot *slot);
static bool write_cell(EvProducer *producer, Oid type, Datum value);
static bool write_text(EvProducer *producer, Datum value);
static void at_safe_point(void *arg);
static char *to_utf8(const char *text);
static char *name_to_utf8(const char *name);
static int	compare_filters(const void *a, const void *b);

static EvRule *
to_package_rules(const EvStoredRule *rules, int nrules)
{
	EvRule	   *converted = palloc0(sizeof(EvRule) * Max(nrules, 1));
	int			i;

	for (i = 0; i < nrules; i++)
	{
		converted[i].name = rules[i].name;
		converted[i].pattern = rules[i].pattern;
		converted[i].anchors = (const char *const *) rules[i].anchors;
		converted[i].nanchors = rules[i].nanchors;
		converted[i].flags = rules[i].join_lines ? EV_RULE_JOIN_LINES : 0;
	}
	return converted;
}

EvRedactor *
ev_producer_compile(const EvStoredRule *rules, int nrules,
					MemoryContext context)
{
	EvError		error;
	EvRedactor *redactor;

	redactor = ev_redactor_create(to_package_rules(rules, nrules), nrules,
								  &error);
	if (redactor == NULL)
		ev_raise(&error);
	on_reset(context, free_redactor, redactor);
	return redactor;
}

void
ev_producer_ruleset_digest(const EvStoredRule *rules, int nrules, int version,
						   char hex[EV_SHA256_HEX])
{
	EvError		error;

	if (!ev_ruleset_digest(to_package_rules(rules, nrules), nrules, version,
						   hex, &error))
		ev_raise(&error);
}

static void
on_reset(MemoryContext context, MemoryContextCallbackFunction func, void *arg)
{
	MemoryContextCallback *callback =
	MemoryContextAllocZero(context, sizeof(MemoryContextCallback));

	callback->func = func;
	callback->arg = arg;
	MemoryContextRegisterResetCallback(context, callback);
}

static void
free_redactor(void *arg)
{
	ev_redactor_free(arg);
}

static void
free_producer(void *arg)
{
	EvProducer *producer = arg;

	ev_package_free(producer->package);
	ev_buffer_free(&producer->manifest);
}

/*
 * Manifests and digests are UTF-8 whatever the database's encoding is.  The
 * request was refused if its text could not be converted.
 */
static char *
to_utf8(const char *text)
{
	return pg_server_to_any(text, strlen(text), PG_UTF8);
}

/*
 * A role cannot be refused for its name as a request for its text, so in
 * SQL_ASCII the bytes of a name that are no UTF-8 are replaced like those of
 * a cell.
 */
static char *
name_to_utf8(const char *name)
{
	EvBuffer	repaired = {0};
	uint64_t	invalid;
	char	   *result;

	if (GetDatabaseEncoding() != PG_SQL_ASCII)
		return to_utf8(name);
	if (!ev_utf8_repair(name, strlen(name), &repaired, &invalid))
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	result = pnstrdup(repaired.data, repaired.length);
	ev_buffer_free(&repaired);
	return result;
}

EvFilter *
ev_producer_filters(Jsonb *filters, int *nfilters)
{
	int			size = JB_ROOT_COUNT(filters);
	EvFilter   *result = palloc0(sizeof(EvFilter) * Max(size, 1));
	EvFilter   *current = NULL;
	const char **values = NULL;
	JsonbIterator *iterator = JsonbIteratorInit(&filters->root);
	JsonbIteratorToken token;
	JsonbValue	value;

	*nfilters = 0;
	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			current = &result[(*nfilters)++];
			current->key = pnstrdup(value.val.string.val,
									value.val.string.len);
		}
		else if (token == WJB_BEGIN_ARRAY)
		{
			values = palloc(sizeof(char *) * Max(value.val.array.nElems, 1));
			current->values = values;
		}
		else if (token == WJB_ELEM)
			values[current->nvalues++] =
				to_utf8(pnstrdup(value.val.string.val, value.val.string.len));
	}
	qsort(result, *nfilters, sizeof(EvFilter), compare_filters);
	return result;
}

/* jsonb orders keys by length first, the canonical form does not. */
static int
compare_filters(const void *a, const void *b)
{
	return strcmp(((const EvFilter *) a)->key, ((const EvFilter *) b)->key);
}

void
ev_producer_request(const EvContract *contract, EvRequest *request)
{
	memset(request, 0, sizeof(EvRequest));
	request->source = contract->source;
	request->start_at = contract->start_at;
	request->end_at = contract->end_at;
	request->filters = ev_producer_filters(contract->filters,
										   &request->nfilters);
	request->columns = (const char *const *) contract->columns;
	request->ncolumns = contract->ncolumns;
	request->purpose = to_utf8(contract->purpose);
}

EvProducer *
ev_producer_create(const EvContract *contract, EvTempFile *spool,
				   MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	EvProducer *producer = palloc0(sizeof(EvProducer));

	producer->contract = contract;
	producer->spool = spool;
	producer->row_context = AllocSetContextCreate(context,
												  "pg_evidence row",
												  ALLOCSET_DEFAULT_SIZES);
	if (contract->redaction)
	{
		EvStoredRule *rules;
		int			nrules;

		nrules = ev_ruleset_load(contract->ruleset_version, &rules);
		producer->redactor = ev_producer_compile(rules, nrules, context);
	}
	producer->package = ev_package_create(producer->redactor,
										  spool ? &spool->file : NULL,
										  &producer->error);
	if (producer->package == NULL)
		fail(producer);
	on_reset(context, free_producer, producer);
	producer->csv = ev_package_csv(producer->package);
	MemoryContextSwitchTo(old);
	return producer;
}

/*
 * The package code failed: because of a callback of ours, whose error says
 * more, or by itself.
 */
static void
fail(EvProducer *producer)
{
	if (producer->spool != NULL)
		ev_tempfile_rethrow(producer->spool);
	ev_raise(&producer->error);
}

void
ev_producer_read(EvProducer *producer, int64 max_records,
				 EvProgressFunction progress, void *arg)
{
	int64		read;

	producer->progress = progress;
	producer->progress_arg = arg;
	producer->rows_total = -1;
	producer->rows_total = (int64) ev_reader_count(producer->contract,
												   at_safe_point, producer);
	if (max_records > 0 && producer->rows_total > max_records)
		ereport(ERROR,
				(errcode(EV_ERRCODE_TOO_MANY_ROWS),
				 errmsg("export has " INT64_FORMAT " records, more than the " INT64_FORMAT " that are allowed",
						producer->rows_total, max_records),
				 errhint("Request a shorter range or more filters, or ask an administrator to raise pg_evidence.max_records.")));

	write_header(producer);
	read = (int64) ev_reader_rows(producer->contract, write_row,
								  at_safe_point, producer);
	if (read != producer->rows_total)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("export read " INT64_FORMAT " records after it had counted " INT64_FORMAT,
						read, producer->rows_total)));
	if (!ev_package_close_records(producer->package, &producer->records,
								  &producer->error))
		fail(producer);
}

static void
at_safe_point(void *arg)
{
	EvProducer *producer = arg;

	if (producer->progress != NULL)
		producer->progress(producer->progress_arg, producer->rows_total,
						   producer->rows_done,
						   ev_package_packed(producer->package));
}

static void
write_header(EvProducer *producer)
{
	const EvContract *contract = producer->contract;
	int			i;

	for (i = 0; i < contract->ncolumns; i++)
	{
		if (!ev_csv_text(producer->csv, contract->columns[i],
						 strlen(contract->columns[i]), &producer->error))
			fail(producer);
	}
	if (!ev_csv_end_record(producer->csv, &producer->error))
		fail(producer);
}

static void
write_row(void *arg, TupleTableSlot *slot)
{
	EvProducer *producer = arg;
	int			ncolumns = producer->contract->ncolumns;
	MemoryContext old;
	int			i;

	slot_getallattrs(slot);
	producer->last_at = DatumGetTimestampTz(slot->tts_values[0]);
	producer->last_id = DatumGetInt64(slot->tts_values[1]);
	if (producer->rows_done == 0)
	{
		producer->first_at = producer->last_at;
		producer->first_id = producer->last_id;
	}

	old = MemoryContextSwitchTo(producer->row_context);
	for (i = EV_KEY_ATTRIBUTES; i < EV_KEY_ATTRIBUTES + ncolumns; i++)
	{
		bool		written;

		if (slot->tts_isnull[i])
			written = ev_csv_null(producer->csv, &producer->error);
		else
			written = write_cell(producer,
								 TupleDescAttr(slot->tts_tupleDescriptor,
											   i)->atttypid,
								 slot->tts_values[i]);
		if (!written)
			fail(producer);
	}
	if (!ev_csv_end_record(producer->csv, &producer->error))
		fail(producer);
	MemoryContextSwitchTo(old);
	MemoryContextReset(producer->row_context);
	producer->rows_done++;
}

static bool
write_cell(EvProducer *producer, Oid type, Datum value)
{
	switch (type)
	{
		case INT8OID:
			return ev_csv_integer(producer->csv, DatumGetInt64(value),
								  &producer->error);
		case TIMESTAMPTZOID:
			return ev_csv_timestamp(producer->csv, DatumGetTimestampTz(value),
									&producer->error);
		case TEXTOID:
			return write_text(producer, value);
		default:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot export a column of type %s",
							format_type_be(type))));
	}
	return false;
}

/*
 * In SQL_ASCII the bytes may be anything; the CSV writer repairs them.
 */
static bool
write_text(EvProducer *producer, Datum value)
{
	text	   *unpacked = DatumGetTextPP(value);
	const char *bytes = VARDATA_ANY(unpacked);
	size_t		length = VARSIZE_ANY_EXHDR(unpacked);

	bytes = ev_utf8_from_database(bytes, length, &length);
	return ev_csv_text(producer->csv, bytes, length, &producer->error);
}

const EvRecords *
ev_producer_records(const EvProducer *producer)
{
	return &producer->records;
}

int64
ev_producer_count(const EvProducer *producer)
{
	return producer->rows_total;
}

void
ev_producer_write_manifest(EvProducer *producer, int generation)
{
	const EvContract *contract = producer->contract;
	EvManifest	manifest = {0};

	ev_producer_request(contract, &manifest.request);
	manifest.export_id = ev_export_id_text(&contract->export_id);
	manifest.generation = generation;
	manifest.requested_by = name_to_utf8(contract->requested_by);
	manifest.requested_at = contract->requested_at;
	manifest.request_digest = contract->request_digest;
	manifest.policy_version = contract->policy_version;
	manifest.consistency = contract->consistency;
	manifest.snapshot_at = contract->snapshot_at;
	manifest.pg_snapshot = contract->snapshot_text;
	manifest.system_identifier = contract->system_identifier;
	manifest.redaction = contract->redaction;
	manifest.ruleset_version = contract->ruleset_version;
	manifest.ruleset_sha256 = contract->ruleset_sha256;
	manifest.producer_version = EV_VERSION;
	manifest.record_count = producer->rows_done;
	manifest.has_records = producer->rows_done > 0;
	manifest.first_at = producer->first_at;
	manifest.first_id = producer->first_id;
	manifest.last_at = producer->last_at;
	manifest.last_id = producer->last_id;
	manifest.records_bytes = producer->records.bytes;
	manifest.records_sha256 = producer->records.sha256;
	manifest.cells = producer->records.cells;

	ev_buffer_reset(&producer->manifest);
	if (!ev_manifest_json(&manifest, producer->redactor, &producer->manifest,
						  &producer->error))
		fail(producer);
}

void
ev_producer_write_archive(EvProducer *producer, int64 *start, int64 *size)
{
	int64_t		archive_start;
	int64_t		archive_size;

	if (!ev_package_write_archive(producer->package, producer->manifest.data,
								  producer->manifest.length, &archive_start,
								  &archive_size, &producer->error))
		fail(producer);
	*start = archive_start;
	*size = archive_size;
}
