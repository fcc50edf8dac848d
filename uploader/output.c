/*-------------------------------------------------------------------------
 *
 * output.c
 *	  Results on standard output, for people or as one JSON document.
 *
 * With --json a run prints exactly one document: the result, or the failure,
 * or for verify the list of faults.  Keys keep their meaning within a major
 * version; what the server does not know is null and never left out.
 *
 * Texts for people go through ev_log_text, since a purpose may hold terminal
 * escapes; in JSON every control character is escaped by the library.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "package/csv.h"

#include "log.h"
#include "output.h"

/* What a good package still does not prove; requirement S1.39. */
static const char *const limits[] = {
	"The SHA-256 values show that the parts agree, not who made them: compare",
	"the SHA-256 of the file with the one in the ledger (pg_evidence show).",
	"They say nothing about the log before the export, about later events, or",
	"about who has kept the file.  No signature was checked."
};

static json_t *text_value(const char *text);
static json_t *count_value(int64_t count);
static json_t *number_value(double number);
static json_t *export_value(const EvExport *export);
static json_t *report_value(const EvVerifyReport *report);
static void print_json(json_t *value);
static void print_field(const char *name, const char *text);
static void print_count(const char *name, int64_t count);

void
ev_output_line(const char *text)
{
	ev_log_text(stdout, text);
	fputc('\n', stdout);
	fflush(stdout);
}

bool
ev_output_finish(void)
{
	return fflush(stdout) == 0 && !ferror(stdout);
}

/* jansson takes valid UTF-8 only; a SQL_ASCII database may send other. */
static json_t *
text_value(const char *text)
{
	EvBuffer	valid = {0};
	uint64_t	invalid = 0;
	json_t	   *value;

	if (text == NULL)
		return json_null();
	value = json_string(text);
	if (value == NULL && ev_utf8_repair(text, strlen(text), &valid, &invalid))
		value = json_stringn(valid.data == NULL ? "" : valid.data,
							 valid.length);
	ev_buffer_free(&valid);
	return value;
}

/* The ledger client has -1 where the view has NULL. */
static json_t *
count_value(int64_t count)
{
	return count < 0 ? json_null() : json_integer(count);
}

/* The same for numbers with a fraction. */
static json_t *
number_value(double number)
{
	return number < 0 ? json_null() : json_real(number);
}

/* An empty text of the report means that it is unknown. */
static json_t *
known_value(const char *text)
{
	return text_value(text[0] == '\0' ? NULL : text);
}

/* Takes the value over.  Sorted keys make two runs comparable. */
static void
print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
	fputc('\n', stdout);
	json_decref(value);
}

/* Keys are the columns of the status view, but for units and the error. */
static json_t *
export_value(const EvExport *export)
{
	json_t	   *value = json_object();
	json_t	   *error = json_null();

	if (export->error_code != NULL || export->error_message != NULL)
	{
		error = json_object();
		json_object_set_new(error, "code", text_value(export->error_code));
		json_object_set_new(error, "message",
							text_value(export->error_message));
		json_object_set_new(error, "hint", text_value(export->error_hint));
	}
	json_object_set_new(value, "id", text_value(export->id));
	json_object_set_new(value, "state", text_value(export->state));
	json_object_set_new(value, "source", text_value(export->source));
	json_object_set_new(value, "start_at", text_value(export->start_at));
	json_object_set_new(value, "end_at", text_value(export->end_at));
	json_object_set_new(value, "purpose", text_value(export->purpose));
	json_object_set_new(value, "requested_by",
						text_value(export->requested_by));
	json_object_set_new(value, "requested_at",
						text_value(export->requested_at));
	json_object_set_new(value, "attempt", count_value(export->attempt));
	json_object_set_new(value, "progress", number_value(export->progress));
	json_object_set_new(value, "rows_total", count_value(export->rows_total));
	json_object_set_new(value, "rows_done", count_value(export->rows_done));
	json_object_set_new(value, "bytes_done", count_value(export->bytes_done));
	json_object_set_new(value, "rows_per_second",
						number_value(export->rows_per_second));
	json_object_set_new(value, "eta_low_seconds",
						number_value(export->eta_low));
	json_object_set_new(value, "eta_high_seconds",
						number_value(export->eta_high));
	json_object_set_new(value, "record_count",
						count_value(export->record_count));
	json_object_set_new(value, "archive_bytes",
						count_value(export->archive_bytes));
	json_object_set_new(value, "archive_sha256",
						text_value(export->archive_sha256));
	json_object_set_new(value, "ready_at", text_value(export->ready_at));
	json_object_set_new(value, "expires_at", text_value(export->expires_at));
	json_object_set_new(value, "cancelled_at",
						text_value(export->cancelled_at));
	json_object_set_new(value, "stopped_at", text_value(export->stopped_at));
	json_object_set_new(value, "error", error);
	return value;
}

