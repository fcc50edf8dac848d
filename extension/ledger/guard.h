/*-------------------------------------------------------------------------
 *
 * guard.h
 *	  Rows to lock before something is counted or compared.
 *
 * Locks are held until the end of the transaction.  They are always taken in
 * this order: source, requester.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_GUARD_H
#define EV_LEDGER_GUARD_H

#include "datatype/timestamp.h"

/*
 * Keep retention away from this source, wait at most lock_timeout.  Below the
 * returned time rows have been retired; -infinity if none has.
 */
extern TimestampTz ev_guard_share_source(const char *source);

/*
 * Let requests of this requester pass one after the other.  Also conflicts,
 * with 40001, with a request that committed after the snapshot of a caller in
 * REPEATABLE READ or SERIALIZABLE.
 */
extern void ev_guard_touch_requester(const char *requester);

/* Let claims pass one after the other. */
extern void ev_guard_lock_pool(void);

#endif							/* EV_LEDGER_GUARD_H */
