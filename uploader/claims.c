/*-------------------------------------------------------------------------
 *
 * claims.c
 *	  What a manifest.json claims, read from bytes that nobody vouches for.
 *
 * Three things are checked, in this order: that it is JSON without double
 * keys, that its bytes are the canonical ones (written again by the package's
 * own writer and compared), and that every member that format 1 has is there
 * with the right kind of value and none besides.  An unknown member is a
 * fault because somebody could believe it.
 *
 * jansson builds a tree of some hundred bytes for each element, so a manifest
 * of 4 MiB could fill much memory.  Elements are counted before parsing.
 *
 * No value of the manifest is repeated in a fault, only names of members that
 * this program knows.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "package/archive.h"
#include "package/json.h"
#include "package/manifest.h"

#include "claims.h"
#include "timestamp.h"
#include "uuid.h"

#define ELEMENT_LIMIT 200000	/* commas and brackets of a whole manifest */
#define COLUMN_LIMIT 1700		/* PostgreSQL has no wider table */
#define MARK "[redacted:"
#define PATH_SIZE 64			/* of a member of a member of a member */

/* What a member of the manifest must be. */
typedef enum Kind
{
	KIND_TEXT,
	KIND_TEXT_OR_NULL,
	KIND_COUNT,					/* an integer from 0 on */
	KIND_BOOLEAN,
	KIND_TIME,
	KIND_HASH,					/* 64 lower-case hex digits */
	KIND_HASH_OR_NULL,
	KIND_ID,					/* a uuid */
	KIND_LITERAL,				/* exactly this text */
	KIND_TRUE,
	KIND_FALSE,
	KIND_TEXTS,					/* an array of texts, at least one */
	KIND_FILTERS,				/* an object of such arrays */
	KIND_RECORD,				/* created_at and id, or null */
	KIND_FILES,					/* an array of one object */
	KIND_OBJECT
} Kind;

typedef struct Member
{
	const char *name;
	Kind		kind;
	const struct Member *members;	/* of an object; ends without a name */
	const char *literal;
} Member;

static const char *const kind_words[] = {
	[KIND_TEXT] = "a text",
	[KIND_TEXT_OR_NULL] = "a text or null",
	[KIND_COUNT] = "a count",
	[KIND_BOOLEAN] = "true or false",
	[KIND_TIME] = "a time",
	[KIND_HASH] = "a SHA-256",
	[KIND_HASH_OR_NULL] = "a SHA-256 or null",
	[KIND_ID] = "an export id",
	[KIND_LITERAL] = "what this format says",
	[KIND_TRUE] = "true",
	[KIND_FALSE] = "false",
	[KIND_TEXTS] = "a list of texts",
	[KIND_FILTERS] = "a set of filters",
	[KIND_RECORD] = "the key of a record or null",
	[KIND_FILES] = "a list of one file",
	[KIND_OBJECT] = "an object"
};

static const Member cells_members[] = {
	{"cleaned", KIND_COUNT, NULL, NULL},
	{"formula_prefixed", KIND_COUNT, NULL, NULL},
	{"redacted", KIND_COUNT, NULL, NULL},
	{0}
};

static const Member dialect_members[] = {
	{"bom", KIND_FALSE, NULL, NULL},
	{"delimiter", KIND_LITERAL, NULL, ","},
	{"empty", KIND_LITERAL, NULL, "\"\""},
	{"encoding", KIND_LITERAL, NULL, "UTF-8"},
	{"guard", KIND_LITERAL, NULL, "'"},
	{"header", KIND_TRUE, NULL, NULL},
	{"line_end", KIND_LITERAL, NULL, "\r\n"},
	{"null", KIND_LITERAL, NULL, ""},
	{"quote", KIND_LITERAL, NULL, "\""},
	{"time", KIND_LITERAL, NULL, "YYYY-MM-DDTHH:MM:SS.ffffffZ"},
	{0}
};

static const Member file_members[] = {
	{"bytes", KIND_COUNT, NULL, NULL},
	{"dialect", KIND_OBJECT, dialect_members, NULL},
	{"name", KIND_LITERAL, NULL, EV_RECORDS_MEMBER},
	{"rows", KIND_COUNT, NULL, NULL},
	{"sha256", KIND_HASH, NULL, NULL},
	{0}
};

static const Member policy_members[] = {
	{"version", KIND_COUNT, NULL, NULL},
	{0}
};

static const Member producer_members[] = {
	{"codec", KIND_TEXT, NULL, NULL},
	{"name", KIND_TEXT, NULL, NULL},
	{"version", KIND_TEXT, NULL, NULL},
	{0}
};

