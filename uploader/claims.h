/*-------------------------------------------------------------------------
 *
 * claims.h
 *	  What a manifest.json claims, read from bytes that nobody vouches for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_CLAIMS_H
#define EV_UPLOADER_CLAIMS_H

#include <stdint.h>

#include "report.h"

/* The first or last record as claimed. */
typedef struct EvClaimedRecord
{
	int64_t		at;
	int64_t		id;
} EvClaimedRecord;

/* The texts belong to root. */
typedef struct EvClaims
{
	void	   *root;			/* the parsed JSON */
	const char *export_id;
	const char *source;
	const char *range_start;
	const char *range_end;
	int64_t		start_at;
	int64_t		end_at;
	const char **columns;
	int			ncolumns;
	int64_t		record_count;
	int64_t		file_bytes;
	int64_t		file_rows;
	const char *file_sha256;
	bool		has_records;	/* first and last are set */
	EvClaimedRecord first;
	EvClaimedRecord last;
	int64_t		formula_prefixed;
	int64_t		redacted;
	int64_t		cleaned;
	bool		redaction;
} EvClaims;

/*
 * Read the bytes of manifest.json, check everything that can be checked
 * without the records and add each fault to the report.  Returns whether the
 * claims are complete, so that the records can be compared with them; only
 * then are they filled.  *error tells when memory or a library failed.
 * Release with ev_claims_free in either case.
 */
extern bool ev_claims_read(const char *text, size_t length, EvClaims *claims,
						   EvVerifyReport *report, EvError *error);
extern void ev_claims_free(EvClaims *claims);

#endif							/* EV_UPLOADER_CLAIMS_H */
