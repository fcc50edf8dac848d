/*-------------------------------------------------------------------------
 *
 * shmem.c
 *	  What launcher, exporters and sessions tell each other.
 *
 * One struct with a fixed header and an array of slots, one per worker.  The
 * spinlock guards everything but the counters, which are written by the
 * slot's worker alone and read by anybody.  Nothing is done under the lock
 * that can fail or wait.
 *
 * A slot goes from FREE to RESERVED (launcher, before it registers the
 * worker), to RUNNING (the worker has come), to IDLE and back with each
 * further job, and to GONE (it has left); the launcher makes it FREE again
 * once the attempt, if any was left open, is recovered.  A kill -9 of any
 * process makes the server start anew with fresh memory, and with another
 * boot id.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "base/clock.h"
#include "process/lane.h"
#include "process/shmem.h"

typedef enum EvSlotState
{
	EV_SLOT_FREE = 0,
	EV_SLOT_RESERVED,
	EV_SLOT_RUNNING,
	EV_SLOT_IDLE,
	EV_SLOT_GONE
} EvSlotState;

typedef struct EvWorkerSlot
{
	EvSlotState state;			/* lock */
	pid_t		pid;			/* lock; 0 unless RUNNING or IDLE */
	Latch	   *latch;			/* lock; valid while pid is */
	int64		job_id;			/* lock; 0 if FREE or IDLE */
	bool		has_attempt;	/* lock; the next two are set */
	pg_uuid_t	token;			/* lock */
	pg_uuid_t	export_id;		/* lock */
	TimestampTz started_at;		/* lock; of the attempt */
	bool		clean;			/* lock; the worker was asked to stop */
	bool		stop;			/* lock; the export was cancelled */
	bool		abandoned;		/* lock; it stands still, see launcher.c */
	pg_atomic_uint64 heartbeat; /* written by the worker alone */
	pg_atomic_uint64 rows_total;	/* same; the value plus one, 0 = unknown */
	pg_atomic_uint64 rows_done; /* same */
	pg_atomic_uint64 bytes_done;	/* same */
} EvWorkerSlot;

typedef struct EvSharedState
{
	slock_t		lock;
	int64		boot_id;		/* set once, at start */
	bool		boot_clean;		/* set once, at start */
	Latch	   *launcher;		/* lock; NULL without a launcher */
	EvWorkerSlot slots[EV_SLOTS];
} EvSharedState;

static EvSharedState *shared = NULL;
static EvWorkerSlot *my_slot = NULL;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static void request_memory(void);
static void startup_memory(void);
static bool stopped_cleanly(void);
static void forget_launcher(int code, Datum arg);
static void take_job(EvWorkerSlot *slot, int64 job_id);

void
ev_shmem_init(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_memory;
}

static void
request_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(add_size(MAXALIGN(sizeof(EvSharedState)),
									ev_lane_size()));
}

static void
startup_memory(void)
{
	bool		found;
	int			i;

	if (previous_startup_hook)
		previous_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("pg_evidence", sizeof(EvSharedState), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(EvSharedState));
		SpinLockInit(&shared->lock);
		for (i = 0; i < EV_SLOTS; i++)
		{
			pg_atomic_init_u64(&shared->slots[i].heartbeat, 0);
			pg_atomic_init_u64(&shared->slots[i].rows_total, 0);
			pg_atomic_init_u64(&shared->slots[i].rows_done, 0);
			pg_atomic_init_u64(&shared->slots[i].bytes_done, 0);
		}
		if (!pg_strong_random(&shared->boot_id, sizeof(shared->boot_id)))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate a random number")));
		shared->boot_clean = stopped_cleanly();
	}
	ev_lane_init();
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Recovery has not begun when shared memory is made, so the control file
 * still says how the server ended.  After an orderly stop the attempts of
 * that life were interrupted through no fault of their jobs.
 */
