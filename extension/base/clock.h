/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  The one clock by which anything is decided.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_BASE_CLOCK_H
#define EV_BASE_CLOCK_H

#include "datatype/timestamp.h"

/*
 * The database server's time now (not the transaction's), moved by
 * pg_evidence.clock_offset when pg_evidence.developer_mode is on.
 */
extern TimestampTz ev_clock_now(void);

/* Is the clock moved?  Then every certificate and a finding say so. */
extern bool ev_clock_is_moved(void);

#endif							/* EV_BASE_CLOCK_H */
