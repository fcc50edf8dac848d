/*-------------------------------------------------------------------------
 *
 * rules.c
 *	  add_redaction_rule() and retire_redaction_rule().
 *
 * A rule is tried by the real engine before it is stored: a pattern that does
 * not compile would otherwise fail every export from then on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "api/call.h"
#include "base/errors.h"
#include "ledger/audit.h"
#include "ledger/ruleset.h"
#include "package/redact.h"
#include "process/scrub.h"

static void read_anchors(FunctionCallInfo fcinfo, int argument,
						 EvStoredRule *rule);
static void check_rule(const EvStoredRule *rule);
static int	store_rule(const EvCall *call, const EvStoredRule *rule,
					   const char *action, const char *reason);

PG_FUNCTION_INFO_V1(ev_sql_builtin_rules);
PG_FUNCTION_INFO_V1(ev_sql_add_redaction_rule);
PG_FUNCTION_INFO_V1(ev_sql_retire_redaction_rule);

/*
 * The library's own rules; the install script copies them into the table.
 */
Datum
ev_sql_builtin_rules(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			i;
	int			j;

	InitMaterializedSRF(fcinfo, 0);
	for (i = 0; i < ev_builtin_rule_count; i++)
	{
		const EvRule *rule = &ev_builtin_rules[i];
		Datum	   *anchors = palloc(sizeof(Datum) * Max(rule->nanchors, 1));
		Datum		values[5];
		bool		nulls[5] = {false, false, false, false, false};

		for (j = 0; j < rule->nanchors; j++)
			anchors[j] = CStringGetTextDatum(rule->anchors[j]);
		values[0] = CStringGetTextDatum(rule->name);
		values[1] = Int32GetDatum(10 * (i + 1));
		values[2] = CStringGetTextDatum(rule->pattern);
		values[3] = PointerGetDatum(construct_array(anchors, rule->nanchors,
													TEXTOID, -1, false,
													TYPALIGN_INT));
		values[4] = BoolGetDatum((rule->flags & EV_RULE_JOIN_LINES) != 0);
		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	PG_RETURN_NULL();
}

Datum
ev_sql_add_redaction_rule(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvStoredRule rule = {0};
	char	   *reason;
	int			version;

	rule.name = ev_call_required_text(fcinfo, 0, "name", 40);
	rule.pattern = ev_call_required_text(fcinfo, 1, "pattern", 10000);
	reason = ev_scrub(ev_call_required_text(fcinfo, 2, "reason",
											EV_REASON_LIMIT));
	read_anchors(fcinfo, 3, &rule);
	rule.join_lines = PG_ARGISNULL(4) ? false : PG_GETARG_BOOL(4);

	ev_call_begin(&call, "add_redaction_rule", EV_OPERATOR);
	check_rule(&rule);
	version = store_rule(&call, &rule, "redaction_rule.add", reason);
	ev_call_end(&call);
	PG_RETURN_INT32(version);
}

Datum
ev_sql_retire_redaction_rule(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvStoredRule rule = {0};
	EvStoredRule *rules;
	char	   *reason;
	int			nrules;
	int			version;
	int			i;

	rule.name = ev_call_required_text(fcinfo, 0, "name", 40);
	reason = ev_scrub(ev_call_required_text(fcinfo, 1, "reason",
											EV_REASON_LIMIT));

	ev_call_begin(&call, "retire_redaction_rule", EV_OPERATOR);
	nrules = ev_ruleset_load(ev_ruleset_version(), &rules);
	for (i = 0; i < nrules; i++)
	{
		if (strcmp(rules[i].name, rule.name) == 0)
			break;
	}
	if (i == nrules)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("redaction rule \"%s\" is not in use", rule.name),
				 errhint("Table evidence.redaction_rule lists all rules.")));
	version = store_rule(&call, &rule, "redaction_rule.retire", reason);
	ev_call_end(&call);
	PG_RETURN_INT32(version);
}

static void
read_anchors(FunctionCallInfo fcinfo, int argument, EvStoredRule *rule)
{
	Datum	   *elements;
	bool	   *nulls;
	int			i;

	if (PG_ARGISNULL(argument))
		return;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(argument), TEXTOID, -1, false,
					  TYPALIGN_INT, &elements, &nulls, &rule->nanchors);
	rule->anchors = palloc(sizeof(char *) * Max(rule->nanchors, 1));
	for (i = 0; i < rule->nanchors; i++)
		rule->anchors[i] = nulls[i] ? "" : TextDatumGetCString(elements[i]);
}

static void
check_rule(const EvStoredRule *rule)
{
	EvRule		candidate = {0};
	EvError		error;

	candidate.name = rule->name;
	candidate.pattern = pg_server_to_any(rule->pattern,
										 strlen(rule->pattern), PG_UTF8);
	candidate.anchors = (const char *const *) rule->anchors;
	candidate.nanchors = rule->nanchors;
	candidate.flags = rule->join_lines ? EV_RULE_JOIN_LINES : 0;
	if (!ev_rule_check(&candidate, &error))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot use redaction rule \"%s\": %s", rule->name,
						error.text),
				 errhint("Patterns have PCRE2 syntax; names are [a-z0-9_-]{1,40}; anchors are ASCII texts of which a match contains one.")));
}

static int
store_rule(const EvCall *call, const EvStoredRule *rule, const char *action,
		   const char *reason)
{
	int			version = ev_ruleset_add(rule, call->role, reason);

	ev_audit_append_action(action, call->role, call->session_role,
						   "redaction_rule", rule->name, reason);
	return version;
}
