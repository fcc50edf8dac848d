/*-------------------------------------------------------------------------
 *
 * progress.h
 *	  A progress bar on a terminal, nothing anywhere else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_PROGRESS_H
#define EV_UPLOADER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger.h"

/* Bars are drawn if wanted and standard error is a terminal. */
extern void ev_progress_setup(bool wanted);

/* Is there a terminal to draw on? */
extern bool ev_progress_visible(void);

/* Show how far the server is with an export. */
extern void ev_progress_export(const EvExport *export);

/* Show how many bytes of a download have come. */
extern void ev_progress_download(int64_t done, int64_t total);

/* End the line that a bar stands on, if one does. */
extern void ev_progress_end(void);

#endif							/* EV_UPLOADER_PROGRESS_H */
