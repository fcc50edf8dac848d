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
#include <stddef.h>
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
#define TIMEOUT_MAX 2000000		/* seconds; more than three weeks */
#define MAX_FILTERS 1000
#define FILTER_KEY_SIZE 64

/* Which commands use an option, one bit each. */
#define ON(command) (1u << EV_COMMAND_##command)
#define ON_SERVER (ON(REQUEST) | ON(WAIT) | ON(LIST) | ON(SHOW) | \
				   ON(CANCEL) | ON(DOWNLOAD))
#define ON_ALL (ON_SERVER | ON(VERIFY))

/* What an option does with its value. */
typedef enum ValueKind
{
	VALUE_TEXT,					/* point a const char * at it */
	VALUE_FLAG,					/* set a bool */
	VALUE_NUMBER,				/* read an int from 1 to number */
	VALUE_PROMPT,				/* set connection.prompt to number */
	VALUE_INFORMATION,			/* set information to number */
	VALUE_FILTER				/* gather it */
} ValueKind;

typedef struct OptionRule
{
	const char *name;
	int			letter;			/* 0: it has none */
	unsigned	commands;		/* that use it */
	ValueKind	kind;
	size_t		offset;			/* of the member of EvOptions it goes to */
	int			number;
} OptionRule;

#define TO(member) offsetof(EvOptions, member)

static const OptionRule option_rules[] = {
	{"help", 0, ON_ALL, VALUE_INFORMATION, 0, EV_INFORMATION_HELP},
	{"dbname", 'd', ON_SERVER, VALUE_TEXT, TO(connection.dbname), 0},
	{"host", 'h', ON_SERVER, VALUE_TEXT, TO(connection.host), 0},
	{"port", 'p', ON_SERVER, VALUE_TEXT, TO(connection.port), 0},
	{"username", 'U', ON_SERVER, VALUE_TEXT, TO(connection.user), 0},
	{"no-password", 'w', ON_SERVER, VALUE_PROMPT, 0, EV_PROMPT_NEVER},
	{"password", 'W', ON_SERVER, VALUE_PROMPT, 0, EV_PROMPT_ALWAYS},
	{"json", 0, ON_ALL, VALUE_FLAG, TO(json), 0},
	{"quiet", 'q', ON_ALL, VALUE_FLAG, TO(quiet), 0},
	{"version", 'V', ON_ALL, VALUE_INFORMATION, 0, EV_INFORMATION_VERSION},
	{"start", 0, ON(REQUEST), VALUE_TEXT, TO(request.start_at), 0},
	{"end", 0, ON(REQUEST), VALUE_TEXT, TO(request.end_at), 0},
	{"purpose", 0, ON(REQUEST), VALUE_TEXT, TO(request.purpose), 0},
	{"key", 0, ON(REQUEST), VALUE_TEXT, TO(request.key), 0},
	{"source", 0, ON(REQUEST), VALUE_TEXT, TO(request.source), 0},
	{"filter", 0, ON(REQUEST), VALUE_FILTER, 0, 0},
	{"filters", 0, ON(REQUEST), VALUE_TEXT, TO(request.filters), 0},
	{"columns", 0, ON(REQUEST), VALUE_TEXT, TO(request.columns), 0},
	{"wait", 0, ON(REQUEST), VALUE_FLAG, TO(wait), 0},
	{"timeout", 0, ON(REQUEST) | ON(WAIT), VALUE_NUMBER, TO(timeout),
	TIMEOUT_MAX},
	{"output", 'o', ON(REQUEST) | ON(DOWNLOAD), VALUE_TEXT, TO(output), 0},
	{"force", 0, ON(REQUEST) | ON(DOWNLOAD), VALUE_FLAG, TO(force), 0},
	{"reason", 0, ON(CANCEL) | ON(DOWNLOAD), VALUE_TEXT, TO(reason), 0},
	{"state", 0, ON(LIST), VALUE_TEXT, TO(state), 0},
	{"limit", 0, ON(LIST), VALUE_NUMBER, TO(limit), LIST_LIMIT_MAX}
};

#define OPTION_COUNT ((int) (sizeof(option_rules) / sizeof(option_rules[0])))

/* What getopt_long returns for option number index without a letter. */
#define LETTERLESS(index) (256 + (index))

/* "-?" is --help, the first of the rules. */
#define HELP_VALUE LETTERLESS(0)

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
static EvStatus refuse_option(int value, const char *word,
							  EvFailure *failure);
static EvStatus read_options(EvOptions *options, FilterList *filters,
							 int argc, char **argv, bool *given,
							 EvFailure *failure);
static EvStatus take_option(EvOptions *options, FilterList *filters,
							const OptionRule *rule, const char *argument,
							EvFailure *failure);
static EvStatus take_words(EvOptions *options, int argc, char **argv,
						   EvFailure *failure);
static EvStatus check_options(EvOptions *options, const bool *given,
							  EvFailure *failure);
static EvStatus check_request(EvOptions *options, EvFailure *failure);
static EvStatus complete_request(EvOptions *options, FilterList *filters,
								 EvFailure *failure);
static EvStatus read_number(const OptionRule *rule, const char *text,
							int *number, EvFailure *failure);
static EvStatus build_filters(EvOptions *options, FilterList *filters,
							  EvFailure *failure);
static EvStatus build_columns(EvOptions *options, const char *list,
							  EvFailure *failure);
static EvStatus build_key(EvOptions *options, EvFailure *failure);

