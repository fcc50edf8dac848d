/*-------------------------------------------------------------------------
 *
 * lane.c
 *	  What the single workers of the launcher say about themselves.
 *
 * The spinlock guards everything.  The counters begin at 0 with each start of
 * the server, as counters of a monitoring system may.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "storage/spin.h"

#include "base/clock.h"
#include "process/lane.h"

typedef struct SharedLanes
{
	slock_t		lock;
	EvLaneStatus lanes[EV_LANES];
} SharedLanes;

static SharedLanes *shared = NULL;

static void leave(int code, Datum lane);

Size
ev_lane_size(void)
{
	return MAXALIGN(sizeof(SharedLanes));
}

/* Called with AddinShmemInitLock held, when shared memory is set up. */
void
ev_lane_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pg_evidence lanes", sizeof(SharedLanes), &found);
	if (found)
		return;
	memset(shared, 0, sizeof(SharedLanes));
	SpinLockInit(&shared->lock);
}

bool
ev_lane_enter(EvLane lane)
{
	bool		entered;

	SpinLockAcquire(&shared->lock);
	entered = shared->lanes[lane].pid == 0;
	if (entered)
	{
		shared->lanes[lane].pid = MyProcPid;
		shared->lanes[lane].state = EV_LANE_WORKS;
	}
	SpinLockRelease(&shared->lock);
	if (entered)
		before_shmem_exit(leave, Int32GetDatum(lane));
	return entered;
}

static void
leave(int code, Datum lane)
{
	EvLaneStatus *status = &shared->lanes[DatumGetInt32(lane)];

	SpinLockAcquire(&shared->lock);
	status->pid = 0;
	status->state = EV_LANE_IDLE;
	status->reason[0] = '\0';
	SpinLockRelease(&shared->lock);
}

bool
ev_lane_taken(EvLane lane)
{
	EvLaneStatus status;

	return ev_lane_read(lane, &status) && status.pid != 0;
}

void
ev_lane_set_state(EvLane lane, EvLaneState state, const char *reason)
{
	EvLaneStatus *status;
	int			length = 0;

	if (shared == NULL)
		return;
	if (reason != NULL)
		length = pg_mbcliplen(reason, strlen(reason), EV_LANE_REASON - 1);
	status = &shared->lanes[lane];
	SpinLockAcquire(&shared->lock);
	status->state = state;
	if (length > 0)
		memcpy(status->reason, reason, length);
	status->reason[length] = '\0';
	SpinLockRelease(&shared->lock);
}

void
ev_lane_count(EvLane lane, int64 done, int64 put_off, int64 stuck)
{
	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->lock);
	shared->lanes[lane].done += done;
	shared->lanes[lane].put_off += put_off;
	shared->lanes[lane].stuck += stuck;
	SpinLockRelease(&shared->lock);
}

void
ev_lane_end_pass(EvLane lane, bool failed)
{
	TimestampTz now = ev_clock_now();

	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->lock);
	shared->lanes[lane].last_pass_at = now;
	shared->lanes[lane].passes++;
	if (failed)
		shared->lanes[lane].failed++;
	SpinLockRelease(&shared->lock);
}

bool
ev_lane_read(EvLane lane, EvLaneStatus *status)
{
	if (shared == NULL)
		return false;
	SpinLockAcquire(&shared->lock);
	*status = shared->lanes[lane];
	SpinLockRelease(&shared->lock);
	return true;
}
