/*-------------------------------------------------------------------------
 *
 * triggers.c
 *	  The triggers that keep the ledger true, whoever writes to it.
 *
 * They are C functions and their triggers are ENABLE ALWAYS, so that neither
 * session_replication_role nor a changed function body switches them off.
 * What remains is what a superuser can always do: disable or drop a trigger,
 * or write to the files.  README says so.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/xid8.h"

#include "api/call.h"
#include "ledger/audit.h"
#include "ledger/states.h"

static TriggerData *trigger_data(FunctionCallInfo fcinfo);
static Datum attribute(TriggerData *data, HeapTuple tuple, const char *name);
static bool is_mutable(Trigger *trigger, const char *column);
static void check_contract(TriggerData *data);
static void check_move(TriggerData *data);

PG_FUNCTION_INFO_V1(ev_sql_stamp_audit_row);
PG_FUNCTION_INFO_V1(ev_sql_refuse_change);
PG_FUNCTION_INFO_V1(ev_sql_guard_fact);

static TriggerData *
trigger_data(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function can only be called as a trigger")));
	return (TriggerData *) fcinfo->context;
}

/*
 * The top-level transaction, also inside a savepoint: snapshots know top-level
 * transactions.  What the INSERT says is overwritten, so that nobody can put
 * a row into an export that was requested before it.
 */
Datum
ev_sql_stamp_audit_row(PG_FUNCTION_ARGS)
{
	TriggerData *data = trigger_data(fcinfo);
	int			column = get_attnum(RelationGetRelid(data->tg_relation),
									"recorded_xid");
	Datum		value;
	bool		isnull = false;

	if (column == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" has no column \"recorded_xid\"",
						RelationGetRelationName(data->tg_relation))));
	value = FullTransactionIdGetDatum(GetTopFullTransactionId());
	return PointerGetDatum(heap_modify_tuple_by_cols(data->tg_trigtuple,
													 data->tg_relation->rd_att,
													 1, &column, &value,
													 &isnull));
}

Datum
ev_sql_refuse_change(PG_FUNCTION_ARGS)
{
	TriggerData *data = trigger_data(fcinfo);

	if (ev_audit_change_allowed() &&
		strcmp(RelationGetRelationName(data->tg_relation), "audit_log") == 0)
	{
		if (TRIGGER_FIRED_BY_UPDATE(data->tg_event))
			return PointerGetDatum(data->tg_newtuple);
		return PointerGetDatum(data->tg_trigtuple);
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot change table \"%s\": it is append-only",
					RelationGetRelationName(data->tg_relation)),
			 errhint("Rows are added by the functions of schema evidence and never changed.")));
	return PointerGetDatum(NULL);
}

Datum
ev_sql_guard_fact(PG_FUNCTION_ARGS)
{
	TriggerData *data = trigger_data(fcinfo);

	if (TRIGGER_FIRED_BY_DELETE(data->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot delete from table \"%s\"",
						RelationGetRelationName(data->tg_relation)),
				 errhint("An export, its job and its events are kept as its history.")));
	check_contract(data);
	check_move(data);
	return PointerGetDatum(data->tg_newtuple);
}

/* A column that is never null. */
static Datum
attribute(TriggerData *data, HeapTuple tuple, const char *name)
{
	AttrNumber	column = get_attnum(RelationGetRelid(data->tg_relation), name);
	bool		isnull;

	return heap_getattr(tuple, column, data->tg_relation->rd_att, &isnull);
}

/* The first argument of the trigger is the fact, the others are columns. */
static bool
is_mutable(Trigger *trigger, const char *column)
{
	int			i;

	for (i = 1; i < trigger->tgnargs; i++)
	{
		if (strcmp(trigger->tgargs[i], column) == 0)
			return true;
	}
	return false;
}

static void
check_contract(TriggerData *data)
{
	TupleDesc	descriptor = data->tg_relation->rd_att;
	int			i;

	for (i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(descriptor, i);
		Datum		before;
		Datum		after;
		bool		null_before;
		bool		null_after;

		if (column->attisdropped ||
			is_mutable(data->tg_trigger, NameStr(column->attname)))
			continue;
		before = heap_getattr(data->tg_trigtuple, i + 1, descriptor,
							  &null_before);
		after = heap_getattr(data->tg_newtuple, i + 1, descriptor,
							 &null_after);
		if (null_before != null_after ||
			(!null_before && !datum_image_eq(before, after,
											 column->attbyval,
											 column->attlen)))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot change column \"%s\" of table \"%s\": it is part of the contract",
							NameStr(column->attname),
							RelationGetRelationName(data->tg_relation)),
					 errhint("Request a new export instead.")));
	}
}

/*
 * The version goes up by one with each move and only then, which is what the
 * conditions of all later statements rest on.
 */
static void
check_move(TriggerData *data)
{
	char	   *from = TextDatumGetCString(attribute(data, data->tg_trigtuple,
													 "state"));
	char	   *to = TextDatumGetCString(attribute(data, data->tg_newtuple,
												   "state"));
	int64		before = DatumGetInt64(attribute(data, data->tg_trigtuple,
												 "version"));
	int64		after = DatumGetInt64(attribute(data, data->tg_newtuple,
												"version"));
	bool		moves = strcmp(from, to) != 0;
	EvFact		fact;

	if (!ev_fact_from_name(data->tg_trigger->tgargs[0], &fact))
		elog(ERROR, "trigger \"%s\" names no fact", data->tg_trigger->tgname);
	if (moves && !ev_move_legal(fact, from, to))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot move %s from %s to %s", ev_fact_name(fact),
						from, to),
				 errhint("View evidence.state_move lists the legal moves.")));
	if (after != before + (moves ? 1 : 0))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot change version of %s from " INT64_FORMAT " to " INT64_FORMAT,
						ev_fact_name(fact), before, after),
				 errhint("The version goes up by one with each change of state.")));
}
