/*-------------------------------------------------------------------------
 *
 * test_failing.c
 *	  Every call that can fail does so once, in every place.
 *
 * A piece of work is done again and again, and each time another one of the
 * calls that it makes to allocators and libraries fails.  The work must then
 * say so, must give back all memory, and must never report success: a package
 * that lacks bytes or keeps a secret because memory was short would be worse
 * than none.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "anchor.h"
#include "manifest.h"
#include "memory_file.h"
#include "package.h"
#include "redact_rule.h"
#include "records.h"
#include "verify.h"

#include "failing.h"
#include "tap.h"

#define START INT64_C(847756800000000)
#define EXPORT_ID "0f4d8a52-6d0c-4c57-9d0e-1a2b3c4d5e6f"

/* Does the work; false with *error filled when it failed. */
typedef bool (*Work) (EvError *error);

static const char *const columns[] = {"id", "created_at", "summary"};

/* Each of these takes another way through guard, redaction and cleaning. */
static const char *const texts[] = {
	"plain", "=1+1", "'=x, \"quoted\"", "two\r\nlines\x01",
	"pass\xE2\x80\x8Bword=Ez65530QkTv and token: " "Zr81kQvT0bLmW2",
	"p%61ssword%3DEz65530QkTv", "a\xFF" "b\xE2\x80\xAE" "c",
	"AKIA\nQ7RMT2XVB94LSWD0", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac",
	"cGFzc3dvcmQ9RXo2NTUzMFFrVHYgYW5kIG1vcmU=",
	"badge 12\nbadge 34", "gh\xE2\x80\x8Bp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z45"
};

/* The files are the caller's business: they do not fail here. */
static int64_t
read_calmly(void *arg, int64_t offset, void *data, size_t length)
{
	bool		armed = failing_armed;
	int64_t		got;

	failing_armed = false;
	got = memory_read(arg, offset, data, length);
	failing_armed = armed;
	return got;
}

static bool
write_calmly(void *arg, int64_t offset, const void *data, size_t length)
{
	bool		armed = failing_armed;
	bool		done;

	failing_armed = false;
	done = memory_write(arg, offset, data, length);
	failing_armed = armed;
	return done;
}

static void
start_calmly(MemoryFile *file)
{
	memory_file_start(file);
	file->file.read = read_calmly;
	file->file.write = write_calmly;
}

static EvRedactor *
make_redactor(EvError *error)
{
	static const char *const anchors[] = {"badge"};
	static EvRule rules[64];
	int			n = ev_builtin_rule_count;

	memcpy(rules, ev_builtin_rules, (size_t) n * sizeof(EvRule));
	rules[n++] = (EvRule)
	{
		"badge", "badge ([0-9]+)", anchors, 1, EV_RULE_JOIN_LINES
	};
	rules[n++] = (EvRule)
	{
		"evil", "(a+)+$", NULL, 0, 0
	};
	return ev_redactor_create(rules, n, error);
}

static EvManifest
make_manifest(const char *digest, EvRecords *records)
{
	static const char *const actions[] = {"login.failure", "login.success"};
	static const EvFilter filters[] = {{"action", actions, 2}};
	EvManifest	manifest = {0};

	manifest.request.source = "audit_log";
	manifest.request.start_at = START;
	manifest.request.end_at = START + INT64_C(86400000000);
	manifest.request.filters = filters;
	manifest.request.nfilters = 1;
	manifest.request.columns = columns;
	manifest.request.ncolumns = 3;
	manifest.request.purpose = "quarterly review";
	manifest.export_id = EXPORT_ID;
	manifest.requested_by = "alice";
	manifest.requested_at = START;
	manifest.request_digest = digest;
	manifest.consistency = "as-of-request";
	manifest.snapshot_at = START;
	manifest.redaction = true;
	manifest.ruleset_version = 1;
	manifest.ruleset_sha256 = digest;
	manifest.producer_version = "1.0";
	manifest.record_count = sizeof(texts) / sizeof(texts[0]);
	manifest.has_records = true;
	manifest.first_at = START;
	manifest.last_at = START + (int64_t) manifest.record_count - 1;
	manifest.last_id = (int64_t) manifest.record_count - 1;
	manifest.records_bytes = records->bytes;
	manifest.records_sha256 = records->sha256;
	manifest.cells = records->cells;
	return manifest;
}

static bool
write_rows(EvCsvWriter *csv, EvError *error)
{
	int			i;

	for (i = 0; i < 3; i++)
		if (!ev_csv_text(csv, columns[i], strlen(columns[i]), error))
			return false;
	if (!ev_csv_end_record(csv, error))
		return false;
	for (i = 0; i < (int) (sizeof(texts) / sizeof(texts[0])); i++)
		if (!ev_csv_integer(csv, i, error) ||
			!ev_csv_timestamp(csv, START + i, error) ||
			!ev_csv_text(csv, texts[i], strlen(texts[i]), error) ||
			!ev_csv_end_record(csv, error))
			return false;
	return true;
}

