/*-------------------------------------------------------------------------
 *
 * archive_source.h
 *	  The bytes of a claimed archive, read from the ledger as they are sent.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_ARCHIVE_SOURCE_H
#define EV_UPLOADER_ARCHIVE_SOURCE_H

#include "package/digest.h"

#include "ledger_delivery.h"
#include "s3.h"

/* Chunks that are read in one statement. */
#define EV_ARCHIVE_BATCH 4

/* A few chunks are held in memory, whatever the size of the archive. */
typedef struct EvArchiveSource
{
	EvLedger   *ledger;
	const EvDelivery *item;
	int64_t		begin;			/* of the part that is read */
	int64_t		at;				/* of the next byte in the archive */
	int64_t		held_from;		/* where the bytes in memory begin */
	size_t		held;			/* and how many they are */
	EvSha256   *hash;			/* of what was read, in order */
	int64_t		hashed;			/* bytes that hash has seen */
	EvFailure	failure;		/* why reading failed; status OK: it did not */
	unsigned char bytes[EV_ARCHIVE_BATCH * EV_DELIVERY_CHUNK];
} EvArchiveSource;

/* Release with ev_archive_source_free, in either case. */
extern EvStatus ev_archive_source_open(EvLedger *ledger,
									   const EvDelivery *item,
									   EvArchiveSource **source,
									   EvFailure *failure);
extern void ev_archive_source_free(EvArchiveSource *source);

/* Give the bytes from begin on to a request. */
extern EvS3Source ev_archive_source_from(EvArchiveSource *source,
										 int64_t begin);

/* The SHA-256 of length bytes from begin on. */
extern EvStatus ev_archive_source_digest(EvArchiveSource *source,
										 int64_t begin, int64_t length,
										 char hex[EV_SHA256_HEX],
										 EvFailure *failure);

/*
 * Is what was read the archive that the ledger describes?  True also when not
 * all of it was read in order, so that nothing can be said.
 */
extern bool ev_archive_source_intact(EvArchiveSource *source);

#endif							/* EV_UPLOADER_ARCHIVE_SOURCE_H */
