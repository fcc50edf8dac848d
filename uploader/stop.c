/*-------------------------------------------------------------------------
 *
 * stop.c
 *	  The signals by which a service is told to end or to read its
 *	  configuration again.
 *
 * The signals are blocked and read from a descriptor, so there is no handler
 * that could come at a bad moment, and no moment between looking at a flag
 * and going to sleep in which one is missed: every wait of the program polls
 * that descriptor too.  Threads that libraries start inherit the mask.
 *
 * A program that has not called ev_stop_setup has no descriptor; for it the
 * functions here are a plain poll.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "stop.h"

static int	signals = -1;		/* the descriptor they are read from */
static bool stop_requested = false;
static bool reload_requested = false;

EvStatus
ev_stop_setup(EvFailure *failure)
{
	sigset_t	mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) == 0)
		signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return ev_fail_errno(failure, EV_STATUS_INTERNAL,
							 "could not set up the handling of signals");
	return EV_STATUS_OK;
}

/* Take note of all signals that have come. */
static void
read_signals(void)
{
	struct signalfd_siginfo info;

	while (signals >= 0 &&
		   read(signals, &info, sizeof(info)) == (ssize_t) sizeof(info))
	{
		if (info.ssi_signo == SIGHUP)
			reload_requested = true;
		else
			stop_requested = true;
	}
}

bool
ev_stop_requested(void)
{
	read_signals();
	return stop_requested;
}

bool
ev_stop_reload(void)
{
	bool		requested;

	read_signals();
	requested = reload_requested;
	reload_requested = false;
	return requested;
}

bool
ev_stop_signalled(void)
{
	read_signals();
	return stop_requested || reload_requested;
}

bool
ev_stop_poll(int descriptor, double seconds)
{
	struct pollfd inputs[] = {
		{descriptor, POLLIN, 0}, {signals, POLLIN, 0}
	};
	int			ready;

	if (seconds < 0)
		seconds = 0;
	ready = poll(inputs, 2, (int) ceil(seconds * 1000));
	if (ready > 0 && inputs[1].revents != 0)
		read_signals();
	return ready > 0 && inputs[0].revents != 0;
}

/* _exit is one of the few functions that a handler may call. */
static void
end_now(int signal_number)
{
	(void) signal_number;
	_exit(EV_STATUS_OK);
}

void
ev_stop_at_once(bool on)
{
	struct sigaction action;
	sigset_t	mask;

	if (signals < 0)
		return;
	memset(&action, 0, sizeof(action));
	action.sa_handler = on ? end_now : SIG_DFL;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigprocmask(on ? SIG_UNBLOCK : SIG_BLOCK, &mask, NULL);
}
