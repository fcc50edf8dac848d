/*-------------------------------------------------------------------------
 *
 * s3.c
 *	  Objects in an object store: put, look up, get, delete, protect.
 *
 * Each function describes its request; s3_request.c makes it and
 * s3_classify.c says what came of it.  Two answers of the protocol say less
 * than a caller must know, and a second request asks for the rest: a look-up
 * that finds nothing, and a deletion that is denied.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "s3_objects.h"

static const char *
mode_name(EvS3LockMode mode)
{
	return mode == EV_S3_LOCK_COMPLIANCE ? "COMPLIANCE" : "GOVERNANCE";
}

void
ev_s3_object_clear(EvS3Object *object)
{
	memset(object, 0, sizeof(*object));
	object->last_modified = EV_S3_NEVER;
	object->lock.retain_until = EV_S3_NEVER;
}

void
ev_s3_query_version(EvS3Request *request, const char *version_id)
{
	if (version_id != NULL && version_id[0] != '\0')
		ev_s3_query_add(&request->query, "versionId", version_id);
}

EvS3Outcome
ev_s3_creation_headers(EvS3Request *request, const EvS3Creation *creation,
					   EvS3Result *result)
{
	const EvS3Lock *lock = &creation->lock;
	char		date[EV_S3_DATE_TEXT];

	if (creation->sha256 == NULL || !ev_s3_is_sha256(creation->sha256))
		return ev_s3_result_set(result, EV_S3_REFUSED, "the SHA-256 of an object is 64 lower-case hex digits");
	ev_s3_request_header(request, "x-amz-meta-sha256", creation->sha256);
	if (lock->mode != EV_S3_LOCK_NONE)
	{
		ev_s3_date_text(lock->retain_until, date);
		if (lock->retain_until < 0 || date[0] == '\0')
			return ev_s3_result_set(result, EV_S3_REFUSED, "a retention mode needs a date");
		ev_s3_request_header(request, "x-amz-object-lock-mode",
							 mode_name(lock->mode));
		ev_s3_request_header(request, "x-amz-object-lock-retain-until-date",
							 date);
	}
	if (lock->legal_hold)
		ev_s3_request_header(request, "x-amz-object-lock-legal-hold", "ON");
	return EV_S3_OK;
}

EvS3Outcome
ev_s3_put(EvS3 *s3, const char *key, int64_t length,
		  const EvS3Creation *creation, const EvS3Source *source,
		  EvS3Object *object, EvS3Result *result)
{
	EvS3Request request;
	EvS3Reply	reply;

	if (object != NULL)
		ev_s3_object_clear(object);
	ev_s3_request_init(&request, EV_S3_PUT, key);
	request.expect = EV_S3_EXPECT_ETAG;
	request.body_length = length;
	request.source = source;
	request.sha256 = creation->sha256;
	if (ev_s3_creation_headers(&request, creation, result) != EV_S3_OK)
		return result->outcome;
	if (creation->create_only)
		ev_s3_request_header(&request, "if-none-match", "*");
	ev_s3_perform(s3, &request, &reply, result);
	if (result->outcome == EV_S3_OK && object != NULL)
	{
		*object = reply.object;
		object->exists = true;
		object->length = length;
		strcpy(object->sha256, creation->sha256);
	}
	ev_s3_buffer_free(&reply.body);
	return result->outcome;
}

/*
 * A look-up got a bare 404.  Ask for a list, whose answer has a body: it says
 * so if the bucket is missing, and shows that a store is speaking.
 */
static void
confirm_absence(EvS3 *s3, const char *key, EvS3Result *result)
{
	EvS3Request request;
	EvS3Result	second;

	ev_s3_request_init(&request, EV_S3_GET, NULL);
	request.expect = EV_S3_EXPECT_DOCUMENT;
	request.root = "ListBucketResult";
	ev_s3_query_add(&request.query, "list-type", "2");
	ev_s3_query_add(&request.query, "max-keys", "1");
	ev_s3_query_add(&request.query, "encoding-type", "url");
	ev_s3_query_add(&request.query, "prefix", key);
	if (ev_s3_perform(s3, &request, NULL, &second) != EV_S3_OK)
		*result = second;
}

EvS3Outcome
ev_s3_head(EvS3 *s3, const char *key, const char *version_id,
		   EvS3Object *object, EvS3Result *result)
{
	EvS3Request request;
	EvS3Reply	reply;

	ev_s3_object_clear(object);
	ev_s3_request_init(&request, EV_S3_HEAD, key);
	request.expect = EV_S3_EXPECT_OBJECT;
	ev_s3_query_version(&request, version_id);
	ev_s3_perform(s3, &request, &reply, result);
	if (result->outcome == EV_S3_OK)
	{
		*object = reply.object;
		object->exists = true;
	}
	else if (result->outcome == EV_S3_ABSENT && result->code[0] == '\0')
		confirm_absence(s3, key, result);
	ev_s3_buffer_free(&reply.body);
	return result->outcome;
}

