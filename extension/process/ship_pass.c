/*-------------------------------------------------------------------------
 *
 * ship_pass.c
 *	  One pass of the shipper: all that is due, in batches.
 *
 * A batch is one transaction: claim rows by locking them, give each to the
 * sink, have the sink write to disk, and only then say that they are sent.
 * Whoever dies before the commit has shipped records that are shipped once
 * more later; nothing is ever lost (requirement S2.30).
 *
 * A record that is refused is put off, under a savepoint of its own: if even
 * that fails it is stuck, unmoved and without holding up anybody, and the next
 * pass finds it as it was (S2.21).  Its pause begins when it was refused, and
 * stands in the row, so that a new process does not forget it (S2.26, S2.34).
 *
 * The pass goes through the rows once, see ledger/shipping.c.  It ends when
 * nothing is left, when the sink cannot take anything, when the process is
 * told to stop, and, but for a CALL, after PASS_LIMIT_MS: the next one finds
 * what was committed behind its back.
 *
 * Two processes may make passes at once: they never see each other's rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/pg_prng.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#include "base/clock.h"
#include "base/pause.h"
#include "base/settings.h"
#include "ledger/instance.h"
#include "ledger/pass.h"
#include "ledger/tables.h"
#include "process/failure.h"
#include "process/lane.h"
#include "process/ship_pass.h"

#define PASS_LIMIT_MS 60000

/* What became of one row of a batch. */
typedef struct Refusal
{
	ItemPointerData place;
	int32		attempts;
	TimestampTz refused_at;
	char	   *reason;
} Refusal;

typedef struct Batch
{
	EvTransaction *transaction;
	EvRecorder *recorder;
	const EvSink *sink;
	EvPass	   *pass;
	MemoryContext context;		/* emptied before each batch */
	EvPassRow	row;			/* in pass_log */
	EvShippingKey after;		/* how far the pass has come */
	TimestampTz started_at;
	int			claimed;
	bool		begun;			/* the sink has begun */
	bool		cannot_begin;
	ItemPointerData *accepted;
	int32	   *attempts;		/* of the accepted ones */
	int			naccepted;
	Refusal    *refused;
	int			nrefused;
	char		reason[EV_SINK_REASON];
} Batch;

static void hold_off(Batch *batch);
static void let_in(Batch *batch);
static bool check_sink(Batch *batch);
static bool run_batch(Batch *batch);
static bool begin_batch(Batch *batch);
static void ship_row(void *arg, const EvShippingRow *row);
static void refuse(Batch *batch, const ItemPointerData *place, int32 attempts,
				   const char *reason);
static void finish_sink(Batch *batch);
static void record_refusals(Batch *batch, int *deferred, int *stuck);
static bool record_refusal(Batch *batch, const Refusal *refusal);
static TimestampTz next_attempt(Batch *batch, const Refusal *refusal);
static char *clean_reason(const char *reason);
static void write_pass(Batch *batch, const EvPass *pass);
static void keep_error(Batch *batch);
static void rethrow_if_told(Batch *batch);
static void report(Batch *batch, EvPassEnd end, const char *code,
				   const char *reason);
static void write_last(Batch *batch, const EvPass *same_as);
static bool is_same(const EvPass *a, const EvPass *b);

void
ev_ship_pass(EvTransaction *transaction, EvRecorder *recorder,
			 const char *actor, const EvPass *same_as, EvPass *pass)
{
	Batch		batch = {0};
	MemoryContext old = CurrentMemoryContext;
	bool volatile more = true;

	memset(pass, 0, sizeof(EvPass));
	batch.transaction = transaction;
	batch.recorder = recorder;
	batch.sink = ev_sink_current();
	batch.pass = pass;
	batch.after = (EvShippingKey) EV_SHIPPING_START;
	batch.started_at = ev_clock_now();
	batch.context = AllocSetContextCreate(CurrentMemoryContext,
										  "pg_evidence batch",
										  ALLOCSET_DEFAULT_SIZES);
	batch.row.kind = "ship";
	batch.row.scope = pass->sink = batch.sink->name;
	batch.row.actor = actor;
	batch.row.started_at = batch.started_at;

	while (more && check_sink(&batch))
	{
		int64 volatile id = batch.row.id;

		MemoryContextSwitchTo(batch.context);
		PG_TRY();
		{
			hold_off(&batch);
			more = run_batch(&batch);
			let_in(&batch);
		}
		PG_CATCH();
		{
			keep_error(&batch);
			batch.row.id = id;
			more = false;
		}
		PG_END_TRY();
		MemoryContextSwitchTo(old);
		MemoryContextReset(batch.context);
	}
	ev_lane_end_pass(EV_LANE_SHIPPER, pass->end >= EV_PASS_DISABLED);
	MemoryContextSwitchTo(batch.context);
	write_last(&batch, same_as);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(batch.context);
}

