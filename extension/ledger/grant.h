/*-------------------------------------------------------------------------
 *
 * grant.h
 *	  One subject's permission to fetch one archive.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_GRANT_H
#define EV_LEDGER_GRANT_H

#include "utils/uuid.h"

#include "ledger/export.h"
#include "package/digest.h"

/* What a presented grant is, in the newest snapshot. */
typedef enum EvGrantAnswer
{
	EV_GRANT_OPEN,
	EV_GRANT_UNKNOWN,			/* no such grant, or another subject's */
	EV_GRANT_UNCOMMITTED,		/* written by this very transaction */
	EV_GRANT_EXPIRED,			/* the grant's time is over */
	EV_GRANT_REVOKED,			/* withdrawn */
	EV_GRANT_ARCHIVE_GONE,		/* the archive expired or was revoked */
	EV_GRANT_FROZEN				/* an open finding speaks against it */
} EvGrantAnswer;

typedef struct EvGrant
{
	int64		id;
	pg_uuid_t	export_id;
	pg_uuid_t	archive_token;
	int32		archive_chunks;
	bool		in_store;		/* the archive lies in an object store */
} EvGrant;

/*
 * Write a grant under the digest (EV_SHA256_BYTES) of its secret, with its
 * row of history;
 * returns its number.
 */
extern int64 ev_grant_create(const pg_uuid_t *export_id,
							 const EvExportStatus *status,
							 const unsigned char *secret_sha256,
							 const char *subject, const char *session_role,
							 const char *reason);

/*
 * Look a grant up in the newest snapshot and make sure that it, and hence
 * the audit row of its transaction, is flushed to disk.
 */
extern EvGrantAnswer ev_grant_check(const unsigned char *secret_sha256,
									const char *subject, EvGrant *grant);

/* A row of history: the object of this grant was opened in its store. */
extern void ev_grant_opened(const EvGrant *grant, const char *actor,
							const char *session_role);

#endif							/* EV_LEDGER_GRANT_H */
