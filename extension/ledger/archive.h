/*-------------------------------------------------------------------------
 *
 * archive.h
 *	  The bytes of an archive in the database.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_ARCHIVE_H
#define EV_LEDGER_ARCHIVE_H

#include "utils/uuid.h"

#include "ledger/export.h"
#include "ledger/job.h"
#include "package/digest.h"

#define EV_CHUNK_BYTES 65536

/* Store one chunk under the attempt's token; sha256 becomes its digest. */
extern void ev_chunk_store(const EvClaim *claim, int32 seq, const void *data,
						   size_t length,
						   unsigned char sha256[EV_SHA256_BYTES]);

/*
 * Read chunk seq of the archive, checked against its own digest (PE006).
 * The bytea lives in the caller's memory context; NULL if there is none.
 */
extern bytea *ev_chunk_read(const pg_uuid_t *archive_token, int32 seq);

/*
 * Are the chunks' number, sizes and digests those of the ledger?  Reads no
 * bytes, so a fetch can ask before it releases the first one.
 */
extern bool ev_chunks_check(const EvExportStatus *status);

/* Is the SHA-256 of all the bytes that of the ledger?  Reads them all. */
extern bool ev_chunks_check_bytes(const EvExportStatus *status);

/* Is anything left of the archive's bytes? */
extern bool ev_chunks_exist(const EvExportStatus *status);

#endif							/* EV_LEDGER_ARCHIVE_H */