/* Every check with its verdict, then the faults, then what was counted. */
static json_t *
report_value(const EvVerifyReport *report)
{
	static const char *const words[] = {
		[EV_VERDICT_SKIPPED] = "skipped",
		[EV_VERDICT_PASSED] = "passed",
		[EV_VERDICT_FAILED] = "failed"
	};
	json_t	   *value = json_object();
	json_t	   *checks = json_object();
	json_t	   *faults = json_array();
	int			i;

	for (i = 0; i < EV_CHECK_COUNT; i++)
		json_object_set_new(checks, ev_check_name((EvCheck) i),
							json_string(words[report->verdicts[i]]));
	for (i = 0; i < report->nfaults && i < EV_FAULT_LIMIT; i++)
	{
		json_t	   *fault = json_object();
		const EvFault *found = &report->faults[i];

		json_object_set_new(fault, "check",
							json_string(ev_check_name(found->check)));
		json_object_set_new(fault, "text", text_value(found->text));
		json_array_append_new(faults, fault);
	}
	json_object_set_new(value, "intact", json_boolean(report->nfaults == 0));
	json_object_set_new(value, "checks", checks);
	json_object_set_new(value, "faults", faults);
	json_object_set_new(value, "fault_count", json_integer(report->nfaults));
	json_object_set_new(value, "export_id", known_value(report->export_id));
	json_object_set_new(value, "source", known_value(report->source));
	json_object_set_new(value, "start_at", known_value(report->range_start));
	json_object_set_new(value, "end_at", known_value(report->range_end));
	json_object_set_new(value, "records", count_value(report->records));
	json_object_set_new(value, "records_bytes",
						count_value(report->records_bytes));
	json_object_set_new(value, "records_sha256",
						known_value(report->records_sha256));
	json_object_set_new(value, "archive_bytes",
						count_value(report->archive_bytes));
	json_object_set_new(value, "archive_sha256",
						known_value(report->archive_sha256));
	return value;
}

void
ev_output_list(const EvExportList *list, bool json)
{
	int			i;

	if (json)
	{
		json_t	   *exports = json_array();
		json_t	   *value = json_object();

		for (i = 0; i < list->count; i++)
			json_array_append_new(exports, export_value(&list->exports[i]));
		json_object_set_new(value, "exports", exports);
		print_json(value);
		return;
	}
	if (list->count == 0)
	{
		ev_log_note("there is no such export");
		return;
	}
	printf("%-36s  %-10s  %9s  %-27s  %s\n", "ID", "STATE", "RECORDS",
		   "REQUESTED", "PURPOSE");
	for (i = 0; i < list->count; i++)
	{
		const EvExport *export = &list->exports[i];
		char		records[24] = "";

		if (export->record_count >= 0)
			snprintf(records, sizeof(records), "%" PRId64,
					 export->record_count);
		printf("%-36s  %-10s  %9s  %-27s  ", export->id, export->state,
			   records,
			   export->requested_at == NULL ? "" : export->requested_at);
		ev_log_text(stdout, export->purpose == NULL ? "" : export->purpose);
		fputc('\n', stdout);
	}
}

/* A line of "show"; what is unknown is left out. */
static void
print_field(const char *name, const char *text)
{
	if (text == NULL || text[0] == '\0')
		return;
	printf("%-16s ", name);
	ev_log_text(stdout, text);
	fputc('\n', stdout);
}

/* The same for a count. */
static void
print_count(const char *name, int64_t count)
{
	if (count >= 0)
		printf("%-16s %" PRId64 "\n", name, count);
}