/* From rows to the bytes of an archive, in *out. */
static bool
make_package(MemoryFile *out, EvError *error)
{
	EvRedactor *redactor = make_redactor(error);
	EvPackage  *package = NULL;
	EvManifest	manifest;
	EvRecords	records;
	EvBuffer	text = {0};
	char		digest[EV_SHA256_HEX] = "";
	int64_t		start;
	int64_t		size;
	bool		done;

	if (redactor != NULL)
		package = ev_package_create(redactor, &out->file, error);
	done = package != NULL &&
		write_rows(ev_package_csv(package), error) &&
		ev_package_close_records(package, &records, error);
	if (done)
	{
		manifest = make_manifest(digest, &records);
		done = ev_request_digest(&manifest.request, digest, error) &&
			ev_manifest_json(&manifest, redactor, &text, error) &&
			ev_package_write_archive(package, text.data, text.length, &start,
									 &size, error);
	}
	if (done)
	{
		memmove(out->bytes.data, out->bytes.data + start, (size_t) size);
		out->bytes.length = (size_t) size;
	}
	ev_buffer_free(&text);
	ev_package_free(package);
	ev_redactor_free(redactor);
	failing_armed = false;
	return done;
}

static bool
work_package(EvError *error)
{
	MemoryFile	out;
	bool		done;

	start_calmly(&out);
	done = make_package(&out, error);
	ev_buffer_free(&out.bytes);
	return done;
}

/* Digests that a server takes beside the packages. */
static bool
work_digests(EvError *error)
{
	unsigned char digest[EV_SHA256_BYTES];
	char		hex[EV_SHA256_HEX];

	return ev_ruleset_digest(ev_builtin_rules, ev_builtin_rule_count, 1, hex,
							 error) &&
		ev_hmac_sha256("key", 3, "data", 4, digest, error);
}

static int	package_file = -1;

/* One package, made before anything fails, is verified again and again. */
static bool
prepare_file(void)
{
	MemoryFile	out;
	EvError		error;
	bool		done;

	start_calmly(&out);
	package_file = memfd_create("package", 0);
	done = make_package(&out, &error) &&
		pwrite(package_file, out.bytes.data, out.bytes.length, 0) ==
		(ssize_t) out.bytes.length;
	ev_buffer_free(&out.bytes);
	return done;
}

/*
 * A library that cannot read the archive makes a fault of the package, since
 * it does not tell that from a damaged one; intact it must never be.
 */
static bool
work_verify(EvError *error)
{
	static EvVerifyReport report;
	EvFailure	failure;

	ev_failure_clear(&failure);
	if (ev_verify(package_file, EXPORT_ID, &report, &failure) ==
		EV_STATUS_OK)
	{
		ev_error_set(error, EV_ERROR_LIBRARY, "%s",
					 report.nfaults > 0 ? report.faults[0].text : "intact");
		return report.nfaults == 0;
	}
	ev_error_set(error, EV_ERROR_LIBRARY, "%s", failure.text);
	return false;
}

/* Let one call after the other fail until the work needs no more of them. */
static void
fail_everywhere(const char *name, Work work)
{
	long		before = failing_memory;
	long		silent = 0;
	long		speechless = 0;
	long		leaked = 0;
	long		at;
	bool		done;

	for (at = 0;; at++)
	{
		EvError		error = {EV_ERROR_NONE, ""};

		failing_start(at);
		done = work(&error);
		failing_armed = false;
		if (failing_name[0] == '\0')
			break;
		if (done)
			printf("# success although call %ld, %s, failed\n", at,
				   failing_name);
		silent += done;
		speechless += error.kind == EV_ERROR_NONE || error.text[0] == '\0';
		if (failing_memory != before)
			printf("# %ld pieces lost after call %ld, %s\n",
				   failing_memory - before, at, failing_name);
		leaked += failing_memory != before;
		failing_memory = before;
	}
	ok(done && at > 0, "%s: %ld calls have failed, then it was done", name,
	   at);
	ok(silent == 0, "%s: no failure was taken for success", name);
	ok(speechless == 0, "%s: each failure says why", name);
	ok(leaked == 0, "%s: no failure loses memory", name);
}

/* What is allowed to be released without having been made. */
static void
test_nothing(void)
{
	EvBuffer	buffer = {0};

	ev_redactor_free(NULL);
	ev_csv_free(NULL);
	ev_package_free(NULL);
	ev_anchor_set_free(NULL);
	ev_records_free(NULL);
	ev_spool_free(NULL);
	ev_archive_close(NULL);
	ok(!ev_buffer_reserve(&buffer, SIZE_MAX),
	   "no buffer has room for everything");
}

/* A package that is intact, but not the one that was asked for. */
static void
test_identity(void)
{
	static EvVerifyReport report;
	EvFailure	failure;

	ev_failure_clear(&failure);
	ok(ev_verify(package_file, EXPORT_ID, &report, &failure) ==
	   EV_STATUS_OK && report.nfaults == 0, "the package is intact");
	ok(ev_verify(package_file, "1" EXPORT_ID, &report, &failure) ==
	   EV_STATUS_OK && report.nfaults == 1 &&
	   report.faults[0].check == EV_CHECK_IDENTITY, "%s",
	   report.faults[0].text);
}

/* jansson is told where to find memory, so its calls fail too. */
static void
share_memory_with_jansson(void)
{
	json_set_alloc_funcs(malloc, free);
}

int
main(void)
{
	share_memory_with_jansson();
	ok(prepare_file(), "a package is made");
	test_nothing();
	test_identity();
	fail_everywhere("package", work_package);
	fail_everywhere("digests", work_digests);
	fail_everywhere("verify", work_verify);
	return tap_done();
}
