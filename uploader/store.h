/*-------------------------------------------------------------------------
 *
 * store.h
 *	  Open the object store that the options name.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_STORE_H
#define EV_UPLOADER_STORE_H

#include "options.h"

/* Zero-filled is a valid closed one. */
typedef struct EvStore
{
	EvS3	   *s3;
	EvCredentialsSource *credentials;
} EvStore;

/*
 * Open bucket of the store that the options name; sends nothing.  tick may be
 * NULL (s3.h).  Close it in either case.
 */
extern EvStatus ev_store_open(const EvStoreOptions *options,
							  const char *bucket, EvS3TickFunction tick,
							  void *tick_arg, EvStore *store,
							  EvFailure *failure);
extern void ev_store_close(EvStore *store);

#endif							/* EV_UPLOADER_STORE_H */
