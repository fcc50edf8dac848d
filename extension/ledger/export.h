/*-------------------------------------------------------------------------
 *
 * export.h
 *	  The domain fact: what was asked for, and how it stands.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_EXPORT_H
#define EV_LEDGER_EXPORT_H

#include "access/transam.h"
#include "datatype/timestamp.h"
#include "utils/jsonb.h"
#include "utils/uuid.h"

/* The immutable parameters of an export; strings are never NULL. */
typedef struct EvContract
{
	pg_uuid_t	export_id;
	char	   *source;
	char	   *table_name;
	TimestampTz start_at;
	TimestampTz end_at;
	Jsonb	   *filters;
	char	  **columns;
	int			ncolumns;
	int32		column_version;
	char	   *purpose;
	int32		policy_version;
	bool		redaction;
	int32		ruleset_version;
	char	   *ruleset_sha256;
	char	   *request_digest;
	char	   *consistency;
	TimestampTz snapshot_at;
	Datum		snapshot;		/* pg_snapshot */
	char	   *snapshot_text;
	FullTransactionId request_xid;
	char	   *system_identifier;
	pg_uuid_t	incarnation;
	char	   *requested_by;
	char	   *session_role;
	TimestampTz requested_at;
} EvContract;

/* Who makes an export anew from the contract of an earlier one, and why. */
typedef struct EvOrigin
{
	pg_uuid_t	from;
	const char *actor;
	const char *session_role;
	const char *reason;
} EvOrigin;

/* How an export stands, for whoever must decide about it. */
typedef struct EvExportStatus
{
	char	   *state;
	int64		version;
	int32		generation;
	char	   *requested_by;
	int64		record_count;
	pg_uuid_t	archive_token;	/* these seven are set from STAGED on */
	int64		archive_bytes;
	int32		archive_chunks;
	char	   *archive_sha256;
	char	   *chunks_sha256;
	int64		records_bytes;
	char	   *records_sha256;
	TimestampTz expires_at;		/* from READY on */
	char	   *object_bucket;	/* NULL if the archive lies in the database */
	char	   *object_key;
	char	   *object_version; /* NULL without versions */
} EvExportStatus;

/* A source that can be exported. */
typedef struct EvSource
{
	char	   *table_name;
	char	  **columns;
	int			ncolumns;
	int32		column_version;
	char	   *consistency;
} EvSource;

/* The text of an export's id (or of any uuid). */
extern char *ev_export_id_text(const pg_uuid_t *id);

/* False if there is no such source. */
extern bool ev_source_load(const char *name, EvSource *source);

/* Is this column of the source's table NOT NULL? */
extern bool ev_source_column_required(const EvSource *source,
									  const char *column);

/*
 * Pin the newest snapshot there is, taken now, into the contract, with its
 * time, the requesting transaction's id and the cluster's.
 */
extern void ev_export_pin_snapshot(EvContract *contract);

/*
 * Find the export of this requester and key.  Returns false if there is none.
 */
extern bool ev_export_find_key(const char *requested_by, const char *key,
							   pg_uuid_t *id, char **request_digest);

/* How many unfinished exports the requester has, in the newest snapshot. */
extern int64 ev_export_count_active(const char *requested_by);

/*
 * Write export, job, outbox event and the first history row, in the caller's
 * transaction; sets contract->export_id.  origin is NULL for a request.
 */
extern void ev_export_insert(EvContract *contract, const char *key,
							 const EvOrigin *origin);

/*
 * Is there a recreation of this export that is unfinished or can be
 * downloaded?
 */
extern bool ev_export_find_recreation(const pg_uuid_t *id,
									  pg_uuid_t *recreation, char **state);

/* False if there is no such export. */
extern bool ev_export_load_contract(const pg_uuid_t *id, EvContract *contract);

/*
 * Read in the newest snapshot, and lock the row first if so asked (then in
 * the state after the wait).  False if there is no such export.
 */
extern bool ev_export_load_status(const pg_uuid_t *id, bool lock,
								  EvExportStatus *status);

/*
 * Cancel from state status->state.  False if the export moved meanwhile: read
 * its status again.
 */
extern bool ev_export_cancel(const pg_uuid_t *id,
							 const EvExportStatus *status,
							 const char *actor, const char *session_role,
							 const char *reason);

/* READY to REVOKED, with all its grants; false if it is not READY any more. */
extern bool ev_export_revoke(const pg_uuid_t *id,
							 const EvExportStatus *status,
							 const char *actor, const char *session_role,
							 const char *reason);

/*
 * Do the three facts of this export, and its upload event if it has one, stand
 * together as ledger/states allows?  An illegal combination is an error
 * (PE006), so the transaction that made it cannot commit.
 */
extern void ev_export_check_combination(const pg_uuid_t *id);

#endif							/* EV_LEDGER_EXPORT_H */