static const Member range_members[] = {
	{"end", KIND_TIME, NULL, NULL},
	{"start", KIND_TIME, NULL, NULL},
	{0}
};

static const Member redaction_members[] = {
	{"enabled", KIND_BOOLEAN, NULL, NULL},
	{"ruleset", KIND_TEXT, NULL, NULL},
	{"sha256", KIND_HASH_OR_NULL, NULL, NULL},
	{"version", KIND_COUNT, NULL, NULL},
	{0}
};

static const Member snapshot_members[] = {
	{"at", KIND_TIME, NULL, NULL},
	{"consistency", KIND_TEXT, NULL, NULL},
	{"pg_snapshot", KIND_TEXT_OR_NULL, NULL, NULL},
	{"system_identifier", KIND_TEXT_OR_NULL, NULL, NULL},
	{0}
};

static const Member manifest_members[] = {
	{"cells", KIND_OBJECT, cells_members, NULL},
	{"columns", KIND_TEXTS, NULL, NULL},
	{"export_id", KIND_ID, NULL, NULL},
	{"files", KIND_FILES, file_members, NULL},
	{"filters", KIND_FILTERS, NULL, NULL},
	{"first", KIND_RECORD, NULL, NULL},
	{"format", KIND_TEXT, NULL, NULL},
	{"generation", KIND_COUNT, NULL, NULL},
	{"last", KIND_RECORD, NULL, NULL},
	{"limits", KIND_TEXTS, NULL, NULL},
	{"policy", KIND_OBJECT, policy_members, NULL},
	{"producer", KIND_OBJECT, producer_members, NULL},
	{"purpose", KIND_TEXT, NULL, NULL},
	{"range", KIND_OBJECT, range_members, NULL},
	{"record_count", KIND_COUNT, NULL, NULL},
	{"redaction", KIND_OBJECT, redaction_members, NULL},
	{"request_digest", KIND_HASH, NULL, NULL},
	{"requested_at", KIND_TIME, NULL, NULL},
	{"requested_by", KIND_TEXT, NULL, NULL},
	{"snapshot", KIND_OBJECT, snapshot_members, NULL},
	{"source", KIND_TEXT, NULL, NULL},
	{0}
};

static json_t *parse(const char *text, size_t length, EvVerifyReport *report);
static bool check_canonical(json_t *root, const char *text, size_t length,
							EvVerifyReport *report, EvError *error);
static bool write_value(EvJson *json, json_t *value, int depth);
static bool check_members(const json_t *object, const Member *members,
						  const char *path, EvVerifyReport *report);
static bool is_kind(const json_t *value, const Member *member,
					const char *path, EvVerifyReport *report);
static bool fill_claims(EvClaims *claims, EvVerifyReport *report,
						EvError *error);
static bool check_digest(const EvClaims *claims, EvVerifyReport *report,
						 EvError *error);

bool
ev_claims_read(const char *text, size_t length, EvClaims *claims,
			   EvVerifyReport *report, EvError *error)
{
	json_t	   *root;
	const char *format;

	memset(claims, 0, sizeof(*claims));
	error->kind = EV_ERROR_NONE;
	root = parse(text, length, report);
	claims->root = root;
	ev_report_checked(report, EV_CHECK_MANIFEST);
	if (root == NULL)
		return false;
	if (!check_canonical(root, text, length, report, error))
		return false;

	ev_report_checked(report, EV_CHECK_FORMAT);
	format = json_string_value(json_object_get(root, "format"));
	if (format == NULL || strcmp(format, EV_MANIFEST_FORMAT) != 0)
	{
		ev_report_fault(report, EV_CHECK_FORMAT, "manifest.json is not of format \"%s\", the only one this program knows",
						EV_MANIFEST_FORMAT);
		return false;
	}
	if (!check_members(root, manifest_members, "", report))
		return false;
	return fill_claims(claims, report, error) &&
		check_digest(claims, report, error);
}

void
ev_claims_free(EvClaims *claims)
{
	json_decref(claims->root);
	free(claims->columns);
	memset(claims, 0, sizeof(*claims));
}

