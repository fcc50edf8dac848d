/*-------------------------------------------------------------------------
 *
 * test_redact.c
 *	  Redaction: known answers for each family, budgets, rules of users.
 *
 * Cases C21 to C33.  The answers are exact: they show that the secret is gone
 * and that everything around it stayed.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redact.h"
#include "secret_vectors.h"
#include "tap.h"

static EvRedactor *redactor;

static void
test_vectors(void)
{
	EvBuffer	out = {0};
	EvError		error;
	size_t		i;

	for (i = 0; i < sizeof(secret_vectors) / sizeof(secret_vectors[0]); i++)
	{
		const SecretVector *vector = &secret_vectors[i];
		int			count = ev_redactor_apply(redactor, vector->text,
											  strlen(vector->text), &out,
											  &error);

		if (vector->result == NULL)
			ok(count == 0, "%s stays: %.*s", vector->name,
			   (int) strcspn(vector->text, "\r\n"), vector->text);
		else
			is(count > 0 ? out.data : vector->text, vector->result,
			   vector->name);

		/* What was redacted once is left alone the second time (case C09). */
		if (count > 0)
		{
			char	   *once = strdup(out.data);

			ok(ev_redactor_apply(redactor, once, strlen(once), &out,
								 &error) == 0, "%s a second time",
			   vector->name);
			free(once);
		}
	}
	ev_buffer_free(&out);
}

/* A secret is found wherever in a long value it lies (cases C15, C30). */
static void
test_positions(void)
{
	static const size_t positions[] = {
		0, 1, 15, 16, 17, 4090, 4096, 8184, 32767, 65530, 131072, 500001
	};
	static const char secret[] = " password=Ez65530QkTv rest";
	EvBuffer	text = {0};
	EvBuffer	out = {0};
	EvError		error;
	size_t		i;

	for (i = 0; i < sizeof(positions) / sizeof(positions[0]); i++)
	{
		size_t		k;

		ev_buffer_reset(&text);
		for (k = 0; k < positions[i]; k++)
			ev_buffer_append_byte(&text, k % 9 == 0 ? ' ' : 'a');
		ev_buffer_append_string(&text, secret);
		ok(ev_redactor_apply(redactor, text.data, text.length, &out,
							 &error) == 1 &&
		   out.length == positions[i] + strlen(" password=[redacted:password] rest") &&
		   strstr(out.data, "Ez65530") == NULL,
		   "C30 secret at %zu", positions[i]);
	}
	ev_buffer_free(&text);
	ev_buffer_free(&out);
}

/*
 * Time says nothing about a program under valgrind, which looks at each of
 * its steps; there shorter texts are enough.
 */
#ifdef EV_TEST_SLOW
#define LONG_TEXT 5000
#define TIME_LIMIT 1e9
#else
#define LONG_TEXT 200000
#define TIME_LIMIT 2.0
#endif

/* Fill a long text with piece, put tail behind it, and stop the time. */
static void
check_time(const char *piece, const char *tail)
{
	EvBuffer	text = {0};
	EvBuffer	out = {0};
	EvError		error;
	struct timespec start;
	struct timespec end;
	double		seconds;

	while (text.length < LONG_TEXT)
		ev_buffer_append_string(&text, piece);
	ev_buffer_append_string(&text, tail);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	ev_redactor_apply(redactor, text.data, text.length, &out, &error);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	seconds = (double) (end.tv_sec - start.tv_sec) +
		(double) (end.tv_nsec - start.tv_nsec) / 1e9;
	ok(seconds < TIME_LIMIT, "C32 %.20s repeated: %.0f ms", piece, seconds * 1000);
	ev_buffer_free(&text);
	ev_buffer_free(&out);
}

static void
test_linear(void)
{
	check_time("a_.", "");
	check_time("\\", "");
	check_time("password='", "");
	check_time("password=[", "");
	check_time("password=\\\"", "");
	check_time("password=,a", "");
	check_time("secret_a.b-", "");
	check_time("http://a:b/", "");
	check_time("http://aaaaaaaaaaaaaaaaaaaaaa", "");
	check_time("://a:@", "");
	check_time("eyJaaaaaaaaaaaaa.", "");
	check_time("-----BEGIN " "PRIVATE KEY-----\naaaa\n", "");
	check_time("cookie: a=b;", "");
	check_time("curl -u a ", "");
	check_time("net use \\\\a ", "");
	check_time("<password a", "");
	check_time("%2525", "");
	check_time("cGFzc3dvcmQ9", "");
	check_time("gh\xE2\x80\x8Bp_", "");
	check_time("bearer authorization: ", "");
}

/* One opening quote and then only backslashes, as case C32 has it. */
static void
test_backslashes(void)
{
	EvBuffer	text = {0};
	EvBuffer	out = {0};
	EvError		error;
	int			i;

	ev_buffer_append_string(&text, "password='");
	for (i = 0; i < 100001; i++)
		ev_buffer_append_byte(&text, '\\');
	ok(ev_redactor_apply(redactor, text.data, text.length, &out, &error) == 1,
	   "C32 one secret");
	is(out.data, "password='[redacted:password]", "C32 backslashes are gone");
	ev_buffer_free(&text);
	ev_buffer_free(&out);
}

/* Only what is exactly a mark counts as redacted already. */
static void
test_marks(void)
{
	static const EvRule rule = {"mark", "(\\[redacted:[^\\]]*\\])", NULL, 0, 0};
	EvError		error;
	EvBuffer	out = {0};
	EvRedactor *mine = ev_redactor_create(&rule, 1, &error);

	ok(ev_redactor_apply(mine, "[redacted:password]", 19, &out, &error) == 0,
	   "C09 a mark stays");
	ok(ev_redactor_apply(mine, "[redacted:my secret]", 20, &out, &error) == 1,
	   "C09 a text in the clothes of a mark does not");
	ev_redactor_free(mine);
	ev_buffer_free(&out);
}

