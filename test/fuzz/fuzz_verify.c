/*-------------------------------------------------------------------------
 *
 * fuzz_verify.c
 *	  The offline verifier against files made to deceive it, and against
 *	  honest ones.
 *
 * The first byte of an input picks one of three:
 *
 *	  ZIP		the bytes are the file.
 *	  MEMBERS	they are manifest.json and records.csv, which are put into a
 *				ZIP without fault, so that the checks behind the ZIP are met.
 *	  CELLS		they are the cells of a package that is made as the exporter
 *				makes it.  That one must be intact, and no longer so when one
 *				bit of its records has changed.
 *
 *-------------------------------------------------------------------------
 */
#include <sys/mman.h>
#include <unistd.h>

#include "manifest.h"
#include "memory_file.h"
#include "package.h"

#include "verify.h"

#include "fuzz.h"

enum
{
	INPUT_ZIP, INPUT_MEMBERS, INPUT_CELLS, INPUT_KINDS
};

#define EXPORT_ID "0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6f"
#define START INT64_C(847756800000000)
#define END (START + INT64_C(2592000000000))
#define ROW_CELLS 3

static const char *const columns[] = {
	"id", "created_at", "actor_id", "action", "summary"
};

static EvVerifyReport report;

/* The file exists in memory only; one serves all inputs. */
static void
verify(const void *data, size_t length)
{
	static int	descriptor = -1;
	EvFailure	failure;
	int			i;

	if (descriptor < 0)
		descriptor = memfd_create("package", 0);
	demand(descriptor >= 0);
	demand(ftruncate(descriptor, 0) == 0);
	demand(pwrite(descriptor, data, length, 0) == (ssize_t) length);
	ev_failure_clear(&failure);

	/* Whatever the bytes are, they can be read, so there is a report. */
	demand(ev_verify(descriptor, EXPORT_ID, &report, &failure) ==
		   EV_STATUS_OK);
	demand(report.archive_bytes == (int64_t) length);
	demand(report.records >= -1 && report.records_bytes >= -1);
	demand(report.nfaults >= 0);
	for (i = 0; i < report.nfaults && i < EV_FAULT_LIMIT; i++)
	{
		const EvFault *fault = &report.faults[i];

		demand(fault->check < EV_CHECK_COUNT && fault->text[0] != '\0');
		demand(report.verdicts[fault->check] == EV_VERDICT_FAILED);
	}
	for (i = 0; i < EV_CHECK_COUNT; i++)
		demand(report.verdicts[i] != EV_VERDICT_FAILED || report.nfaults > 0);
}

/* A ZIP that is right, with these two members. */
static void
write_zip(const void *records, size_t records_length, const void *manifest,
		  size_t manifest_length, MemoryFile *out)
{
	static MemoryFile spools[2];
	EvMember	members[2];
	EvError		error;
	int64_t		size;
	int			i;

	for (i = 0; i < 2; i++)
	{
		EvSpool    *spool;

		ev_buffer_free(&spools[i].bytes);
		memory_file_start(&spools[i]);
		spool = ev_spool_create(&spools[i].file, 0, &error);
		demand(spool != NULL);
		demand(ev_spool_feed(spool, i == 0 ? records : manifest,
							 i == 0 ? records_length : manifest_length,
							 &error));
		demand(ev_spool_finish(spool, &members[i], &error));
		ev_spool_free(spool);
		members[i].name = i == 0 ? EV_RECORDS_MEMBER : EV_MANIFEST_MEMBER;
	}
	memory_file_start(out);
	demand(ev_archive_write(members, 2, &out->file, 0, &size, &error));
}

/* The manifest ends where the separator stands. */
static void
try_members(const uint8_t *data, size_t size)
{
	MemoryFile	file;
	Piece		manifest = {"", 0};

	(void) next_piece(&data, &size, &manifest);
	write_zip(data, size, manifest.text, manifest.length, &file);
	verify(file.bytes.data, file.bytes.length);
	demand(report.verdicts[EV_CHECK_LAYOUT] == EV_VERDICT_PASSED);
	ev_buffer_free(&file.bytes);
}

/* Text, or NULL for a piece that is one byte. */
static void
write_text(EvCsvWriter *csv, const Piece *piece)
{
	char	   *copy = exact_copy(piece->text, piece->length);
	EvError		error;

	if (piece->length == 1 && copy[0] == '\xFD')
		demand(ev_csv_null(csv, &error));
	else
		demand(ev_csv_text(csv, copy, piece->length, &error));
	free(copy);
}

