/*-------------------------------------------------------------------------
 *
 * verify.h
 *	  Check a package offline.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_VERIFY_H
#define EV_UPLOADER_VERIFY_H

#include "report.h"

/*
 * Check the package in an open file and name every fault in the report, which
 * need not be cleared before.  export_id (may be NULL) is the export that it
 * should belong to.
 *
 * EV_STATUS_OK: all checks were made; the package is intact if the report
 * holds no fault.  Any other status: the file could not be read, or memory
 * ran out.
 */
extern EvStatus ev_verify(int descriptor, const char *export_id,
						  EvVerifyReport *report, EvFailure *failure);

/* The same for a file by its name. */
extern EvStatus ev_verify_path(const char *path, EvVerifyReport *report,
							   EvFailure *failure);

#endif							/* EV_UPLOADER_VERIFY_H */
