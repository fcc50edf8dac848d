/*-------------------------------------------------------------------------
 *
 * requeue.c
 *	  requeue_outbox_event(): take up what was given up.
 *
 * A control for emergencies, used when something outside has been repaired.
 * So its audit row is the one that may be missing: if the log cannot be
 * written, that is said in a warning and the event is taken up all the same
 * (requirement S1.54).  The row in the export's history is strict.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "api/call.h"
#include "base/errors.h"
#include "ledger/audit.h"
#include "ledger/outbox.h"
#include "process/scrub.h"
#include "process/wakeup.h"

static void try_audit(const EvCall *call, int64 event_id,
					  const char *reason);

PG_FUNCTION_INFO_V1(ev_sql_requeue_outbox_event);

Datum
ev_sql_requeue_outbox_event(PG_FUNCTION_ARGS)
{
	EvCall		call;
	char	   *reason = ev_scrub(ev_call_required_text(fcinfo, 1, "reason",
														EV_REASON_LIMIT));
	pg_uuid_t	export_id;
	char	   *kind = NULL;
	int64		event_id;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("event_id must not be null"),
				 errhint("Table evidence.outbox_event lists the events in state DEAD.")));
	event_id = PG_GETARG_INT64(0);
	ev_call_begin(&call, "requeue_outbox_event", EV_OPERATOR);
	switch (ev_outbox_requeue(event_id, call.role, call.session_role, reason,
							  &export_id, &kind))
	{
		case EV_REQUEUE_DONE:
			break;
		case EV_REQUEUE_UNKNOWN:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("outbox event " INT64_FORMAT " does not exist",
							event_id),
					 errhint("Table evidence.outbox_event lists the events in state DEAD.")));
			break;
		case EV_REQUEUE_NOT_DEAD:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("outbox event " INT64_FORMAT " has not been given up",
							event_id),
					 errhint("Only an event in state DEAD can be taken up again; one that is PENDING will be tried by itself.")));
			break;
		case EV_REQUEUE_TOO_LATE:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("outbox event " INT64_FORMAT " was given up too long ago",
							event_id),
					 errdetail("The limit is pg_evidence.requeue_window."),
					 errhint("Request the export again.")));
			break;
		case EV_REQUEUE_OVERTAKEN:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("outbox event " INT64_FORMAT " is not wanted any more",
							event_id),
					 errdetail("Export \"%s\" has moved on without it.",
							   ev_export_id_text(&export_id)),
					 errhint("View evidence.audit_export_status tells how the export stands.")));
			break;
	}
	try_audit(&call, event_id, reason);
	ev_wakeup_at_commit();
	ev_call_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text("PENDING"));
}

/*
 * In a subtransaction, so that a failure takes nothing else with it.  Its
 * text may hold values of the row, so only its code is told.
 */
static void
try_audit(const EvCall *call, int64 event_id, const char *reason)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		ev_audit_append_action("outbox_event.requeue", call->role,
							   call->session_role, "outbox_event",
							   psprintf(INT64_FORMAT, event_id), reason);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		int			code = geterrcode();

		MemoryContextSwitchTo(context);
		/* Somebody who cancels wants the whole to be undone. */
		if (code == ERRCODE_QUERY_CANCELED || code == ERRCODE_ADMIN_SHUTDOWN)
			PG_RE_THROW();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		ereport(WARNING,
				(errmsg("could not write the audit row of this requeue: SQLSTATE %s",
						unpack_sql_state(code)),
				 errdetail("Event " INT64_FORMAT " is taken up all the same.",
						   event_id),
				 errhint("Record it with evidence.record_audit_event() once the log can be written again.")));
	}
	PG_END_TRY();
}
