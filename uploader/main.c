/*-------------------------------------------------------------------------
 *
 * main.c
 *	  Start and end of the client program pg_evidence.
 *
 * The program asks a PostgreSQL server that has extension pg_evidence for
 * evidence packages, fetches them, and checks them without any server.  It is
 * an ordinary client: it runs outside the server, with the rights of the role
 * it connects as, and calls nothing but the functions and the view that SQL
 * users call too.
 *
 * Only this file prints a final error and ends the program; the exit code is
 * the status (failure.h).
 *
 *-------------------------------------------------------------------------
 */
#include <malloc.h>
#include <stdio.h>

#include "commands.h"
#include "log.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "spool.h"

#define KEPT_MEMORY (4 * 1024 * 1024)

/*
 * Keep the memory of one answer for the next.  An archive comes in values of
 * 64 kB; unless told otherwise, the C library hands their memory back to the
 * system after each few of them and asks for it again at once, which takes
 * more time than everything else that is done with the bytes.
 */
static void
keep_memory(void)
{
#ifdef M_TRIM_THRESHOLD
	mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
#endif
}

int
main(int argc, char **argv)
{
	EvOptions	options;
	EvFailure	failure;
	EvStatus	status;
	bool		reported = false;

	keep_memory();
	ev_failure_clear(&failure);
	status = ev_options_parse(&options, argc, argv, &failure);
	ev_log_setup(options.quiet, options.log_json);
	ev_progress_setup(!options.json && !options.quiet);
	if (status == EV_STATUS_OK)
	{
		if (options.information == EV_INFORMATION_HELP)
			ev_options_help(options.command);
		else if (options.information == EV_INFORMATION_VERSION)
			printf("pg_evidence %s\n", EV_VERSION);
		else
		{
			ev_spool_file_guard();
			status = ev_command_run(&options, &reported, &failure);
		}
	}
	ev_progress_end();
	if (status != EV_STATUS_OK && !reported)
	{
		ev_log_failure(&failure);
		if (options.json)
			ev_output_failure(&failure);
	}
	if (!ev_output_finish() && status == EV_STATUS_OK)
	{
		ev_fail_errno(&failure, EV_STATUS_FILE,
					  "could not write to standard output");
		ev_log_failure(&failure);
		status = EV_STATUS_FILE;
	}
	ev_options_free(&options);
	return (int) status;
}