static bool
stopped_cleanly(void)
{
	ControlFileData *control;
	bool		crc_ok;
	bool		clean;

	control = get_controlfile(DataDir, &crc_ok);
	clean = crc_ok && (control->state == DB_SHUTDOWNED ||
					   control->state == DB_SHUTDOWNED_IN_RECOVERY);
	pfree(control);
	return clean;
}

bool
ev_shmem_attached(void)
{
	return shared != NULL;
}

int64
ev_shmem_boot_id(void)
{
	return shared ? shared->boot_id : 0;
}

bool
ev_shmem_boot_clean(void)
{
	return shared ? shared->boot_clean : false;
}

void
ev_shmem_set_launcher(void)
{
	before_shmem_exit(forget_launcher, (Datum) 0);
	SpinLockAcquire(&shared->lock);
	shared->launcher = &MyProc->procLatch;
	SpinLockRelease(&shared->lock);
}

static void
forget_launcher(int code, Datum arg)
{
	SpinLockAcquire(&shared->lock);
	shared->launcher = NULL;
	SpinLockRelease(&shared->lock);
}

/*
 * A latch of a process that has ended is still valid memory; setting it is
 * harmless, so it is done outside the lock.
 */
void
ev_shmem_wake_launcher(void)
{
	Latch	   *launcher;

	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->lock);
	launcher = shared->launcher;
	SpinLockRelease(&shared->lock);
	if (launcher != NULL)
		SetLatch(launcher);
}

/*
 * A slot begins with a job as if it had never had another.
 */
static void
take_job(EvWorkerSlot *slot, int64 job_id)
{
	slot->job_id = job_id;
	slot->has_attempt = false;
	slot->clean = false;
	slot->stop = false;
	slot->abandoned = false;
	pg_atomic_write_u64(&slot->rows_total, 0);
	pg_atomic_write_u64(&slot->rows_done, 0);
	pg_atomic_write_u64(&slot->bytes_done, 0);
}

int
ev_shmem_reserve(int64 job_id)
{
	int			found = -1;
	int			i;

	SpinLockAcquire(&shared->lock);
	for (i = 0; i < EV_SLOTS && found < 0; i++)
	{
		EvWorkerSlot *slot = &shared->slots[i];

		if (slot->state != EV_SLOT_FREE)
			continue;
		slot->state = EV_SLOT_RESERVED;
		slot->pid = 0;
		take_job(slot, job_id);
		found = i;
	}
	SpinLockRelease(&shared->lock);
	return found;
}

/*
 * The worker may be about to end; whoever takes the lock first decides, see
 * ev_shmem_leave_idle().
 */
int
ev_shmem_hand_over(int64 job_id)
{
	Latch	   *latch = NULL;
	int			found = -1;
	int			i;

	SpinLockAcquire(&shared->lock);
	for (i = 0; i < EV_SLOTS && found < 0; i++)
	{
		EvWorkerSlot *slot = &shared->slots[i];

		if (slot->state != EV_SLOT_IDLE)
			continue;
		slot->state = EV_SLOT_RUNNING;
		take_job(slot, job_id);
		latch = slot->latch;
		found = i;
	}
	SpinLockRelease(&shared->lock);
	if (latch != NULL)
		SetLatch(latch);
	return found;
}

void
ev_shmem_free(int slot)
{
	SpinLockAcquire(&shared->lock);
	shared->slots[slot].state = EV_SLOT_FREE;
	shared->slots[slot].job_id = 0;
	shared->slots[slot].has_attempt = false;
	SpinLockRelease(&shared->lock);
}

bool
ev_shmem_has_job(int64 job_id)
{
	bool		found = false;
	int			i;

	SpinLockAcquire(&shared->lock);
	for (i = 0; i < EV_SLOTS; i++)
	{
		if (shared->slots[i].state != EV_SLOT_FREE &&
			!shared->slots[i].abandoned &&
			shared->slots[i].job_id == job_id)
			found = true;
	}
	SpinLockRelease(&shared->lock);
	return found;
}

