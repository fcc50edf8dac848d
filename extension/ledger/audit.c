/*-------------------------------------------------------------------------
 *
 * audit.c
 *	  The audit log itself: append, and the one lawful way to change it.
 *
 * Rows are appended in the transaction of the action that they record, so an
 * action without its row does not exist (requirement S1.52).
 *
 * A trigger refuses every UPDATE and DELETE of the log unless the flag below
 * is up.  It is a variable of this process and not a setting, because a
 * setting could be set by whoever wants to change the log.  It is up only
 * around a single statement of this file, and an error takes it down.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "ledger/audit.h"
#include "ledger/statement.h"

static bool change_allowed = false;

int64
ev_audit_append(const EvAuditRow *row)
{
	static EvStatement append = {
		"INSERT INTO evidence.audit_log (created_at, tenant_id, actor_id,"
		"       actor_role, action, target_type, target_id, outcome,"
		"       error_code, request_id, source_fingerprint, summary, metadata)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,"
		"         coalesce($13, '{}'))"
		" RETURNING id"
	};
	EvParameters p = {0};
	int64		id;

	ev_statements_begin();
	ev_add_time(&p, ev_clock_now());
	ev_add_text(&p, row->tenant_id);
	ev_add_text(&p, row->actor_id);
	ev_add_text(&p, row->actor_role);
	ev_add_text(&p, row->action);
	ev_add_text(&p, row->target_type);
	ev_add_text(&p, row->target_id);
	ev_add_text(&p, row->outcome);
	ev_add_text(&p, row->error_code);
	ev_add_text(&p, row->request_id);
	ev_add_text(&p, row->source_fingerprint);
	ev_add_text(&p, row->summary);
	ev_add_jsonb(&p, row->metadata);
	(void) ev_statement_run(&append, &p);
	id = ev_result_int8(0, 1);
	ev_statements_end();
	return id;
}

void
ev_audit_append_action(const char *action, const char *actor,
					   const char *session_role, const char *target_type,
					   const char *target_id, const char *summary)
{
	EvAuditRow	row = {0};

	row.action = action;
	row.actor_id = actor;
	row.actor_role = session_role;
	row.target_type = target_type;
	row.target_id = target_id;
	row.outcome = "success";
	row.summary = summary;
	row.tenant_id = "default";
	(void) ev_audit_append(&row);
}

bool
ev_audit_change_allowed(void)
{
	return change_allowed;
}

int64
ev_audit_stamp_all(void)
{
	static EvStatement stamp = {
		"UPDATE evidence.audit_log SET recorded_xid = pg_current_xact_id()"
	};
	uint64		rows = 0;

	ev_statements_begin();
	change_allowed = true;
	PG_TRY();
	{
		rows = ev_statement_run(&stamp, NULL);
	}
	PG_FINALLY();
	{
		change_allowed = false;
	}
	PG_END_TRY();
	ev_statements_end();
	return rows;
}
