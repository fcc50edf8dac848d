/*-------------------------------------------------------------------------
 *
 * outbox.h
 *	  Hand over what a commit has promised.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_OUTBOX_H
#define EV_LEDGER_OUTBOX_H

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

#endif							/* EV_LEDGER_OUTBOX_H */
