/*-------------------------------------------------------------------------
 *
 * adopt.c
 *	  adopt_instance(): make a restored ledger this cluster's own.
 *
 * A decision for a person: the copy may be a test server that must never
 * export anything.  Until then everything that rests on transaction ids is
 * refused, see ledger/instance.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "api/call.h"
#include "ledger/audit.h"
#include "ledger/instance.h"
#include "process/scrub.h"
#include "process/wakeup.h"

PG_FUNCTION_INFO_V1(ev_sql_adopt_instance);

Datum
ev_sql_adopt_instance(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvAdoption	adoption;
	pg_uuid_t	incarnation;
	char	   *reason = ev_scrub(ev_call_required_text(fcinfo, 0, "reason",
														EV_REASON_LIMIT));

	ev_call_begin(&call, "adopt_instance", EV_OPERATOR);
	if (ev_instance_current(&incarnation))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the ledger already belongs to this cluster"),
				 errhint("There is nothing to adopt.")));
	ev_instance_adopt(call.role, call.session_role, reason, &adoption);
	ev_audit_append_action("instance.adopt", call.role, call.session_role,
						   "ledger", NULL, reason);
	ev_wakeup_at_commit();
	ereport(LOG,
			(errmsg("evidence ledger adopted by role \"%s\": " INT64_FORMAT " exports failed, " INT64_FORMAT " expired, " INT64_FORMAT " records stamped",
					call.role, adoption.failed, adoption.expired,
					adoption.stamped)));
	ev_call_end(&call);
	PG_RETURN_INT64(adoption.stamped);
}