/* Every mistake on the command line gets the same hint. */
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
	FilterList *filters = calloc(1, sizeof(FilterList));
	bool		given[OPTION_COUNT] = {false};
	EvStatus	status;

	memset(options, 0, sizeof(*options));
	options->limit = LIST_LIMIT;
	if (filters == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	status = read_options(options, filters, argc, argv, given, failure);
	if (status == EV_STATUS_OK)
		status = take_words(options, argc - optind, argv + optind, failure);
	if (status == EV_STATUS_OK && options->information == EV_INFORMATION_NONE)
	{
		status = check_options(options, given, failure);
		if (status == EV_STATUS_OK &&
			options->command == EV_COMMAND_REQUEST)
			status = complete_request(options, filters, failure);
	}
	free(filters);
	return status;
}

/*
 * Take all options; getopt_long moves the other words to the end of argv.
 * given tells which options there were.
 */
static EvStatus
read_options(EvOptions *options, FilterList *filters, int argc, char **argv,
			 bool *given, EvFailure *failure)
{
	struct option longs[OPTION_COUNT + 1];
	int			i;
	int			value;

	memset(longs, 0, sizeof(longs));
	for (i = 0; i < OPTION_COUNT; i++)
	{
		const OptionRule *rule = &option_rules[i];

		longs[i].name = rule->name;
		longs[i].has_arg = rule->kind == VALUE_TEXT ||
			rule->kind == VALUE_NUMBER || rule->kind == VALUE_FILTER;
		longs[i].val = rule->letter != 0 ? rule->letter : LETTERLESS(i);
	}

	/* Even a line that is refused later on wants its error as JSON. */
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			options->json = true;

	opterr = 0;
	optopt = 0;
	while ((value = getopt_long(argc, argv, ":d:h:p:U:wWqVo:", longs,
								NULL)) != -1)
	{
		EvStatus	status;

		/* getopt says '?' to what it does not know, "-?" included. */
		if (value == '?' && optopt == '?')
			value = HELP_VALUE;
		if (value == '?' || value == ':')
			return refuse_option(value, argv[optind - 1], failure);
		for (i = 0; i < OPTION_COUNT - 1; i++)
			if (longs[i].val == value)
				break;
		given[i] = true;
		status = take_option(options, filters, &option_rules[i], optarg,
							 failure);
		if (status != EV_STATUS_OK)
			return status;
		optopt = 0;
	}
	return EV_STATUS_OK;
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
		if (optopt == option_rules[i].letter || optopt == LETTERLESS(i))
			return usage(failure, value == ':' ?
						 "option \"--%s\" needs a value" :
						 "option \"--%s\" takes no value",
						 option_rules[i].name);
	if (optopt != 0)
		return usage(failure, "unknown option \"-%c\"", optopt);
	return usage(failure, "unknown option \"%.*s\"",
				 (int) strcspn(word, "="), word);
}

/* Put the value of one option where its rule says. */
static EvStatus
take_option(EvOptions *options, FilterList *filters, const OptionRule *rule,
			const char *argument, EvFailure *failure)
{
	void	   *target = (char *) options + rule->offset;

	switch (rule->kind)
	{
		case VALUE_TEXT:
			*(const char **) target = argument;
			break;
		case VALUE_FLAG:
			*(bool *) target = true;
			break;
		case VALUE_NUMBER:
			return read_number(rule, argument, target, failure);
		case VALUE_PROMPT:
			options->connection.prompt = (EvPrompt) rule->number;
			break;
		case VALUE_INFORMATION:
			options->information = (EvInformation) rule->number;
			break;
		case VALUE_FILTER:
			if (filters->count == MAX_FILTERS)
				return usage(failure, "more than %d filters", MAX_FILTERS);
			filters->words[filters->count++] = argument;
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

	/* An option that would be ignored misleads: see the head of the file. */
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
		EvStatus	status = check_request(options, failure);

		if (status != EV_STATUS_OK)
			return status;
	}
	if (options->command != EV_COMMAND_VERIFY)
		return ev_connection_check(&options->connection, failure);
	return EV_STATUS_OK;
}

/* What only "request" needs; --output includes --wait. */
static EvStatus
check_request(EvOptions *options, EvFailure *failure)
{
	const EvExportRequest *request = &options->request;

	if (request->start_at == NULL || request->end_at == NULL ||
		request->purpose == NULL)
		return usage(failure, "command \"request\" needs --start, --end and --purpose");
	if (options->output != NULL)
		options->wait = true;
	if (options->timeout != 0 && !options->wait)
		return usage(failure, "option \"--timeout\" needs --wait or --output");
	if (options->force && options->output == NULL)
		return usage(failure, "option \"--force\" needs --output");
	return EV_STATUS_OK;
}

/* Turn the words of a request into what the SQL function takes. */
static EvStatus
complete_request(EvOptions *options, FilterList *filters, EvFailure *failure)
{
	EvExportRequest *request = &options->request;
	EvStatus	status = EV_STATUS_OK;

	if (filters->count > 0 && request->filters != NULL)
		return usage(failure, "options \"--filter\" and \"--filters\" exclude each other");
	if (filters->count > 0)
		status = build_filters(options, filters, failure);
	if (status == EV_STATUS_OK && request->columns != NULL)
		status = build_columns(options, request->columns, failure);
	if (status == EV_STATUS_OK && request->key == NULL)
		status = build_key(options, failure);
	return status;
}

static EvStatus
read_number(const OptionRule *rule, const char *text, int *number,
			EvFailure *failure)
{
	char	   *end;
	long		value;

	/* The whole word must be a number: "10x" is a mistake, not ten. */
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || value < 1 ||
		value > rule->number)
		return usage(failure, "option \"--%s\" needs a number from 1 to %d",
					 rule->name, rule->number);
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
