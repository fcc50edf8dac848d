/*-------------------------------------------------------------------------
 *
 * admission.c
 *	  What stands before every export that begins: locks, watermark, quota.
 *
 * A request, a retry and a recreation are judged alike, since each makes an
 * export active that was not.  The locks come first; what they protect is read
 * after them, in the newest snapshot (case C47).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "api/admission.h"
#include "base/settings.h"
#include "ledger/guard.h"

/* No request waits longer for another one. */
#define LOCK_TIMEOUT_MS 5000

static void limit_lock_waits(void);
static void check_quota(const EvContract *contract);

TimestampTz
ev_admission_lock(const EvContract *contract)
{
	TimestampTz watermark;

	limit_lock_waits();
	watermark = ev_guard_share_source(contract->source);
	ev_guard_touch_requester(contract->requested_by);
	return watermark;
}

/*
 * A caller that stays in its transaction holds up other requests of the same
 * role; they get 55P03 instead of waiting for ever.  A shorter limit of the
 * caller stays.  Undone when the call ends.
 */
static void
limit_lock_waits(void)
{
	char		value[32];

	if (LockTimeout > 0 && LockTimeout <= LOCK_TIMEOUT_MS)
		return;
	snprintf(value, sizeof(value), "%dms", LOCK_TIMEOUT_MS);
	(void) set_config_option("lock_timeout", value, PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void
ev_admission_check(const EvContract *contract, TimestampTz watermark)
{
	if (contract->start_at < watermark)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("range begins below %s, where records have been retired",
						timestamptz_to_str(watermark)),
				 errhint("Request a range that begins at that time or later.")));
	check_quota(contract);
}

static void
check_quota(const EvContract *contract)
{
	int64		active = ev_export_count_active(contract->requested_by);

	if (active >= ev_max_active_per_requester)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("role \"%s\" has " INT64_FORMAT " unfinished exports, no more are allowed",
						contract->requested_by, active),
				 errhint("Wait for one to finish or cancel one; the limit is pg_evidence.max_active_per_requester.")));
}
