/*-------------------------------------------------------------------------
 *
 * ledger.c
 *	  Everything that is said to the database.
 *
 * The only file that knows libpq.  It calls the functions of schema evidence
 * and reads the view audit_export_status; every statement is a transaction of
 * its own, so nothing is held open while the program waits or writes a file.
 * A grant in particular must be committed before it can be used.
 *
 * search_path is emptied at connect, as pg_dump does it: the operators and
 * casts below then mean those of pg_catalog, whatever a user has created.
 *
 * Of a server error the message, detail and hint are shown, never the
 * context: with log_parameter_max_length_on_error that holds the statement's
 * parameters, and one of them may be a grant.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libpq-fe.h>

#include "ledger.h"
#include "log.h"
#include "prompt.h"

#define PASSWORD_LIMIT 1024
#define TEXT_FORMAT 0
#define BINARY_FORMAT 1

struct EvLedger
{
	EvConnection connection;
	PGconn	   *conn;			/* NULL when the last attempt failed */
	char	   *password;		/* typed by the user; NULL if none was */
};

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

/* What a SQLSTATE means here; the first prefix that fits counts. */
static const struct
{
	const char *prefix;
	EvStatus	status;
}			sqlstate_meanings[] = {
	{"42501", EV_STATUS_DENIED},
	{"22", EV_STATUS_ARGUMENT},
	{"53400", EV_STATUS_LIMIT},
	{"PE002", EV_STATUS_LIMIT},
	{"55000", EV_STATUS_STATE},
	{"PE005", EV_STATUS_STATE},
	{"25006", EV_STATUS_STATE},
	{"PE003", EV_STATUS_GONE},
	{"PE001", EV_STATUS_CONFLICT},
	{"PE006", EV_STATUS_MISMATCH},
	{"PE007", EV_STATUS_PAUSED},
	{"08", EV_STATUS_CONNECTION},
	{"28", EV_STATUS_CONNECTION},
	{"57P", EV_STATUS_CONNECTION}
};

#define SQLSTATE_COUNT \
	(sizeof(sqlstate_meanings) / sizeof(sqlstate_meanings[0]))

static EvStatus open_connection(EvLedger *ledger, EvFailure *failure);
static PGconn *connect_once(const EvLedger *ledger);
static EvStatus check_version(EvLedger *ledger, EvFailure *failure);
static EvStatus run(EvLedger *ledger, const char *doing, const char *sql,
					int nvalues, const char *const *values, int format,
					PGresult **result, EvFailure *failure);
static EvStatus one_value(EvLedger *ledger, const char *doing,
						  const char *sql, int nvalues,
						  const char *const *values, PGresult **result,
						  EvFailure *failure);
static EvStatus server_failure(EvLedger *ledger, const char *doing,
							   const PGresult *result, EvFailure *failure);
static void read_export(const PGresult *result, int row, EvExport *out);

EvStatus
ev_connection_check(const EvConnection *connection, EvFailure *failure)
{
	const char *dbname = connection->dbname;
	PQconninfoOption *options;
	PQconninfoOption *option;
	char	   *message = NULL;
	bool		secret = false;

	if (dbname == NULL ||
		(strchr(dbname, '=') == NULL &&
		 strncmp(dbname, "postgresql://", 13) != 0 &&
		 strncmp(dbname, "postgres://", 11) != 0))
		return EV_STATUS_OK;

	options = PQconninfoParse(dbname, &message);
	PQfreemem(message);
	if (options == NULL)
	{
		/* libpq's own text quotes the string, password and all. */
		ev_fail(failure, EV_STATUS_USAGE, NULL,
				"the connection string given by --dbname cannot be read");
		return ev_fail_hint(failure, "It is either KEYWORD=VALUE pairs or a URI, as in libpq.");
	}
	for (option = options; option->keyword != NULL; option++)
		if (option->val != NULL &&
			(strcmp(option->keyword, "password") == 0 ||
			 strcmp(option->keyword, "sslpassword") == 0))
			secret = true;
	PQconninfoFree(options);
	if (!secret)
		return EV_STATUS_OK;
	ev_fail(failure, EV_STATUS_USAGE, NULL,
			"a password on the command line can be read by everybody on this machine");
	return ev_fail_hint(failure, "Put it into the password file (PGPASSFILE) or a service file (PGSERVICE).");
}

