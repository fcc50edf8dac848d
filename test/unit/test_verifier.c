/*-------------------------------------------------------------------------
 *
 * test_verifier.c
 *	  The program's reader of records.csv, times and ids.
 *
 * A file comes in blocks that may end anywhere, so each text is read as a
 * whole and byte by byte, and both must find the same.
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "csv.h"
#include "records.h"
#include "tap.h"
#include "timestamp.h"
#include "uuid.h"
#include "verify.h"

#define HEADER "id,created_at,summary\r\n"
#define TIME "2026-11-30T10:00:00.000000Z"
#define ROW "1," TIME ",text\r\n"

static const char *const columns[] = {"id", "created_at", "summary"};

/* Read a text in blocks of that size; the first fault, or an empty text. */
static void
read_in_blocks(const char *text, size_t block, EvVerifyReport *report,
			   EvRecordsFacts *facts)
{
	EvRecordsRule rule = {0};
	EvRecordsReader *reader;
	EvError		error;
	size_t		length = strlen(text);
	size_t		at;

	rule.columns = columns;
	rule.ncolumns = 3;
	rule.only_key_typed = true;
	ev_report_clear(report);
	reader = ev_records_create(&rule, &error);
	for (at = 0; at < length; at += block)
		ev_records_feed(reader, text + at,
						length - at < block ? length - at : block, &error);
	ev_records_finish(reader, report, facts, &error);
	ev_records_free(reader);
}

static void
check_records(const char *text, const char *fault)
{
	static EvVerifyReport whole;
	static EvVerifyReport pieces;
	EvRecordsFacts facts;
	EvRecordsFacts again;

	read_in_blocks(text, 1 << 20, &whole, &facts);
	read_in_blocks(text, 1, &pieces, &again);
	ok(fault == NULL ? whole.nfaults == 0 :
	   strstr(whole.faults[0].text, fault) != NULL, "%s: %s",
	   fault == NULL ? "no fault" : fault, whole.faults[0].text);
	ok(whole.nfaults == pieces.nfaults &&
	   memcmp(whole.faults, pieces.faults, sizeof(whole.faults)) == 0 &&
	   facts.guarded == again.guarded && facts.marked == again.marked &&
	   facts.records == again.records &&
	   strcmp(facts.sha256, again.sha256) == 0,
	   "and the same byte by byte");
}

static void
test_records(void)
{
	char		wide[2000] = "";
	int			i;

	check_records(HEADER ROW, NULL);
	check_records(HEADER "1," TIME ",\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\r\n", NULL);
	check_records(HEADER "1," TIME ",'=\xE2\x80\x8B[redacted:x]\r\n", NULL);
	check_records("", "records.csv is empty");
	check_records("id,created_at\r\n", "header of records.csv");
	check_records(HEADER "1," TIME ",", "last record does not end");
	check_records(HEADER "1," TIME ",\"x", "ends inside a quoted cell");
	check_records(HEADER "1," TIME ",x\r", "last record does not end");
	check_records(HEADER "1," TIME ",\xE2\x82x\r\n", "not valid UTF-8");
	check_records(HEADER "1," TIME ",\xE2\x82", "does not end");
	check_records(HEADER "1," TIME ",\xED\xA0\xBD\r\n", "not valid UTF-8");
	check_records(HEADER "x," TIME ",x\r\n", "id is not a whole number");
	check_records(HEADER "1,yesterday,x\r\n", "created_at is not a time");

	/* A key that is far too long is none. */
	strcat(wide, HEADER);
	for (i = 0; i < 1000; i++)
		strcat(wide, "1");
	strcat(wide, "," TIME ",x\r\n");
	check_records(wide, "id is not a whole number");
}

static void
test_times(void)
{
	static const char *const wrong[] = {
		"", "2026", "2026-13-01T00:00:00.000000Z",
		"2026-02-29T00:00:00.000000Z", "2026-02-28T24:00:00.000000Z",
		"2026-02-28T00:00:60.000000Z", "2026-02-28T00:00:00,000000Z",
		"2026-02-28 00:00:00.000000Z", "202a-02-28T00:00:00.000000Z",
		"2026-02-28T00:00:00.000000z", "+2026-02-28T00:00:00.000000Z",
		"+99999-13-28T00:00:00.000000Z", "+9999x-12-28T00:00:00.000000Z",
		"+999999999-01-01T00:00:00.000000Z", "Infinity", "-Infinity"
	};
	static const int64_t right[] = {
		0, 1, -1, INT64_C(847756800000000), EV_TIMESTAMP_INFINITY,
		EV_TIMESTAMP_MINUS_INFINITY, INT64_C(9000000000000000000),
		INT64_C(-200000000000000000)
	};
	size_t		i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		int64_t		value;

		ok(!ev_timestamp_parse(wrong[i], strlen(wrong[i]), &value),
		   "no time of a package: \"%s\"", wrong[i]);
	}
	for (i = 0; i < sizeof(right) / sizeof(right[0]); i++)
	{
		char		text[EV_TIMESTAMP_TEXT];
		int64_t		value;
		int			length = ev_timestamp_text(right[i], text);

		ok(ev_timestamp_parse(text, (size_t) length, &value) &&
		   value == right[i], "a time there and back: %s", text);
	}
}

static void
test_ids(void)
{
	ok(ev_uuid_is_text("0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6f"), "an id");
	ok(!ev_uuid_is_text("0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6") &&
	   !ev_uuid_is_text("0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6g") &&
	   !ev_uuid_is_text("0f4d8a52x6d0c-4c57-9d0e-1a2b3c4d5e6f"),
	   "and what is none");
}

/* A file that is none, or cannot be read. */
static void
test_files(void)
{
	static EvVerifyReport report;
	EvFailure	failure;
	int			descriptor = memfd_create("x", 0);

	ev_failure_clear(&failure);
	ok(ev_verify(-1, NULL, &report, &failure) == EV_STATUS_FILE,
	   "no file: %s", failure.text);
	ok(ev_verify_path("/nowhere/x.zip", &report, &failure) == EV_STATUS_FILE,
	   "no such file: %s", failure.text);
	ok(ev_verify_path("/dev/null", &report, &failure) == EV_STATUS_FILE,
	   "no regular file: %s", failure.text);
	ok(ev_verify(descriptor, NULL, &report, &failure) == EV_STATUS_OK &&
	   report.nfaults > 0, "an empty one: %s", report.faults[0].text);
	close(descriptor);

	/* A file that may be written and not read. */
	descriptor = open("test_verifier.tmp", O_WRONLY | O_CREAT, 0600);
	unlink("test_verifier.tmp");
	ok(write(descriptor, "x", 1) == 1 &&
	   ev_verify(descriptor, NULL, &report, &failure) == EV_STATUS_FILE,
	   "one that cannot be read: %s", failure.text);
	close(descriptor);
}

int
main(void)
{
	test_records();
	test_times();
	test_ids();
	test_files();
	return tap_done();
}
