/*-------------------------------------------------------------------------
 *
 * credentials.h
 *	  Where the keys to the object store come from.
 *
 * Asked anew before each request, since keys are rotated while the program
 * runs.  Whoever got a set of keys wipes it after use.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_CREDENTIALS_H
#define EV_UPLOADER_CREDENTIALS_H

#include "failure.h"

typedef struct EvCredentials
{
	char	   *access_key;
	char	   *secret_key;
	char	   *session_token;	/* NULL unless the keys are temporary */
} EvCredentials;

typedef struct EvCredentialsSource EvCredentialsSource;

/*
 * Decide where keys come from, and read them once to see that they are there.
 * A file that is named wins; else the variables AWS_ACCESS_KEY_ID and
 * AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN; else the file that
 * AWS_SHARED_CREDENTIALS_FILE names; else ~/.aws/credentials.  profile is a
 * section of the file, NULL for AWS_PROFILE or "default".
 *
 * *source is NULL on failure: EV_STATUS_FILE when the file cannot be read or
 * others can read it, EV_STATUS_USAGE when there are no keys.
 */
extern EvStatus ev_credentials_open(const char *file, const char *profile,
									EvCredentialsSource **source,
									EvFailure *failure);

/* The keys as they are now.  Wipe them with ev_credentials_wipe. */
extern EvStatus ev_credentials_get(EvCredentialsSource *source,
								   EvCredentials *credentials,
								   EvFailure *failure);

/* Overwrite and release; what is empty or wiped already is allowed. */
extern void ev_credentials_wipe(EvCredentials *credentials);

/* Where the keys come from, for a message: never a key. */
extern const char *ev_credentials_origin(const EvCredentialsSource *source);

/* NULL is allowed. */
extern void ev_credentials_close(EvCredentialsSource *source);

#endif							/* EV_UPLOADER_CREDENTIALS_H */
