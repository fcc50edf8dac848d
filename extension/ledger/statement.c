/*-------------------------------------------------------------------------
 *
 * statement.c
 *	  Run one prepared SQL statement of the ledger and read its result.
 *
 * A thin layer over SPI that takes three things off every caller: keeping
 * plans, counting parameters and copying results out of SPI's memory.
 *
 * Plans are kept for the life of the process.  A dropped and recreated
 * extension is no danger to them: the plan cache parses the text again when
 * the objects it refers to change.
 *
 * Statements run as whoever the process acts as, so callers become the owner
 * first (base/owner.h); nothing here judges rights.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"

#include "ledger/statement.h"

static void add(EvParameters *p, Oid type, Datum value, bool isnull);
static void prepare(EvStatement *statement, EvParameters *p);
static Datum get(uint64 row, int column, bool *isnull);

void
ev_add_text(EvParameters *p, const char *value)
{
	add(p, TEXTOID, value ? CStringGetTextDatum(value) : (Datum) 0,
		value == NULL);
}

void
ev_add_uuid(EvParameters *p, const pg_uuid_t *value)
{
	add(p, UUIDOID, value ? UUIDPGetDatum(value) : (Datum) 0, value == NULL);
}

void
ev_add_int4(EvParameters *p, int32 value)
{
	add(p, INT4OID, Int32GetDatum(value), false);
}

void
ev_add_int8(EvParameters *p, int64 value)
{
	add(p, INT8OID, Int64GetDatum(value), false);
}

void
ev_add_bool(EvParameters *p, bool value)
{
	add(p, BOOLOID, BoolGetDatum(value), false);
}

void
ev_add_time(EvParameters *p, TimestampTz value)
{
	add(p, TIMESTAMPTZOID, TimestampTzGetDatum(value), false);
}

void
ev_add_xid8(EvParameters *p, FullTransactionId value)
{
	add(p, XID8OID, FullTransactionIdGetDatum(value), false);
}

void
ev_add_jsonb(EvParameters *p, Jsonb *value)
{
	add(p, JSONBOID, value ? JsonbPGetDatum(value) : (Datum) 0, value == NULL);
}

void
ev_add_bytes(EvParameters *p, const void *data, size_t length)
{
	bytea	   *value = palloc(VARHDRSZ + length);

	SET_VARSIZE(value, VARHDRSZ + length);
	memcpy(VARDATA(value), data, length);
	add(p, BYTEAOID, PointerGetDatum(value), false);
}

void
ev_add_texts(EvParameters *p, const char *const *values, int count)
{
	Datum	   *elements = palloc(sizeof(Datum) * Max(count, 1));
	int			i;

	for (i = 0; i < count; i++)
		elements[i] = CStringGetTextDatum(values[i]);
	add(p, TEXTARRAYOID,
		PointerGetDatum(construct_array(elements, count, TEXTOID, -1, false,
										TYPALIGN_INT)),
		false);
}

void
ev_add_uuids(EvParameters *p, const pg_uuid_t *values, int count)
{
	Datum	   *elements = palloc(sizeof(Datum) * Max(count, 1));
	int			i;

	for (i = 0; i < count; i++)
		elements[i] = UUIDPGetDatum(&values[i]);
	add(p, UUIDARRAYOID,
		PointerGetDatum(construct_array(elements, count, UUIDOID, UUID_LEN,
										false, TYPALIGN_CHAR)),
		false);
}

void
ev_add_datum(EvParameters *p, Oid type, Datum value)
{
	add(p, type, value, false);
}

static void
add(EvParameters *p, Oid type, Datum value, bool isnull)
{
	if (p->count >= EV_MAX_PARAMETERS)
		elog(ERROR, "too many parameters for one statement");
	p->types[p->count] = type;
	p->values[p->count] = value;
	p->nulls[p->count] = isnull ? 'n' : ' ';
	p->count++;
}

void
ev_statements_begin(void)
{
	int			rc = SPI_connect();

	if (rc != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed: %s", SPI_result_code_string(rc));
}

void
ev_statements_end(void)
{
	int			rc = SPI_finish();

	if (rc != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed: %s", SPI_result_code_string(rc));
}

void
ev_statements_begin_procedure(void)
{
	int			rc = SPI_connect_ext(SPI_OPT_NONATOMIC);

	if (rc != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect_ext failed: %s", SPI_result_code_string(rc));
}

void
ev_statements_commit(void)
{
	SPI_commit();
}

void
ev_statements_rollback(void)
{
	SPI_rollback();
}

static void
prepare(EvStatement *statement, EvParameters *p)
{
	SPIPlanPtr	plan;

	if (statement->plan != NULL)
		return;
	plan = SPI_prepare(statement->text, p ? p->count : 0, p ? p->types : NULL);
	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not prepare a statement: %s",
			 SPI_result_code_string(SPI_result));
	statement->plan = plan;
}

uint64
ev_statement_run(EvStatement *statement, EvParameters *p)
{
	int			rc;

	prepare(statement, p);
	rc = SPI_execute_plan(statement->plan, p ? p->values : NULL,
						  p ? p->nulls : NULL, false, 0);
	if (rc < 0)
		elog(ERROR, "could not execute a statement: %s",
			 SPI_result_code_string(rc));
	return SPI_processed;
}

uint64
ev_statement_run_latest(EvStatement *statement, EvParameters *p)
{
	int			rc;

	prepare(statement, p);
	rc = SPI_execute_snapshot(statement->plan, p ? p->values : NULL,
							  p ? p->nulls : NULL, GetLatestSnapshot(),
							  InvalidSnapshot, false, true, 0);
	if (rc < 0)
		elog(ERROR, "could not execute a statement: %s",
			 SPI_result_code_string(rc));
	return SPI_processed;
}

static Datum
get(uint64 row, int column, bool *isnull)
{
	if (row >= SPI_processed || SPI_tuptable == NULL)
		elog(ERROR, "statement returned too few rows");
	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						 column, isnull);
}

bool
ev_result_is_null(uint64 row, int column)
{
	bool		isnull;

	(void) get(row, column, &isnull);
	return isnull;
}

char *
ev_result_text(uint64 row, int column)
{
	bool		isnull;
	Datum		value = get(row, column, &isnull);
	text	   *unpacked;
	char	   *copy;
	size_t		length;

	if (isnull)
		return NULL;
	unpacked = DatumGetTextPP(value);
	length = VARSIZE_ANY_EXHDR(unpacked);
	copy = SPI_palloc(length + 1);
	memcpy(copy, VARDATA_ANY(unpacked), length);
	copy[length] = '\0';
	return copy;
}

bool
ev_result_uuid(uint64 row, int column, pg_uuid_t *value)
{
	bool		isnull;
	Datum		datum = get(row, column, &isnull);

	if (!isnull)
		memcpy(value, DatumGetUUIDP(datum), UUID_LEN);
	return !isnull;
}

int32
ev_result_int4(uint64 row, int column)
{
	bool		isnull;
	Datum		value = get(row, column, &isnull);

	return isnull ? 0 : DatumGetInt32(value);
}

int64
ev_result_int8(uint64 row, int column)
{
	bool		isnull;
	Datum		value = get(row, column, &isnull);

	return isnull ? 0 : DatumGetInt64(value);
}

bool
ev_result_bool(uint64 row, int column)
{
	bool		isnull;
	Datum		value = get(row, column, &isnull);

	return isnull ? false : DatumGetBool(value);
}

TimestampTz
ev_result_time(uint64 row, int column)
{
	bool		isnull;
	Datum		value = get(row, column, &isnull);

	return isnull ? 0 : DatumGetTimestampTz(value);
}

Datum
ev_result_datum(uint64 row, int column, bool *isnull)
{
	Datum		value = get(row, column, isnull);
	Oid			type = SPI_gettypeid(SPI_tuptable->tupdesc, column);
	int16		length;
	bool		by_value;

	if (*isnull)
		return (Datum) 0;
	get_typlenbyval(type, &length, &by_value);
	if (length == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM(value));
	return SPI_datumTransfer(value, by_value, length);
}

void
ev_result_store(Tuplestorestate *store)
{
	uint64		row;

	for (row = 0; row < SPI_processed; row++)
		tuplestore_puttuple(store, SPI_tuptable->vals[row]);
}

/*
 * Long values are put together where they are wanted, without a copy between.
 */
