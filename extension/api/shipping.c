/*-------------------------------------------------------------------------
 *
 * shipping.c
 *	  ship_pass() and ship_audit_records(), and the triggers of shipping.
 *
 * The two procedures commit in between, as run_once() does and for the same
 * reasons (api/run_once.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "api/call.h"
#include "base/clock.h"
#include "base/settings.h"
#include "ledger/audit.h"
#include "ledger/instance.h"
#include "ledger/shipping.h"
#include "ledger/statement.h"
#include "process/lane.h"
#include "process/ship_pass.h"

/* Records that one transaction of ship_audit_records() looks at. */
#define BACKFILL_BATCH 5000

/* Columns of _shipping_status(). */
#define STATUS_COLUMNS 12

static void refuse_block(FunctionCallInfo fcinfo, const char *procedure);
static void require_shipping(void);
static void tell_end(const EvPass *pass);
static int64 backfill(TimestampTz from, TimestampTz until);
static TriggerData *trigger_data(FunctionCallInfo fcinfo);
static Datum column(TriggerData *data, HeapTuple tuple, const char *name,
					bool *isnull);
static bool read_delivered(TriggerData *data, HeapTuple tuple,
						   EvDelivered *row);
static Datum unite(TriggerData *data);
static void check_update(TriggerData *data);
static EV_NORETURN void refuse_change(TriggerData *data, const char *reason);

PG_FUNCTION_INFO_V1(ev_sql_ship_pass);
PG_FUNCTION_INFO_V1(ev_sql_ship_audit_records);
PG_FUNCTION_INFO_V1(ev_sql_promise_shipping);
PG_FUNCTION_INFO_V1(ev_sql_guard_delivery);
PG_FUNCTION_INFO_V1(ev_sql_shipping_status);

static void
refuse_block(FunctionCallInfo fcinfo, const char *procedure)
{
	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		((CallContext *) fcinfo->context)->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s() cannot run inside a transaction block",
						procedure),
				 errhint("CALL it as a statement of its own.")));
}

static void
require_shipping(void)
{
	if (!ev_ship)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("audit records are not shipped"),
				 errhint("Set pg_evidence.ship to on and reload the server's configuration.")));
}

Datum
ev_sql_ship_pass(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvTransaction transaction = {0};
	EvRecorder *recorder;
	EvPass		pass;
	pg_uuid_t	incarnation;

	refuse_block(fcinfo, "ship_pass");
	ev_call_begin(&call, "ship_pass", EV_OPERATOR);
	ev_instance_require(&incarnation);
	require_shipping();
	ev_call_end(&call);

	ev_statements_begin_procedure();
	transaction.session = true;
	recorder = ev_recorder_create(CurrentMemoryContext);
	ev_ship_pass(&transaction, recorder, call.role, NULL, &pass);
	ev_statements_end();
	tell_end(&pass);
	PG_RETURN_VOID();
}

/*
 * A scheduler should see that nothing was shipped because nothing could be;
 * what was, is committed.
 */
static void
tell_end(const EvPass *pass)
{
	switch (pass->end)
	{
		case EV_PASS_BUSY:
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("another session holds the tables of the ledger"),
					 errhint("Run it again later.")));
			break;
		case EV_PASS_DISABLED:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("sink \"%s\" is disabled: %s", pass->sink,
							pass->reason),
					 errhint("Change the setting; audit records wait meanwhile.")));
			break;
		case EV_PASS_BROKEN:
			ereport(ERROR,
					(errcode(ERRCODE_IO_ERROR),
					 errmsg("sink \"%s\" is out of order: %s", pass->sink,
							pass->reason),
					 errhint("Repair it; audit records wait meanwhile.")));
			break;
		case EV_PASS_FAILED:
			ereport(ERROR,
					(errcode(MAKE_SQLSTATE(pass->code[0], pass->code[1],
										   pass->code[2], pass->code[3],
										   pass->code[4])),
					 errmsg("audit records could not be shipped: %s",
							pass->reason),
					 errhint("Repair what the message names; audit records wait meanwhile.")));
			break;
		default:
			break;
	}
}

