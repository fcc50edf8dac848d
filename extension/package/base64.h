/*-------------------------------------------------------------------------
 *
 * base64.h
 *	  Recognise and decode runs of base64 that hold text.
 *
 * Private to this folder.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_BASE64_H
#define EV_PACKAGE_BASE64_H

#include <stdint.h>

#include "buffer.h"

/* A shorter run can hold no key word and value worth looking at. */
#define EV_BASE64_MIN 20

/* 0 to 63 for both the usual and the URL alphabet, else -1. */
extern const int8_t ev_base64_values[256];

/* Of either alphabet, padding not included?  In the header to be inlined. */
static inline bool
ev_base64_is(char c)
{
	return ev_base64_values[(unsigned char) c] >= 0;
}

/*
 * Decode a run.  *text tells whether it holds nothing but printable ASCII,
 * and only then *out is valid.  False when memory is exhausted.
 */
extern bool ev_base64_text(const char *run, size_t length, EvBuffer *out,
						   bool *text);

#endif							/* EV_PACKAGE_BASE64_H */