bytea *
ev_result_bytes(uint64 row, int column, MemoryContext context)
{
	bool		isnull;
	Datum		value = get(row, column, &isnull);
	MemoryContext old;
	bytea	   *bytes;

	if (isnull)
		return NULL;
	old = MemoryContextSwitchTo(context);
	bytes = (bytea *) PG_DETOAST_DATUM_COPY(value);
	MemoryContextSwitchTo(old);
	return bytes;
}

char	  **
ev_result_texts(uint64 row, int column, int *count)
{
	bool		isnull;
	Datum		value = get(row, column, &isnull);
	Datum	   *elements;
	char	  **copies;
	int			i;

	*count = 0;
	if (isnull)
		return NULL;
	deconstruct_array(DatumGetArrayTypeP(value), TEXTOID, -1, false,
					  TYPALIGN_INT, &elements, NULL, count);
	copies = SPI_palloc(sizeof(char *) * Max(*count, 1));
	for (i = 0; i < *count; i++)
	{
		text	   *element = DatumGetTextPP(elements[i]);
		size_t		length = VARSIZE_ANY_EXHDR(element);

		copies[i] = SPI_palloc(length + 1);
		memcpy(copies[i], VARDATA_ANY(element), length);
		copies[i][length] = '\0';
	}
	return copies;
}
