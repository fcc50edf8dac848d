/*-------------------------------------------------------------------------
 *
 * redact_rule.h
 *	  What the files of redaction share: compiled rules, the inner entry.
 *
 * Private to this folder.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_REDACT_RULE_H
#define EV_PACKAGE_REDACT_RULE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "redact.h"

#define EV_RULE_NAME_LIMIT 40
#define EV_RULE_NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789_-"

/*
 * Check a rule and compile its pattern; the caller frees it.  NULL with
 * *error filled (EV_ERROR_ARGUMENT) when the rule cannot be accepted.
 */
extern pcre2_code *ev_rule_compile(const EvRule *rule, EvError *error);

/*
 * ev_redactor_apply for a caller that has scanned the text already; found is
 * what ev_scan_bytes said about it.
 */
extern int	ev_redactor_apply_scanned(EvRedactor *redactor, const char *text,
									  size_t length, unsigned found,
									  EvBuffer *out, EvError *error);

#endif							/* EV_PACKAGE_REDACT_RULE_H */
