/*-------------------------------------------------------------------------
 *
 * pause.h
 *	  Named steps at which a test can make a worker stand still.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_BASE_PAUSE_H
#define EV_BASE_PAUSE_H

/*
 * Wait here for as long as pg_evidence.debug_pause names this step; returns
 * at once without developer mode.  Interrupts are served meanwhile, unless
 * they are held off, as after a commit.
 */
extern void ev_pause_at(const char *step);

#endif							/* EV_BASE_PAUSE_H */
