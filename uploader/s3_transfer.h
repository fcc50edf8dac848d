/*-------------------------------------------------------------------------
 *
 * s3_transfer.h
 *	  A request while it runs; for s3_request.c and s3_answer.c only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_S3_TRANSFER_H
#define EV_UPLOADER_S3_TRANSFER_H

#include "s3_handle.h"
#include "s3_request.h"

/* Everything about the request that runs. */
typedef struct EvS3Transfer
{
	EvS3	   *s3;
	CURL	   *easy;
	const EvS3Request *request;
	EvS3Reply  *reply;
	EvS3Answer	answer;
	struct curl_slist *headers;
	const EvS3Source *source;
	EvS3Source	memory;			/* of a body that is a text */
	int64_t		memory_offset;
	int64_t		given;			/* bytes of the body handed to libcurl */
	int64_t		received;
	int64_t		content_length; /* -1 if not told */
	size_t		header_bytes;
	bool		began;			/* the sink knows of the object */
	int			starts;			/* how often a request was begun */
	double		started;
	double		next_tick;
	char		error[CURL_ERROR_SIZE];
} EvS3Transfer;

/* A clock that never goes backwards, in seconds. */
extern double ev_s3_clock(void);

/* libcurl's callbacks for headers and body; arg is the transfer. */
extern size_t ev_s3_on_header(char *buffer, size_t size, size_t count,
							  void *arg);
extern size_t ev_s3_on_write(char *buffer, size_t size, size_t count,
							 void *arg);

/* Is this the head of an object, as far as one can see? */
extern bool ev_s3_is_object(const EvS3Transfer *transfer);

/*
 * Tell the sink of the object, once; false if it does not want it.  It may
 * take its time, as when it waits for a commit: that is not held against the
 * store.
 */
extern bool ev_s3_begin_sink(EvS3Transfer *transfer);

/* Read a body that was kept: an error, or the document that is wanted. */
extern void ev_s3_read_document(EvS3Transfer *transfer);

/* Is a 2xx the answer that this request gets from an object store? */
extern bool ev_s3_is_fitting(const EvS3Transfer *transfer);

#endif							/* EV_UPLOADER_S3_TRANSFER_H */
