/*-------------------------------------------------------------------------
 *
 * ledger.h
 *	  The program's view of the database: one function per SQL function.
 *
 * Only the files ledger*.c know libpq, and they call functions and the status
 * view of schema evidence only, never a table.  No function leaves a
 * transaction open.
 *
 * A function that fails may have lost the connection, which ev_ledger_lost
 * tells; ev_ledger_reconnect makes a new one with the same parameters.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_LEDGER_H
#define EV_UPLOADER_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "failure.h"

#define EV_ID_TEXT 37			/* a uuid's text and the terminating zero */
#define EV_CHUNK_LIMIT (16 * 1024 * 1024)	/* a longer chunk is refused */

typedef enum EvPrompt
{
	EV_PROMPT_AUTO = 0,			/* ask when the server wants a password */
	EV_PROMPT_NEVER,			/* -w */
	EV_PROMPT_ALWAYS			/* -W */
} EvPrompt;

/* Where to connect.  NULL leaves a value to libpq. */
typedef struct EvConnection
{
	const char *dbname;			/* name, keyword string or URI */
	const char *host;
	const char *port;
	const char *user;
	EvPrompt	prompt;
} EvConnection;

/* The arguments of request_audit_export; NULL takes the server's default. */
typedef struct EvExportRequest
{
	const char *start_at;
	const char *end_at;
	const char *purpose;
	const char *key;			/* never NULL: it makes a retry safe */
	const char *source;
	const char *filters;		/* JSON object */
	const char *columns;		/* array literal */
} EvExportRequest;

/*
 * One row of audit_export_status.  The texts belong to the list it came
 * from; NULL where the view says NULL.  Times are ISO 8601 in UTC, numbers
 * -1 where the view says NULL.
 */
typedef struct EvExport
{
	const char *id;
	const char *state;
	const char *source;
	const char *start_at;
	const char *end_at;
	const char *purpose;
	const char *requested_by;
	const char *requested_at;
	int64_t		attempt;
	double		progress;		/* 0 to 1 */
	int64_t		rows_total;
	int64_t		rows_done;
	int64_t		bytes_done;
	double		rows_per_second;
	double		eta_low;		/* seconds */
	double		eta_high;
	int64_t		record_count;
	int64_t		archive_bytes;
	const char *archive_sha256;
	const char *ready_at;
	const char *expires_at;
	const char *cancelled_at;
	const char *stopped_at;
	const char *error_code;
	const char *error_message;
	const char *error_hint;
} EvExport;

typedef struct EvExportList
{
	EvExport   *exports;
	int			count;
	void	   *owner;			/* holds the texts */
} EvExportList;

typedef struct EvLedger EvLedger;

/* Takes one chunk of an archive; seq counts from 0. */
typedef EvStatus (*EvChunkFunction) (void *arg, int seq, const void *data,
									 size_t length, EvFailure *failure);

/*
 * Is this a connection string that libpq can read, and does it hold no
 * password?  A bare database name is fine.
 */
extern EvStatus ev_connection_check(const EvConnection *connection,
									EvFailure *failure);

/* Connect and compare versions.  *ledger is NULL on failure. */
extern EvStatus ev_ledger_open(const EvConnection *connection,
							   EvLedger **ledger, EvFailure *failure);
extern EvStatus ev_ledger_reconnect(EvLedger *ledger, EvFailure *failure);
extern void ev_ledger_close(EvLedger *ledger);	/* NULL is allowed */

/*
 * Within a statement, allow the server to be silent for that long, which can
 * only shorten the limit that there is anyway.  Then the connection is lost.
 */
extern void ev_ledger_patience(EvLedger *ledger, double seconds);

/* Is the connection gone, so that only a new one can help? */
extern bool ev_ledger_lost(const EvLedger *ledger);

/*
 * Did the server refuse the last statement for a reason that goes away when
 * the whole transaction is run again, and was nothing done for certain?
 */
extern bool ev_failure_is_conflict(const EvFailure *failure);

extern EvStatus ev_ledger_request(EvLedger *ledger,
								  const EvExportRequest *request,
								  char id[EV_ID_TEXT], EvFailure *failure);

/*
 * The exports the user may see, newest first; id and state may be NULL.
 * With an id an empty list is EV_STATUS_DENIED, as the server would say it.
 * Release with ev_export_list_free.
 */
extern EvStatus ev_ledger_exports(EvLedger *ledger, const char *id,
								  const char *state, int limit,
								  EvExportList *list, EvFailure *failure);
extern void ev_export_list_free(EvExportList *list);

/* state gets the state that the export was led to. */
extern EvStatus ev_ledger_cancel(EvLedger *ledger, const char *id,
								 const char *reason, char *state, size_t size,
								 EvFailure *failure);

/* *grant is a secret; release it with ev_ledger_forget. */
extern EvStatus ev_ledger_grant(EvLedger *ledger, const char *id,
								const char *reason, char **grant,
								EvFailure *failure);
extern void ev_ledger_forget(char *grant);	/* NULL is allowed */

/*
 * Hand up to count chunks from seq on to the function, in one transaction.
 * *given is their number: less than count means that the archive ends here.
 */
extern EvStatus ev_ledger_fetch(EvLedger *ledger, const char *grant, int seq,
								int count, EvChunkFunction function,
								void *arg, int *given, EvFailure *failure);

#endif							/* EV_UPLOADER_LEDGER_H */
