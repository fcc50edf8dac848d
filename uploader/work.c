/*-------------------------------------------------------------------------
 *
 * work.c
 *	  How a piece of work ends, and what the ledger is told of it.
 *
 * An answer of the store is about this object, or about the store as a whole.
 * In the second case no object is to blame: the work is given back without
 * counting, and whoever asked for it pauses instead of spoiling more.
 *
 * A refusal that a repetition cannot mend ends the work for good, until an
 * operator has mended the reason and wants it again.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "retry.h"
#include "step.h"
#include "stop.h"
#include "work.h"

#define LEGAL_HOLD_PAUSE 3600	/* seconds until it is looked at again */

/* What an answer of the store means for a piece of work. */
static const struct
{
	EvDeliveryFault fault;
	bool		whole_store;
	const char *code;			/* where the store gave none */
}			meanings[] = {
	[EV_S3_OK] = {EV_DELIVERY_TRANSIENT, false, "Unexpected"},
	[EV_S3_ABSENT] = {EV_DELIVERY_TRANSIENT, false, "NoSuchKey"},
	[EV_S3_EXISTS] = {EV_DELIVERY_TRANSIENT, false, "PreconditionFailed"},
	[EV_S3_DENIED] = {EV_DELIVERY_DEFERRAL, true, "AccessDenied"},
	[EV_S3_SKEW] = {EV_DELIVERY_DEFERRAL, true, "RequestTimeTooSkewed"},
	[EV_S3_NO_BUCKET] = {EV_DELIVERY_DEFERRAL, true, "NoSuchBucket"},
	[EV_S3_LOCKED] = {EV_DELIVERY_DEFERRAL, false, "ObjectLocked"},
	[EV_S3_REFUSED] = {EV_DELIVERY_DEFINITE, false, "Refused"},
	[EV_S3_BUSY] = {EV_DELIVERY_TRANSIENT, false, "SlowDown"},
	[EV_S3_UNREACHABLE] = {EV_DELIVERY_DEFERRAL, true, "Unreachable"},
	[EV_S3_UNKNOWN] = {EV_DELIVERY_TRANSIENT, false, "NoAnswer"},
	[EV_S3_STOPPED] = {EV_DELIVERY_DEFERRAL, false, "Stopped"},
	[EV_S3_LOCAL] = {EV_DELIVERY_DEFERRAL, true, "Local"}
};

/* Hand the report to the ledger and keep the reason. */
static bool
tell(EvWork *work, EvDeliveryReport *report, EvStatus status)
{
	char		message[EV_DELIVERY_MESSAGE];
	char		doing[sizeof(work->failure.doing)];
	char		hint[sizeof(work->failure.hint)];
	EvFailure	failure;
	EvDeliveryFate fate;

	/* The texts may lie in the failure that is filled again below. */
	snprintf(message, sizeof(message), "%s", report->message);
	snprintf(doing, sizeof(doing), "%s", work->failure.doing);
	snprintf(hint, sizeof(hint), "%s", work->failure.hint);
	report->message = message;
	work->retry_after = report->retry_after;

	ev_failure_clear(&failure);
	if (ev_delivery_fail(work->ledger, work->item.token, report, &fate,
						 &failure) == EV_STATUS_OK)
	{
		work->end = EV_WORK_FAILED;
		if (report->fault == EV_DELIVERY_DEFERRAL)
			work->end = EV_WORK_DEFERRED;
		if (fate == EV_DELIVERY_GIVEN_UP)
			work->end = EV_WORK_DEAD;
		if (fate == EV_DELIVERY_UNWANTED)
			work->end = EV_WORK_LOST;
	}
	else if (ev_delivery_lost(&failure))
		work->end = EV_WORK_LOST;
	else
		work->end = EV_WORK_UNTOLD;
	ev_fail(&work->failure, status, doing[0] == '\0' ? NULL : doing,
			"%s", message);
	if (hint[0] != '\0')
		ev_fail_hint(&work->failure, "%s", hint);
	ev_failure_export(&work->failure, work->item.export_id);
	return false;
}

bool
ev_work_fail(EvWork *work, EvDeliveryFault fault, const char *code,
			 const char *format,...)
{
	EvDeliveryReport told = {fault, code, NULL, -1, -1};
	char		message[EV_DELIVERY_MESSAGE];
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	told.message = message;
	work->failure.doing[0] = '\0';
	work->failure.hint[0] = '\0';
	return tell(work, &told, EV_STATUS_OPEN);
}

bool
ev_work_step(EvWork *work, const char *name)
{
	ev_step(name);
	if (!ev_lease_keep(&work->lease))
	{
		work->end = EV_WORK_LOST;
		return false;
	}
	if (ev_stop_requested())
		return ev_work_fail(work, EV_DELIVERY_DEFERRAL, "Stopped",
							"the uploader was told to end");
	return true;
}

bool
ev_work_store(EvWork *work, const char *doing, const EvS3Result *result)
{
	EvDeliveryReport told = {
		meanings[result->outcome].fault, meanings[result->outcome].code,
		result->message, result->retry_after, -1
	};

	/* Whoever stops us has a reason of its own. */
	if (result->outcome == EV_S3_STOPPED)
		return ev_work_step(work, "stopped") ?
			ev_work_fail(work, EV_DELIVERY_TRANSIENT, "Stopped",
						 "the transfer was stopped") : false;
	if (!ev_work_step(work, "failing"))
		return false;

	work->store_fault = meanings[result->outcome].whole_store;
	ev_s3_fail(result, doing, &work->failure);
	if (result->code[0] != '\0')
		told.code = result->code;
	if (result->outcome == EV_S3_REFUSED && result->retry_helps)
		told.fault = EV_DELIVERY_TRANSIENT;
	if (result->outcome == EV_S3_LOCKED)
	{
		told.locked_until = result->locked_until;
		if (result->locked_until == EV_S3_NEVER)
			told.retry_after = LEGAL_HOLD_PAUSE;
	}
	return tell(work, &told, EV_STATUS_OPEN);
}

/*
 * The ledger's own answers: the work is somebody else's, the stored bytes are
 * damaged, or the server is not there to be told anything.
 */
bool
ev_work_ledger(EvWork *work)
{
	EvDeliveryReport told = {
		EV_DELIVERY_DEFERRAL, "Ledger", work->failure.text, -1, -1
	};

	if (ev_delivery_lost(&work->failure))
	{
		work->end = EV_WORK_LOST;
		return false;
	}
	if (work->failure.status == EV_STATUS_MISMATCH)
	{
		told.fault = EV_DELIVERY_DEFINITE;
		told.code = "PE006";
	}
	else if (work->failure.status != EV_STATUS_CONNECTION)
		told.fault = EV_DELIVERY_TRANSIENT;
	if (work->failure.sqlstate[0] != '\0' &&
		told.fault == EV_DELIVERY_TRANSIENT)
		told.code = work->failure.sqlstate;
	return tell(work, &told, work->failure.status);
}

bool
ev_work_look(EvWork *work, const char *version, EvS3Object *found)
{
	EvS3Result	result;

	memset(found, 0, sizeof(*found));
	switch (ev_s3_head(work->s3, work->item.key, version, found, &result))
	{
		case EV_S3_OK:
		case EV_S3_ABSENT:
			return true;
		default:
			return ev_work_store(work, "could not look the object up",
								 &result);
	}
}
