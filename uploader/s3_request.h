/*-------------------------------------------------------------------------
 *
 * s3_request.h
 *	  One signed request to an object store: the inner part of the client.
 *
 * For the files s3*.c, and for tests.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_S3_REQUEST_H
#define EV_UPLOADER_S3_REQUEST_H

#include "s3_classify.h"
#include "s3_text.h"

#define EV_S3_HEADERS_LIMIT 10
#define EV_S3_HEADER_TEXT 192

typedef enum EvS3Method
{
	EV_S3_GET,
	EV_S3_HEAD,
	EV_S3_PUT,
	EV_S3_POST,
	EV_S3_DELETE
} EvS3Method;

/*
 * What an answer must be to be a success; anything else with a status of 2xx
 * comes from somebody else than an object store.
 */
typedef enum EvS3Expect
{
	EV_S3_EXPECT_OBJECT,		/* an ETag and a length; the body goes to the
								 * sink, if there is one */
	EV_S3_EXPECT_ETAG,			/* an ETag and no body: something was stored */
	EV_S3_EXPECT_NOTHING,		/* a 2xx without a body */
	EV_S3_EXPECT_DOCUMENT		/* XML with the given root */
} EvS3Expect;

typedef struct EvS3Request
{
	EvS3Method	method;
	const char *key;			/* NULL: the bucket */
	EvS3Query	query;
	char		headers[EV_S3_HEADERS_LIMIT][EV_S3_HEADER_TEXT];
	int			header_count;
	EvS3Subject subject;
	EvS3Expect	expect;
	const char *root;			/* of the expected document */
	bool		writes;			/* it changes something */
	bool		repeatable;		/* doing it twice is the same as once */
	bool		slow_answer;	/* silence is no reason to end it */
	int64_t		body_length;
	const EvS3Source *source;	/* of the body; NULL: body */
	const char *body;			/* NULL: there is none */
	const char *sha256;			/* of the body of a source */
	const EvS3Sink *sink;
} EvS3Request;

/* What came, for whoever made the request. */
typedef struct EvS3Reply
{
	EvS3Object	object;			/* as the headers tell */
	EvS3Buffer	body;			/* of the document; free it */
} EvS3Reply;

/* Start a request; everything not named is empty. */
extern void ev_s3_request_init(EvS3Request *request, EvS3Method method,
							   const char *key);

/* Add a header; the name is lower-case, the value one of ours. */
extern void ev_s3_request_header(EvS3Request *request, const char *name,
								 const char *value);

/*
 * Make the request.  reply is filled whatever comes, and its body must be
 * freed; it may be NULL when there is nothing to read.
 */
extern EvS3Outcome ev_s3_perform(EvS3 *s3, const EvS3Request *request,
								 EvS3Reply *reply, EvS3Result *result);

/* Items on one page of a listing. */
extern int	ev_s3_page(const EvS3 *s3);

/* Ask for fewer, so that tests see many pages. */
extern void ev_s3_set_page(EvS3 *s3, int items);

#endif							/* EV_UPLOADER_S3_REQUEST_H */
