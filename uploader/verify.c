/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  Check a package offline.
 *
 * The file may have been made to deceive or to harm, so nothing it says is
 * believed before it has been recomputed, nothing of it is ever written to
 * disk or repeated in a message, and memory does not depend on its size: the
 * manifest is limited, records.csv is read as a stream.
 *
 * Every check is made as far as the earlier ones allow, so that a person gets
 * the whole list of faults and not one after the other.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "package/archive.h"
#include "package/buffer.h"
#include "package/manifest.h"

#include "claims.h"
#include "records.h"
#include "verify.h"

#define READ_BLOCK (256 * 1024)

/*
 * How far records.csv may exceed its stated size before reading it ends.  A
 * few forged records are then still counted, a decompression bomb is not
 * unpacked for hours.
 */
#define EXCESS_LIMIT (INT64_C(64) * 1024 * 1024)

/* Without a manifest no size is stated; this is far above any package. */
#define UNSTATED_LIMIT (INT64_C(16) * 1024 * 1024 * 1024)

/* The file, and whether reading it has failed. */
typedef struct Input
{
	int			descriptor;
	int			failure;		/* errno, or 0 */
} Input;

static const char doing[] = "could not verify the package";

static int64_t read_file(void *arg, int64_t offset, void *data,
						 size_t length);
static bool tolerate(const EvFile *file, EvVerifyReport *report,
					 EvError *error);
static bool hash_archive(const EvFile *file, EvVerifyReport *report,
						 EvError *error);
static bool check_archive(const EvFile *file, const char *export_id,
						  EvVerifyReport *report, EvError *error);
static bool read_manifest(const EvFile *file, EvArchive *archive,
						  EvBuffer *manifest, EvVerifyReport *report,
						  EvError *error);
static bool read_records(const EvFile *file, EvArchive *archive,
						 const EvClaims *claims, EvVerifyReport *report,
						 EvError *error);
static void compare(const EvClaims *claims, const EvRecordsFacts *facts,
					EvVerifyReport *report);

EvStatus
ev_verify_path(const char *path, EvVerifyReport *report, EvFailure *failure)
{
	int			descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	EvStatus	status;

	if (descriptor < 0)
		return ev_fail_errno(failure, EV_STATUS_FILE,
							 "could not open file \"%s\"", path);
	status = ev_verify(descriptor, NULL, report, failure);
	close(descriptor);
	return status;
}

EvStatus
ev_verify(int descriptor, const char *export_id, EvVerifyReport *report,
		  EvFailure *failure)
{
	struct stat status;
	Input		input = {descriptor, 0};
	EvFile		file = {&input, read_file, NULL};
	EvError		error = {EV_ERROR_NONE, ""};

	ev_report_clear(report);
	if (fstat(descriptor, &status) != 0)
		return ev_fail_errno(failure, EV_STATUS_FILE, "%s", doing);
	if (!S_ISREG(status.st_mode))
		return ev_fail(failure, EV_STATUS_FILE, doing,
					   "it is not a regular file");
	report->archive_bytes = status.st_size;
	if (!hash_archive(&file, report, &error) ||
		!check_archive(&file, export_id, report, &error))
		return ev_fail_package(failure, doing, &error);
	return EV_STATUS_OK;
}

/* EvFile's read.  The first failure is kept, for tolerate to look at. */
static int64_t
read_file(void *arg, int64_t offset, void *data, size_t length)
{
	Input	   *input = arg;
	ssize_t		got;

	do
		got = pread(input->descriptor, data, length, (off_t) offset);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		input->failure = errno;
	return got;
}

/* The SHA-256 of the whole file, to be compared with the ledger's. */
static bool
hash_archive(const EvFile *file, EvVerifyReport *report, EvError *error)
{
	EvSha256   *hash = ev_sha256_create(error);
	unsigned char digest[EV_SHA256_BYTES];
	unsigned char *block = malloc(READ_BLOCK);
	int64_t		offset = 0;
	int64_t		got = 0;
	bool		done = hash != NULL;

	if (block == NULL)
		done = ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	while (done &&
		   (got = file->read(file->arg, offset, block, READ_BLOCK)) > 0)
	{
		offset += got;
		done = ev_sha256_update(hash, block, (size_t) got, error);
	}
	if (done && got < 0)
		done = ev_error_set(error, EV_ERROR_IO, "%s", strerror(errno));
	if (done)
		done = ev_sha256_finish(hash, digest, error);
	if (done)
		ev_sha256_hex(digest, report->archive_sha256);
	free(block);
	ev_sha256_free(hash);
	return done;
}

