/*-------------------------------------------------------------------------
 *
 * breaker.h
 *	  Pause when the object store as a whole is in trouble.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_BREAKER_H
#define EV_UPLOADER_BREAKER_H

#include <stdbool.h>

/* Zero-filled is a valid one: closed, and without any trouble so far. */
typedef struct EvBreaker
{
	bool		open;			/* nothing is sent until then but a probe */
	double		until;			/* by the clock of retry.h */
	int			trips;			/* in a row; they make the pause grow */
	int			failures;		/* of single pieces of work in a row */
} EvBreaker;

/* The store is in trouble; retry_after is what it asks for, or -1. */
extern void ev_breaker_trip(EvBreaker *breaker, int retry_after);

/* One piece of work failed for now: too many in a row are a trip. */
extern void ev_breaker_count(EvBreaker *breaker, int retry_after);

/* The store answers, but has not done any work yet. */
extern void ev_breaker_half_open(EvBreaker *breaker);

/* It has: all is forgotten. */
extern void ev_breaker_close(EvBreaker *breaker);

#endif							/* EV_UPLOADER_BREAKER_H */
