/*-------------------------------------------------------------------------
 *
 * manifest.c
 *	  The canonical JSON of a request and of a package's manifest.
 *
 * Members are written in the order of their names, which RFC 8785 asks for;
 * whoever adds one puts it where it sorts.  All values come from the contract
 * and from the rows, so two attempts of one export give the same bytes.
 *
 * The purpose and the values of filters are text that people typed, so they
 * go through the redactor like any cell (case C33).  The digest of a request
 * is taken over the text as it was given: it must tell two requests apart and
 * is never shown as text.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "archive.h"
#include "json.h"
#include "manifest.h"

/* What the package does not prove (S1.39), in the order it is printed. */
static const char *const limits[] = {
	"It proves nothing about facts that the audit log did not hold at the snapshot, nor about facts after it.",
	"It relies on the server, its administrators and its clock; a superuser could have changed rows before the export.",
	"It holds no signature: the SHA-256 values show that bytes are unchanged, not who made them.",
	"It holds no time stamp of a trusted authority; all times are those of the database.",
	"It says nothing about who kept keys or files after the export, nor about the chain of custody.",
	"Redaction is a filter for known shapes of secrets and no guarantee that none is left."
};

#define LIMIT_COUNT ((int) (sizeof(limits) / sizeof(limits[0])))

static void put_cells(EvJson *json, const EvCellCounts *cells);
static void put_columns(EvJson *json, const EvRequest *request);
static void put_files(EvJson *json, const EvManifest *manifest);
static void put_dialect(EvJson *json);
static bool put_filters(EvJson *json, const EvRequest *request,
						EvRedactor *redactor, EvError *error);
static void put_edge(EvJson *json, const char *key, bool set, int64_t at,
					 int64_t id);
static void put_limits(EvJson *json);
static void put_producer(EvJson *json, const EvManifest *manifest);
static void put_range(EvJson *json, const EvRequest *request);
static void put_redaction(EvJson *json, const EvManifest *manifest);
static void put_snapshot(EvJson *json, const EvManifest *manifest);
static void put_time(EvJson *json, const char *key, int64_t at);
static bool put_redacted(EvJson *json, const char *text,
						 EvRedactor *redactor, EvError *error);

/*
 * Everything that makes two requests different is in here, and nothing else:
 * not who asks, nor when.
 */
bool
ev_request_json(const EvRequest *request, EvBuffer *out)
{
	EvJson		json;

	ev_json_start(&json, out);
	ev_json_object(&json);
	put_columns(&json, request);
	put_time(&json, "end", request->end_at);
	if (!put_filters(&json, request, NULL, NULL))
		return false;
	ev_json_key(&json, "purpose");
	ev_json_string(&json, request->purpose);
	ev_json_key(&json, "source");
	ev_json_string(&json, request->source);
	put_time(&json, "start", request->start_at);
	ev_json_end_object(&json);
	return ev_json_finish(&json);
}

bool
ev_request_digest(const EvRequest *request, char hex[EV_SHA256_HEX],
				  EvError *error)
{
	EvBuffer	json = {0};
	unsigned char digest[EV_SHA256_BYTES];
	bool		done;

	if (!ev_request_json(request, &json))
	{
		ev_buffer_free(&json);
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	}
	done = ev_sha256(json.data, json.length, digest, error);
	if (done)
		ev_sha256_hex(digest, hex);
	ev_buffer_free(&json);
	return done;
}

/*
 * One call for each member, in canonical order. No branch leaves a member out:
 * a reader of the format may rely on all of them, with null where there is no
 * value.
 */
