/*-------------------------------------------------------------------------
 *
 * outcome.c
 *	  What the state of an export means to whoever wants its package.
 *
 * The server says the same by its error codes when a download is asked for;
 * here the state is known before, so the same codes are used.  A state that
 * this program does not know can only come from a newer extension, which the
 * version check at connect keeps out.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "outcome.h"

/* The code that the server would give, so that scripts see one language. */
static void
set_sqlstate(EvFailure *failure, const char *sqlstate)
{
	snprintf(failure->sqlstate, sizeof(failure->sqlstate), "%s", sqlstate);
}

EvStatus
ev_outcome(const EvExport *export, EvFailure *failure)
{
	const char *state = export->state == NULL ? "" : export->state;

	ev_failure_export(failure, export->id);
	if (strcmp(state, "READY") == 0)
		return EV_STATUS_OK;
	if (strcmp(state, "FAILED") == 0)
	{
		ev_fail(failure, EV_STATUS_FAILED, "the export has failed", "%s",
				export->error_message == NULL ?
				"no reason is recorded" : export->error_message);
		if (export->error_code != NULL)
			set_sqlstate(failure, export->error_code);
		if (export->error_hint != NULL)
			ev_fail_hint(failure, "%s", export->error_hint);
		return EV_STATUS_FAILED;
	}
	if (strcmp(state, "CANCELLED") == 0)
		return ev_fail(failure, EV_STATUS_CANCELLED, NULL,
					   "the export was cancelled");
	if (strcmp(state, "EXPIRED") == 0 || strcmp(state, "REVOKED") == 0)
	{
		ev_fail(failure, EV_STATUS_GONE, NULL, "the package is gone: %s",
				state[0] == 'E' ? "its time has run out" : "it was revoked");
		set_sqlstate(failure, "PE003");
		return ev_fail_hint(failure, "An operator can make it anew with evidence.recreate_audit_export().");
	}
	if (strcmp(state, "QUEUED") != 0 && strcmp(state, "PROCESSING") != 0 &&
		strcmp(state, "MERGING") != 0 && strcmp(state, "STAGED") != 0)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL,
					   "the export is in a state that this program does not know");
	ev_fail(failure, EV_STATUS_STATE, NULL,
			"the package is not ready yet: the export is %s", state);
	set_sqlstate(failure, "PE005");
	return ev_fail_hint(failure, "Wait with \"pg_evidence wait %s\".",
						export->id);
}
