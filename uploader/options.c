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

#include "options_private.h"
#include "uuid.h"

#define LIST_LIMIT 20			/* rows of "list" unless told otherwise */
#define LIST_LIMIT_MAX 10000
#define TIMEOUT_MAX 2000000		/* seconds; more than three weeks */

/* Unless told otherwise; what is younger than the grace is not removed. */
#define PREFIX "pg-evidence"
#define PART_SIZE (8 * 1024 * 1024)
#define MULTIPART_THRESHOLD (16 * 1024 * 1024)
#define GRACE (24 * 3600)

/* Which commands use an option, one bit each. */
#define ON(command) (1u << EV_COMMAND_##command)
#define ON_STORE (ON(UPLOAD) | ON(RECONCILE) | ON(DOCTOR))
#define ON_OBJECTS (ON_STORE | ON(REQUEST) | ON(DOWNLOAD))
#define ON_SERVER (ON(REQUEST) | ON(WAIT) | ON(LIST) | ON(SHOW) | \
				   ON(CANCEL) | ON(DOWNLOAD) | ON_STORE)
#define ON_ALL (ON_SERVER | ON(VERIFY))

/* What an option does with its value. */
typedef enum ValueKind
{
	VALUE_TEXT,					/* point a const char * at it */
	VALUE_FLAG,					/* set a bool */
	VALUE_NUMBER,				/* read an int from 1 to number */
	VALUE_BYTES,				/* read an int64_t with a unit */
	VALUE_SECONDS,				/* read an int with a unit */
	VALUE_STYLE,				/* set store.style to number */
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
	bool		in_config;		/* the configuration file may have it */
} OptionRule;

#define TO(member) offsetof(EvOptions, member)

