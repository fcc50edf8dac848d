/*-------------------------------------------------------------------------
 *
 * s3.h
 *	  The program's view of an object store that speaks Amazon's S3.
 *
 * One EvS3 is one bucket, seen over one connection that is kept and used
 * again.  It belongs to one thread and does one request at a time.  Every
 * function makes the request once: whether and when to try again is the
 * caller's decision, for which the EvS3Result has what it takes.  Each
 * request is signed anew with the time and the keys of that moment.
 *
 * No function follows a redirect, uses a proxy, or reads a .netrc.  No text
 * holds a key, a token, a signature or the query of an address.
 *
 * Times are seconds since 1970 in UTC, EV_S3_NEVER where none is known.
 * SHA-256 digests are 64 lower-case hex digits.  Keys of objects are given as
 * they are, 1 to 1024 bytes; encoding them is done here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_S3_H
#define EV_UPLOADER_S3_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "credentials.h"
#include "failure.h"

#define EV_S3_NEVER INT64_C(-1)
#define EV_S3_KEY_LIMIT 1024	/* bytes of an object's key */
#define EV_S3_SHA256_TEXT 65	/* these four with the terminating zero */
#define EV_S3_ETAG_TEXT 136
#define EV_S3_VERSION_TEXT 128
#define EV_S3_UPLOAD_TEXT 1025
#define EV_S3_PARTS_LIMIT 10000 /* of one multipart upload */
#define EV_S3_PART_MINIMUM (5 * 1024 * 1024)	/* of all parts but the last */

/* What a request came to. */
typedef enum EvS3Outcome
{
	EV_S3_OK = 0,
	EV_S3_ABSENT,				/* no such key, version or upload */
	EV_S3_EXISTS,				/* create_only, and the key is taken */
	EV_S3_DENIED,				/* wrong or expired keys, or no right */
	EV_S3_SKEW,					/* the clocks differ too much to sign */
	EV_S3_NO_BUCKET,
	EV_S3_LOCKED,				/* retention or a legal hold forbids it */
	EV_S3_REFUSED,				/* refused for good, or not even sent because
								 * an argument is wrong; redirects too */
	EV_S3_BUSY,					/* the store asks to try again later */
	EV_S3_UNREACHABLE,			/* the request was never sent */
	EV_S3_UNKNOWN,				/* sent, but there is no answer that can be
								 * relied upon */
	EV_S3_STOPPED,				/* a callback of the caller wanted no more */
	EV_S3_LOCAL					/* failed at this end: the source, the sink,
								 * memory, or no keys to sign with */
} EvS3Outcome;

typedef struct EvS3Result
{
	EvS3Outcome outcome;
	int			http_status;	/* of the final answer, 0 if there was none */
	char		code[64];		/* the store's word, e.g. "SlowDown", or "" */
	char		message[480];	/* why, without a full stop; "" when OK */
	char		hint[320];		/* what to do about it; may be empty */
	bool		retry_helps;	/* may the same request succeed later? */
	bool		maybe_done;		/* may it have been carried out although it is
								 * not EV_S3_OK?  Never set for requests that
								 * only read */
	int			retry_after;	/* seconds the store asks for, -1 if it does
								 * not; at most an hour */
	int64_t		store_time;		/* the store's clock at its answer */
	int64_t		skew;			/* this host's clock less the store's, in
								 * seconds; 0 if store_time is unknown */
	int64_t		locked_until;	/* of EV_S3_LOCKED; EV_S3_NEVER for a legal
								 * hold, which has no end */
	char		request_id[80]; /* the store's name for the request, or "" */
} EvS3Result;

typedef enum EvS3Style
{
	EV_S3_STYLE_AUTO = 0,		/* path, if an endpoint is given */
	EV_S3_STYLE_PATH,			/* https://host/bucket/key */
	EV_S3_STYLE_VIRTUAL			/* https://bucket.host/key */
} EvS3Style;

