/*-------------------------------------------------------------------------
 *
 * upload_parts.c
 *	  Send an archive in parts.
 *
 * A large archive that is cut off need not begin anew: the store keeps the
 * parts that it has, under an id that the ledger remembers, and the next
 * attempt asks which they are.  Parts of another size than ours would be have
 * been made under other settings; then that upload is ended and another one
 * begun, for parts of both cannot be mixed.
 *
 * The id is committed as soon as it is known.  Between the two the process
 * can die, which leaves an upload without parts that nobody knows:
 * "pg_evidence reconcile" finds it, and the bucket's lifecycle ends it.
 *
 * The store checks each part against its digest.  Whether the parts together
 * are the archive is checked here before they are put together, unless some
 * come from an earlier attempt, of the same immutable bytes.  Where the store
 * tells the digest of a part that it has, it is held against the archive, and
 * a part that somebody has replaced is sent again.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upload.h"

/* An upload in parts on its way. */
typedef struct Parts
{
	EvWork	   *work;
	EvArchiveSource *source;
	char		id[EV_S3_UPLOAD_TEXT];
	int64_t		size;			/* of each part but the last */
	int			count;
	EvS3Part   *parts;			/* number 0: the store does not have it */
	bool		misfit;			/* the store has parts of another size */
	int			begun;			/* uploads that this attempt has begun */
} Parts;

static bool resume(Parts *parts, EvS3Result *result);
static bool check_part(Parts *parts, EvS3Part *part);
static bool begin(Parts *parts, EvS3Result *result);
static bool send_parts(Parts *parts, EvS3Result *result);
static bool complete(Parts *parts, EvS3Result *result);

/* Parts of the wanted size, or larger if there would be too many. */
static bool
plan(Parts *parts)
{
	int64_t		bytes = parts->work->item.bytes;
	int64_t		size = parts->work->rules->part_size;

	if (size < (bytes + EV_S3_PARTS_LIMIT - 1) / EV_S3_PARTS_LIMIT)
		size = (bytes + EV_S3_PARTS_LIMIT - 1) / EV_S3_PARTS_LIMIT;
	parts->size = size;
	parts->count = (int) ((bytes + size - 1) / size);
	parts->parts = calloc((size_t) parts->count, sizeof(EvS3Part));
	return parts->parts != NULL;
}

/* The length of part number, counted from 1. */
static int64_t
part_length(const Parts *parts, int number)
{
	if (number < parts->count)
		return parts->size;
	return parts->work->item.bytes - (number - 1) * parts->size;
}

bool
ev_upload_parts(EvWork *work, EvArchiveSource *source, EvS3Result *result)
{
	Parts		parts = {0};
	bool		sent;

	parts.work = work;
	parts.source = source;
	if (!plan(&parts))
		return ev_work_fail(work, EV_DELIVERY_DEFERRAL, "Local",
							"out of memory");
	sent = (work->item.multipart_id[0] == '\0' || resume(&parts, result)) &&
		(parts.id[0] != '\0' || begin(&parts, result)) &&
		send_parts(&parts, result) && complete(&parts, result);
	free(parts.parts);
	return sent;
}

/* An EvS3PartFunction: one that the store has. */
static bool
note_part(void *arg, const EvS3Part *part)
{
	Parts	   *parts = arg;

	if (part->number < 1 || part->number > parts->count ||
		part->length != part_length(parts, part->number) ||
		part->etag[0] == '\0')
		parts->misfit = true;
	else
		parts->parts[part->number - 1] = *part;
	return true;
}

bool
ev_upload_discard(EvWork *work, const char *upload_id)
{
	EvS3Result	result;

	if (!ev_work_step(work, "abort"))
		return false;
	ev_s3_upload_abort(work->s3, work->item.key, upload_id, &result);
	if (result.outcome == EV_S3_OK || result.outcome == EV_S3_ABSENT)
		return true;
	return ev_work_store(work, "could not end an unfinished upload", &result);
}

/* End the upload and forget its parts. */
static bool
discard(Parts *parts, const char *id)
{
	memset(parts->parts, 0, (size_t) parts->count * sizeof(EvS3Part));
	parts->misfit = false;
	if (!ev_upload_discard(parts->work, id))
		return false;
	parts->id[0] = '\0';
	return true;
}

/* Ask which parts an earlier attempt has brought. */
static bool
resume(Parts *parts, EvS3Result *result)
{
	EvWork	   *work = parts->work;
	const char *id = work->item.multipart_id;
	int			i;

	if (!ev_work_step(work, "list-parts"))
		return false;
	ev_s3_upload_parts(work->s3, work->item.key, id, note_part, parts, result);
	if (result->outcome == EV_S3_ABSENT)
		return true;
	if (result->outcome != EV_S3_OK)
		return ev_work_store(work, "could not ask for the parts that are stored",
							 result);
	if (parts->misfit)
		return discard(parts, id);
	snprintf(parts->id, sizeof(parts->id), "%s", id);
	for (i = 0; i < parts->count; i++)
	{
		if (parts->parts[i].number != 0 && parts->parts[i].sha256[0] != '\0' &&
			!check_part(parts, &parts->parts[i]))
			return false;
	}
	return true;
}