static const OptionRule option_rules[] = {
	{"help", 0, ON_ALL, VALUE_INFORMATION, 0, EV_INFORMATION_HELP, false},
	{"dbname", 'd', ON_SERVER, VALUE_TEXT, TO(connection.dbname), 0, true},
	{"host", 'h', ON_SERVER, VALUE_TEXT, TO(connection.host), 0, true},
	{"port", 'p', ON_SERVER, VALUE_TEXT, TO(connection.port), 0, true},
	{"username", 'U', ON_SERVER, VALUE_TEXT, TO(connection.user), 0, true},
	{"no-password", 'w', ON_SERVER, VALUE_PROMPT, 0, EV_PROMPT_NEVER, false},
	{"password", 'W', ON_SERVER, VALUE_PROMPT, 0, EV_PROMPT_ALWAYS, false},
	{"json", 0, ON_ALL, VALUE_FLAG, TO(json), 0, false},
	{"quiet", 'q', ON_ALL, VALUE_FLAG, TO(quiet), 0, false},
	{"version", 'V', ON_ALL, VALUE_INFORMATION, 0, EV_INFORMATION_VERSION, false},
	{"start", 0, ON(REQUEST), VALUE_TEXT, TO(request.start_at), 0, false},
	{"end", 0, ON(REQUEST), VALUE_TEXT, TO(request.end_at), 0, false},
	{"purpose", 0, ON(REQUEST), VALUE_TEXT, TO(request.purpose), 0, false},
	{"key", 0, ON(REQUEST), VALUE_TEXT, TO(request.key), 0, false},
	{"source", 0, ON(REQUEST), VALUE_TEXT, TO(request.source), 0, false},
	{"filter", 0, ON(REQUEST), VALUE_FILTER, 0, 0, false},
	{"filters", 0, ON(REQUEST), VALUE_TEXT, TO(request.filters), 0, false},
	{"columns", 0, ON(REQUEST), VALUE_TEXT, TO(request.columns), 0, false},
	{"wait", 0, ON(REQUEST), VALUE_FLAG, TO(wait), 0, false},
	{"timeout", 0, ON(REQUEST) | ON(WAIT), VALUE_NUMBER, TO(timeout), TIMEOUT_MAX, false},
	{"output", 'o', ON(REQUEST) | ON(DOWNLOAD), VALUE_TEXT, TO(output), 0, false},
	{"force", 0, ON(REQUEST) | ON(DOWNLOAD), VALUE_FLAG, TO(force), 0, false},
	{"reason", 0, ON(CANCEL) | ON(DOWNLOAD), VALUE_TEXT, TO(reason), 0, false},
	{"state", 0, ON(LIST), VALUE_TEXT, TO(state), 0, false},
	{"limit", 0, ON(LIST), VALUE_NUMBER, TO(limit), LIST_LIMIT_MAX, false},
	{"bucket", 0, ON_STORE, VALUE_TEXT, TO(store.bucket), 0, true},
	{"prefix", 0, ON_STORE, VALUE_TEXT, TO(store.prefix), 0, true},
	{"endpoint", 0, ON_OBJECTS, VALUE_TEXT, TO(store.endpoint), 0, true},
	{"region", 0, ON_OBJECTS, VALUE_TEXT, TO(store.region), 0, true},
	{"ca-file", 0, ON_OBJECTS, VALUE_TEXT, TO(store.ca_file), 0, true},
	{"allow-http", 0, ON_OBJECTS, VALUE_FLAG, TO(store.allow_http), 0, true},
	{"path-style", 0, ON_OBJECTS, VALUE_STYLE, 0, EV_S3_STYLE_PATH, true},
	{"virtual-host", 0, ON_OBJECTS, VALUE_STYLE, 0, EV_S3_STYLE_VIRTUAL, true},
	{"credentials-file", 0, ON_OBJECTS, VALUE_TEXT,
	TO(store.credentials_file), 0, true},
	{"profile", 0, ON_OBJECTS, VALUE_TEXT, TO(store.profile), 0, true},
	{"limit-rate", 0, ON_OBJECTS, VALUE_BYTES, TO(store.limit_rate), 0, true},
	{"config", 0, ON_OBJECTS, VALUE_TEXT, TO(config), 0, false},
	{"log-format", 0, ON_STORE, VALUE_TEXT, TO(log_format), 0, true},
	{"once", 0, ON(UPLOAD), VALUE_FLAG, TO(once), 0, false},
	{"part-size", 0, ON(UPLOAD), VALUE_BYTES, TO(rules.part_size), 0, true},
	{"multipart-threshold", 0, ON(UPLOAD), VALUE_BYTES,
	TO(rules.multipart_threshold), 0, true},
	{"lock-mode", 0, ON(UPLOAD) | ON(DOCTOR), VALUE_TEXT, TO(lock_mode), 0,
	true},
	{"lock-days", 0, ON(UPLOAD) | ON(DOCTOR), VALUE_NUMBER,
	TO(rules.lock_days), 36500, true},
	{"legal-hold", 0, ON(UPLOAD) | ON(DOCTOR), VALUE_FLAG,
	TO(rules.legal_hold), 0, true},
	{"fix", 0, ON(RECONCILE), VALUE_FLAG, TO(fix), 0, false},
	{"grace", 0, ON(RECONCILE), VALUE_SECONDS, TO(grace), 0, true},
	{"apply-lifecycle", 0, ON(DOCTOR), VALUE_FLAG, TO(apply_lifecycle), 0,
	false}
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
	{"verify", EV_COMMAND_VERIFY, true},
	{"upload", EV_COMMAND_UPLOAD, false},
	{"reconcile", EV_COMMAND_RECONCILE, false},
	{"doctor", EV_COMMAND_DOCTOR, false}
};

#define COMMAND_COUNT ((int) (sizeof(commands) / sizeof(commands[0])))

static const char *const states[] = {
	"QUEUED", "PROCESSING", "MERGING", "STAGED", "READY", "EXPIRED",
	"REVOKED", "FAILED", "CANCELLED"
};

static EvStatus refuse_option(int value, const char *word,
							  EvFailure *failure);
static EvStatus read_options(EvOptions *options, EvFilterList *filters,
							 int argc, char **argv, bool *given,
							 EvFailure *failure);
static EvStatus take_option(EvOptions *options, EvFilterList *filters,
							const OptionRule *rule, const char *argument,
							EvFailure *failure);
static EvStatus take_words(EvOptions *options, int argc, char **argv,
						   EvFailure *failure);
static EvStatus check_options(EvOptions *options, const bool *given,
							  EvFailure *failure);
static EvStatus read_config(EvOptions *options, const bool *given,
							EvFailure *failure);
static EvStatus check_values(EvOptions *options, EvFailure *failure);
static bool takes_value(const OptionRule *rule);
static EvStatus read_number(const OptionRule *rule, const char *text,
							int *number, EvFailure *failure);