bool
ev_manifest_json(const EvManifest *manifest, EvRedactor *redactor,
				 EvBuffer *out, EvError *error)
{
	const EvRequest *request = &manifest->request;
	EvJson		json;

	ev_json_start(&json, out);
	ev_json_object(&json);
	put_cells(&json, &manifest->cells);
	put_columns(&json, request);
	ev_json_key(&json, "export_id");
	ev_json_string(&json, manifest->export_id);
	put_files(&json, manifest);
	if (!put_filters(&json, request, redactor, error))
		return false;
	put_edge(&json, "first", manifest->has_records, manifest->first_at,
			 manifest->first_id);
	ev_json_key(&json, "format");
	ev_json_string(&json, EV_MANIFEST_FORMAT);
	ev_json_key(&json, "generation");
	ev_json_integer(&json, manifest->generation);
	put_edge(&json, "last", manifest->has_records, manifest->last_at,
			 manifest->last_id);
	put_limits(&json);
	ev_json_key(&json, "policy");
	ev_json_object(&json);
	ev_json_key(&json, "version");
	ev_json_integer(&json, manifest->policy_version);
	ev_json_end_object(&json);
	put_producer(&json, manifest);
	ev_json_key(&json, "purpose");
	if (!put_redacted(&json, request->purpose, redactor, error))
		return false;
	put_range(&json, request);
	ev_json_key(&json, "record_count");
	ev_json_integer(&json, (int64_t) manifest->record_count);
	put_redaction(&json, manifest);
	ev_json_key(&json, "request_digest");
	ev_json_string(&json, manifest->request_digest);
	put_time(&json, "requested_at", manifest->requested_at);
	ev_json_key(&json, "requested_by");
	ev_json_string(&json, manifest->requested_by);
	put_snapshot(&json, manifest);
	ev_json_key(&json, "source");
	ev_json_string(&json, request->source);
	ev_json_end_object(&json);
	if (!ev_json_finish(&json))
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	return true;
}

/*
 * Says how many cells differ from the table, so that the changes are known
 * without the table.
 */
static void
put_cells(EvJson *json, const EvCellCounts *cells)
{
	ev_json_key(json, "cells");
	ev_json_object(json);
	ev_json_key(json, "cleaned");
	ev_json_integer(json, (int64_t) cells->cleaned);
	ev_json_key(json, "formula_prefixed");
	ev_json_integer(json, (int64_t) cells->formula_prefixed);
	ev_json_key(json, "redacted");
	ev_json_integer(json, (int64_t) cells->redacted);
	ev_json_end_object(json);
}

/* The order is that of the cells in each record. */
static void
put_columns(EvJson *json, const EvRequest *request)
{
	int			i;

	ev_json_key(json, "columns");
	ev_json_array(json);
	for (i = 0; i < request->ncolumns; i++)
		ev_json_string(json, request->columns[i]);
	ev_json_end_array(json);
}

/*
 * An array, although there is one file, because a later format may hold the
 * records in parts.
 */
static void
put_files(EvJson *json, const EvManifest *manifest)
{
	ev_json_key(json, "files");
	ev_json_array(json);
	ev_json_object(json);
	ev_json_key(json, "bytes");
	ev_json_integer(json, (int64_t) manifest->records_bytes);
	put_dialect(json);
	ev_json_key(json, "name");
	ev_json_string(json, EV_RECORDS_MEMBER);
	ev_json_key(json, "rows");
	ev_json_integer(json, (int64_t) manifest->record_count);
	ev_json_key(json, "sha256");
	ev_json_string(json, manifest->records_sha256);
	ev_json_end_object(json);
	ev_json_end_array(json);
}

/* How to read records.csv, for a reader that has nothing but the package. */
static void
put_dialect(EvJson *json)
{
	ev_json_key(json, "dialect");
	ev_json_object(json);
	ev_json_key(json, "bom");
	ev_json_boolean(json, false);
	ev_json_key(json, "delimiter");
	ev_json_string(json, ",");
	ev_json_key(json, "empty");
	ev_json_string(json, "\"\"");
	ev_json_key(json, "encoding");
	ev_json_string(json, "UTF-8");
	ev_json_key(json, "guard");
	ev_json_string(json, "'");
	ev_json_key(json, "header");
	ev_json_boolean(json, true);
	ev_json_key(json, "line_end");
	ev_json_string(json, "\r\n");
	ev_json_key(json, "null");
	ev_json_string(json, "");
	ev_json_key(json, "quote");
	ev_json_string(json, "\"");
	ev_json_key(json, "time");
	ev_json_string(json, "YYYY-MM-DDTHH:MM:SS.ffffffZ");
	ev_json_end_object(json);
}

