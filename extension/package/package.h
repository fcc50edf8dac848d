/*-------------------------------------------------------------------------
 *
 * package.h
 *	  Build one evidence package: rows in, archive out.
 *
 * Ties csv, redact, digest, archive and manifest together.  The caller gives
 * rows through ev_package_csv(), closes the records, and writes the archive.
 * Only compressed bytes ever reach the spool file, and in the end it holds
 * the archive.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_PACKAGE_H
#define EV_PACKAGE_PACKAGE_H

#include "archive.h"
#include "csv.h"
#include "manifest.h"

typedef struct EvPackage EvPackage;

typedef struct EvRecords
{
	uint64_t	bytes;			/* of records.csv, uncompressed */
	char		sha256[EV_SHA256_HEX];
	EvCellCounts cells;
} EvRecords;

/*
 * spool may be NULL: then records are formatted and hashed, but no archive
 * can be written (verify_audit_export recomputes a hash this way).  Both
 * redactor and spool stay the caller's.
 */
extern EvPackage *ev_package_create(EvRedactor *redactor, const EvFile *spool,
									EvError *error);
extern void ev_package_free(EvPackage *package);	/* NULL is allowed */

/* Where to put the header record and the rows. */
extern EvCsvWriter *ev_package_csv(EvPackage *package);

/* Compressed bytes written so far, for progress. */
extern int64_t ev_package_packed(const EvPackage *package);

/* No more rows: finish records.csv and tell what it became. */
extern bool ev_package_close_records(EvPackage *package, EvRecords *records,
									 EvError *error);

/*
 * Turn the spool into the archive: it lies there in [*start, *start + *size).
 * manifest is the text of manifest.json.
 */
extern bool ev_package_write_archive(EvPackage *package, const char *manifest,
									 size_t manifest_length, int64_t *start,
									 int64_t *size, EvError *error);

#endif							/* EV_PACKAGE_PACKAGE_H */
