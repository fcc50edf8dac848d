/*-------------------------------------------------------------------------
 *
 * line.c
 *	  One audit record as one line of JSON.
 *
 * Whatever a record holds, the result is one valid line: JSON escapes line
 * feeds and all other control characters, and bytes that are no UTF-8 become
 * replacement characters.  Nothing is cut.
 *
 * A field that is JSON itself is searched as a text first, where a rule sees
 * a key beside its value.  Only if it finds something, or if escapes could
 * hide something from it, is the field taken apart, and each value replaced on
 * its own, since a mark in the middle of the text could leave something that
 * is no JSON.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "csv.h"
#include "line.h"
#include "scan.h"
#include "unicode.h"

#define MARK "[redacted:"

/* Between a key and its value, as the server writes jsonb. */
#define COLON ": "

static bool clean(EvLine *line, const char **text, size_t *length,
				  EvError *error);
static bool repair(EvLine *line, const char **text, size_t *length);
static bool rewrite(EvLine *line, const char *json, size_t length,
					EvError *error);
static size_t token_length(const char *json, size_t length);
static bool put_key(EvLine *line, const char *key, size_t length,
					EvError *error);
static bool put_value(EvLine *line, const char *key, size_t key_length,
					  const char *value, size_t length, EvError *error);
static bool clean_string(EvLine *line, const char **string, size_t *length,
						 EvError *error);
static bool decode(EvBuffer *out, const char *string, size_t length);
static bool is_value(const char *text, size_t length);
static bool put_mark(EvLine *line);
static bool no_memory(EvError *error);

bool
ev_line_begin(EvLine *line, EvRedactor *redactor, int64_t id,
			  const char *event, size_t event_length, int64_t created_at,
			  EvError *error)
{
	line->redactor = redactor;
	ev_buffer_reset(&line->text);
	ev_json_start_plain(&line->json, &line->text);
	ev_json_object(&line->json);
	ev_line_integer(line, "id", id);
	if (!ev_line_text(line, "event", event, event_length, error))
		return false;
	ev_line_timestamp(line, "created_at", created_at);
	ev_json_key(&line->json, "fields");
	ev_json_object(&line->json);
	return true;
}

void
ev_line_null(EvLine *line, const char *name)
{
	ev_json_key(&line->json, name);
	ev_json_null(&line->json);
}

void
ev_line_integer(EvLine *line, const char *name, int64_t value)
{
	ev_json_key(&line->json, name);
	ev_json_integer(&line->json, value);
}

void
ev_line_boolean(EvLine *line, const char *name, bool value)
{
	ev_json_key(&line->json, name);
	ev_json_boolean(&line->json, value);
}

void
ev_line_timestamp(EvLine *line, const char *name, int64_t microseconds)
{
	char		text[EV_TIMESTAMP_TEXT];
	int			length = ev_timestamp_text(microseconds, text);

	ev_json_key(&line->json, name);
	ev_json_string_n(&line->json, text, (size_t) length);
}

bool
ev_line_text(EvLine *line, const char *name, const char *text, size_t length,
			 EvError *error)
{
	if (!clean(line, &text, &length, error))
		return false;
	ev_json_key(&line->json, name);
	ev_json_string_n(&line->json, text, length);
	return true;
}

/*
 * What is left after the values were replaced one by one is searched once
 * more: rather nothing of it than a part of a secret.
 */
bool
ev_line_json(EvLine *line, const char *name, const char *text, size_t length,
			 EvError *error)
{
	int			found = 0;

	if (!repair(line, &text, &length))
		return no_memory(error);
	if (line->redactor != NULL)
		found = ev_redactor_apply(line->redactor, text, length,
								  &line->redacted, error);
	if (found > 0 || (found == 0 && line->redactor != NULL &&
					  memchr(text, '\\', length) != NULL))
	{
		if (!rewrite(line, text, length, error))
			return false;
		text = line->rewritten.data;
		length = line->rewritten.length;
		found = ev_redactor_apply(line->redactor, text, length,
								  &line->redacted, error);
		if (found > 0)
		{
			ev_buffer_reset(&line->rewritten);
			if (!put_mark(line))
				return no_memory(error);
			text = line->rewritten.data;
			length = line->rewritten.length;
		}
	}
	if (found < 0)
		return false;
	ev_json_key(&line->json, name);
	ev_json_raw(&line->json, text, length);
	return true;
}