/* Parse; NULL with a fault when it is no JSON object. */
static json_t *
parse(const char *text, size_t length, EvVerifyReport *report)
{
	json_error_t reason;
	json_t	   *root;
	size_t		elements = 0;
	size_t		i;

	for (i = 0; i < length; i++)
		elements += text[i] == ',' || text[i] == '[' || text[i] == '{';
	if (elements > ELEMENT_LIMIT)
	{
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"manifest.json has more than %d elements",
						ELEMENT_LIMIT);
		return NULL;
	}
	root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
	if (root == NULL)
		ev_report_fault(report, EV_CHECK_MANIFEST, "manifest.json is not JSON, or has a key twice: line %d, column %d",
						reason.line, reason.column);
	else if (!json_is_object(root))
	{
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"manifest.json is not an object");
		json_decref(root);
		root = NULL;
	}
	return root;
}

/* False only when memory is exhausted; a difference is a fault. */
static bool
check_canonical(json_t *root, const char *text, size_t length,
				EvVerifyReport *report, EvError *error)
{
	EvBuffer	again = {0};
	EvJson		json;
	bool		equal;

	ev_report_checked(report, EV_CHECK_CANONICAL);
	ev_json_start(&json, &again);
	if (!write_value(&json, root, 1))
		equal = false;
	else if (!ev_json_finish(&json))
	{
		ev_buffer_free(&again);
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	}
	else
		equal = again.length == length &&
			memcmp(again.data, text, length) == 0;
	ev_buffer_free(&again);
	if (!equal)
		ev_report_fault(report, EV_CHECK_CANONICAL, "manifest.json does not have the canonical form of RFC 8785");
	return true;
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Write the members of an object in the order of their keys. */
static bool
write_object(EvJson *json, json_t *object, int depth)
{
	size_t		count = json_object_size(object);
	const char **keys = calloc(count + 1, sizeof(char *));
	const char *key;
	json_t	   *value;
	size_t		i = 0;
	bool		possible = true;

	if (keys == NULL)
	{
		json->failed = true;
		return true;
	}
	json_object_foreach(object, key, value)
		keys[i++] = key;
	qsort(keys, count, sizeof(char *), compare_keys);

	ev_json_object(json);
	for (i = 0; i < count && possible; i++)
	{
		ev_json_key(json, keys[i]);
		possible = write_value(json, json_object_get(object, keys[i]),
							   depth + 1);
	}
	ev_json_end_object(json);
	free(keys);
	return possible;
}

/* False when the value has no canonical form that a package could hold. */
static bool
write_value(EvJson *json, json_t *value, int depth)
{
	size_t		i;

	if (depth >= EV_JSON_DEPTH)
		return false;
	switch (json_typeof(value))
	{
		case JSON_OBJECT:
			return write_object(json, value, depth);
		case JSON_ARRAY:
			ev_json_array(json);
			for (i = 0; i < json_array_size(value); i++)
				if (!write_value(json, json_array_get(value, i), depth + 1))
					return false;
			ev_json_end_array(json);
			return true;
		case JSON_STRING:
			ev_json_string_n(json, json_string_value(value),
							 json_string_length(value));
			return true;
		case JSON_INTEGER:
			ev_json_integer(json, json_integer_value(value));
			return true;
		case JSON_TRUE:
		case JSON_FALSE:
			ev_json_boolean(json, json_is_true(value));
			return true;
		case JSON_NULL:
			ev_json_null(json);
			return true;
		case JSON_REAL:
			break;
	}
	return false;
}

/* Compare an object with the list of its members; path ends with a dot. */
static bool
check_members(const json_t *object, const Member *members, const char *path,
			  EvVerifyReport *report)
{
	const Member *member;
	size_t		known = 0;
	bool		complete = true;

	for (member = members; member->name != NULL; member++)
	{
		const json_t *value = json_object_get(object, member->name);
		char		full[PATH_SIZE];

		snprintf(full, sizeof(full), "%s%s", path, member->name);
		if (value == NULL)
		{
			ev_report_fault(report, EV_CHECK_MANIFEST,
							"manifest.json lacks \"%s\"", full);
			complete = false;
			continue;
		}
		known++;
		if (is_kind(value, member, full, report))
			continue;
		complete = false;

		/* The members of an object have been named one by one. */
		if ((member->kind != KIND_OBJECT || !json_is_object(value)) &&
			(member->kind != KIND_FILES || json_array_size(value) != 1))
			ev_report_fault(report, EV_CHECK_MANIFEST,
							"\"%s\" of manifest.json is not %s", full,
							kind_words[member->kind]);
	}
	if (json_object_size(object) > known)
	{
		ev_report_fault(report, EV_CHECK_MANIFEST, "manifest.json has %zu members in \"%s\" that the format does not know",
						json_object_size(object) - known,
						path[0] == '\0' ? "." : path);
		complete = false;
	}
	return complete;
}

/* Is this a text of one or more characters from the set only? */
static bool
is_hash(const json_t *value)
{
	const char *text = json_string_value(value);

	return text != NULL && strlen(text) == EV_SHA256_HEX - 1 &&
		strspn(text, "0123456789abcdef") == EV_SHA256_HEX - 1;
}

static bool
is_time(const json_t *value)
{
	const char *text = json_string_value(value);
	int64_t		microseconds;

	return text != NULL &&
		ev_timestamp_parse(text, strlen(text), &microseconds);
}

static bool
is_texts(const json_t *value)
{
	size_t		i;

	for (i = 0; i < json_array_size(value); i++)
		if (!json_is_string(json_array_get(value, i)))
			return false;
	return json_is_array(value) && i > 0;
}

static bool
is_filters(json_t *value)
{
	const char *key;
	json_t	   *values;

	json_object_foreach(value, key, values)
	{
		if (!is_texts(values))
			return false;
	}
	return json_is_object(value);
}

/* The id of a record: an integer, or its text when JSON cannot hold it. */
static bool
read_record_id(const json_t *value, int64_t *id)
{
	const char *text = json_string_value(value);
	char		again[24];

	if (json_is_integer(value))
	{
		*id = json_integer_value(value);
		return true;
	}
	if (text == NULL)
		return false;
	*id = strtoll(text, NULL, 10);
	snprintf(again, sizeof(again), "%" PRId64, *id);
	return strcmp(again, text) == 0;
}

static bool
is_record(const json_t *value)
{
	int64_t		id;

	return json_is_null(value) ||
		(json_object_size(value) == 2 &&
		 is_time(json_object_get(value, "created_at")) &&
		 read_record_id(json_object_get(value, "id"), &id));
}

static bool
is_kind(const json_t *value, const Member *member, const char *path,
		EvVerifyReport *report)
{
	const char *text = json_string_value(value);
	char		inner[PATH_SIZE];

	switch (member->kind)
	{
		case KIND_TEXT:
			return text != NULL;
		case KIND_TEXT_OR_NULL:
			return text != NULL || json_is_null(value);
		case KIND_COUNT:
			return json_is_integer(value) && json_integer_value(value) >= 0;
		case KIND_BOOLEAN:
			return json_is_boolean(value);
		case KIND_TIME:
			return is_time(value);
		case KIND_HASH:
			return is_hash(value);
		case KIND_HASH_OR_NULL:
			return is_hash(value) || json_is_null(value);
		case KIND_ID:
			return text != NULL && ev_uuid_is_text(text);
		case KIND_LITERAL:
			return text != NULL && strcmp(text, member->literal) == 0;
		case KIND_TRUE:
			return json_is_true(value);
		case KIND_FALSE:
			return json_is_false(value);
		case KIND_TEXTS:
			return is_texts(value);
		case KIND_FILTERS:
			return is_filters((json_t *) value);
		case KIND_RECORD:
			return is_record(value);
		case KIND_FILES:
			if (json_array_size(value) != 1)
				return false;
			value = json_array_get(value, 0);
			/* FALLTHROUGH */
		case KIND_OBJECT:
			snprintf(inner, sizeof(inner), "%.*s.", PATH_SIZE - 2, path);
			return json_is_object(value) &&
				check_members(value, member->members, inner, report);
	}
	return false;
}

/* Values whose kind has been checked. */
static const char *
text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static int64_t
count_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static int64_t
time_of(const json_t *object, const char *name)
{
	const char *text = text_of(object, name);
	int64_t		microseconds = 0;

	ev_timestamp_parse(text, strlen(text), &microseconds);
	return microseconds;
}

static void
fill_record(const json_t *value, EvClaimedRecord *record)
{
	record->at = time_of(value, "created_at");
	read_record_id(json_object_get(value, "id"), &record->id);
}

/* Take the values over and look for contradictions between them. */
static bool
fill_claims(EvClaims *claims, EvVerifyReport *report, EvError *error)
{
	const json_t *root = claims->root;
	const json_t *range = json_object_get(root, "range");
	const json_t *file = json_array_get(json_object_get(root, "files"), 0);
	const json_t *cells = json_object_get(root, "cells");
	const json_t *columns = json_object_get(root, "columns");
	const json_t *first = json_object_get(root, "first");
	const json_t *last = json_object_get(root, "last");
	const char *consistency;
	size_t		i;

	if (json_array_size(columns) > COLUMN_LIMIT)
	{
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"manifest.json has more than %d columns",
						COLUMN_LIMIT);
		return false;
	}
	claims->columns = calloc(json_array_size(columns), sizeof(char *));
	if (claims->columns == NULL)
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	for (i = 0; i < json_array_size(columns); i++)
		claims->columns[i] = json_string_value(json_array_get(columns, i));
	claims->ncolumns = (int) i;

	claims->export_id = text_of(root, "export_id");
	claims->source = text_of(root, "source");
	claims->range_start = text_of(range, "start");
	claims->range_end = text_of(range, "end");
	claims->start_at = time_of(range, "start");
	claims->end_at = time_of(range, "end");
	claims->record_count = count_of(root, "record_count");
	claims->file_bytes = count_of(file, "bytes");
	claims->file_rows = count_of(file, "rows");
	claims->file_sha256 = text_of(file, "sha256");
	claims->formula_prefixed = count_of(cells, "formula_prefixed");
	claims->redacted = count_of(cells, "redacted");
	claims->cleaned = count_of(cells, "cleaned");
	claims->redaction = json_is_true(json_object_get(json_object_get(root, "redaction"),
													 "enabled"));
	claims->has_records = json_is_object(first) && json_is_object(last);
	if (claims->has_records)
	{
		fill_record(first, &claims->first);
		fill_record(last, &claims->last);
	}

	if (claims->start_at >= claims->end_at)
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"the range of manifest.json is empty");
	if (claims->record_count != claims->file_rows)
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"manifest.json states two numbers of records");
	if (json_is_null(first) != json_is_null(last) ||
		json_is_null(first) != (claims->record_count == 0))
		ev_report_fault(report, EV_CHECK_MANIFEST, "first and last record of manifest.json do not fit the number of records");
	consistency = text_of(json_object_get(root, "snapshot"), "consistency");
	if (strcmp(consistency, "as-of-request") != 0 &&
		strcmp(consistency, "attempt-snapshot") != 0)
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"the snapshot's consistency in manifest.json is unknown");
	return true;
}

