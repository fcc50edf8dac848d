/*-------------------------------------------------------------------------
 *
 * lane.h
 *	  What the single workers of the launcher say about themselves.
 *
 * For people who look at queue_health: nothing is decided by it, but that a
 * lane has one worker.  Without shared_preload_libraries there is no shared
 * memory and no worker; then ev_lane_read() is false and the others do
 * nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_LANE_H
#define EV_PROCESS_LANE_H

#include "datatype/timestamp.h"

typedef enum EvLane
{
	EV_LANE_SHIPPER
} EvLane;

#define EV_LANES 1

typedef enum EvLaneState
{
	EV_LANE_IDLE,				/* its worker is not there */
	EV_LANE_WORKS,
	EV_LANE_DISABLED,			/* a setting is in the way */
	EV_LANE_BROKEN				/* something is out of order */
} EvLaneState;

#define EV_LANE_REASON 512

typedef struct EvLaneStatus
{
	EvLaneState state;
	pid_t		pid;			/* 0: no worker */
	char		reason[EV_LANE_REASON]; /* empty unless DISABLED or BROKEN */
	TimestampTz last_pass_at;	/* 0: none since the server was started */
	int64		passes;			/* since then, whoever made them */
	int64		done;			/* rows that they brought to an end */
	int64		put_off;		/* rows that they put off */
	int64		stuck;			/* rows that they could not even put off */
	int64		failed;			/* passes that ended in an error */
} EvLaneStatus;

extern Size ev_lane_size(void);
extern void ev_lane_init(void);

/* Worker: take the lane until exit; false if another process has it. */
extern bool ev_lane_enter(EvLane lane);

/* Launcher: has the lane a worker? */
extern bool ev_lane_taken(EvLane lane);

/* Worker: how it stands; reason NULL for none. */
extern void ev_lane_set_state(EvLane lane, EvLaneState state,
							  const char *reason);

/* Whoever made a pass, or a part of one: add what it did. */
extern void ev_lane_count(EvLane lane, int64 done, int64 put_off,
						  int64 stuck);
extern void ev_lane_end_pass(EvLane lane, bool failed);

/* Anybody.  False without shared memory. */
extern bool ev_lane_read(EvLane lane, EvLaneStatus *status);

#endif							/* EV_PROCESS_LANE_H */
