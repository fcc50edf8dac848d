/*-------------------------------------------------------------------------
 *
 * job.h
 *	  The execution of an export: claim, lease, result, recovery.
 *
 * An attempt is one lease by one worker.  Every change that a worker makes
 * names its token and joins the live attempt, so that a worker which lost its
 * lease changes nothing, whatever it believes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_JOB_H
#define EV_LEDGER_JOB_H

#include "datatype/timestamp.h"
#include "utils/uuid.h"

/* Who holds the attempt, and hence what shows that the holder is alive. */
typedef enum EvAttemptKind
{
	EV_ATTEMPT_EXPORTER,		/* a background worker: the launcher renews
								 * its lease while its heartbeat moves */
	EV_ATTEMPT_SESSION			/* run_once(): a session-level advisory lock
								 * on the attempt, and nobody renews */
} EvAttemptKind;

typedef struct EvClaim
{
	EvAttemptKind kind;
	bool		held;			/* this session holds its advisory lock */
	pg_uuid_t	token;
	int64		job_id;
	pg_uuid_t	export_id;
	int32		generation;
	int32		attempt;		/* counted from 1 */
} EvClaim;

/* What a finished archive is. */
typedef struct EvArchiveFacts
{
	int64		record_count;
	int64		archive_bytes;
	int32		chunks;
	char		archive_sha256[65];
	char		chunks_sha256[65];
	int64		records_bytes;
	char		records_sha256[65];
} EvArchiveFacts;

/* What became of a worker's statement. */
typedef enum EvVerdict
{
	EV_VERDICT_DONE,			/* carried out */
	EV_VERDICT_CANCELLED,		/* the export was cancelled meanwhile */
	EV_VERDICT_LOST				/* the lease ended or another has the job */
} EvVerdict;

/* How a failed attempt goes on. */
typedef enum EvFailureClass
{
	EV_FAILURE_DEFINITE,		/* trying again cannot help */
	EV_FAILURE_TRANSIENT,		/* try again, up to max_attempts */
	EV_FAILURE_DEFERRAL			/* no fault of the job: the attempt is given
								 * back and does not count */
} EvFailureClass;

typedef struct EvFailure
{
	EvFailureClass failure_class;
	const char *code;			/* SQLSTATE */
	const char *message;
	const char *hint;			/* may be NULL */
	int64		record_count;	/* -1 if unknown */
} EvFailure;

/* Why a live attempt is over although its worker did not say so. */
typedef struct EvRecovery
{
	int64		lost;			/* attempts that were ended */
	int64		requeued;
	int64		failed;
	int64		stopped;		/* of exports that had been cancelled */
} EvRecovery;

/*
 * Jobs that could be claimed now, in the order of claiming: as many as there
 * are places, less those taken by running jobs.
 */
extern int	ev_job_list_due(int64 *jobs, int places);

/* When the next job, event or end of a lease is due; infinity if none. */
extern TimestampTz ev_job_next_due(void);

/*
 * Claim the job (0: any that is due) for this process, if a place is free.
 * boot_id is the life of the shared memory, 0 without.  False: nothing to do.
 */
extern bool ev_job_claim(int64 job_id, EvAttemptKind kind, int64 boot_id,
						 EvClaim *claim);

/*
 * Let go of the session's lock on the attempt, if it holds one; to be called
 * once the attempt is over, and after an error too, since such a lock
 * outlives the transaction.
 */
extern void ev_job_let_go(EvClaim *claim);

/* Is the attempt still the owner of its export? */
extern EvVerdict ev_job_check(const EvClaim *claim);

/*
 * The archive whose chunks this attempt stored is selected: READY, or STAGED
 * if it is to go into an object store.
 */
extern EvVerdict ev_job_complete(const EvClaim *claim,
								 const EvArchiveFacts *facts);

/* The attempt failed: QUEUED again after a pause, or FAILED. */
extern EvVerdict ev_job_fail(const EvClaim *claim, const EvFailure *failure);

/* The worker has stopped because the export was cancelled. */
extern void ev_job_stopped(const EvClaim *claim);

/* Renew the leases of these attempts; returns how many were still alive. */
extern int64 ev_job_renew(const pg_uuid_t *tokens, int count);

/*
 * End one attempt whose worker is dead: its lease ended, or it was started in
 * another life of the shared memory (clean: that life ended in an orderly
 * stop, so the attempt is given back), or it is listed in gone, with
 * gone_clean saying which of those ended by an orderly request.  One attempt
 * per call and transaction; false when there is none whose rows can be locked
 * without a wait.
 */
extern bool ev_job_recover_one(int64 boot_id, bool boot_clean,
							   const pg_uuid_t *gone, const bool *gone_clean,
							   int ngone, EvRecovery *recovery);

/* Has nobody said yet how this attempt ended? */
extern bool ev_job_is_open(const pg_uuid_t *token);

#endif							/* EV_LEDGER_JOB_H */
