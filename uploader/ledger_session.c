/*-------------------------------------------------------------------------
 *
 * ledger_session.c
 *	  One connection to the server, and how a statement is run on it.
 *
 * search_path is emptied at connect, as pg_dump does it: the operators and
 * casts of our statements then mean those of pg_catalog, whatever a user has
 * created elsewhere.
 *
 * Of a server error the message, detail and hint are shown, never the
 * context: with log_parameter_max_length_on_error that holds the statement's
 * parameters, and one of them may be a grant.
 *
 * A server that stops answering without closing the connection would hold the
 * program for hours.  So answers are awaited with a limit on silence, and a
 * connection that exceeds it is given up like a lost one.  No statement here
 * is slow by nature: waiting for an export is done by asking again.
 *
 * How long the first connection may take is the user's business
 * (connect_timeout, PGCONNECT_TIMEOUT); reconnecting is our own idea and has
 * a limit of ours.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ledger_session.h"
#include "log.h"
#include "prompt.h"
#include "retry.h"
#include "stop.h"

#define PASSWORD_LIMIT 1024

/* How long a server may be silent within a statement, in seconds. */
#define SILENCE_LIMIT 120.0

/* The same when the program has been asked to end. */
#define SILENCE_LIMIT_STOPPING 0.7

/* How long one attempt to connect again may take. */
#define RECONNECT_LIMIT "10"

struct EvLedger
{
	EvConnection connection;
	PGconn	   *conn;			/* NULL when it was given up */
	char	   *password;		/* typed by the user; NULL if none was */
	double		patience;		/* seconds of silence allowed */
	bool		silent;			/* given up for silence */
	char		listen[64];		/* statement to run on each new connection,
								 * empty if there is none */
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

static EvStatus open_connection(EvLedger *ledger, bool again,
								EvFailure *failure);
static PGconn *connect_once(const EvLedger *ledger, bool again);
static EvStatus check_version(EvLedger *ledger, EvFailure *failure);
static EvStatus run_listen(EvLedger *ledger, EvFailure *failure);
static bool take_notifications(EvLedger *ledger);
static PGresult *await_answer(EvLedger *ledger);
static bool await_input(EvLedger *ledger);
static EvStatus server_failure(EvLedger *ledger, const char *doing,
							   const PGresult *result, EvFailure *failure);

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
	created->patience = SILENCE_LIMIT;

