/*-------------------------------------------------------------------------
 *
 * ship_record.c
 *	  From a row of the audit log to the line that is shipped.
 *
 * All columns go in, those too that exports leave out, since the sink is the
 * site's own (decision X7); known shapes of secrets are replaced by the rules
 * that exports use.  No output function of the server is used for the types
 * that the log has, so a record does not depend on anybody's settings.  A
 * column that a site has added is written as its text.
 *
 * A value that cannot be read, say from a damaged TOAST table, must not hold
 * up all the others.  Where that can happen the row is read in a
 * subtransaction of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"

#include "base/errors.h"
#include "base/settings.h"
#include "ledger/ruleset.h"
#include "process/failure.h"
#include "process/producer.h"
#include "process/ship_record.h"
#include "process/utf8.h"

struct EvRecorder
{
	MemoryContext context;
	MemoryContext rules_context;	/* owns redactor */
	MemoryContext row_context;
	EvRedactor *redactor;		/* NULL: nothing is redacted */
	EvRuleset	ruleset;
	EvLine		line;
};

static void free_line(void *arg);
static bool is_safe(const EvShippingRow *row);
static char *make_safely(EvRecorder *recorder, const EvShippingRow *row);
static void make(EvRecorder *recorder, const EvShippingRow *row);
static void begin_line(EvRecorder *recorder, const EvShippingRow *row);
static void put_field(EvRecorder *recorder, const char *name, Oid type,
					  Datum value);
static void put_text(EvRecorder *recorder, const char *name, Datum value);
static void put_other(EvRecorder *recorder, const char *name, Oid type,
					  Datum value);
static const char *name_of(Form_pg_attribute column);

EvRecorder *
ev_recorder_create(MemoryContext context)
{
	EvRecorder *recorder = MemoryContextAllocZero(context, sizeof(EvRecorder));
	MemoryContextCallback *callback;

	recorder->context = context;
	recorder->row_context = AllocSetContextCreate(context,
												  "pg_evidence record",
												  ALLOCSET_DEFAULT_SIZES);
	callback = MemoryContextAllocZero(context, sizeof(MemoryContextCallback));
	callback->func = free_line;
	callback->arg = recorder;
	MemoryContextRegisterResetCallback(context, callback);
	return recorder;
}

static void
free_line(void *arg)
{
	ev_line_free(&((EvRecorder *) arg)->line);
}

/*
 * To compile the rules costs as much as some thousand records, so they are
 * kept until others are in force.
 */
void
ev_recorder_refresh(EvRecorder *recorder)
{
	EvRuleset	newest = {0};
	EvStoredRule *rules;
	int			nrules;
	MemoryContext old;
	MemoryContext rules_context;

	if (ev_ship_redaction)
		newest = ev_ruleset_newest();
	if (memcmp(&newest, &recorder->ruleset, sizeof(EvRuleset)) == 0)
		return;

	if (recorder->rules_context != NULL)
		MemoryContextDelete(recorder->rules_context);
	recorder->rules_context = NULL;
	recorder->redactor = NULL;
	memset(&recorder->ruleset, 0, sizeof(EvRuleset));
	if (!ev_ship_redaction)
		return;

	rules_context = AllocSetContextCreate(recorder->context,
										  "pg_evidence rules",
										  ALLOCSET_SMALL_SIZES);
	recorder->rules_context = rules_context;
	old = MemoryContextSwitchTo(recorder->row_context);
	nrules = ev_ruleset_load(newest.version, &rules);
	recorder->redactor = ev_producer_compile(rules, nrules, rules_context);
	recorder->ruleset = newest;
	MemoryContextSwitchTo(old);
	MemoryContextReset(recorder->row_context);
}

bool
ev_recorder_make(EvRecorder *recorder, const EvShippingRow *row,
				 const EvBuffer **line, char **reason)
{
	MemoryContext old;

	*line = &recorder->line.text;
	if (row->missing)
	{
		*reason = pstrdup("the audit record does not exist");
		return false;
	}
	if (is_safe(row))
	{
		old = MemoryContextSwitchTo(recorder->row_context);
		make(recorder, row);
		MemoryContextSwitchTo(old);
		*reason = NULL;
	}
	else
		*reason = make_safely(recorder, row);
	MemoryContextReset(recorder->row_context);
	return *reason == NULL;
}

/* Nothing but values that lie in the row, in the encoding of the line? */
static bool
is_safe(const EvShippingRow *row)
{
	int			i;

	if (GetDatabaseEncoding() != PG_UTF8)
		return false;
	for (i = row->first; i < row->descriptor->natts; i++)
	{
		bool		isnull;
		Datum		value;

		if (TupleDescAttr(row->descriptor, i)->attlen != -1)
			continue;
		value = heap_getattr(row->tuple, i + 1, row->descriptor, &isnull);
		if (!isnull && VARATT_IS_EXTENDED(DatumGetPointer(value)) &&
			!VARATT_IS_SHORT(DatumGetPointer(value)))
			return false;
	}
	return true;
}

