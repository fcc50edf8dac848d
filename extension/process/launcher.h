/*-------------------------------------------------------------------------
 *
 * launcher.h
 *	  The one process that starts, watches and recovers the others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_LAUNCHER_H
#define EV_PROCESS_LAUNCHER_H

/* Register the launcher; called while libraries are preloaded. */
extern void ev_launcher_register(void);

extern PGDLLEXPORT void ev_launcher_main(Datum main_arg);

#endif							/* EV_PROCESS_LAUNCHER_H */
