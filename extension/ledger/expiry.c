/*-------------------------------------------------------------------------
 *
 * expiry.c
 *	  The end of an archive: its time is over, its bytes go.
 *
 * Whether an archive can be downloaded is decided by the clock at that
 * moment, never by whether somebody has come by to clean up (requirements
 * S1.46, S1.48).  What is done here makes that visible and frees the space.
 * Bytes in the database are deleted in the transaction that ends the export.
 * An object cannot be, so its deletion is promised in the outbox and carried
 * out by an uploader.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/delivery.h"
#include "ledger/expiry.h"
#include "ledger/export.h"
#include "ledger/statement.h"

/* When the time of an export is over; $2 is the deadline of an upload. */
#define DUE_SQL \
	"CASE state WHEN 'READY' THEN expires_at" \
	" ELSE staged_at + $2 * interval '1 second' END"

static void expire(const pg_uuid_t *export_id);
static void give_up(const pg_uuid_t *export_id);

TimestampTz
ev_expiry_next(void)
{
	static EvStatement next = {
		"SELECT least("
		"         (SELECT min(expires_at) FROM evidence.audit_export"
		"           WHERE state = 'READY'),"
		"         (SELECT min(staged_at) + $1 * interval '1 second'"
		"            FROM evidence.audit_export WHERE state = 'STAGED'),"
		"         'infinity')"
	};
	EvParameters p = {0};
	TimestampTz at;

	ev_statements_begin();
	ev_add_int4(&p, ev_staged_deadline);
	(void) ev_statement_run(&next, &p);
	at = ev_result_time(0, 1);
	ev_statements_end();
	return at;
}

bool
ev_expiry_end_next(EvExpiryPlace *place)
{
	static EvStatement find = {
		"SELECT id, state, generation, archive_token, " DUE_SQL
		"  FROM evidence.audit_export"
		" WHERE state IN ('READY', 'STAGED') AND " DUE_SQL " <= $1"
		"   AND (" DUE_SQL ", id) > ($3, $4)"
		" ORDER BY " DUE_SQL ", id"
		" LIMIT 1"
		"   FOR NO KEY UPDATE SKIP LOCKED"
	};
	EvParameters p = {0};
	pg_uuid_t	export_id;
	pg_uuid_t	archive_token;
	int32		generation;
	bool		found;

	ev_statements_begin();
	ev_add_time(&p, ev_clock_now());
	ev_add_int4(&p, ev_staged_deadline);
	ev_add_time(&p, place->due_at);
	ev_add_uuid(&p, &place->export_id);
	found = ev_statement_run(&find, &p) == 1;
	if (found)
	{
		bool		ready = strcmp(ev_result_text(0, 2), "READY") == 0;

		(void) ev_result_uuid(0, 1, &export_id);
		place->due_at = ev_result_time(0, 5);
		place->export_id = export_id;
		generation = ev_result_int4(0, 3);
		(void) ev_result_uuid(0, 4, &archive_token);
		if (ready)
			expire(&export_id);
		else
			give_up(&export_id);
		ev_expiry_remove(&export_id, generation, &archive_token);
	}
	ev_statements_end();
	if (found)
		ev_export_check_combination(&export_id);
	return found;
}

static void
expire(const pg_uuid_t *export_id)
{
	static EvStatement end = {
		"WITH export AS ("
		"  UPDATE evidence.audit_export"
		"     SET state = 'EXPIRED', version = version + 1"
		"   WHERE id = $1 AND state = 'READY'"
		"  RETURNING id, version, expires_at"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, detail)"
		"SELECT $2, id, 'expired', 'READY', 'EXPIRED', version, current_user,"
		"       session_user, jsonb_build_object('expires_at', expires_at)"
		"  FROM export"
	};
	EvParameters p = {0};

	ev_add_uuid(&p, export_id);
	ev_add_time(&p, ev_clock_now());
	(void) ev_statement_run(&end, &p);
}

/*
 * Nobody uploaded the archive in time.  The records can be had again: what
 * went wrong was the way, so the job ends with the export and both can be
 * started anew.
 */
static void
give_up(const pg_uuid_t *export_id)
{
	static EvStatement end = {
		"WITH export AS ("
		"  UPDATE evidence.audit_export"
		"     SET state = 'FAILED', version = version + 1, failed_at = $2,"
		"         error_code = '55000',"
		"         error_message = 'the archive was not uploaded in time',"
		"         error_hint = 'See that \"pg_evidence upload\" runs and reaches the object store, then request the export again.',"
		EV_NO_ARCHIVE_SQL
		"   WHERE id = $1 AND state = 'STAGED'"
		"  RETURNING id, version"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = 'FAILED', version = j.version + 1, finished_at = $2,"
		"         error_code = '55000'"
		"    FROM export"
		"   WHERE j.export_id = export.id AND j.state = 'SUCCEEDED'"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'CLOSED', version = o.version + 1, settled_at = $2,"
		"         reason = 'the archive was not uploaded in time'"
		"    FROM export"
		"   WHERE o.export_id = export.id AND o.kind = 'archive.upload'"
		"     AND o.state IN ('PENDING', 'DEAD')"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, reason)"
		"SELECT $2, id, 'failed', 'STAGED', 'FAILED', version, current_user,"
		"       session_user, '55000'"
		"  FROM export"
	};
	EvParameters p = {0};

	ev_add_uuid(&p, export_id);
	ev_add_time(&p, ev_clock_now());
	(void) ev_statement_run(&end, &p);
}

/*
 * An attempt that said it would send, and has not confirmed, may still be
 * sending: the object is looked for when its lease is over.  The newest
 * snapshot sees it even if the caller's transaction is older.  What a dead
 * uploader's network may deliver later still is found by a reconciliation.
 */
void
ev_expiry_remove(const pg_uuid_t *export_id, int32 generation,
				 const pg_uuid_t *archive_token)
{
	static EvStatement forget = {
		"DELETE FROM evidence.archive_chunk WHERE attempt_token = $1"
	};
	static EvStatement plan = {
		"INSERT INTO evidence.outbox_event (kind, export_id, job_id,"
		"       generation, state, next_attempt_at, created_at)"
		"SELECT 'object.delete', $1, j.id, $2, 'PENDING',"
		"       greatest($3, max(u.lease_until)"
		"                      FILTER (WHERE u.ended_at IS NULL)), $3"
		"  FROM evidence.upload_attempt AS u"
		"  JOIN evidence.background_job AS j ON j.export_id = u.export_id"
		" WHERE u.export_id = $1 AND u.generation = $2"
		"   AND u.sent_at IS NOT NULL"
		" GROUP BY j.id"
		" ON CONFLICT (kind, export_id, generation) DO NOTHING"
	};
	EvParameters chunks = {0};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_uuid(&chunks, archive_token);
	(void) ev_statement_run_latest(&forget, &chunks);
	ev_add_uuid(&p, export_id);
	ev_add_int4(&p, generation);
	ev_add_time(&p, ev_clock_now());
	if (ev_statement_run_latest(&plan, &p) > 0)
		ev_delivery_announce();
	ev_statements_end();
}
