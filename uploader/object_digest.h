/*-------------------------------------------------------------------------
 *
 * object_digest.h
 *	  The SHA-256 of an object whose metadata does not tell it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_OBJECT_DIGEST_H
#define EV_UPLOADER_OBJECT_DIGEST_H

#include "s3.h"

/* Reads all of the object; version may be NULL. */
extern EvS3Outcome ev_object_digest(EvS3 *s3, const char *key,
									const char *version,
									char sha256[EV_S3_SHA256_TEXT],
									EvS3Result *result);

#endif							/* EV_UPLOADER_OBJECT_DIGEST_H */
