/*-------------------------------------------------------------------------
 *
 * ledger_delivery.c
 *	  What an uploader says to the ledger: one function per SQL function.
 *
 * Every statement calls one function of schema evidence and is a transaction
 * of its own.  A statement whose answer was lost is repeated on a new
 * connection where that is harmless: the server compares the token, so the
 * second run of one that was carried out is refused with PE004 and changes
 * nothing.  Claiming alone is not repeated, since nobody would know the token
 * of the first claim; its lease simply runs out.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger_delivery.h"
#include "ledger_session.h"
#include "retry.h"

/* Numbers come as text; a time as seconds since 1970. */
#define NUMBER_TEXT 24

static const char claim_sql[] =
"SELECT delivery_token, kind, export_id, number, object_key, object_version,"
" bytes, chunks, sha256, look_up, multipart_id, lease_seconds"
" FROM evidence.claim_delivery($1::text, $2::text, $3::text)";

static const char renew_sql[] =
"SELECT evidence.renew_delivery($1::uuid)";

static const char chunk_sql[] =
"SELECT evidence.read_delivery_chunk($1::uuid, seq)"
" FROM pg_catalog.generate_series($2::int, $3::int) AS seq";

static const char sending_sql[] =
"SELECT evidence.record_sending($1::uuid, $2::text)";

static const char confirm_sql[] =
"SELECT evidence.confirm_delivery($1::uuid, $2::bigint, $3::text, $4::text,"
" $5::text, pg_catalog.to_timestamp($6::float8), $7::boolean)";

static const char removed_sql[] =
"SELECT evidence.confirm_removal($1::uuid, $2::boolean)";

static const char fail_sql[] =
"SELECT evidence.fail_delivery($1::uuid, $2::text, $3::text, $4::text,"
" $5::int, pg_catalog.to_timestamp($6::float8))";

static const char status_sql[] =
"SELECT delivery, download_window, staged_deadline, lease,"
" uploads_waiting, uploads_dead, removals_waiting, removals_dead,"
" extract(epoch FROM pg_catalog.clock_timestamp()"
" - oldest_waiting_at)::float8, next_due"
" FROM evidence.delivery_status()";

static const char known_sql[] =
"SELECT object_key, object_version, export_id, export_state, needed, busy,"
" bytes, sha256, multipart_id"
" FROM evidence.known_objects($1::text)"
" ORDER BY object_key COLLATE pg_catalog.\"C\"";

static const char now_sql[] =
"SELECT pg_catalog.clock_timestamp()";

static const char reconciled_sql[] =
"SELECT evidence.record_reconciliation($1::text, $2::text, $3::timestamptz,"
" $4::bigint, $5::jsonb)";

static const char locate_sql[] =
"SELECT bucket, object_key, object_version, bytes, sha256"
" FROM evidence.locate_download($1::text)";

static const char download_sql[] =
"SELECT evidence.record_download($1::text, $2::bigint, $3::text)";

/* One statement, for ev_retry_run. */
typedef struct Statement
{
	EvLedger   *ledger;
	const char *doing;
	const char *sql;
	int			count;
	const char *const *values;
	int			format;
	PGresult   *result;
} Statement;

/* An EvAttemptFunction. */
static EvStatus
attempt_statement(void *arg, EvFailure *failure)
{
	Statement  *statement = arg;

	return ev_session_run(statement->ledger, statement->doing, statement->sql,
						  statement->count, statement->values,
						  statement->format, &statement->result, failure);
}

/* Run a statement, and see that the answer has the form that it must have. */
static EvStatus
run(Statement *statement, bool repeatable, int columns, int max_rows,
	EvFailure *failure)
{
	EvStatus	status;

	status = ev_retry_run(statement->ledger, repeatable, attempt_statement,
						  statement, failure);
	if (status != EV_STATUS_OK)
		return status;
	if (PQnfields(statement->result) == columns &&
		(max_rows < 0 || PQntuples(statement->result) <= max_rows))
		return EV_STATUS_OK;
	PQclear(statement->result);
	statement->result = NULL;
	return ev_fail(failure, EV_STATUS_INTERNAL, statement->doing,
				   "the server's answer has an unexpected form");
}

