/*-------------------------------------------------------------------------
 *
 * claims.c
 *	  What a manifest.json claims, read from bytes that nobody vouches for.
 *
 * Three things are checked, in this order: that it is JSON without double
 * keys, that its bytes are the canonical ones (written again by the package's
 * own writer and compared), and that it has the form of format 1, which is
 * claims_form.c's business.  Only then are values taken from it.
 *
 * jansson builds a tree of some hundred bytes for each element, so a manifest
 * of 4 MiB could fill much memory.  Elements are counted before parsing.
 *
 * No value of the manifest is repeated in a fault, only names of members that
 * this program knows.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "package/json.h"
#include "package/manifest.h"

#include "claims_form.h"
#include "timestamp.h"

#define ELEMENT_LIMIT 200000	/* commas and brackets of a whole manifest */
#define COLUMN_LIMIT 1700		/* PostgreSQL has no wider table */
#define MARK "[redacted:"

static json_t *parse(const char *text, size_t length, EvVerifyReport *report);
static bool check_canonical(json_t *root, const char *text, size_t length,
							EvVerifyReport *report, EvError *error);
static bool write_value(EvJson *json, json_t *value, int depth);
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
	if (!ev_claims_form_check(root, report))
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

	/* Those within texts count too; the limit leaves room for them. */
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

	/* The library's own text quotes the manifest: tell only the place. */
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

/* By bytes, which for ASCII keys is the order of RFC 8785. */
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

/*
 * Values whose kind has been checked: these three cannot fail any more.
 */
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

/* A record's key; its kind has been checked too. */
static void
fill_record(const json_t *value, EvClaimedRecord *record)
{
	record->at = time_of(value, "created_at");
	ev_claims_record_id(json_object_get(value, "id"), &record->id);
}

/* Each value is well-formed; do those fit each other that must? */
static void
check_contradictions(const EvClaims *claims, EvVerifyReport *report)
{
	const json_t *root = claims->root;
	const json_t *snapshot = json_object_get(root, "snapshot");
	const char *consistency = text_of(snapshot, "consistency");
	bool		no_first = json_is_null(json_object_get(root, "first"));
	bool		no_last = json_is_null(json_object_get(root, "last"));

	if (claims->start_at >= claims->end_at)
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"the range of manifest.json is empty");
	if (claims->record_count != claims->file_rows)
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"manifest.json states two numbers of records");
	if (no_first != no_last || no_first != (claims->record_count == 0))
		ev_report_fault(report, EV_CHECK_MANIFEST, "first and last record of manifest.json do not fit the number of records");
	if (strcmp(consistency, "as-of-request") != 0 &&
		strcmp(consistency, "attempt-snapshot") != 0)
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"the snapshot's consistency in manifest.json is unknown");
}

/* Take the values over into the struct. */
static bool
fill_claims(EvClaims *claims, EvVerifyReport *report, EvError *error)
{
	const json_t *root = claims->root;
	const json_t *range = json_object_get(root, "range");
	const json_t *file = json_array_get(json_object_get(root, "files"), 0);
	const json_t *cells = json_object_get(root, "cells");
	const json_t *columns = json_object_get(root, "columns");
	const json_t *redaction = json_object_get(root, "redaction");
	const json_t *first = json_object_get(root, "first");
	const json_t *last = json_object_get(root, "last");
	size_t		i;

	/* The columns as an array, which the reader of records wants. */
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
	claims->redaction = json_is_true(json_object_get(redaction, "enabled"));
	claims->has_records = json_is_object(first) && json_is_object(last);
	if (claims->has_records)
	{
		fill_record(first, &claims->first);
		fill_record(last, &claims->last);
	}

	check_contradictions(claims, report);
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

/*
 * Recompute the digest of the request from what the manifest shows of it.  A
 * changed purpose, range, filter or list of columns is found this way, unless
 * the digest was changed as well.
 */
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