/*
 * A worker that is told to end, or cancelled, does so between two
 * transactions; a session's statement does at once.  An error lets interrupts
 * in again.
 */
static void
hold_off(Batch *batch)
{
	if (!batch->transaction->session)
		HOLD_INTERRUPTS();
}

static void
let_in(Batch *batch)
{
	if (!batch->transaction->session)
		RESUME_INTERRUPTS();
}

/*
 * Before the first batch, and again after one of which something was refused:
 * a full disk should not be tried with every row there is.
 */
static bool
check_sink(Batch *batch)
{
	char		reason[EV_SINK_REASON] = "";
	EvSinkState state;

	if (ShutdownRequestPending ||
		(!batch->transaction->session && QueryCancelPending))
	{
		report(batch, EV_PASS_STOPPED, NULL, NULL);
		return false;
	}
	if (batch->pass->batches > 0 && batch->nrefused == 0)
		return true;
	state = batch->sink->preflight(reason);
	if (state == EV_SINK_READY)
		return true;
	report(batch,
		   state == EV_SINK_DISABLED ? EV_PASS_DISABLED : EV_PASS_BROKEN,
		   state == EV_SINK_DISABLED ? "55000" : "58030", reason);
	return false;
}

/*
 * One transaction.  True if there may be more to do.  A worker that is told
 * to end does so between two of them.
 */
static bool
run_batch(Batch *batch)
{
	int			deferred = 0;
	int			stuck = 0;
	EvPass		sum = *batch->pass;

	if (!begin_batch(batch))
		return false;
	batch->claimed = ev_shipping_claim(&batch->after, batch->started_at,
									   ev_ship_batch, ship_row, batch);
	if (batch->begun)
		ev_pause_at("shipping");
	finish_sink(batch);
	if (batch->begun)
		ev_pause_at("shipped");
	if (batch->naccepted > 0)
		ev_shipping_sent(batch->accepted, batch->naccepted,
						 batch->sink->name, ev_clock_now());
	record_refusals(batch, &deferred, &stuck);
	if (batch->naccepted + deferred + stuck > 0)
	{
		sum.shipped += batch->naccepted;
		sum.deferred += deferred;
		sum.stuck += stuck;
		sum.batches++;
		write_pass(batch, &sum);
	}
	if (batch->begun)
		ev_pause_at("sending");
	ev_transaction_commit(batch->transaction);
	*batch->pass = sum;
	ev_lane_count(EV_LANE_SHIPPER, batch->naccepted, deferred, stuck);
	if (batch->begun)
		ev_pause_at("sent");

	if (batch->cannot_begin)
	{
		/* What the sink said is a fault, unless it was told to stop. */
		report(batch, ShutdownRequestPending ? EV_PASS_STOPPED :
			   EV_PASS_BROKEN, "58030", batch->reason);
		return false;
	}
	if (batch->claimed > 0 && !batch->transaction->session &&
		TimestampDifferenceExceeds(batch->started_at, ev_clock_now(),
								   PASS_LIMIT_MS))
	{
		report(batch, EV_PASS_TIME, NULL, NULL);
		return false;
	}
	return batch->claimed > 0;
}

/*
 * False, with the end of the pass reported, if there cannot be a batch.
 */
