/*-------------------------------------------------------------------------
 *
 * capability.h
 *	  Who may do what.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_CAPABILITY_H
#define EV_LEDGER_CAPABILITY_H

typedef enum EvCapability
{
	EV_REQUESTER = 1 << 0,
	EV_OPERATOR = 1 << 1,
	EV_AUDITOR = 1 << 2,
	EV_WRITER = 1 << 3,
	EV_UPLOADER = 1 << 4
} EvCapability;

#define EV_ALL_CAPABILITIES \
	(EV_REQUESTER | EV_OPERATOR | EV_AUDITOR | EV_WRITER | EV_UPLOADER)

/* False if name is no capability. */
extern bool ev_capability_from_name(const char *name,
									EvCapability *capability);

/*
 * All capabilities of a role, by itself or as a member that inherits, in the
 * newest snapshot.  Superusers have all.
 */
extern int	ev_capabilities_of(Oid role);

/* Is the export of requested_by the role's own? */
extern bool ev_capability_owns(Oid role, const char *requested_by);

/*
 * Give or take a capability with the privileges that belong to it.  take
 * returns false if the role does not have it.
 */
extern void ev_capability_give(Oid role, EvCapability capability,
							   const char *granted_by);
extern bool ev_capability_take(Oid role, EvCapability capability);

#endif							/* EV_LEDGER_CAPABILITY_H */