Datum
ev_sql_ship_audit_records(PG_FUNCTION_ARGS)
{
	EvCall		call;
	pg_uuid_t	incarnation;
	TimestampTz from;
	TimestampTz until = DT_NOEND;
	TupleDesc	descriptor;
	Datum		result;
	bool		isnull = false;

	refuse_block(fcinfo, "ship_audit_records");
	ev_call_begin(&call, "ship_audit_records", EV_OPERATOR);
	ev_instance_require(&incarnation);
	require_shipping();
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("from_at must not be null"),
				 errhint("State the time from which on records are to be shipped; '-infinity' means all.")));
	if (!PG_ARGISNULL(1))
		until = PG_GETARG_TIMESTAMPTZ(1);
	if (until <= PG_GETARG_TIMESTAMPTZ(0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("until_at must be after from_at"),
				 errhint("The range holds from_at and not until_at.")));
	from = PG_GETARG_TIMESTAMPTZ(0);
	ev_audit_append_action("shipping.backfill", call.role, call.session_role,
						   "audit_source", "audit_log",
						   psprintf("from %s to %s",
									pstrdup(timestamptz_to_str(from)),
									pstrdup(timestamptz_to_str(until))));
	ev_call_end(&call);

	result = Int64GetDatum(backfill(from, until));
	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	descriptor = BlessTupleDesc(descriptor);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, &result,
													  &isnull)));
}

static int64
backfill(TimestampTz from, TimestampTz until)
{
	EvTransaction transaction = {0};
	EvShippingKey after = EV_SHIPPING_START;
	int64		queued = 0;
	bool		more = true;

	after.created_at = from;
	ev_statements_begin_procedure();
	transaction.session = true;
	while (more)
	{
		CHECK_FOR_INTERRUPTS();
		ev_transaction_begin(&transaction, EV_TRANSACTION_WRITE);
		more = ev_shipping_backfill(&after, until, BACKFILL_BATCH, &queued);
		ev_transaction_commit(&transaction);
	}
	ev_statements_end();
	return queued;
}

static TriggerData *
trigger_data(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function can only be called as a trigger")));
	return (TriggerData *) fcinfo->context;
}

static Datum
column(TriggerData *data, HeapTuple tuple, const char *name, bool *isnull)
{
	AttrNumber	number = get_attnum(RelationGetRelid(data->tg_relation), name);

	if (number == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" has no column \"%s\"",
						RelationGetRelationName(data->tg_relation), name)));
	return heap_getattr(tuple, number, data->tg_relation->rd_att, isnull);
}

/*
 * Whoever may write the log need not have a right on audit_delivery: its row
 * is written by the owner of the log's table.
 */
Datum
ev_sql_promise_shipping(PG_FUNCTION_ARGS)
{
	TriggerData *data = trigger_data(fcinfo);
	Oid			owner;
	Oid			caller;
	int			security_context;
	EvShippingKey key;
	bool		isnull;

	if (!ev_ship)
		return PointerGetDatum(NULL);
	key.created_at = DatumGetTimestampTz(column(data, data->tg_trigtuple,
												"created_at", &isnull));
	key.id = DatumGetInt64(column(data, data->tg_trigtuple, "id", &isnull));
	owner = data->tg_relation->rd_rel->relowner;
	GetUserIdAndSecContext(&caller, &security_context);
	if (caller != owner)
		SetUserIdAndSecContext(owner, security_context |
							   SECURITY_LOCAL_USERID_CHANGE);
	ev_shipping_promise(&key);
	if (caller != owner)
		SetUserIdAndSecContext(caller, security_context);
	return PointerGetDatum(NULL);
}

Datum
ev_sql_guard_delivery(PG_FUNCTION_ARGS)
{
	TriggerData *data = trigger_data(fcinfo);

	if (TRIGGER_FIRED_BY_INSERT(data->tg_event))
		return ev_shipping_inserts() ?
			PointerGetDatum(data->tg_trigtuple) : unite(data);
	if (TRIGGER_FIRED_BY_UPDATE(data->tg_event))
	{
		check_update(data);
		return PointerGetDatum(data->tg_newtuple);
	}
	if (!ev_audit_change_allowed())
		refuse_change(data, "a row goes with its audit record, and not before");
	return PointerGetDatum(data->tg_trigtuple);
}

/*
 * A dump is restored, or a row is replicated: the same row may have been made
 * by the trigger of the log, before or in this moment, in another session.
 * Two sessions that insert the same keys in different orders would wait for
 * each other; so this one waits, before its first row, for all that have
 * inserted, and keeps others out until it is done.  They hold no row that it
 * could be kept waiting by.
 */
