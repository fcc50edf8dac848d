/*-------------------------------------------------------------------------
 *
 * s3_answer.c
 *	  Take in what an object store answers, as libcurl hands it over.
 *
 * Bytes of an object go to the caller's sink, but only once the headers have
 * shown that it is one: a web page of somebody in between never gets there.
 * All other bodies are kept, up to a limit, and read when they are whole.
 *
 * What comes is not trusted.  A header or a body beyond all measure ends the
 * request; a text that does not fit is left out, never cut, where a part of it
 * would mean something else.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "s3_transfer.h"
#include "s3_xml.h"

#define HEADERS_LIMIT (64 * 1024)

/* A new answer begins; the one before it was not final. */
static void
begin_answer(EvS3Transfer *transfer, const char *line)
{
	EvS3Answer *answer = &transfer->answer;
	int			status;

	/* HTTP/1.1 200 OK */
	if (sscanf(line, "%*s %3d", &status) != 1)
		status = 0;
	answer->http_status = status >= 200 ? status : 0;
	answer->retry_after = -1;
	answer->store_time = EV_S3_NEVER;
	answer->delete_marker = false;
	answer->request_id[0] = '\0';
	transfer->content_length = -1;
	memset(&transfer->reply->object, 0, sizeof(transfer->reply->object));
	transfer->reply->object.last_modified = EV_S3_NEVER;
	transfer->reply->object.lock.retain_until = EV_S3_NEVER;
}

static EvS3LockMode
lock_mode(const char *text)
{
	if (strcmp(text, "GOVERNANCE") == 0)
		return EV_S3_LOCK_GOVERNANCE;
	return strcmp(text, "COMPLIANCE") == 0 ? EV_S3_LOCK_COMPLIANCE :
		EV_S3_LOCK_NONE;
}

/* Copy a text that must fit whole: a part of an id is none. */
static void
copy_whole(char *to, size_t size, const char *from)
{
	if (strlen(from) < size)
		strcpy(to, from);
}

static void
take_object_header(EvS3Transfer *transfer, const char *name, char *value)
{
	EvS3Object *object = &transfer->reply->object;

	if (strcasecmp(name, "etag") == 0)
		ev_s3_unquote(value, object->etag, sizeof(object->etag));
	else if (strcasecmp(name, "content-length") == 0)
		transfer->content_length = object->length = ev_s3_number(value);
	else if (strcasecmp(name, "last-modified") == 0)
		object->last_modified = ev_s3_http_date(value);
	else if (strcasecmp(name, "x-amz-meta-sha256") == 0)
	{
		if (ev_s3_is_sha256(value))
			strcpy(object->sha256, value);
	}
	else if (strcasecmp(name, "x-amz-version-id") == 0)
		copy_whole(object->version_id, sizeof(object->version_id), value);
	else if (strcasecmp(name, "x-amz-object-lock-mode") == 0)
		object->lock.mode = lock_mode(value);
	else if (strcasecmp(name, "x-amz-object-lock-retain-until-date") == 0)
		object->lock.retain_until = ev_s3_iso_date(value);
	else if (strcasecmp(name, "x-amz-object-lock-legal-hold") == 0)
		object->lock.legal_hold = strcmp(value, "ON") == 0;
}

/* Retry-After is a number of seconds, or a date. */
static int
retry_seconds(const char *value)
{
	int64_t		seconds = ev_s3_number(value);

	if (seconds < 0)
	{
		int64_t		date = ev_s3_http_date(value);

		if (date < 0)
			return -1;
		seconds = date - (int64_t) time(NULL);
	}
	if (seconds < 0)
		return 0;
	return seconds < INT32_MAX ? (int) seconds : INT32_MAX;
}

static void
take_header(EvS3Transfer *transfer, const char *name, char *value)
{
	EvS3Answer *answer = &transfer->answer;

	if (strcasecmp(name, "date") == 0)
		answer->store_time = ev_s3_http_date(value);
	else if (strcasecmp(name, "retry-after") == 0)
		answer->retry_after = retry_seconds(value);
	else if (strcasecmp(name, "x-amz-request-id") == 0)
		copy_whole(answer->request_id, sizeof(answer->request_id), value);
	else if (strcasecmp(name, "x-amz-delete-marker") == 0)
		answer->delete_marker = strcmp(value, "true") == 0;
	else
		take_object_header(transfer, name, value);
}

