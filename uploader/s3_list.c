/*-------------------------------------------------------------------------
 *
 * s3_list.c
 *	  Lists of objects, versions, unfinished uploads and parts.
 *
 * A list comes in pages.  Each page is read twice: first for how its names are
 * encoded and whether there is another page, which may stand behind the items,
 * then for the items.  The next page is asked for by the last item of this
 * one, which every kind of list allows.  What stores themselves say of where
 * to go on is not used: Ceph does not encode it as it encodes the names.
 *
 * A page without an item, or with the last one of before, ends the list with
 * an error, so that a store that errs cannot keep us for ever.
 *
 * Items are handed on while no request runs, so the function that gets them
 * may use the same EvS3.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3_objects.h"
#include "s3_xml.h"

#define MARKER_TEXT (3 * EV_S3_KEY_LIMIT + 1)

typedef struct Listing Listing;

/* One kind of list: what its answer looks like. */
typedef struct ListKind
{
	const char *root;
	const char *item;			/* the element of an item */
	const char *other_item;		/* that of a delete marker, or "" */
	const char *limit;			/* parameters: items on a page, ... */
	const char *marker;			/* behind which item to go on, ... */
	const char *marker_id;		/* ... and the second half of that, or "" */
	bool		(*hand_on) (Listing *listing);
} ListKind;

/* A list that is being read. */
struct Listing
{
	const ListKind *kind;
	union						/* the caller's, as the kind has it */
	{
		EvS3ObjectFunction object;
		EvS3VersionFunction version;
		EvS3UploadFunction upload;
		EvS3PartFunction part;
	}			function;
	void	   *arg;

	/* The page. */
	bool		encoded;		/* its names are percent-encoded */
	bool		truncated;
	int			items;
	bool		too_long;		/* something in it */
	char		marker[MARKER_TEXT];	/* its last item */
	char		marker_id[EV_S3_UPLOAD_TEXT];

	/* The item. */
	char		key[MARKER_TEXT];
	char		upload_id[EV_S3_UPLOAD_TEXT];
	EvS3Object	object;
	EvS3Part	part;
	int64_t		initiated;
	bool		latest;
};

static bool
hand_on_object(Listing *listing)
{
	return listing->function.object(listing->arg, listing->key,
									&listing->object);
}

static bool
hand_on_version(Listing *listing)
{
	return listing->function.version(listing->arg, listing->key,
									 &listing->object, listing->latest,
									 !listing->object.exists);
}

static bool
hand_on_upload(Listing *listing)
{
	return listing->function.upload(listing->arg, listing->key,
									listing->upload_id, listing->initiated);
}

static bool
hand_on_part(Listing *listing)
{
	return listing->function.part(listing->arg, &listing->part);
}

static const ListKind objects = {
	"ListBucketResult", "Contents", "", "max-keys", "start-after", "",
	hand_on_object
};

static const ListKind versions = {
	"ListVersionsResult", "Version", "DeleteMarker", "max-keys", "key-marker",
	"version-id-marker", hand_on_version
};

static const ListKind uploads = {
	"ListMultipartUploadsResult", "Upload", "", "max-uploads", "key-marker",
	"upload-id-marker", hand_on_upload
};

static const ListKind parts = {
	"ListPartsResult", "Part", "", "max-parts", "part-number-marker", "",
	hand_on_part
};

/* Copy a text, or note that it is too long to be what it should be. */
static void
take(Listing *listing, char *to, size_t size, const char *text)
{
	if (strlen(text) < size)
		strcpy(to, text);
	else
		listing->too_long = true;
}

/* The path behind the root and a slash; NULL for others. */
static const char *
below_root(const Listing *listing, const char *path)
{
	size_t		length = strlen(listing->kind->root);

	return strncmp(path, listing->kind->root, length) == 0 &&
		path[length] == '/' ? path + length + 1 : NULL;
}

/* First reading: what concerns the page. */
static bool
read_page_field(void *arg, const EvS3Element *element)
{
	Listing    *listing = arg;
	const char *name = below_root(listing, element->path);

	if (name == NULL)
		return true;
	if (strcmp(name, "EncodingType") == 0)
		listing->encoded = strcmp(element->text, "url") == 0;
	else if (strcmp(name, "IsTruncated") == 0)
		listing->truncated = strcmp(element->text, "true") == 0;
	return true;
}

static void
take_etag(Listing *listing, const char *text)
{
	if (!ev_s3_unquote(text, listing->object.etag,
					   sizeof(listing->object.etag)))
		listing->too_long = true;
	memcpy(listing->part.etag, listing->object.etag,
		   sizeof(listing->part.etag));
}

