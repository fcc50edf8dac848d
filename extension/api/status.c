/*-------------------------------------------------------------------------
 *
 * status.c
 *	  What views and constraints ask: version, clock, states, progress.
 *
 * Nothing here changes anything.  Whether a caller may see the status of an
 * export is judged row by row in the view, by _sees().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "api/call.h"
#include "base/clock.h"
#include "ledger/states.h"
#include "process/scrub.h"
#include "process/shmem.h"

/* Whose capabilities these are; kept for the rows of one query. */
typedef struct Viewer
{
	Oid			role;
	int			capabilities;
} Viewer;

static void put_texts(ReturnSetInfo *result, const char *a, const char *b,
					  const char *c);

PG_FUNCTION_INFO_V1(ev_sql_version);
PG_FUNCTION_INFO_V1(ev_sql_now);
PG_FUNCTION_INFO_V1(ev_sql_state_known);
PG_FUNCTION_INFO_V1(ev_sql_state_moves);
PG_FUNCTION_INFO_V1(ev_sql_state_combinations);
PG_FUNCTION_INFO_V1(ev_sql_sees);
PG_FUNCTION_INFO_V1(ev_sql_scrub);
PG_FUNCTION_INFO_V1(ev_sql_progress);

Datum
ev_sql_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(EV_VERSION));
}

Datum
ev_sql_now(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(ev_clock_now());
}

Datum
ev_sql_state_known(PG_FUNCTION_ARGS)
{
	EvFact		fact;

	PG_RETURN_BOOL(ev_fact_from_name(ev_call_text(fcinfo, 0), &fact) &&
				   ev_state_known(fact, ev_call_text(fcinfo, 1)));
}

Datum
ev_sql_state_moves(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			i;

	InitMaterializedSRF(fcinfo, 0);
	for (i = 0; i < ev_move_count; i++)
		put_texts(result, ev_fact_name(ev_moves[i].fact), ev_moves[i].from,
				  ev_moves[i].to);
	PG_RETURN_NULL();
}

Datum
ev_sql_state_combinations(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			i;

	InitMaterializedSRF(fcinfo, 0);
	for (i = 0; i < ev_combination_count; i++)
		put_texts(result, ev_combinations[i].export, ev_combinations[i].job,
				  ev_combinations[i].event);
	PG_RETURN_NULL();
}

static void
put_texts(ReturnSetInfo *result, const char *a, const char *b, const char *c)
{
	Datum		values[3];
	bool		nulls[3] = {false, false, false};

	values[0] = CStringGetTextDatum(a);
	values[1] = CStringGetTextDatum(b);
	values[2] = CStringGetTextDatum(c);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * A role that has lost all its capabilities sees nothing, not even its own
 * exports, although it may still have SELECT on the view through another
 * role.
 */
Datum
ev_sql_sees(PG_FUNCTION_ARGS)
{
	Viewer	   *viewer = fcinfo->flinfo->fn_extra;
	Oid			role = GetUserId();

	if (viewer == NULL || viewer->role != role)
	{
		EvOwner		owner;

		viewer = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(Viewer));
		ev_owner_enter(&owner);
		viewer->role = role;
		viewer->capabilities = ev_capabilities_of(role);
		ev_owner_leave(&owner);
		fcinfo->flinfo->fn_extra = viewer;
	}

	if ((viewer->capabilities & (EV_OPERATOR | EV_AUDITOR)) != 0)
		PG_RETURN_BOOL(true);
	PG_RETURN_BOOL((viewer->capabilities & EV_REQUESTER) != 0 &&
				   ev_capability_owns(role, ev_call_text(fcinfo, 0)));
}

/*
 * People type secrets into a purpose; the contract keeps it as it was given,
 * since its digest is taken over it, and the view shows it like this.
 */
Datum
ev_sql_scrub(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(ev_scrub(ev_call_text(fcinfo, 0))));
}

Datum
ev_sql_progress(PG_FUNCTION_ARGS)
{
	EvProgress	progress;
	TupleDesc	descriptor;
	Datum		values[4] = {0};
	bool		nulls[4] = {true, true, true, true};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	descriptor = BlessTupleDesc(descriptor);

	if (ev_shmem_progress(PG_GETARG_UUID_P(0), &progress))
	{
		values[0] = Int64GetDatum(progress.rows_total);
		nulls[0] = progress.rows_total < 0;
		values[1] = Int64GetDatum(progress.rows_done);
		values[2] = Int64GetDatum(progress.bytes_done);
		values[3] = Float8GetDatum((double) (ev_clock_now() -
											 progress.started_at) /
								   USECS_PER_SEC);
		nulls[1] = nulls[2] = nulls[3] = false;
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values,
													  nulls)));
}
