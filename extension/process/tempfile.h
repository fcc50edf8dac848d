/*-------------------------------------------------------------------------
 *
 * tempfile.h
 *	  A private temporary file that outlives a transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_TEMPFILE_H
#define EV_PROCESS_TEMPFILE_H

#include "storage/fd.h"
#include "utils/palloc.h"

#include "package/archive.h"

typedef struct EvTempFile
{
	EvFile		file;			/* for the package code */
	File		vfd;
	MemoryContext context;
	ErrorData  *error;			/* what a callback caught */
} EvTempFile;

/* Make one; it is closed and gone when context is reset or deleted. */
extern EvTempFile *ev_tempfile_create(MemoryContext context);

/*
 * Raise the error that a callback has kept, if any.  To be called when the
 * package code reports a failure, before its own text is used.
 */
extern void ev_tempfile_rethrow(EvTempFile *tempfile);

#endif							/* EV_PROCESS_TEMPFILE_H */
