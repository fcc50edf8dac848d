/*-------------------------------------------------------------------------
 *
 * periodic.h
 *	  The single workers that the launcher keeps running.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_PERIODIC_H
#define EV_PROCESS_PERIODIC_H

#include "process/lane.h"

/* Launcher: is there one to be started?  Looks at no table. */
extern bool ev_periodic_wanted(void);

/* Launcher: start those that are wanted and not there, as this role. */
extern void ev_periodic_start(Oid role);

/*
 * Worker, first of all, once its signal handlers are set: take the lane and
 * connect.  False if another process has the lane: then end.
 */
extern bool ev_periodic_connect(EvLane lane, const char *name);

/* Worker: the name of its role, allocated here. */
extern char *ev_periodic_role(void);

/* Worker: wait, and read the settings again if told so, which ends it. */
extern void ev_periodic_wait(long milliseconds);

#endif							/* EV_PROCESS_PERIODIC_H */