void
ev_output_export(const EvExport *export, bool json)
{
	if (json)
	{
		ev_output_result(export, NULL, NULL);
		return;
	}
	print_field("id", export->id);
	print_field("state", export->state);
	print_field("source", export->source);
	print_field("start", export->start_at);
	print_field("end", export->end_at);
	print_field("purpose", export->purpose);
	print_field("requested by", export->requested_by);
	print_field("requested at", export->requested_at);
	print_count("attempt", export->attempt);
	if (export->progress >= 0)
		printf("%-16s %.1f %%\n", "progress", export->progress * 100);
	print_count("rows total", export->rows_total);
	print_count("rows done", export->rows_done);
	print_count("bytes done", export->bytes_done);
	if (export->rows_per_second >= 0)
		printf("%-16s %.0f\n", "rows per second", export->rows_per_second);
	if (export->eta_low >= 0 && export->eta_high >= 0)
		printf("%-16s %.0f to %.0f s\n", "time left", export->eta_low,
			   export->eta_high);
	print_count("records", export->record_count);
	print_count("archive bytes", export->archive_bytes);
	print_field("archive sha256", export->archive_sha256);
	print_field("ready at", export->ready_at);
	print_field("expires at", export->expires_at);
	print_field("cancelled at", export->cancelled_at);
	print_field("stopped at", export->stopped_at);
	print_field("error code", export->error_code);
	print_field("error", export->error_message);
	print_field("hint", export->error_hint);
}

void
ev_output_result(const EvExport *export, const char *path,
				 const EvVerifyReport *report)
{
	json_t	   *value = json_object();

	json_object_set_new(value, "export", export_value(export));
	if (path != NULL)
	{
		json_object_set_new(value, "file", text_value(path));
		json_object_set_new(value, "verify", report_value(report));
	}
	print_json(value);
}

void
ev_output_report(const char *path, const EvVerifyReport *report, bool json)
{
	size_t		i;
	int			passed = 0;

	if (json)
	{
		json_t	   *value = json_object();

		json_object_set_new(value, "file", text_value(path));
		json_object_set_new(value, "verify", report_value(report));
		print_json(value);
		return;
	}
	ev_log_text(stdout, path);
	if (report->nfaults == 0)
		printf(": intact\n");
	else
		printf(": NOT intact, %d fault%s\n", report->nfaults,
			   report->nfaults == 1 ? "" : "s");
	for (i = 0; i < EV_FAULT_LIMIT && (int) i < report->nfaults; i++)
	{
		printf("  %-9s  ", ev_check_name(report->faults[i].check));
		ev_log_text(stdout, report->faults[i].text);
		fputc('\n', stdout);
	}
	print_field("export", report->export_id);
	print_field("source", report->source);
	print_field("start", report->range_start);
	print_field("end", report->range_end);
	print_count("records", report->records);
	print_field("records sha256", report->records_sha256);
	print_field("file sha256", report->archive_sha256);

	/* What was not checked is told, or "intact" would say too much. */
	for (i = 0; i < EV_CHECK_COUNT; i++)
		passed += report->verdicts[i] == EV_VERDICT_PASSED;
	printf("%-16s %d passed\n", "checks", passed);
	for (i = 0; i < EV_CHECK_COUNT; i++)
		if (report->verdicts[i] == EV_VERDICT_SKIPPED &&
			i != EV_CHECK_IDENTITY)
			printf("%-16s %s\n", "not checked",
				   ev_check_meaning((EvCheck) i));
	fputc('\n', stdout);
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		printf("%s\n", limits[i]);
}

void
ev_output_failure(const EvFailure *failure)
{
	json_t	   *value = json_object();
	json_t	   *error = json_object();
	char		message[sizeof(failure->doing) + sizeof(failure->text) + 2];

	if (failure->doing[0] != '\0')
		snprintf(message, sizeof(message), "%s: %s", failure->doing,
				 failure->text);
	else
		snprintf(message, sizeof(message), "%s", failure->text);
	json_object_set_new(error, "status",
						json_string(ev_status_name(failure->status)));
	json_object_set_new(error, "exit_code", json_integer(failure->status));
	json_object_set_new(error, "sqlstate", known_value(failure->sqlstate));
	json_object_set_new(error, "message", text_value(message));
	json_object_set_new(error, "detail", known_value(failure->detail));
	json_object_set_new(error, "hint", known_value(failure->hint));
	json_object_set_new(error, "export_id", known_value(failure->export_id));
	json_object_set_new(value, "error", error);
	print_json(value);
}
