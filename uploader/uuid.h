/*-------------------------------------------------------------------------
 *
 * uuid.h
 *	  The text form of an export id.
 *
 * An export id becomes part of a file name, so only the one form that the
 * server prints is accepted: 32 lower- or upper-case hex digits in groups of
 * 8-4-4-4-12.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_UUID_H
#define EV_UPLOADER_UUID_H

#include <stdbool.h>

extern bool ev_uuid_is_text(const char *text);

#endif							/* EV_UPLOADER_UUID_H */
