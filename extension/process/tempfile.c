/*-------------------------------------------------------------------------
 *
 * tempfile.c
 *	  A private temporary file that outlives a transaction.
 *
 * Compressed bytes of an export wait here between the transaction that reads
 * the rows and the one that stores the archive.  The server's own temporary
 * files are private to its user, count against temp_file_limit and are gone
 * after a crash, which is all that is needed (requirement S1.58).
 *
 * The callbacks are called from inside libzip, which an error must not jump
 * through.  They catch it, keep it, and report a plain failure; whoever called
 * the library raises it again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "process/tempfile.h"

static int64_t read_bytes(void *arg, int64_t offset, void *data,
						  size_t length);
static bool write_bytes(void *arg, int64_t offset, const void *data,
						size_t length);
static void keep_error(EvTempFile *tempfile);
static void close_file(void *arg);

EvTempFile *
ev_tempfile_create(MemoryContext context)
{
	EvTempFile *tempfile = MemoryContextAllocZero(context,
												  sizeof(EvTempFile));
	MemoryContextCallback *callback =
	MemoryContextAllocZero(context, sizeof(MemoryContextCallback));

	tempfile->file.arg = tempfile;
	tempfile->file.read = read_bytes;
	tempfile->file.write = write_bytes;
	tempfile->context = context;
	tempfile->vfd = OpenTemporaryFile(true);

	callback->func = close_file;
	callback->arg = tempfile;
	MemoryContextRegisterResetCallback(context, callback);
	return tempfile;
}

static void
close_file(void *arg)
{
	FileClose(((EvTempFile *) arg)->vfd);
}

static int64_t
read_bytes(void *arg, int64_t offset, void *data, size_t length)
{
	EvTempFile *tempfile = arg;
	int64_t volatile result = -1;

	PG_TRY();
	{
		result = FileRead(tempfile->vfd, data, length, offset,
						  WAIT_EVENT_BUFFILE_READ);
		if (result < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read a temporary file: %m")));
	}
	PG_CATCH();
	{
		keep_error(tempfile);
	}
	PG_END_TRY();
	return result;
}

static bool
write_bytes(void *arg, int64_t offset, const void *data, size_t length)
{
	EvTempFile *tempfile = arg;
	bool volatile done = false;

	PG_TRY();
	{
		int			written;

		errno = 0;
		written = FileWrite(tempfile->vfd, unconstify(void *, data), length,
							offset, WAIT_EVENT_BUFFILE_WRITE);
		if (written != length)
		{
			/* A short write sets no errno; the disk is full then. */
			if (errno == 0)
				errno = ENOSPC;
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write a temporary file: %m")));
		}
		done = true;
	}
	PG_CATCH();
	{
		keep_error(tempfile);
	}
	PG_END_TRY();
	return done;
}

static void
keep_error(EvTempFile *tempfile)
{
	MemoryContext old = MemoryContextSwitchTo(tempfile->context);

	if (tempfile->error == NULL)
		tempfile->error = CopyErrorData();
	FlushErrorState();
	MemoryContextSwitchTo(old);
}

void
ev_tempfile_rethrow(EvTempFile *tempfile)
{
	if (tempfile->error != NULL)
		ReThrowError(tempfile->error);
}
