/*-------------------------------------------------------------------------
 *
 * failure.h
 *	  The one way in which the functions of this program report a failure.
 *
 * A function that can fail returns an EvStatus and, unless that is
 * EV_STATUS_OK, fills the caller's EvFailure.  Nothing below main.c prints an
 * error or ends the program, so a caller can still retry, or remove its
 * temporary file, before anybody reads the text.
 *
 * The value of a status is the exit code of the program.  Scripts rely on
 * these numbers: a new one may be added, none may change its meaning.
 *
 * Texts never hold cell content, a download grant or a password.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_FAILURE_H
#define EV_UPLOADER_FAILURE_H

#include "package/error.h"

typedef enum EvStatus
{
	EV_STATUS_OK = 0,
	EV_STATUS_USAGE = 1,		/* the command line is wrong */
	EV_STATUS_CONNECTION = 2,	/* no connection, or it was lost */
	EV_STATUS_DENIED = 3,		/* 42501: no right, or no such export */
	EV_STATUS_ARGUMENT = 4,		/* class 22: the server refuses a value */
	EV_STATUS_LIMIT = 5,		/* 53400, PE002: limit, quota, too many rows */
	EV_STATUS_STATE = 6,		/* 55000, PE005: wrong state, not ready yet */
	EV_STATUS_GONE = 7,			/* PE003: expired or revoked */
	EV_STATUS_CONFLICT = 8,		/* PE001: the key belongs to another request */
	EV_STATUS_MISMATCH = 9,		/* PE006: the evidence is not intact */
	EV_STATUS_FAILED = 10,		/* the export failed */
	EV_STATUS_CANCELLED = 11,	/* the export was cancelled */
	EV_STATUS_TIMEOUT = 12,		/* --timeout passed while waiting */
	EV_STATUS_FILE = 13,		/* a local file could not be read or written */
	EV_STATUS_RETRIES = 14,		/* 40001 and its like, once too often */
	EV_STATUS_VERSION = 15,		/* extension missing or of another version */
	EV_STATUS_PAUSED = 16,		/* PE007: an operator has paused it */
	EV_STATUS_STORE = 17,		/* the object store cannot be used */
	EV_STATUS_OPEN = 18,		/* some of the work was not done, or something
								 * that was looked for has been found */
	EV_STATUS_INTERNAL = 70		/* anything else */
} EvStatus;

typedef struct EvFailure
{
	EvStatus	status;
	char		sqlstate[6];	/* empty unless the server said one */
	char		doing[160];		/* "could not ..." */
	char		text[640];		/* the reason */
	char		detail[640];	/* facts; may be empty */
	char		hint[640];		/* what to do next; may be empty */
	char		export_id[37];	/* the export it is about; may be empty */
} EvFailure;

/* Forget an earlier failure. */
extern void ev_failure_clear(EvFailure *failure);

/*
 * Fill doing and text, empty the rest but export_id, and return status, so
 * that a caller can write "return ev_fail(...)".  doing may be NULL.
 */
extern EvStatus ev_fail(EvFailure *failure, EvStatus status,
						const char *doing, const char *format,...)
			EV_PRINTF(4, 5);

/* The same for a failed system call: errno's text is the reason. */
extern EvStatus ev_fail_errno(EvFailure *failure, EvStatus status,
							  const char *format,...) EV_PRINTF(3, 4);

/* The same for a failure that the package library has reported. */
extern EvStatus ev_fail_package(EvFailure *failure, const char *doing,
								const EvError *error);

/* Set the hint; returns the status of the failure. */
extern EvStatus ev_fail_hint(EvFailure *failure, const char *format,...)
			EV_PRINTF(2, 3);

/* Note which export a failure is about. */
extern void ev_failure_export(EvFailure *failure, const char *export_id);

/* The word for a status in --json output, e.g. "limit". */
extern const char *ev_status_name(EvStatus status);

#endif							/* EV_UPLOADER_FAILURE_H */