/*
 * A damaged or forged archive is a fault, and the checks go on; everything
 * else ends them.  Returns whether they go on.  libzip reports some forgeries
 * as failures of reading, so the file itself is asked whether it failed.
 */
static bool
tolerate(const EvFile *file, EvVerifyReport *report, EvError *error)
{
	const Input *input = file->arg;

	if (error->kind == EV_ERROR_IO && input->failure != 0)
		return ev_error_set(error, EV_ERROR_IO, "%s",
							strerror(input->failure));
	if (error->kind != EV_ERROR_FORMAT && error->kind != EV_ERROR_IO)
		return false;
	ev_report_fault(report, EV_CHECK_LAYOUT, "%s", error->text);
	error->kind = EV_ERROR_NONE;
	return true;
}

/*
 * All checks of an open file.  Without a usable manifest the records are
 * still checked for what every package promises.
 */
static bool
check_archive(const EvFile *file, const char *export_id,
			  EvVerifyReport *report, EvError *error)
{
	EvArchive  *archive = ev_archive_open(file, report->archive_bytes, error);
	EvBuffer	manifest = {0};
	EvClaims	claims = {0};
	bool		done;

	if (archive == NULL)
		return tolerate(file, report, error);
	ev_report_checked(report, EV_CHECK_LAYOUT);
	done = ev_archive_check_layout(archive, error) ||
		tolerate(file, report, error);
	done = done && read_manifest(file, archive, &manifest, report, error);
	if (done && manifest.data != NULL &&
		ev_claims_read(manifest.data, manifest.length, &claims, report,
					   error))
	{
		snprintf(report->export_id, sizeof(report->export_id), "%s",
				 claims.export_id);
		snprintf(report->source, sizeof(report->source), "%s",
				 claims.source);
		snprintf(report->range_start, sizeof(report->range_start), "%s",
				 claims.range_start);
		snprintf(report->range_end, sizeof(report->range_end), "%s",
				 claims.range_end);
		if (export_id != NULL)
		{
			ev_report_checked(report, EV_CHECK_IDENTITY);
			if (strcasecmp(export_id, claims.export_id) != 0)
				ev_report_fault(report, EV_CHECK_IDENTITY, "manifest.json is that of another export");
		}
		done = read_records(file, archive, &claims, report, error);
	}
	else if (done && error->kind == EV_ERROR_NONE)
		done = read_records(file, archive, NULL, report, error);
	else
		done = false;
	ev_claims_free(&claims);
	ev_buffer_free(&manifest);
	ev_archive_close(archive);
	return done;
}

/* Gather the manifest, whose size ev_archive_read has limited. */
static bool
keep_bytes(void *arg, const void *data, size_t length, EvError *error)
{
	if (!ev_buffer_append(arg, data, length))
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	return true;
}

/* Afterwards manifest->data is NULL if there is nothing to look at. */
static bool
read_manifest(const EvFile *file, EvArchive *archive, EvBuffer *manifest,
			  EvVerifyReport *report, EvError *error)
{
	if (!ev_archive_read(archive, EV_MANIFEST_MEMBER, EV_MANIFEST_LIMIT,
						 keep_bytes, manifest, error))
	{
		if (!tolerate(file, report, error))
			return false;
		ev_buffer_free(manifest);
	}
	if (manifest->data == NULL)
		ev_report_fault(report, EV_CHECK_MANIFEST,
						"manifest.json cannot be read");
	return true;
}

