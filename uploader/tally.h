/*-------------------------------------------------------------------------
 *
 * tally.h
 *	  Count the faults of records.csv by their kind.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_TALLY_H
#define EV_UPLOADER_TALLY_H

#include <stdint.h>

#include "report.h"

/* The kinds of fault that are counted. */
typedef enum EvTallyKind
{
	EV_TALLY_BARE_QUOTE,
	EV_TALLY_AFTER_QUOTE,
	EV_TALLY_LINE_END,
	EV_TALLY_LAST_LINE_END,
	EV_TALLY_OPEN_QUOTE,
	EV_TALLY_WIDTH,
	EV_TALLY_UTF8,
	EV_TALLY_CONTROL,
	EV_TALLY_BIDI,
	EV_TALLY_FORMULA,
	EV_TALLY_TIME,
	EV_TALLY_ID,
	EV_TALLY_RANGE,
	EV_TALLY_ORDER,
	EV_TALLY_COUNT
} EvTallyKind;

/* Zero-filled is a valid empty one. */
typedef struct EvTally
{
	uint64_t	count[EV_TALLY_COUNT];
	int64_t		record[EV_TALLY_COUNT]; /* of the first; 0 is the header */
	int			column[EV_TALLY_COUNT]; /* of the first, from 0 */
} EvTally;

extern void ev_tally_count(EvTally *tally, EvTallyKind kind, int64_t record,
						   int column);

/* Make one fault of each kind that has been counted. */
extern void ev_tally_report(const EvTally *tally, EvVerifyReport *report);

#endif							/* EV_UPLOADER_TALLY_H */
