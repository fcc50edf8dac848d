/*-------------------------------------------------------------------------
 *
 * archive_layout.h
 *	  Check the raw headers of a package archive.
 *
 * Private to this folder; ev_archive_check_layout is the public name.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_ARCHIVE_LAYOUT_H
#define EV_PACKAGE_ARCHIVE_LAYOUT_H

#include "archive.h"

/* False with the first fault in *error (EV_ERROR_FORMAT or _IO). */
extern bool ev_layout_check(const EvFile *in, int64_t size, EvError *error);

#endif							/* EV_PACKAGE_ARCHIVE_LAYOUT_H */
