/*-------------------------------------------------------------------------
 *
 * ledger.c
 *	  Everything that is said to the database.
 *
 * It calls the functions of schema evidence and reads the view
 * audit_export_status, as any SQL user can; the tables behind them are never
 * touched.  Every statement is a transaction of its own, so nothing is held
 * open while the program waits or writes a file.  A grant in particular must
 * be committed before it can be used.
 *
 * How a statement is run, and what becomes of a failure, is in
 * ledger_session.c.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger_session.h"

/* A time as ISO 8601 in UTC, whatever the session's settings are. */
#define UTC(column) \
	"to_char(" column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

/* The order of the columns is that of enum StatusColumn. */
static const char exports_sql[] =
"SELECT id, state, source, " UTC("start_at") ", " UTC("end_at") ", purpose,"
" requested_by, " UTC("requested_at") ", attempt, progress::float8,"
" rows_total, rows_done, bytes_done, rows_per_second::float8,"
" extract(epoch FROM eta_low)::float8,"
" extract(epoch FROM eta_high)::float8,"
" record_count, archive_bytes, archive_sha256, " UTC("ready_at") ", "
UTC("expires_at") ", " UTC("cancelled_at") ", " UTC("stopped_at") ","
" error_code, error_message, error_hint"
" FROM evidence.audit_export_status"
" WHERE ($1::uuid IS NULL OR id = $1::uuid)"
" AND ($2::text IS NULL OR state = $2)"
" ORDER BY requested_at DESC, id LIMIT $3::int";

/* The defaults of the function, where NULL would be another value. */
static const char request_sql[] =
"SELECT evidence.request_audit_export(start_at => $1::timestamptz,"
" end_at => $2::timestamptz, purpose => $3::text,"
" idempotency_key => $4::text, source => coalesce($5::text, 'audit_log'),"
" filters => coalesce($6::jsonb, '{}'), columns => $7::text[])";

static const char cancel_sql[] =
"SELECT evidence.cancel_audit_export($1::uuid, $2::text)";

static const char grant_sql[] =
"SELECT evidence.grant_audit_export_download($1::uuid, $2::text)";

/*
 * The function stands in a target list and not in FROM: there its rows would
 * first be gathered in a temporary file of the server.
 */
static const char fetch_sql[] =
"SELECT (f).seq, (f).data FROM ("
"SELECT evidence.fetch_audit_export($1::text, $2::int, $3::int) AS f) AS s";

enum StatusColumn
{
	COLUMN_ID,
	COLUMN_STATE,
	COLUMN_SOURCE,
	COLUMN_START_AT,
	COLUMN_END_AT,
	COLUMN_PURPOSE,
	COLUMN_REQUESTED_BY,
	COLUMN_REQUESTED_AT,
	COLUMN_ATTEMPT,
	COLUMN_PROGRESS,
	COLUMN_ROWS_TOTAL,
	COLUMN_ROWS_DONE,
	COLUMN_BYTES_DONE,
	COLUMN_ROWS_PER_SECOND,
	COLUMN_ETA_LOW,
	COLUMN_ETA_HIGH,
	COLUMN_RECORD_COUNT,
	COLUMN_ARCHIVE_BYTES,
	COLUMN_ARCHIVE_SHA256,
	COLUMN_READY_AT,
	COLUMN_EXPIRES_AT,
	COLUMN_CANCELLED_AT,
	COLUMN_STOPPED_AT,
	COLUMN_ERROR_CODE,
	COLUMN_ERROR_MESSAGE,
	COLUMN_ERROR_HINT
};

static void read_export(const PGresult *result, int row, EvExport *out);