int
ev_shmem_count_busy(void)
{
	int			busy = 0;
	int			i;

	SpinLockAcquire(&shared->lock);
	for (i = 0; i < EV_SLOTS; i++)
	{
		if (shared->slots[i].state != EV_SLOT_FREE &&
			shared->slots[i].state != EV_SLOT_IDLE &&
			!shared->slots[i].abandoned)
			busy++;
	}
	SpinLockRelease(&shared->lock);
	return busy;
}

bool
ev_shmem_is_reserved(int slot)
{
	bool		reserved;

	SpinLockAcquire(&shared->lock);
	reserved = shared->slots[slot].state == EV_SLOT_RESERVED;
	SpinLockRelease(&shared->lock);
	return reserved;
}

void
ev_shmem_abandon(int slot)
{
	SpinLockAcquire(&shared->lock);
	shared->slots[slot].abandoned = true;
	SpinLockRelease(&shared->lock);
}

int
ev_shmem_live_workers(EvLiveWorker workers[EV_SLOTS])
{
	int			count = 0;
	int			i;

	SpinLockAcquire(&shared->lock);
	for (i = 0; i < EV_SLOTS; i++)
	{
		EvWorkerSlot *slot = &shared->slots[i];

		if (slot->state != EV_SLOT_RUNNING || slot->abandoned)
			continue;
		workers[count].slot = i;
		workers[count].heartbeat = pg_atomic_read_u64(&slot->heartbeat);
		workers[count].has_attempt = slot->has_attempt;
		workers[count].token = slot->token;
		count++;
	}
	SpinLockRelease(&shared->lock);
	return count;
}

int
ev_shmem_gone_workers(EvGoneWorker workers[EV_SLOTS])
{
	int			count = 0;
	int			i;

	SpinLockAcquire(&shared->lock);
	for (i = 0; i < EV_SLOTS; i++)
	{
		EvWorkerSlot *slot = &shared->slots[i];

		if (slot->state != EV_SLOT_GONE)
			continue;
		workers[count].slot = i;
		workers[count].has_attempt = slot->has_attempt;
		workers[count].clean = slot->clean;
		workers[count].token = slot->token;
		count++;
	}
	SpinLockRelease(&shared->lock);
	return count;
}

bool
ev_shmem_attach(int slot, int64 job_id)
{
	EvWorkerSlot *candidate = &shared->slots[slot];
	bool		mine;

	SpinLockAcquire(&shared->lock);
	mine = candidate->state == EV_SLOT_RESERVED &&
		candidate->job_id == job_id;
	if (mine)
	{
		candidate->state = EV_SLOT_RUNNING;
		candidate->pid = MyProcPid;
		candidate->latch = &MyProc->procLatch;
	}
	SpinLockRelease(&shared->lock);
	if (mine)
		my_slot = candidate;
	return mine;
}

/*
 * An abandoned worker that has woken up does not get another job: its slot no
 * longer counts, so it would be one more than are allowed.
 */
bool
ev_shmem_idle(bool wake_launcher)
{
	bool		idle;

	SpinLockAcquire(&shared->lock);
	idle = my_slot->state == EV_SLOT_RUNNING && !my_slot->abandoned;
	if (idle)
	{
		my_slot->state = EV_SLOT_IDLE;
		my_slot->job_id = 0;
		my_slot->has_attempt = false;
	}
	SpinLockRelease(&shared->lock);
	if (idle && wake_launcher)
		ev_shmem_wake_launcher();
	return idle;
}

int64
ev_shmem_next_job(void)
{
	int64		job_id;

	SpinLockAcquire(&shared->lock);
	job_id = my_slot->job_id;
	SpinLockRelease(&shared->lock);
	return job_id;
}

