/*-------------------------------------------------------------------------
 *
 * reconcile.h
 *	  What the ledger knows of an object store, and where the two differ.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_RECONCILE_H
#define EV_LEDGER_RECONCILE_H

#include "datatype/timestamp.h"
#include "utils/jsonb.h"
#include "utils/tuplestore.h"
#include "utils/uuid.h"

/* All keys of a bucket that mean something: columns of known_objects(). */
extern void ev_reconcile_known(const char *bucket, Tuplestorestate *store);

/*
 * Write down what a comparison of everything below prefix found, a JSON array
 * as record_reconciliation() describes it; findings that are not in it any
 * more are closed.  Returns how many are open.
 */
extern int64 ev_reconcile_record(const char *bucket, const char *prefix,
								 const char *actor, TimestampTz started_at,
								 int64 objects, Jsonb *findings);

/* Is there an open finding because of which nothing may be handed out? */
extern bool ev_reconcile_freezes(const pg_uuid_t *export_id);

#endif							/* EV_LEDGER_RECONCILE_H */
