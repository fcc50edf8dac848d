/*-------------------------------------------------------------------------
 *
 * failure.c
 *	  What an error of a worker means for its job, and what may be told.
 *
 * Trying again helps against a full disk, a serialization conflict or a
 * server that shuts down.  It does not help against too many rows or a column
 * that is no longer there, and three more attempts would only delay the
 * answer.  What is not known is taken as transient, since max_attempts ends
 * it too.
 *
 * Error messages can quote data.  What is kept of them goes through the
 * library's own redaction rules and is short (cases C33, S1.11).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "base/errors.h"
#include "package/redact.h"
#include "process/failure.h"

EvFailureClass
ev_failure_classify(int sqlerrcode)
{
	switch (sqlerrcode)
	{
		case EV_ERRCODE_TOO_MANY_ROWS:
		case EV_ERRCODE_MISMATCH:
			return EV_FAILURE_DEFINITE;
		case EV_ERRCODE_LOST_LEASE:
		case ERRCODE_LOCK_NOT_AVAILABLE:
			return EV_FAILURE_DEFERRAL;
		default:
			break;
	}

	switch (ERRCODE_TO_CATEGORY(sqlerrcode))
	{
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
		case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
			return EV_FAILURE_DEFINITE;
		default:
			return EV_FAILURE_TRANSIENT;
	}
}

char *
ev_failure_text(const char *message)
{
	EvError		error;
	EvBuffer	redacted = {0};
	EvRedactor *redactor;
	char	   *text = pstrdup(message);
	int			found = -1;
	char	   *c;

	/* The rules want UTF-8; elsewhere only ASCII is sure to be that. */
	for (c = text; *c && GetDatabaseEncoding() != PG_UTF8; c++)
	{
		if (IS_HIGHBIT_SET(*c))
			*c = '?';
	}

	redactor = ev_redactor_create(ev_builtin_rules, ev_builtin_rule_count,
								  &error);
	if (redactor != NULL)
		found = ev_redactor_apply(redactor, text, strlen(text), &redacted,
								  &error);
	ev_redactor_free(redactor);

	/* Without the rules nothing of the message can be trusted. */
	if (found < 0)
		text = pstrdup("see the error code");

	else if (found > 0)
		text = pstrdup(redacted.data);

	ev_buffer_free(&redacted);

	text[		pg_mbcliplen(text, strlen(text), EV_FAILURE_TEXT)] = '\0';
	return text;
}