/* What stands in an item. */
static void
read_item_field(Listing *listing, const char *name, const char *text)
{
	if (strcmp(name, "Key") == 0)
	{
		take(listing, listing->key, sizeof(listing->key), text);
		if (listing->encoded)
			ev_s3_decode(listing->key);
	}
	else if (strcmp(name, "Size") == 0)
		listing->object.length = listing->part.length = ev_s3_number(text);
	else if (strcmp(name, "ETag") == 0)
		take_etag(listing, text);
	else if (strcmp(name, "LastModified") == 0)
		listing->object.last_modified = ev_s3_iso_date(text);
	else if (strcmp(name, "VersionId") == 0)
		take(listing, listing->object.version_id,
			 sizeof(listing->object.version_id), text);
	else if (strcmp(name, "IsLatest") == 0)
		listing->latest = strcmp(text, "true") == 0;
	else if (strcmp(name, "UploadId") == 0)
		take(listing, listing->upload_id, sizeof(listing->upload_id), text);
	else if (strcmp(name, "Initiated") == 0)
		listing->initiated = ev_s3_iso_date(text);
	else if (strcmp(name, "PartNumber") == 0)
		listing->part.number = (int) ev_s3_number(text);
	else if (strcmp(name, "ChecksumSHA256") == 0)
		ev_s3_unbase64(text, listing->part.sha256);
}

static void
clear_item(Listing *listing)
{
	ev_s3_object_clear(&listing->object);
	memset(&listing->part, 0, sizeof(listing->part));
	listing->key[0] = '\0';
	listing->upload_id[0] = '\0';
	listing->initiated = EV_S3_NEVER;
	listing->latest = false;
}

/* Remember an item as the last one so far. */
static void
note_item(Listing *listing)
{
	if (listing->kind == &parts)
		snprintf(listing->marker, sizeof(listing->marker), "%d",
				 listing->part.number);
	else
		memcpy(listing->marker, listing->key, sizeof(listing->marker));
	if (listing->kind == &uploads)
		memcpy(listing->marker_id, listing->upload_id,
			   sizeof(listing->marker_id));
	else
		snprintf(listing->marker_id, sizeof(listing->marker_id), "%s",
				 listing->object.version_id);
}

/* Second reading: the items. */
static bool
read_item(void *arg, const EvS3Element *element)
{
	Listing    *listing = arg;
	const ListKind *kind = listing->kind;
	const char *name = below_root(listing, element->path);
	const char *slash;
	bool		wanted;

	if (name == NULL)
		return true;
	slash = strchr(name, '/');
	if (slash != NULL)
	{
		if (strncmp(name, kind->item, (size_t) (slash - name)) == 0 ||
			strncmp(name, kind->other_item, (size_t) (slash - name)) == 0)
			read_item_field(listing, slash + 1, element->text);
		return true;
	}
	if (strcmp(name, kind->item) != 0 && strcmp(name, kind->other_item) != 0)
		return true;
	if (listing->too_long)
		return false;
	listing->object.exists = strcmp(name, kind->item) == 0;
	listing->items++;
	note_item(listing);
	wanted = kind->hand_on(listing);
	clear_item(listing);
	return wanted;
}

/* Read a page whose answer has come. */
static EvS3Outcome
read_page(Listing *listing, const EvS3Reply *reply, EvS3Result *result)
{
	EvS3XmlResult outcome;

	listing->encoded = false;
	listing->truncated = false;
	listing->items = 0;
	clear_item(listing);
	outcome = ev_s3_xml_read(reply->body.data, reply->body.length,
							 read_page_field, listing);
	if (outcome == EV_S3_XML_OK)
		outcome = ev_s3_xml_read(reply->body.data, reply->body.length,
								 read_item, listing);
	if (listing->too_long)
		outcome = EV_S3_XML_MALFORMED;
	switch (outcome)
	{
		case EV_S3_XML_OK:
			break;
		case EV_S3_XML_ENDED:
			return ev_s3_result_set(result, EV_S3_STOPPED, "the listing was ended");
		case EV_S3_XML_MEMORY:
			return ev_s3_result_set(result, EV_S3_LOCAL, "out of memory");
		case EV_S3_XML_MALFORMED:
			ev_s3_result_set(result, EV_S3_UNKNOWN, "the list cannot be read");
			result->retry_helps = true;
			return result->outcome;
	}
	return EV_S3_OK;
}