/* Stream records.csv through its reader; claims may be NULL. */
static bool
read_records(const EvFile *file, EvArchive *archive, const EvClaims *claims,
			 EvVerifyReport *report, EvError *error)
{
	static const EvCheck always[] = {
		EV_CHECK_COLUMNS, EV_CHECK_CSV, EV_CHECK_UTF8, EV_CHECK_CONTROL,
		EV_CHECK_FORMULA
	};
	EvRecordsRule rule = {0};
	EvRecordsFacts facts;
	EvRecordsReader *reader;
	int64_t		limit = UNSTATED_LIMIT;
	size_t		i;
	bool		done;

	if (ev_archive_member_size(archive, EV_RECORDS_MEMBER) < 0)
	{
		ev_report_fault(report, EV_CHECK_RECORDS,
						"there is no records.csv");
		return true;
	}
	if (claims != NULL)
	{
		rule.columns = claims->columns;
		rule.ncolumns = claims->ncolumns;
		rule.has_range = true;
		rule.start_at = claims->start_at;
		rule.end_at = claims->end_at;
		rule.only_key_typed = strcmp(claims->source, "audit_log") == 0;
		limit = claims->file_bytes < INT64_MAX - EXCESS_LIMIT ?
			claims->file_bytes + EXCESS_LIMIT : INT64_MAX;
	}
	reader = ev_records_create(&rule, error);
	if (reader == NULL)
		return false;
	done = ev_archive_read(archive, EV_RECORDS_MEMBER, limit,
						   ev_records_feed, reader, error) ||
		tolerate(file, report, error);
	done = done && ev_records_finish(reader, report, &facts, error);
	ev_records_free(reader);
	if (!done)
		return false;

	report->records = facts.records < 0 ? 0 : facts.records;
	report->records_bytes = facts.bytes;
	memcpy(report->records_sha256, facts.sha256, sizeof(facts.sha256));
	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		ev_report_checked(report, always[i]);
	if (facts.has_time)
	{
		ev_report_checked(report, EV_CHECK_ORDER);
		if (claims != NULL)
			ev_report_checked(report, EV_CHECK_RANGE);
	}
	if (claims != NULL)
		compare(claims, &facts, report);
	return true;
}

/* The counts of changed cells, as far as the cells still tell them. */
static void
compare_cells(const EvClaims *claims, const EvRecordsFacts *facts,
			  EvVerifyReport *report)
{
	int64_t		cells = (facts->records + 1) * claims->ncolumns;

	ev_report_checked(report, EV_CHECK_CELLS);
	if (facts->guarded != claims->formula_prefixed)
		ev_report_fault(report, EV_CHECK_CELLS, "%" PRId64 " cells carry a guard, manifest.json states %" PRId64,
						facts->guarded, claims->formula_prefixed);

	/* A text may have held a mark before, so there can be more of them. */
	if (facts->marked < claims->redacted)
		ev_report_fault(report, EV_CHECK_CELLS, "%" PRId64 " cells hold a redaction mark, manifest.json states %" PRId64,
						facts->marked, claims->redacted);
	if (!claims->redaction && claims->redacted > 0)
		ev_report_fault(report, EV_CHECK_CELLS, "manifest.json states redacted cells although redaction was off");
	if (claims->cleaned > cells)
		ev_report_fault(report, EV_CHECK_CELLS,
						"manifest.json states more cleaned cells than there are cells");
}

/* What was counted against what is claimed. */
static void
compare(const EvClaims *claims, const EvRecordsFacts *facts,
		EvVerifyReport *report)
{
	int64_t		records = report->records;

	ev_report_checked(report, EV_CHECK_BYTES);
	if (facts->bytes != claims->file_bytes)
		ev_report_fault(report, EV_CHECK_BYTES, "records.csv has %" PRId64 " bytes, manifest.json states %" PRId64,
						facts->bytes, claims->file_bytes);
	ev_report_checked(report, EV_CHECK_SHA256);
	if (strcmp(facts->sha256, claims->file_sha256) != 0)
		ev_report_fault(report, EV_CHECK_SHA256, "records.csv has SHA-256 %s, manifest.json states %s",
						facts->sha256, claims->file_sha256);
	ev_report_checked(report, EV_CHECK_RECORDS);
	if (records != claims->file_rows || records != claims->record_count)
		ev_report_fault(report, EV_CHECK_RECORDS, "records.csv has %" PRId64 " records, manifest.json states %" PRId64,
						records, claims->record_count);
	compare_cells(claims, facts, report);

	if (!facts->has_time || !claims->has_records || records == 0)
		return;
	ev_report_checked(report, EV_CHECK_ENDS);
	if (facts->first_at != claims->first.at ||
		(facts->has_id && facts->first_id != claims->first.id))
		ev_report_fault(report, EV_CHECK_ENDS,
						"the first record is not the one that manifest.json states");
	if (facts->last_at != claims->last.at ||
		(facts->has_id && facts->last_id != claims->last.id))
		ev_report_fault(report, EV_CHECK_ENDS,
						"the last record is not the one that manifest.json states");
}