bool
ev_line_finish(EvLine *line, EvError *error)
{
	ev_json_end_object(&line->json);
	ev_json_end_object(&line->json);
	if (!ev_json_finish(&line->json) ||
		!ev_buffer_append_byte(&line->text, '\n'))
		return no_memory(error);
	return true;
}

void
ev_line_free(EvLine *line)
{
	ev_buffer_free(&line->text);
	ev_buffer_free(&line->repaired);
	ev_buffer_free(&line->redacted);
	ev_buffer_free(&line->rewritten);
	ev_buffer_free(&line->pair);
	ev_buffer_free(&line->decoded);
}

/*
 * The text without what is no UTF-8 and without secrets; valid until the next
 * call.
 */
static bool
clean(EvLine *line, const char **text, size_t *length, EvError *error)
{
	int			found = 0;

	if (!repair(line, text, length))
		return no_memory(error);
	if (line->redactor != NULL)
		found = ev_redactor_apply(line->redactor, *text, *length,
								  &line->redacted, error);
	if (found > 0)
	{
		*text = line->redacted.data;
		*length = line->redacted.length;
	}
	return found >= 0;
}

static bool
repair(EvLine *line, const char **text, size_t *length)
{
	uint64_t	invalid;

	if ((ev_scan_bytes(*text, *length) & EV_HAS_HIGH) == 0 ||
		ev_utf8_valid(*text, *length))
		return true;
	ev_buffer_reset(&line->repaired);
	if (!ev_utf8_repair(*text, *length, &line->repaired, &invalid))
		return false;
	*text = line->repaired.data;
	*length = line->repaired.length;
	return true;
}

/*
 * Copy valid JSON, token by token, to line->rewritten, with secrets replaced.
 * A value belongs to the key that stands last before it, also within an
 * array.
 */
static bool
rewrite(EvLine *line, const char *json, size_t length, EvError *error)
{
	const char *key = "";
	size_t		key_length = 0;
	size_t		i = 0;

	ev_buffer_reset(&line->rewritten);
	while (i < length)
	{
		size_t		token = token_length(json + i, length - i);
		bool		done;

		if (strchr("{}[],: ", json[i]) != NULL)
			done = ev_buffer_append(&line->rewritten, json + i, token) ||
				no_memory(error);
		else if (json[i] == '"' && i + token < length &&
				 json[i + token] == ':')
		{
			key = json + i;
			key_length = token;
			done = put_key(line, key, key_length, error);
		}
		else
			done = put_value(line, key, key_length, json + i, token, error);
		if (!done)
			return false;
		i += token;
	}
	return true;
}

/* A string with its quotes, a number or word, or one other character. */
static size_t
token_length(const char *json, size_t length)
{
	size_t		i = 1;

	if (json[0] == '"')
	{
		while (i < length && json[i] != '"')
			i += json[i] == '\\' ? 2 : 1;
		return i < length ? i + 1 : length;
	}
	if (strchr("{}[],: ", json[0]) != NULL)
		return 1;
	while (i < length && strchr("{}[],: ", json[i]) == NULL)
		i++;
	return i;
}

static bool
put_key(EvLine *line, const char *key, size_t length, EvError *error)
{
	int			found;

	if (!clean_string(line, &key, &length, error))
		return false;
	found = ev_redactor_apply(line->redactor, key, length, &line->redacted,
							  error);
	if (found < 0)
		return false;
	if (found > 0 && !is_value(line->redacted.data, line->redacted.length))
		return put_mark(line) || no_memory(error);
	if (found > 0)
	{
		key = line->redacted.data;
		length = line->redacted.length;
	}
	return ev_buffer_append(&line->rewritten, key, length) ||
		no_memory(error);
}

/*
 * The rules see key and value as they stand in JSON.  If they took more than
 * a part of the value, only the mark is left of it.
 */
