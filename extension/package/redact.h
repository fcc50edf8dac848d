/*-------------------------------------------------------------------------
 *
 * redact.h
 *	  Find secrets in one text value and replace each by [redacted:<rule>].
 *
 * Rules are data: the server keeps them in evidence.redaction_rule, versioned
 * and immutable; the rules shipped with this library are ev_builtin_rules.
 * Redaction is a filter for known shapes and no guarantee.
 *
 * Requirements S1.5, S1.42, S1.44; cases C21 to C33.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_REDACT_H
#define EV_PACKAGE_REDACT_H

#include <stddef.h>

#include "buffer.h"
#include "digest.h"
#include "error.h"

/* The rule is also tried on the text with line breaks and tabs taken out. */
#define EV_RULE_JOIN_LINES		0x01

typedef struct EvRule
{
	const char *name;			/* [a-z0-9_-]{1,40}; appears in the mark */
	const char *pattern;		/* PCRE2 syntax, UTF-8; what is replaced is
								 * group 1 if it took part, else the match */
	const char *const *anchors; /* ASCII literals of 3 to 40 characters,
								 * compared without case; the rule is not
								 * tried on a text without any of them */
	int			nanchors;		/* 0 = the rule is tried on every text */
	unsigned	flags;			/* EV_RULE_* */
} EvRule;

/* The rules of this library, ruleset version 1, in their order of use. */
extern const EvRule ev_builtin_rules[];
extern const int ev_builtin_rule_count;

typedef struct EvRedactor EvRedactor;

/*
 * Compile a ruleset.  NULL with *error filled when a pattern does not compile
 * (the text names the rule and the position).  The rules are copied.
 */
extern EvRedactor *ev_redactor_create(const EvRule *rules, int nrules,
									  EvError *error);
extern void ev_redactor_free(EvRedactor *redactor); /* NULL is allowed */

/*
 * Redact one whole value, which must be valid UTF-8.  Returns the number of
 * secrets replaced and, if that is above 0, the new text in *out (reset
 * first); with 0 *out is untouched and the caller goes on with the original.
 * Returns -1 with *error filled when memory or a library fails.  A rule that
 * exceeds its match budget replaces the whole value.
 */
extern int	ev_redactor_apply(EvRedactor *redactor, const char *text,
							  size_t length, EvBuffer *out, EvError *error);

/* Would this rule be accepted?  Checks name, pattern and anchors. */
extern bool ev_rule_check(const EvRule *rule, EvError *error);

/* SHA-256 over the canonical JSON of a ruleset, as hex. */
extern bool ev_ruleset_digest(const EvRule *rules, int nrules, int version,
							  char hex[EV_SHA256_HEX], EvError *error);

#endif							/* EV_PACKAGE_REDACT_H */
