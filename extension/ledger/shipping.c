/*-------------------------------------------------------------------------
 *
 * shipping.c
 *	  Which audit records have been shipped, and which have not.
 *
 * A row of evidence.audit_delivery has two states, pending and sent, and a
 * trigger keeps it so (requirement S2.12).  It is claimed by locking it, for
 * as long as the transaction of the batch lasts: whoever dies gives it back
 * by dying, and nothing is ever "in flight" (S2.29).
 *
 * A pass goes through the pending rows once, in the order of their key, and
 * remembers how far it has come.  So it never looks at the index entries of
 * what it has just sent, which stay where they are while an old snapshot is
 * open, and never at a row twice (S2.25).  The next pass begins at the start
 * again, and finds rows that were committed late or whose pause is over.
 *
 * The claim must read the partial index of pending rows and nothing else,
 * whatever the statistics of a table say that changes as fast as this one;
 * so the planner is not asked about other ways.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "ledger/guard.h"
#include "ledger/shipping.h"
#include "ledger/statement.h"

/* Columns of the claim before those of the record. */
#define CLAIM_COLUMNS 5

static bool inserting = false;

static uint64 run_insert(EvStatement *statement, EvParameters *p);
static int	allow_one_plan_only(void);
static void add_optional_time(EvParameters *p, TimestampTz value);

/*
 * In the transaction of the audit record itself (S2.2).  That it is there
 * already happens when a dump is restored.
 */
