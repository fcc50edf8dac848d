/*-------------------------------------------------------------------------
 *
 * ledger_delivery.h
 *	  What an uploader says to the ledger: one function per SQL function.
 *
 * Each call is a short transaction of its own, repeated where the server
 * refused it for the moment or the connection was lost and a second run does
 * no harm.  None is open while anything else is waited for.
 *
 * A piece of work is owned by its token for as long as the lease lasts.  When
 * it is somebody else's by now, or its export was cancelled, a call fails with
 * PE004 (ev_delivery_lost): then the work ends without another word.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_LEDGER_DELIVERY_H
#define EV_UPLOADER_LEDGER_DELIVERY_H

#include "ledger.h"

#define EV_DELIVERY_CHUNK 65536 /* bytes of each chunk but the last */
#define EV_DELIVERY_MESSAGE 500 /* bytes of a message that are kept */

typedef enum EvDeliveryKind
{
	EV_DELIVERY_UPLOAD = 0,
	EV_DELIVERY_REMOVAL
} EvDeliveryKind;

/* A claimed piece of work.  Texts are empty where the ledger says NULL. */
typedef struct EvDelivery
{
	EvDeliveryKind kind;
	char		token[EV_ID_TEXT];
	char		export_id[EV_ID_TEXT];
	int			number;			/* of this attempt */
	char		key[1025];
	char		version[128];
	int64_t		bytes;
	int64_t		chunks;
	char		sha256[65];
	bool		look_up;		/* an earlier attempt may have stored it */
	char		multipart_id[1025];
	int			lease_seconds;
} EvDelivery;

/* What a look at the store found. */
typedef struct EvDeliveryProof
{
	int64_t		bytes;
	const char *sha256;
	const char *version;		/* NULL or empty: none */
	const char *lock_mode;		/* NULL: none */
	int64_t		retain_until;	/* seconds since 1970, -1: none */
	bool		legal_hold;
} EvDeliveryProof;

typedef enum EvDeliveryVerdict
{
	EV_DELIVERY_READY = 0,
	EV_DELIVERY_QUARANTINED
} EvDeliveryVerdict;

/* How a piece of work failed. */
typedef enum EvDeliveryFault
{
	EV_DELIVERY_DEFERRAL = 0,	/* nobody's fault: not counted */
	EV_DELIVERY_TRANSIENT,		/* counted; tried again later */
	EV_DELIVERY_DEFINITE		/* a repetition cannot help */
} EvDeliveryFault;

/* What becomes of it. */
typedef enum EvDeliveryFate
{
	EV_DELIVERY_AGAIN = 0,		/* it is tried again when it is due */
	EV_DELIVERY_GIVEN_UP,		/* not unless an operator wants it */
	EV_DELIVERY_UNWANTED		/* nobody wants it any more */
} EvDeliveryFate;

typedef struct EvDeliveryReport
{
	EvDeliveryFault fault;
	const char *code;
	const char *message;
	int			retry_after;	/* seconds, -1: none */
	int64_t		locked_until;	/* seconds since 1970, -1: none */
} EvDeliveryReport;

/* How delivery stands as a whole. */
typedef struct EvDeliveryStatus
{
	char		delivery[32];	/* the server's setting */
	int			download_window;	/* seconds, like the next two */
	int			staged_deadline;
	int			lease;
	int64_t		uploads_waiting;
	int64_t		uploads_dead;
	int64_t		removals_waiting;
	int64_t		removals_dead;
	double		oldest_waiting; /* age in seconds, -1: none waits */
	double		next_due;		/* seconds from now, -1: nothing waits */
} EvDeliveryStatus;

/* An object that the ledger knows of.  Texts belong to the list. */
typedef struct EvKnownObject
{
	const char *key;
	const char *version;		/* "" if there is none, like the next ones */
	const char *export_id;
	const char *state;
	bool		needed;			/* it must exist and be equal */
	bool		busy;			/* an upload or removal is on its way */
	int64_t		bytes;
	const char *sha256;
	const char *multipart_id;
} EvKnownObject;

typedef struct EvKnownList
{
	EvKnownObject *objects;		/* in order of their keys, bytewise */
	int			count;
	void	   *owner;			/* holds the texts */
} EvKnownList;

/* Where the archive of a grant lies; found is false: in the database. */
typedef struct EvLocation
{
	bool		found;
	char		bucket[256];
	char		key[1025];
	char		version[128];
	int64_t		bytes;
	char		sha256[65];
} EvLocation;

/* Is the lease lost, so that this piece of work is not ours any more? */
extern bool ev_delivery_lost(const EvFailure *failure);

/* Have the server tell when there is new work. */
extern EvStatus ev_delivery_listen(EvLedger *ledger, EvFailure *failure);

/*
 * Wait for new work, a signal, or the end of the connection, for at most
 * seconds.
 */
extern void ev_delivery_await(EvLedger *ledger, double seconds);

/* *found is false when nothing is due. */
extern EvStatus ev_delivery_claim(EvLedger *ledger, const char *uploader,
								  const char *bucket, const char *prefix,
								  EvDelivery *item, bool *found,
								  EvFailure *failure);

/* One try, without reconnecting: it is called from within a transfer. */
extern EvStatus ev_delivery_renew(EvLedger *ledger, const char *token,
								  bool *held, EvFailure *failure);

/*
 * Copy count chunks from seq on, counted from 0, into buffer, which has room
 * for them.  All but the last one of the archive are full.
 */
extern EvStatus ev_delivery_chunks(EvLedger *ledger, const char *token,
								   int64_t seq, int count,
								   unsigned char *buffer, size_t *length,
								   EvFailure *failure);

/* From now on, bytes may be on their way.  multipart_id may be NULL. */
extern EvStatus ev_delivery_sending(EvLedger *ledger, const char *token,
									const char *multipart_id,
									EvFailure *failure);
extern EvStatus ev_delivery_confirm(EvLedger *ledger, const char *token,
									const EvDeliveryProof *proof,
									EvDeliveryVerdict *verdict,
									EvFailure *failure);
extern EvStatus ev_delivery_removed(EvLedger *ledger, const char *token,
									bool existed, EvFailure *failure);

extern EvStatus ev_delivery_fail(EvLedger *ledger, const char *token,
								 const EvDeliveryReport *report,
								 EvDeliveryFate *fate, EvFailure *failure);
extern EvStatus ev_delivery_status(EvLedger *ledger, EvDeliveryStatus *status,
								   EvFailure *failure);

/* Release with ev_known_list_free, in either case. */
extern EvStatus ev_delivery_known(EvLedger *ledger, const char *bucket,
								  EvKnownList *list, EvFailure *failure);
extern void ev_known_list_free(EvKnownList *list);

/* The server's time as text, for the next function. */
extern EvStatus ev_delivery_now(EvLedger *ledger, char *text, size_t size,
								EvFailure *failure);

/* findings is a JSON array; *open becomes the number of findings now open. */
extern EvStatus ev_delivery_reconciled(EvLedger *ledger, const char *bucket,
									   const char *prefix, const char *started,
									   int64_t objects, const char *findings,
									   int64_t *open, EvFailure *failure);

/* For the subject of a grant. */
extern EvStatus ev_delivery_locate(EvLedger *ledger, const char *grant,
								   EvLocation *location, EvFailure *failure);
extern EvStatus ev_delivery_download(EvLedger *ledger, const char *grant,
									 int64_t bytes, const char *sha256,
									 EvFailure *failure);

#endif							/* EV_UPLOADER_LEDGER_DELIVERY_H */
