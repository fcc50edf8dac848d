/*-------------------------------------------------------------------------
 *
 * outbox.h
 *	  Hand over what a commit has promised.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_OUTBOX_H
#define EV_LEDGER_OUTBOX_H

#include "utils/uuid.h"

/*
 * Deliver one due event: the facts it is linked to are checked again, and it
 * becomes DELIVERED (its job may be claimed) or CLOSED with the reason.
 * *event_id is set before anything can fail.  False if none is due.
 */
extern bool ev_outbox_deliver_one(int64 *event_id);

/*
 * The delivery raised this SQLSTATE: try again after a pause, DEAD after the
 * tenth time.  To be called in a new transaction.
 */
extern void ev_outbox_delivery_failed(int64 event_id, const char *code);

typedef enum EvRequeue
{
	EV_REQUEUE_DONE,
	EV_REQUEUE_UNKNOWN,			/* no such event */
	EV_REQUEUE_NOT_DEAD,
	EV_REQUEUE_TOO_LATE,		/* given up before the requeue window */
	EV_REQUEUE_OVERTAKEN		/* its export has moved on since */
} EvRequeue;

/*
 * Take a DEAD event up again, with a row of history.  *export_id and *kind
 * are set unless it is unknown.
 */
extern EvRequeue ev_outbox_requeue(int64 event_id, const char *actor,
								   const char *session_role,
								   const char *reason, pg_uuid_t *export_id,
								   char **kind);

#endif							/* EV_LEDGER_OUTBOX_H */
