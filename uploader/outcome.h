/*-------------------------------------------------------------------------
 *
 * outcome.h
 *	  What the state of an export means to whoever wants its package.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_OUTCOME_H
#define EV_UPLOADER_OUTCOME_H

#include "ledger.h"

/*
 * EV_STATUS_OK when the package can be downloaded, EV_STATUS_STATE when it is
 * not ready yet, and the status of its end otherwise.
 */
extern EvStatus ev_outcome(const EvExport *export, EvFailure *failure);

#endif							/* EV_UPLOADER_OUTCOME_H */
