/*-------------------------------------------------------------------------
 *
 * removal.h
 *	  Remove one object from the store and have that confirmed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_REMOVAL_H
#define EV_UPLOADER_REMOVAL_H

#include "work.h"

/* Do the work, from the claim to its end. */
extern void ev_removal(EvWork *work);

#endif							/* EV_UPLOADER_REMOVAL_H */
