/*-------------------------------------------------------------------------
 *
 * recovery.h
 *	  What an operator does to an export by hand.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_RECOVERY_H
#define EV_LEDGER_RECOVERY_H

#include "ledger/export.h"

/*
 * FAILED to QUEUED, as the next generation of the same export, with an event
 * and a row of history.  False if the export moved meanwhile.
 */
extern bool ev_recovery_retry(const pg_uuid_t *id,
							  const EvExportStatus *status,
							  const char *actor, const char *session_role,
							  const char *reason);

/*
 * Stop the downloads of an export, also those under way, until thawed.  False
 * if they are stopped by a freeze already.
 */
extern bool ev_recovery_freeze(const pg_uuid_t *id, const char *actor,
							   const char *session_role, const char *reason);

/*
 * End the freeze; false if there is none.  *others is the number of findings
 * that stop the downloads all the same.
 */
extern bool ev_recovery_unfreeze(const pg_uuid_t *id, const char *actor,
								 const char *session_role,
								 const char *reason, int64 *others);

/*
 * Lock the open attempts of the export's job, as a worker locks its own before
 * the export; to be called before the export is locked.
 */
extern void ev_recovery_lock_attempts(const pg_uuid_t *id);

/*
 * An unfinished export to FAILED: its attempt ends, its archive is dropped.
 * False if it moved meanwhile.
 */
extern bool ev_recovery_fail(const pg_uuid_t *id,
							 const EvExportStatus *status,
							 const char *actor, const char *session_role,
							 const char *reason);

/* An object that was seen in the store, with what was found there. */
typedef struct EvFoundObject
{
	const char *bucket;
	const char *key;
	const char *version;		/* NULL in a bucket without versions */
} EvFoundObject;

typedef enum EvFillIn
{
	EV_FILL_IN_DONE,
	EV_FILL_IN_NEVER_SENT,		/* no attempt at this archive named it */
	EV_FILL_IN_IN_WORK,			/* an uploader has a live lease on it */
	EV_FILL_IN_MOVED			/* the export moved meanwhile */
} EvFillIn;

/*
 * Write down where the archive lies, after somebody has looked: STAGED becomes
 * READY, and READY gets the key that it lacks.
 */
extern EvFillIn ev_recovery_fill_in(const pg_uuid_t *id,
									const EvExportStatus *status,
									const EvFoundObject *object,
									const char *actor,
									const char *session_role,
									const char *reason);

#endif							/* EV_LEDGER_RECOVERY_H */
