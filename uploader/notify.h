/*-------------------------------------------------------------------------
 *
 * notify.h
 *	  Tell the service manager how the service is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_NOTIFY_H
#define EV_UPLOADER_NOTIFY_H

#include "package/error.h"

/*
 * Send a message in the form of sd_notify(3), e.g. "READY=1", if the service
 * manager has said where to (NOTIFY_SOCKET); otherwise nothing happens.
 */
extern void ev_notify(const char *format,...) EV_PRINTF(1, 2);

#endif							/* EV_UPLOADER_NOTIFY_H */
