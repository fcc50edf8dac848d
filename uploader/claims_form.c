/*-------------------------------------------------------------------------
 *
 * claims_form.c
 *	  The members that a manifest of format 1 has, and what each must be.
 *
 * The tables below are the format as a verifier sees it, written down once
 * more and independently of the writer (package/manifest.c).  Every member
 * must be there, with the right kind of value; an unknown one is a fault,
 * because somebody could believe it.  The dialect of records.csv is fixed, so
 * its members must have exactly the values that the records are read by.
 *
 * No value of the manifest is repeated in a fault, only the names of members
 * that stand in these tables.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "package/archive.h"

#include "claims_form.h"
#include "timestamp.h"
#include "uuid.h"

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

static bool check_members(const json_t *object, const Member *members,
						  const char *path, EvVerifyReport *report);
static bool is_kind(const json_t *value, const Member *member,
					const char *path, EvVerifyReport *report);

bool
ev_claims_form_check(const json_t *manifest, EvVerifyReport *report)
{
	return check_members(manifest, manifest_members, "", report);
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

/* Only the one form of a package counts, so that texts can be compared. */
static bool
is_time(const json_t *value)
{
	const char *text = json_string_value(value);
	int64_t		microseconds;

	return text != NULL &&
		ev_timestamp_parse(text, strlen(text), &microseconds);
}

/* A list of columns, limits or values: never empty, texts only. */
static bool
is_texts(const json_t *value)
{
	size_t		i;

	for (i = 0; i < json_array_size(value); i++)
		if (!json_is_string(json_array_get(value, i)))
			return false;
	return json_is_array(value) && i > 0;
}

/* Which keys there may be is the source's business, not the format's. */
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

bool
ev_claims_record_id(const json_t *value, int64_t *id)
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

/* The key of a record, or null in a package without records. */
static bool
is_record(const json_t *value)
{
	int64_t		id;

	return json_is_null(value) ||
		(json_object_size(value) == 2 &&
		 is_time(json_object_get(value, "created_at")) &&
		 ev_claims_record_id(json_object_get(value, "id"), &id));
}

/*
 * Is this value what the member must be?  For objects the members are named
 * one by one in the report; path is the full name of this one.
 */
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