/*
 * Called about four times a second while a request runs, with the bytes of the
 * body that went or came and how many there are, 0 if that is unknown.  False
 * ends the request at once with EV_S3_STOPPED.
 */
typedef bool (*EvS3TickFunction) (void *arg, int64_t done, int64_t total);

/*
 * Texts are copied.  credentials is the caller's and must outlive the EvS3.
 * Zero takes the default of a number.
 */
typedef struct EvS3Settings
{
	const char *endpoint;		/* https://host[:port]; NULL is Amazon's */
	const char *region;			/* NULL is us-east-1 */
	const char *bucket;
	EvS3Style	style;
	const char *ca_file;		/* certificates to trust; NULL: the system's */
	bool		allow_http;		/* and then only to this very host: loopback */
	double		connect_seconds;	/* until the connection stands; 10 */
	double		request_seconds;	/* for a whole request, beyond the time
									 * that its body takes at the lowest
									 * speed; 300 */
	int64_t		low_speed_bytes;	/* per second; slower than that ... */
	int			low_speed_seconds;	/* ... for so long ends it; 1024, 60 */
	int64_t		rate_limit;		/* bytes per second, both ways; 0: none */
	EvCredentialsSource *credentials;
	EvS3TickFunction tick;		/* NULL is allowed */
	void	   *tick_arg;
} EvS3Settings;

typedef struct EvS3 EvS3;

/*
 * Where the body of an upload comes from.  read copies up to size bytes and
 * returns their number, 0 at the end, -1 on failure.  seek goes to an offset
 * from the beginning of the body, and is always called before the first read.
 * length bytes are read, never more; too few are EV_S3_LOCAL.
 */
typedef struct EvS3Source
{
	ssize_t		(*read) (void *arg, void *buffer, size_t size);
	bool		(*seek) (void *arg, int64_t offset);
	void	   *arg;
} EvS3Source;

typedef enum EvS3LockMode
{
	EV_S3_LOCK_NONE = 0,
	EV_S3_LOCK_GOVERNANCE,
	EV_S3_LOCK_COMPLIANCE
} EvS3LockMode;

typedef struct EvS3Lock
{
	EvS3LockMode mode;
	int64_t		retain_until;	/* EV_S3_NEVER without a mode */
	bool		legal_hold;
} EvS3Lock;

/* What is known of an object.  Texts are empty where nothing is known. */
typedef struct EvS3Object
{
	bool		exists;
	int64_t		length;
	char		sha256[EV_S3_SHA256_TEXT];	/* as its uploader stated it, in
											 * x-amz-meta-sha256 */
	char		etag[EV_S3_ETAG_TEXT];	/* without quotes */
	char		version_id[EV_S3_VERSION_TEXT];
	int64_t		last_modified;
	EvS3Lock	lock;
} EvS3Object;

/*
 * Where a download goes.  begin is called once, before the first byte, with
 * what the store says of the object, and may take its time; write gets the
 * bytes in order.  False from either ends the request with EV_S3_STOPPED.
 */
typedef struct EvS3Sink
{
	bool		(*begin) (void *arg, const EvS3Object *object);
	bool		(*write) (void *arg, const void *data, size_t length);
	void	   *arg;
} EvS3Sink;

/* How an object is made.  sha256 is also what its metadata will state. */
typedef struct EvS3Creation
{
	const char *sha256;			/* of the whole object */
	bool		create_only;	/* EV_S3_EXISTS if the key is taken; not every
								 * store and bucket honours it */
	EvS3Lock	lock;			/* needs a bucket with object lock */
} EvS3Creation;

typedef struct EvS3Part
{
	int			number;			/* from 1 */
	int64_t		length;
	char		etag[EV_S3_ETAG_TEXT];
	char		sha256[EV_S3_SHA256_TEXT];	/* "" where the store forgets it */
} EvS3Part;

/*
 * Get one item of a listing; false ends the listing with EV_S3_STOPPED.  The
 * texts live until the function returns.
 */
