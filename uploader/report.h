/*-------------------------------------------------------------------------
 *
 * report.h
 *	  What the verifier found: every fault, by the check that found it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_REPORT_H
#define EV_UPLOADER_REPORT_H

#include <stdint.h>

#include "package/digest.h"

#include "ledger.h"

/* The words for these stand in report.c and are part of --json output. */
typedef enum EvCheck
{
	EV_CHECK_LAYOUT = 0,		/* the ZIP holds two plain members, no more */
	EV_CHECK_MANIFEST,			/* manifest.json can be read, nothing lacks */
	EV_CHECK_CANONICAL,			/* it has the one canonical form */
	EV_CHECK_FORMAT,			/* it is of a format this program knows */
	EV_CHECK_IDENTITY,			/* it belongs to the export asked for */
	EV_CHECK_DIGEST,			/* request_digest is that of the request */
	EV_CHECK_BYTES,				/* records.csv has the stated size */
	EV_CHECK_SHA256,			/* and the stated SHA-256 */
	EV_CHECK_RECORDS,			/* and the stated number of records */
	EV_CHECK_COLUMNS,			/* header and every record fit the columns */
	EV_CHECK_CSV,				/* RFC 4180 with CRLF */
	EV_CHECK_UTF8,				/* valid UTF-8 */
	EV_CHECK_CONTROL,			/* no control or bidirectional characters */
	EV_CHECK_FORMULA,			/* no cell opens as a formula */
	EV_CHECK_RANGE,				/* every created_at lies in the range */
	EV_CHECK_ORDER,				/* records ascend by created_at and id */
	EV_CHECK_ENDS,				/* first and last are those of the manifest */
	EV_CHECK_CELLS,				/* counts of changed cells are possible */
	EV_CHECK_COUNT
} EvCheck;

typedef enum EvVerdict
{
	EV_VERDICT_SKIPPED = 0,		/* nothing to check, or impossible */
	EV_VERDICT_PASSED,
	EV_VERDICT_FAILED
} EvVerdict;

typedef struct EvFault
{
	EvCheck		check;
	char		text[256];
} EvFault;

#define EV_FAULT_LIMIT 64		/* more are counted, not kept */

typedef struct EvVerifyReport
{
	EvVerdict	verdicts[EV_CHECK_COUNT];
	EvFault		faults[EV_FAULT_LIMIT];
	int			nfaults;		/* all of them, kept or not */

	/* What the file says of itself; empty or -1 where it cannot be read. */
	char		export_id[EV_ID_TEXT];
	char		source[128];
	char		range_start[48];
	char		range_end[48];
	int64_t		records;		/* counted, not claimed */
	int64_t		records_bytes;
	char		records_sha256[EV_SHA256_HEX];
	int64_t		archive_bytes;
	char		archive_sha256[EV_SHA256_HEX];
} EvVerifyReport;

extern void ev_report_clear(EvVerifyReport *report);

/* Add a fault; its check has failed from then on. */
extern void ev_report_fault(EvVerifyReport *report, EvCheck check,
							const char *format,...) EV_PRINTF(3, 4);

/* The check was made: it has passed unless a fault of it was added. */
extern void ev_report_checked(EvVerifyReport *report, EvCheck check);

/* The word for a check, and what it looks at. */
extern const char *ev_check_name(EvCheck check);
extern const char *ev_check_meaning(EvCheck check);

#endif							/* EV_UPLOADER_REPORT_H */
