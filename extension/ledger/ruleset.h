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

/* The newest version of the ruleset. */
extern int	ev_ruleset_version(void);

/* The rules of one version in their order; returns their number. */
extern int	ev_ruleset_load(int version, EvStoredRule **rules);

/*
 * Add a rule (pattern NULL: retire the one of this name) from the next
 * version on, which is returned.
 */
extern int	ev_ruleset_add(const EvStoredRule *rule, const char *added_by,
						   const char *reason);

#endif							/* EV_LEDGER_RULESET_H */