void
ev_shipping_promise(const EvShippingKey *key)
{
	static EvStatement promise = {
		"INSERT INTO evidence.audit_delivery (audit_created_at, audit_id)"
		" VALUES ($1, $2)"
		" ON CONFLICT (audit_id, audit_created_at) DO NOTHING"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_time(&p, key->created_at);
	ev_add_int8(&p, key->id);
	(void) run_insert(&promise, &p);
	ev_statements_end();
}

/*
 * Sent is final, wherever it comes from.
 */
void
ev_shipping_unite(const EvDelivered *row)
{
	static EvStatement unite = {
		"INSERT INTO evidence.audit_delivery AS d (audit_created_at, audit_id,"
		"       state, attempts, next_attempt_at, last_error, sink, sent_at)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
		" ON CONFLICT (audit_id, audit_created_at) DO UPDATE"
		"    SET state = excluded.state,"
		"        attempts = greatest(d.attempts, excluded.attempts),"
		"        next_attempt_at = excluded.next_attempt_at,"
		"        last_error = excluded.last_error,"
		"        sink = excluded.sink, sent_at = excluded.sent_at"
		"  WHERE d.state = 'pending' AND"
		"        (excluded.state = 'sent' OR excluded.attempts > d.attempts)"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_time(&p, row->key.created_at);
	ev_add_int8(&p, row->key.id);
	ev_add_text(&p, row->sent ? "sent" : "pending");
	ev_add_int4(&p, row->attempts);
	add_optional_time(&p, row->next_attempt_at);
	ev_add_text(&p, row->last_error);
	ev_add_text(&p, row->sink);
	add_optional_time(&p, row->sent_at);
	(void) run_insert(&unite, &p);
	ev_statements_end();
}

bool
ev_shipping_inserts(void)
{
	return inserting;
}

static uint64
run_insert(EvStatement *statement, EvParameters *p)
{
	uint64		rows = 0;

	inserting = true;
	PG_TRY();
	{
		rows = ev_statement_run(statement, p);
	}
	PG_FINALLY();
	{
		inserting = false;
	}
	PG_END_TRY();
	return rows;
}

int
ev_shipping_claim(EvShippingKey *after, TimestampTz due, int limit,
				  EvShippingFunction function, void *arg)
{
	static EvStatement claim = {
		"WITH claimed AS MATERIALIZED ("
		"  SELECT ctid AS place, audit_created_at, audit_id, attempts"
		"    FROM evidence.audit_delivery"
		"   WHERE state = 'pending'"
		"     AND (audit_created_at, audit_id) > ($1, $2)"
		"     AND (next_attempt_at IS NULL OR next_attempt_at <= $3)"
		"   ORDER BY audit_created_at, audit_id"
		"   LIMIT $4 FOR UPDATE SKIP LOCKED)"
		"SELECT c.place, c.audit_created_at, c.audit_id, c.attempts,"
		"       a.id IS NULL, a.*"
		"  FROM claimed AS c"
		"  LEFT JOIN evidence.audit_log AS a"
		"    ON a.created_at = c.audit_created_at AND a.id = c.audit_id"
	};
	EvParameters p = {0};
	MemoryContext context = CurrentMemoryContext;
	SPITupleTable *table;
	int			level;
	int			count;
	int			i;

	ev_statements_begin();
	ev_add_time(&p, after->created_at);
	ev_add_int8(&p, after->id);
	ev_add_time(&p, due);
	ev_add_int8(&p, limit);
	level = allow_one_plan_only();
	count = (int) ev_statement_run(&claim, &p);
	AtEOXact_GUC(true, level);

	table = SPI_tuptable;
	for (i = 0; i < count; i++)
	{
		EvShippingRow row = {{0}};
		bool		isnull;

		row.place = *(ItemPointer)
			DatumGetPointer(SPI_getbinval(table->vals[i], table->tupdesc, 1,
										  &isnull));
		row.key.created_at = ev_result_time(i, 2);
		row.key.id = ev_result_int8(i, 3);
		row.attempts = ev_result_int4(i, 4);
		row.missing = ev_result_bool(i, 5);
		row.tuple = table->vals[i];
		row.descriptor = table->tupdesc;
		row.first = CLAIM_COLUMNS;
		if (row.key.created_at > after->created_at ||
			(row.key.created_at == after->created_at &&
			 row.key.id > after->id))
			*after = row.key;

		MemoryContextSwitchTo(context);
		function(arg, &row);
	}
	ev_statements_end();
	return count;
}

static int
allow_one_plan_only(void)
{
	static const char *const others[] = {
		"enable_seqscan", "enable_bitmapscan", "enable_hashjoin",
		"enable_mergejoin"
	};
	int			level = NewGUCNestLevel();
	int			i;

	for (i = 0; i < lengthof(others); i++)
		(void) set_config_option(others[i], "off", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/*
 * A locked row does not move, so its place names it.
 */
void
ev_shipping_sent(const ItemPointerData *places, int count, const char *sink,
				 TimestampTz at)
{
	static EvStatement sent = {
		"UPDATE evidence.audit_delivery"
		"   SET state = 'sent', attempts = attempts + 1,"
		"       next_attempt_at = NULL, sink = $2, sent_at = $3"
		" WHERE ctid = ANY ($1) AND state = 'pending'"
	};
	EvParameters p = {0};
	Datum	   *elements = palloc(sizeof(Datum) * Max(count, 1));
	int			i;

	for (i = 0; i < count; i++)
		elements[i] = PointerGetDatum(&places[i]);
	ev_statements_begin();
	ev_add_datum(&p, get_array_type(TIDOID),
				 PointerGetDatum(construct_array(elements, count, TIDOID,
												 sizeof(ItemPointerData),
												 false, TYPALIGN_SHORT)));
	ev_add_text(&p, sink);
	ev_add_time(&p, at);
	if (ev_statement_run(&sent, &p) != count)
		elog(ERROR, "claimed rows of audit_delivery are not there any more");
	ev_statements_end();
	pfree(elements);
}

void
ev_shipping_defer(const ItemPointerData *place, TimestampTz next_attempt_at,
				  const char *sink, const char *reason)
{
	static EvStatement defer = {
		"UPDATE evidence.audit_delivery"
		"   SET attempts = attempts + 1, next_attempt_at = $2, sink = $3,"
		"       last_error = $4"
		" WHERE ctid = $1 AND state = 'pending'"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_datum(&p, TIDOID, PointerGetDatum(place));
	ev_add_time(&p, next_attempt_at);
	ev_add_text(&p, sink);
	ev_add_text(&p, reason);
	if (ev_statement_run(&defer, &p) != 1)
		elog(ERROR, "a claimed row of audit_delivery is not there any more");
	ev_statements_end();
}

/*
 * What has been retired is below the watermark, and the lock on it keeps
 * retention from going further meanwhile: a promise must not outlive its
 * record.
 */
bool
ev_shipping_backfill(EvShippingKey *after, TimestampTz until, int limit,
					 int64 *queued)
{
	static EvStatement promise = {
		"WITH batch AS MATERIALIZED ("
		"  SELECT created_at, id FROM evidence.audit_log"
		"   WHERE (created_at, id) > ($1, $2)"
		"     AND created_at >= $3 AND created_at < $4"
		"   ORDER BY created_at, id LIMIT $5"
		"), new AS ("
		"  INSERT INTO evidence.audit_delivery (audit_created_at, audit_id)"
		"  SELECT created_at, id FROM batch"
		"  ON CONFLICT (audit_id, audit_created_at) DO NOTHING"
		"  RETURNING 1"
		")"
		"SELECT created_at, id, (SELECT count(*) FROM new) FROM batch"
		" ORDER BY created_at DESC, id DESC LIMIT 1"
	};
	EvParameters p = {0};
	TimestampTz watermark = ev_guard_share_source("audit_log");
	bool		found;

	ev_statements_begin();
	ev_add_time(&p, after->created_at);
	ev_add_int8(&p, after->id);
	ev_add_time(&p, watermark);
	ev_add_time(&p, until);
	ev_add_int8(&p, limit);
	found = run_insert(&promise, &p) == 1;
	if (found)
	{
		after->created_at = ev_result_time(0, 1);
		after->id = ev_result_int8(0, 2);
		*queued += ev_result_int8(0, 3);
	}
	ev_statements_end();
	return found;
}

static void
add_optional_time(EvParameters *p, TimestampTz value)
{
	ev_add_time(p, value);
	if (value == 0)
		p->nulls[p->count - 1] = 'n';
}