/* A server's notice, e.g. a warning about a moved clock. */
static void
print_notice(void *arg, const PGresult *result)
{
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	(void) arg;
	if (severity != NULL && message != NULL)
		ev_log_note("%s: %s", severity, message);
}

EvStatus
ev_ledger_open(const EvConnection *connection, EvLedger **ledger,
			   EvFailure *failure)
{
	EvLedger   *created = calloc(1, sizeof(EvLedger));
	char		password[PASSWORD_LIMIT];
	EvStatus	status;

	*ledger = NULL;
	if (created == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	created->connection = *connection;
	if (connection->prompt == EV_PROMPT_ALWAYS &&
		ev_prompt_password(password, sizeof(password)))
	{
		created->password = strdup(password);
		explicit_bzero(password, sizeof(password));
	}
	status = open_connection(created, failure);
	if (status != EV_STATUS_OK && created->conn != NULL &&
		created->password == NULL && connection->prompt == EV_PROMPT_AUTO &&
		PQconnectionNeedsPassword(created->conn) &&
		ev_prompt_password(password, sizeof(password)))
	{
		created->password = strdup(password);
		explicit_bzero(password, sizeof(password));
		status = open_connection(created, failure);
	}
	if (status != EV_STATUS_OK)
	{
		ev_ledger_close(created);
		return status;
	}
	*ledger = created;
	return EV_STATUS_OK;
}

EvStatus
ev_ledger_reconnect(EvLedger *ledger, EvFailure *failure)
{
	return open_connection(ledger, failure);
}

void
ev_ledger_close(EvLedger *ledger)
{
	if (ledger == NULL)
		return;
	PQfinish(ledger->conn);
	ev_ledger_forget(ledger->password);
	free(ledger);
}

bool
ev_ledger_lost(const EvLedger *ledger)
{
	return PQstatus(ledger->conn) != CONNECTION_OK;
}

bool
ev_failure_is_conflict(const EvFailure *failure)
{
	/* Serialization failure, deadlock, and a lock that was not to be had. */
	return strcmp(failure->sqlstate, "40001") == 0 ||
		strcmp(failure->sqlstate, "40P01") == 0 ||
		strcmp(failure->sqlstate, "55P03") == 0;
}

/*
 * Connect anew.  On failure the dead connection is kept, because only it can
 * tell whether a password was missing.
 */
static EvStatus
open_connection(EvLedger *ledger, EvFailure *failure)
{
	PQfinish(ledger->conn);
	ledger->conn = connect_once(ledger);
	if (ledger->conn == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	if (PQstatus(ledger->conn) != CONNECTION_OK)
		return server_failure(ledger, "could not connect to the server", NULL,
							  failure);
	PQsetNoticeReceiver(ledger->conn, print_notice, NULL);
	return check_version(ledger, failure);
}

/*
 * The connection string in dbname overrides what stands before it and is
 * overridden by what stands behind it, the same order as in psql.
 */
static PGconn *
connect_once(const EvLedger *ledger)
{
	const char *const keywords[] = {
		"host", "port", "user", "password", "dbname",
		"fallback_application_name", "client_encoding", NULL
	};
	const char *const values[] = {
		ledger->connection.host, ledger->connection.port,
		ledger->connection.user, ledger->password, ledger->connection.dbname,
		"pg_evidence", "UTF8", NULL
	};

	return PQconnectdbParams(keywords, values, 1);
}

/* The length of "MAJOR.MINOR" at the start of a version. */
static size_t
minor_length(const char *version)
{
	size_t		length = strcspn(version, ".");

	if (version[length] == '.')
		length += 1 + strspn(version + length + 1, "0123456789");
	return length;
}

/*
 * Program and extension of different versions may not mean the same by a
 * state or an argument, so they refuse to work together.  A retry cannot
 * help, hence a status of its own.
 */
static EvStatus
check_version(EvLedger *ledger, EvFailure *failure)
{
	PGresult   *result;
	EvStatus	status;
	const char *version;

	status = run(ledger, "could not ask for the extension's version",
				 "SELECT evidence.evidence_version(),"
				 " pg_catalog.set_config('search_path', '', false)",
				 0, NULL, TEXT_FORMAT, &result, failure);
	if (status != EV_STATUS_OK)
	{
		if (strcmp(failure->sqlstate, "3F000") == 0 ||
			strcmp(failure->sqlstate, "42883") == 0)
		{
			ev_fail(failure, EV_STATUS_VERSION, NULL,
					"extension \"pg_evidence\" is not installed in database \"%s\"",
					PQdb(ledger->conn));
			ev_fail_hint(failure, "Connect to the database that has it, or run CREATE EXTENSION pg_evidence there.");
		}
		else if (failure->status == EV_STATUS_DENIED)
			ev_fail_hint(failure, "Ask a superuser for SELECT evidence.grant_capability('%s', 'requester').",
						 PQuser(ledger->conn));
		return failure->status;
	}
	version = PQgetvalue(result, 0, 0);
	if (minor_length(version) != minor_length(EV_VERSION) ||
		strncmp(version, EV_VERSION, minor_length(EV_VERSION)) != 0)
	{
		ev_fail(failure, EV_STATUS_VERSION, NULL,
				"this program is of version %s, extension \"pg_evidence\" of version %s",
				EV_VERSION, version);
		status = ev_fail_hint(failure, "Install the program and the extension from the same release.");
	}
	PQclear(result);
	return status;
}

/* Run one statement as one transaction; *result is set only on success. */
static EvStatus
run(EvLedger *ledger, const char *doing, const char *sql, int nvalues,
	const char *const *values, int format, PGresult **result,
	EvFailure *failure)
{
	PGresult   *answer;

	*result = NULL;
	answer = PQexecParams(ledger->conn, sql, nvalues, NULL, values, NULL,
						  NULL, format);
	if (PQresultStatus(answer) != PGRES_TUPLES_OK)
	{
		EvStatus	status = server_failure(ledger, doing, answer, failure);

		PQclear(answer);
		return status;
	}
	*result = answer;
	return EV_STATUS_OK;
}

/* The same for a statement whose answer is one value that is not NULL. */
static EvStatus
one_value(EvLedger *ledger, const char *doing, const char *sql, int nvalues,
		  const char *const *values, PGresult **result, EvFailure *failure)
{
	EvStatus	status = run(ledger, doing, sql, nvalues, values, TEXT_FORMAT,
							 result, failure);

	if (status != EV_STATUS_OK)
		return status;
	if (PQntuples(*result) == 1 && PQnfields(*result) == 1 &&
		!PQgetisnull(*result, 0, 0))
		return EV_STATUS_OK;
	PQclear(*result);
	*result = NULL;
	return ev_fail(failure, EV_STATUS_INTERNAL, doing,
				   "the server's answer has an unexpected form");
}

/* Copy a field of a server error, or libpq's own text without line ends. */
static void
copy_text(char *out, size_t size, const char *text)
{
	size_t		length = strlen(text);

	while (length > 0 &&
		   (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--;
	if (length >= size)
		length = size - 1;
	memcpy(out, text, length);
	out[length] = '\0';
}

/* Translate what went wrong; result is NULL for a failed connection. */
static EvStatus
server_failure(EvLedger *ledger, const char *doing, const PGresult *result,
			   EvFailure *failure)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	EvStatus	status = EV_STATUS_INTERNAL;
	size_t		i;

	if (message == NULL)
		message = PQerrorMessage(ledger->conn);
	if (PQstatus(ledger->conn) != CONNECTION_OK)
		status = EV_STATUS_CONNECTION;
	else if (sqlstate != NULL)
	{
		for (i = 0; i < SQLSTATE_COUNT; i++)
			if (strncmp(sqlstate, sqlstate_meanings[i].prefix,
						strlen(sqlstate_meanings[i].prefix)) == 0)
				break;
		if (i < SQLSTATE_COUNT)
			status = sqlstate_meanings[i].status;
	}
	ev_fail(failure, status, doing, "%s", "");
	copy_text(failure->text, sizeof(failure->text), message);
	if (sqlstate != NULL)
		copy_text(failure->sqlstate, sizeof(failure->sqlstate), sqlstate);
	if (detail != NULL)
		copy_text(failure->detail, sizeof(failure->detail), detail);
	if (hint != NULL)
		copy_text(failure->hint, sizeof(failure->hint), hint);
	return status;
}

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

	status = one_value(ledger, "could not request the export",
					   "SELECT evidence.request_audit_export("
					   "start_at => $1::timestamptz,"
					   " end_at => $2::timestamptz, purpose => $3::text,"
					   " idempotency_key => $4::text,"
					   " source => coalesce($5::text, 'audit_log'),"
					   " filters => coalesce($6::jsonb, '{}'),"
					   " columns => $7::text[])",
					   7, values, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	copy_text(id, EV_ID_TEXT, PQgetvalue(result, 0, 0));
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
	status = run(ledger, "could not read the status of exports", exports_sql,
				 3, values, TEXT_FORMAT, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	if (id != NULL && PQntuples(result) == 0)
	{
		PQclear(result);
		ev_fail(failure, EV_STATUS_DENIED, NULL,
				"export \"%s\" does not exist or is not yours", id);
		return ev_fail_hint(failure, "\"pg_evidence list\" shows the exports that you may see.");
	}
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

static const char *
text_column(const PGresult *result, int row, enum StatusColumn column)
{
	return PQgetisnull(result, row, (int) column) ? NULL :
		PQgetvalue(result, row, (int) column);
}

static int64_t
integer_column(const PGresult *result, int row, enum StatusColumn column)
{
	const char *text = text_column(result, row, column);

	return text == NULL ? -1 : strtoll(text, NULL, 10);
}

static double
number_column(const PGresult *result, int row, enum StatusColumn column)
{
	const char *text = text_column(result, row, column);

	return text == NULL ? -1 : strtod(text, NULL);
}

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

	status = one_value(ledger, "could not cancel the export",
					   "SELECT evidence.cancel_audit_export($1::uuid, $2::text)",
					   2, values, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	copy_text(state, size, PQgetvalue(result, 0, 0));
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
	status = one_value(ledger, "could not get leave to download",
					   "SELECT evidence.grant_audit_export_download("
					   "$1::uuid, $2::text)",
					   2, values, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	*grant = strdup(PQgetvalue(result, 0, 0));
	PQclear(result);
	if (*grant == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	return EV_STATUS_OK;
}

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
	char		seq_text[16];
	char		count_text[16];
	const char *const values[] = {grant, seq_text, count_text};
	PGresult   *result;
	EvStatus	status;
	int			i;

	*given = 0;
	snprintf(seq_text, sizeof(seq_text), "%d", seq);
	snprintf(count_text, sizeof(count_text), "%d", count);

	/*
	 * The function stands in a target list and not in FROM: there its rows
	 * would first be gathered in a temporary file of the server.
	 */
	status = run(ledger, "could not fetch the archive",
				 "SELECT (f).seq, (f).data FROM (SELECT"
				 " evidence.fetch_audit_export($1::text, $2::int, $3::int)"
				 " AS f) AS s",
				 3, values, BINARY_FORMAT, &result, failure);
	if (status != EV_STATUS_OK)
		return status;
	if (PQnfields(result) != 2 || PQntuples(result) > count)
		status = ev_fail(failure, EV_STATUS_INTERNAL,
						 "could not fetch the archive",
						 "the server's answer has an unexpected form");
	for (i = 0; i < PQntuples(result) && status == EV_STATUS_OK; i++)
	{
		if (binary_int4(result, i, 0) != seq + i ||
			PQgetisnull(result, i, 1) || PQgetlength(result, i, 1) == 0 ||
			PQgetlength(result, i, 1) > EV_CHUNK_LIMIT)
			status = ev_fail(failure, EV_STATUS_MISMATCH,
							 "could not fetch the archive",
							 "chunk %d is missing or damaged", seq + i);
		else
			status = function(arg, seq + i, PQgetvalue(result, i, 1),
							  (size_t) PQgetlength(result, i, 1), failure);
		if (status == EV_STATUS_OK)
			(*given)++;
	}
	PQclear(result);
	return status;
}
