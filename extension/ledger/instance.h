/*-------------------------------------------------------------------------
 *
 * instance.h
 *	  Were the rows of this database written by this cluster?
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_INSTANCE_H
#define EV_LEDGER_INSTANCE_H

#include "utils/uuid.h"

/* What adopt_instance did. */
typedef struct EvAdoption
{
	int64		failed;			/* exports that were unfinished */
	int64		expired;		/* exports whose bytes a dump does not hold */
	int64		stamped;		/* rows of the audit log */
} EvAdoption;

/*
 * The incarnation that this cluster writes under; false (and the ledger must
 * be left alone) while rows of another cluster have not been adopted.
 */
extern bool ev_instance_current(pg_uuid_t *incarnation);

/* Raise 55000 with the way out if the incarnation is foreign. */
extern void ev_instance_require(pg_uuid_t *incarnation);

/* Take the foreign rows over; the caller has checked that there are some. */
extern void ev_instance_adopt(const char *actor, const char *session_role,
							  const char *reason, EvAdoption *adoption);

#endif							/* EV_LEDGER_INSTANCE_H */
