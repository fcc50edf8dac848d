/*-------------------------------------------------------------------------
 *
 * archive_source.c
 *	  The bytes of a claimed archive, read from the ledger as they are sent.
 *
 * A few chunks are read in one short transaction, handed to the request as it
 * asks for them, and forgotten.  No transaction is open while the network is
 * waited for, no file is written, and an archive of any size takes the same
 * memory.  A part whose SHA-256 must be known before its first byte is sent
 * is therefore read twice; holding it would take a hundred times the memory.
 *
 * The callbacks run inside the store's library, so a failure is kept here
 * until the request has ended.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "archive_source.h"

EvStatus
ev_archive_source_open(EvLedger *ledger, const EvDelivery *item,
					   EvArchiveSource **source, EvFailure *failure)
{
	EvArchiveSource *created = malloc(sizeof(EvArchiveSource));
	EvError		error;

	*source = created;
	if (created == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	created->ledger = ledger;
	created->item = item;
	created->begin = 0;
	created->at = 0;
	created->held_from = 0;
	created->held = 0;
	created->hashed = 0;
	ev_failure_clear(&created->failure);
	created->hash = ev_sha256_create(&error);
	if (created->hash == NULL)
		return ev_fail_package(failure, NULL, &error);
	if (item->bytes <= 0 ||
		item->chunks != (item->bytes + EV_DELIVERY_CHUNK - 1) /
		EV_DELIVERY_CHUNK)
		return ev_fail(failure, EV_STATUS_MISMATCH, "could not read the archive",
					   "size and number of chunks do not fit");
	return EV_STATUS_OK;
}

void
ev_archive_source_free(EvArchiveSource *source)
{
	if (source == NULL)
		return;
	ev_sha256_free(source->hash);
	free(source);
}

/* Have the byte at source->at in memory. */
static EvStatus
load(EvArchiveSource *source, EvFailure *failure)
{
	const EvDelivery *item = source->item;
	int64_t		seq = source->at / EV_DELIVERY_CHUNK;
	int64_t		left = item->chunks - seq;
	int			count = EV_ARCHIVE_BATCH;
	int64_t		expected;
	EvStatus	status;

	if (source->at >= source->held_from &&
		source->at < source->held_from + (int64_t) source->held)
		return EV_STATUS_OK;
	if (left < count)
		count = (int) left;
	source->held_from = seq * EV_DELIVERY_CHUNK;
	status = ev_delivery_chunks(source->ledger, item->token, seq, count,
								source->bytes, &source->held, failure);
	if (status != EV_STATUS_OK)
	{
		source->held = 0;
		return status;
	}
	expected = (int64_t) count * EV_DELIVERY_CHUNK;
	if (expected > item->bytes - source->held_from)
		expected = item->bytes - source->held_from;
	if ((int64_t) source->held != expected)
	{
		source->held = 0;
		return ev_fail(failure, EV_STATUS_MISMATCH, "could not read the archive",
					   "the last chunk has another length than the ledger states");
	}
	return EV_STATUS_OK;
}

/* Copy what is in memory at source->at, and go on behind it. */
static EvStatus
take(EvArchiveSource *source, void *buffer, size_t size, size_t *taken,
	 EvFailure *failure)
{
	EvError		error;
	EvStatus	status;
	size_t		offset;

	*taken = 0;
	if (source->at >= source->item->bytes || size == 0)
		return EV_STATUS_OK;
	status = load(source, failure);
	if (status != EV_STATUS_OK)
		return status;
	offset = (size_t) (source->at - source->held_from);
	*taken = source->held - offset;
	if (*taken > size)
		*taken = size;
	memcpy(buffer, source->bytes + offset, *taken);

	/* Bytes that are read a second time do not count again. */
	if (source->at == source->hashed)
	{
		if (!ev_sha256_update(source->hash, buffer, *taken, &error))
			return ev_fail_package(failure, NULL, &error);
		source->hashed += (int64_t) *taken;
	}
	source->at += (int64_t) *taken;
	return EV_STATUS_OK;
}

/* The read function of an EvS3Source. */
static ssize_t
read_bytes(void *arg, void *buffer, size_t size)
{
	EvArchiveSource *source = arg;
	size_t		taken;

	if (take(source, buffer, size, &taken, &source->failure) != EV_STATUS_OK)
		return -1;
	return (ssize_t) taken;
}

/* The seek function of an EvS3Source. */
static bool
seek_bytes(void *arg, int64_t offset)
{
	EvArchiveSource *source = arg;

	if (offset < 0 || source->begin + offset > source->item->bytes)
		return false;
	source->at = source->begin + offset;
	return true;
}

EvS3Source
ev_archive_source_from(EvArchiveSource *source, int64_t begin)
{
	EvS3Source	result = {read_bytes, seek_bytes, source};

	source->begin = begin;
	source->at = begin;
	ev_failure_clear(&source->failure);
	return result;
}

EvStatus
ev_archive_source_digest(EvArchiveSource *source, int64_t begin,
						 int64_t length, char hex[EV_SHA256_HEX],
						 EvFailure *failure)
{
	unsigned char buffer[16384];
	unsigned char digest[EV_SHA256_BYTES];
	EvSha256   *hash;
	EvError		error;
	EvStatus	status = EV_STATUS_OK;

	hash = ev_sha256_create(&error);
	if (hash == NULL)
		return ev_fail_package(failure, NULL, &error);
	source->at = begin;
	while (length > 0 && status == EV_STATUS_OK)
	{
		size_t		size = sizeof(buffer);
		size_t		taken;

		if ((int64_t) size > length)
			size = (size_t) length;
		status = take(source, buffer, size, &taken, failure);
		if (status == EV_STATUS_OK && taken == 0)
			status = ev_fail(failure, EV_STATUS_INTERNAL, NULL,
							 "the archive has ended too early");
		if (status == EV_STATUS_OK &&
			!ev_sha256_update(hash, buffer, taken, &error))
			status = ev_fail_package(failure, NULL, &error);
		length -= (int64_t) taken;
	}
	if (status == EV_STATUS_OK && !ev_sha256_finish(hash, digest, &error))
		status = ev_fail_package(failure, NULL, &error);
	if (status == EV_STATUS_OK)
		ev_sha256_hex(digest, hex);
	ev_sha256_free(hash);
	return status;
}

bool
ev_archive_source_intact(EvArchiveSource *source)
{
	unsigned char digest[EV_SHA256_BYTES];
	char		hex[EV_SHA256_HEX];
	EvError		error;

	if (source->hashed != source->item->bytes ||
		!ev_sha256_finish(source->hash, digest, &error))
		return true;
	source->hashed = -1;
	ev_sha256_hex(digest, hex);
	return strcmp(hex, source->item->sha256) == 0;
}
