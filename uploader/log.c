/*-------------------------------------------------------------------------
 *
 * log.c
 *	  What the program says on standard error.
 *
 * A purpose, a reason or a server message is written by people whom the
 * reader need not trust.  An escape sequence in it could rewrite the lines
 * above it on a terminal, so control and bidirectional characters are shown
 * by their code point instead of being sent.
 *
 * A service may write its log as JSON instead, a line for each object, where
 * the escaping of the format does the same.
 *
 * The progress bar (progress.c) leaves an unfinished line on the terminal;
 * every line printed here ends it first.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "package/csv.h"
#include "package/json.h"
#include "package/unicode.h"

#include "log.h"
#include "progress.h"

static bool log_quiet = false;
static bool log_json = false;

static void print_lines(const char *label, const char *text);
static void print_failure(const char *level, const EvFailure *failure);
static void print_json(const char *level, const char *message,
					   const EvFailure *failure, const char *export_id);

void
ev_log_text(FILE *stream, const char *text)
{
	size_t		left = strlen(text);

	while (left > 0)
	{
		uint32_t	code;
		int			length = ev_utf8_decode(text, left, &code);

		/* A database whose encoding is SQL_ASCII may send any bytes. */
		if (length == 0)
		{
			fputs("\357\277\275", stream);
			length = 1;
		}
		else if (ev_is_control(code) || ev_is_bidi(code))
			fprintf(stream, "<U+%04X>", (unsigned) code);
		else
			fwrite(text, 1, (size_t) length, stream);
		text += length;
		left -= (size_t) length;
	}
}

/* A server's detail or hint may have several lines; keep those apart. */
static void
print_lines(const char *label, const char *text)
{
	char		line[1024];

	while (*text != '\0')
	{
		size_t		length = strcspn(text, "\n");

		if (length >= sizeof(line))
			length = sizeof(line) - 1;
		memcpy(line, text, length);
		line[length] = '\0';
		fprintf(stderr, "%s", label);
		ev_log_text(stderr, line);
		fputc('\n', stderr);
		text += length;
		if (*text == '\n')
			text++;
		label = "  ";
	}
}

void
ev_log_setup(bool quiet, bool json)
{
	log_quiet = quiet;
	log_json = json;
}

void
ev_log_note(const char *format,...)
{
	char		line[1024];
	va_list		arguments;

	if (log_quiet)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	ev_progress_end();
	if (log_json)
		print_json("note", line, NULL, NULL);
	else
		print_lines("pg_evidence: ", line);
}

void
ev_log_export(const char *export_id, const char *format,...)
{
	char		line[1024];
	int			used = 0;
	va_list		arguments;

	if (log_quiet)
		return;
	if (!log_json)
		used = snprintf(line, sizeof(line), "export %s: ", export_id);
	va_start(arguments, format);
	vsnprintf(line + used, sizeof(line) - (size_t) used, format, arguments);
	va_end(arguments);
	ev_progress_end();
	if (log_json)
		print_json("note", line, NULL, export_id);
	else
		print_lines("pg_evidence: ", line);
}

void
ev_log_failure(const EvFailure *failure)
{
	print_failure("error", failure);
}

void
ev_log_warning(const EvFailure *failure)
{
	print_failure("warning", failure);
}

/* A line of a log tells which export it is about; an error need not. */
static void
print_failure(const char *level, const EvFailure *failure)
{
	char		label[64];
	char		line[1024] = "";
	int			used = 0;

	ev_progress_end();
	if (level[0] == 'w' && !log_json && failure->export_id[0] != '\0')
		used = snprintf(line, sizeof(line), "export %s: ",
						failure->export_id);
	if (failure->doing[0] != '\0')
		used += snprintf(line + used, sizeof(line) - (size_t) used, "%s: ",
						 failure->doing);
	snprintf(line + used, sizeof(line) - (size_t) used, "%s", failure->text);
	if (log_json)
	{
		print_json(level, line, failure, failure->export_id);
		return;
	}
	snprintf(label, sizeof(label), "pg_evidence: %s: ", level);
	print_lines(label, line);
	if (failure->detail[0] != '\0')
		print_lines("DETAIL:  ", failure->detail);
	if (failure->hint[0] != '\0')
		print_lines("HINT:  ", failure->hint);
}

/* A member of the object, unless there is nothing to tell. */
static void
put_member(EvJson *json, const char *key, const char *text)
{
	EvBuffer	valid = {0};
	uint64_t	invalid;

	if (text == NULL || text[0] == '\0')
		return;
	ev_json_key(json, key);
	if (ev_utf8_repair(text, strlen(text), &valid, &invalid))
		ev_json_string_n(json, valid.data, valid.length);
	else
		ev_json_null(json);
	ev_buffer_free(&valid);
}

/* The keys stand in the order that canonical JSON has. */
static void
print_json(const char *level, const char *message, const EvFailure *failure,
		   const char *export_id)
{
	EvBuffer	out = {0};
	EvJson		json;
	char		now[32];
	time_t		seconds = time(NULL);
	struct tm	parts;

	strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ",
			 gmtime_r(&seconds, &parts));
	ev_json_start(&json, &out);
	ev_json_object(&json);
	put_member(&json, "detail", failure == NULL ? NULL : failure->detail);
	put_member(&json, "export_id", export_id);
	put_member(&json, "hint", failure == NULL ? NULL : failure->hint);
	put_member(&json, "level", level);
	put_member(&json, "message", message);
	put_member(&json, "sqlstate", failure == NULL ? NULL : failure->sqlstate);
	put_member(&json, "status", failure == NULL ? NULL :
			   ev_status_name(failure->status));
	put_member(&json, "time", now);
	ev_json_end_object(&json);
	if (ev_json_finish(&json))
		fprintf(stderr, "%.*s\n", (int) out.length, out.data);
	else
		fprintf(stderr, "{\"level\":\"%s\"}\n", level);
	ev_buffer_free(&out);
}
