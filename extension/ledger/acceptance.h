/*-------------------------------------------------------------------------
 *
 * acceptance.h
 *	  Has the ledger recovered?
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_ACCEPTANCE_H
#define EV_LEDGER_ACCEPTANCE_H

#include "datatype/timestamp.h"
#include "utils/tuplestore.h"

/*
 * Judge what the ledger holds, with the time since then as watch window: the
 * OUT columns of recovery_report().
 */
extern void ev_acceptance_report(TimestampTz since, Tuplestorestate *store);

/* Exports that are the same request of the same requester. */
extern void ev_acceptance_duplicates(Tuplestorestate *store);

#endif							/* EV_LEDGER_ACCEPTANCE_H */