/* The caller's sink gets an object that is known to exist. */
static bool
begin_existing(void *arg, const EvS3Object *object)
{
	const EvS3Sink *sink = arg;
	EvS3Object	existing = *object;

	existing.exists = true;
	return sink->begin(sink->arg, &existing);
}

static bool
write_existing(void *arg, const void *data, size_t length)
{
	const EvS3Sink *sink = arg;

	return sink->write(sink->arg, data, length);
}

EvS3Outcome
ev_s3_get(EvS3 *s3, const char *key, const char *version_id,
		  const EvS3Sink *sink, EvS3Result *result)
{
	EvS3Sink	inner = {begin_existing, write_existing, (void *) sink};
	EvS3Request request;

	ev_s3_request_init(&request, EV_S3_GET, key);
	request.expect = EV_S3_EXPECT_OBJECT;
	request.sink = &inner;
	ev_s3_query_version(&request, version_id);
	return ev_s3_perform(s3, &request, NULL, result);
}

/* A deletion was denied: is it because the object is locked? */
static void
explain_denial(EvS3 *s3, const char *key, const char *version_id,
			   EvS3Result *result)
{
	EvS3Object	object;
	EvS3Result	second;
	char		date[EV_S3_DATE_TEXT];

	if (ev_s3_head(s3, key, version_id, &object, &second) != EV_S3_OK)
		return;
	if (object.lock.legal_hold)
	{
		result->outcome = EV_S3_LOCKED;
		snprintf(result->message, sizeof(result->message), "the object is under a legal hold");
		snprintf(result->hint, sizeof(result->hint), "Whoever set the legal hold must end it first.");
	}
	else if (object.lock.mode != EV_S3_LOCK_NONE &&
			 object.lock.retain_until > (int64_t) time(NULL))
	{
		ev_s3_date_text(object.lock.retain_until, date);
		result->outcome = EV_S3_LOCKED;
		result->locked_until = object.lock.retain_until;
		snprintf(result->message, sizeof(result->message), "the object is retained until %s",
				 date);
		snprintf(result->hint, sizeof(result->hint), "It can be deleted after that time.");
	}
}

EvS3Outcome
ev_s3_delete(EvS3 *s3, const char *key, const char *version_id,
			 EvS3Result *result)
{
	EvS3Request request;

	ev_s3_request_init(&request, EV_S3_DELETE, key);
	ev_s3_query_version(&request, version_id);
	ev_s3_perform(s3, &request, NULL, result);

	/* It is not there, by the store's own word: that is what was wanted. */
	if (result->outcome == EV_S3_ABSENT && result->code[0] != '\0')
		ev_s3_result_set(result, EV_S3_OK, "%s", "");
	else if (result->outcome == EV_S3_DENIED &&
			 (result->code[0] == '\0' ||
			  strcmp(result->code, "AccessDenied") == 0))
		explain_denial(s3, key, version_id, result);
	return result->outcome;
}

/* PUT one of the settings of an object, as a document. */
static EvS3Outcome
put_setting(EvS3 *s3, const char *key, const char *version_id,
			const char *setting, const EvS3Buffer *document,
			EvS3Result *result)
{
	EvS3Request request;

	ev_s3_request_init(&request, EV_S3_PUT, key);
	ev_s3_query_add(&request.query, setting, NULL);
	ev_s3_query_version(&request, version_id);
	request.repeatable = true;
	request.body = document->data;
	request.body_length = (int64_t) document->length;
	if (document->failed)
		return ev_s3_result_set(result, EV_S3_LOCAL, "out of memory");
	return ev_s3_perform(s3, &request, NULL, result);
}

EvS3Outcome
ev_s3_put_retention(EvS3 *s3, const char *key, const char *version_id,
					EvS3LockMode mode, int64_t retain_until,
					EvS3Result *result)
{
	EvS3Buffer	document;
	char		date[EV_S3_DATE_TEXT];

	memset(&document, 0, sizeof(document));
	ev_s3_date_text(retain_until, date);
	if (mode == EV_S3_LOCK_NONE || retain_until < 0 || date[0] == '\0')
		return ev_s3_result_set(result, EV_S3_REFUSED, "retention needs a mode and a date");
	ev_s3_buffer_printf(&document, "<Retention xmlns=\"" EV_S3_NAMESPACE "\"><Mode>%s</Mode><RetainUntilDate>%s</RetainUntilDate></Retention>",
						mode_name(mode), date);
	put_setting(s3, key, version_id, "retention", &document, result);
	ev_s3_buffer_free(&document);
	return result->outcome;
}

EvS3Outcome
ev_s3_put_legal_hold(EvS3 *s3, const char *key, const char *version_id,
					 bool hold, EvS3Result *result)
{
	EvS3Buffer	document;

	memset(&document, 0, sizeof(document));
	ev_s3_buffer_printf(&document, "<LegalHold xmlns=\"" EV_S3_NAMESPACE "\"><Status>%s</Status></LegalHold>",
						hold ? "ON" : "OFF");
	put_setting(s3, key, version_id, "legal-hold", &document, result);
	ev_s3_buffer_free(&document);
	return result->outcome;
}
