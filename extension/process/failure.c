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
 * Error messages can quote data.  What is kept of them is scrubbed and short
 * (cases C33, S1.11).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mb/pg_wchar.h"

#include "base/errors.h"
#include "process/failure.h"
#include "process/scrub.h"

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
	char	   *text = ev_scrub(message);
	int			length = pg_mbcliplen(text, strlen(text), EV_FAILURE_TEXT);

	text[		length] = '\0';
	return text;
}
