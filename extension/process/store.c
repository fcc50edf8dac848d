/*-------------------------------------------------------------------------
 *
 * store.c
 *	  Bring a finished archive from its temporary file into the ledger.
 *
 * Every byte is read back from the file once, and that one buffer is hashed
 * and stored: what the ledger says about the archive is what the chunks hold,
 * also after a disk has lied (case C52).  Two digests run along: one over all
 * bytes, which is what the user is told, and one over the chunks' digests,
 * which lets a download be checked before its first byte.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "base/errors.h"
#include "ledger/archive.h"
#include "process/shmem.h"
#include "process/store.h"

/* The two digests that run along. */
typedef struct RunningDigests
{
	EvSha256   *bytes;
	EvSha256   *chunks;
} RunningDigests;

static void begin(RunningDigests *digests);
static void store_chunks(const EvClaim *claim, EvTempFile *file, int64 start,
						 EvArchiveFacts *facts, RunningDigests *digests);
static void add_to(EvSha256 *hash, const void *data, size_t length);
static void finish(EvSha256 *hash, char hex[EV_SHA256_HEX]);

void
ev_store_archive(const EvClaim *claim, EvTempFile *file, int64 start,
				 EvArchiveFacts *facts)
{
	RunningDigests *digests = palloc0(sizeof(RunningDigests));

	PG_TRY();
	{
		begin(digests);
		store_chunks(claim, file, start, facts, digests);
		finish(digests->bytes, facts->archive_sha256);
		finish(digests->chunks, facts->chunks_sha256);
	}
	PG_FINALLY();
	{
		ev_sha256_free(digests->bytes);
		ev_sha256_free(digests->chunks);
	}
	PG_END_TRY();
}

static void
begin(RunningDigests *digests)
{
	EvError		error;

	if ((digests->bytes = ev_sha256_create(&error)) == NULL ||
		(digests->chunks = ev_sha256_create(&error)) == NULL)
		ev_raise(&error);
}

static void
store_chunks(const EvClaim *claim, EvTempFile *file, int64 start,
			 EvArchiveFacts *facts, RunningDigests *digests)
{
	unsigned char *data = palloc(EV_CHUNK_BYTES);
	unsigned char sha256[EV_SHA256_BYTES];
	MemoryContext chunk_context;
	MemoryContext old;
	int64		offset;

	chunk_context = AllocSetContextCreate(CurrentMemoryContext,
										  "pg_evidence chunk",
										  ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(chunk_context);
	facts->chunks = 0;
	for (offset = 0; offset < facts->archive_bytes; offset += EV_CHUNK_BYTES)
	{
		size_t		length = Min(EV_CHUNK_BYTES,
								 facts->archive_bytes - offset);

		CHECK_FOR_INTERRUPTS();
		if (file->file.read(file, start + offset, data, length) !=
			(int64) length)
		{
			ev_tempfile_rethrow(file);
			elog(ERROR, "temporary file is shorter than the archive");
		}
		ev_chunk_store(claim, facts->chunks++, data, length, sha256);
		add_to(digests->bytes, data, length);
		add_to(digests->chunks, sha256, EV_SHA256_BYTES);
		MemoryContextReset(chunk_context);
		if (ev_shmem_heartbeat(facts->record_count, facts->record_count,
							   facts->archive_bytes))
			break;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(chunk_context);
	pfree(data);
}

static void
add_to(EvSha256 *hash, const void *data, size_t length)
{
	EvError		error;

	if (!ev_sha256_update(hash, data, length, &error))
		ev_raise(&error);
}

static void
finish(EvSha256 *hash, char hex[EV_SHA256_HEX])
{
	unsigned char digest[EV_SHA256_BYTES];
	EvError		error;

	if (!ev_sha256_finish(hash, digest, &error))
		ev_raise(&error);
	ev_sha256_hex(digest, hex);
}
