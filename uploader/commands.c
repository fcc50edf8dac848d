/*-------------------------------------------------------------------------
 *
 * commands.c
 *	  The commands of the program, each a few calls of the other files.
 *
 * On standard output, commands print what a script wants: request the id,
 * wait the state, cancel the state, download the file name.  What a person
 * wants to know besides goes to standard error.
 *
 * While waiting, the status view is read in short statements and no
 * transaction is open.  The export runs in the server whatever happens to
 * this program, so a restart of the server is only a pause.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "deliver.h"
#include "doctor.h"
#include "download.h"
#include "log.h"
#include "outcome.h"
#include "output.h"
#include "progress.h"
#include "reconcile.h"
#include "retry.h"
#include "verify.h"

#define POLL_FIRST 0.1			/* seconds */
#define POLL_LAST 1.0
#define POLL_LAST_VISIBLE 0.4	/* when somebody watches a bar */
#define RESTART_SECONDS 600.0	/* how long a server may be away */

typedef struct RequestAttempt
{
	EvLedger   *ledger;
	const EvExportRequest *request;
	char		id[EV_ID_TEXT];
} RequestAttempt;

typedef struct CancelAttempt
{
	EvLedger   *ledger;
	const char *id;
	const char *reason;
	char		state[32];
} CancelAttempt;

static EvStatus run_on_server(const EvOptions *options, EvLedger *ledger,
							  bool *reported, EvFailure *failure);
static EvStatus run_request(const EvOptions *options, EvLedger *ledger,
							EvFailure *failure);
static EvStatus run_wait(const EvOptions *options, EvLedger *ledger,
						 EvFailure *failure);
static EvStatus run_list(const EvOptions *options, EvLedger *ledger,
						 EvFailure *failure);
static EvStatus run_cancel(const EvOptions *options, EvLedger *ledger,
						   EvFailure *failure);
static EvStatus run_download(const EvOptions *options, EvLedger *ledger,
							 const char *id, EvFailure *failure);
static EvStatus run_verify(const EvOptions *options, bool *reported,
						   EvFailure *failure);
static EvStatus wait_until_ready(const EvOptions *options, EvLedger *ledger,
								 const char *id, EvFailure *failure);

EvStatus
ev_command_run(const EvOptions *options, bool *reported, EvFailure *failure)
{
	EvLedger   *ledger;
	EvStatus	status;

	*reported = false;
	if (options->command == EV_COMMAND_VERIFY)
		return run_verify(options, reported, failure);
	if (options->command == EV_COMMAND_DOCTOR)
		return ev_doctor(options, reported, failure);
	if (options->command == EV_COMMAND_UPLOAD)
	{
		status = ev_deliver_setup(failure);
		if (status != EV_STATUS_OK)
			return status;
	}
	status = ev_ledger_open(&options->connection, &ledger, failure);
	if (status != EV_STATUS_OK)
		return status;
	status = run_on_server(options, ledger, reported, failure);
	ev_ledger_close(ledger);
	return status;
}

/* The commands that need a server, on an open connection. */
static EvStatus
run_on_server(const EvOptions *options, EvLedger *ledger, bool *reported,
			  EvFailure *failure)
{
	if (options->target != NULL)
		ev_failure_export(failure, options->target);
	switch (options->command)
	{
		case EV_COMMAND_REQUEST:
			return run_request(options, ledger, failure);
		case EV_COMMAND_WAIT:
			return run_wait(options, ledger, failure);
		case EV_COMMAND_LIST:
		case EV_COMMAND_SHOW:
			return run_list(options, ledger, failure);
		case EV_COMMAND_CANCEL:
			return run_cancel(options, ledger, failure);
		case EV_COMMAND_DOWNLOAD:
			return run_download(options, ledger, options->target, failure);
		case EV_COMMAND_UPLOAD:
			return ev_deliver(options, ledger, failure);
		case EV_COMMAND_RECONCILE:
			return ev_reconcile(options, ledger, reported, failure);
		case EV_COMMAND_DOCTOR:
		case EV_COMMAND_VERIFY:
		case EV_COMMAND_NONE:
			break;
	}
	return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "unexpected command");
}

