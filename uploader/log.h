/*-------------------------------------------------------------------------
 *
 * log.h
 *	  What the program says on standard error.
 *
 * Standard output belongs to results alone, so that it can be piped.
 * Everything printed goes through ev_log_text: names and messages come from
 * the server or from a file, and a terminal obeys control characters.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_LOG_H
#define EV_UPLOADER_LOG_H

#include <stdio.h>

#include "failure.h"

/*
 * quiet suppresses notes; warnings and failures are always printed.  With
 * json each of them is one JSON object on one line, with "time", "level",
 * "message" and what else is known.
 */
extern void ev_log_setup(bool quiet, bool json);

/* Print one line for a person: what happens or has happened. */
extern void ev_log_note(const char *format,...) EV_PRINTF(1, 2);

/* The same about one export. */
extern void ev_log_export(const char *export_id, const char *format,...)
			EV_PRINTF(2, 3);

/* Print a failure: the error line, then DETAIL and HINT if there are any. */
extern void ev_log_failure(const EvFailure *failure);

/* The same for one that the program goes on after. */
extern void ev_log_warning(const EvFailure *failure);

/*
 * Write text to stream with each control character and each character that
 * reorders a line shown as <U+XXXX>, and each invalid byte as U+FFFD.
 */
extern void ev_log_text(FILE *stream, const char *text);

#endif							/* EV_UPLOADER_LOG_H */
