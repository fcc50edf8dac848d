/*-------------------------------------------------------------------------
 *
 * housekeeping.h
 *	  Put back what dead workers left, and deliver what commits have promised.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_HOUSEKEEPING_H
#define EV_PROCESS_HOUSEKEEPING_H

#include "process/transaction.h"

/*
 * In transactions of its own.  The caller has seen that the ledger is this
 * cluster's.  Returns false if another session holds its tables: what is not
 * done then is done by the next call.
 */
extern bool ev_housekeeping(EvTransaction *transaction);

#endif							/* EV_PROCESS_HOUSEKEEPING_H */
