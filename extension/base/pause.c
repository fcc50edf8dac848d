/*-------------------------------------------------------------------------
 *
 * pause.c
 *	  Named steps at which a test can make a worker stand still.
 *
 * The promises of this extension are about what happens when a process dies
 * between two statements.  A test can only prove them if it can stop the
 * process there, so each such place has a name.  The check costs one test of
 * a flag on a server that is not in developer mode.
 *
 * With the word "trace" in place of a name nobody stands still, and each step
 * that is passed is logged: so a test sees whether its list of steps is the
 * one that the processes really take.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/guc.h"

#include "base/compat.h"
#include "base/pause.h"
#include "base/settings.h"

/* How often a paused process looks at the configuration again. */
#define PAUSE_POLL_MS 20

/* Not the name of a step: log them all. */
#define TRACE "trace"

static bool is_set_to(const char *word);
static void read_settings_again(void);

void
ev_pause_at(const char *step)
{
	bool		announced = false;

	if (!ev_developer_mode)
		return;

	/* What was set before this step began counts, also in mid-transaction. */
	read_settings_again();
	if (is_set_to(TRACE))
		ereport(LOG,
				(errmsg("pg_evidence process %d passes \"%s\"",
						MyProcPid, step)));

	while (is_set_to(step) && !ShutdownRequestPending)
	{
		if (!announced)
			ereport(LOG,
					(errmsg("pg_evidence process %d pauses at \"%s\"",
							MyProcPid, step)));
		announced = true;

		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 PAUSE_POLL_MS, EV_WAIT_EVENT("EvidencePause"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		read_settings_again();
	}
}

static bool
is_set_to(const char *word)
{
	return ev_debug_pause != NULL && strcmp(ev_debug_pause, word) == 0;
}

static void
read_settings_again(void)
{
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
}