/* Print the present status of one export. */
static EvStatus
print_export(EvLedger *ledger, const char *id, bool json, EvFailure *failure)
{
	EvExportList list;
	EvStatus	status;

	status = ev_ledger_exports(ledger, id, NULL, 1, &list, failure);
	if (status != EV_STATUS_OK)
		return status;
	ev_output_export(&list.exports[0], json);
	ev_export_list_free(&list);
	return EV_STATUS_OK;
}

/* An EvAttemptFunction. */
static EvStatus
attempt_request(void *arg, EvFailure *failure)
{
	RequestAttempt *attempt = arg;

	return ev_ledger_request(attempt->ledger, attempt->request, attempt->id,
							 failure);
}

/*
 * Every attempt carries the same idempotency key, so one whose answer was
 * lost can be repeated: the server answers with the export it has made.
 */
static EvStatus
run_request(const EvOptions *options, EvLedger *ledger, EvFailure *failure)
{
	RequestAttempt attempt = {ledger, &options->request, ""};
	EvStatus	status;

	if (options->output != NULL)
	{
		status = ev_download_check(options->output, options->force, failure);
		if (status != EV_STATUS_OK)
			return status;
	}
	status = ev_retry_run(ledger, true, attempt_request, &attempt, failure);
	if (status != EV_STATUS_OK)
		return status;
	ev_failure_export(failure, attempt.id);

	/* At once: whoever interrupts the waiting needs the id. */
	if (!options->json)
		ev_output_line(attempt.id);
	if (options->wait)
	{
		status = wait_until_ready(options, ledger, attempt.id, failure);
		if (status != EV_STATUS_OK)
			return status;
		if (options->output != NULL)
			return run_download(options, ledger, attempt.id, failure);
	}
	if (options->json)
		return print_export(ledger, attempt.id, true, failure);
	if (!options->wait)
		ev_log_note("requested; \"pg_evidence wait %s\" waits for it",
					attempt.id);
	return EV_STATUS_OK;
}

/* READY is the only end that prints; all others are failures. */
static EvStatus
run_wait(const EvOptions *options, EvLedger *ledger, EvFailure *failure)
{
	EvStatus	status;

	status = wait_until_ready(options, ledger, options->target, failure);
	if (status != EV_STATUS_OK)
		return status;
	if (options->json)
		return print_export(ledger, options->target, true, failure);
	ev_output_line("READY");
	return EV_STATUS_OK;
}

/* show is a list of one with everything about it. */
static EvStatus
run_list(const EvOptions *options, EvLedger *ledger, EvFailure *failure)
{
	EvExportList list;
	EvStatus	status;

	if (options->command == EV_COMMAND_SHOW)
		return print_export(ledger, options->target, options->json, failure);
	status = ev_ledger_exports(ledger, NULL, options->state, options->limit,
							   &list, failure);
	if (status != EV_STATUS_OK)
		return status;
	ev_output_list(&list, options->json);
	ev_export_list_free(&list);
	return EV_STATUS_OK;
}

/* An EvAttemptFunction. */
static EvStatus
attempt_cancel(void *arg, EvFailure *failure)
{
	CancelAttempt *attempt = arg;

	return ev_ledger_cancel(attempt->ledger, attempt->id, attempt->reason,
							attempt->state, sizeof(attempt->state), failure);
}

/*
 * A cancel whose answer was lost is not repeated: the second one would fail
 * because of the first, and that would look like a refusal.
 */
static EvStatus
run_cancel(const EvOptions *options, EvLedger *ledger, EvFailure *failure)
{
	CancelAttempt attempt = {ledger, options->target, options->reason, ""};
	EvStatus	status;

	status = ev_retry_run(ledger, false, attempt_cancel, &attempt, failure);
	if (status != EV_STATUS_OK)
	{
		if (status == EV_STATUS_CONNECTION)
			ev_fail_hint(failure, "It may have been cancelled all the same: look with \"pg_evidence show %s\".",
						 options->target);
		return status;
	}
	if (options->json)
		return print_export(ledger, options->target, true, failure);
	ev_output_line(attempt.state);
	return EV_STATUS_OK;
}

/*
 * Download and tell where the file lies.  The status for the JSON document is
 * read afterwards, for the download itself may have taken long.
 */