static bool
put_value(EvLine *line, const char *key, size_t key_length,
		  const char *value, size_t length, EvError *error)
{
	size_t		prefix = key_length + strlen(COLON);
	int			found;

	if (!clean_string(line, &value, &length, error))
		return false;
	ev_buffer_reset(&line->pair);
	if (!ev_buffer_append(&line->pair, key, key_length) ||
		!ev_buffer_append_string(&line->pair, COLON) ||
		!ev_buffer_append(&line->pair, value, length))
		return no_memory(error);
	found = ev_redactor_apply(line->redactor, line->pair.data,
							  line->pair.length, &line->redacted, error);
	if (found < 0)
		return false;
	if (found == 0)
		return ev_buffer_append(&line->rewritten, value, length) ||
			no_memory(error);
	if (line->redacted.length > prefix &&
		memcmp(line->redacted.data, line->pair.data, prefix) == 0 &&
		is_value(line->redacted.data + prefix,
				 line->redacted.length - prefix))
		return ev_buffer_append(&line->rewritten,
								line->redacted.data + prefix,
								line->redacted.length - prefix) ||
			no_memory(error);
	return put_mark(line) || no_memory(error);
}

/*
 * Escapes stand in the way of rules that look for line feeds or quotes, so a
 * string that has any is searched as what it means, and written anew if there
 * was something.
 */
static bool
clean_string(EvLine *line, const char **string, size_t *length,
			 EvError *error)
{
	EvJson		json;
	int			found;

	if ((*string)[0] != '"' || memchr(*string, '\\', *length) == NULL)
		return true;
	if (!decode(&line->decoded, *string + 1, *length - 2))
		return no_memory(error);
	found = ev_redactor_apply(line->redactor, line->decoded.data,
							  line->decoded.length, &line->redacted, error);
	if (found <= 0)
		return found == 0;
	ev_buffer_reset(&line->decoded);
	ev_json_start_plain(&json, &line->decoded);
	ev_json_string_n(&json, line->redacted.data, line->redacted.length);
	if (!ev_json_finish(&json))
		return no_memory(error);
	*string = line->decoded.data;
	*length = line->decoded.length;
	return true;
}

/*
 * The server escapes quotes, backslashes and control characters, and nothing
 * above them.
 */
static bool
decode(EvBuffer *out, const char *string, size_t length)
{
	const char *letters = "bfnrt";
	const char *controls = "\b\f\n\r\t";
	size_t		i;

	ev_buffer_reset(out);
	if (!ev_buffer_reserve(out, length))
		return false;
	for (i = 0; i < length; i++)
	{
		char		c = string[i];
		const char *letter;
		unsigned	code;

		if (c == '\\' && i + 1 < length)
		{
			c = string[++i];
			letter = strchr(letters, c);
			if (letter != NULL)
				c = controls[letter - letters];
			else if (c == 'u' && i + 4 < length &&
					 sscanf(string + i + 1, "%4x", &code) == 1 && code < 0x80)
			{
				c = (char) code;
				i += 4;
			}
		}
		if (!ev_buffer_append_byte(out, c))
			return false;
	}
	return true;
}

/*
 * Is this one JSON string still?  What was put in place of a part of it can
 * have taken a quote, or one half of an escape, with it.
 */
static bool
is_value(const char *text, size_t length)
{
	size_t		i;

	if (length < 2 || text[0] != '"' || text[length - 1] != '"')
		return false;
	for (i = 1; i < length - 1; i++)
	{
		if (text[i] == '"')
			return false;
		if (text[i] != '\\')
			continue;
		if (++i == length - 1)
			return false;
		if (text[i] == 'u')
		{
			size_t		digits = strspn(text + i + 1,
										"0123456789abcdefABCDEF");

			if (digits < 4 || i + 4 >= length - 1)
				return false;
			i += 4;
		}
		else if (strchr("\"\\/bfnrt", text[i]) == NULL)
			return false;
	}
	return true;
}

/* The first mark of line->redacted as a string of its own. */
static bool
put_mark(EvLine *line)
{
	const char *mark = strstr(line->redacted.data, MARK);
	const char *end = mark ? strchr(mark, ']') : NULL;

	return end != NULL && ev_buffer_append_byte(&line->rewritten, '"') &&
		ev_buffer_append(&line->rewritten, mark, (size_t) (end - mark) + 1) &&
		ev_buffer_append_byte(&line->rewritten, '"');
}

static bool
no_memory(EvError *error)
{
	return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
}
