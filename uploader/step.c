/*-------------------------------------------------------------------------
 *
 * step.c
 *	  Places at which a test can hold the program.
 *
 * The counterpart of the server's pg_evidence.debug_pause.  The process stops
 * itself, so whoever watches can kill it there, end it, or let time pass and
 * continue it as one that has slept too long.  The variable is the user's
 * own, who can stop the process anyway.
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "step.h"

void
ev_step(const char *name)
{
	static int	reached = 0;
	const char *wanted = getenv("PG_EVIDENCE_PAUSE");
	size_t		length = strlen(name);
	int			number = 1;

	if (wanted == NULL)
		return;
	if (strcmp(wanted, "trace") == 0)
	{
		ev_log_note("process %d comes to \"%s\"", (int) getpid(), name);
		return;
	}
	if (strncmp(wanted, name, length) != 0 ||
		(wanted[length] != '\0' && wanted[length] != ':'))
		return;
	if (wanted[length] == ':')
		number = atoi(wanted + length + 1);
	if (++reached != number)
		return;
	ev_log_note("process %d pauses at \"%s\"", (int) getpid(), name);
	raise(SIGSTOP);
}