/* Every mistake on the command line gets the same hint. */
EvStatus
ev_options_usage(EvFailure *failure, const char *format,...)
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
	EvFilterList *filters = calloc(1, sizeof(EvFilterList));
	bool		given[OPTION_COUNT] = {false};
	EvStatus	status;

	memset(options, 0, sizeof(*options));
	options->limit = LIST_LIMIT;
	options->argc = argc;
	options->argv = argv;
	options->grace = GRACE;
	options->store.prefix = PREFIX;
	options->rules.part_size = PART_SIZE;
	options->rules.multipart_threshold = MULTIPART_THRESHOLD;
	if (filters == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	status = read_options(options, filters, argc, argv, given, failure);
	if (status == EV_STATUS_OK)
		status = take_words(options, argc - optind, argv + optind, failure);
	if (status == EV_STATUS_OK && options->information == EV_INFORMATION_NONE)
	{
		status = check_options(options, given, failure);
		if (status == EV_STATUS_OK && options->config != NULL)
			status = read_config(options, given, failure);
		if (status == EV_STATUS_OK)
			status = check_values(options, failure);
		if (status == EV_STATUS_OK &&
			options->command == EV_COMMAND_REQUEST)
			status = ev_options_complete_request(options, filters, failure);
	}
	free(filters);
	return status;
}

/* Is a value needed behind the option? */
static bool
takes_value(const OptionRule *rule)
{
	return rule->kind == VALUE_TEXT || rule->kind == VALUE_NUMBER ||
		rule->kind == VALUE_BYTES || rule->kind == VALUE_SECONDS ||
		rule->kind == VALUE_FILTER;
}

/*
 * Take all options; getopt_long moves the other words to the end of argv.
 * given tells which options there were.
 */
static EvStatus
read_options(EvOptions *options, EvFilterList *filters, int argc, char **argv,
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
		longs[i].has_arg = takes_value(rule);
		longs[i].val = rule->letter != 0 ? rule->letter : LETTERLESS(i);
	}

	/* Even a line that is refused later on wants its error as JSON. */
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0)
			options->json = true;

	opterr = 0;
	optopt = 0;
	optind = 0;
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
	free(options->config_text);
	options->config_text = NULL;
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
			return ev_options_usage(failure, value == ':' ?
									"option \"--%s\" needs a value" :
									"option \"--%s\" takes no value",
									option_rules[i].name);
	if (optopt != 0)
		return ev_options_usage(failure, "unknown option \"-%c\"", optopt);
	return ev_options_usage(failure, "unknown option \"%.*s\"",
							(int) strcspn(word, "="), word);
}

/* Put the value of one option where its rule says. */
static EvStatus
take_option(EvOptions *options, EvFilterList *filters, const OptionRule *rule,
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
		case VALUE_BYTES:
			if (ev_options_bytes(argument, target) &&
				*(int64_t *) target > 0)
				break;
			return ev_options_usage(failure, "option \"--%s\" needs a size such as 65536, 512kB or 8MB",
									rule->name);
		case VALUE_SECONDS:
			if (ev_options_seconds(argument, target))
				break;
			return ev_options_usage(failure, "option \"--%s\" needs a time such as 90s, 30min, 24h or 2d",
									rule->name);
		case VALUE_STYLE:
			options->store.style = (EvS3Style) rule->number;
			break;
		case VALUE_PROMPT:
			options->connection.prompt = (EvPrompt) rule->number;
			break;
		case VALUE_INFORMATION:
			options->information = (EvInformation) rule->number;
			break;
		case VALUE_FILTER:
			if (filters->count == EV_FILTERS_LIMIT)
				return ev_options_usage(failure, "more than %d filters", EV_FILTERS_LIMIT);
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
		return ev_options_usage(failure, "no command given");
	}
	for (i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(argv[0], commands[i].name) == 0)
			break;
	if (i == COMMAND_COUNT)
		return ev_options_usage(failure, "unknown command \"%s\"", argv[0]);
	options->command = commands[i].command;
	options->command_name = commands[i].name;
	if (options->information != EV_INFORMATION_NONE)
		return EV_STATUS_OK;

	if (commands[i].target && argc < 2)
		return ev_options_usage(failure, "command \"%s\" needs %s", commands[i].name,
								options->command == EV_COMMAND_VERIFY ?
								"a file" : "an export id");
	if (argc > (commands[i].target ? 2 : 1))
		return ev_options_usage(failure, "too many words for command \"%s\"",
								commands[i].name);
	if (commands[i].target)
		options->target = argv[1];
	if (commands[i].target && options->command != EV_COMMAND_VERIFY &&
		!ev_uuid_is_text(options->target))
		return ev_options_usage(failure, "\"%s\" is not an export id", options->target);
	return EV_STATUS_OK;
}