static EvStatus
run_download(const EvOptions *options, EvLedger *ledger, const char *id,
			 EvFailure *failure)
{
	EvVerifyReport *report = malloc(sizeof(EvVerifyReport));
	EvExportList list;
	char	   *path = NULL;
	EvStatus	status;

	if (report == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	status = ev_download(ledger, id, options->reason, options->output,
						 options->force, &options->store, &path, report,
						 failure);
	if (status == EV_STATUS_OK && options->json)
	{
		status = ev_ledger_exports(ledger, id, NULL, 1, &list, failure);
		if (status == EV_STATUS_OK)
		{
			ev_output_result(&list.exports[0], path, report);
			ev_export_list_free(&list);
		}
	}
	else if (status == EV_STATUS_OK)
	{
		ev_output_line(path);
		ev_log_note("%" PRId64 " records, intact; SHA-256 of the file %s as in the ledger",
					report->records, report->archive_sha256);
	}
	free(path);
	free(report);
	return status;
}

/*
 * A package with faults is a result and not an error: it is printed like any
 * other, and only the exit code is that of a failure.
 */
static EvStatus
run_verify(const EvOptions *options, bool *reported, EvFailure *failure)
{
	EvVerifyReport *report = malloc(sizeof(EvVerifyReport));
	EvStatus	status;

	if (report == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	status = ev_verify_path(options->target, report, failure);
	if (status == EV_STATUS_OK)
	{
		if (options->json || !options->quiet)
			ev_output_report(options->target, report, options->json);
		*reported = true;
		if (report->nfaults > 0)
			status = EV_STATUS_MISMATCH;
	}
	free(report);
	return status;
}

/* Not ready in time; the export goes on. */
static EvStatus
timed_out(const EvOptions *options, const char *id, EvFailure *failure)
{
	ev_fail(failure, EV_STATUS_TIMEOUT, NULL,
			"the export is not ready after %d s", options->timeout);
	return ev_fail_hint(failure, "It goes on; wait longer with \"pg_evidence wait %s\".",
						id);
}

/* Look once; EV_STATUS_STATE means that it is still on its way. */
static EvStatus
look(EvLedger *ledger, const char *id, EvFailure *failure)
{
	EvExportList list;
	EvStatus	status;

	status = ev_ledger_exports(ledger, id, NULL, 1, &list, failure);
	if (status != EV_STATUS_OK)
		return status;
	status = ev_outcome(&list.exports[0], failure);
	if (status == EV_STATUS_OK || status == EV_STATUS_STATE)
		ev_progress_export(&list.exports[0]);
	if (status == EV_STATUS_OK && list.exports[0].record_count >= 0)
		ev_log_note("ready: %" PRId64 " records, %" PRId64 " bytes, to be had until %s",
					list.exports[0].record_count,
					list.exports[0].archive_bytes,
					list.exports[0].expires_at == NULL ? "" :
					list.exports[0].expires_at);
	ev_export_list_free(&list);
	return status;
}

/*
 * Ask again and again, less often as time goes by, until the export is ready,
 * has ended otherwise, or --timeout has passed.  An export may be queued for
 * hours, so without --timeout there is no limit.
 */
static EvStatus
wait_until_ready(const EvOptions *options, EvLedger *ledger, const char *id,
				 EvFailure *failure)
{
	double		deadline = ev_retry_clock() + options->timeout;
	double		pause = POLL_FIRST;
	double		longest = POLL_LAST;

	if (ev_progress_visible())
		longest = POLL_LAST_VISIBLE;
	for (;;)
	{
		EvStatus	status;
		double		left = RESTART_SECONDS;
		bool		lost;

		/* A server that does not answer must not outlast --timeout. */
		if (options->timeout > 0)
			ev_ledger_patience(ledger,
							   fmax(deadline - ev_retry_clock(), 1));
		status = look(ledger, id, failure);
		lost = ev_ledger_lost(ledger);
		if (!lost && status != EV_STATUS_STATE &&
			!ev_failure_is_conflict(failure))
			return status;

		if (options->timeout > 0)
			left = deadline - ev_retry_clock();
		if (left <= 0)
			return timed_out(options, id, failure);
		if (lost)
		{
			ev_log_note("connection lost, connecting again; the export goes on");
			status = ev_retry_reconnect(ledger, fmin(left, RESTART_SECONDS),
										failure);
			if (status == EV_STATUS_CONNECTION && left < RESTART_SECONDS)
				return timed_out(options, id, failure);
			if (status != EV_STATUS_OK)
				return status;
			continue;
		}
		ev_retry_sleep(fmin(pause, left));
		pause = fmin(pause * 1.5, longest);
	}
}
