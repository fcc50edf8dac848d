/*-------------------------------------------------------------------------
 *
 * store.h
 *	  Bring a finished archive from its temporary file into the ledger.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_STORE_H
#define EV_PROCESS_STORE_H

#include "ledger/job.h"
#include "process/tempfile.h"

/*
 * Store the archive that lies in [start, start + facts->archive_bytes) of the
 * file as chunks under the claim's token, in the current transaction, and fill
 * in the facts about its bytes.  Stops early when the export is cancelled; the
 * ledger then refuses what was stored.
 */
extern void ev_store_archive(const EvClaim *claim, EvTempFile *file,
							 int64 start, EvArchiveFacts *facts);

#endif							/* EV_PROCESS_STORE_H */
