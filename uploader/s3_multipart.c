/*-------------------------------------------------------------------------
 *
 * s3_multipart.c
 *	  Objects that are uploaded in parts.
 *
 * The digest of the whole object goes into its metadata when the upload
 * begins, which is the only moment for it.  Each part carries its own digest,
 * checked by the store.  The ETag of the whole is not the digest of anything
 * we know, so a finished upload is confirmed by looking the object up.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "s3_objects.h"
#include "s3_xml.h"

/* Gets the text of one element. */
typedef struct Wanted
{
	const char *path;
	char	   *text;
	size_t		size;
	bool		found;
} Wanted;

static bool
take_wanted(void *arg, const EvS3Element *element)
{
	Wanted	   *wanted = arg;

	if (strcmp(element->path, wanted->path) != 0)
		return true;
	if (strlen(element->text) < wanted->size)
	{
		strcpy(wanted->text, element->text);
		wanted->found = element->text[0] != '\0';
	}
	return false;
}

static bool
find_text(const EvS3Reply *reply, const char *path, char *text, size_t size)
{
	Wanted		wanted = {path, text, size, false};

	text[0] = '\0';
	ev_s3_xml_read(reply->body.data, reply->body.length, take_wanted,
				   &wanted);
	return wanted.found;
}

EvS3Outcome
ev_s3_upload_begin(EvS3 *s3, const char *key, const EvS3Creation *creation,
				   char upload_id[EV_S3_UPLOAD_TEXT], EvS3Result *result)
{
	EvS3Request request;
	EvS3Reply	reply;

	upload_id[0] = '\0';
	ev_s3_request_init(&request, EV_S3_POST, key);
	ev_s3_query_add(&request.query, "uploads", NULL);
	request.expect = EV_S3_EXPECT_DOCUMENT;
	request.root = "InitiateMultipartUploadResult";
	if (ev_s3_creation_headers(&request, creation, result) != EV_S3_OK)
		return result->outcome;

	/* Or Amazon refuses the check sums of the parts. */
	ev_s3_request_header(&request, "x-amz-checksum-algorithm", "SHA256");
	ev_s3_perform(s3, &request, &reply, result);
	if (result->outcome == EV_S3_OK &&
		!find_text(&reply, "InitiateMultipartUploadResult/UploadId",
				   upload_id, EV_S3_UPLOAD_TEXT))
	{
		ev_s3_result_set(result, EV_S3_UNKNOWN, "the store gave no id of the upload");
		result->maybe_done = true;
		result->retry_helps = true;
	}
	ev_s3_buffer_free(&reply.body);
	return result->outcome;
}

EvS3Outcome
ev_s3_upload_part(EvS3 *s3, const char *key, const char *upload_id,
				  int number, int64_t length, const char *sha256,
				  const EvS3Source *source, EvS3Part *part,
				  EvS3Result *result)
{
	EvS3Request request;
	EvS3Reply	reply;
	char		digits[16];

	if (part != NULL)
		memset(part, 0, sizeof(*part));
	if (number < 1 || number > EV_S3_PARTS_LIMIT)
		return ev_s3_result_set(result, EV_S3_REFUSED, "parts are numbered from 1 to %d",
								EV_S3_PARTS_LIMIT);
	snprintf(digits, sizeof(digits), "%d", number);
	ev_s3_request_init(&request, EV_S3_PUT, key);
	ev_s3_query_add(&request.query, "partNumber", digits);
	ev_s3_query_add(&request.query, "uploadId", upload_id);
	request.expect = EV_S3_EXPECT_ETAG;
	request.body_length = length;
	request.source = source;
	request.sha256 = sha256;

	/* The same part again takes the place of the first. */
	request.repeatable = true;
	ev_s3_perform(s3, &request, &reply, result);
	if (result->outcome == EV_S3_OK && part != NULL)
	{
		part->number = number;
		part->length = length;
		memcpy(part->etag, reply.object.etag, sizeof(part->etag));
		strcpy(part->sha256, sha256);
	}
	ev_s3_buffer_free(&reply.body);
	return result->outcome;
}

/* The document that names the parts. */
static bool
write_parts(EvS3Buffer *document, const EvS3Part *parts, int count)
{
	char		base64[EV_S3_BASE64_TEXT];
	int			i;

	ev_s3_buffer_text(document, "<CompleteMultipartUpload xmlns=\"" EV_S3_NAMESPACE "\">");
	for (i = 0; i < count; i++)
	{
		ev_s3_buffer_printf(document, "<Part><PartNumber>%d</PartNumber><ETag>\"",
							parts[i].number);
		ev_s3_buffer_xml(document, parts[i].etag);
		ev_s3_buffer_text(document, "\"</ETag>");
		if (ev_s3_is_sha256(parts[i].sha256))
		{
			ev_s3_base64(parts[i].sha256, base64);
			ev_s3_buffer_printf(document, "<ChecksumSHA256>%s</ChecksumSHA256>",
								base64);
		}
		ev_s3_buffer_text(document, "</Part>");
	}
	return ev_s3_buffer_text(document, "</CompleteMultipartUpload>");
}

EvS3Outcome
ev_s3_upload_complete(EvS3 *s3, const char *key, const char *upload_id,
					  const EvS3Part *parts, int count, bool create_only,
					  EvS3Object *object, EvS3Result *result)
{
	EvS3Request request;
	EvS3Reply	reply;
	EvS3Buffer	document;
	char		etag[EV_S3_ETAG_TEXT + 2];

	if (object != NULL)
		ev_s3_object_clear(object);
	if (count < 1 || count > EV_S3_PARTS_LIMIT)
		return ev_s3_result_set(result, EV_S3_REFUSED, "an upload has 1 to %d parts",
								EV_S3_PARTS_LIMIT);
	memset(&document, 0, sizeof(document));
	if (!write_parts(&document, parts, count))
	{
		ev_s3_buffer_free(&document);
		return ev_s3_result_set(result, EV_S3_LOCAL, "out of memory");
	}
	ev_s3_request_init(&request, EV_S3_POST, key);
	ev_s3_query_add(&request.query, "uploadId", upload_id);
	request.expect = EV_S3_EXPECT_DOCUMENT;
	request.root = "CompleteMultipartUploadResult";
	request.body = document.data;
	request.body_length = (int64_t) document.length;

	/* Joining the parts of a large object takes some stores minutes. */
	request.slow_answer = true;
	if (create_only)
		ev_s3_request_header(&request, "if-none-match", "*");
	ev_s3_perform(s3, &request, &reply, result);
	if (result->outcome == EV_S3_OK && object != NULL)
	{
		object->exists = true;
		memcpy(object->version_id, reply.object.version_id,
			   sizeof(object->version_id));
		find_text(&reply, "CompleteMultipartUploadResult/ETag", etag,
				  sizeof(etag));
		ev_s3_unquote(etag, object->etag, sizeof(object->etag));
	}
	ev_s3_buffer_free(&reply.body);
	ev_s3_buffer_free(&document);
	return result->outcome;
}

EvS3Outcome
ev_s3_upload_abort(EvS3 *s3, const char *key, const char *upload_id,
				   EvS3Result *result)
{
	EvS3Request request;

	ev_s3_request_init(&request, EV_S3_DELETE, key);
	ev_s3_query_add(&request.query, "uploadId", upload_id);
	return ev_s3_perform(s3, &request, NULL, result);
}
