/*-------------------------------------------------------------------------
 *
 * scrub.c
 *	  Take secrets out of a text that is shown, stored or logged.
 *
 * Error messages quote data, and people type a password into the reason of a
 * cancellation.  Neither may reach a view, a log line or the history (design
 * section 9, promise 7; case C33).  The library's own rules are used here and
 * not those of the table, because this must work when no table can be read.
 *
 * The compiled rules are made at the first use and kept for the life of the
 * process: making them costs more than using them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "base/errors.h"
#include "package/redact.h"
#include "process/scrub.h"

static EvRedactor *redactor = NULL;

/*
 * The rules want UTF-8.  In a database of another encoding only ASCII is sure
 * to be that; the other bytes are masked for the search, and in the result if
 * anything was found.
 */
char *
ev_scrub(const char *text)
{
	EvError		error;
	EvBuffer	redacted = {0};
	char	   *masked;
	char	   *result;
	char	   *c;
	int			found;

	if (text == NULL)
		return NULL;
	if (redactor == NULL)
		redactor = ev_redactor_create(ev_builtin_rules, ev_builtin_rule_count,
									  &error);
	if (redactor == NULL)
		ev_raise(&error);

	masked = pstrdup(text);
	for (c = masked; *c && GetDatabaseEncoding() != PG_UTF8; c++)
	{
		if (IS_HIGHBIT_SET(*c))
			*c = '?';
	}
	found = ev_redactor_apply(redactor, masked, strlen(masked), &redacted,
							  &error);
	if (found < 0)
	{
		ev_buffer_free(&redacted);
		ev_raise(&error);
	}
	result = pstrdup(found > 0 ? redacted.data : text);
	ev_buffer_free(&redacted);
	pfree(masked);
	return result;
}