/* Does the command use each option? */
static EvStatus
check_options(EvOptions *options, const bool *given, EvFailure *failure)
{
	const char *name = commands[options->command - 1].name;
	int			i;

	/* An option that would be ignored misleads: see the head of the file. */
	for (i = 0; i < OPTION_COUNT; i++)
		if (given[i] && !(option_rules[i].commands & 1u << options->command))
			return ev_options_usage(failure, "option \"--%s\" is not used by command \"%s\"",
									option_rules[i].name, name);
	return EV_STATUS_OK;
}

/* What take_setting needs. */
typedef struct ConfigReading
{
	EvOptions  *options;
	const bool *given;			/* on the command line */
} ConfigReading;

/* Yes or no, in the words that people use for it. */
static bool
read_flag(const char *value, bool *flag)
{
	static const char *const words[] = {"off", "on", "no", "yes", "false", "true"};
	int			i;

	for (i = 0; i < 6; i++)
		if (strcasecmp(value, words[i]) == 0)
		{
			*flag = i % 2 == 1;
			return true;
		}
	return false;
}

/*
 * An EvSettingFunction.  One file may serve all commands, so what only another
 * one uses is no mistake here.
 */
static EvStatus
take_setting(void *arg, int line, const char *name, char *value,
			 EvFailure *failure)
{
	const ConfigReading *reading = arg;
	const OptionRule *rule = NULL;
	bool		overridden = false;
	bool		flag = true;
	EvStatus	status = EV_STATUS_OK;
	int			i;

	for (i = 0; i < OPTION_COUNT; i++)
	{
		if (strcmp(option_rules[i].name, name) == 0 &&
			option_rules[i].in_config)
			rule = &option_rules[i];
	}
	for (i = 0; i < OPTION_COUNT && rule != NULL; i++)
		if (reading->given[i] &&
			(rule == &option_rules[i] ||
			 (rule->kind == VALUE_STYLE &&
			  option_rules[i].kind == VALUE_STYLE)))
			overridden = true;
	if (rule == NULL)
		status = ev_fail(failure, EV_STATUS_USAGE, NULL,
						 "line %d of configuration file \"%s\": there is no setting of this name",
						 line, reading->options->config);
	else if (!takes_value(rule) && !read_flag(value, &flag))
		status = ev_fail(failure, EV_STATUS_USAGE, NULL,
						 "setting \"%s\" is \"on\" or \"off\"", name);
	else if (flag && !overridden)
		status = take_option(reading->options, NULL, rule, value, failure);
	if (status == EV_STATUS_OK)
		return status;
	snprintf(failure->detail, sizeof(failure->detail),
			 "Line %d of configuration file \"%s\".", line,
			 reading->options->config);
	return ev_fail_hint(failure, "The names are those of the long options, which \"pg_evidence %s --help\" lists.",
						reading->options->command_name);
}

static EvStatus
read_config(EvOptions *options, const bool *given, EvFailure *failure)
{
	ConfigReading reading = {options, given};

	return ev_options_read_config(options->config, &options->config_text,
								  take_setting, &reading, failure);
}

/* Has the command all that it needs, and do the values make sense? */
static EvStatus
check_values(EvOptions *options, EvFailure *failure)
{
	int			i;

	if (options->command == EV_COMMAND_CANCEL &&
		(options->reason == NULL || options->reason[0] == '\0'))
		return ev_options_usage(failure, "command \"cancel\" needs --reason");
	if (options->output != NULL && options->output[0] == '\0')
		return ev_options_usage(failure, "the name given by --output is empty");
	if (options->state != NULL)
	{
		int			count = (int) (sizeof(states) / sizeof(states[0]));

		for (i = 0; i < count; i++)
			if (strcmp(options->state, states[i]) == 0)
				break;
		if (i == count)
			return ev_options_usage(failure, "\"%s\" is not a state of an export",
									options->state);
	}
	if (options->command == EV_COMMAND_REQUEST)
	{
		EvStatus	status = ev_options_check_request(options, failure);

		if (status != EV_STATUS_OK)
			return status;
	}
	if (ON_OBJECTS & 1u << options->command)
	{
		EvStatus	status = ev_options_check_store(options, failure);

		if (status != EV_STATUS_OK)
			return status;
	}
	if (options->command != EV_COMMAND_VERIFY)
		return ev_connection_check(&options->connection, failure);
	return EV_STATUS_OK;
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
		return ev_options_usage(failure, "option \"--%s\" needs a number from 1 to %d",
								rule->name, rule->number);
	*number = (int) value;
	return EV_STATUS_OK;
}
