/*-------------------------------------------------------------------------
 *
 * manifest.h
 *	  The contract of an export and the manifest.json that states it.
 *
 * Requirements S1.37 to S1.40; design sections 1 and 6.  All values come from
 * the contract and from the rows, never from the server or the hour of the
 * attempt.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_MANIFEST_H
#define EV_PACKAGE_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "buffer.h"
#include "csv.h"
#include "digest.h"
#include "error.h"

#define EV_MANIFEST_FORMAT "pg_evidence/1"
#define EV_MANIFEST_LIMIT (4 * 1024 * 1024) /* a longer one is refused */

/* One filter: a key and its values, sorted bytewise and without doubles. */
typedef struct EvFilter
{
	const char *key;
	const char *const *values;
	int			nvalues;
} EvFilter;

/* What the requester asked for; its digest makes a request idempotent. */
typedef struct EvRequest
{
	const char *source;
	int64_t		start_at;		/* microseconds since 2000-01-01 UTC */
	int64_t		end_at;
	const EvFilter *filters;	/* sorted by key */
	int			nfilters;
	const char *const *columns;
	int			ncolumns;
	const char *purpose;
} EvRequest;

typedef struct EvManifest
{
	EvRequest	request;
	const char *export_id;
	int			generation;
	const char *requested_by;
	int64_t		requested_at;
	const char *request_digest; /* hex */
	int			policy_version;
	const char *consistency;	/* "as-of-request" | "attempt-snapshot" */
	int64_t		snapshot_at;
	const char *pg_snapshot;
	const char *system_identifier;
	bool		redaction;		/* false: redaction was switched off */
	int			ruleset_version;
	const char *ruleset_sha256;
	const char *producer_version;	/* of pg_evidence */

	/* What the rows gave. */
	uint64_t	record_count;
	bool		has_records;	/* the four below are set */
	int64_t		first_at;
	int64_t		first_id;
	int64_t		last_at;
	int64_t		last_id;
	uint64_t	records_bytes;
	const char *records_sha256;
	EvCellCounts cells;
} EvManifest;

/* The canonical JSON of a request, and its SHA-256 as hex. */
extern bool ev_request_json(const EvRequest *request, EvBuffer *out);
extern bool ev_request_digest(const EvRequest *request,
							  char hex[EV_SHA256_HEX], EvError *error);

/*
 * The manifest as canonical JSON.  redactor (may be NULL) is applied to the
 * purpose and to filter values, which are people's text too (case C33).
 */
extern bool ev_manifest_json(const EvManifest *manifest, EvRedactor *redactor,
							 EvBuffer *out, EvError *error);

#endif							/* EV_PACKAGE_MANIFEST_H */
