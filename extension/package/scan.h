/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  Which kinds of bytes does a text hold?
 *
 * Private to this folder.  Most values are short ASCII with nothing to do;
 * one fast scan decides whether any of the dear steps is needed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_SCAN_H
#define EV_PACKAGE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#define EV_HAS_CONTROL	0x01	/* C0 or DEL */
#define EV_HAS_HIGH		0x02	/* not ASCII */
#define EV_HAS_SPECIAL	0x04	/* comma or double quote */
#define EV_HAS_PERCENT	0x08

extern unsigned ev_scan_bytes(const char *text, size_t length);

/* Length of the run of printable ASCII that text starts with. */
extern size_t ev_scan_plain(const char *text, size_t length);

/*
 * Copy ASCII text to *to, which is advanced, without TAB, LF, VT, FF and CR
 * (which set *lines), up to the first byte that is another control or not
 * ASCII.  Returns how many bytes were used.  *to must have room for them all.
 */
extern size_t ev_scan_lines(const char *text, size_t length, char **to,
							bool *lines);

/* Copy ASCII text with a blank in the place of each control character. */
extern void ev_blank_controls(const char *text, size_t length, char *out);

#endif							/* EV_PACKAGE_SCAN_H */
