/*-------------------------------------------------------------------------
 *
 * test_line.c
 *	  One audit record as one line of JSON: its form, always valid, and without
 *	  secrets, also where they stand in JSON themselves.
 *
 * jansson, another parser than the writer under test, reads the lines.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "line.h"
#include "secret_vectors.h"
#include "tap.h"

static EvLine line;
static EvRedactor *redactor;

/* Begin and end a line; in between come the fields of a test. */
static void
begin(EvRedactor *rules)
{
	EvError		error;

	if (!ev_line_begin(&line, rules, 7, "a.b", 3, 0, &error))
		abort();
}

/* The line as another parser reads it; NULL if it is not one valid line. */
static json_t *
finish(void)
{
	EvError		error;

	if (!ev_line_finish(&line, &error) ||
		memchr(line.text.data, '\n', line.text.length) !=
		line.text.data + line.text.length - 1)
		return NULL;
	return json_loadb(line.text.data, line.text.length, JSON_ALLOW_NUL, NULL);
}

static json_t *
field(json_t *record, const char *name)
{
	return json_object_get(json_object_get(record, "fields"), name);
}

static bool
is_string(json_t *value, const char *wanted, size_t length)
{
	return value != NULL && json_string_length(value) == length &&
		memcmp(json_string_value(value), wanted, length) == 0;
}

static void
test_form(void)
{
	EvError		error;
	json_t	   *record;

	begin(NULL);
	ev_line_integer(&line, "z", -3);
	ev_line_integer(&line, "large", INT64_C(9007199254740993));
	ev_line_null(&line, "null");
	ev_line_boolean(&line, "yes", true);
	ev_line_timestamp(&line, "at", INT64_MAX);
	ok(ev_line_text(&line, "a", "x", 1, &error), "a text is written");
	ok(ev_line_json(&line, "json", "{\"b\": [1, \"c\"]}", 15, &error),
	   "JSON is written");
	record = finish();
	is(line.text.data,
	   "{\"id\":7,\"event\":\"a.b\",\"created_at\":\"2000-01-01T00:00:00.000000Z\","
	   "\"fields\":{\"z\":-3,\"large\":\"9007199254740993\",\"null\":null,"
	   "\"yes\":true,\"at\":\"infinity\",\"a\":\"x\",\"json\":{\"b\": [1, \"c\"]}}}\n",
	   "members keep the order in which they are given");
	ok(record != NULL, "the line is valid");
	json_decref(record);
}

/* Every byte, valid or not, beside its neighbours. */
static void
test_bytes(void)
{
	EvError		error;
	int			invalid = 0;
	int			changed = 0;
	int			c;

	for (c = 0; c < 256; c++)
	{
		char		text[] = {'<', (char) c, '>', (char) c, (char) 0x80, '"'};
		json_t	   *record;

		begin(redactor);
		if (!ev_line_text(&line, "text", text, sizeof(text), &error))
			abort();
		record = finish();
		if (record == NULL)
			invalid++;
		else if (c < 0x80 &&
				 json_string_value(field(record, "text"))[1] != text[1])
			changed++;
		json_decref(record);
	}
	ok(invalid == 0, "any byte gives one valid line");
	ok(changed == 0, "and ASCII comes through");

	begin(NULL);
	ok(ev_line_text(&line, "text", "a\xff\xc3(", 4, &error) &&
	   ev_line_json(&line, "json", "\"\xed\xa0\x80\"", 5, &error),
	   "bytes that are no UTF-8 are taken");
	{
		json_t	   *record = finish();

		ok(is_string(field(record, "text"), "a\xef\xbf\xbd\xef\xbf\xbd(", 8),
		   "and replaced one by one");
		ok(json_is_string(field(record, "json")), "in JSON as well");
		json_decref(record);
	}
}

