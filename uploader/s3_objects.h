/*-------------------------------------------------------------------------
 *
 * s3_objects.h
 *	  What the files that describe requests share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_S3_OBJECTS_H
#define EV_UPLOADER_S3_OBJECTS_H

#include "s3_request.h"

#define EV_S3_NAMESPACE "http://s3.amazonaws.com/doc/2006-03-01/"

/* Nothing is known of it. */
extern void ev_s3_object_clear(EvS3Object *object);

/* Name a version in the query, unless version_id is NULL or empty. */
extern void ev_s3_query_version(EvS3Request *request,
								const char *version_id);

/* Add the metadata and the lock of a new object. */
extern EvS3Outcome ev_s3_creation_headers(EvS3Request *request,
										  const EvS3Creation *creation,
										  EvS3Result *result);

#endif							/* EV_UPLOADER_S3_OBJECTS_H */
