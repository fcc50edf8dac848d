/*-------------------------------------------------------------------------
 *
 * failure.c
 *	  Fill the one error struct of this program.
 *
 * Everything is a fixed buffer, so that reporting that memory is exhausted
 * needs no memory.  A text that does not fit is cut at the end; the longest
 * ones are the server's, whose first words matter most.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"

void
ev_failure_clear(EvFailure *failure)
{
	memset(failure, 0, sizeof(*failure));
}

/* Start a failure, keeping only the export it is about. */
static void
begin(EvFailure *failure, EvStatus status)
{
	char		export_id[sizeof(failure->export_id)];

	memcpy(export_id, failure->export_id, sizeof(export_id));
	ev_failure_clear(failure);
	memcpy(failure->export_id, export_id, sizeof(export_id));
	failure->status = status;
}

EvStatus
ev_fail(EvFailure *failure, EvStatus status, const char *doing,
		const char *format,...)
{
	va_list		arguments;

	begin(failure, status);
	if (doing != NULL)
		snprintf(failure->doing, sizeof(failure->doing), "%s", doing);
	va_start(arguments, format);
	vsnprintf(failure->text, sizeof(failure->text), format, arguments);
	va_end(arguments);
	return status;
}

EvStatus
ev_fail_errno(EvFailure *failure, EvStatus status, const char *format,...)
{
	int			saved_errno = errno;
	va_list		arguments;

	begin(failure, status);
	va_start(arguments, format);
	vsnprintf(failure->doing, sizeof(failure->doing), format, arguments);
	va_end(arguments);
	snprintf(failure->text, sizeof(failure->text), "%s",
			 strerror(saved_errno));
	return status;
}

EvStatus
ev_fail_package(EvFailure *failure, const char *doing, const EvError *error)
{
	EvStatus	status;

	switch (error->kind)
	{
		case EV_ERROR_FORMAT:
			status = EV_STATUS_MISMATCH;
			break;
		case EV_ERROR_ARGUMENT:
			status = EV_STATUS_USAGE;
			break;
		case EV_ERROR_IO:
			status = EV_STATUS_FILE;
			break;
		default:
			status = EV_STATUS_INTERNAL;
			break;
	}
	return ev_fail(failure, status, doing, "%s", error->text);
}

EvStatus
ev_fail_hint(EvFailure *failure, const char *format,...)
{
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(failure->hint, sizeof(failure->hint), format, arguments);
	va_end(arguments);
	return failure->status;
}

void
ev_failure_export(EvFailure *failure, const char *export_id)
{
	snprintf(failure->export_id, sizeof(failure->export_id), "%s", export_id);
}

const char *
ev_status_name(EvStatus status)
{
	switch (status)
	{
		case EV_STATUS_OK:
			return "ok";
		case EV_STATUS_USAGE:
			return "usage";
		case EV_STATUS_CONNECTION:
			return "connection";
		case EV_STATUS_DENIED:
			return "denied";
		case EV_STATUS_ARGUMENT:
			return "argument";
		case EV_STATUS_LIMIT:
			return "limit";
		case EV_STATUS_STATE:
			return "state";
		case EV_STATUS_GONE:
			return "gone";
		case EV_STATUS_CONFLICT:
			return "conflict";
		case EV_STATUS_MISMATCH:
			return "mismatch";
		case EV_STATUS_FAILED:
			return "failed";
		case EV_STATUS_CANCELLED:
			return "cancelled";
		case EV_STATUS_TIMEOUT:
			return "timeout";
		case EV_STATUS_FILE:
			return "file";
		case EV_STATUS_RETRIES:
			return "retries";
		case EV_STATUS_VERSION:
			return "version";
		case EV_STATUS_PAUSED:
			return "paused";
		case EV_STATUS_STORE:
			return "store";
		case EV_STATUS_OPEN:
			return "open";
		case EV_STATUS_INTERNAL:
			break;
	}
	return "internal";
}