static bool
put_filters(EvJson *json, const EvRequest *request, EvRedactor *redactor,
			EvError *error)
{
	int			i;
	int			j;

	ev_json_key(json, "filters");
	ev_json_object(json);
	for (i = 0; i < request->nfilters; i++)
	{
		const EvFilter *filter = &request->filters[i];

		ev_json_key(json, filter->key);
		ev_json_array(json);
		for (j = 0; j < filter->nvalues; j++)
			if (!put_redacted(json, filter->values[j], redactor, error))
				return false;
		ev_json_end_array(json);
	}
	ev_json_end_object(json);
	return true;
}

/* The first or the last record; null when there is none. */
static void
put_edge(EvJson *json, const char *key, bool set, int64_t at, int64_t id)
{
	ev_json_key(json, key);
	if (!set)
	{
		ev_json_null(json);
		return;
	}
	ev_json_object(json);
	put_time(json, "created_at", at);
	ev_json_key(json, "id");
	ev_json_integer(json, id);
	ev_json_end_object(json);
}

/*
 * The sentences stand in every package, since packages travel without their
 * documentation.
 */
static void
put_limits(EvJson *json)
{
	int			i;

	ev_json_key(json, "limits");
	ev_json_array(json);
	for (i = 0; i < LIMIT_COUNT; i++)
		ev_json_string(json, limits[i]);
	ev_json_end_array(json);
}

/*
 * The codec shapes the bytes of the archive, not those of records.csv. Who
 * wants to build the same archive again needs to know it.
 */
static void
put_producer(EvJson *json, const EvManifest *manifest)
{
	ev_json_key(json, "producer");
	ev_json_object(json);
	ev_json_key(json, "codec");
	ev_json_string(json, ev_archive_codec());
	ev_json_key(json, "name");
	ev_json_string(json, "pg_evidence");
	ev_json_key(json, "version");
	ev_json_string(json, manifest->producer_version);
	ev_json_end_object(json);
}

/* Start belongs to the range, end does not. */
static void
put_range(EvJson *json, const EvRequest *request)
{
	ev_json_key(json, "range");
	ev_json_object(json);
	put_time(json, "end", request->end_at);
	put_time(json, "start", request->start_at);
	ev_json_end_object(json);
}

/*
 * The digest names the rules exactly; their names and patterns stay in the
 * database, where an auditor can read them by this version.
 */
static void
put_redaction(EvJson *json, const EvManifest *manifest)
{
	ev_json_key(json, "redaction");
	ev_json_object(json);
	ev_json_key(json, "enabled");
	ev_json_boolean(json, manifest->redaction);
	ev_json_key(json, "ruleset");
	ev_json_string(json, "pg_evidence");
	ev_json_key(json, "sha256");
	ev_json_string(json, manifest->ruleset_sha256);
	ev_json_key(json, "version");
	ev_json_integer(json, manifest->ruleset_version);
	ev_json_end_object(json);
}

/* Lets a later reader of the same cluster ask for the same rows again. */
static void
put_snapshot(EvJson *json, const EvManifest *manifest)
{
	ev_json_key(json, "snapshot");
	ev_json_object(json);
	put_time(json, "at", manifest->snapshot_at);
	ev_json_key(json, "consistency");
	ev_json_string(json, manifest->consistency);
	ev_json_key(json, "pg_snapshot");
	ev_json_string(json, manifest->pg_snapshot);
	ev_json_key(json, "system_identifier");
	ev_json_string(json, manifest->system_identifier);
	ev_json_end_object(json);
}

/* The same form as in the cells, so both can be compared as text. */
static void
put_time(EvJson *json, const char *key, int64_t at)
{
	char		text[EV_TIMESTAMP_TEXT];

	ev_timestamp_text(at, text);
	ev_json_key(json, key);
	ev_json_string(json, text);
}

/*
 * A text without secrets is written from where it lies; only a changed one
 * needs a copy.
 */
static bool
put_redacted(EvJson *json, const char *text, EvRedactor *redactor,
			 EvError *error)
{
	EvBuffer	redacted = {0};
	int			count = 0;

	if (text != NULL && redactor != NULL)
		count = ev_redactor_apply(redactor, text, strlen(text), &redacted,
								  error);
	if (count > 0)
		ev_json_string_n(json, redacted.data, redacted.length);
	else if (count == 0)
		ev_json_string(json, text);
	ev_buffer_free(&redacted);
	return count >= 0;
}
