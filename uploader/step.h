/*-------------------------------------------------------------------------
 *
 * step.h
 *	  Places at which a test can hold the program.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_STEP_H
#define EV_UPLOADER_STEP_H

/*
 * Stand still here, if the environment variable PG_EVIDENCE_PAUSE names this
 * step, until the process is told to go on by SIGCONT.  "NAME:N" is the Nth
 * time that the step is reached.  With "trace" each step is only printed.
 */
extern void ev_step(const char *name);

#endif							/* EV_UPLOADER_STEP_H */
