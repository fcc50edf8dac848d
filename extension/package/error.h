/*-------------------------------------------------------------------------
 *
 * error.h
 *	  How the package code reports a failure to whoever called it.
 *
 * The package code runs inside a PostgreSQL backend, inside the client
 * program and inside unit tests, so it can neither ereport nor exit.  Every
 * function that can fail returns false (or NULL) and fills the caller's
 * EvError; the caller turns it into its own kind of error.
 *
 * The text never holds cell content, keys or other secrets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_ERROR_H
#define EV_PACKAGE_ERROR_H

/*
 * Counts of bytes and rows have 64 bits throughout, as size_t and as Datum.
 * Server, program and tests all include this file, so none of them compiles
 * where that is not so.
 */
#if __SIZEOF_POINTER__ < 8
#error pg_evidence is not supported on 32-bit platforms
#endif

#include <stdbool.h>

#if defined(__GNUC__)
#define EV_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define EV_PRINTF(f, a)
#endif

typedef enum EvErrorKind
{
	EV_ERROR_NONE = 0,
	EV_ERROR_MEMORY,			/* malloc failed */
	EV_ERROR_ARGUMENT,			/* the caller's input is wrong */
	EV_ERROR_LIBRARY,			/* libzip, OpenSSL, PCRE2 or ISA-L refused */
	EV_ERROR_IO,				/* a callback or file operation failed */
	EV_ERROR_FORMAT				/* an archive or manifest is not what it must
								 * be */
} EvErrorKind;

typedef struct EvError
{
	EvErrorKind kind;
	char		text[256];		/* one lower-case sentence, no full stop */
} EvError;

/*
 * Fill *error (ignored if NULL) and return false, so that a caller can write
 * "return ev_error_set(...)".
 */
extern bool ev_error_set(EvError *error, EvErrorKind kind,
						 const char *format,...) EV_PRINTF(3, 4);

#endif							/* EV_PACKAGE_ERROR_H */
