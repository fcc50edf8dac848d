/*-------------------------------------------------------------------------
 *
 * run.h
 *	  Carry out one job, from the claim to READY.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_RUN_H
#define EV_PROCESS_RUN_H

#include "ledger/job.h"
#include "process/transaction.h"

/*
 * Claim the job (0: any that is due) and carry it out in transactions of this
 * process; its failure is recorded and logged, not raised.  False if there
 * was nothing to claim.
 */
extern bool ev_run_job(int64 job_id, EvAttemptKind kind);

#endif							/* EV_PROCESS_RUN_H */
