/*-------------------------------------------------------------------------
 *
 * ruleset.h
 *	  The versioned redaction rules in the database.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_RULESET_H
#define EV_LEDGER_RULESET_H

typedef struct EvStoredRule
{
	char	   *name;
	char	   *pattern;
	char	  **anchors;
	int			nanchors;
	bool		join_lines;
} EvStoredRule;

/*
 * The identity of a ruleset.  The version alone is none: one that was added
 * in a transaction that is rolled back is given to other rules, and an
 * extension that is created anew begins at 1 again.
 */
typedef struct EvRuleset
{
	int			version;
	Oid			table;
	TransactionId added_by;
} EvRuleset;

/* The newest version of the ruleset, and what it is known by. */
extern int	ev_ruleset_version(void);
extern EvRuleset ev_ruleset_newest(void);

/* The rules of one version in their order; returns their number. */
extern int	ev_ruleset_load(int version, EvStoredRule **rules);

/*
 * Add a rule (pattern NULL: retire the one of this name) from the next
 * version on, which is returned.
 */
extern int	ev_ruleset_add(const EvStoredRule *rule, const char *added_by,
						   const char *reason);

#endif							/* EV_LEDGER_RULESET_H */
