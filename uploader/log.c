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
 * The progress bar (progress.c) leaves an unfinished line on the terminal;
 * every line printed here ends it first.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "package/unicode.h"

#include "log.h"
#include "progress.h"

static bool log_quiet = false;

static void print_lines(const char *label, const char *text);

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
ev_log_setup(bool quiet)
{
	log_quiet = quiet;
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
	print_lines("pg_evidence: ", line);
}

void
ev_log_failure(const EvFailure *failure)
{
	char		line[1024];

	ev_progress_end();
	if (failure->doing[0] != '\0')
		snprintf(line, sizeof(line), "%s: %s", failure->doing, failure->text);
	else
		snprintf(line, sizeof(line), "%s", failure->text);
	print_lines("pg_evidence: error: ", line);
	if (failure->detail[0] != '\0')
		print_lines("DETAIL:  ", failure->detail);
	if (failure->hint[0] != '\0')
		print_lines("HINT:  ", failure->hint);
}