/*
 * The digest was taken over the purpose and the filters as they were given.
 * If a secret has been taken out of them since, it cannot be recomputed.
 */
static bool
is_redacted(const EvRequest *request)
{
	int			i;
	int			j;

	if (strstr(request->purpose, MARK) != NULL)
		return true;
	for (i = 0; i < request->nfilters; i++)
		for (j = 0; j < request->filters[i].nvalues; j++)
			if (strstr(request->filters[i].values[j], MARK) != NULL)
				return true;
	return false;
}

/* Point at the filters of the manifest, sorted by key; *values holds all. */
static bool
collect_filters(json_t *filters, EvFilter **list, const char ***values)
{
	const char *key;
	json_t	   *array;
	size_t		total = 0;
	size_t		used = 0;
	int			n = 0;
	size_t		i;

	json_object_foreach(filters, key, array)
		total += json_array_size(array);
	*list = calloc(json_object_size(filters) + 1, sizeof(EvFilter));
	*values = calloc(total + 1, sizeof(char *));
	if (*list == NULL || *values == NULL)
		return false;
	json_object_foreach(filters, key, array)
	{
		EvFilter   *filter = &(*list)[n++];

		filter->key = key;
		filter->values = *values + used;
		filter->nvalues = (int) json_array_size(array);
		for (i = 0; i < json_array_size(array); i++)
			(*values)[used++] = json_string_value(json_array_get(array, i));
	}
	qsort(*list, (size_t) n, sizeof(EvFilter), compare_keys);
	return true;
}

static bool
check_digest(const EvClaims *claims, EvVerifyReport *report, EvError *error)
{
	json_t	   *filters = json_object_get(claims->root, "filters");
	EvRequest	request;
	EvFilter   *list = NULL;
	const char **values = NULL;
	char		hex[EV_SHA256_HEX];
	bool		done;

	request.source = claims->source;
	request.start_at = claims->start_at;
	request.end_at = claims->end_at;
	request.columns = claims->columns;
	request.ncolumns = claims->ncolumns;
	request.purpose = text_of(claims->root, "purpose");
	done = collect_filters(filters, &list, &values);
	if (!done)
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	request.filters = list;
	request.nfilters = (int) json_object_size(filters);

	if (done && !is_redacted(&request))
	{
		ev_report_checked(report, EV_CHECK_DIGEST);
		done = ev_request_digest(&request, hex, error);
		if (done &&
			strcmp(hex, text_of(claims->root, "request_digest")) != 0)
			ev_report_fault(report, EV_CHECK_DIGEST, "request_digest of manifest.json is not the digest of source, range, filters, columns and purpose");
	}
	free(list);
	free(values);
	return done;
}
