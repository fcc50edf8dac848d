/*-------------------------------------------------------------------------
 *
 * fuzz_redact.c
 *	  Any text under the built-in rules, and any pattern as a user's rule.
 *
 * Built-in rules: the result is valid UTF-8, keeps every byte that is no
 * secret in its order, and a secret that was planted into the text is gone
 * from it, whatever stands around.
 *
 * A user's rule: what the check accepts compiles, a match never leaves the
 * limits or the text, and the name of the rule is all that is put in.  The
 * text is short, since the budget of a match counts for each place where one
 * may begin (see README).
 *
 *-------------------------------------------------------------------------
 */
#include "csv.h"
#include "unicode.h"

#include "fuzz.h"

#define USER_TEXT 300
#define ANCHORS 4
#define MARK "[redacted:"

/* Lines with a secret, and the part that must not be there afterwards. */
static const struct
{
	const char *line;
	const char *secret;
}			planted[] = {
	{"\npassword=Ez65530QkTv\n", "Ez65530QkTv"},
	{"\nAuthorization: Bearer Kq7RmT2xVb94LsWd0PzE\n", "Kq7RmT2xVb94LsWd0PzE"},
	{"\nAKIA" "Q7RMT2XVB94LSWD0\n", "Q7RMT2XVB94LSWD0"},
	{"\nghp_" "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z45\n", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z45"},
	{"\npostgres://app:Zr81kQvT0bLmW2@db.example/x\n", "Zr81kQvT0bLmW2"}
};

static bool
contains(const EvBuffer *text, const char *part)
{
	return memmem(text->data, text->length, part, strlen(part)) != NULL;
}

/*
 * Outside of its marks the result must be the text with parts left out: each
 * of its pieces is found in the text, one behind the other.  A text may hold
 * marks of its own, so a mark may stand for itself too.
 */
static bool
only_left_out(const char *text, size_t length, const EvBuffer *out)
{
	size_t		from = 0;
	size_t		at = 0;

	while (at < out->length)
	{
		const char *mark = memmem(out->data + at, out->length - at, MARK,
								  strlen(MARK));
		size_t		end = out->length;
		const char *found;

		if (mark != NULL)
			end = (size_t) (mark - out->data);
		found = memmem(text + from, length - from, out->data + at, end - at);
		if (found == NULL)
			return false;
		from = (size_t) (found - text) + (end - at);
		if (mark == NULL)
			break;
		mark = memchr(mark, ']', out->length - end);
		at = mark != NULL ? (size_t) (mark - out->data) + 1 : out->length;
	}
	return true;
}

/* Redact and check what holds for every rule. */
static int
redact(EvRedactor *redactor, const EvBuffer *text, EvBuffer *out)
{
	char	   *copy = exact_copy(text->length > 0 ? text->data : "",
								  text->length);
	EvError		error;
	int			count = ev_redactor_apply(redactor, copy, text->length, out,
										  &error);

	demand(count >= 0);
	if (count > 0)
	{
		demand(ev_utf8_valid(out->data, out->length));
		demand(contains(out, MARK));
		demand(memmem(copy, text->length, MARK, strlen(MARK)) != NULL ||
			   only_left_out(copy, text->length, out));
	}
	else
	{
		ev_buffer_reset(out);
		ev_buffer_append(out, copy, text->length);
	}
	free(copy);
	return count;
}

/* The secret goes to the place that the input names. */
static void
try_builtin(const EvBuffer *text, size_t number, size_t place)
{
	static EvBuffer with;
	static EvBuffer out;
	const char *line = planted[number % 5].line;
	const char *secret = planted[number % 5].secret;

	redact(builtin_redactor(), text, &out);

	/* The fuzzer has seen the secrets and may put one where it is none. */
	if (contains(text, secret))
		return;
	place %= text->length + 1;
	while (place < text->length &&
		   ((unsigned char) text->data[place] & 0xC0) == 0x80)
		place++;
	ev_buffer_reset(&with);
	ev_buffer_append(&with, text->data, place);
	ev_buffer_append_string(&with, line);
	ev_buffer_append(&with, text->data + place, text->length - place);
	demand(redact(builtin_redactor(), &with, &out) > 0);
	demand(!contains(&out, secret));
}

/* Pieces: the pattern, its anchors, the text. */
static void
try_user_rule(const uint8_t *data, size_t size, unsigned flags)
{
	static EvBuffer text;
	static EvBuffer out;
	char		pattern[600] = "";
	char		anchors[ANCHORS][64];
	const char *list[ANCHORS];
	EvRule		rule = {"mine", pattern, list, 0, flags};
	EvRedactor *redactor;
	EvError		error = {EV_ERROR_NONE, ""};
	Piece		piece;
	uint64_t	invalid;

	if (next_piece(&data, &size, &piece))
		snprintf(pattern, sizeof(pattern), "%.*s", (int) piece.length,
				 piece.text);
	while (rule.nanchors < ANCHORS && size > 0 &&
		   memchr(data, SEPARATOR, size) != NULL &&
		   next_piece(&data, &size, &piece))
	{
		snprintf(anchors[rule.nanchors], 64, "%.*s", (int) piece.length,
				 piece.text);
		list[rule.nanchors] = anchors[rule.nanchors];
		rule.nanchors++;
	}

	redactor = ev_redactor_create(&rule, 1, &error);
	demand((redactor != NULL) == ev_rule_check(&rule, &error));
	if (redactor == NULL)
	{
		demand(error.kind == EV_ERROR_ARGUMENT);
		return;
	}
	ev_buffer_reset(&text);
	if (size > USER_TEXT)
		size = USER_TEXT;
	demand(ev_utf8_repair((const char *) data, size, &text, &invalid));
	redact(redactor, &text, &out);
	ev_redactor_free(redactor);
}

/* The first byte tells which of the two, the next where and what. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static EvBuffer text;
	uint64_t	invalid;

	if (size < 3)
		return 0;
	if ((data[0] & 1) != 0)
		try_user_rule(data + 3, size - 3,
					  (data[0] & 2) != 0 ? EV_RULE_JOIN_LINES : 0);
	else
	{
		ev_buffer_reset(&text);
		demand(ev_utf8_repair((const char *) data + 3, size - 3, &text,
							  &invalid));
		try_builtin(&text, data[0] >> 1, (size_t) data[1] << 8 | data[2]);
	}
	return 0;
}
