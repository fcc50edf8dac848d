/*-------------------------------------------------------------------------
 *
 * upload.h
 *	  Bring one archive into the object store and have it confirmed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_UPLOAD_H
#define EV_UPLOADER_UPLOAD_H

#include "archive_source.h"
#include "work.h"

/* Do the work, from the claim to its end. */
extern void ev_upload(EvWork *work);

/*
 * Send the archive in parts (upload_parts.c).  True when the store may have
 * the whole object, so that it is to be looked up, *result being the last
 * answer; otherwise the work has ended.
 */
extern bool ev_upload_parts(EvWork *work, EvArchiveSource *source,
							EvS3Result *result);

/*
 * End an upload in parts that was begun; one that is gone is ended too.  True
 * when that went well.
 */
extern bool ev_upload_discard(EvWork *work, const char *upload_id);

/*
 * End the work because a request has failed: the source is to blame if it
 * says so, else the store.  Always false.
 */
extern bool ev_upload_failed(EvWork *work, const EvArchiveSource *source,
							 const char *doing, const EvS3Result *result);

#endif							/* EV_UPLOADER_UPLOAD_H */
