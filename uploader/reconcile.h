/*-------------------------------------------------------------------------
 *
 * reconcile.h
 *	  The command "reconcile": compare ledger and object store both ways.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_RECONCILE_H
#define EV_UPLOADER_RECONCILE_H

#include "options.h"

/*
 * Print and record what was found.  EV_STATUS_OPEN when findings are open;
 * *reported tells that standard output says so.
 */
extern EvStatus ev_reconcile(const EvOptions *options, EvLedger *ledger,
							 bool *reported, EvFailure *failure);

#endif							/* EV_UPLOADER_RECONCILE_H */
