/*-------------------------------------------------------------------------
 *
 * unicode.h
 *	  Walk UTF-8 and tell the classes of characters that cells care about.
 *
 * Private to this folder.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_UNICODE_H
#define EV_PACKAGE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Length of the valid UTF-8 sequence at text, at most limit bytes, and its
 * code point; 0 if there is none (overlong, surrogate, cut off, above
 * U+10FFFF).  limit must be above 0.
 */
extern int	ev_utf8_decode(const char *text, size_t limit, uint32_t *code);

/* Is all of text valid UTF-8? */
extern bool ev_utf8_valid(const char *text, size_t length);

/* C0, DEL, C1 and the two Unicode line ends: each becomes a blank. */
extern bool ev_is_control(uint32_t code);

/* Reorders or smuggles text unseen: shown as <U+XXXX>. */
extern bool ev_is_bidi(uint32_t code);

/* Not seen by the eye, or attached to what stands in front of it. */
extern bool ev_is_hidden(uint32_t code);

/*
 * Taken out before secrets are searched: format characters, variation
 * selectors and controls other than TAB, LF, VT, FF, CR and line ends.
 */
extern bool ev_is_splitter(uint32_t code);

/* Length of the terminal sequence at an ESC, or 1 if there is none. */
extern int	ev_escape_length(const char *text, size_t limit);

/* = + - @ in all forms that some reader folds to ASCII. */
extern bool ev_is_trigger(uint32_t code);

#endif							/* EV_PACKAGE_UNICODE_H */