bool
ev_shmem_leave_idle(void)
{
	bool		left;

	SpinLockAcquire(&shared->lock);
	left = my_slot->state == EV_SLOT_IDLE;
	if (left)
	{
		my_slot->state = EV_SLOT_GONE;
		my_slot->pid = 0;
	}
	SpinLockRelease(&shared->lock);
	if (left)
		my_slot = NULL;
	return left;
}

/*
 * The pid goes away under the lock, so that nobody signals a process that
 * has taken over its number.
 */
void
ev_shmem_leave(bool clean)
{
	if (my_slot == NULL)
		return;
	SpinLockAcquire(&shared->lock);
	my_slot->state = EV_SLOT_GONE;
	my_slot->pid = 0;
	my_slot->clean = clean;
	SpinLockRelease(&shared->lock);
	my_slot = NULL;
	ev_shmem_wake_launcher();
}

void
ev_shmem_begin_attempt(int64 job_id, const pg_uuid_t *token,
					   const pg_uuid_t *export_id)
{
	if (my_slot == NULL)
		return;
	SpinLockAcquire(&shared->lock);
	my_slot->job_id = job_id;
	my_slot->token = *token;
	my_slot->export_id = *export_id;
	my_slot->started_at = ev_clock_now();
	my_slot->stop = false;
	my_slot->has_attempt = true;
	SpinLockRelease(&shared->lock);
}

void
ev_shmem_end_attempt(void)
{
	if (my_slot == NULL)
		return;
	SpinLockAcquire(&shared->lock);
	my_slot->has_attempt = false;
	SpinLockRelease(&shared->lock);
}

/*
 * The flag is read without the lock: it is a single byte that only ever goes
 * up during an attempt, and the next call sees what this one missed.
 */
bool
ev_shmem_heartbeat(int64 rows_total, int64 rows_done, int64 bytes_done)
{
	if (my_slot == NULL)
		return false;
	pg_atomic_write_u64(&my_slot->rows_total, (uint64) (rows_total + 1));
	pg_atomic_write_u64(&my_slot->rows_done, (uint64) rows_done);
	pg_atomic_write_u64(&my_slot->bytes_done, (uint64) bytes_done);
	pg_atomic_write_u64(&my_slot->heartbeat,
						pg_atomic_read_u64(&my_slot->heartbeat) + 1);
	return *(volatile bool *) &my_slot->stop;
}

bool
ev_shmem_progress(const pg_uuid_t *token, EvProgress *progress)
{
	bool		found = false;
	int			i;

	if (shared == NULL)
		return false;
	SpinLockAcquire(&shared->lock);
	for (i = 0; i < EV_SLOTS && !found; i++)
	{
		EvWorkerSlot *slot = &shared->slots[i];

		if (slot->state != EV_SLOT_RUNNING || !slot->has_attempt ||
			slot->abandoned ||
			memcmp(&slot->token, token, UUID_LEN) != 0)
			continue;
		progress->rows_total =
			(int64) pg_atomic_read_u64(&slot->rows_total) - 1;
		progress->rows_done = (int64) pg_atomic_read_u64(&slot->rows_done);
		progress->bytes_done = (int64) pg_atomic_read_u64(&slot->bytes_done);
		progress->started_at = slot->started_at;
		found = true;
	}
	SpinLockRelease(&shared->lock);
	return found;
}

/*
 * The flag is for the worker's next safe point, the signal for a statement
 * that takes long to come to one.
 */
void
ev_shmem_cancel(const pg_uuid_t *export_id)
{
	int			i;

	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->lock);
	for (i = 0; i < EV_SLOTS; i++)
	{
		EvWorkerSlot *slot = &shared->slots[i];

		if (slot->state != EV_SLOT_RUNNING || !slot->has_attempt ||
			memcmp(&slot->export_id, export_id, UUID_LEN) != 0)
			continue;
		slot->stop = true;
		kill(slot->pid, SIGINT);
	}
	SpinLockRelease(&shared->lock);
}