/* libcurl gives one line at a time, its end included. */
size_t
ev_s3_on_header(char *buffer, size_t size, size_t count, void *arg)
{
	EvS3Transfer *transfer = arg;
	size_t		length = size * count;
	char		line[2048];
	char	   *value;

	transfer->header_bytes += length;
	if (transfer->header_bytes > HEADERS_LIMIT)
	{
		transfer->answer.broken = EV_S3_BREAK_TOO_LONG;
		return 0;
	}
	if (length >= sizeof(line))
		return length;			/* none of ours is as long */
	memcpy(line, buffer, length);
	line[length] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	value = strchr(line, ':');
	if (strncmp(line, "HTTP/", 5) == 0)
		begin_answer(transfer, line);
	else if (value != NULL)
	{
		*value++ = '\0';
		value += strspn(value, " \t");
		while (*value != '\0' && strchr(" \t", value[strlen(value) - 1]))
			value[strlen(value) - 1] = '\0';
		take_header(transfer, line, value);
	}
	return length;
}

double
ev_s3_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

bool
ev_s3_begin_sink(EvS3Transfer *transfer)
{
	const EvS3Sink *sink = transfer->request->sink;
	bool		wanted;

	if (transfer->began)
		return true;
	transfer->began = true;
	wanted = sink->begin(sink->arg, &transfer->reply->object);
	transfer->started = ev_s3_clock();
	if (!wanted)
		transfer->answer.broken = EV_S3_BREAK_STOPPED;
	return wanted;
}

/* Bytes of the answer's body: of an object to its sink, others are kept. */
size_t
ev_s3_on_write(char *buffer, size_t size, size_t count, void *arg)
{
	EvS3Transfer *transfer = arg;
	const EvS3Sink *sink = transfer->request->sink;
	size_t		length = size * count;

	transfer->received += (int64_t) length;
	if (sink != NULL && ev_s3_is_object(transfer))
	{
		if (!ev_s3_begin_sink(transfer))
			return 0;
		if (!sink->write(sink->arg, buffer, length))
		{
			transfer->answer.broken = EV_S3_BREAK_STOPPED;
			return 0;
		}
	}
	else if (!ev_s3_buffer_add(&transfer->reply->body, buffer, length))
	{
		transfer->answer.broken = EV_S3_BREAK_TOO_LONG;
		return 0;
	}
	return length;
}

/* What an Error document says, and what kind of document there is. */
typedef struct DocumentReader
{
	EvS3Answer *answer;
	char		root[64];
} DocumentReader;

static bool
on_element(void *arg, const EvS3Element *element)
{
	DocumentReader *reader = arg;
	EvS3Answer *answer = reader->answer;

	if (strcmp(element->path, "Error/Code") == 0)
		copy_whole(answer->code, sizeof(answer->code), element->text);
	else if (strcmp(element->path, "Error/Message") == 0)
		snprintf(answer->text, sizeof(answer->text), "%.255s",
				 element->text);
	else if (strchr(element->path, '/') == NULL)
		snprintf(reader->root, sizeof(reader->root), "%.63s",
				 element->path);
	return true;
}

/* Whatever the status, an Error document is an error. */
void
ev_s3_read_document(EvS3Transfer *transfer)
{
	EvS3Buffer *body = &transfer->reply->body;
	DocumentReader reader;

	memset(&reader, 0, sizeof(reader));
	reader.answer = &transfer->answer;
	if (body->length == 0 || transfer->answer.broken != EV_S3_BREAK_NONE ||
		transfer->answer.transport != CURLE_OK)
		return;
	if (ev_s3_xml_read(body->data, body->length, on_element,
					   &reader) != EV_S3_XML_OK)
		return;
	transfer->answer.is_error = strcmp(reader.root, "Error") == 0;
	if (transfer->request->expect == EV_S3_EXPECT_DOCUMENT)
		transfer->answer.fits =
			strcmp(reader.root, transfer->request->root) == 0;
}

bool
ev_s3_is_object(const EvS3Transfer *transfer)
{
	return transfer->answer.http_status == 200 &&
		transfer->content_length >= 0 &&
		transfer->reply->object.etag[0] != '\0';
}

bool
ev_s3_is_fitting(const EvS3Transfer *transfer)
{
	switch (transfer->request->expect)
	{
		case EV_S3_EXPECT_OBJECT:
			return ev_s3_is_object(transfer) &&
				(transfer->request->method == EV_S3_HEAD ||
				 transfer->received == transfer->content_length);
		case EV_S3_EXPECT_ETAG:
			return transfer->reply->object.etag[0] != '\0' &&
				transfer->reply->body.length == 0;
		case EV_S3_EXPECT_NOTHING:
			return transfer->reply->body.length == 0;
		case EV_S3_EXPECT_DOCUMENT:
			break;
	}
	return transfer->answer.fits;
}
