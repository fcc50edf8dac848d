/*-------------------------------------------------------------------------
 *
 * object_digest.c
 *	  The SHA-256 of an object whose metadata does not tell it.
 *
 * Our own objects state it.  One that does not was put there by somebody else,
 * or by way of a tool that drops metadata; what it holds is known only when
 * it has been read.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "package/digest.h"

#include "object_digest.h"

typedef struct Reading
{
	EvSha256   *hash;
	EvError		error;
	bool		failed;
} Reading;

/* The begin function of an EvS3Sink: anything is welcome. */
static bool
begin(void *arg, const EvS3Object *object)
{
	(void) arg;
	(void) object;
	return true;
}

/* The write function. */
static bool
add(void *arg, const void *data, size_t length)
{
	Reading    *reading = arg;

	if (ev_sha256_update(reading->hash, data, length, &reading->error))
		return true;
	reading->failed = true;
	return false;
}

EvS3Outcome
ev_object_digest(EvS3 *s3, const char *key, const char *version,
				 char sha256[EV_S3_SHA256_TEXT], EvS3Result *result)
{
	Reading		reading = {0};
	EvS3Sink	sink = {begin, add, &reading};
	unsigned char digest[EV_SHA256_BYTES];

	sha256[0] = '\0';
	memset(result, 0, sizeof(*result));
	reading.hash = ev_sha256_create(&reading.error);
	reading.failed = reading.hash == NULL;
	if (!reading.failed)
		ev_s3_get(s3, key, version, &sink, result);
	if (!reading.failed && result->outcome == EV_S3_OK)
	{
		reading.failed = !ev_sha256_finish(reading.hash, digest,
										   &reading.error);
		if (!reading.failed)
			ev_sha256_hex(digest, sha256);
	}
	if (reading.failed)
	{
		result->outcome = EV_S3_LOCAL;
		snprintf(result->message, sizeof(result->message), "%s",
				 reading.error.text);
	}
	ev_sha256_free(reading.hash);
	return result->outcome;
}
