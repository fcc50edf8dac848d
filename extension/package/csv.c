/*-------------------------------------------------------------------------
 *
 * csv.c
 *	  Write records.csv: RFC 4180 with CR LF, in blocks of one fixed size.
 *
 * What a cell's text becomes is cell.c's business; this file adds commas,
 * quotes and line ends and forms numbers and times.  It formats them itself,
 * because the server's output functions follow session settings (case C19)
 * and cost more than everything else here together.
 *
 * Blocks always have the same size, whatever the calls, since the compressor
 * behind gives reproducible bytes only for reproducible input blocks.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "csv.h"

#define MICROSECONDS_PER_DAY INT64_C(86400000000)

/* Days from 0000-03-01 to 2000-01-01 in the proleptic Gregorian calendar. */
#define DAYS_TO_2000 INT64_C(730425)
#define DAYS_PER_400_YEARS 146097

struct EvCsvWriter
{
	EvRedactor *redactor;
	EvBlockFunction block_function;
	void	   *block_arg;
	EvCellCounts counts;
	EvCellWork	work;
	bool		inside_record;	/* the next cell needs a comma */
	size_t		fill;			/* bytes in block */
	char		block[EV_CSV_BLOCK];
};

static bool put_text(EvCsvWriter *writer, const EvCell *cell, EvError *error);
static bool put_quoted(EvCsvWriter *writer, const char *text, size_t length,
					   EvError *error);
static bool put_comma(EvCsvWriter *writer, EvError *error);
static bool put(EvCsvWriter *writer, const char *data, size_t length,
				EvError *error);
static bool put_split(EvCsvWriter *writer, const char *data, size_t length,
					  EvError *error);
static bool flush_block(EvCsvWriter *writer, EvError *error);
static int	put_date(char *text, int64_t day);
static int	put_year(char *text, int64_t year);
static char *put_digits(char *text, unsigned value, int digits);

EvCsvWriter *
ev_csv_create(EvRedactor *redactor, EvBlockFunction block, void *block_arg,
			  EvError *error)
{
	EvCsvWriter *writer = calloc(1, sizeof(EvCsvWriter));

	if (writer == NULL)
	{
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		return NULL;
	}
	writer->redactor = redactor;
	writer->block_function = block;
	writer->block_arg = block_arg;
	return writer;
}

void
ev_csv_free(EvCsvWriter *writer)
{
	if (writer == NULL)
		return;
	ev_cell_work_free(&writer->work);
	free(writer);
}

/*
 * The counts are of cells and not of changes, so that they can be checked by
 * comparing cells.
 */
bool
ev_csv_text(EvCsvWriter *writer, const char *text, size_t length,
			EvError *error)
{
	EvCell		cell;

	if (!ev_cell_make(&writer->work, writer->redactor, text, length, &cell,
					  error))
		return false;

	writer->counts.formula_prefixed += cell.guarded;
	writer->counts.redacted += cell.redacted;
	writer->counts.cleaned += cell.cleaned;
	return put_comma(writer, error) && put_text(writer, &cell, error);
}

bool
ev_csv_null(EvCsvWriter *writer, EvError *error)
{
	return put_comma(writer, error);
}

/*
 * The magnitude is taken as unsigned, because the smallest value has no
 * positive twin.
 */
