/*-------------------------------------------------------------------------
 *
 * instance.c
 *	  Were the rows of this database written by this cluster?
 *
 * Snapshots and recorded_xid are transaction ids, and those mean nothing in
 * another cluster.  After a dump and restore the ledger looks healthy and
 * would export wrong sets of rows.  The witness rows (schema part 30_control)
 * tell the two apart: each stores the xmin it was written with.  They agree
 * after pg_upgrade, in a base backup and on a promoted standby, where row
 * headers are copied, and disagree after a restore, which writes rows anew.
 * Freezing keeps xmin, so age does no harm.
 *
 * The extension's script writes a valid pair before a restore adds the old
 * one, so a restored database has both; it counts as foreign until the old
 * pair is retired by adoption.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/audit.h"
#include "ledger/expiry.h"
#include "ledger/instance.h"
#include "ledger/statement.h"

/* Does the row's header still say what the row says? */
#define GENUINE_SQL "i.xmin::text::bigint = i.witness_xid"

bool
ev_instance_current(pg_uuid_t *incarnation)
{
	static EvStatement judge = {
		"SELECT incarnation, genuine"
		"  FROM (SELECT i.incarnation,"
		"               bool_and(" GENUINE_SQL ") AND count(*) = 2 AS genuine"
		"          FROM evidence.instance AS i"
		"         WHERE i.retired_at IS NULL"
		"         GROUP BY i.incarnation) AS judged"
		" ORDER BY genuine"
		" LIMIT 1"
	};
	bool		genuine;

	ev_statements_begin();
	genuine = ev_statement_run_latest(&judge, NULL) == 1 &&
		ev_result_bool(0, 2);
	if (genuine)
		(void) ev_result_uuid(0, 1, incarnation);
	ev_statements_end();
	return genuine;
}

void
ev_instance_require(pg_uuid_t *incarnation)
{
	if (!ev_instance_current(incarnation))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the evidence ledger belongs to another cluster"),
				 errdetail("Its rows were restored from a dump, so the snapshots of its exports mean nothing here."),
				 errhint("If this copy shall become a ledger of its own, run SELECT evidence.adopt_instance('<reason>').")));
}

void
ev_instance_adopt(const char *actor, const char *session_role,
				  const char *reason, EvAdoption *adoption)
{
	static EvStatement fail_open = {
		"WITH attempts AS ("
		"  UPDATE evidence.attempt SET ended_at = $1, outcome = 'lost',"
		"         error_code = '55000'"
		"   WHERE ended_at IS NULL"
		"), before AS MATERIALIZED ("
		"  SELECT id, state FROM evidence.audit_export"
		"   WHERE state IN ('QUEUED', 'PROCESSING', 'STAGED') FOR UPDATE"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = 'FAILED', version = e.version + 1,"
		"         attempt_token = NULL, failed_at = $1, error_code = '55000',"
		"         error_message = 'the ledger was restored in another cluster',"
		"         error_hint = 'Request the export again.',"
		EV_NO_ARCHIVE_SQL
		"    FROM before"
		"   WHERE e.id = before.id"
		"  RETURNING e.id, e.version, before.state AS from_state"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = 'FAILED', version = j.version + 1,"
		"         attempt_token = NULL, finished_at = $1, error_code = '55000'"
		"    FROM export"
		"   WHERE j.export_id = export.id"
		"     AND j.state IN ('QUEUED', 'RUNNING', 'SUCCEEDED')"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'CLOSED', version = o.version + 1, settled_at = $1,"
		"         reason = 'the ledger was restored in another cluster'"
		"    FROM export"
		"   WHERE o.export_id = export.id AND o.state IN ('PENDING', 'DEAD')"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, reason)"
		"SELECT $1, id, 'adopted', from_state, 'FAILED', version, $2, $3, $4"
		"  FROM export"
	};

	/* Objects belong to the cluster that put them there: none is deleted. */
	static EvStatement forget_removals = {
		"UPDATE evidence.outbox_event"
		"   SET state = 'CLOSED', version = version + 1, settled_at = $1,"
		"       reason = 'the ledger was restored in another cluster'"
		" WHERE kind = 'object.delete' AND state IN ('PENDING', 'DEAD')"
	};
	static EvStatement expire_ready = {
		"WITH export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = 'EXPIRED', version = e.version + 1"
		"   WHERE e.state = 'READY' AND NOT EXISTS ("
		"         SELECT FROM evidence.archive_chunk AS c"
		"          WHERE c.attempt_token = e.archive_token)"
		"  RETURNING e.id, e.version"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"       to_state, version, actor, session_role, reason)"
		"SELECT $1, id, 'adopted', 'READY', 'EXPIRED', version, $2, $3, $4"
		"  FROM export"
	};
	static EvStatement retire = {
		"UPDATE evidence.instance"
		"   SET retired_at = $1, retired_by = $2, reason = $3"
		" WHERE retired_at IS NULL AND incarnation IN ("
		"       SELECT i.incarnation FROM evidence.instance AS i"
		"        WHERE NOT (" GENUINE_SQL "))"
	};
	static EvStatement begin_new = {
		"SELECT evidence._begin_incarnation()"
		" WHERE NOT EXISTS (SELECT FROM evidence.instance"
		"                    WHERE retired_at IS NULL)"
	};
	EvParameters p = {0};
	EvParameters removals = {0};
	EvParameters retired = {0};

	ev_statements_begin();
	ev_add_time(&removals, ev_clock_now());
	ev_add_time(&p, ev_clock_now());
	ev_add_text(&p, actor);
	ev_add_text(&p, session_role);
	ev_add_text(&p, reason);
	ev_add_time(&retired, ev_clock_now());
	ev_add_text(&retired, actor);
	ev_add_text(&retired, reason);
	adoption->failed = ev_statement_run(&fail_open, &p);
	(void) ev_statement_run(&forget_removals, &removals);
	adoption->expired = ev_statement_run(&expire_ready, &p);
	adoption->stamped = ev_audit_stamp_all();
	(void) ev_statement_run(&retire, &retired);
	(void) ev_statement_run(&begin_new, NULL);
	ev_statements_end();
}
