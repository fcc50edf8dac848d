/*-------------------------------------------------------------------------
 *
 * options_request.c
 *	  What only the command "request" has: the words of a request are turned
 *	  into what the SQL function takes.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "package/json.h"
#include "package/unicode.h"

#include "options_private.h"

#define KEY_BYTES 16
#define FILTER_KEY_SIZE 64

static EvStatus build_filters(EvOptions *options, EvFilterList *filters,
							  EvFailure *failure);
static EvStatus build_columns(EvOptions *options, const char *list,
							  EvFailure *failure);
static EvStatus build_key(EvOptions *options, EvFailure *failure);

/* What only "request" needs; --output includes --wait. */
EvStatus
ev_options_check_request(EvOptions *options, EvFailure *failure)
{
	const EvExportRequest *request = &options->request;

	if (request->start_at == NULL || request->end_at == NULL ||
		request->purpose == NULL)
		return ev_options_usage(failure, "command \"request\" needs --start, --end and --purpose");
	if (options->output != NULL)
		options->wait = true;
	if (options->timeout != 0 && !options->wait)
		return ev_options_usage(failure, "option \"--timeout\" needs --wait or --output");
	if (options->force && options->output == NULL)
		return ev_options_usage(failure, "option \"--force\" needs --output");
	return EV_STATUS_OK;
}

/* Turn the words of a request into what the SQL function takes. */
EvStatus
ev_options_complete_request(EvOptions *options, EvFilterList *filters,
							EvFailure *failure)
{
	EvExportRequest *request = &options->request;
	EvStatus	status = EV_STATUS_OK;

	if (filters->count > 0 && request->filters != NULL)
		return ev_options_usage(failure, "options \"--filter\" and \"--filters\" exclude each other");
	if (filters->count > 0)
		status = build_filters(options, filters, failure);
	if (status == EV_STATUS_OK && request->columns != NULL)
		status = build_columns(options, request->columns, failure);
	if (status == EV_STATUS_OK && request->key == NULL)
		status = build_key(options, failure);
	return status;
}

/* Order filter words by key; equal keys keep no particular order. */
static int
compare_filters(const void *a, const void *b)
{
	const char *left = *(const char *const *) a;
	const char *right = *(const char *const *) b;
	size_t		left_length = strcspn(left, "=");
	size_t		right_length = strcspn(right, "=");
	size_t		common = left_length;
	int			order;

	if (right_length < common)
		common = right_length;
	order = memcmp(left, right, common);
	if (order != 0)
		return order;
	return left_length < right_length ? -1 : left_length > right_length;
}

/* A filter's key is a plain column name; its value is any valid text. */
static EvStatus
check_filter(const char *word, EvFailure *failure)
{
	size_t		length = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_");

	if (length == 0 || length >= FILTER_KEY_SIZE || word[length] != '=')
		return ev_options_usage(failure, "a filter has the form KEY=VALUE with a column name as key");
	if (!ev_utf8_valid(word, strlen(word)))
		return ev_options_usage(failure, "a filter is not valid UTF-8");
	return EV_STATUS_OK;
}

/* Make {"key":["value", ...], ...} from the --filter words. */
static EvStatus
build_filters(EvOptions *options, EvFilterList *filters, EvFailure *failure)
{
	EvJson		json;
	char		keys[2][FILTER_KEY_SIZE];	/* the writer looks at the last */
	int			nkeys = 0;
	int			i;

	for (i = 0; i < filters->count; i++)
	{
		EvStatus	status = check_filter(filters->words[i], failure);

		if (status != EV_STATUS_OK)
			return status;
	}
	qsort(filters->words, (size_t) filters->count, sizeof(filters->words[0]),
		  compare_filters);

	ev_json_start(&json, &options->filters);
	ev_json_object(&json);
	for (i = 0; i < filters->count; i++)
	{
		const char *word = filters->words[i];

		/* The words are sorted: a new key closes the list of the last one. */
		if (i == 0 || compare_filters(&filters->words[i - 1],
									  &filters->words[i]) != 0)
		{
			char	   *key = keys[nkeys++ % 2];

			if (i > 0)
				ev_json_end_array(&json);
			snprintf(key, FILTER_KEY_SIZE, "%.*s",
					 (int) strcspn(word, "="), word);
			ev_json_key(&json, key);
			ev_json_array(&json);
		}
		ev_json_string(&json, word + strcspn(word, "=") + 1);
	}
	ev_json_end_array(&json);
	ev_json_end_object(&json);
	if (!ev_json_finish(&json))
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	options->request.filters = options->filters.data;
	return EV_STATUS_OK;
}

/* Make an array literal from a,b,c with each name quoted. */
static EvStatus
build_columns(EvOptions *options, const char *list, EvFailure *failure)
{
	EvBuffer   *out = &options->columns;
	const char *at = list;
	bool		stored;

	stored = ev_buffer_append_string(out, "{\"");
	for (; *at != '\0' && stored; at++)
	{
		if (*at == ',')
			stored = ev_buffer_append_string(out, "\",\"");
		else
		{
			if (*at == '"' || *at == '\\')
				stored = ev_buffer_append_byte(out, '\\');
			stored = stored && ev_buffer_append_byte(out, *at);
		}
	}
	stored = stored && ev_buffer_append_string(out, "\"}");
	if (!stored)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	options->request.columns = out->data;
	return EV_STATUS_OK;
}

/*
 * Without a key of the user's own, one is made for this invocation, so that
 * a repeated attempt finds the export that an earlier one has made.
 */
static EvStatus
build_key(EvOptions *options, EvFailure *failure)
{
	unsigned char bytes[KEY_BYTES];
	char	   *out = options->key;
	size_t		i;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
		return ev_fail_errno(failure, EV_STATUS_INTERNAL,
							 "could not make an idempotency key");
	out += snprintf(out, sizeof(options->key), "cli-");
	for (i = 0; i < sizeof(bytes); i++)
		out += snprintf(out, 3, "%02x", bytes[i]);
	options->request.key = options->key;
	return EV_STATUS_OK;
}
