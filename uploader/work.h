/*-------------------------------------------------------------------------
 *
 * work.h
 *	  One piece of work, and how it can end; what upload.c and removal.c
 *	  have in common.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_WORK_H
#define EV_UPLOADER_WORK_H

#include "lease.h"
#include "s3.h"

/* How uploads are made. */
typedef struct EvUploadRules
{
	int64_t		part_size;
	int64_t		multipart_threshold;	/* from this size on in parts */
	EvS3LockMode lock_mode;
	int			lock_days;
	bool		legal_hold;
} EvUploadRules;

typedef enum EvWorkEnd
{
	EV_WORK_DONE = 0,			/* and the ledger knows */
	EV_WORK_QUARANTINED,		/* other bytes lie in the store */
	EV_WORK_DEFERRED,			/* given back; not counted */
	EV_WORK_FAILED,				/* counted; it will be tried again */
	EV_WORK_DEAD,				/* it will not be tried again by itself */
	EV_WORK_LOST,				/* it is not ours any more */
	EV_WORK_UNTOLD				/* the ledger could not be told: the lease
								 * runs out, and somebody goes on */
} EvWorkEnd;

typedef struct EvWork
{
	EvLedger   *ledger;
	EvS3	   *s3;
	const EvUploadRules *rules;
	EvDelivery	item;
	EvLease		lease;

	/* What came of it. */
	EvWorkEnd	end;
	bool		store_fault;	/* the store as a whole is the reason */
	int			retry_after;	/* seconds the store asks for, or -1 */
	bool		existed;		/* what was removed had been there */
	bool		looked_up;		/* it had been stored by an earlier attempt */
	EvFailure	failure;		/* the reason, unless it is done or lost */
} EvWork;

/*
 * Every function below returns true when the work goes on.  Otherwise it has
 * ended: the ledger has been told if it can be, and the end is set.
 */

/* Is it still ours, and are we not asked to stop? */
extern bool ev_work_step(EvWork *work, const char *name);

/* Tell the ledger how it failed, in words of ours. */
extern bool ev_work_fail(EvWork *work, EvDeliveryFault fault,
						 const char *code, const char *format,...)
			EV_PRINTF(4, 5);

/* The same for what the store answered. */
extern bool ev_work_store(EvWork *work, const char *doing,
						  const EvS3Result *result);

/* The same for a call to the ledger that failed with work->failure. */
extern bool ev_work_ledger(EvWork *work);

/*
 * Look for the object.  found->exists tells; other answers than "there" and
 * "not there" end the work.
 */
extern bool ev_work_look(EvWork *work, const char *version, EvS3Object *found);

#endif							/* EV_UPLOADER_WORK_H */
