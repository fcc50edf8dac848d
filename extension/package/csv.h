/*-------------------------------------------------------------------------
 *
 * csv.h
 *	  Cells in, the bytes of records.csv out.
 *
 * The writer gathers bytes in blocks of exactly EV_CSV_BLOCK (the last one
 * is shorter) and hands each to the caller's function.  Memory is one block
 * plus the longest cell, whatever the number of rows.
 *
 * What a reader of records.csv finds in the cell of a text:
 *
 * - Secrets are [redacted:<rule>].
 * - Each control character (C0, DEL, C1, U+2028, U+2029) is one blank; CR LF
 *   is two.  Each bidi control (U+061C, U+200E, U+200F, U+202A to U+202E,
 *   U+2066 to U+206F) and tag character (U+E0000 to U+E007F) is written out,
 *   like <U+202E>, or is one blank in front of the first visible character.
 *   Each byte that is no UTF-8 is U+FFFD.  Nothing is cut.
 * - The guard, one apostrophe, stands in front of a cell that a spreadsheet
 *   might take for a formula.  To undo it, take one apostrophe off exactly
 *   those cells that begin with one or more apostrophes, then any number of
 *   hidden characters (unicode_ranges.h), then one of = + - @ (in any of the
 *   forms of ev_is_trigger) or the text "[redacted:".  Different texts give
 *   different cells; test/unit/test_cell.c proves both.
 *
 * A record is ended by CR LF, the last one too.  NULL is an empty cell, the
 * empty text is "".  Cells are quoted when they hold a comma or a quote, are
 * empty or have a blank at either end.  A text after a separator such as ';'
 * is not changed: readers must split at commas only (case C06).
 *
 * Requirements S1.41, S1.42; cases C01 to C20.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_CSV_H
#define EV_PACKAGE_CSV_H

#include <stdint.h>

#include "redact.h"

#define EV_CSV_BLOCK (256 * 1024)

/* Microseconds since 2000-01-01 00:00:00 UTC, as PostgreSQL counts them. */
#define EV_TIMESTAMP_INFINITY INT64_MAX
#define EV_TIMESTAMP_MINUS_INFINITY INT64_MIN
#define EV_TIMESTAMP_TEXT 48	/* longest form and the terminating zero */

/* How many cells were changed, by kind of change; a cell counts in each. */
typedef struct EvCellCounts
{
	uint64_t	formula_prefixed;
	uint64_t	redacted;
	uint64_t	cleaned;
} EvCellCounts;

typedef struct EvCsvWriter EvCsvWriter;

/* Takes one block; returns false with *error filled to stop the writer. */
typedef bool (*EvBlockFunction) (void *arg, const void *data, size_t length,
								 EvError *error);

/*
 * redactor may be NULL (no redaction; the formula guard always works) and
 * stays the caller's.  NULL with *error filled when memory is exhausted.
 */
extern EvCsvWriter *ev_csv_create(EvRedactor *redactor, EvBlockFunction block,
								  void *block_arg, EvError *error);
extern void ev_csv_free(EvCsvWriter *writer);	/* NULL is allowed */

/*
 * One cell each, in column order.  All return false with *error filled on
 * failure.  Text need not be valid UTF-8: each invalid byte becomes U+FFFD
 * and the cell counts as cleaned (case C16).
 */
extern bool ev_csv_text(EvCsvWriter *writer, const char *text, size_t length,
						EvError *error);
extern bool ev_csv_null(EvCsvWriter *writer, EvError *error);
extern bool ev_csv_integer(EvCsvWriter *writer, int64_t value, EvError *error);
extern bool ev_csv_timestamp(EvCsvWriter *writer, int64_t microseconds,
							 EvError *error);

/* End the record; the header line is a record of names through ev_csv_text. */
extern bool ev_csv_end_record(EvCsvWriter *writer, EvError *error);

/* Hand over the last, shorter block (if any). */
extern bool ev_csv_finish(EvCsvWriter *writer, EvError *error);

extern const EvCellCounts *ev_csv_counts(const EvCsvWriter *writer);

/*
 * The text form of a time: YYYY-MM-DDTHH:MM:SS.ffffffZ, infinity, -infinity;
 * a year above 9999 has more digits and a leading +, a year BC is astronomical
 * (0044 BC is -0043) as ISO 8601 has it.  Returns the length.
 */
extern int	ev_timestamp_text(int64_t microseconds,
							  char text[EV_TIMESTAMP_TEXT]);

/* Copy text to out with invalid UTF-8 replaced; *invalid counts them. */
extern bool ev_utf8_repair(const char *text, size_t length, EvBuffer *out,
						   uint64_t *invalid);

#endif							/* EV_PACKAGE_CSV_H */