	/* Asked at most twice: with -W before, else when the server wants one. */
	if (connection->prompt == EV_PROMPT_ALWAYS &&
		ev_prompt_password(password, sizeof(password)))
	{
		created->password = strdup(password);
		explicit_bzero(password, sizeof(password));
	}
	status = open_connection(created, false, failure);
	if (status != EV_STATUS_OK && created->conn != NULL &&
		created->password == NULL && connection->prompt == EV_PROMPT_AUTO &&
		PQconnectionNeedsPassword(created->conn) &&
		ev_prompt_password(password, sizeof(password)))
	{
		created->password = strdup(password);
		explicit_bzero(password, sizeof(password));
		status = open_connection(created, false, failure);
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
	return open_connection(ledger, true, failure);
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

void
ev_ledger_patience(EvLedger *ledger, double seconds)
{
	ledger->patience = seconds < SILENCE_LIMIT ? seconds : SILENCE_LIMIT;
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
open_connection(EvLedger *ledger, bool again, EvFailure *failure)
{
	EvStatus	status;

	PQfinish(ledger->conn);
	ledger->silent = false;
	ledger->conn = connect_once(ledger, again);
	if (ledger->conn == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	if (PQstatus(ledger->conn) != CONNECTION_OK)
		return server_failure(ledger, "could not connect to the server", NULL,
							  failure);
	PQsetNoticeReceiver(ledger->conn, print_notice, NULL);
	status = check_version(ledger, failure);
	if (status == EV_STATUS_OK && ledger->listen[0] != '\0')
		status = run_listen(ledger, failure);
	return status;
}

/* Nothing that happened before a new connection was told to it. */
static EvStatus
run_listen(EvLedger *ledger, EvFailure *failure)
{
	PGresult   *answer = NULL;
	EvStatus	status = EV_STATUS_OK;

	if (PQsendQuery(ledger->conn, ledger->listen))
		answer = await_answer(ledger);
	if (PQresultStatus(answer) != PGRES_COMMAND_OK)
		status = server_failure(ledger, "could not listen for new work",
								answer, failure);
	PQclear(answer);
	return status;
}

EvStatus
ev_session_listen(EvLedger *ledger, const char *channel, EvFailure *failure)
{
	snprintf(ledger->listen, sizeof(ledger->listen), "LISTEN %s", channel);
	return run_listen(ledger, failure);
}

bool
ev_session_await(EvLedger *ledger, double seconds)
{
	/* One may have come with the answer to an earlier statement. */
	if (take_notifications(ledger))
		return true;

	/* So may a signal, and the descriptor tells each only once. */
	if (ev_stop_signalled())
		return false;
	if (ev_stop_poll(PQsocket(ledger->conn), seconds))
		PQconsumeInput(ledger->conn);
	return take_notifications(ledger);
}

/* Is there a notification?  All that have come are used up. */
static bool
take_notifications(EvLedger *ledger)
{
	PGnotify   *notice;
	bool		told = false;

	while ((notice = PQnotifies(ledger->conn)) != NULL)
	{
		told = true;
		PQfreemem(notice);
	}
	return told;
}

/*
 * The connection string in dbname overrides what stands before it and is
 * overridden by what stands behind it, the same order as in psql.
 */
static PGconn *
connect_once(const EvLedger *ledger, bool again)
{
	const char *const keywords[] = {
		"host", "port", "user", "password", "dbname",
		"fallback_application_name", "client_encoding",
		again ? "connect_timeout" : NULL, NULL
	};
	const char *const values[] = {
		ledger->connection.host, ledger->connection.port,
		ledger->connection.user, ledger->password, ledger->connection.dbname,
		"pg_evidence", "UTF8", RECONNECT_LIMIT, NULL
	};
	PGconn	   *conn;

	/* A host that does not answer must not hold up the end of a service. */
	ev_stop_at_once(true);
	conn = PQconnectdbParams(keywords, values, 1);
	ev_stop_at_once(false);
	return conn;
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

	status = ev_session_run(ledger, "could not ask for the extension's version",
							"SELECT evidence.evidence_version(),"
							" pg_catalog.set_config('search_path', '', false)",
							0, NULL, EV_FORMAT_TEXT, &result, failure);
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

EvStatus
ev_session_run(EvLedger *ledger, const char *doing, const char *sql,
			   int nvalues, const char *const *values, int format,
			   PGresult **result, EvFailure *failure)
{
	PGresult   *answer = NULL;

	*result = NULL;
	if (PQsendQueryParams(ledger->conn, sql, nvalues, NULL, values, NULL,
						  NULL, format))
		answer = await_answer(ledger);
	if (PQresultStatus(answer) != PGRES_TUPLES_OK)
	{
		EvStatus	status = server_failure(ledger, doing, answer, failure);

		PQclear(answer);
		return status;
	}
	*result = answer;
	return EV_STATUS_OK;
}

/*
 * Read everything that the server says to a statement.  The first error is
 * the reason; what follows it, such as the end of the connection, is its
 * consequence.  NULL when the server fell silent.
 */
static PGresult *
await_answer(EvLedger *ledger)
{
	PGresult   *answer = NULL;

	while (await_input(ledger))
	{
		PGresult   *next = PQgetResult(ledger->conn);

		if (next == NULL)
			return answer;
		if (PQresultStatus(answer) == PGRES_FATAL_ERROR && answer != NULL)
			PQclear(next);
		else
		{
			PQclear(answer);
			answer = next;
		}
	}
	PQclear(answer);
	return NULL;
}

/*
 * Wait until PQgetResult does not block.  After too long a silence the
 * connection is dropped, and false returned.  A program that shall end waits
 * a little: long enough for a server that is well to take a piece of work
 * back.
 */
static bool
await_input(EvLedger *ledger)
{
	double		started = ev_retry_clock();

	while (PQisBusy(ledger->conn))
	{
		double		limit = ledger->patience;

		if (limit > SILENCE_LIMIT_STOPPING && ev_stop_requested())
			limit = SILENCE_LIMIT_STOPPING;
		if (ev_retry_clock() - started >= limit)
		{
			PQfinish(ledger->conn);
			ledger->conn = NULL;
			ledger->silent = true;
			return false;
		}
		if (ev_stop_poll(PQsocket(ledger->conn),
						 started + limit - ev_retry_clock()))
		{
			/* A broken connection ends PQisBusy; PQgetResult tells why. */
			PQconsumeInput(ledger->conn);
			started = ev_retry_clock();
		}
	}
	return true;
}

EvStatus
ev_session_value(EvLedger *ledger, const char *doing, const char *sql,
				 int nvalues, const char *const *values, PGresult **result,
				 EvFailure *failure)
{
	EvStatus	status;

	status = ev_session_run(ledger, doing, sql, nvalues, values,
							EV_FORMAT_TEXT, result, failure);
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

void
ev_session_copy(char *out, size_t size, const char *text)
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

	/* libpq has nothing to say about a connection that we gave up. */
	if (ledger->silent)
		message = "the server does not answer";
	else if (message == NULL)
		message = PQerrorMessage(ledger->conn);

	/* A server that shuts down names a code first; the loss counts more. */
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
	ev_session_copy(failure->text, sizeof(failure->text), message);
	if (sqlstate != NULL)
		ev_session_copy(failure->sqlstate, sizeof(failure->sqlstate),
						sqlstate);
	if (detail != NULL)
		ev_session_copy(failure->detail, sizeof(failure->detail), detail);
	if (hint != NULL)
		ev_session_copy(failure->hint, sizeof(failure->hint), hint);
	return status;
}