static bool
begin_batch(Batch *batch)
{
	pg_uuid_t	incarnation;
	EvPassEnd	end = EV_PASS_DONE;

	batch->begun = batch->cannot_begin = false;
	batch->naccepted = batch->nrefused = batch->claimed = 0;
	batch->accepted = palloc(sizeof(ItemPointerData) * ev_ship_batch);
	batch->attempts = palloc(sizeof(int32) * ev_ship_batch);
	batch->refused = palloc(sizeof(Refusal) * ev_ship_batch);

	ev_transaction_begin(batch->transaction, EV_TRANSACTION_WRITE);
	if (!batch->transaction->session)
		pgstat_report_activity(STATE_RUNNING, "pg_evidence: ship a batch");
	if (!ev_tables_try_lock_shipping())
		end = EV_PASS_BUSY;
	else if (!ev_instance_current(&incarnation))
		end = EV_PASS_FOREIGN;
	else
	{
		if (batch->pass->batches == 0)
			ev_recorder_refresh(batch->recorder);
		return true;
	}
	ev_transaction_commit(batch->transaction);
	report(batch, end, NULL, NULL);
	return false;
}

/*
 * The sink begins with the first record, so that a pass without any leaves it
 * alone.
 */
static void
ship_row(void *arg, const EvShippingRow *row)
{
	Batch	   *batch = arg;
	const EvBuffer *line;
	char	   *reason;

	if (batch->cannot_begin || ShutdownRequestPending ||
		(!batch->transaction->session && QueryCancelPending))
		return;
	CHECK_FOR_INTERRUPTS();
	if (!batch->begun)
	{
		batch->begun = batch->sink->begin(batch->reason);
		batch->cannot_begin = !batch->begun;
		if (batch->cannot_begin)
			return;
		ev_pause_at("begun");
	}
	if (!ev_recorder_make(batch->recorder, row, &line, &reason))
		refuse(batch, &row->place, row->attempts, reason);
	else if (!ev_sink_ship(batch->sink, row->key.id, line->data, line->length,
						   batch->reason))
		refuse(batch, &row->place, row->attempts, batch->reason);
	else
	{
		batch->accepted[batch->naccepted] = row->place;
		batch->attempts[batch->naccepted++] = row->attempts;
	}
}

static void
refuse(Batch *batch, const ItemPointerData *place, int32 attempts,
	   const char *reason)
{
	Refusal    *refusal = &batch->refused[batch->nrefused++];

	refusal->place = *place;
	refusal->attempts = attempts;
	refusal->refused_at = ev_clock_now();
	refusal->reason = pstrdup(reason);
}

static void
finish_sink(Batch *batch)
{
	int			i;

	if (!batch->begun || batch->sink->finish(batch->reason))
		return;
	for (i = 0; i < batch->naccepted; i++)
		refuse(batch, &batch->accepted[i], batch->attempts[i], batch->reason);
	batch->naccepted = 0;
}

static void
record_refusals(Batch *batch, int *deferred, int *stuck)
{
	int			i;

	for (i = 0; i < batch->nrefused; i++)
	{
		if (record_refusal(batch, &batch->refused[i]))
			(*deferred)++;
		else
			(*stuck)++;
	}
	if (*stuck > 0)
		ereport(WARNING,
				(errmsg("could not put off %d audit records that sink \"%s\" refused",
						*stuck, batch->sink->name),
				 errdetail("%s", batch->reason),
				 errhint("They are as they were, and tried again in the next pass.")));
}

/*
 * False if the row could not be changed; then nothing of it is.
 */
static bool
record_refusal(Batch *batch, const Refusal *refusal)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	bool volatile recorded = false;
	uint32		held = InterruptHoldoffCount;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		ev_shipping_defer(&refusal->place, next_attempt(batch, refusal),
						  batch->sink->name, clean_reason(refusal->reason));
		ReleaseCurrentSubTransaction();
		recorded = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		/* An error takes down whatever held interrupts off. */
		InterruptHoldoffCount = held;
		MemoryContextSwitchTo(context);
		rethrow_if_told(batch);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		snprintf(batch->reason, EV_SINK_REASON, "%s",
				 ev_failure_text(error->message));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return recorded;
}

/*
 * It doubles with each attempt.  The random part keeps rows that failed
 * together from coming back together.  Counted from no earlier than the begin
 * of the pass, so that a clock that is set back cannot make the row due in
 * this very pass.
 */
static TimestampTz
next_attempt(Batch *batch, const Refusal *refusal)
{
	double		pause = ev_ship_backoff_min;
	int			i;

	for (i = 0; i < refusal->attempts && pause < ev_ship_backoff_max; i++)
		pause *= 2;
	pause *= 1 + 0.25 * pg_prng_double(&pg_global_prng_state);
	pause = Min(pause, Max(ev_ship_backoff_max, ev_ship_backoff_min));
	return Max(refusal->refused_at, batch->started_at) +
		(TimestampTz) (pause * 1000);
}

