/*-------------------------------------------------------------------------
 *
 * ledger_session.h
 *	  One connection to the server, and how a statement is run on it.
 *
 * Private to the files ledger*.c, the only ones that know libpq; ledger.h is
 * what the rest of the program sees.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_LEDGER_SESSION_H
#define EV_UPLOADER_LEDGER_SESSION_H

#include <libpq-fe.h>

#include "ledger.h"

/* Result formats of libpq. */
#define EV_FORMAT_TEXT 0
#define EV_FORMAT_BINARY 1

/*
 * Run one statement as one transaction.  The result has rows; it is set only
 * on success and released with PQclear.  doing opens the text of a failure.
 */
extern EvStatus ev_session_run(EvLedger *ledger, const char *doing,
							   const char *sql, int nvalues,
							   const char *const *values, int format,
							   PGresult **result, EvFailure *failure);

/* The same for a statement whose answer is one value that is not NULL. */
extern EvStatus ev_session_value(EvLedger *ledger, const char *doing,
								 const char *sql, int nvalues,
								 const char *const *values,
								 PGresult **result, EvFailure *failure);

/* Have the server tell of a channel, on each new connection too. */
extern EvStatus ev_session_listen(EvLedger *ledger, const char *channel,
								  EvFailure *failure);

/*
 * Wait for a notification, a signal, or the end of the connection, for at
 * most seconds.  True if there was a notification.
 */
extern bool ev_session_await(EvLedger *ledger, double seconds);

/* Copy text, cut to size, without line ends behind it. */
extern void ev_session_copy(char *out, size_t size, const char *text);

#endif							/* EV_UPLOADER_LEDGER_SESSION_H */
