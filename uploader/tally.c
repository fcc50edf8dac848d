/*-------------------------------------------------------------------------
 *
 * tally.c
 *	  Count the faults of records.csv by their kind.
 *
 * A file may have millions of faulty cells.  A report that named each would
 * be as long as the file, so one kind of fault is one line: what it is, how
 * often, and where first.  That also keeps the memory fixed.
 *
 * Records are counted from 1 behind the header, columns from 1, as people do;
 * cells are never quoted, for they may hold what should not be in a log.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>

#include "tally.h"

/* Which check a kind belongs to, and what is wrong. */
static const struct
{
	EvCheck		check;
	bool		of_cell;		/* tell the column too */
	const char *text;
}			kinds[EV_TALLY_COUNT] = {

	[EV_TALLY_BARE_QUOTE] = {EV_CHECK_CSV, true,
	"a quote stands inside a cell that is not quoted"},
	[EV_TALLY_AFTER_QUOTE] = {EV_CHECK_CSV, true,
	"text follows the closing quote of a cell"},
	[EV_TALLY_LINE_END] = {EV_CHECK_CSV, false,
	"a record does not end with CR LF"},
	[EV_TALLY_LAST_LINE_END] = {EV_CHECK_CSV, false,
	"the last record does not end with CR LF"},
	[EV_TALLY_OPEN_QUOTE] = {EV_CHECK_CSV, false,
	"the file ends inside a quoted cell"},
	[EV_TALLY_WIDTH] = {EV_CHECK_COLUMNS, false,
	"a record has another number of cells than the header"},
	[EV_TALLY_UTF8] = {EV_CHECK_UTF8, true,
	"a byte is not valid UTF-8"},
	[EV_TALLY_CONTROL] = {EV_CHECK_CONTROL, true,
	"a cell holds a control character"},
	[EV_TALLY_BIDI] = {EV_CHECK_CONTROL, true,
	"a cell holds a character that reorders or hides text"},
	[EV_TALLY_FORMULA] = {EV_CHECK_FORMULA, true,
	"a cell opens as a formula"},
	[EV_TALLY_TIME] = {EV_CHECK_ORDER, true,
	"created_at is not a time in the form of a package"},
	[EV_TALLY_ID] = {EV_CHECK_ORDER, true,
	"id is not a whole number"},
	[EV_TALLY_RANGE] = {EV_CHECK_RANGE, false,
	"a record lies outside the stated range"},
	[EV_TALLY_ORDER] = {EV_CHECK_ORDER, false,
	"a record does not come after the one before it"}
};

void
ev_tally_count(EvTally *tally, EvTallyKind kind, int64_t record, int column)
{
	if (tally->count[kind]++ == 0)
	{
		tally->record[kind] = record;
		tally->column[kind] = column;
	}
}

void
ev_tally_report(const EvTally *tally, EvVerifyReport *report)
{
	int			i;

	for (i = 0; i < EV_TALLY_COUNT; i++)
	{
		char		where[64];

		if (tally->count[i] == 0)
			continue;
		if (kinds[i].of_cell)
			snprintf(where, sizeof(where), "record %" PRId64 ", column %d",
					 tally->record[i], tally->column[i] + 1);
		else
			snprintf(where, sizeof(where), "record %" PRId64,
					 tally->record[i]);
		ev_report_fault(report, kinds[i].check,
						"%s: %" PRIu64 " time%s, first in %s", kinds[i].text,
						tally->count[i], tally->count[i] == 1 ? "" : "s",
						where);
	}
}
