/*-------------------------------------------------------------------------
 *
 * records.h
 *	  Read records.csv as a stream and check each byte of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_RECORDS_H
#define EV_UPLOADER_RECORDS_H

#include <stdint.h>

#include "report.h"

/* What the manifest promises; zero-filled when there is none. */
typedef struct EvRecordsRule
{
	const char *const *columns;
	int			ncolumns;		/* 0: whatever the header says */
	bool		has_range;
	int64_t		start_at;		/* microseconds since 2000-01-01 UTC */
	int64_t		end_at;

	/*
	 * Only id and created_at hold numbers and times; in every other column
	 * even -1 must carry the guard.
	 */
	bool		only_key_typed;
} EvRecordsRule;

/* What was found; valid after ev_records_finish. */
typedef struct EvRecordsFacts
{
	int64_t		records;		/* without the header */
	int64_t		bytes;
	char		sha256[EV_SHA256_HEX];
	int64_t		guarded;		/* cells that a reader takes a guard off */
	int64_t		marked;			/* cells with a redaction mark */
	bool		has_time;		/* created_at was present and readable */
	bool		has_id;			/* id too */
	int64_t		first_at;
	int64_t		first_id;
	int64_t		last_at;
	int64_t		last_id;
} EvRecordsFacts;

typedef struct EvRecordsReader EvRecordsReader;

/* rule stays the caller's and must live as long as the reader. */
extern EvRecordsReader *ev_records_create(const EvRecordsRule *rule,
										  EvError *error);
extern void ev_records_free(EvRecordsReader *reader);	/* NULL is allowed */

/* An EvReadFunction whose arg is the reader. */
extern bool ev_records_feed(void *arg, const void *data, size_t length,
							EvError *error);

/* No more bytes: report all faults found and fill *facts. */
extern bool ev_records_finish(EvRecordsReader *reader, EvVerifyReport *report,
							  EvRecordsFacts *facts, EvError *error);

#endif							/* EV_UPLOADER_RECORDS_H */
