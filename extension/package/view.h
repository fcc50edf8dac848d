/*-------------------------------------------------------------------------
 *
 * view.h
 *	  Changed copies of a text, with a way back to the original.
 *
 * Private to this folder.  A secret may be split by invisible characters or
 * written with percent signs.  It is searched in a view, and what is found
 * there is mapped back to the bytes it came from.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_VIEW_H
#define EV_PACKAGE_VIEW_H

#include <stdint.h>

#include "buffer.h"

/* The original bytes that one byte of a view stands for. */
typedef struct EvOrigin
{
	uint32_t	start;
	uint32_t	end;
} EvOrigin;

/* origin is NULL for the original text itself.  Zero-filled is valid. */
typedef struct EvView
{
	const char *text;
	size_t		length;
	const EvOrigin *origin;
	EvBuffer	bytes;			/* memory behind text, if it is ours */
	EvBuffer	origins;		/* memory behind origin */
} EvView;

/* A text longer than this has no view; it is searched as it stands. */
#define EV_VIEW_LIMIT UINT32_MAX

/*
 * Take splitters out (see unicode.h), and with lines all control characters.
 * All return false when memory is exhausted.  out is valid until its next
 * use; from and out must differ.
 */
extern bool ev_view_strip(const EvView *from, bool lines, EvView *out);

/*
 * Decode %XX once and strip the result.  *changed tells whether there was
 * any.  Bytes that are no UTF-8 after decoding become question marks.
 */
extern bool ev_view_percent(const EvView *from, EvView *out, bool *changed);

/* Where a range of a view, end exclusive, lies in the original. */
extern void ev_view_locate(const EvView *view, size_t start, size_t end,
						   size_t *original_start, size_t *original_end);

extern void ev_view_free(EvView *view);

#endif							/* EV_PACKAGE_VIEW_H */
