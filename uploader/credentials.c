/*-------------------------------------------------------------------------
 *
 * credentials.c
 *	  Where the keys to the object store come from.
 *
 * A file of keys is read again each time they are asked for.  It is small, and
 * so a rotated key counts from the next request on, and no copy of it stays in
 * memory between two of them: every buffer that held a key is overwritten.
 *
 * A file that others can read is refused rather than warned about, as ssh
 * does with keys: a warning in a log of a service is read by nobody.
 *
 * The format is that of Amazon's own tools: sections in brackets, of which
 * one is taken, and lines "name = value" (case C49, S1.65).
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "credentials.h"

#define FILE_LIMIT (64 * 1024)
#define DEFAULT_PROFILE "default"

#define UNRESERVED \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"

struct EvCredentialsSource
{
	char	   *file;			/* NULL: the environment */
	char	   *profile;
	char	   *origin;
};

static EvStatus choose(const char *file, EvCredentialsSource *source,
					   EvFailure *failure);
static EvStatus read_file(const EvCredentialsSource *source,
						  EvCredentials *credentials, EvFailure *failure);
static EvStatus check(const EvCredentialsSource *source,
					  const EvCredentials *credentials, EvFailure *failure);

/* A variable of the environment, NULL if it is not set or empty. */
static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