typedef bool (*EvS3PartFunction) (void *arg, const EvS3Part *part);
typedef bool (*EvS3ObjectFunction) (void *arg, const char *key,
									const EvS3Object *object);
typedef bool (*EvS3UploadFunction) (void *arg, const char *key,
									const char *upload_id, int64_t initiated);

/* One version of an object, or the mark that it was deleted. */
typedef bool (*EvS3VersionFunction) (void *arg, const char *key,
									 const EvS3Object *object, bool latest,
									 bool delete_marker);

/* One rule of a bucket's lifecycle. */
typedef struct EvS3Rule
{
	char		id[256];
	char		prefix[EV_S3_KEY_LIMIT + 1];
	bool		enabled;
	bool		partial;		/* only objects with certain tags or sizes */
	int			expire_days;	/* 0: it deletes no object by age */
	int64_t		expire_date;	/* a fixed day on which all are deleted */
	int			abort_days;		/* unfinished multipart uploads; 0: never */
	int			noncurrent_days;	/* versions that were replaced; 0: never */
} EvS3Rule;

typedef bool (*EvS3RuleFunction) (void *arg, const EvS3Rule *rule);

typedef enum EvS3Versioning
{
	EV_S3_VERSIONING_NEVER = 0,
	EV_S3_VERSIONING_ENABLED,
	EV_S3_VERSIONING_SUSPENDED
} EvS3Versioning;

typedef struct EvS3BucketLock
{
	bool		enabled;
	EvS3LockMode mode;			/* of the default retention */
	int			days;			/* a year is 365; 0 without a mode */
} EvS3BucketLock;

/*
 * Check the settings and make a handle; sends nothing.  EV_STATUS_USAGE when a
 * setting is wrong, plain http to another host among them.  Also makes the
 * process ignore SIGPIPE, as libcurl asks for.
 */
extern EvStatus ev_s3_open(const EvS3Settings *settings, EvS3 **s3,
						   EvFailure *failure);
extern void ev_s3_close(EvS3 *s3);	/* NULL is allowed */

/* "bucket ... at host ...", for messages. */
extern const char *ev_s3_name(const EvS3 *s3);

/*
 * Every function below returns result->outcome and fills all of *result.
 * Objects and other results are filled on EV_S3_OK only, and are empty
 * otherwise.  version_id may be NULL or empty: the current version.
 */

/* Store length bytes; object may be NULL, else gets ETag and version id. */
extern EvS3Outcome ev_s3_put(EvS3 *s3, const char *key, int64_t length,
							 const EvS3Creation *creation,
							 const EvS3Source *source, EvS3Object *object,
							 EvS3Result *result);

/*
 * Look an object up.  EV_S3_ABSENT is said only when the bucket was seen to
 * be there: the answer to a look-up does not tell a missing bucket from a
 * missing key, so a second request does.
 */
extern EvS3Outcome ev_s3_head(EvS3 *s3, const char *key,
							  const char *version_id, EvS3Object *object,
							  EvS3Result *result);

/*
 * Fetch an object.  EV_S3_OK means that as many bytes came as the store
 * announced; comparing digests is the caller's part.
 */
extern EvS3Outcome ev_s3_get(EvS3 *s3, const char *key,
							 const char *version_id, const EvS3Sink *sink,
							 EvS3Result *result);

/*
 * Delete an object, or one version of it.  A key that is not there is
 * EV_S3_OK.  Without a version id, a versioned bucket only puts a mark in
 * front of it.  EV_S3_LOCKED tells until when.
 */
extern EvS3Outcome ev_s3_delete(EvS3 *s3, const char *key,
								const char *version_id, EvS3Result *result);

/*
 * Multipart uploads.  EV_S3_ABSENT is a missing upload here.  Some stores drop
 * the lock of the creation without a word: look the object up after complete,
 * and use ev_s3_put_retention and ev_s3_put_legal_hold if it is not there.
 * create_only counts at complete only.
 */