static Datum
unite(TriggerData *data)
{
	EvDelivered row;

	/* What is no row of this table at all is refused by its constraints. */
	if (!read_delivered(data, data->tg_trigtuple, &row))
		return PointerGetDatum(data->tg_trigtuple);
	LockRelation(data->tg_relation, ShareRowExclusiveLock);
	ev_shipping_unite(&row);
	return PointerGetDatum(NULL);
}

/* False if a value is missing, or the state is none. */
static bool
read_delivered(TriggerData *data, HeapTuple tuple, EvDelivered *row)
{
	Datum		value;
	bool		missing[4];
	bool		isnull;
	char	   *state;

	memset(row, 0, sizeof(EvDelivered));
	row->key.created_at = DatumGetTimestampTz(column(data, tuple,
													 "audit_created_at",
													 &missing[0]));
	row->key.id = DatumGetInt64(column(data, tuple, "audit_id", &missing[1]));
	row->attempts = DatumGetInt32(column(data, tuple, "attempts",
										 &missing[2]));
	value = column(data, tuple, "state", &missing[3]);
	if (missing[0] || missing[1] || missing[2] || missing[3])
		return false;
	state = TextDatumGetCString(value);
	row->sent = strcmp(state, "sent") == 0;
	value = column(data, tuple, "next_attempt_at", &isnull);
	row->next_attempt_at = isnull ? 0 : DatumGetTimestampTz(value);
	value = column(data, tuple, "sent_at", &isnull);
	row->sent_at = isnull ? 0 : DatumGetTimestampTz(value);
	value = column(data, tuple, "last_error", &isnull);
	row->last_error = isnull ? NULL : TextDatumGetCString(value);
	value = column(data, tuple, "sink", &isnull);
	row->sink = isnull ? NULL : TextDatumGetCString(value);
	return row->sent || strcmp(state, "pending") == 0;
}

static void
check_update(TriggerData *data)
{
	EvDelivered before;
	EvDelivered after;

	(void) read_delivered(data, data->tg_trigtuple, &before);
	if (!read_delivered(data, data->tg_newtuple, &after))
		return;					/* its constraints refuse it */
	if (before.sent)
		refuse_change(data, "sent is final");
	if (before.key.created_at != after.key.created_at ||
		before.key.id != after.key.id)
		refuse_change(data, "a row belongs to one audit record for good");
	if (after.attempts < before.attempts)
		refuse_change(data, "attempts are counted and never uncounted");
}

static void
refuse_change(TriggerData *data, const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot change table \"%s\": %s",
					RelationGetRelationName(data->tg_relation), reason),
			 errhint("The shipper moves a row from pending to sent; nothing else is changed by hand.")));
	pg_unreachable();
}

/*
 * For views: whether shipping is switched on, whether this ledger may be
 * touched at all, and how the shipper stands.  The last is NULL without shared
 * memory.
 */
Datum
ev_sql_shipping_status(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"idle", "works", "disabled", "broken"};
	EvLaneStatus status;
	EvOwner		owner;
	pg_uuid_t	incarnation;
	TupleDesc	descriptor;
	Datum		values[STATUS_COLUMNS] = {0};
	bool		nulls[STATUS_COLUMNS] = {0};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	descriptor = BlessTupleDesc(descriptor);
	values[0] = BoolGetDatum(ev_ship);
	values[1] = CStringGetTextDatum(ev_sink_current()->name);
	ev_owner_enter(&owner);
	values[2] = BoolGetDatum(!ev_instance_current(&incarnation));
	ev_owner_leave(&owner);

	if (!ev_lane_read(EV_LANE_SHIPPER, &status))
		memset(nulls + 3, true, STATUS_COLUMNS - 3);
	else
	{
		values[3] = CStringGetTextDatum(names[status.state]);
		nulls[4] = status.reason[0] == '\0';
		if (!nulls[4])
			values[4] = CStringGetTextDatum(status.reason);
		values[5] = BoolGetDatum(status.pid != 0);
		nulls[6] = status.last_pass_at == 0;
		values[6] = TimestampTzGetDatum(status.last_pass_at);
		values[7] = Int64GetDatum(status.passes);
		values[8] = Int64GetDatum(status.failed);
		values[9] = Int64GetDatum(status.done);
		values[10] = Int64GetDatum(status.put_off);
		values[11] = Int64GetDatum(status.stuck);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values,
													  nulls)));
}