/* A pattern that needs more stack than the just-in-time code may have. */
static void
test_deep_rule(void)
{
	static const EvRule rule = {"deep", "((?:(x)|(y))*z)", NULL, 0, 0};
	EvError		error;
	EvBuffer	text = {0};
	EvBuffer	out = {0};
	EvRedactor *mine = ev_redactor_create(&rule, 1, &error);
	int			i;

	for (i = 0; i < LONG_TEXT / 2; i++)
		ev_buffer_append_byte(&text, 'x');
	ev_buffer_append_byte(&text, 'z');
	ok(ev_redactor_apply(mine, text.data, text.length, &out, &error) == 1 &&
	   memmem(out.data, out.length, "xx", 2) == NULL,
	   "a pattern of deep nesting still redacts");
	ev_redactor_free(mine);
	ev_buffer_free(&text);
	ev_buffer_free(&out);
}

static void
test_user_rules(void)
{
	static const char *const anchors[] = {"badge"};
	static const char *const short_anchors[] = {"ab"};
	EvRule		rules[] = {
		{"badge", "badge (\\d+)", anchors, 1, EV_RULE_JOIN_LINES},
		{"evil", "(a+)+$", NULL, 0, 0},
		{"empty", "q*", NULL, 0, 0}
	};
	EvRule		wrong[] = {
		{"Bad Name", "x", NULL, 0, 0}, {"", "x", NULL, 0, 0},
		{"open", "(", NULL, 0, 0}, {"none", "", NULL, 0, 0},
		{"short", "x", short_anchors, 1, 0}, {"bytes", "\\C", NULL, 0, 0}
	};
	EvBuffer	out = {0};
	EvError		error;
	EvRedactor *mine;
	char		text[64];
	char		hex[EV_SHA256_HEX];
	char		other[EV_SHA256_HEX];
	size_t		i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		error.text[0] = '\0';
		ok(!ev_rule_check(&wrong[i], &error) &&
		   error.kind == EV_ERROR_ARGUMENT, "refused: %s", error.text);
	}
	for (i = 0; i < 3; i++)
		ok(ev_rule_check(&rules[i], &error), "accepted: %s", rules[i].name);

	mine = ev_redactor_create(rules, 1, &error);
	ok(ev_redactor_apply(mine, "BADGE 1", 7, &out, &error) == 0,
	   "a pattern is compared with case");
	ok(ev_redactor_apply(mine, "badge 12, bad\nge 34", 19, &out, &error) == 2,
	   "lines are joined for a rule that asks for it");
	is(out.data, "badge [redacted:badge], bad\nge [redacted:badge]",
	   "only group 1 is replaced");
	ev_redactor_free(mine);

	mine = ev_redactor_create(rules, 3, &error);
	memset(text, 'a', sizeof(text));
	text[60] = 'b';
	ok(ev_redactor_apply(mine, text, 61, &out, &error) == 1 &&
	   strcmp(out.data, "[redacted:evil]") == 0,
	   "a rule without end replaces the whole value");
	ok(ev_redactor_apply(mine, "bcq\xC3\xA4", 5, &out, &error) == 1,
	   "empty matches are passed over");
	is(out.data, "bc[redacted:empty]\xC3\xA4", "and others are found");
	ev_redactor_free(mine);

	ok(ev_redactor_create(wrong, 3, &error) == NULL &&
	   error.kind == EV_ERROR_ARGUMENT, "nothing is made of a wrong rule");
	ok(!ev_rule_check(&wrong[0], NULL), "who wants no reason gets none");
	test_marks();
	test_deep_rule();

	ok(ev_ruleset_digest(rules, 3, 1, hex, &error) &&
	   ev_ruleset_digest(rules, 3, 2, other, &error) &&
	   strcmp(hex, other) != 0, "another version is another ruleset");
	ok(ev_ruleset_digest(ev_builtin_rules, ev_builtin_rule_count, 1, hex,
						 &error), "digest of the built-in rules");
	is(hex, "b3bc7e74e6b5e1799800ec7065fa8f85778fa97068758ee1aad5c0f00837ffa6",
	   "the built-in rules change with their version only");
	mine = ev_redactor_create(NULL, 0, &error);
	ok(mine != NULL && ev_redactor_apply(mine, "password=x", 10, &out,
										 &error) == 0, "no rules, no change");
	ev_redactor_free(mine);
	ev_buffer_free(&out);
}

/* Forms that are looked into only so far, or hold no characters. */
static void
test_odd_forms(void)
{
	static const char many[] = "a%252525253Db and %FF%C3(%80 password%3DEz65530QkTv";
	static const char escape[] = "pass\x1b[999999999999999999999999999999999999;word=Ez65530QkTv \x1b[\x01 x";
	EvBuffer	out = {0};
	EvError		error;

	ok(ev_redactor_apply(redactor, many, strlen(many), &out, &error) == 1 &&
	   strstr(out.data, "Ez65530QkTv") == NULL,
	   "bytes that are no text do not hide what stands behind them");
	ok(ev_redactor_apply(redactor, escape, strlen(escape), &out, &error) >= 0,
	   "an escape sequence without end is passed over");
	ev_buffer_free(&out);
}

int
main(void)
{
	EvError		error;

	redactor = ev_redactor_create(ev_builtin_rules, ev_builtin_rule_count,
								  &error);
	if (!ok(redactor != NULL, "built-in rules compile"))
		return 1;
	test_vectors();
	test_positions();
	test_linear();
	test_backslashes();
	test_user_rules();
	test_odd_forms();
	ev_redactor_free(redactor);
	return tap_done();
}