extern EvS3Outcome ev_s3_upload_begin(EvS3 *s3, const char *key,
									  const EvS3Creation *creation,
									  char upload_id[EV_S3_UPLOAD_TEXT],
									  EvS3Result *result);

/* sha256 is that of this part.  *part may be NULL; parts may be sent again. */
extern EvS3Outcome ev_s3_upload_part(EvS3 *s3, const char *key,
									 const char *upload_id, int number,
									 int64_t length, const char *sha256,
									 const EvS3Source *source,
									 EvS3Part *part, EvS3Result *result);

/* Which parts the store has, in order of their numbers. */
extern EvS3Outcome ev_s3_upload_parts(EvS3 *s3, const char *key,
									  const char *upload_id,
									  EvS3PartFunction function, void *arg,
									  EvS3Result *result);

/*
 * Make the object of its parts, which must be in order.  The ETag that the
 * store answers may be empty: look the object up.
 */
extern EvS3Outcome ev_s3_upload_complete(EvS3 *s3, const char *key,
										 const char *upload_id,
										 const EvS3Part *parts, int count,
										 bool create_only,
										 EvS3Object *object,
										 EvS3Result *result);
extern EvS3Outcome ev_s3_upload_abort(EvS3 *s3, const char *key,
									  const char *upload_id,
									  EvS3Result *result);

/* The unfinished uploads whose keys begin with prefix. */
extern EvS3Outcome ev_s3_list_uploads(EvS3 *s3, const char *prefix,
									  EvS3UploadFunction function, void *arg,
									  EvS3Result *result);

/* Objects, and on versioned buckets all versions, below a prefix. */
extern EvS3Outcome ev_s3_list(EvS3 *s3, const char *prefix,
							  EvS3ObjectFunction function, void *arg,
							  EvS3Result *result);
extern EvS3Outcome ev_s3_list_versions(EvS3 *s3, const char *prefix,
									   EvS3VersionFunction function,
									   void *arg, EvS3Result *result);

/* What protects one object, needed for those made by multipart upload. */
extern EvS3Outcome ev_s3_put_retention(EvS3 *s3, const char *key,
									   const char *version_id,
									   EvS3LockMode mode,
									   int64_t retain_until,
									   EvS3Result *result);
extern EvS3Outcome ev_s3_put_legal_hold(EvS3 *s3, const char *key,
										const char *version_id, bool hold,
										EvS3Result *result);

/* EV_S3_OK, or EV_S3_NO_BUCKET, or why that cannot be told. */
extern EvS3Outcome ev_s3_bucket(EvS3 *s3, EvS3Result *result);
extern EvS3Outcome ev_s3_bucket_versioning(EvS3 *s3,
										   EvS3Versioning *versioning,
										   EvS3Result *result);
extern EvS3Outcome ev_s3_bucket_lock(EvS3 *s3, EvS3BucketLock *lock,
									 EvS3Result *result);

/*
 * The rules of the lifecycle, whoever made them; none at all is EV_S3_OK.
 * Put adds an enabled rule of prefix, expire_days and abort_days, or replaces
 * the one of the same id; all others stay as they are.  Read, changed and
 * written back, so two at the same time can undo one another's.
 */
extern EvS3Outcome ev_s3_lifecycle(EvS3 *s3, EvS3RuleFunction function,
								   void *arg, EvS3Result *result);
extern EvS3Outcome ev_s3_put_lifecycle(EvS3 *s3, const EvS3Rule *rule,
									   EvS3Result *result);

/* The word for an outcome, e.g. "busy". */
extern const char *ev_s3_outcome_name(EvS3Outcome outcome);

/*
 * Fill the failure for a result that is not OK, and return its status.  doing
 * is "could not ...".
 */
extern EvStatus ev_s3_fail(const EvS3Result *result, const char *doing,
						   EvFailure *failure);

#endif							/* EV_UPLOADER_S3_H */
