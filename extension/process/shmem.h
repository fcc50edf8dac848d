/*-------------------------------------------------------------------------
 *
 * shmem.h
 *	  What launcher, exporters and sessions tell each other.
 *
 * Nothing that must survive a crash is here: the ledger alone says what is to
 * be done.  Without shared_preload_libraries there is no shared memory; then
 * ev_shmem_attached() is false and all other functions do nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_SHMEM_H
#define EV_PROCESS_SHMEM_H

#include "datatype/timestamp.h"
#include "utils/uuid.h"

#include "base/settings.h"

/*
 * Twice as many as exporters can be configured: a worker that stands still
 * and has lost its lease keeps its slot until it ends.
 */
#define EV_SLOTS (2 * EV_MAX_EXPORTERS)

/* How far an exporter has come. */
typedef struct EvProgress
{
	int64		rows_total;		/* -1 while they are being counted */
	int64		rows_done;
	int64		bytes_done;
	TimestampTz started_at;
} EvProgress;

/* A worker that ended without saying what became of its attempt. */
typedef struct EvGoneWorker
{
	int			slot;
	bool		has_attempt;
	bool		clean;			/* it was asked to stop */
	pg_uuid_t	token;
} EvGoneWorker;

/* A worker that has not ended. */
typedef struct EvLiveWorker
{
	int			slot;
	uint64		heartbeat;
	bool		has_attempt;
	pg_uuid_t	token;
} EvLiveWorker;

/* Ask for the memory; called from _PG_init while libraries are preloaded. */
extern void ev_shmem_init(void);
extern bool ev_shmem_attached(void);

/*
 * A number that changes whenever shared memory is made anew, and whether the
 * server had been stopped in an orderly way before that.
 */
extern int64 ev_shmem_boot_id(void);
extern bool ev_shmem_boot_clean(void);

/* The launcher's latch; wake is harmless when there is no launcher. */
extern void ev_shmem_set_launcher(void);
extern void ev_shmem_wake_launcher(void);

/* Launcher: reserve a slot for a worker (-1 if all are taken), or free one. */
extern int	ev_shmem_reserve(int64 job_id);
extern void ev_shmem_free(int slot);
extern bool ev_shmem_has_job(int64 job_id);
extern int	ev_shmem_count_busy(void);

/* Launcher: give the job to an idle worker; its slot, -1 if there is none. */
extern int	ev_shmem_hand_over(int64 job_id);

/* Launcher: a reserved slot whose worker has not come yet. */
extern bool ev_shmem_is_reserved(int slot);

/*
 * Launcher: this worker stands still.  Its slot stays taken until it ends, but
 * no longer counts as busy, nor as working on its job.
 */
extern void ev_shmem_abandon(int slot);

/* Launcher: workers that were not abandoned, and workers that are gone. */
extern int	ev_shmem_live_workers(EvLiveWorker workers[EV_SLOTS]);
extern int	ev_shmem_gone_workers(EvGoneWorker workers[EV_SLOTS]);

/*
 * Worker: take the slot that was reserved for the job, leave it at exit.
 * False if it is not reserved for it any more: then end.
 */
extern bool ev_shmem_attach(int slot, int64 job_id);
extern void ev_shmem_leave(bool clean);

/*
 * Worker: wait for another job.  ev_shmem_idle() is false if it should end;
 * ev_shmem_next_job() is 0 until its latch was set with a job;
 * ev_shmem_leave_idle() is false if one came at the last moment.
 */
extern bool ev_shmem_idle(bool wake_launcher);
extern int64 ev_shmem_next_job(void);
extern bool ev_shmem_leave_idle(void);

/*
 * Worker: this slot works on the attempt, which may be of another job than it
 * was given; has come to the end of it.
 */
extern void ev_shmem_begin_attempt(int64 job_id, const pg_uuid_t *token,
								   const pg_uuid_t *export_id);
extern void ev_shmem_end_attempt(void);

/* Worker: a sign of life with the progress; true if it should stop. */
extern bool ev_shmem_heartbeat(int64 rows_total, int64 rows_done,
							   int64 bytes_done);

/* Anybody: how far is the worker of this attempt?  False if there is none. */
extern bool ev_shmem_progress(const pg_uuid_t *token, EvProgress *progress);

/* Anybody, after the commit of a cancellation: interrupt its worker. */
extern void ev_shmem_cancel(const pg_uuid_t *export_id);

#endif							/* EV_PROCESS_SHMEM_H */
