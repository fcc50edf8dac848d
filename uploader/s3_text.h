/*-------------------------------------------------------------------------
 *
 * s3_text.h
 *	  The texts that a request to an object store is made of, and the forms
 *	  in which it answers: encodings, dates, growing buffers.
 *
 * Pure functions of their arguments.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_S3_TEXT_H
#define EV_UPLOADER_S3_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "package/error.h"

#define EV_S3_DATE_TEXT 24		/* 2026-11-30T20:00:00Z and a zero */
#define EV_S3_BASE64_TEXT 45	/* of a SHA-256, and a zero */
#define EV_S3_SHA256_SIZE 65	/* the same in hex */

/* A text that grows up to a limit; data is NULL or ends with a zero. */
typedef struct EvS3Buffer
{
	char	   *data;
	size_t		length;
	size_t		size;
	size_t		limit;			/* 0: none */
	bool		failed;			/* no memory, or beyond the limit */
} EvS3Buffer;

/* After a failure nothing more is added; false tells of it, now or before. */
extern bool ev_s3_buffer_add(EvS3Buffer *buffer, const void *data,
							 size_t length);
extern bool ev_s3_buffer_text(EvS3Buffer *buffer, const char *text);
extern bool ev_s3_buffer_printf(EvS3Buffer *buffer, const char *format,...)
			EV_PRINTF(2, 3);

/* Text as the content of an XML element. */
extern bool ev_s3_buffer_xml(EvS3Buffer *buffer, const char *text);

/*
 * Percent-encode each byte but letters, digits, "-", ".", "_" and "~", and "/"
 * if it is to stay.
 */
extern bool ev_s3_buffer_encoded(EvS3Buffer *buffer, const char *text,
								 bool keep_slash);
extern void ev_s3_buffer_free(EvS3Buffer *buffer);

/* The query of an address: names with values, encoded and in order. */
#define EV_S3_QUERY_LIMIT 8

typedef struct EvS3Query
{
	const char *names[EV_S3_QUERY_LIMIT];
	const char *values[EV_S3_QUERY_LIMIT];
	int			count;
} EvS3Query;

/* Texts are not copied.  A NULL or empty value is a name alone. */
extern void ev_s3_query_add(EvS3Query *query, const char *name,
							const char *value);
extern bool ev_s3_query_write(const EvS3Query *query, EvS3Buffer *buffer);

/*
 * Copy a text without the quotes that an ETag comes in.  False, and to empty,
 * if it does not fit whole: a part of it would be another one.
 */
extern bool ev_s3_unquote(const char *text, char *to, size_t size);

/* Undo percent-encoding in place, "+" being a blank. */
extern void ev_s3_decode(char *text);

/* Is this 64 lower-case hex digits? */
extern bool ev_s3_is_sha256(const char *text);

/* The Base64 form of a digest that is given in hex. */
extern void ev_s3_base64(const char *sha256, char base64[EV_S3_BASE64_TEXT]);

/* The way back; false, and sha256 empty, if it is the form of no digest. */
extern bool ev_s3_unbase64(const char *base64, char sha256[EV_S3_SHA256_SIZE]);

/* Seconds since 1970 of 2026-11-30T20:00:00[.fraction]Z, or -1. */
extern int64_t ev_s3_iso_date(const char *text);

/* The same of Mon, 30 Nov 2026 20:00:00 GMT. */
extern int64_t ev_s3_http_date(const char *text);
extern void ev_s3_date_text(int64_t seconds, char text[EV_S3_DATE_TEXT]);

/* A number of digits alone, or -1; what does not fit is -1 too. */
extern int64_t ev_s3_number(const char *text);

/*
 * Make a text from elsewhere fit for a message: printable, on one line, no
 * query behind an address, no signature, and no occurrence of any of the
 * secrets, which may be NULL.
 */
extern void ev_s3_clean(char *text, const char *const *secrets, int count);

#endif							/* EV_UPLOADER_S3_TEXT_H */
