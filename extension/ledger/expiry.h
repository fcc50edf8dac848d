/*-------------------------------------------------------------------------
 *
 * expiry.h
 *	  The end of an archive: its time is over, its bytes go.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_EXPIRY_H
#define EV_LEDGER_EXPIRY_H

#include "datatype/timestamp.h"
#include "utils/uuid.h"

/* Takes the selected archive out of an export that will not be READY. */
#define EV_NO_ARCHIVE_SQL \
	" archive_token = NULL, archive_bytes = NULL, archive_chunks = NULL," \
	" archive_sha256 = NULL, chunks_sha256 = NULL, records_bytes = NULL," \
	" records_sha256 = NULL"

/* How far a pass over all exports has come; DT_NOBEGIN before the first. */
typedef struct EvExpiryPlace
{
	TimestampTz due_at;
	pg_uuid_t	export_id;
} EvExpiryPlace;

/*
 * End the next export whose time is over: READY becomes EXPIRED, STAGED
 * becomes FAILED.  *place is moved there before anything can fail, so that a
 * pass goes on behind one that cannot be ended.  False if there is none whose
 * row can be locked without a wait.
 */
extern bool ev_expiry_end_next(EvExpiryPlace *place);

/* When the next such time comes; infinity if none. */
extern TimestampTz ev_expiry_next(void);

/*
 * The archive is not wanted any more, in this transaction's view: delete its
 * chunks, and plan that its object is deleted, if the store may have one.
 */
extern void ev_expiry_remove(const pg_uuid_t *export_id, int32 generation,
							 const pg_uuid_t *archive_token);

#endif							/* EV_LEDGER_EXPIRY_H */
