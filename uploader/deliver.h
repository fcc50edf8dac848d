/*-------------------------------------------------------------------------
 *
 * deliver.h
 *	  The command "upload": carry out what is due between ledger and store.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_DELIVER_H
#define EV_UPLOADER_DELIVER_H

#include "options.h"

/* Handle signals; to be called before the ledger is opened. */
extern EvStatus ev_deliver_setup(EvFailure *failure);

/*
 * Without --once it goes on until it is told to end, which is EV_STATUS_OK.
 * With it, EV_STATUS_OK means that nothing due is left undone.
 */
extern EvStatus ev_deliver(const EvOptions *options, EvLedger *ledger,
						   EvFailure *failure);

#endif							/* EV_UPLOADER_DELIVER_H */
