/*-------------------------------------------------------------------------
 *
 * capability.c
 *	  Who may do what.
 *
 * Two fences stand one behind the other.  EXECUTE is granted with a
 * capability and to nobody else, so that a role without any sees nothing of
 * this extension.  And each function looks the capability up when it runs, in
 * the newest snapshot, so that taking it back works at once, also for open
 * sessions and for grants that were already given.
 *
 * Roles are stored by name, since that is what a dump restores; a name whose
 * role is gone gives nobody anything.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "base/clock.h"
#include "ledger/capability.h"
#include "ledger/statement.h"

static const struct
{
	EvCapability capability;
	const char *name;
}			names[] = {
	{EV_REQUESTER, "requester"},
	{EV_OPERATOR, "operator"},
	{EV_AUDITOR, "auditor"},
	{EV_WRITER, "writer"},
	{EV_UPLOADER, "uploader"}
};

/* What has to be granted for which capabilities. */
static const struct
{
	int			capabilities;
	const char *object;
}			privileges[] = {
	{EV_ALL_CAPABILITIES, "USAGE ON SCHEMA evidence"},
	{EV_ALL_CAPABILITIES, "EXECUTE ON FUNCTION evidence.evidence_version()"},
	{EV_REQUESTER | EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.request_audit_export(timestamptz, timestamptz, text, text, text, jsonb, text[])"},
	{EV_REQUESTER | EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.cancel_audit_export(uuid, text)"},
	{EV_REQUESTER | EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.revoke_audit_export(uuid, text)"},
	{EV_REQUESTER | EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.grant_audit_export_download(uuid, text)"},
	{EV_REQUESTER | EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.fetch_audit_export(text, integer, integer)"},
	{EV_REQUESTER | EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence.verify_audit_export(uuid)"},
	{EV_REQUESTER | EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence._sees(text)"},
	{EV_REQUESTER | EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence._progress(uuid)"},
	{EV_REQUESTER | EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence._scrub(text)"},
	{EV_REQUESTER | EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence._now()"},
	{EV_REQUESTER | EV_OPERATOR | EV_AUDITOR,
	"SELECT ON evidence.audit_export_status"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.export_event"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.redaction_rule"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.state_move"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.state_combination"},
	{EV_OPERATOR | EV_AUDITOR, "EXECUTE ON FUNCTION evidence._state_moves()"},
	{EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence._state_combinations()"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.add_redaction_rule(text, text, text, text[], boolean)"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.retire_redaction_rule(text, text)"},
	{EV_REQUESTER | EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.locate_download(text)"},
	{EV_REQUESTER | EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.record_download(text, bigint, text)"},
	{EV_UPLOADER, "EXECUTE ON FUNCTION evidence.claim_delivery(text, text, text)"},
	{EV_UPLOADER, "EXECUTE ON FUNCTION evidence.renew_delivery(uuid)"},
	{EV_UPLOADER,
	"EXECUTE ON FUNCTION evidence.read_delivery_chunk(uuid, integer)"},
	{EV_UPLOADER, "EXECUTE ON FUNCTION evidence.record_sending(uuid, text)"},
	{EV_UPLOADER,
	"EXECUTE ON FUNCTION evidence.confirm_delivery(uuid, bigint, text, text, text, timestamptz, boolean)"},
	{EV_UPLOADER, "EXECUTE ON FUNCTION evidence.confirm_removal(uuid, boolean)"},
	{EV_UPLOADER,
	"EXECUTE ON FUNCTION evidence.fail_delivery(uuid, text, text, text, integer, timestamptz)"},
	{EV_UPLOADER | EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.delivery_status()"},
	{EV_UPLOADER, "EXECUTE ON FUNCTION evidence.known_objects(text)"},
	{EV_UPLOADER,
	"EXECUTE ON FUNCTION evidence.record_reconciliation(text, text, timestamptz, bigint, jsonb)"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.outbox_event"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.upload_attempt"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.finding"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.pass_log"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.requeue_outbox_event(bigint, text)"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.retry_audit_export(uuid, text)"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.recreate_audit_export(uuid, text)"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.freeze_audit_export(uuid, text)"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.unfreeze_audit_export(uuid, text)"},
	{EV_OPERATOR, "EXECUTE ON FUNCTION evidence.fail_audit_export(uuid, text)"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.fill_in_audit_export(uuid, text, text, bigint, text, text, text)"},
	{EV_REQUESTER | EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence.trace_audit_export(uuid)"},
	{EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence.trace_download(bigint)"},
	{EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence.audit_export_dossier(uuid)"},
	{EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence.recovery_report(timestamptz)"},
	{EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence.duplicate_exports()"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.open_human_case(text, text, timestamptz, text, uuid)"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.recheck_human_case(bigint, timestamptz, text)"},
	{EV_OPERATOR,
	"EXECUTE ON FUNCTION evidence.close_human_case(bigint, text)"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.human_case"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.human_queue"},
	{EV_OPERATOR, "EXECUTE ON PROCEDURE evidence.run_once()"},
	{EV_OPERATOR, "EXECUTE ON PROCEDURE evidence.ship_pass()"},
	{EV_OPERATOR,
	"EXECUTE ON PROCEDURE evidence.ship_audit_records(timestamptz, timestamptz, bigint)"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.audit_delivery"},
	{EV_OPERATOR | EV_AUDITOR,
	"EXECUTE ON FUNCTION evidence._shipping_status()"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.queue_health"},
	{EV_OPERATOR | EV_AUDITOR, "SELECT ON evidence.metrics"},
	{EV_OPERATOR, "EXECUTE ON FUNCTION evidence.adopt_instance(text)"},
	{EV_WRITER,
	"EXECUTE ON FUNCTION evidence.record_audit_event(text, text, text, text, text, text, text, text, text, text, text, jsonb)"},
	{EV_WRITER, "EXECUTE ON FUNCTION evidence.fingerprint(text)"}
};

static int	stored_capabilities(const char *role_name);
static void change_privileges(const char *role_name, int before, int after);
static void run_utility(const char *text);

bool
ev_capability_from_name(const char *name, EvCapability *capability)
{
	int			i;

	for (i = 0; i < lengthof(names); i++)
	{
		if (strcmp(names[i].name, name) == 0)
		{
			*capability = names[i].capability;
			return true;
		}
	}
	return false;
}

int
ev_capabilities_of(Oid role)
{
	static EvStatement list = {
		"SELECT role_name, capability FROM evidence.capability"
	};
	int			capabilities = 0;
	uint64		rows;
	uint64		row;

	if (superuser_arg(role))
		return EV_ALL_CAPABILITIES;

	ev_statements_begin();
	rows = ev_statement_run_latest(&list, NULL);
	for (row = 0; row < rows; row++)
	{
		EvCapability capability;

		if (ev_capability_from_name(ev_result_text(row, 2), &capability) &&
			(capabilities & capability) == 0 &&
			ev_capability_owns(role, ev_result_text(row, 1)))
			capabilities |= capability;
	}
	ev_statements_end();
	return capabilities;
}

bool
ev_capability_owns(Oid role, const char *requested_by)
{
	Oid			owner = get_role_oid(requested_by, true);

	return OidIsValid(owner) && has_privs_of_role(role, owner);
}

/*
 * What this role has been given itself, without its memberships.
 */
static int
stored_capabilities(const char *role_name)
{
	static EvStatement list = {
		"SELECT capability FROM evidence.capability WHERE role_name = $1"
	};
	EvParameters p = {0};
	int			capabilities = 0;
	uint64		rows;
	uint64		row;

	ev_statements_begin();
	ev_add_text(&p, role_name);
	rows = ev_statement_run_latest(&list, &p);
	for (row = 0; row < rows; row++)
	{
		EvCapability capability;

		if (ev_capability_from_name(ev_result_text(row, 1), &capability))
			capabilities |= capability;
	}
	ev_statements_end();
	return capabilities;
}

void
ev_capability_give(Oid role, EvCapability capability, const char *granted_by)
{
	static EvStatement give = {
		"INSERT INTO evidence.capability"
		"       (role_name, capability, granted_by, granted_at)"
		" VALUES ($1, $2, $3, $4)"
		" ON CONFLICT (role_name, capability) DO NOTHING"
	};
	char	   *role_name = GetUserNameFromId(role, false);
	int			before = stored_capabilities(role_name);
	int			i;

	for (i = 0; i < lengthof(names); i++)
	{
		EvParameters p = {0};

		if (names[i].capability != capability)
			continue;
		ev_statements_begin();
		ev_add_text(&p, role_name);
		ev_add_text(&p, names[i].name);
		ev_add_text(&p, granted_by);
		ev_add_time(&p, ev_clock_now());
		(void) ev_statement_run(&give, &p);
		ev_statements_end();
	}
	change_privileges(role_name, before, before | capability);
}

bool
ev_capability_take(Oid role, EvCapability capability)
{
	static EvStatement take = {
		"DELETE FROM evidence.capability"
		" WHERE role_name = $1 AND capability = $2"
	};
	char	   *role_name = GetUserNameFromId(role, false);
	int			before = stored_capabilities(role_name);
	int			i;

	if ((before & capability) == 0)
		return false;
	for (i = 0; i < lengthof(names); i++)
	{
		EvParameters p = {0};

		if (names[i].capability != capability)
			continue;
		ev_statements_begin();
		ev_add_text(&p, role_name);
		ev_add_text(&p, names[i].name);
		(void) ev_statement_run(&take, &p);
		ev_statements_end();
	}
	change_privileges(role_name, before, before & ~capability);
	return true;
}

/*
 * Grant what the role needs now and did not need before, and the reverse.
 */
static void
change_privileges(const char *role_name, int before, int after)
{
	int			i;

	for (i = 0; i < lengthof(privileges); i++)
	{
		bool		had = (privileges[i].capabilities & before) != 0;
		bool		needs = (privileges[i].capabilities & after) != 0;

		if (had == needs)
			continue;
		run_utility(psprintf("%s %s %s %s",
							 needs ? "GRANT" : "REVOKE",
							 privileges[i].object,
							 needs ? "TO" : "FROM",
							 quote_identifier(role_name)));
	}
}

/*
 * GRANT takes no parameters, so the text is made for each role; its only
 * variable part is the quoted role name.
 */
static void
run_utility(const char *text)
{
	int			rc;

	ev_statements_begin();
	rc = SPI_execute(text, false, 0);
	if (rc != SPI_OK_UTILITY)
		elog(ERROR, "could not change privileges: %s",
			 SPI_result_code_string(rc));
	ev_statements_end();
}
