/*-------------------------------------------------------------------------
 *
 * spool.h
 *	  A file that has its final name only once it is whole and checked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_SPOOL_H
#define EV_UPLOADER_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "failure.h"

typedef struct EvSpoolFile EvSpoolFile;

/* Does path exist although it may not be replaced? */
extern EvStatus ev_spool_file_check(const char *path, bool replace,
									EvFailure *failure);

/*
 * Make the private temporary file that will become path.  Fails if path
 * exists, unless replace is set.  Also removes what earlier runs for the same
 * path have left behind.  Only one may be open at a time.
 */
extern EvStatus ev_spool_file_open(const char *path, bool replace,
								   EvSpoolFile **spool, EvFailure *failure);

/* Append bytes. */
extern EvStatus ev_spool_file_write(EvSpoolFile *spool, const void *data,
									size_t length, EvFailure *failure);

/* Drop all that was written, to begin anew. */
extern EvStatus ev_spool_file_rewind(EvSpoolFile *spool, EvFailure *failure);

/* The descriptor, for reading back. */
extern int	ev_spool_file_descriptor(const EvSpoolFile *spool);

/* Make everything durable and give the file its final name. */
extern EvStatus ev_spool_file_keep(EvSpoolFile *spool, EvFailure *failure);

/* Close; removes the temporary file unless it was kept.  NULL is allowed. */
extern void ev_spool_file_close(EvSpoolFile *spool);

/*
 * From here on SIGINT, SIGTERM, SIGHUP and SIGQUIT remove the temporary file,
 * if there is one, before they end the program.
 */
extern void ev_spool_file_guard(void);

#endif							/* EV_UPLOADER_SPOOL_H */
