/*-------------------------------------------------------------------------
 *
 * owner.h
 *	  Who called, and acting as the extension's owner on the caller's behalf.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_BASE_OWNER_H
#define EV_BASE_OWNER_H

/* Whom we act for and what to put back afterwards. */
typedef struct EvOwner
{
	Oid			caller;			/* current_user at the call */
	int			security_context;
	int			guc_level;
} EvOwner;

/* The owner of the extension; an error if it is not installed. */
extern Oid	ev_owner_oid(void);

/*
 * For a background process, before it connects: names mean those of
 * pg_catalog until it becomes the owner.
 */
extern void ev_owner_pin_search_path(void);

/*
 * Become the owner with search_path = pg_catalog, evidence, pg_temp, and go
 * back.  An error in between needs no leave: the end of the transaction or
 * subtransaction restores both.
 */
extern void ev_owner_enter(EvOwner *owner);
extern void ev_owner_leave(const EvOwner *owner);

#endif							/* EV_BASE_OWNER_H */
