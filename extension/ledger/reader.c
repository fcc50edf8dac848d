/*-------------------------------------------------------------------------
 *
 * reader.c
 *	  The reading loop: the rows that belong to a contract, in order.
 *
 * One cursor over the range in the order of the primary key, pulled in small
 * steps into a receiver of our own, so that memory does not grow and no page
 * border can lose or double a row (cases C37, C39).  Whether a row matches
 * the filters and was visible to the contract's snapshot is computed as one
 * more column instead of a WHERE clause: then every row that is looked at
 * comes by here, and a sign of life is given and a cancellation seen every
 * EV_SAFE_POINT_ROWS rows, also where one in a million matches.
 *
 * A row belongs if its recorded_xid is visible in the pinned snapshot and is
 * not the requesting transaction.  The log is append-only, so any later
 * snapshot of ours sees all such rows, and every attempt reads the same set.
 *
 * Sorting is switched off while reading: a sort would have to read the whole
 * range before it gives the first row.  So is just-in-time compilation: its
 * library takes 10 to 25 MB for an expression of two terms, from some hundred
 * thousand rows on, and gains nothing in front of formatting and redaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/portal.h"

#include "ledger/reader.h"
#include "ledger/statement.h"

/* A receiver that hands rows on instead of gathering them. */
typedef struct RowReceiver
{
	DestReceiver pub;
	EvRowFunction row;			/* NULL: only count */
	void	   *arg;
	int			belongs;		/* attribute that says whether the row does */
	uint64		matched;
	uint64		received;		/* in this step */
} RowReceiver;

static uint64 read_all(const EvContract *contract, const char *columns,
					   int ncolumns, const char *order, EvRowFunction row,
					   EvSafePointFunction safe_point, void *arg);
static void append_filters(StringInfo text, Jsonb *filters);
static bool has_filter(Jsonb *filters, const char *key);
static void plan_in_order(void);
static bool receive_row(TupleTableSlot *slot, DestReceiver *self);
static void receiver_startup(DestReceiver *self, int operation,
							 TupleDesc typeinfo);
static void receiver_noop(DestReceiver *self);

/* Filter keys, each the name of a column; see request_audit_export(). */
static const char *const filter_keys[] = {
	"actor_id", "error_code", "outcome", "target_id", "target_type",
	"tenant_id"
};

uint64
ev_reader_count(const EvContract *contract, EvSafePointFunction safe_point,
				void *arg)
{
	return read_all(contract, "", 0, "", NULL, safe_point, arg);
}

uint64
ev_reader_rows(const EvContract *contract, EvRowFunction row,
			   EvSafePointFunction safe_point, void *arg)
{
	StringInfoData columns;
	int			i;

	initStringInfo(&columns);
	appendStringInfoString(&columns, "l.created_at, l.id, ");
	for (i = 0; i < contract->ncolumns; i++)
		appendStringInfo(&columns, "l.%s, ",
						 quote_identifier(contract->columns[i]));
	return read_all(contract, columns.data,
					EV_KEY_ATTRIBUTES + contract->ncolumns,
					" ORDER BY l.created_at, l.id", row, safe_point, arg);
}

static uint64
read_all(const EvContract *contract, const char *columns, int ncolumns,
		 const char *order, EvRowFunction row,
		 EvSafePointFunction safe_point, void *arg)
{
	RowReceiver receiver = {{0}};
	EvParameters p = {0};
	StringInfoData text;
	Portal		portal;
	int			guc_level;

	receiver.pub.receiveSlot = receive_row;
	receiver.pub.rStartup = receiver_startup;
	receiver.pub.rShutdown = receiver_noop;
	receiver.pub.rDestroy = receiver_noop;
	receiver.pub.mydest = DestNone;
	receiver.row = row;
	receiver.arg = arg;
	receiver.belongs = ncolumns + 1;

	ev_add_time(&p, contract->start_at);
	ev_add_time(&p, contract->end_at);
	ev_add_xid8(&p, contract->request_xid);
	ev_add_datum(&p, PG_SNAPSHOTOID, contract->snapshot);
	ev_add_jsonb(&p, contract->filters);

	initStringInfo(&text);
	appendStringInfo(&text,
					 "SELECT %s(l.recorded_xid <> $3"
					 " AND pg_visible_in_snapshot(l.recorded_xid, $4)",
					 columns);
	append_filters(&text, contract->filters);
	appendStringInfo(&text,
					 ") IS TRUE FROM %s AS l"
					 " WHERE l.created_at >= $1 AND l.created_at < $2%s",
					 contract->table_name, order);

	ev_statements_begin();
	guc_level = NewGUCNestLevel();
	plan_in_order();
	portal = SPI_cursor_open_with_args(NULL, text.data, p.count, p.types,
									   p.values, p.nulls, true,
									   CURSOR_OPT_NO_SCROLL);
	do
	{
		CHECK_FOR_INTERRUPTS();
		if (safe_point != NULL)
			safe_point(arg);
		receiver.received = 0;
		(void) PortalRunFetch(portal, FETCH_FORWARD, EV_SAFE_POINT_ROWS,
							  &receiver.pub);
	} while (receiver.received == EV_SAFE_POINT_ROWS);
	SPI_cursor_close(portal);
	AtEOXact_GUC(true, guc_level);
	ev_statements_end();
	return receiver.matched;
}

/*
 * The values come from the contract, through $5 and the canonical form that
 * the request gave them: an array of strings per key.
 */
static void
append_filters(StringInfo text, Jsonb *filters)
{
	int			i;

	for (i = 0; i < lengthof(filter_keys); i++)
	{
		if (has_filter(filters, filter_keys[i]))
			appendStringInfo(text,
							 " AND l.%s = ANY (ARRAY("
							 "SELECT jsonb_array_elements_text($5 -> '%s')))",
							 filter_keys[i], filter_keys[i]);
	}
	if (has_filter(filters, "action"))
		appendStringInfoString(text,
							   " AND (l.action = ANY (ARRAY("
							   "SELECT v FROM jsonb_array_elements_text($5 -> 'action') AS v"
							   " WHERE right(v, 2) <> '.*'))"
							   " OR l.action ^@ ANY (ARRAY("
							   "SELECT left(v, -1) FROM jsonb_array_elements_text($5 -> 'action') AS v"
							   " WHERE right(v, 2) = '.*')))");
}

static bool
has_filter(Jsonb *filters, const char *key)
{
	JsonbValue	name;

	name.type = jbvString;
	name.val.string.val = unconstify(char *, key);
	name.val.string.len = strlen(key);
	return findJsonbValueFromContainer(&filters->root, JB_FOBJECT,
									   &name) != NULL;
}

/*
 * Undone by the caller at the end of its level of settings.
 */
static void
plan_in_order(void)
{
	static const char *const off[] = {
		"enable_sort", "enable_incremental_sort", "enable_seqscan",
		"enable_bitmapscan", "jit"
	};
	int			i;

	for (i = 0; i < lengthof(off); i++)
		(void) set_config_option(off[i], "off", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	RowReceiver *receiver = (RowReceiver *) self;
	bool		isnull;

	receiver->received++;
	if (DatumGetBool(slot_getattr(slot, receiver->belongs, &isnull)))
	{
		receiver->matched++;
		if (receiver->row != NULL)
			receiver->row(receiver->arg, slot);
	}
	return true;
}

static void
receiver_startup(DestReceiver *self, int operation, TupleDesc typeinfo)
{
}

static void
receiver_noop(DestReceiver *self)
{
}
