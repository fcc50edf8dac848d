/*-------------------------------------------------------------------------
 *
 * stop.h
 *	  The signals by which a service is told to end or to read its
 *	  configuration again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_STOP_H
#define EV_UPLOADER_STOP_H

#include <stdbool.h>

#include "failure.h"

/*
 * From here on SIGTERM and SIGINT ask the program to end, and SIGHUP to read
 * its configuration again.  Before, none of the functions below has anything
 * to tell, and the signals do what they always do.
 */
extern EvStatus ev_stop_setup(EvFailure *failure);

/* Is the program asked to end?  Stays true. */
extern bool ev_stop_requested(void);

/* Is it asked to read its configuration again?  True once for each request. */
extern bool ev_stop_reload(void);

/* Has one of these not been heeded yet? */
extern bool ev_stop_signalled(void);

/*
 * Wait until descriptor has input, for at most seconds.  True when it has;
 * false when the time is over, or a signal has come that was not yet told.
 * A descriptor of -1 never has input.
 */
extern bool ev_stop_poll(int descriptor, double seconds);

/*
 * While a library blocks us, SIGTERM and SIGINT shall end the program at
 * once.  To be used only where there is nothing to give back.
 */
extern void ev_stop_at_once(bool on);

#endif							/* EV_UPLOADER_STOP_H */
