/*-------------------------------------------------------------------------
 *
 * test_csv.c
 *	  The CSV writer: quoting, NULL, numbers, times, blocks, counts.
 *
 * Cases C12, C13, C18 and the fixed block size that C35 rests on.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "tap.h"

typedef struct Sink
{
	EvBuffer	bytes;
	size_t		blocks;
	bool		odd_block;		/* a block that is not the last was short */
	bool		refuse;
} Sink;

static bool
take(void *arg, const void *data, size_t length, EvError *error)
{
	Sink	   *sink = arg;

	if (sink->refuse)
		return ev_error_set(error, EV_ERROR_IO, "sink is full");
	if (sink->blocks > 0 && sink->bytes.length % EV_CSV_BLOCK != 0)
		sink->odd_block = true;
	sink->blocks++;
	return ev_buffer_append(&sink->bytes, data, length);
}

/* One record of one text. */
static void
check_text(const char *text, const char *wanted, const char *name)
{
	Sink		sink = {0};
	EvError		error;
	EvCsvWriter *writer = ev_csv_create(NULL, take, &sink, &error);

	ok(ev_csv_text(writer, text, strlen(text), &error) &&
	   ev_csv_end_record(writer, &error) && ev_csv_finish(writer, &error),
	   "%s is written", name);
	is(sink.bytes.data, wanted, name);
	ev_csv_free(writer);
	ev_buffer_free(&sink.bytes);
}

static void
test_quoting(void)
{
	check_text("plain", "plain\r\n", "plain text");
	check_text("", "\"\"\r\n", "C13 empty text");
	check_text(" ", "\" \"\r\n", "C13 one blank");
	check_text("a ", "\"a \"\r\n", "blank at the end");
	check_text("NULL", "NULL\r\n", "C13 the word NULL");
	check_text("\\", "\\\r\n", "C12 backslash");
	check_text("\"", "\"\"\"\"\r\n", "C12 one quote");
	check_text("a\"b,c\"d", "\"a\"\"b,c\"\"d\"\r\n", "C12 quotes and comma");
	check_text(",", "\",\"\r\n", "C12 comma");
	check_text("=a,b", "\"'=a,b\"\r\n", "guard inside quotes");
	check_text(" =a", "' =a\r\n", "guard in front of a blank");
	check_text("x;y", "x;y\r\n", "semicolon");
	check_text("0123456789abcdef,", "\"0123456789abcdef,\"\r\n",
			   "comma behind sixteen bytes");
	check_text("0123456789\"abcdefghijk", "\"0123456789\"\"abcdefghijk\"\r\n",
			   "quote in the middle of a block");
}

static void
test_record(void)
{
	Sink		sink = {0};
	EvError		error;
	EvCsvWriter *writer = ev_csv_create(NULL, take, &sink, &error);
	bool		done;

	done = ev_csv_integer(writer, INT64_MIN, &error) &&
		ev_csv_null(writer, &error) &&
		ev_csv_text(writer, "", 0, &error) &&
		ev_csv_integer(writer, 0, &error) &&
		ev_csv_timestamp(writer, 0, &error) &&
		ev_csv_null(writer, &error) && ev_csv_end_record(writer, &error) &&
		ev_csv_null(writer, &error) &&
		ev_csv_text(writer, "=x\t\xFF", 4, &error) &&
		ev_csv_end_record(writer, &error) && ev_csv_finish(writer, &error);
	ok(done, "a record of all kinds is written");
	is(sink.bytes.data, "-9223372036854775808,,\"\",0,"
	   "2000-01-01T00:00:00.000000Z,\r\n,'=x \xEF\xBF\xBD\r\n",
	   "C13 NULL is bare and the empty text is quoted");
	ok(ev_csv_counts(writer)->formula_prefixed == 1 &&
	   ev_csv_counts(writer)->cleaned == 1 &&
	   ev_csv_counts(writer)->redacted == 0, "a cell counts once in each kind");
	ev_csv_free(writer);
	ev_buffer_free(&sink.bytes);
}

static void
check_time(int64_t microseconds, const char *wanted)
{
	char		text[EV_TIMESTAMP_TEXT];
	int			length = ev_timestamp_text(microseconds, text);

	is(text, wanted, wanted);
	ok(length == (int) strlen(wanted), "length of %s", wanted);
}

#define DAY INT64_C(86400000000)

