/*-------------------------------------------------------------------------
 *
 * audit.h
 *	  The audit log itself: append, and the one lawful way to change it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_AUDIT_H
#define EV_LEDGER_AUDIT_H

#include "utils/jsonb.h"

/* A row to append; NULL members become NULL, except where noted. */
typedef struct EvAuditRow
{
	const char *action;			/* required */
	const char *actor_id;		/* required */
	const char *actor_role;
	const char *target_type;
	const char *target_id;
	const char *outcome;		/* required */
	const char *error_code;
	const char *request_id;
	const char *summary;
	const char *tenant_id;		/* required */
	const char *source_fingerprint;
	Jsonb	   *metadata;		/* NULL becomes {} */
} EvAuditRow;

/* Append in the current transaction; returns the row's id. */
extern int64 ev_audit_append(const EvAuditRow *row);

/*
 * Append the strict audit row of an action on an object of ours, such as an
 * export or a role: if it cannot be written, the action does not take place.
 */
extern void ev_audit_append_action(const char *action, const char *actor,
								   const char *session_role,
								   const char *target_type,
								   const char *target_id,
								   const char *summary);

/* Does our own code, in this very statement, change rows of the log? */
extern bool ev_audit_change_allowed(void);

/* Give all rows the current transaction as recorded_xid: adoption only. */
extern int64 ev_audit_stamp_all(void);

#endif							/* EV_LEDGER_AUDIT_H */