EvStatus
ev_ledger_request(EvLedger *ledger, const EvExportRequest *request,
				  char id[EV_ID_TEXT], EvFailure *failure)
{
	const char *const values[] = {
		request->start_at, request->end_at, request->purpose, request->key,
		request->source, request->filters, request->columns
	};
	PGresult   *result;
	EvStatus	status;

	status = ev_session_value(ledger, "could not request the export",
							  request_sql, 7, values, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	ev_session_copy(id, EV_ID_TEXT, PQgetvalue(result, 0, 0));
	PQclear(result);
	return EV_STATUS_OK;
}

EvStatus
ev_ledger_exports(EvLedger *ledger, const char *id, const char *state,
				  int limit, EvExportList *list, EvFailure *failure)
{
	char		limit_text[16];
	const char *const values[] = {id, state, limit_text};
	PGresult   *result;
	EvStatus	status;
	int			i;

	memset(list, 0, sizeof(*list));
	snprintf(limit_text, sizeof(limit_text), "%d", limit);
	status = ev_session_run(ledger, "could not read the status of exports",
							exports_sql, 3, values, EV_FORMAT_TEXT, &result,
							failure);
	if (status != EV_STATUS_OK)
		return status;

	/* The view hides foreign exports, so "none" and "not yours" are one. */
	if (id != NULL && PQntuples(result) == 0)
	{
		PQclear(result);
		ev_fail(failure, EV_STATUS_DENIED, NULL,
				"export \"%s\" does not exist or is not yours", id);
		return ev_fail_hint(failure, "\"pg_evidence list\" shows the exports that you may see.");
	}

	/* One more than needed, for calloc(0) may return NULL. */
	list->exports = calloc((size_t) PQntuples(result) + 1, sizeof(EvExport));
	if (list->exports == NULL)
	{
		PQclear(result);
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	}
	list->owner = result;
	list->count = PQntuples(result);
	for (i = 0; i < list->count; i++)
		read_export(result, i, &list->exports[i]);
	return EV_STATUS_OK;
}

void
ev_export_list_free(EvExportList *list)
{
	PQclear(list->owner);
	free(list->exports);
	memset(list, 0, sizeof(*list));
}

/* The text stays in the result, which lives as long as the list. */
static const char *
text_column(const PGresult *result, int row, enum StatusColumn column)
{
	return PQgetisnull(result, row, (int) column) ? NULL :
		PQgetvalue(result, row, (int) column);
}

/* -1 stands for NULL in all numbers of an export: none can be negative. */
static int64_t
integer_column(const PGresult *result, int row, enum StatusColumn column)
{
	const char *text = text_column(result, row, column);

	return text == NULL ? -1 : strtoll(text, NULL, 10);
}

/* The server writes a dot, and no locale has been set that reads another. */
static double
number_column(const PGresult *result, int row, enum StatusColumn column)
{
	const char *text = text_column(result, row, column);

	return text == NULL ? -1 : strtod(text, NULL);
}

/* One row of the view; the order of columns is that of exports_sql. */
static void
read_export(const PGresult *result, int row, EvExport *out)
{
	out->id = text_column(result, row, COLUMN_ID);
	out->state = text_column(result, row, COLUMN_STATE);
	out->source = text_column(result, row, COLUMN_SOURCE);
	out->start_at = text_column(result, row, COLUMN_START_AT);
	out->end_at = text_column(result, row, COLUMN_END_AT);
	out->purpose = text_column(result, row, COLUMN_PURPOSE);
	out->requested_by = text_column(result, row, COLUMN_REQUESTED_BY);
	out->requested_at = text_column(result, row, COLUMN_REQUESTED_AT);
	out->attempt = integer_column(result, row, COLUMN_ATTEMPT);
	out->progress = number_column(result, row, COLUMN_PROGRESS);
	out->rows_total = integer_column(result, row, COLUMN_ROWS_TOTAL);
	out->rows_done = integer_column(result, row, COLUMN_ROWS_DONE);
	out->bytes_done = integer_column(result, row, COLUMN_BYTES_DONE);
	out->rows_per_second = number_column(result, row, COLUMN_ROWS_PER_SECOND);
	out->eta_low = number_column(result, row, COLUMN_ETA_LOW);
	out->eta_high = number_column(result, row, COLUMN_ETA_HIGH);
	out->record_count = integer_column(result, row, COLUMN_RECORD_COUNT);
	out->archive_bytes = integer_column(result, row, COLUMN_ARCHIVE_BYTES);
	out->archive_sha256 = text_column(result, row, COLUMN_ARCHIVE_SHA256);
	out->ready_at = text_column(result, row, COLUMN_READY_AT);
	out->expires_at = text_column(result, row, COLUMN_EXPIRES_AT);
	out->cancelled_at = text_column(result, row, COLUMN_CANCELLED_AT);
	out->stopped_at = text_column(result, row, COLUMN_STOPPED_AT);
	out->error_code = text_column(result, row, COLUMN_ERROR_CODE);
	out->error_message = text_column(result, row, COLUMN_ERROR_MESSAGE);
	out->error_hint = text_column(result, row, COLUMN_ERROR_HINT);
}

EvStatus
ev_ledger_cancel(EvLedger *ledger, const char *id, const char *reason,
				 char *state, size_t size, EvFailure *failure)
{
	const char *const values[] = {id, reason};
	PGresult   *result;
	EvStatus	status;

	status = ev_session_value(ledger, "could not cancel the export",
							  cancel_sql, 2, values, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	ev_session_copy(state, size, PQgetvalue(result, 0, 0));
	PQclear(result);
	return EV_STATUS_OK;
}

EvStatus
ev_ledger_grant(EvLedger *ledger, const char *id, const char *reason,
				char **grant, EvFailure *failure)
{
	const char *const values[] = {id, reason};
	PGresult   *result;
	EvStatus	status;

	*grant = NULL;
	status = ev_session_value(ledger, "could not get leave to download",
							  grant_sql, 2, values, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	*grant = strdup(PQgetvalue(result, 0, 0));
	PQclear(result);
	if (*grant == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	return EV_STATUS_OK;
}

/* A grant is worth a download to whoever finds it in freed memory. */
void
ev_ledger_forget(char *grant)
{
	if (grant != NULL)
		explicit_bzero(grant, strlen(grant));
	free(grant);
}

/* Read the int4 of a binary result. */
static int64_t
binary_int4(const PGresult *result, int row, int column)
{
	const unsigned char *b;

	if (PQgetisnull(result, row, column) ||
		PQgetlength(result, row, column) != 4)
		return -1;
	b = (const unsigned char *) PQgetvalue(result, row, column);
	return (int64_t) b[0] << 24 | (int64_t) b[1] << 16 |
		(int64_t) b[2] << 8 | (int64_t) b[3];
}

EvStatus
ev_ledger_fetch(EvLedger *ledger, const char *grant, int seq, int count,
				EvChunkFunction function, void *arg, int *given,
				EvFailure *failure)
{
	static const char doing[] = "could not fetch the archive";
	char		seq_text[16];
	char		count_text[16];
	const char *const values[] = {grant, seq_text, count_text};
	PGresult   *result;
	EvStatus	status;
	int			i;

	*given = 0;
	snprintf(seq_text, sizeof(seq_text), "%d", seq);
	snprintf(count_text, sizeof(count_text), "%d", count);

	status = ev_session_run(ledger, doing, fetch_sql, 3, values,
							EV_FORMAT_BINARY, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	if (PQnfields(result) != 2 || PQntuples(result) > count)
		status = ev_fail(failure, EV_STATUS_INTERNAL,
						 doing, "the server's answer has an unexpected form");
	for (i = 0; i < PQntuples(result) && status == EV_STATUS_OK; i++)
	{
		/* Chunks without gaps, or the file would be wrong unnoticed. */
		if (binary_int4(result, i, 0) != seq + i ||
			PQgetisnull(result, i, 1) || PQgetlength(result, i, 1) == 0 ||
			PQgetlength(result, i, 1) > EV_CHUNK_LIMIT)
			status = ev_fail(failure, EV_STATUS_MISMATCH,
							 doing, "chunk %d is missing or damaged", seq + i);
		else
			status = function(arg, seq + i, PQgetvalue(result, i, 1),
							  (size_t) PQgetlength(result, i, 1), failure);
		if (status == EV_STATUS_OK)
			(*given)++;
	}
	PQclear(result);
	return status;
}
