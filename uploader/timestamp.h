/*-------------------------------------------------------------------------
 *
 * timestamp.h
 *	  Read the one text form that times have in a package.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_TIMESTAMP_H
#define EV_UPLOADER_TIMESTAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The inverse of ev_timestamp_text (package/csv.h).  False if the text is not
 * exactly what that function writes for some time.
 */
extern bool ev_timestamp_parse(const char *text, size_t length,
							   int64_t *microseconds);

#endif							/* EV_UPLOADER_TIMESTAMP_H */