EvStatus
ev_credentials_open(const char *file, const char *profile,
					EvCredentialsSource **source, EvFailure *failure)
{
	EvCredentialsSource *created = calloc(1, sizeof(EvCredentialsSource));
	EvCredentials credentials;
	EvStatus	status;

	*source = NULL;
	if (created == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	if (profile == NULL)
		profile = variable("AWS_PROFILE");
	created->profile = strdup(profile != NULL ? profile : DEFAULT_PROFILE);
	if (created->profile == NULL)
		status = ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	else
		status = choose(file, created, failure);
	if (status == EV_STATUS_OK)
	{
		status = ev_credentials_get(created, &credentials, failure);
		ev_credentials_wipe(&credentials);
	}
	if (status != EV_STATUS_OK)
	{
		ev_credentials_close(created);
		return status;
	}
	*source = created;
	return EV_STATUS_OK;
}

void
ev_credentials_close(EvCredentialsSource *source)
{
	if (source == NULL)
		return;
	free(source->file);
	free(source->profile);
	free(source->origin);
	free(source);
}

const char *
ev_credentials_origin(const EvCredentialsSource *source)
{
	return source->origin;
}

static void
wipe_text(char **text)
{
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void
ev_credentials_wipe(EvCredentials *credentials)
{
	wipe_text(&credentials->access_key);
	wipe_text(&credentials->secret_key);
	wipe_text(&credentials->session_token);
}

/* The home of the user: HOME, or what the system says. */
static const char *
home(void)
{
	const char *path = variable("HOME");
	const struct passwd *user;

	if (path != NULL)
		return path;
	user = getpwuid(geteuid());
	return user != NULL ? user->pw_dir : "/";
}

/* Set file, or leave it NULL for the environment, and origin. */
static EvStatus
choose(const char *file, EvCredentialsSource *source, EvFailure *failure)
{
	const char *shared = variable("AWS_SHARED_CREDENTIALS_FILE");
	int			length = 0;

	if (file == NULL && (variable("AWS_ACCESS_KEY_ID") != NULL ||
						 variable("AWS_SECRET_ACCESS_KEY") != NULL))
		source->origin = strdup("the environment");
	else
	{
		if (file != NULL || shared != NULL)
			source->file = strdup(file != NULL ? file : shared);
		else
			length = asprintf(&source->file, "%s/.aws/credentials", home());
		if (length < 0)
			source->file = NULL;
		if (source->file == NULL ||
			asprintf(&source->origin, "profile \"%s\" of file \"%s\"",
					 source->profile, source->file) < 0)
			source->origin = NULL;
	}
	if (source->origin == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	return EV_STATUS_OK;
}

/* Copy from the environment, which stays as it is. */
static EvStatus
read_environment(EvCredentials *credentials, EvFailure *failure)
{
	static const char *const names[] = {
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
	};
	char	  **const texts[] = {
		&credentials->access_key, &credentials->secret_key,
		&credentials->session_token
	};
	int			i;

	for (i = 0; i < 3; i++)
	{
		const char *value = variable(names[i]);

		if (value == NULL)
			continue;
		*texts[i] = strdup(value);
		if (*texts[i] == NULL)
			return ev_fail(failure, EV_STATUS_INTERNAL, NULL,
						   "out of memory");
	}
	return EV_STATUS_OK;
}

EvStatus
ev_credentials_get(EvCredentialsSource *source, EvCredentials *credentials,
				   EvFailure *failure)
{
	EvStatus	status;

	memset(credentials, 0, sizeof(*credentials));
	if (source->file == NULL)
		status = read_environment(credentials, failure);
	else
		status = read_file(source, credentials, failure);
	if (status == EV_STATUS_OK)
		status = check(source, credentials, failure);
	if (status != EV_STATUS_OK)
		ev_credentials_wipe(credentials);
	return status;
}

/* Is the open file one that its owner alone can read? */
static EvStatus
check_file(const EvCredentialsSource *source, int descriptor,
		   EvFailure *failure)
{
	struct stat information;

	if (fstat(descriptor, &information) != 0)
		return ev_fail_errno(failure, EV_STATUS_FILE,
							 "could not read credentials file \"%s\"",
							 source->file);
	if (!S_ISREG(information.st_mode))
		return ev_fail(failure, EV_STATUS_FILE, NULL, "credentials file \"%s\" is not a regular file",
					   source->file);
	if (information.st_uid != geteuid())
	{
		ev_fail(failure, EV_STATUS_FILE, NULL, "credentials file \"%s\" belongs to another user",
				source->file);
		return ev_fail_hint(failure, "Give the file to the user that runs the program.");
	}
	if ((information.st_mode & (S_IRWXG | S_IRWXO)) != 0)
	{
		ev_fail(failure, EV_STATUS_FILE, NULL, "credentials file \"%s\" can be read by others: its mode is %04o",
				source->file, (unsigned) information.st_mode & 07777);
		return ev_fail_hint(failure, "Run \"chmod 600\" on the file, and replace the keys if others may have read them.");
	}
	return EV_STATUS_OK;
}

/* Read the whole file into *text, which the caller wipes. */
static EvStatus
read_whole(const EvCredentialsSource *source, char *text, size_t *length,
		   EvFailure *failure)
{
	EvStatus	status;
	int			descriptor;
	ssize_t		got;

	/* Not to be held up by a pipe that has nobody at its other end. */
	descriptor = open(source->file,
					  O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (descriptor < 0)
	{
		ev_fail_errno(failure, EV_STATUS_FILE,
					  "could not open credentials file \"%s\"", source->file);
		return ev_fail_hint(failure, "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a credentials file.");
	}
	status = check_file(source, descriptor, failure);
	*length = 0;
	while (status == EV_STATUS_OK)
	{
		got = read(descriptor, text + *length, FILE_LIMIT - *length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			status = ev_fail_errno(failure, EV_STATUS_FILE,
								   "could not read credentials file \"%s\"",
								   source->file);
		if (got <= 0)
			break;
		*length += (size_t) got;
		if (*length == FILE_LIMIT)
			status = ev_fail(failure, EV_STATUS_FILE, NULL, "credentials file \"%s\" is too long",
							 source->file);
	}
	close(descriptor);
	return status;
}

/* Cut blanks off both ends. */
static char *
trim(char *text)
{
	size_t		length;

	text += strspn(text, " \t\r");
	length = strlen(text);
	while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL)
		text[--length] = '\0';
	return text;
}

/* Take a line of the right section; what it names twice counts last. */
static bool
take_line(char *line, EvCredentials *credentials)
{
	char	   *value = strchr(line, '=');
	char	   *name = line;
	char	  **text;

	if (value == NULL)
		return true;
	*value++ = '\0';
	name = trim(name);
	value = trim(value);
	if (strcmp(name, "aws_access_key_id") == 0)
		text = &credentials->access_key;
	else if (strcmp(name, "aws_secret_access_key") == 0)
		text = &credentials->secret_key;
	else if (strcmp(name, "aws_session_token") == 0)
		text = &credentials->session_token;
	else
		return true;
	wipe_text(text);
	if (value[0] == '\0')
		return true;
	*text = strdup(value);
	return *text != NULL;
}

static EvStatus
read_sections(const EvCredentialsSource *source, char *text,
			  EvCredentials *credentials, EvFailure *failure)
{
	bool		ours = false;
	char	   *line;
	char	   *rest = text;

	while ((line = strsep(&rest, "\n")) != NULL)
	{
		line = trim(line);
		if (line[0] == '#' || line[0] == ';')
			continue;
		if (line[0] == '[')
		{
			line[strcspn(line, "]")] = '\0';
			ours = strcmp(trim(line + 1), source->profile) == 0;
		}
		else if (ours && !take_line(line, credentials))
			return ev_fail(failure, EV_STATUS_INTERNAL, NULL,
						   "out of memory");
	}
	return EV_STATUS_OK;
}

static EvStatus
read_file(const EvCredentialsSource *source, EvCredentials *credentials,
		  EvFailure *failure)
{
	char	   *text = malloc(FILE_LIMIT + 1);
	size_t		length = 0;
	EvStatus	status;

	if (text == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	status = read_whole(source, text, &length, failure);
	if (status == EV_STATUS_OK)
	{
		text[length] = '\0';
		status = read_sections(source, text, credentials, failure);
	}
	explicit_bzero(text, length);
	free(text);
	return status;
}

/* Is this printable ASCII without blanks?  Else it could end a header. */
static bool
is_plain(const char *text)
{
	for (; *text != '\0'; text++)
	{
		if (*text <= ' ' || *text > '~')
			return false;
	}
	return true;
}

/* Are they there, and can they be used?  No message holds a part of one. */
static EvStatus
check(const EvCredentialsSource *source, const EvCredentials *credentials,
	  EvFailure *failure)
{
	if (credentials->access_key == NULL || credentials->secret_key == NULL)
	{
		ev_fail(failure, EV_STATUS_USAGE, NULL, "there is no %s key in %s",
				credentials->access_key == NULL ? "access" : "secret",
				source->origin);
		return ev_fail_hint(failure, "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a credentials file and a profile.");
	}

	/* Releases of libcurl differ in how they encode other characters. */
	if (credentials->access_key[strspn(credentials->access_key,
									   UNRESERVED)] != '\0')
		return ev_fail(failure, EV_STATUS_USAGE, NULL, "the access key in %s has characters other than letters, digits and -._~",
					   source->origin);
	if (!is_plain(credentials->secret_key) ||
		(credentials->session_token != NULL &&
		 !is_plain(credentials->session_token)))
		return ev_fail(failure, EV_STATUS_USAGE, NULL, "a key in %s has blanks or characters that do not print",
					   source->origin);
	return EV_STATUS_OK;
}
