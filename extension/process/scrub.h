/*-------------------------------------------------------------------------
 *
 * scrub.h
 *	  Take secrets out of a text that is shown, stored or logged.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_SCRUB_H
#define EV_PROCESS_SCRUB_H

/*
 * A copy of the text with known shapes of secrets replaced, by the library's
 * own rules, in the database's encoding.  NULL for NULL.
 */
extern char *ev_scrub(const char *text);

#endif							/* EV_PROCESS_SCRUB_H */
