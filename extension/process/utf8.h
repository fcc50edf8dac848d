/*-------------------------------------------------------------------------
 *
 * utf8.h
 *	  Carry a text of the database to the package code, which wants UTF-8.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_UTF8_H
#define EV_PROCESS_UTF8_H

/*
 * The text in UTF-8: itself, or a copy in this memory context.  Bytes without
 * a meaning stay bytes that are no UTF-8; in an SQL_ASCII database nothing is
 * changed at all.
 */
extern const char *ev_utf8_from_database(const char *bytes, size_t length,
										 size_t *converted_length);

#endif							/* EV_PROCESS_UTF8_H */
