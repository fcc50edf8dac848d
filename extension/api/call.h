/*-------------------------------------------------------------------------
 *
 * call.h
 *	  Around every SQL function: who calls, may they, and acting as the owner.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_API_CALL_H
#define EV_API_CALL_H

#include "fmgr.h"
#include "utils/uuid.h"

#include "base/compat.h"
#include "base/owner.h"
#include "ledger/capability.h"
#include "ledger/export.h"

typedef struct EvCall
{
	EvOwner		owner;
	const char *function;
	int			capabilities;
	char	   *role;			/* current_user */
	char	   *session_role;	/* session_user */
} EvCall;

/*
 * Begin: refuse a security-restricted operation, become the owner, and refuse
 * (42501) a caller who has none of the needed capabilities.  All until
 * ev_call_end runs as the owner.
 */
extern void ev_call_begin(EvCall *call, const char *function, int needed);
extern void ev_call_end(EvCall *call);

/* The same for superusers only. */
extern void ev_call_begin_superuser(EvCall *call, const char *function);

/*
 * Load an export that the caller may act on: a requester on own ones, those
 * with a capability of any on all.  Unknown and foreign ids get the same
 * 42501.
 */
extern void ev_call_load_export(EvCall *call, const pg_uuid_t *id, int any,
								bool lock, EvExportStatus *status);

/* Raise that 42501 (for grants as well), after a line in the server log. */
extern EV_NORETURN void ev_call_refuse(EvCall *call, const char *what);

/* A text argument: NULL stays NULL. */
extern char *ev_call_text(FunctionCallInfo fcinfo, int argument);

/* A text argument that must be there, not blank and at most limit bytes. */
extern char *ev_call_required_text(FunctionCallInfo fcinfo, int argument,
								   const char *name, int limit);

/* An export id argument, which must be there. */
extern pg_uuid_t *ev_call_export_id(FunctionCallInfo fcinfo, int argument);

/* Longest purpose or reason, in bytes. */
#define EV_REASON_LIMIT 2000

#endif							/* EV_API_CALL_H */