/* Read all pages; base is the request but for where a page begins. */
static EvS3Outcome
read_pages(EvS3 *s3, Listing *listing, const EvS3Request *base,
		   EvS3Result *result)
{
	const ListKind *kind = listing->kind;
	char		last[MARKER_TEXT] = "";
	char		last_id[EV_S3_UPLOAD_TEXT] = "";

	for (;;)
	{
		EvS3Request request = *base;
		EvS3Reply	reply;

		if (last[0] != '\0')
		{
			ev_s3_query_add(&request.query, kind->marker, last);
			if (kind->marker_id[0] != '\0' && last_id[0] != '\0')
				ev_s3_query_add(&request.query, kind->marker_id, last_id);
		}
		if (ev_s3_perform(s3, &request, &reply, result) == EV_S3_OK)
			read_page(listing, &reply, result);
		ev_s3_buffer_free(&reply.body);
		if (result->outcome != EV_S3_OK || !listing->truncated)
			return result->outcome;
		if (listing->items == 0 ||
			(strcmp(listing->marker, last) == 0 &&
			 strcmp(listing->marker_id, last_id) == 0))
		{
			ev_s3_result_set(result, EV_S3_UNKNOWN, "the list does not go on where it says that it does");
			result->retry_helps = true;
			return result->outcome;
		}
		memcpy(last, listing->marker, sizeof(last));
		memcpy(last_id, listing->marker_id, sizeof(last_id));
	}
}

/* Start the request for a list; digits gets the size of a page. */
static void
init_list(EvS3 *s3, EvS3Request *request, const char *key,
		  const ListKind *kind, char digits[16])
{
	ev_s3_request_init(request, EV_S3_GET, key);
	request->expect = EV_S3_EXPECT_DOCUMENT;
	request->root = kind->root;
	snprintf(digits, 16, "%d", ev_s3_page(s3));
	ev_s3_query_add(&request->query, kind->limit, digits);

	/*
	 * Without it, a key with a control character makes no XML.  Of uploads,
	 * Ceph encodes the keys and does not say so; they are asked for as they
	 * are.
	 */
	if (kind == &objects || kind == &versions)
		ev_s3_query_add(&request->query, "encoding-type", "url");
}

/* The struct is large: it is on the heap. */
static Listing *
make_listing(const ListKind *kind, void *arg, EvS3Result *result)
{
	Listing    *listing = calloc(1, sizeof(Listing));

	if (listing == NULL)
		ev_s3_result_set(result, EV_S3_LOCAL, "out of memory");
	else
	{
		listing->kind = kind;
		listing->arg = arg;
	}
	return listing;
}

EvS3Outcome
ev_s3_list(EvS3 *s3, const char *prefix, EvS3ObjectFunction function,
		   void *arg, EvS3Result *result)
{
	Listing    *listing = make_listing(&objects, arg, result);
	EvS3Request request;
	char		digits[16];

	if (listing == NULL)
		return result->outcome;
	listing->function.object = function;
	init_list(s3, &request, NULL, &objects, digits);
	ev_s3_query_add(&request.query, "list-type", "2");
	ev_s3_query_add(&request.query, "prefix", prefix);
	read_pages(s3, listing, &request, result);
	free(listing);
	return result->outcome;
}

EvS3Outcome
ev_s3_list_versions(EvS3 *s3, const char *prefix,
					EvS3VersionFunction function, void *arg,
					EvS3Result *result)
{
	Listing    *listing = make_listing(&versions, arg, result);
	EvS3Request request;
	char		digits[16];

	if (listing == NULL)
		return result->outcome;
	listing->function.version = function;
	init_list(s3, &request, NULL, &versions, digits);
	ev_s3_query_add(&request.query, "versions", NULL);
	ev_s3_query_add(&request.query, "prefix", prefix);
	read_pages(s3, listing, &request, result);
	free(listing);
	return result->outcome;
}

EvS3Outcome
ev_s3_list_uploads(EvS3 *s3, const char *prefix, EvS3UploadFunction function,
				   void *arg, EvS3Result *result)
{
	Listing    *listing = make_listing(&uploads, arg, result);
	EvS3Request request;
	char		digits[16];

	if (listing == NULL)
		return result->outcome;
	listing->function.upload = function;
	init_list(s3, &request, NULL, &uploads, digits);
	ev_s3_query_add(&request.query, "uploads", NULL);
	ev_s3_query_add(&request.query, "prefix", prefix);
	read_pages(s3, listing, &request, result);
	free(listing);
	return result->outcome;
}

EvS3Outcome
ev_s3_upload_parts(EvS3 *s3, const char *key, const char *upload_id,
				   EvS3PartFunction function, void *arg, EvS3Result *result)
{
	Listing    *listing = make_listing(&parts, arg, result);
	EvS3Request request;
	char		digits[16];

	if (listing == NULL)
		return result->outcome;
	listing->function.part = function;
	init_list(s3, &request, key, &parts, digits);
	ev_s3_query_add(&request.query, "uploadId", upload_id);
	read_pages(s3, listing, &request, result);
	free(listing);
	return result->outcome;
}
