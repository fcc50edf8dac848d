/*-------------------------------------------------------------------------
 *
 * wakeup.h
 *	  Tell the processes what a transaction has done, once it is committed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_WAKEUP_H
#define EV_PROCESS_WAKEUP_H

#include "utils/uuid.h"

/* At commit, wake the launcher: there is something to deliver. */
extern void ev_wakeup_at_commit(void);

/* At commit, interrupt the worker of this cancelled export. */
extern void ev_cancel_at_commit(const pg_uuid_t *export_id);

#endif							/* EV_PROCESS_WAKEUP_H */
