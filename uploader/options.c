/*-------------------------------------------------------------------------
 *
 * options.c
 *	  Read the command line and refuse whatever is wrong in it.
 *
 * Options may stand before or behind the command.  Each option lists the
 * commands that use it; giving it to another command is an error and not
 * ignored, since a "--force" that does nothing misleads.
 *
 * No option takes a secret: a command line can be read by everybody on the
 * machine.  An argument that cannot be understood is named in the error, its
 * value is not, for it may be a mistyped password.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "package/json.h"
#include "package/unicode.h"

#include "options.h"
#include "uuid.h"

#define KEY_BYTES 16
#define LIST_LIMIT 20			/* rows of "list" unless told otherwise */
#define LIST_LIMIT_MAX 10000
#define MAX_FILTERS 1000
#define FILTER_KEY_SIZE 64

/* Which commands use an option, one bit each. */
#define ON(command) (1u << EV_COMMAND_##command)
#define ON_SERVER (ON(REQUEST) | ON(WAIT) | ON(LIST) | ON(SHOW) | \
				   ON(CANCEL) | ON(DOWNLOAD))
#define ON_ALL (ON_SERVER | ON(VERIFY))

/* Values of options that have no letter. */
enum
{
	OPTION_HELP = 256,
	OPTION_START,
	OPTION_END,
	OPTION_PURPOSE,
	OPTION_KEY,
	OPTION_SOURCE,
	OPTION_FILTER,
	OPTION_FILTERS,
	OPTION_COLUMNS,
	OPTION_WAIT,
	OPTION_TIMEOUT,
	OPTION_STATE,
	OPTION_LIMIT,
	OPTION_REASON,
	OPTION_FORCE,
	OPTION_JSON
};

typedef struct OptionRule
{
	const char *name;
	int			argument;		/* as getopt_long has it */
	int			value;
	unsigned	commands;
} OptionRule;

static const OptionRule option_rules[] = {
	{"dbname", required_argument, 'd', ON_SERVER},
	{"host", required_argument, 'h', ON_SERVER},
	{"port", required_argument, 'p', ON_SERVER},
	{"username", required_argument, 'U', ON_SERVER},
	{"no-password", no_argument, 'w', ON_SERVER},
	{"password", no_argument, 'W', ON_SERVER},
	{"json", no_argument, OPTION_JSON, ON_ALL},
	{"quiet", no_argument, 'q', ON_ALL},
	{"help", no_argument, OPTION_HELP, ON_ALL},
	{"version", no_argument, 'V', ON_ALL},
	{"start", required_argument, OPTION_START, ON(REQUEST)},
	{"end", required_argument, OPTION_END, ON(REQUEST)},
	{"purpose", required_argument, OPTION_PURPOSE, ON(REQUEST)},
	{"key", required_argument, OPTION_KEY, ON(REQUEST)},
	{"source", required_argument, OPTION_SOURCE, ON(REQUEST)},
	{"filter", required_argument, OPTION_FILTER, ON(REQUEST)},
	{"filters", required_argument, OPTION_FILTERS, ON(REQUEST)},
	{"columns", required_argument, OPTION_COLUMNS, ON(REQUEST)},
	{"wait", no_argument, OPTION_WAIT, ON(REQUEST)},
	{"timeout", required_argument, OPTION_TIMEOUT, ON(REQUEST) | ON(WAIT)},
	{"output", required_argument, 'o', ON(REQUEST) | ON(DOWNLOAD)},
	{"force", no_argument, OPTION_FORCE, ON(REQUEST) | ON(DOWNLOAD)},
	{"reason", required_argument, OPTION_REASON, ON(CANCEL) | ON(DOWNLOAD)},
	{"state", required_argument, OPTION_STATE, ON(LIST)},
	{"limit", required_argument, OPTION_LIMIT, ON(LIST)}
};

#define OPTION_COUNT ((int) (sizeof(option_rules) / sizeof(option_rules[0])))