/*
 * Returns NULL, or why it failed.  Whoever stops the process or the statement
 * means all of it.
 */
static char *
make_safely(EvRecorder *recorder, const EvShippingRow *row)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	char	   *volatile reason = NULL;
	uint32		held = InterruptHoldoffCount;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(recorder->row_context);
	PG_TRY();
	{
		make(recorder, row);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		/* An error takes down whatever held interrupts off. */
		InterruptHoldoffCount = held;
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
			ERRCODE_TO_CATEGORY(error->sqlerrcode) ==
			ERRCODE_OPERATOR_INTERVENTION)
			PG_RE_THROW();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		reason = ev_failure_text(error->message);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return reason;
}

static void
make(EvRecorder *recorder, const EvShippingRow *row)
{
	EvError		error;
	int			i;

	begin_line(recorder, row);
	for (i = row->first; i < row->descriptor->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(row->descriptor, i);
		const char *name = name_of(column);
		bool		isnull;
		Datum		value = heap_getattr(row->tuple, i + 1, row->descriptor,
										 &isnull);

		if (isnull)
			ev_line_null(&recorder->line, name);
		else
			put_field(recorder, name, column->atttypid, value);
	}
	if (!ev_line_finish(&recorder->line, &error))
		ev_raise(&error);
}

static void
begin_line(EvRecorder *recorder, const EvShippingRow *row)
{
	EvError		error;
	int			i;
	const char *event = "";
	size_t		length = 0;

	for (i = row->first; i < row->descriptor->natts; i++)
	{
		bool		isnull;
		Datum		value;

		if (strcmp(NameStr(TupleDescAttr(row->descriptor, i)->attname),
				   "action") != 0)
			continue;
		value = heap_getattr(row->tuple, i + 1, row->descriptor, &isnull);
		if (!isnull)
		{
			text	   *unpacked = DatumGetTextPP(value);

			event = ev_utf8_from_database(VARDATA_ANY(unpacked),
										  VARSIZE_ANY_EXHDR(unpacked),
										  &length);
		}
	}
	if (!ev_line_begin(&recorder->line, recorder->redactor, row->key.id,
					   event, length, row->key.created_at, &error))
		ev_raise(&error);
}

static void
put_field(EvRecorder *recorder, const char *name, Oid type, Datum value)
{
	switch (type)
	{
		case INT8OID:
			ev_line_integer(&recorder->line, name, DatumGetInt64(value));
			break;
		case INT4OID:
			ev_line_integer(&recorder->line, name, DatumGetInt32(value));
			break;
		case INT2OID:
			ev_line_integer(&recorder->line, name, DatumGetInt16(value));
			break;
		case BOOLOID:
			ev_line_boolean(&recorder->line, name, DatumGetBool(value));
			break;
		case TIMESTAMPTZOID:
			ev_line_timestamp(&recorder->line, name,
							  DatumGetTimestampTz(value));
			break;
		case TEXTOID:
			put_text(recorder, name, value);
			break;
		default:
			put_other(recorder, name, type, value);
			break;
	}
}

static void
put_text(EvRecorder *recorder, const char *name, Datum value)
{
	text	   *unpacked = DatumGetTextPP(value);
	size_t		length;
	const char *bytes = ev_utf8_from_database(VARDATA_ANY(unpacked),
											  VARSIZE_ANY_EXHDR(unpacked),
											  &length);
	EvError		error;

	if (!ev_line_text(&recorder->line, name, bytes, length, &error))
		ev_raise(&error);
}

static void
put_other(EvRecorder *recorder, const char *name, Oid type, Datum value)
{
	EvError		error;
	Oid			function;
	bool		is_varlena;
	char	   *text;
	const char *bytes;
	size_t		length;

	if (type == JSONBOID)
	{
		Jsonb	   *json = DatumGetJsonbP(value);

		text = JsonbToCString(NULL, &json->root, VARSIZE(json));

		bytes = ev_utf8_from_database(text, strlen(text), &length);
		if (!ev_line_json(&recorder->line, name, bytes, length, &error))
			ev_raise(&error);
		return;
	}
	getTypeOutputInfo(type, &function, &is_varlena);
	text = OidOutputFunctionCall(function, value);

	bytes = ev_utf8_from_database(text, strlen(text), &length);
	if (!ev_line_text(&recorder->line, name, bytes, length, &error))
		ev_raise(&error);
}

/* Names of columns are kept by the line until it is finished. */
static const char *
name_of(Form_pg_attribute column)
{
	const char *name = NameStr(column->attname);
	size_t		length;

	return ev_utf8_from_database(name, strlen(name), &length);
}
