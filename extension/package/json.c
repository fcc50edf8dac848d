/*-------------------------------------------------------------------------
 *
 * json.c
 *	  Write canonical JSON (RFC 8785).
 *
 * Canonical means: no blank outside strings, members of an object sorted by
 * key, only the escapes that JSON demands, and integers without exponent.
 * The writer does not sort; its callers name members in order, and an
 * assertion in debug builds holds them to it, because bytes that are hashed
 * must not depend on how a caller happened to build them.
 *
 * Keys are ASCII, so that sorting by bytes equals sorting by UTF-16 units,
 * which is what RFC 8785 asks for.
 *
 *-------------------------------------------------------------------------
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

/* Integers beyond this lose digits in readers that use doubles. */
#define SAFE_INTEGER (INT64_C(1) << 53)

static void put(EvJson *json, const char *data, size_t length);
static void separate(EvJson *json);
static void enter(EvJson *json, char bracket);
static void leave(EvJson *json, char bracket);
static void put_quoted(EvJson *json, const char *string, size_t length);

/*
 * Depth 0 is the document itself, which holds one value and therefore never
 * puts a comma.
 */
void
ev_json_start(EvJson *json, EvBuffer *out)
{
	memset(json, 0, sizeof(*json));
	json->out = out;
	json->first[0] = true;
}

void
ev_json_start_plain(EvJson *json, EvBuffer *out)
{
	ev_json_start(json, out);
	json->any_order = true;
}

/*
 * An object that was left open is an error of the caller and must not become
 * bytes that are hashed.
 */
bool
ev_json_finish(EvJson *json)
{
	return !json->failed && json->depth == 0;
}

void
ev_json_object(EvJson *json)
{
	enter(json, '{');
}

void
ev_json_end_object(EvJson *json)
{
	leave(json, '}');
}

void
ev_json_array(EvJson *json)
{
	enter(json, '[');
}

void
ev_json_end_array(EvJson *json)
{
	leave(json, ']');
}

/*
 * The colon leaves "first" set, so that the value that follows puts no comma
 * of its own.
 */
void
ev_json_key(EvJson *json, const char *key)
{
	if (json->depth > 0)
	{
		assert(json->any_order || json->last[json->depth] == NULL ||
			   strcmp(json->last[json->depth], key) < 0);
		json->last[json->depth] = key;
	}
	separate(json);
	put_quoted(json, key, strlen(key));
	put(json, ":", 1);
	json->first[json->depth] = true;
}

/* NULL is a value of its own in manifests, as it is in rows. */
void
ev_json_string(EvJson *json, const char *string)
{
	if (string == NULL)
		ev_json_null(json);
	else
		ev_json_string_n(json, string, strlen(string));
}

void
ev_json_string_n(EvJson *json, const char *string, size_t length)
{
	separate(json);
	put_quoted(json, string, length);
}

/*
 * A reader that takes all numbers for doubles would round a larger one, and
 * then its hash of the same manifest would differ.
 */
void
ev_json_integer(EvJson *json, int64_t value)
{
	char		text[24];
	int			length;

	length = snprintf(text, sizeof(text), "%" PRId64, value);
	if (value > SAFE_INTEGER || value < -SAFE_INTEGER)
		ev_json_string_n(json, text, (size_t) length);
	else
	{
		separate(json);
		put(json, text, (size_t) length);
	}
}

void
ev_json_boolean(EvJson *json, bool value)
{
	separate(json);
	if (value)
		put(json, "true", 4);
	else
		put(json, "false", 5);
}

void
ev_json_null(EvJson *json)
{
	separate(json);
	put(json, "null", 4);
}

void
ev_json_raw(EvJson *json, const char *text, size_t length)
{
	separate(json);
	put(json, text, length);
}

/*
 * A failure is remembered instead of returned, so that callers can write a
 * document as a plain list of calls and ask once at the end.
 */
static void
put(EvJson *json, const char *data, size_t length)
{
	if (!ev_buffer_append(json->out, data, length))
		json->failed = true;
}

/* Put the comma between two elements of one array or object. */
static void
separate(EvJson *json)
{
	if (!json->first[json->depth])
		put(json, ",", 1);
	json->first[json->depth] = false;
}

/*
 * The depth is limited by an array. Manifests need a few levels, so
 * reaching the limit is an error of the caller.
 */
static void
enter(EvJson *json, char bracket)
{
	separate(json);
	put(json, &bracket, 1);
	if (json->depth + 1 >= EV_JSON_DEPTH)
	{
		json->failed = true;
		return;
	}
	json->depth++;
	json->first[json->depth] = true;
	json->last[json->depth] = NULL;
}

/* Closing more than was opened is remembered as a failure too. */
static void
leave(EvJson *json, char bracket)
{
	put(json, &bracket, 1);
	if (json->depth > 0)
		json->depth--;
	else
		json->failed = true;
}

/*
 * RFC 8785 escapes the quote, the backslash and the C0 controls, the latter
 * by their short form where JSON has one, and nothing else.
 */
static void
put_quoted(EvJson *json, const char *string, size_t length)
{
	size_t		from = 0;
	size_t		i;

	put(json, "\"", 1);
	for (i = 0; i < length; i++)
	{
		unsigned char c = (unsigned char) string[i];
		char		escape[8];
		const char *shorts = "\b\t\n\f\r\"\\";
		const char *letters = "btnfr\"\\";
		const char *found;

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		put(json, string + from, i - from);
		from = i + 1;
		found = c != 0 ? strchr(shorts, c) : NULL;
		if (found != NULL)
		{
			escape[0] = '\\';
			escape[1] = letters[found - shorts];
			put(json, escape, 2);
		}
		else
		{
			snprintf(escape, sizeof(escape), "\\u%04x", c);
			put(json, escape, 6);
		}
	}
	put(json, string + from, length - from);
	put(json, "\"", 1);
}
