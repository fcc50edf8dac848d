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

#endif							/* EV_LEDGER_RECOVERY_H */