/*
 * A sink may quote anything, from a path to bytes of the record.  Bytes
 * without a meaning in this encoding would be refused by the database, and
 * the row would be stuck for its reason instead of put off.
 */
static char *
clean_reason(const char *reason)
{
	char	   *text = pstrdup(reason);
	char	   *place = text;
	int			length = strlen(text);

	while (length > 0)
	{
		int			good = pg_encoding_verifymbstr(GetDatabaseEncoding(),
												   place, length);

		place += good;
		length -= good;
		if (length > 0)
		{
			*place++ = '?';
			length--;
		}
	}
	for (place = text; *place; place++)
	{
		if ((unsigned char) *place < ' ')
			*place = ' ';
	}
	return ev_failure_text(text);
}

/*
 * With each batch, so that the row is true also for a pass that dies.
 */
static void
write_pass(Batch *batch, const EvPass *pass)
{
	if (batch->row.id == 0)
		ev_pass_forget(batch->row.kind);
	batch->row.counts = psprintf("{\"shipped\": " INT64_FORMAT
								 ", \"deferred\": " INT64_FORMAT
								 ", \"stuck\": " INT64_FORMAT
								 ", \"batches\": " INT64_FORMAT "}",
								 pass->shipped, pass->deferred, pass->stuck,
								 pass->batches);
	batch->row.error_code = pass->code[0] ? pass->code : NULL;
	batch->row.error_message = pass->code[0] ? pass->reason : NULL;
	ev_pass_write(&batch->row);
}

/*
 * The row has been written by the batches, unless there was none or something
 * came in between.  An end that is like that of the pass before is not worth
 * a row every few seconds.  A ledger that is not ours, or that somebody else
 * holds, is left alone.
 */
static void
write_last(Batch *batch, const EvPass *same_as)
{
	EvPass	   *pass = batch->pass;

	if (pass->end == EV_PASS_BUSY || pass->end == EV_PASS_FOREIGN ||
		(batch->row.id != 0 && pass->code[0] == '\0') ||
		(batch->row.id == 0 && same_as != NULL && is_same(pass, same_as)))
		return;
	PG_TRY();
	{
		pg_uuid_t	incarnation;

		hold_off(batch);
		ev_transaction_begin(batch->transaction, EV_TRANSACTION_WRITE);
		if (ev_tables_try_lock_shipping() &&
			ev_instance_current(&incarnation))
			write_pass(batch, pass);
		ev_transaction_commit(batch->transaction);
		let_in(batch);
	}
	PG_CATCH();
	{
		rethrow_if_told(batch);
		EmitErrorReport();
		FlushErrorState();
		ev_transaction_abort(batch->transaction);
	}
	PG_END_TRY();
}

static bool
is_same(const EvPass *a, const EvPass *b)
{
	return a->end == b->end && strcmp(a->code, b->code) == 0 &&
		strcmp(a->reason, b->reason) == 0 && strcmp(a->sink, b->sink) == 0;
}

/*
 * What the transaction that failed had counted did not happen.  To be
 * cancelled is a normal end (S2.28).
 */
static void
keep_error(Batch *batch)
{
	ErrorData  *error;

	MemoryContextSwitchTo(batch->context);
	rethrow_if_told(batch);
	error = CopyErrorData();
	FlushErrorState();
	ev_transaction_abort(batch->transaction);
	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		report(batch, EV_PASS_STOPPED, NULL, NULL);
	else
		report(batch, EV_PASS_FAILED, unpack_sql_state(error->sqlerrcode),
			   clean_reason(error->message));
}

/* A statement of a session is cancelled as a whole. */
static void
rethrow_if_told(Batch *batch)
{
	int			code = geterrcode();

	if (batch->transaction->session &&
		(code == ERRCODE_QUERY_CANCELED ||
		 ERRCODE_TO_CATEGORY(code) == ERRCODE_OPERATOR_INTERVENTION))
		PG_RE_THROW();
}

static void
report(Batch *batch, EvPassEnd end, const char *code, const char *reason)
{
	EvPass	   *pass = batch->pass;

	pass->end = end;
	snprintf(pass->code, sizeof(pass->code), "%s", code ? code : "");
	snprintf(pass->reason, sizeof(pass->reason), "%s", reason ? reason : "");
}
