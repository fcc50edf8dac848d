/*-------------------------------------------------------------------------
 *
 * options_store.c
 *	  What the commands have that use an object store, and the configuration
 *	  file.
 *
 * The file has a line "name = value" for each setting, with the names of the
 * long options; "#" begins a comment.  What is given on the command line
 * counts more than the file, and the file more than the environment.  Keys to
 * the store and passwords are in neither: they have files of their own, which
 * nobody else can read (credentials.c, libpq's password file).  A value that
 * cannot be used is never shown, for it may be one of those.
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "options_private.h"

#define CONFIG_LIMIT 65536		/* bytes of a configuration file */
#define PREFIX_LIMIT 200
#define LOCK_DAYS_LIMIT 36500

static EvStatus check_prefix(const char *prefix, EvFailure *failure);
static EvStatus check_upload(EvOptions *options, EvFailure *failure);

/* Read the whole of a small regular file. */
static EvStatus
read_file(const char *path, char **text, EvFailure *failure)
{
	int			descriptor = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	ssize_t		length = 0;
	size_t		total = 0;

	if (descriptor < 0 || fstat(descriptor, &status) != 0)
	{
		ev_fail_errno(failure, EV_STATUS_FILE,
					  "could not open configuration file \"%s\"", path);
		if (descriptor >= 0)
			close(descriptor);
		return EV_STATUS_FILE;
	}
	*text = malloc(CONFIG_LIMIT + 1);
	while (*text != NULL && total < CONFIG_LIMIT &&
		   (length = read(descriptor, *text + total,
						  CONFIG_LIMIT - total)) > 0)
		total += (size_t) length;
	if (*text == NULL)
		ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	else if (length < 0)
		ev_fail_errno(failure, EV_STATUS_FILE,
					  "could not read configuration file \"%s\"", path);
	else if (total == CONFIG_LIMIT)
		ev_fail(failure, EV_STATUS_FILE, NULL,
				"configuration file \"%s\" is too long", path);
	else
	{
		(*text)[total] = '\0';
		close(descriptor);
		return EV_STATUS_OK;
	}
	close(descriptor);
	return failure->status;
}

/* Cut white space off both ends. */
static char *
trim(char *text)
{
	size_t		length;

	while (isspace((unsigned char) *text))
		text++;
	length = strlen(text);
	while (length > 0 && isspace((unsigned char) text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* Does the name look like that of a password or a key? */
static bool
is_secret(const char *name)
{
	static const char *const words[] = {
		"password", "secret", "access", "token"
	};
	size_t		i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(name, words[i]) != NULL)
			return true;
	return false;
}

/* One line, which is changed. */
static EvStatus
read_line(const char *path, int number, char *line,
		  EvSettingFunction function, void *arg, EvFailure *failure)
{
	char	   *name = trim(line);
	char	   *value = strchr(name, '=');

	if (name[0] == '\0' || name[0] == '#')
		return EV_STATUS_OK;
	if (value == NULL)
		return ev_fail(failure, EV_STATUS_USAGE, NULL,
					   "line %d of configuration file \"%s\" is not of the form NAME = VALUE",
					   number, path);
	*value++ = '\0';
	name = trim(name);
	value = trim(value);
	if (is_secret(name))
	{
		ev_fail(failure, EV_STATUS_USAGE, NULL,
				"line %d of configuration file \"%s\": a secret does not belong here",
				number, path);
		return ev_fail_hint(failure, "Keys to the object store come from AWS_* variables or a credentials file of mode 0600, database passwords from libpq's password file.");
	}
	return function(arg, number, name, value, failure);
}

EvStatus
ev_options_read_config(const char *path, char **text,
					   EvSettingFunction function, void *arg,
					   EvFailure *failure)
{
	EvStatus	status = read_file(path, text, failure);
	char	   *line = *text;
	int			number = 0;

	while (status == EV_STATUS_OK && line != NULL)
	{
		char	   *next = strchr(line, '\n');

		if (next != NULL)
			*next++ = '\0';
		status = read_line(path, ++number, line, function, arg, failure);
		line = next;
	}
	return status;
}

/* A number and what follows it; false if there is none. */
static bool
split_number(const char *text, int64_t *number, const char **unit)
{
	char	   *end;
	long long	value;

	if (!isdigit((unsigned char) text[0]))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0)
		return false;
	*number = value;
	*unit = end;
	return true;
}

bool
ev_options_bytes(const char *text, int64_t *bytes)
{
	static const struct
	{
		const char *name;
		int64_t		factor;
	}			units[] = {
		{"", 1}, {"B", 1},
		{"k", 1024}, {"kB", 1024}, {"KiB", 1024},
		{"M", 1048576}, {"MB", 1048576}, {"MiB", 1048576},
		{"G", 1073741824}, {"GB", 1073741824}, {"GiB", 1073741824}
	};
	const char *unit;
	int64_t		number;
	size_t		i;

	if (!split_number(text, &number, &unit))
		return false;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].name) == 0)
		{
			if (number > INT64_MAX / units[i].factor)
				return false;
			*bytes = number * units[i].factor;
			return true;
		}
	return false;
}