static void
test_times(void)
{
	check_time(0, "2000-01-01T00:00:00.000000Z");
	check_time(-1, "1999-12-31T23:59:59.999999Z");
	check_time(59 * DAY, "2000-02-29T00:00:00.000000Z");
	check_time(60 * DAY - 1, "2000-02-29T23:59:59.999999Z");
	check_time(INT64_C(837388799123456), "2026-07-14T23:59:59.123456Z");
	check_time(-36524 * DAY, "1900-01-01T00:00:00.000000Z");
	check_time(-36466 * DAY, "1900-02-28T00:00:00.000000Z");
	check_time(-36465 * DAY, "1900-03-01T00:00:00.000000Z");
	check_time(EV_TIMESTAMP_INFINITY, "infinity");
	check_time(EV_TIMESTAMP_MINUS_INFINITY, "-infinity");
	check_time(INT64_C(316390060800000000), "+12026-01-01T00:00:00.000000Z");
	check_time(-746117 * DAY, "-0043-03-15T00:00:00.000000Z");
	check_time(-730485 * DAY, "0000-01-01T00:00:00.000000Z");
	check_time(-730486 * DAY, "-0001-12-31T00:00:00.000000Z");
	check_time(2921940 * DAY, "+10000-01-01T00:00:00.000000Z");
	check_time(2921940 * DAY - 1, "9999-12-31T23:59:59.999999Z");

	/* The ends of what a PostgreSQL timestamp can hold. */
	check_time(INT64_C(9223371331199999999), "+294276-12-31T23:59:59.999999Z");
	check_time(INT64_C(-211813488000000000), "-4713-11-24T00:00:00.000000Z");
}

/*
 * The block size is part of the format: same cells, same blocks, whatever
 * their lengths.
 */
static void
test_blocks(void)
{
	Sink		sink = {0};
	EvError		error;
	EvCsvWriter *writer = ev_csv_create(NULL, take, &sink, &error);
	char	   *text = malloc(3 * EV_CSV_BLOCK);
	bool		done = true;
	int			i;

	memset(text, 'x', 3 * EV_CSV_BLOCK);
	for (i = 0; i < 3000; i++)
		done = done && ev_csv_text(writer, text, (size_t) i, &error) &&
			ev_csv_end_record(writer, &error);
	done = done &&
		ev_csv_text(writer, text, 3 * EV_CSV_BLOCK, &error) &&
		ev_csv_end_record(writer, &error) && ev_csv_finish(writer, &error);
	ok(done, "many blocks are written");
	ok(!sink.odd_block, "all blocks but the last have the fixed size");
	ok(sink.bytes.length == 3000 * 2999 / 2 + 2 + 3000 * 2 +
	   3 * EV_CSV_BLOCK + 2, "no byte is lost between blocks");

	sink.refuse = true;
	ok(!ev_csv_text(writer, text, EV_CSV_BLOCK, &error) &&
	   strcmp(error.text, "sink is full") == 0,
	   "an error of the sink reaches the caller");
	ev_csv_free(writer);
	ev_buffer_free(&sink.bytes);
	free(text);
}

/* The sink refuses the block that is full somewhere within a cell. */
static void
test_full_sink(void)
{
	static const char cell[] = "=\"a\"\"b\",c";
	char	   *text = malloc(EV_CSV_BLOCK);
	int			taken = 0;
	int			left;

	memset(text, 'x', EV_CSV_BLOCK);
	for (left = 1; left < 30; left++)
	{
		Sink		sink = {0};
		EvError		error;
		EvCsvWriter *writer = ev_csv_create(NULL, take, &sink, &error);

		sink.refuse = true;
		ev_csv_text(writer, text, (size_t) (EV_CSV_BLOCK - left), &error);
		taken += ev_csv_text(writer, cell, strlen(cell), &error) &&
			ev_csv_end_record(writer, &error);
		ev_csv_free(writer);
	}
	ok(taken > 0 && taken < 20, "a full sink is told wherever a block ends");
	free(text);
}

static void
test_repair(void)
{
	EvBuffer	out = {0};
	uint64_t	invalid;

	ok(ev_utf8_repair("a\xC3\xA4\xFFz\xE2\x82", 7, &out, &invalid) &&
	   invalid == 3, "bad bytes are counted");
	is(out.data, "a\xC3\xA4\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD",
	   "each bad byte becomes U+FFFD");
	ev_buffer_free(&out);
}

int
main(void)
{
	test_quoting();
	test_record();
	test_times();
	test_blocks();
	test_full_sink();
	test_repair();
	return tap_done();
}
