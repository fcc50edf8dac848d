/*-------------------------------------------------------------------------
 *
 * plain_cell.c
 *	  The text of a cell as it is: neither guarded, nor redacted, nor cleaned.
 *
 * The benchmark builds a second server with this file in place of
 * extension/package/cell.c, to see what guard and redaction cost.  It does
 * what any writer of CSV has to: find out whether a text needs quotes.
 *
 *-------------------------------------------------------------------------
 */
#include "cell.h"
#include "csv.h"
#include "scan.h"

bool
ev_cell_make(EvCellWork *work, EvRedactor *redactor, const char *text,
			 size_t length, EvCell *cell, EvError *error)
{
	unsigned	found = ev_scan_bytes(text, length);

	(void) work;
	(void) redactor;
	(void) error;
	cell->text = text;
	cell->length = length;
	cell->guarded = false;
	cell->redacted = false;
	cell->cleaned = false;
	cell->special = (found & (EV_HAS_SPECIAL | EV_HAS_CONTROL)) != 0;
	return true;
}

void
ev_cell_work_free(EvCellWork *work)
{
	(void) work;
}

/* Names in the manifest; the benchmark's are plain. */
bool
ev_utf8_repair(const char *text, size_t length, EvBuffer *out,
			   uint64_t *invalid)
{
	*invalid = 0;
	return ev_buffer_append(out, text, length);
}