/*
 * Is a part whose digest the store tells the one of the archive?  Another one
 * counts as missing, since a part that is sent again takes its place.
 */
static bool
check_part(Parts *parts, EvS3Part *part)
{
	EvWork	   *work = parts->work;
	char		sha256[EV_SHA256_HEX];

	if (!ev_work_step(work, "check-part"))
		return false;
	if (ev_archive_source_digest(parts->source,
								 (part->number - 1) * parts->size,
								 part->length, sha256,
								 &work->failure) != EV_STATUS_OK)
		return ev_work_ledger(work);
	if (strcmp(sha256, part->sha256) != 0)
		memset(part, 0, sizeof(*part));
	return true;
}

/* Begin an upload and commit its id. */
static bool
begin(Parts *parts, EvS3Result *result)
{
	EvWork	   *work = parts->work;
	EvS3Creation creation = {
		work->item.sha256, true, {EV_S3_LOCK_NONE, EV_S3_NEVER, false}
	};

	if (!ev_work_step(work, "begin"))
		return false;
	parts->begun++;
	if (ev_s3_upload_begin(work->s3, work->item.key, &creation, parts->id,
						   result) != EV_S3_OK)
		return ev_work_store(work, "could not begin an upload in parts",
							 result);
	if (!ev_work_step(work, "record-sending"))
		return false;
	if (ev_delivery_sending(work->ledger, work->item.token, parts->id,
							&work->failure) != EV_STATUS_OK)
		return ev_work_ledger(work);
	return true;
}

/* Send one part.  False with an outcome of OK: the work has ended. */
static bool
send_part(Parts *parts, int number, EvS3Result *result)
{
	EvWork	   *work = parts->work;
	int64_t		offset = (number - 1) * parts->size;
	int64_t		length = part_length(parts, number);
	EvS3Source	bytes;
	char		sha256[EV_SHA256_HEX];

	memset(result, 0, sizeof(*result));
	if (!ev_work_step(work, "part"))
		return false;
	if (ev_archive_source_digest(parts->source, offset, length, sha256,
								 &work->failure) != EV_STATUS_OK)
		return ev_work_ledger(work);
	bytes = ev_archive_source_from(parts->source, offset);
	return ev_s3_upload_part(work->s3, work->item.key, parts->id, number,
							 length, sha256, &bytes,
							 &parts->parts[number - 1], result) == EV_S3_OK;
}

/*
 * Send the parts that the store does not have.  An upload that somebody has
 * ended meanwhile is begun anew, once.
 */
static bool
send_parts(Parts *parts, EvS3Result *result)
{
	EvWork	   *work = parts->work;
	int			number;

	for (number = 1; number <= parts->count; number++)
	{
		if (parts->parts[number - 1].number != 0)
			continue;
		if (send_part(parts, number, result))
			continue;
		if (result->outcome == EV_S3_OK)
			return false;
		if (result->outcome != EV_S3_ABSENT || parts->begun > 0)
			return ev_upload_failed(work, parts->source,
									"could not store a part of the archive",
									result);
		memset(parts->parts, 0, (size_t) parts->count * sizeof(EvS3Part));
		if (!begin(parts, result))
			return false;
		number = 0;
	}
	return true;
}

/*
 * Have the object made of its parts.  When the store cannot do that with the
 * parts that it has, they are of no use to a later attempt either.
 */
static bool
complete(Parts *parts, EvS3Result *result)
{
	EvWork	   *work = parts->work;

	if (!ev_archive_source_intact(parts->source))
	{
		if (!discard(parts, parts->id))
			return false;
		return ev_work_fail(work, EV_DELIVERY_DEFINITE, "PE006",
							"the archive in the database is not what the ledger records");
	}
	if (!ev_work_step(work, "complete"))
		return false;
	ev_s3_upload_complete(work->s3, work->item.key, parts->id, parts->parts,
						  parts->count, true, NULL, result);
	if (result->outcome == EV_S3_OK || result->outcome == EV_S3_EXISTS ||
		result->outcome == EV_S3_ABSENT ||
		(result->maybe_done && result->outcome != EV_S3_STOPPED))
		return true;
	if (result->outcome == EV_S3_REFUSED)
	{
		if (!discard(parts, parts->id))
			return false;
		return ev_work_fail(work, EV_DELIVERY_TRANSIENT,
							result->code[0] == '\0' ? "Refused" : result->code,
							"the store does not put the parts together: %s",
							result->message);
	}
	return ev_work_store(work, "could not put the parts together", result);
}