static const struct
{
	const char *name;
	EvCommand	command;
	bool		target;			/* takes one more word */
}			commands[] = {
	{"request", EV_COMMAND_REQUEST, false},
	{"wait", EV_COMMAND_WAIT, true},
	{"list", EV_COMMAND_LIST, false},
	{"show", EV_COMMAND_SHOW, true},
	{"cancel", EV_COMMAND_CANCEL, true},
	{"download", EV_COMMAND_DOWNLOAD, true},
	{"verify", EV_COMMAND_VERIFY, true}
};

#define COMMAND_COUNT ((int) (sizeof(commands) / sizeof(commands[0])))

static const char *const states[] = {
	"QUEUED", "PROCESSING", "MERGING", "STAGED", "READY", "EXPIRED",
	"REVOKED", "FAILED", "CANCELLED"
};

/* The --filter options in the order given. */
typedef struct FilterList
{
	const char *words[MAX_FILTERS];
	int			count;
} FilterList;

static EvStatus usage(EvFailure *failure, const char *format,...)
			EV_PRINTF(2, 3);
static EvStatus refuse_option(int value, const char *word, EvFailure *failure);
static EvStatus take_option(EvOptions *options, FilterList *filters,
							int value, char *argument, EvFailure *failure);
static EvStatus take_words(EvOptions *options, int argc, char **argv,
						   EvFailure *failure);
static EvStatus check_options(EvOptions *options, const bool *given,
							  EvFailure *failure);
static EvStatus complete_request(EvOptions *options, FilterList *filters,
								 const char *columns, EvFailure *failure);
static EvStatus read_number(const char *name, const char *text, int max,
							int *number, EvFailure *failure);
static EvStatus build_filters(EvOptions *options, FilterList *filters,
							  EvFailure *failure);
static EvStatus build_columns(EvOptions *options, const char *list,
							  EvFailure *failure);
static EvStatus build_key(EvOptions *options, EvFailure *failure);

static EvStatus
usage(EvFailure *failure, const char *format,...)
{
	char		text[512];
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	ev_fail(failure, EV_STATUS_USAGE, NULL, "%s", text);
	return ev_fail_hint(failure, "Try \"pg_evidence --help\" or \"pg_evidence COMMAND --help\".");
}

EvStatus
ev_options_parse(EvOptions *options, int argc, char **argv,
				 EvFailure *failure)
{
	struct option longs[OPTION_COUNT + 1];
	bool		given[OPTION_COUNT] = {false};
	static FilterList filters;
	EvStatus	status;
	const char *columns;
	int			index;
	int			value;

	memset(options, 0, sizeof(*options));
	memset(longs, 0, sizeof(longs));
	filters.count = 0;
	options->limit = LIST_LIMIT;
	for (index = 0; index < OPTION_COUNT; index++)
	{
		longs[index].name = option_rules[index].name;
		longs[index].has_arg = option_rules[index].argument;
		longs[index].val = option_rules[index].value;
	}

	/* Even a line that is refused later on wants its error as JSON. */
	for (index = 1; index < argc && strcmp(argv[index], "--") != 0; index++)
		if (strcmp(argv[index], "--json") == 0)
			options->json = true;

	opterr = 0;
	optopt = 0;
	while ((value = getopt_long(argc, argv, ":d:h:p:U:wWqVo:", longs,
								NULL)) != -1)
	{
		if (value == '?' && optopt == '?')
			value = OPTION_HELP;
		if (value == '?' || value == ':')
			return refuse_option(value, argv[optind - 1], failure);
		for (index = 0; index < OPTION_COUNT; index++)
			if (option_rules[index].value == value)
				given[index] = true;
		status = take_option(options, &filters, value, optarg, failure);
		if (status != EV_STATUS_OK)
			return status;
		optopt = 0;
	}

	status = take_words(options, argc - optind, argv + optind, failure);
	if (status != EV_STATUS_OK || options->information != EV_INFORMATION_NONE)
		return status;
	status = check_options(options, given, failure);
	if (status != EV_STATUS_OK || options->command != EV_COMMAND_REQUEST)
		return status;
	columns = options->request.columns;
	options->request.columns = NULL;
	return complete_request(options, &filters, columns, failure);
}