static void
write_records(EvCsvWriter *csv, const uint8_t *data, size_t size,
			  EvManifest *manifest)
{
	EvError		error;
	Piece		piece;
	int			i;

	for (i = 0; i < manifest->request.ncolumns; i++)
		demand(ev_csv_text(csv, columns[i], strlen(columns[i]), &error));
	demand(ev_csv_end_record(csv, &error));
	manifest->first_at = START;
	manifest->first_id = -1;
	while (size > 0)
	{
		/* Several of one time, as real logs have them. */
		manifest->last_id = (int64_t) manifest->record_count - 1;
		manifest->last_at = START + manifest->last_id / 3 * 7654321;
		if (manifest->record_count == 0)
			manifest->last_at = START;
		demand(ev_csv_integer(csv, manifest->last_id, &error));
		demand(ev_csv_timestamp(csv, manifest->last_at, &error));
		for (i = 0; i < ROW_CELLS; i++)
		{
			if (next_piece(&data, &size, &piece))
				write_text(csv, &piece);
			else
				demand(ev_csv_null(csv, &error));
		}
		demand(ev_csv_end_record(csv, &error));
		manifest->record_count++;
		manifest->has_records = true;
	}
}

static void
describe(EvManifest *manifest, const char digest[EV_SHA256_HEX])
{
	memset(manifest, 0, sizeof(*manifest));
	manifest->request.source = "audit_log";
	manifest->request.start_at = START;
	manifest->request.end_at = END;
	manifest->request.columns = columns;
	manifest->request.ncolumns = 2 + ROW_CELLS;
	manifest->request.purpose = "fuzz";
	manifest->export_id = EXPORT_ID;
	manifest->requested_by = "alice";
	manifest->requested_at = END;
	manifest->request_digest = digest;
	manifest->policy_version = 1;
	manifest->consistency = "as-of-request";
	manifest->snapshot_at = END;
	manifest->pg_snapshot = "10:20:";
	manifest->system_identifier = "7000000000000000001";
	manifest->redaction = true;
	manifest->ruleset_version = 1;
	manifest->ruleset_sha256 = digest;
	manifest->producer_version = "1.0";
}

/* What the verifier complains of, for whoever reads the fuzzer's output. */
static void
demand_intact(void)
{
	int			i;

	for (i = 0; i < report.nfaults && i < EV_FAULT_LIMIT; i++)
		fprintf(stderr, "%s\n", report.faults[i].text);
	demand(report.nfaults == 0);
	for (i = 0; i < EV_CHECK_COUNT; i++)
		demand(report.verdicts[i] != EV_VERDICT_FAILED);
	demand(report.verdicts[EV_CHECK_SHA256] == EV_VERDICT_PASSED);
	demand(report.verdicts[EV_CHECK_CELLS] == EV_VERDICT_PASSED);
}

/* Keeps records.csv while the package hashes and counts it. */
static bool
keep(void *arg, const void *data, size_t length, EvError *error)
{
	(void) error;
	return ev_buffer_append(arg, data, length);
}

/* The two bytes in front of the cells say which bit is changed. */
static void
try_cells(const uint8_t *data, size_t size)
{
	EvManifest	manifest;
	EvCsvWriter *csv;
	EvBuffer	records = {0};
	EvBuffer	text = {0};
	EvError		error;
	MemoryFile	file;
	unsigned char hash[EV_SHA256_BYTES];
	char		digest[EV_SHA256_HEX];
	char		sha256[EV_SHA256_HEX];
	size_t		place;

	if (size < 2)
		return;
	place = (size_t) data[0] << 8 | data[1];
	describe(&manifest, digest);
	demand(ev_request_digest(&manifest.request, digest, &error));
	csv = ev_csv_create(builtin_redactor(), keep, &records, &error);
	demand(csv != NULL);
	write_records(csv, data + 2, size - 2, &manifest);
	demand(ev_csv_finish(csv, &error));
	manifest.cells = *ev_csv_counts(csv);
	ev_csv_free(csv);
	demand(ev_sha256(records.data, records.length, hash, &error));
	ev_sha256_hex(hash, sha256);
	manifest.records_sha256 = sha256;
	manifest.records_bytes = records.length;
	demand(ev_manifest_json(&manifest, builtin_redactor(), &text, &error));

	write_zip(records.data, records.length, text.data, text.length, &file);
	verify(file.bytes.data, file.bytes.length);
	demand_intact();
	demand(report.records == (int64_t) manifest.record_count);
	ev_buffer_free(&file.bytes);

	records.data[place / 8 % records.length] ^= (char) (1 << place % 8);
	write_zip(records.data, records.length, text.data, text.length, &file);
	verify(file.bytes.data, file.bytes.length);
	demand(report.verdicts[EV_CHECK_SHA256] == EV_VERDICT_FAILED);
	ev_buffer_free(&file.bytes);
	ev_buffer_free(&records);
	ev_buffer_free(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0] % INPUT_KINDS)
	{
		case INPUT_ZIP:
			verify(data + 1, size - 1);
			break;
		case INPUT_MEMBERS:
			try_members(data + 1, size - 1);
			break;
		case INPUT_CELLS:
			try_cells(data + 1, size - 1);
			break;
	}
	return 0;
}
