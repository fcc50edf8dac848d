/*-------------------------------------------------------------------------
 *
 * timestamp.c
 *	  Read the one text form that times have in a package.
 *
 * Times are compared as microseconds since 2000-01-01 UTC, never as text: a
 * year above 9999 or BC does not sort as text does.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "package/csv.h"

#include "timestamp.h"

/* The length of YYYY-MM-DDTHH:MM:SS.ffffffZ. */
#define PLAIN_LENGTH 27
#define TAIL_LENGTH (PLAIN_LENGTH - 4)	/* the same without the year */

#define YEAR_DIGITS 6

/* The last year of PostgreSQL; one more does not fit into 64 bits. */
#define LAST_YEAR 294276
#define MICROSECONDS INT64_C(1000000)
#define DAY_SECONDS 86400

/* Days from 0000-03-01 of the proleptic Gregorian calendar to 2000-01-01. */
#define EPOCH_DAYS 730425

/* Read count digits; false if one of them is none. */
static bool
read_digits(const char *text, int count, int64_t *value)
{
	int			i;

	*value = 0;
	for (i = 0; i < count; i++)
	{
		if (text[i] < '0' || text[i] > '9')
			return false;
		*value = *value * 10 + (text[i] - '0');
	}
	return true;
}

/*
 * Days since 2000-01-01.  Years are counted from March, so that the leap day
 * is the last day of a year.
 */
static int64_t
days_of(int64_t year, int64_t month, int64_t day)
{
	int64_t		shifted = month > 2 ? year : year - 1;
	int64_t		era = (shifted >= 0 ? shifted : shifted - 399) / 400;
	int64_t		year_of_era = shifted - era * 400;
	int64_t		march_month = month > 2 ? month - 3 : month + 9;
	int64_t		day_of_year = (153 * march_month + 2) / 5 + day - 1;

	return era * 146097 + year_of_era * 365 + year_of_era / 4 -
		year_of_era / 100 + day_of_year - EPOCH_DAYS;
}

/* Read -MM-DDTHH:MM:SS.ffffffZ. */
static bool
read_tail(const char *tail, int64_t year, int64_t *microseconds)
{
	int64_t		month;
	int64_t		day;
	int64_t		hour;
	int64_t		minute;
	int64_t		second;
	int64_t		fraction;
	int64_t		days;

	if (tail[0] != '-' || !read_digits(tail + 1, 2, &month) ||
		tail[3] != '-' || !read_digits(tail + 4, 2, &day) ||
		tail[6] != 'T' || !read_digits(tail + 7, 2, &hour) ||
		tail[9] != ':' || !read_digits(tail + 10, 2, &minute) ||
		tail[12] != ':' || !read_digits(tail + 13, 2, &second) ||
		tail[15] != '.' || !read_digits(tail + 16, 6, &fraction) ||
		tail[22] != 'Z')
		return false;
	if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 ||
		second > 59)
		return false;
	days = days_of(year, month, day);
	if (days >= (month == 12 ? days_of(year + 1, 1, 1) :
				 days_of(year, month + 1, 1)))
		return false;
	*microseconds = (days * DAY_SECONDS + hour * 3600 + minute * 60 + second) *
		MICROSECONDS + fraction;
	return true;
}

bool
ev_timestamp_parse(const char *text, size_t length, int64_t *microseconds)
{
	char		again[EV_TIMESTAMP_TEXT];
	int64_t		year;

	if (length == PLAIN_LENGTH && read_digits(text, 4, &year))
		return read_tail(text + 4, year, microseconds);

	if (length == 8 && memcmp(text, "infinity", 8) == 0)
		*microseconds = EV_TIMESTAMP_INFINITY;
	else if (length == 9 && memcmp(text, "-infinity", 9) == 0)
		*microseconds = EV_TIMESTAMP_MINUS_INFINITY;
	else if (length >= PLAIN_LENGTH + 1 &&
			 length <= TAIL_LENGTH + 1 + YEAR_DIGITS)
	{
		if (!read_digits(text + 1, (int) (length - TAIL_LENGTH - 1), &year) ||
			year > LAST_YEAR ||
			!read_tail(text + length - TAIL_LENGTH,
					   text[0] == '-' ? -year : year, microseconds))
			return false;
	}
	else
		return false;

	/* These forms are rare; a way back proves that this is the form. */
	return ev_timestamp_text(*microseconds, again) == (int) length &&
		memcmp(again, text, length) == 0;
}
