/*-------------------------------------------------------------------------
 *
 * shipping.h
 *	  Which audit records have been shipped, and which have not.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_SHIPPING_H
#define EV_LEDGER_SHIPPING_H

#include "access/htup.h"
#include "access/tupdesc.h"
#include "datatype/timestamp.h"
#include "storage/itemptr.h"

/* The key of an audit record, and the order in which they are taken. */
typedef struct EvShippingKey
{
	TimestampTz created_at;
	int64		id;
} EvShippingKey;

/* Below every key. */
#define EV_SHIPPING_START {DT_NOBEGIN, PG_INT64_MIN}

/* All columns of evidence.audit_delivery; texts may be NULL. */
typedef struct EvDelivered
{
	EvShippingKey key;
	bool		sent;
	int32		attempts;
	TimestampTz next_attempt_at;	/* 0 = NULL */
	TimestampTz sent_at;		/* 0 = NULL */
	const char *last_error;
	const char *sink;
} EvDelivered;

/* A row that a pass has claimed, with the audit record that it stands for. */
typedef struct EvShippingRow
{
	EvShippingKey key;
	int32		attempts;
	ItemPointerData place;		/* of the row of audit_delivery */
	bool		missing;		/* there is no such audit record */
	HeapTuple	tuple;			/* the record: all attributes from first on */
	TupleDesc	descriptor;
	int			first;
} EvShippingRow;

typedef void (*EvShippingFunction) (void *arg, const EvShippingRow *row);

/* The audit record that was just written is to be shipped. */
extern void ev_shipping_promise(const EvShippingKey *key);

/*
 * A dump restores this row, which may be there already because the audit
 * record was restored before: keep what knows more.
 */
extern void ev_shipping_unite(const EvDelivered *row);

/* Does our own code, in this very statement, insert into audit_delivery? */
extern bool ev_shipping_inserts(void);

/*
 * Lock up to limit rows that are pending and due at that time and lie behind
 * *after, which moves on; rows that somebody else has locked are left out.
 * Calls the function for each while the records can be read; it must not run
 * statements.  Returns their number.
 */
extern int	ev_shipping_claim(EvShippingKey *after, TimestampTz due, int limit,
							  EvShippingFunction function, void *arg);

/* The sink has accepted these rows, all claimed by this transaction. */
extern void ev_shipping_sent(const ItemPointerData *places, int count,
							 const char *sink, TimestampTz at);

/*
 * The sink has refused this row, which is not to be tried before a time.  An
 * error leaves the row as it was; run it in a subtransaction.
 */
extern void ev_shipping_defer(const ItemPointerData *place,
							  TimestampTz next_attempt_at, const char *sink,
							  const char *reason);

/*
 * Promise up to limit records that are older than their promise would be:
 * those behind *after, which moves on, and before until.  False if there was
 * none left; *queued is raised by the number of rows that were new.
 */
extern bool ev_shipping_backfill(EvShippingKey *after, TimestampTz until,
								 int limit, int64 *queued);

#endif							/* EV_LEDGER_SHIPPING_H */
