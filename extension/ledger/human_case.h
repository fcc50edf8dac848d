/*-------------------------------------------------------------------------
 *
 * human_case.h
 *	  What a person has to decide, who, and until when.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_HUMAN_CASE_H
#define EV_LEDGER_HUMAN_CASE_H

#include "datatype/timestamp.h"
#include "utils/uuid.h"

/* Returns the number of the new case; export_id may be NULL. */
extern int64 ev_human_case_open(const char *task, const char *owner,
								TimestampTz due_at,
								const pg_uuid_t *export_id,
								const char *actor, const char *reason);

/*
 * It was looked at again and is due at another time (due_at), or it is closed
 * (due_at 0).  False if there is no such open case.
 */
extern bool ev_human_case_recheck(int64 case_id, TimestampTz due_at,
								  const char *actor, const char *reason);

#endif							/* EV_LEDGER_HUMAN_CASE_H */
