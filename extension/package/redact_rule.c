/*-------------------------------------------------------------------------
 *
 * redact_rule.c
 *	  What a redaction rule may be, its compiled form, a ruleset's digest.
 *
 * Rules of users are stored in the database and come back years later, when
 * an export is verified.  So a rule is checked when it is made, and a digest
 * over all rules says later whether they are still the same.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "anchor.h"
#include "json.h"
#include "redact.h"
#include "redact_rule.h"

#define PATTERN_LIMIT 16384

static bool check_texts(const EvRule *rule, EvError *error);

/*
 * Compiling is the check: there is no second grammar of patterns in this
 * project.
 */
bool
ev_rule_check(const EvRule *rule, EvError *error)
{
	pcre2_code *code = ev_rule_compile(rule, error);

	pcre2_code_free(code);
	return code != NULL;
}

/*
 * \C matches a single byte and could cut a character in two, so it is refused.
 * Patterns are UTF-8 like the values; case matters unless the pattern says
 * otherwise.
 */
pcre2_code *
ev_rule_compile(const EvRule *rule, EvError *error)
{
	int			code;
	PCRE2_SIZE	offset;
	pcre2_code *compiled;

	if (!check_texts(rule, error))
		return NULL;
	compiled = pcre2_compile((PCRE2_SPTR) rule->pattern,
							 PCRE2_ZERO_TERMINATED,
							 PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C,
							 &code, &offset, NULL);
	if (compiled == NULL)
	{
		char		reason[128];

		pcre2_get_error_message(code, (PCRE2_UCHAR *) reason, sizeof(reason));
		ev_error_set(error, EV_ERROR_ARGUMENT, "pattern of redaction rule \"%s\" is wrong at byte %zu: %s",
					 rule->name, (size_t) offset, reason);
	}
	return compiled;
}

/*
 * The digest is over what decides the outcome, in the order that decides it.
 * Two rulesets with one digest redact alike.
 */
bool
ev_ruleset_digest(const EvRule *rules, int nrules, int version,
				  char hex[EV_SHA256_HEX], EvError *error)
{
	EvBuffer	text = {0};
	EvJson		json;
	unsigned char digest[EV_SHA256_BYTES];
	bool		done;
	int			i;
	int			j;

	ev_json_start(&json, &text);
	ev_json_object(&json);
	ev_json_key(&json, "rules");
	ev_json_array(&json);
	for (i = 0; i < nrules; i++)
	{
		ev_json_object(&json);
		ev_json_key(&json, "anchors");
		ev_json_array(&json);
		for (j = 0; j < rules[i].nanchors; j++)
			ev_json_string(&json, rules[i].anchors[j]);
		ev_json_end_array(&json);
		ev_json_key(&json, "flags");
		ev_json_integer(&json, rules[i].flags);
		ev_json_key(&json, "name");
		ev_json_string(&json, rules[i].name);
		ev_json_key(&json, "pattern");
		ev_json_string(&json, rules[i].pattern);
		ev_json_end_object(&json);
	}
	ev_json_end_array(&json);
	ev_json_key(&json, "version");
	ev_json_integer(&json, version);
	ev_json_end_object(&json);

	done = ev_json_finish(&json) ||
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	done = done && ev_sha256(text.data, text.length, digest, error);
	if (done)
		ev_sha256_hex(digest, hex);
	ev_buffer_free(&text);
	return done;
}

/* Everything about a rule but its pattern's grammar. */
static bool
check_texts(const EvRule *rule, EvError *error)
{
	size_t		length = strlen(rule->name);
	int			i;

	if (length == 0 || length > EV_RULE_NAME_LIMIT ||
		strspn(rule->name, EV_RULE_NAME_CHARACTERS) != length)
		return ev_error_set(error, EV_ERROR_ARGUMENT, "name of a redaction rule must be 1 to 40 of a-z, 0-9, \"_\" and \"-\"");
	if (strlen(rule->pattern) == 0 || strlen(rule->pattern) > PATTERN_LIMIT)
		return ev_error_set(error, EV_ERROR_ARGUMENT, "pattern of redaction rule \"%s\" must have 1 to %d bytes",
							rule->name, PATTERN_LIMIT);
	for (i = 0; i < rule->nanchors; i++)
		if (!ev_anchor_valid(rule->anchors[i]))
			return ev_error_set(error, EV_ERROR_ARGUMENT, "anchor of redaction rule \"%s\" must have 3 to 40 ASCII characters",
								rule->name);
	return true;
}
