/*-------------------------------------------------------------------------
 *
 * download.h
 *	  Fetch the archive of a ready export into a file, and verify it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_DOWNLOAD_H
#define EV_UPLOADER_DOWNLOAD_H

#include "options.h"
#include "verify.h"

/*
 * Would a download to output be refused because of what is there already?  To
 * be asked before an export is requested for it.
 */
extern EvStatus ev_download_check(const char *output, bool force,
								  EvFailure *failure);

/*
 * Fetch export id into a file.  output is the file's name, or a directory, or
 * NULL for evidence-ID.zip in the current one; *path becomes the name taken
 * (release with free).  An existing file is replaced only with force.  store
 * says how to reach an object store, if the archive lies in one.
 *
 * Unless the result is EV_STATUS_OK, no file has got its final name and the
 * temporary one is gone.  report is what the verifier found.
 */
extern EvStatus ev_download(EvLedger *ledger, const char *id,
							const char *reason, const char *output,
							bool force, const EvStoreOptions *store,
							char **path, EvVerifyReport *report,
							EvFailure *failure);

#endif							/* EV_UPLOADER_DOWNLOAD_H */