/* The same for exactly one value, which may be NULL for functions of void. */
static EvStatus
run_value(Statement *statement, EvFailure *failure)
{
	EvStatus	status = run(statement, true, 1, 1, failure);

	if (status != EV_STATUS_OK || PQntuples(statement->result) == 1)
		return status;
	PQclear(statement->result);
	return ev_fail(failure, EV_STATUS_INTERNAL, statement->doing,
				   "the server's answer has an unexpected form");
}

static bool
is_true(const PGresult *result, int row, int column)
{
	return PQgetvalue(result, row, column)[0] == 't';
}

/* -1 stands for NULL. */
static int64_t
integer_at(const PGresult *result, int row, int column)
{
	return PQgetisnull(result, row, column) ? -1 :
		strtoll(PQgetvalue(result, row, column), NULL, 10);
}

static double
number_at(const PGresult *result, int row, int column)
{
	return PQgetisnull(result, row, column) ? -1 :
		strtod(PQgetvalue(result, row, column), NULL);
}

/* A time as text, NULL if there is none. */
static const char *
time_text(char text[NUMBER_TEXT], int64_t seconds)
{
	if (seconds < 0)
		return NULL;
	snprintf(text, NUMBER_TEXT, "%" PRId64, seconds);
	return text;
}

/* NULL for a text that says nothing. */
static const char *
known(const char *text)
{
	return text == NULL || text[0] == '\0' ? NULL : text;
}

bool
ev_delivery_lost(const EvFailure *failure)
{
	return strcmp(failure->sqlstate, "PE004") == 0;
}

EvStatus
ev_delivery_listen(EvLedger *ledger, EvFailure *failure)
{
	return ev_session_listen(ledger, "pg_evidence_delivery", failure);
}

void
ev_delivery_await(EvLedger *ledger, double seconds)
{
	ev_session_await(ledger, seconds);
}

EvStatus
ev_delivery_claim(EvLedger *ledger, const char *uploader, const char *bucket,
				  const char *prefix, EvDelivery *item, bool *found,
				  EvFailure *failure)
{
	const char *const values[] = {uploader, bucket, prefix};
	Statement	statement = {
		ledger, "could not ask for work", claim_sql, 3, values,
		EV_FORMAT_TEXT, NULL
	};
	PGresult   *row;
	EvStatus	status;
	bool		upload;

	*found = false;
	memset(item, 0, sizeof(*item));
	status = run(&statement, false, 12, 1, failure);
	if (status != EV_STATUS_OK)
		return status;
	row = statement.result;
	if (PQntuples(row) == 1)
	{
		upload = strcmp(PQgetvalue(row, 0, 1), "archive.upload") == 0;
		item->kind = upload ? EV_DELIVERY_UPLOAD : EV_DELIVERY_REMOVAL;
		ev_session_copy(item->token, sizeof(item->token),
						PQgetvalue(row, 0, 0));
		ev_session_copy(item->export_id, sizeof(item->export_id),
						PQgetvalue(row, 0, 2));
		item->number = (int) integer_at(row, 0, 3);
		ev_session_copy(item->key, sizeof(item->key), PQgetvalue(row, 0, 4));
		ev_session_copy(item->version, sizeof(item->version),
						PQgetvalue(row, 0, 5));
		item->bytes = integer_at(row, 0, 6);
		item->chunks = integer_at(row, 0, 7);
		ev_session_copy(item->sha256, sizeof(item->sha256),
						PQgetvalue(row, 0, 8));
		item->look_up = is_true(row, 0, 9);
		ev_session_copy(item->multipart_id, sizeof(item->multipart_id),
						PQgetvalue(row, 0, 10));
		item->lease_seconds = (int) integer_at(row, 0, 11);
		*found = true;

		/* To an unknown kind of work nothing may be done. */
		if (!upload && strcmp(PQgetvalue(row, 0, 1), "object.delete") != 0)
			status = ev_fail(failure, EV_STATUS_VERSION, statement.doing,
							 "the server has work of a kind that this program does not know");
	}
	PQclear(row);
	return status;
}