void
ev_options_free(EvOptions *options)
{
	ev_buffer_free(&options->filters);
	ev_buffer_free(&options->columns);
}

/*
 * Say what getopt did not like.  It leaves the value of a known option in
 * optopt, the letter of an unknown short one, and 0 for an unknown long one,
 * which is then the last word read.
 */
static EvStatus
refuse_option(int value, const char *word, EvFailure *failure)
{
	int			i;

	for (i = 0; i < OPTION_COUNT && optopt != 0; i++)
		if (option_rules[i].value == optopt)
			return usage(failure, value == ':' ?
						 "option \"--%s\" needs a value" :
						 "option \"--%s\" takes no value",
						 option_rules[i].name);
	if (optopt != 0)
		return usage(failure, "unknown option \"-%c\"", optopt);
	return usage(failure, "unknown option \"%.*s\"",
				 (int) strcspn(word, "="), word);
}

/* Note one option. */
static EvStatus
take_option(EvOptions *options, FilterList *filters, int value,
			char *argument, EvFailure *failure)
{
	EvExportRequest *request = &options->request;

	switch (value)
	{
		case 'd':
			options->connection.dbname = argument;
			break;
		case 'h':
			options->connection.host = argument;
			break;
		case 'p':
			options->connection.port = argument;
			break;
		case 'U':
			options->connection.user = argument;
			break;
		case 'w':
			options->connection.prompt = EV_PROMPT_NEVER;
			break;
		case 'W':
			options->connection.prompt = EV_PROMPT_ALWAYS;
			break;
		case 'q':
			options->quiet = true;
			break;
		case OPTION_HELP:
			options->information = EV_INFORMATION_HELP;
			break;
		case 'V':
			options->information = EV_INFORMATION_VERSION;
			break;
		case 'o':
			options->output = argument;
			break;
		case OPTION_JSON:
			options->json = true;
			break;
		case OPTION_START:
			request->start_at = argument;
			break;
		case OPTION_END:
			request->end_at = argument;
			break;
		case OPTION_PURPOSE:
			request->purpose = argument;
			break;
		case OPTION_KEY:
			request->key = argument;
			break;
		case OPTION_SOURCE:
			request->source = argument;
			break;
		case OPTION_FILTER:
			if (filters->count == MAX_FILTERS)
				return usage(failure, "more than %d filters", MAX_FILTERS);
			filters->words[filters->count++] = argument;
			break;
		case OPTION_FILTERS:
			request->filters = argument;
			break;
		case OPTION_COLUMNS:
			request->columns = argument;
			break;
		case OPTION_WAIT:
			options->wait = true;
			break;
		case OPTION_TIMEOUT:
			return read_number("--timeout", argument, INT32_MAX / 1000,
							   &options->timeout, failure);
		case OPTION_LIMIT:
			return read_number("--limit", argument, LIST_LIMIT_MAX,
							   &options->limit, failure);
		case OPTION_STATE:
			options->state = argument;
			break;
		case OPTION_REASON:
			options->reason = argument;
			break;
		case OPTION_FORCE:
			options->force = true;
			break;
	}
	return EV_STATUS_OK;
}