/* Is there anything in the decoded strings that the rules would take? */
static int
count_leaks(json_t *value)
{
	EvBuffer	out = {0};
	EvError		error;
	int			found = 0;
	const char *key;
	json_t	   *member;
	size_t		i;

	if (json_is_string(value))
		found = ev_redactor_apply(redactor, json_string_value(value),
								  json_string_length(value), &out,
								  &error) > 0;
	json_object_foreach(value, key, member)
		found += count_leaks(member) +
		(ev_redactor_apply(redactor, key, strlen(key), &out, &error) > 0);
	json_array_foreach(value, i, member)
		found += count_leaks(member);
	ev_buffer_free(&out);
	return found;
}

/* The text of a vector as a value, in an array, and as a key. */
static void
test_vector(const SecretVector *vector)
{
	const char *wanted = vector->result ? vector->result : vector->text;
	EvError		error;
	json_t	   *given = json_pack("{s:s, s:[i, s, {s:n}], s:{s:i}}",
								  "text", vector->text, "list", 1,
								  vector->text, "x",
								  "deep", vector->text, 1);
	char	   *text = json_dumps(given, 0);
	json_t	   *record;

	begin(redactor);
	if (!ev_line_text(&line, "summary", vector->text, strlen(vector->text),
					  &error) ||
		!ev_line_json(&line, "metadata", text, strlen(text), &error))
		abort();
	record = finish();
	ok(record != NULL, "%s: one valid line", vector->name);
	ok(is_string(field(record, "summary"), wanted, strlen(wanted)),
	   "%s: a text is redacted as in an export", vector->name);
	ok(count_leaks(field(record, "metadata")) == 0,
	   "%s: nothing is left in JSON", vector->name);
	if (vector->result == NULL)
		ok(json_equal(field(record, "metadata"), given),
		   "%s: and what is no secret stays", vector->name);
	json_decref(record);
	json_decref(given);
	free(text);
}

/* What a key says about its value, whatever the value looks like. */
static void
test_keys(void)
{
	static const char *const hidden[] = {
		"{\"password\": \"Zk4 with words\"}", "{\"a\": {\"api_key\": \"Zk4-91\"}}",
		"{\"password\": 4711001}", "{\"password\": \"Zk4\\\"quoted\\\\\"}",
		"{\"password\": [\"Zk4a\", \"Zk4b\"]}", "\"password=Zk4planted\"",
		"{\"password=Zk4planted\": 1}", "[\"x\", \"password: Zk4\\npassword: Zk4b\"]"
	};
	static const char *const kept[] = {
		"{}", "[]", "null", "1.5e3", "\"\\u0001 \\\\ \\\" \\n\"",
		"{\"a\\\"b\": [true, false, null, {\"c\": {}}], \"\": \"\"}"
	};
	EvError		error;
	size_t		i;

	for (i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
	{
		json_t	   *record;

		begin(redactor);
		if (!ev_line_json(&line, "metadata", hidden[i], strlen(hidden[i]),
						  &error))
			abort();
		record = finish();
		ok(record != NULL && strstr(line.text.data, "Zk4") == NULL &&
		   strstr(line.text.data, "4711001") == NULL &&
		   strstr(line.text.data, "[redacted:") != NULL,
		   "hidden: %s", hidden[i]);
		printf("# %s", line.text.data);
		json_decref(record);
	}
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
	{
		json_t	   *record;
		json_t	   *given = json_loads(kept[i], JSON_DECODE_ANY, NULL);

		begin(redactor);
		if (!ev_line_json(&line, "metadata", kept[i], strlen(kept[i]),
						  &error))
			abort();
		record = finish();
		ok(given != NULL && json_equal(field(record, "metadata"), given),
		   "kept: %s", kept[i]);
		json_decref(record);
		json_decref(given);
	}
}

int
main(void)
{
	EvError		error;
	size_t		i;

	redactor = ev_redactor_create(ev_builtin_rules, ev_builtin_rule_count,
								  &error);
	if (redactor == NULL)
		abort();
	test_form();
	test_bytes();
	for (i = 0; i < sizeof(secret_vectors) / sizeof(secret_vectors[0]); i++)
		test_vector(&secret_vectors[i]);
	test_keys();
	ev_line_free(&line);
	ev_redactor_free(redactor);
	return tap_done();
}