EvStatus
ev_delivery_renew(EvLedger *ledger, const char *token, bool *held,
				  EvFailure *failure)
{
	const char *const values[] = {token};
	PGresult   *result;
	EvStatus	status;

	*held = false;
	status = ev_session_value(ledger, "could not renew the lease", renew_sql,
							  1, values, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	*held = is_true(result, 0, 0);
	PQclear(result);
	return EV_STATUS_OK;
}

EvStatus
ev_delivery_chunks(EvLedger *ledger, const char *token, int64_t seq,
				   int count, unsigned char *buffer, size_t *length,
				   EvFailure *failure)
{
	char		first[NUMBER_TEXT];
	char		last[NUMBER_TEXT];
	const char *const values[] = {token, first, last};
	Statement	statement = {
		ledger, "could not read the archive", chunk_sql, 3, values,
		EV_FORMAT_BINARY, NULL
	};
	EvStatus	status;
	int			i;

	*length = 0;
	snprintf(first, sizeof(first), "%" PRId64, seq);
	snprintf(last, sizeof(last), "%" PRId64, seq + count - 1);
	status = run(&statement, true, 1, count, failure);
	if (status != EV_STATUS_OK)
		return status;
	for (i = 0; i < count && status == EV_STATUS_OK; i++)
	{
		int			size = 0;

		if (i < PQntuples(statement.result))
			size = PQgetlength(statement.result, i, 0);
		if (size > EV_DELIVERY_CHUNK ||
			(size < EV_DELIVERY_CHUNK && i < count - 1))
			status = ev_fail(failure, EV_STATUS_MISMATCH, statement.doing,
							 "chunk %" PRId64 " is missing or damaged",
							 seq + i);
		else
		{
			memcpy(buffer + *length, PQgetvalue(statement.result, i, 0),
				   (size_t) size);
			*length += (size_t) size;
		}
	}
	PQclear(statement.result);
	return status;
}

EvStatus
ev_delivery_sending(EvLedger *ledger, const char *token,
					const char *multipart_id, EvFailure *failure)
{
	const char *const values[] = {token, multipart_id};
	Statement	statement = {
		ledger, "could not record that bytes are sent", sending_sql, 2,
		values, EV_FORMAT_TEXT, NULL
	};
	EvStatus	status = run_value(&statement, failure);

	if (status == EV_STATUS_OK)
		PQclear(statement.result);
	return status;
}

EvStatus
ev_delivery_confirm(EvLedger *ledger, const char *token,
					const EvDeliveryProof *proof, EvDeliveryVerdict *verdict,
					EvFailure *failure)
{
	char		bytes[NUMBER_TEXT];
	char		until[NUMBER_TEXT];
	const char *const values[] = {
		token, bytes, known(proof->sha256), known(proof->version),
		known(proof->lock_mode), time_text(until, proof->retain_until),
		proof->legal_hold ? "t" : "f"
	};
	Statement	statement = {
		ledger, "could not confirm the upload", confirm_sql, 7, values,
		EV_FORMAT_TEXT, NULL
	};
	EvStatus	status;

	*verdict = EV_DELIVERY_READY;
	snprintf(bytes, sizeof(bytes), "%" PRId64, proof->bytes);
	status = run_value(&statement, failure);
	if (status != EV_STATUS_OK)
		return status;
	if (strcmp(PQgetvalue(statement.result, 0, 0), "QUARANTINED") == 0)
		*verdict = EV_DELIVERY_QUARANTINED;
	PQclear(statement.result);
	return EV_STATUS_OK;
}

EvStatus
ev_delivery_removed(EvLedger *ledger, const char *token, bool existed,
					EvFailure *failure)
{
	const char *const values[] = {token, existed ? "t" : "f"};
	Statement	statement = {
		ledger, "could not confirm the removal", removed_sql, 2, values,
		EV_FORMAT_TEXT, NULL
	};
	EvStatus	status = run_value(&statement, failure);

	if (status == EV_STATUS_OK)
		PQclear(statement.result);
	return status;
}

EvStatus
ev_delivery_fail(EvLedger *ledger, const char *token,
				 const EvDeliveryReport *report, EvDeliveryFate *fate,
				 EvFailure *failure)
{
	static const char *const faults[] = {
		[EV_DELIVERY_DEFERRAL] = "deferral",
		[EV_DELIVERY_TRANSIENT] = "transient",
		[EV_DELIVERY_DEFINITE] = "definite"
	};
	char		after[NUMBER_TEXT];
	char		until[NUMBER_TEXT];
	const char *const values[] = {
		token, faults[report->fault], report->code, report->message,
		time_text(after, report->retry_after),
		time_text(until, report->locked_until)
	};
	Statement	statement = {
		ledger, "could not report the failure", fail_sql, 6, values,
		EV_FORMAT_TEXT, NULL
	};
	EvStatus	status;

	*fate = EV_DELIVERY_AGAIN;
	status = run_value(&statement, failure);
	if (status != EV_STATUS_OK)
		return status;
	if (strcmp(PQgetvalue(statement.result, 0, 0), "DEAD") == 0)
		*fate = EV_DELIVERY_GIVEN_UP;
	else if (strcmp(PQgetvalue(statement.result, 0, 0), "PENDING") != 0)
		*fate = EV_DELIVERY_UNWANTED;
	PQclear(statement.result);
	return EV_STATUS_OK;
}

EvStatus
ev_delivery_status(EvLedger *ledger, EvDeliveryStatus *out,
				   EvFailure *failure)
{
	Statement	statement = {
		ledger, "could not ask how delivery stands", status_sql, 0, NULL,
		EV_FORMAT_TEXT, NULL
	};
	PGresult   *row;
	EvStatus	status;

	memset(out, 0, sizeof(*out));
	status = run(&statement, true, 10, 1, failure);
	if (status != EV_STATUS_OK)
		return status;
	row = statement.result;
	ev_session_copy(out->delivery, sizeof(out->delivery),
					PQgetvalue(row, 0, 0));
	out->download_window = (int) integer_at(row, 0, 1);
	out->staged_deadline = (int) integer_at(row, 0, 2);
	out->lease = (int) integer_at(row, 0, 3);
	out->uploads_waiting = integer_at(row, 0, 4);
	out->uploads_dead = integer_at(row, 0, 5);
	out->removals_waiting = integer_at(row, 0, 6);
	out->removals_dead = integer_at(row, 0, 7);
	out->oldest_waiting = number_at(row, 0, 8);
	out->next_due = number_at(row, 0, 9);
	PQclear(row);
	return EV_STATUS_OK;
}

EvStatus
ev_delivery_known(EvLedger *ledger, const char *bucket, EvKnownList *list,
				  EvFailure *failure)
{
	const char *const values[] = {bucket};
	Statement	statement = {
		ledger, "could not ask which objects the ledger knows", known_sql, 1,
		values, EV_FORMAT_TEXT, NULL
	};
	PGresult   *rows;
	EvStatus	status;
	int			i;

	memset(list, 0, sizeof(*list));
	status = run(&statement, true, 9, -1, failure);
	if (status != EV_STATUS_OK)
		return status;
	rows = statement.result;
	list->owner = rows;

	/* One more than needed, for calloc(0) may return NULL. */
	list->objects = calloc((size_t) PQntuples(rows) + 1,
						   sizeof(EvKnownObject));
	if (list->objects == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	list->count = PQntuples(rows);
	for (i = 0; i < list->count; i++)
	{
		EvKnownObject *object = &list->objects[i];

		object->key = PQgetvalue(rows, i, 0);
		object->version = PQgetvalue(rows, i, 1);
		object->export_id = PQgetvalue(rows, i, 2);
		object->state = PQgetvalue(rows, i, 3);
		object->needed = is_true(rows, i, 4);
		object->busy = is_true(rows, i, 5);
		object->bytes = integer_at(rows, i, 6);
		object->sha256 = PQgetvalue(rows, i, 7);
		object->multipart_id = PQgetvalue(rows, i, 8);
	}
	return EV_STATUS_OK;
}

void
ev_known_list_free(EvKnownList *list)
{
	PQclear(list->owner);
	free(list->objects);
	memset(list, 0, sizeof(*list));
}

EvStatus
ev_delivery_now(EvLedger *ledger, char *text, size_t size,
				EvFailure *failure)
{
	Statement	statement = {
		ledger, "could not ask for the server's time", now_sql, 0, NULL,
		EV_FORMAT_TEXT, NULL
	};
	EvStatus	status = run_value(&statement, failure);

	if (status != EV_STATUS_OK)
		return status;
	ev_session_copy(text, size, PQgetvalue(statement.result, 0, 0));
	PQclear(statement.result);
	return EV_STATUS_OK;
}

EvStatus
ev_delivery_reconciled(EvLedger *ledger, const char *bucket,
					   const char *prefix, const char *started,
					   int64_t objects, const char *findings, int64_t *open,
					   EvFailure *failure)
{
	char		count[NUMBER_TEXT];
	const char *const values[] = {bucket, prefix, started, count, findings};
	Statement	statement = {
		ledger, "could not record the findings", reconciled_sql, 5, values,
		EV_FORMAT_TEXT, NULL
	};
	EvStatus	status;

	*open = 0;
	snprintf(count, sizeof(count), "%" PRId64, objects);
	status = run_value(&statement, failure);
	if (status != EV_STATUS_OK)
		return status;
	*open = integer_at(statement.result, 0, 0);
	PQclear(statement.result);
	return EV_STATUS_OK;
}

EvStatus
ev_delivery_locate(EvLedger *ledger, const char *grant, EvLocation *location,
				   EvFailure *failure)
{
	const char *const values[] = {grant};
	Statement	statement = {
		ledger, "could not ask where the archive lies", locate_sql, 1, values,
		EV_FORMAT_TEXT, NULL
	};
	PGresult   *row;
	EvStatus	status;

	memset(location, 0, sizeof(*location));
	status = run(&statement, true, 5, 1, failure);
	if (status != EV_STATUS_OK)
		return status;
	row = statement.result;
	if (PQntuples(row) == 1)
	{
		location->found = true;
		ev_session_copy(location->bucket, sizeof(location->bucket),
						PQgetvalue(row, 0, 0));
		ev_session_copy(location->key, sizeof(location->key),
						PQgetvalue(row, 0, 1));
		ev_session_copy(location->version, sizeof(location->version),
						PQgetvalue(row, 0, 2));
		location->bytes = integer_at(row, 0, 3);
		ev_session_copy(location->sha256, sizeof(location->sha256),
						PQgetvalue(row, 0, 4));
	}
	PQclear(row);
	return EV_STATUS_OK;
}

/*
 * A download whose record was lost on the way is recorded again: one too many
 * is no harm, none at all is.
 */
EvStatus
ev_delivery_download(EvLedger *ledger, const char *grant, int64_t bytes,
					 const char *sha256, EvFailure *failure)
{
	char		bytes_text[NUMBER_TEXT];
	const char *const values[] = {grant, bytes_text, sha256};
	Statement	statement = {
		ledger, "could not record the download", download_sql, 3, values,
		EV_FORMAT_TEXT, NULL
	};
	EvStatus	status;

	snprintf(bytes_text, sizeof(bytes_text), "%" PRId64, bytes);
	status = run_value(&statement, failure);
	if (status == EV_STATUS_OK)
		PQclear(statement.result);
	return status;
}