/* What stands on the line besides options: the command and its target. */
static EvStatus
take_words(EvOptions *options, int argc, char **argv, EvFailure *failure)
{
	int			i;

	if (argc == 0)
	{
		if (options->information != EV_INFORMATION_NONE)
			return EV_STATUS_OK;
		return usage(failure, "no command given");
	}
	for (i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(argv[0], commands[i].name) == 0)
			break;
	if (i == COMMAND_COUNT)
		return usage(failure, "unknown command \"%s\"", argv[0]);
	options->command = commands[i].command;
	if (options->information != EV_INFORMATION_NONE)
		return EV_STATUS_OK;

	if (commands[i].target && argc < 2)
		return usage(failure, "command \"%s\" needs %s", commands[i].name,
					 options->command == EV_COMMAND_VERIFY ?
					 "a file" : "an export id");
	if (argc > (commands[i].target ? 2 : 1))
		return usage(failure, "too many words for command \"%s\"",
					 commands[i].name);
	if (commands[i].target)
		options->target = argv[1];
	if (commands[i].target && options->command != EV_COMMAND_VERIFY &&
		!ev_uuid_is_text(options->target))
		return usage(failure, "\"%s\" is not an export id", options->target);
	return EV_STATUS_OK;
}

/* Does the command use each option, and has it all that it needs? */
static EvStatus
check_options(EvOptions *options, const bool *given, EvFailure *failure)
{
	const char *name = commands[options->command - 1].name;
	int			i;

	for (i = 0; i < OPTION_COUNT; i++)
		if (given[i] && !(option_rules[i].commands & 1u << options->command))
			return usage(failure, "option \"--%s\" is not used by command \"%s\"",
						 option_rules[i].name, name);

	if (options->command == EV_COMMAND_CANCEL &&
		(options->reason == NULL || options->reason[0] == '\0'))
		return usage(failure, "command \"cancel\" needs --reason");
	if (options->output != NULL && options->output[0] == '\0')
		return usage(failure, "the name given by --output is empty");
	if (options->state != NULL)
	{
		int			count = (int) (sizeof(states) / sizeof(states[0]));

		for (i = 0; i < count; i++)
			if (strcmp(options->state, states[i]) == 0)
				break;
		if (i == count)
			return usage(failure, "\"%s\" is not a state of an export",
						 options->state);
	}
	if (options->command == EV_COMMAND_REQUEST)
	{
		if (options->request.start_at == NULL ||
			options->request.end_at == NULL ||
			options->request.purpose == NULL)
			return usage(failure, "command \"request\" needs --start, --end and --purpose");
		if (options->output != NULL)
			options->wait = true;
		if (options->timeout != 0 && !options->wait)
			return usage(failure, "option \"--timeout\" needs --wait or --output");
		if (options->force && options->output == NULL)
			return usage(failure, "option \"--force\" needs --output");
	}
	if (options->command != EV_COMMAND_VERIFY)
		return ev_connection_check(&options->connection, failure);
	return EV_STATUS_OK;
}

/* Turn the words of a request into what the SQL function takes. */
static EvStatus
complete_request(EvOptions *options, FilterList *filters,
				 const char *columns, EvFailure *failure)
{
	EvStatus	status = EV_STATUS_OK;

	if (filters->count > 0 && options->request.filters != NULL)
		return usage(failure, "options \"--filter\" and \"--filters\" exclude each other");
	if (filters->count > 0)
		status = build_filters(options, filters, failure);
	if (status == EV_STATUS_OK && columns != NULL)
		status = build_columns(options, columns, failure);
	if (status == EV_STATUS_OK && options->request.key == NULL)
		status = build_key(options, failure);
	return status;
}

static EvStatus
read_number(const char *name, const char *text, int max, int *number,
			EvFailure *failure)
{
	char	   *end;
	long		value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < 1 || value > max)
		return usage(failure, "option \"%s\" needs a number from 1 to %d",
					 name, max);
	*number = (int) value;
	return EV_STATUS_OK;
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
		return usage(failure, "a filter has the form KEY=VALUE with a column name as key");
	if (!ev_utf8_valid(word, strlen(word)))
		return usage(failure, "a filter is not valid UTF-8");
	return EV_STATUS_OK;
}

/* Make {"key":["value", ...], ...} from the --filter words. */
static EvStatus
build_filters(EvOptions *options, FilterList *filters, EvFailure *failure)
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
