/*-------------------------------------------------------------------------
 *
 * delivery.h
 *	  The way of a finished archive into an object store, and out of it.
 *
 * The uploader is a program outside of the server.  It claims one outbox
 * event at a time, archive.upload or object.delete, under a lease of its own;
 * whatever it does afterwards names its token and joins the live attempt.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_DELIVERY_H
#define EV_LEDGER_DELIVERY_H

#include "datatype/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/uuid.h"

#include "ledger/export.h"

/* Uploaders listen here for new work. */
#define EV_DELIVERY_CHANNEL "pg_evidence_delivery"

/* What a look-up found in the store. */
typedef struct EvDelivered
{
	int64		bytes;
	const char *sha256;
	const char *version;		/* NULL in a bucket without versions */
	const char *lock_mode;		/* NULL without retention */
	TimestampTz locked_until;	/* 0 without retention */
	bool		legal_hold;
} EvDelivered;

typedef enum EvDeliveryVerdict
{
	EV_DELIVERY_DONE,
	EV_DELIVERY_QUARANTINED,	/* the store has other content: FAILED */
	EV_DELIVERY_LOST			/* the lease ended, or the export moved */
} EvDeliveryVerdict;

/* How a failed attempt goes on. */
typedef enum EvDeliveryFailure
{
	EV_DELIVERY_DEFERRAL,		/* no fault of the item: not counted */
	EV_DELIVERY_TRANSIENT,
	EV_DELIVERY_DEFINITE		/* DEAD at once */
} EvDeliveryFailure;

/*
 * Claim one due event for this uploader.  Puts one row, or none, into store:
 * the OUT columns of claim_delivery().
 */
extern void ev_delivery_claim(const char *uploader, const char *actor,
							  const char *bucket, const char *prefix,
							  Tuplestorestate *store);

/* Lengthen the lease.  False if it is lost. */
extern bool ev_delivery_renew(const pg_uuid_t *token);

/*
 * The archive that this attempt may read, which lengthens the lease if half
 * of it is over.  False if the lease is lost.
 */
extern bool ev_delivery_archive(const pg_uuid_t *token,
								pg_uuid_t *archive_token);

/* From now on the store may have the object.  False if the lease is lost. */
extern bool ev_delivery_sending(const pg_uuid_t *token,
								const char *multipart_id);

/* READY, if what the store has is the archive of the ledger. */
extern EvDeliveryVerdict ev_delivery_confirm(const pg_uuid_t *token,
											 const EvDelivered *found);

/* The object is gone.  False if the lease is lost. */
extern bool ev_delivery_removed(const pg_uuid_t *token, bool existed);

/*
 * Give the event back.  Returns its new state, NULL if the lease is lost.
 * retry_after is a lower limit in seconds; not_before is 0 without one.
 */
extern char *ev_delivery_fail(const pg_uuid_t *token,
							  EvDeliveryFailure failure, const char *code,
							  const char *message, int retry_after,
							  TimestampTz not_before);

/* Wake the uploaders at commit. */
extern void ev_delivery_announce(void);

/* One row: the OUT columns of delivery_status(). */
extern void ev_delivery_status(Tuplestorestate *store);

#endif							/* EV_LEDGER_DELIVERY_H */