bool
ev_csv_integer(EvCsvWriter *writer, int64_t value, EvError *error)
{
	char		text[24];
	char	   *p = text + sizeof(text);
	uint64_t	rest = value < 0 ? -(uint64_t) value : (uint64_t) value;

	do
	{
		*--p = (char) ('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (value < 0)
		*--p = '-';
	return put_comma(writer, error) &&
		put(writer, p, (size_t) (text + sizeof(text) - p), error);
}

bool
ev_csv_timestamp(EvCsvWriter *writer, int64_t microseconds, EvError *error)
{
	char		text[EV_TIMESTAMP_TEXT];
	int			length = ev_timestamp_text(microseconds, text);

	return put_comma(writer, error) &&
		put(writer, text, (size_t) length, error);
}

/*
 * The last record ends like all others, so files can be joined and lines
 * counted.
 */
bool
ev_csv_end_record(EvCsvWriter *writer, EvError *error)
{
	writer->inside_record = false;
	return put(writer, "\r\n", 2, error);
}

/*
 * A file whose size is a multiple of the block ends without an empty block, or
 * its compressed bytes would depend on it.
 */
bool
ev_csv_finish(EvCsvWriter *writer, EvError *error)
{
	return writer->fill == 0 || flush_block(writer, error);
}

const EvCellCounts *
ev_csv_counts(const EvCsvWriter *writer)
{
	return &writer->counts;
}

/*
 * Division rounds towards zero, so times before 2000 are moved to the day
 * before and a positive rest.
 */
int
ev_timestamp_text(int64_t microseconds, char text[EV_TIMESTAMP_TEXT])
{
	int64_t		day = microseconds / MICROSECONDS_PER_DAY;
	int64_t		rest = microseconds % MICROSECONDS_PER_DAY;
	unsigned	second;
	char	   *p;

	if (microseconds == EV_TIMESTAMP_INFINITY ||
		microseconds == EV_TIMESTAMP_MINUS_INFINITY)
	{
		strcpy(text, microseconds > 0 ? "infinity" : "-infinity");
		return (int) strlen(text);
	}
	if (rest < 0)
	{
		rest += MICROSECONDS_PER_DAY;
		day--;
	}
	second = (unsigned) (rest / 1000000);

	p = text + put_date(text, day);
	*p++ = 'T';
	p = put_digits(p, second / 3600, 2);
	*p++ = ':';
	p = put_digits(p, second / 60 % 60, 2);
	*p++ = ':';
	p = put_digits(p, second % 60, 2);
	*p++ = '.';
	p = put_digits(p, (unsigned) (rest % 1000000), 6);
	*p++ = 'Z';
	*p = '\0';
	return (int) (p - text);
}

/*
 * Quotes are put where RFC 4180 needs them, around the empty text (NULL is
 * bare) and around blanks at either end, which some readers trim.
 */
static bool
put_text(EvCsvWriter *writer, const EvCell *cell, EvError *error)
{
	const char *text = cell->text;
	size_t		length = cell->length;
	bool		quoted;

	quoted = cell->special || length == 0 ||
		(text[0] == ' ' && !cell->guarded) || text[length - 1] == ' ';
	if (quoted && !put(writer, "\"", 1, error))
		return false;
	if (cell->guarded && !put(writer, "'", 1, error))
		return false;
	if (!(cell->special ? put_quoted(writer, text, length, error) :
		  put(writer, text, length, error)))
		return false;
	return !quoted || put(writer, "\"", 1, error);
}

/*
 * Quotes are doubled and nothing else is escaped: a backslash is an ordinary
 * character to every reader of RFC 4180.
 */
static bool
put_quoted(EvCsvWriter *writer, const char *text, size_t length,
		   EvError *error)
{
	const char *end = text + length;
	const char *quote;

	while ((quote = memchr(text, '"', (size_t) (end - text))) != NULL)
	{
		/* Up to the quote and the quote itself, then the quote once more. */
		if (!put(writer, text, (size_t) (quote - text) + 1, error) ||
			!put(writer, "\"", 1, error))
			return false;
		text = quote + 1;
	}
	return put(writer, text, (size_t) (end - text), error);
}

static bool
put_comma(EvCsvWriter *writer, EvError *error)
{
	if (writer->inside_record)
		return put(writer, ",", 1, error);
	writer->inside_record = true;
	return true;
}

/* Nearly every call fits, and then this is a copy and an addition. */
static bool
put(EvCsvWriter *writer, const char *data, size_t length, EvError *error)
{
	if (length >= EV_CSV_BLOCK - writer->fill)
		return put_split(writer, data, length, error);
	memcpy(writer->block + writer->fill, data, length);
	writer->fill += length;
	return true;
}

/* These bytes fill the block, perhaps several times. */
static bool
put_split(EvCsvWriter *writer, const char *data, size_t length,
		  EvError *error)
{
	while (length > 0)
	{
		size_t		room = EV_CSV_BLOCK - writer->fill;
		size_t		part = length < room ? length : room;

		memcpy(writer->block + writer->fill, data, part);
		writer->fill += part;
		data += part;
		length -= part;
		if (writer->fill == EV_CSV_BLOCK && !flush_block(writer, error))
			return false;
	}
	return true;
}

/*
 * The block counts as handed over even if the function refuses it: the writer
 * is of no use after an error anyway.
 */
static bool
flush_block(EvCsvWriter *writer, EvError *error)
{
	size_t		length = writer->fill;

	writer->fill = 0;
	return writer->block_function(writer->block_arg, writer->block, length,
								  error);
}

/*
 * The usual conversion from a day number to year, month and day, with years
 * counted from March so that the leap day comes last.
 */
static int
put_date(char *text, int64_t day)
{
	int64_t		days = day + DAYS_TO_2000;
	int64_t		era = days / DAYS_PER_400_YEARS;
	unsigned	of_era;
	unsigned	year_of_era;
	unsigned	of_year;
	unsigned	month;
	int64_t		year;
	char	   *p;

	if (days % DAYS_PER_400_YEARS < 0)
		era--;
	of_era = (unsigned) (days - era * DAYS_PER_400_YEARS);
	year_of_era = (of_era - of_era / 1460 + of_era / 36524 -
				   of_era / 146096) / 365;
	of_year = of_era - (365 * year_of_era + year_of_era / 4 -
						year_of_era / 100);
	month = (5 * of_year + 2) / 153;
	year = era * 400 + year_of_era + (month >= 10);

	p = text + put_year(text, year);
	*p++ = '-';
	p = put_digits(p, month < 10 ? month + 3 : month - 9, 2);
	*p++ = '-';
	p = put_digits(p, of_year - (153 * month + 2) / 5 + 1, 2);
	return (int) (p - text);
}

/* Four digits at least; a sign where ISO 8601 wants one. */
static int
put_year(char *text, int64_t year)
{
	char	   *p = text;
	unsigned	value = (unsigned) (year < 0 ? -year : year);
	unsigned	limit = 10000;
	int			digits = 4;

	while (digits < 9 && value >= limit)
	{
		digits++;
		limit *= 10;
	}
	if (year < 0)
		*p++ = '-';
	else if (digits > 4)
		*p++ = '+';
	return (int) (put_digits(p, value, digits) - text);
}

/* Two times stand in most rows, so printf would be felt here. */
static char *
put_digits(char *text, unsigned value, int digits)
{
	int			i;

	for (i = digits - 1; i >= 0; i--)
	{
		text[i] = (char) ('0' + value % 10);
		value /= 10;
	}
	return text + digits;
}
