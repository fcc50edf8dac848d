/*-------------------------------------------------------------------------
 *
 * ruleset.c
 *	  The versioned redaction rules in the database.
 *
 * Rows are only ever added.  Version N consists, of each name, of the newest
 * row that was added in N or before; a row without a pattern retires its
 * name.  An export pins its version, so it can be repeated byte for byte
 * after the rules have changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "ledger/ruleset.h"
#include "ledger/statement.h"

int
ev_ruleset_version(void)
{
	return ev_ruleset_newest().version;
}

EvRuleset
ev_ruleset_newest(void)
{
	static EvStatement newest = {
		"SELECT added_in, tableoid, xmin FROM evidence.redaction_rule"
		" ORDER BY added_in DESC, position LIMIT 1"
	};
	EvRuleset	ruleset = {0};
	bool		isnull;

	ev_statements_begin();
	if (ev_statement_run_latest(&newest, NULL) == 1)
	{
		ruleset.version = ev_result_int4(0, 1);
		ruleset.table = DatumGetObjectId(ev_result_datum(0, 2, &isnull));
		ruleset.added_by =
			DatumGetTransactionId(ev_result_datum(0, 3, &isnull));
	}
	ev_statements_end();
	return ruleset;
}

int
ev_ruleset_load(int version, EvStoredRule **rules)
{
	static EvStatement load = {
		"SELECT name, pattern, anchors, join_lines"
		"  FROM (SELECT DISTINCT ON (name) name, pattern, anchors, join_lines,"
		"               position"
		"          FROM evidence.redaction_rule"
		"         WHERE added_in <= $1"
		"         ORDER BY name, added_in DESC) AS newest"
		" WHERE pattern IS NOT NULL"
		" ORDER BY position, name COLLATE \"C\""
	};
	EvParameters p = {0};
	MemoryContext context = CurrentMemoryContext;
	int			count;
	int			i;

	ev_statements_begin();
	ev_add_int4(&p, version);
	/* A REPEATABLE READ caller may be older than the newest version. */
	count = (int) ev_statement_run_latest(&load, &p);
	*rules = MemoryContextAlloc(context,
								sizeof(EvStoredRule) * Max(count, 1));
	for (i = 0; i < count; i++)
	{
		EvStoredRule *rule = &(*rules)[i];

		rule->name = ev_result_text(i, 1);
		rule->pattern = ev_result_text(i, 2);
		rule->anchors = ev_result_texts(i, 3, &rule->nanchors);
		rule->join_lines = ev_result_bool(i, 4);
	}
	ev_statements_end();
	return count;
}

/*
 * Two sessions that add rules at once would make one version of two; the
 * lock makes them two versions.  A replaced or retired rule keeps its place
 * in the order.
 */
int
ev_ruleset_add(const EvStoredRule *rule, const char *added_by,
			   const char *reason)
{
	static EvStatement lock = {
		"LOCK TABLE evidence.redaction_rule IN SHARE ROW EXCLUSIVE MODE"
	};
	static EvStatement insert = {
		"INSERT INTO evidence.redaction_rule (name, added_in, position,"
		"       pattern, anchors, join_lines, added_by, reason)"
		"SELECT $1, coalesce(max(added_in), 0) + 1,"
		"       coalesce(max(position) FILTER (WHERE name = $1),"
		"                max(position) + 1, 1),"
		"       $2, $3, $4, $5, $6"
		"  FROM evidence.redaction_rule"
		" RETURNING added_in"
	};
	EvParameters p = {0};
	int			version;

	ev_statements_begin();
	(void) ev_statement_run(&lock, NULL);
	ev_add_text(&p, rule->name);
	ev_add_text(&p, rule->pattern);
	ev_add_texts(&p, (const char *const *) rule->anchors, rule->nanchors);
	ev_add_bool(&p, rule->join_lines);
	ev_add_text(&p, added_by);
	ev_add_text(&p, reason);
	(void) ev_statement_run_latest(&insert, &p);
	version = ev_result_int4(0, 1);
	ev_statements_end();
	return version;
}
