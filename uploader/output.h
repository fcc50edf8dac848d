/*-------------------------------------------------------------------------
 *
 * output.h
 *	  Results on standard output, for people or as one JSON document.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_OUTPUT_H
#define EV_UPLOADER_OUTPUT_H

#include "report.h"

/* One line of text, at once: what scripts read from the other commands. */
extern void ev_output_line(const char *text);

/* All exports of a list, or everything about one. */
extern void ev_output_list(const EvExportList *list, bool json);
extern void ev_output_export(const EvExport *export, bool json);

/*
 * JSON of a finished command: the export, and if path is not NULL the file it
 * was downloaded to and what the verifier found.
 */
extern void ev_output_result(const EvExport *export, const char *path,
							 const EvVerifyReport *report);

/* The verdict on a package. */
extern void ev_output_report(const char *path, const EvVerifyReport *report,
							 bool json);

/* JSON of a failure. */
extern void ev_output_failure(const EvFailure *failure);

/* Flush; false if something could not be written. */
extern bool ev_output_finish(void);

#endif							/* EV_UPLOADER_OUTPUT_H */