bool
ev_options_seconds(const char *text, int *seconds)
{
	static const struct
	{
		const char *name;
		int			factor;
	}			units[] = {
		{"", 1}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}
	};
	const char *unit;
	int64_t		number;
	size_t		i;

	if (!split_number(text, &number, &unit))
		return false;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].name) == 0)
		{
			if (number > INT32_MAX / units[i].factor)
				return false;
			*seconds = (int) number * units[i].factor;
			return true;
		}
	return false;
}

/* An empty value is one that a script forgot to fill in. */
static const char *
environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

EvStatus
ev_options_check_store(EvOptions *options, EvFailure *failure)
{
	EvStoreOptions *store = &options->store;
	bool		works = options->command == EV_COMMAND_UPLOAD ||
	options->command == EV_COMMAND_RECONCILE ||
	options->command == EV_COMMAND_DOCTOR;
	EvStatus	status = EV_STATUS_OK;

	if (store->endpoint == NULL)
		store->endpoint = environment("AWS_ENDPOINT_URL_S3");
	if (store->endpoint == NULL)
		store->endpoint = environment("AWS_ENDPOINT_URL");
	if (store->region == NULL)
		store->region = environment("AWS_REGION");
	if (store->region == NULL)
		store->region = environment("AWS_DEFAULT_REGION");
	if (!works)
		return EV_STATUS_OK;

	if (store->bucket == NULL || store->bucket[0] == '\0')
		return ev_options_usage(failure, "command \"%s\" needs --bucket",
								options->command_name);
	status = check_prefix(store->prefix, failure);
	if (status == EV_STATUS_OK)
		status = check_upload(options, failure);
	return status;
}

/*
 * A prefix is what all keys begin with.  It is of the same alphabet as the
 * rest of a key, so that no store and no file system reads it differently.
 */
static EvStatus
check_prefix(const char *prefix, EvFailure *failure)
{
	const char *at = prefix;
	bool		good = prefix[0] != '\0' && strlen(prefix) <= PREFIX_LIMIT;

	while (good && *at != '\0')
	{
		size_t		length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");

		good = length > 0;
		at += length;
		if (*at == '/')
			good = good && *++at != '\0';
		else if (*at != '\0')
			good = false;
	}
	if (good)
		return EV_STATUS_OK;
	return ev_options_usage(failure, "a prefix consists of lower-case letters, digits, \"-\" and single \"/\" between them");
}

/* How uploads are made. */
static EvStatus
check_upload(EvOptions *options, EvFailure *failure)
{
	EvUploadRules *rules = &options->rules;
	const char *mode = options->lock_mode;

	if (options->log_format != NULL)
	{
		options->log_json = strcmp(options->log_format, "json") == 0;
		if (!options->log_json && strcmp(options->log_format, "text") != 0)
			return ev_options_usage(failure, "option \"--log-format\" is \"text\" or \"json\"");
	}
	if (rules->part_size < EV_S3_PART_MINIMUM)
		return ev_options_usage(failure, "option \"--part-size\" must be at least 5 MiB, which stores insist on");
	if (mode != NULL)
	{
		if (strcmp(mode, "GOVERNANCE") == 0)
			rules->lock_mode = EV_S3_LOCK_GOVERNANCE;
		else if (strcmp(mode, "COMPLIANCE") == 0)
			rules->lock_mode = EV_S3_LOCK_COMPLIANCE;
		else
			return ev_options_usage(failure, "option \"--lock-mode\" is GOVERNANCE or COMPLIANCE");
	}
	if ((mode != NULL) != (rules->lock_days > 0))
		return ev_options_usage(failure, "options \"--lock-mode\" and \"--lock-days\" need each other");
	if (rules->lock_days > LOCK_DAYS_LIMIT)
		return ev_options_usage(failure, "option \"--lock-days\" needs a number from 1 to %d",
								LOCK_DAYS_LIMIT);
	return EV_STATUS_OK;
}
