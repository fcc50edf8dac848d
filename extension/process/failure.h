/*-------------------------------------------------------------------------
 *
 * failure.h
 *	  What an error of a worker means for its job, and what may be told.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_FAILURE_H
#define EV_PROCESS_FAILURE_H

#include "ledger/job.h"

/* Definite, transient or a deferral, by SQLSTATE. */
extern EvFailureClass ev_failure_classify(int sqlerrcode);

/*
 * The message as it may be stored and logged: secrets replaced, at most
 * EV_FAILURE_TEXT bytes, valid in the database's encoding.
 */
#define EV_FAILURE_TEXT 300
extern char *ev_failure_text(const char *message);

#endif							/* EV_PROCESS_FAILURE_H */
