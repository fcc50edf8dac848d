/*-------------------------------------------------------------------------
 *
 * test_s3_credentials.c
 *	  Where keys come from, which files are refused, and that no message
 *	  holds a key.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "credentials.h"
#include "tap.h"

#define SECRET "planted/secret+0123456789"
#define TOKEN "planted-token-0123456789"

static char folder[] = "/tmp/pg-evidence-keys-XXXXXX";
static char path[sizeof(folder) + 32];

static void
write_file(const char *text, int mode)
{
	FILE	   *file;

	unlink(path);
	file = fopen(path, "w");
	if (file == NULL)
	{
		perror(path);
		exit(2);
	}
	fputs(text, file);
	fclose(file);
	chmod(path, (mode_t) mode);
}

static void
clean_environment(void)
{
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	unsetenv("AWS_SESSION_TOKEN");
	unsetenv("AWS_SHARED_CREDENTIALS_FILE");
	unsetenv("AWS_PROFILE");
	setenv("HOME", folder, 1);
}

/* Nothing that is said may hold a secret. */
static bool
is_silent(const EvFailure *failure)
{
	return strstr(failure->text, "planted") == NULL &&
		strstr(failure->doing, "planted") == NULL &&
		strstr(failure->hint, "planted") == NULL &&
		strstr(failure->detail, "planted") == NULL;
}

/* Open and get; the keys as "access|secret|token", or why there are none. */
static void
check(const char *file, const char *profile, EvStatus status,
	  const char *wanted, const char *name)
{
	EvCredentialsSource *source;
	EvCredentials credentials;
	EvFailure	failure;
	char		got[256] = "";

	ev_failure_clear(&failure);
	ok(ev_credentials_open(file, profile, &source, &failure) == status,
	   "%s: status", name);
	if (source != NULL)
	{
		if (ev_credentials_get(source, &credentials,
							   &failure) == EV_STATUS_OK)
			snprintf(got, sizeof(got), "%s|%s|%s", credentials.access_key,
					 credentials.secret_key,
					 credentials.session_token != NULL ?
					 credentials.session_token : "");
		ev_credentials_wipe(&credentials);
		ok(credentials.access_key == NULL && credentials.secret_key == NULL &&
		   credentials.session_token == NULL, "%s: wiped", name);
		ev_credentials_wipe(&credentials);
		ev_credentials_close(source);
		is(got, wanted, name);
	}
	else
	{
		ok(strstr(failure.text, wanted) != NULL ||
		   strstr(failure.doing, wanted) != NULL, "%s: says \"%s\"", name,
		   wanted);
		ok(is_silent(&failure), "%s: tells no key", name);
	}
}

static void
test_environment(void)
{
	clean_environment();
	check(NULL, NULL, EV_STATUS_FILE, "could not open", "nothing at all");
	setenv("AWS_ACCESS_KEY_ID", "AK", 1);
	check(NULL, NULL, EV_STATUS_USAGE, "no secret key", "half of it");
	setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
	check(NULL, NULL, EV_STATUS_OK, "AK|" SECRET "|", "the environment");
	setenv("AWS_SESSION_TOKEN", TOKEN, 1);
	check(NULL, NULL, EV_STATUS_OK, "AK|" SECRET "|" TOKEN, "with a token");
	setenv("AWS_SESSION_TOKEN", "", 1);
	check(NULL, NULL, EV_STATUS_OK, "AK|" SECRET "|", "an empty token");
	unsetenv("AWS_ACCESS_KEY_ID");
	check(NULL, NULL, EV_STATUS_USAGE, "no access key", "the other half");
	setenv("AWS_ACCESS_KEY_ID", "A/K", 1);
	check(NULL, NULL, EV_STATUS_USAGE, "characters other than",
		  "a key that would be encoded");
	setenv("AWS_ACCESS_KEY_ID", "AK", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "planted\r\nX-Header: 1", 1);
	check(NULL, NULL, EV_STATUS_USAGE, "do not print", "a secret of two lines");
	setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
	setenv("AWS_SESSION_TOKEN", "planted token", 1);
	check(NULL, NULL, EV_STATUS_USAGE, "blanks", "a token with a blank");
}

static void
test_sections(void)
{
	clean_environment();
	write_file("# keys\n"
			   "[default]\n"
			   "aws_access_key_id = AK1\n"
			   "aws_secret_access_key=" SECRET "\n"
			   "region = nowhere\n"
			   "[ other ]\r\n"
			   "  aws_access_key_id\t=\tAK2  \r\n"
			   "; no = comment\n"
			   "aws_secret_access_key = a=b\n"
			   "aws_session_token = " TOKEN "\n"
			   "[half]\naws_access_key_id = AK3\naws_secret_access_key =\n"
			   "[last]\naws_secret_access_key = x\naws_access_key_id = AK4",
			   0600);
	check(path, NULL, EV_STATUS_OK, "AK1|" SECRET "|", "the default profile");
	check(path, "other", EV_STATUS_OK, "AK2|a=b|" TOKEN,
		  "a profile with blanks and a token");
	check(path, "last", EV_STATUS_OK, "AK4|x|", "no line end at the end");
	check(path, "half", EV_STATUS_USAGE, "no secret key", "an empty secret");
	check(path, "none", EV_STATUS_USAGE, "no access key", "no such profile");
	setenv("AWS_PROFILE", "other", 1);
	check(path, NULL, EV_STATUS_OK, "AK2|a=b|" TOKEN, "AWS_PROFILE");
	check(path, "last", EV_STATUS_OK, "AK4|x|", "a name counts more");
	unsetenv("AWS_PROFILE");
	setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
	check(NULL, NULL, EV_STATUS_OK, "AK1|" SECRET "|",
		  "AWS_SHARED_CREDENTIALS_FILE");
	setenv("AWS_ACCESS_KEY_ID", "AK9", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "y", 1);
	check(NULL, NULL, EV_STATUS_OK, "AK9|y|", "the environment before it");
	check(path, NULL, EV_STATUS_OK, "AK1|" SECRET "|",
		  "a named file before the environment");
	clean_environment();
	write_file("", 0600);
	check(path, NULL, EV_STATUS_USAGE, "no access key", "an empty file");
	write_file("aws_access_key_id = AK\naws_secret_access_key = x\n", 0600);
	check(path, NULL, EV_STATUS_USAGE, "no access key", "no section");
}

static void
test_home(void)
{
	char		directory[sizeof(folder) + 8];
	char		home_file[sizeof(path)];
	EvCredentialsSource *source;
	EvFailure	failure;

	clean_environment();
	snprintf(directory, sizeof(directory), "%s/.aws", folder);
	snprintf(home_file, sizeof(home_file), "%s/.aws/credentials", folder);
	mkdir(directory, 0700);
	write_file("[default]\naws_access_key_id=AK\naws_secret_access_key=x\n",
			   0600);
	rename(path, home_file);
	check(NULL, NULL, EV_STATUS_OK, "AK|x|", "the file at home");
	unlink(home_file);
	rmdir(directory);

	/* Without the variable it is the home that the system knows. */
	unsetenv("HOME");
	ev_failure_clear(&failure);
	if (ev_credentials_open(NULL, NULL, &source, &failure) == EV_STATUS_OK)
		ok(strstr(ev_credentials_origin(source), "/.aws/credentials") != NULL,
		   "the home of the user");
	else
		ok(strstr(failure.doing, "/.aws/credentials") != NULL ||
		   strstr(failure.text, "/.aws/credentials") != NULL,
		   "no file at the home of the user");
	ev_credentials_close(source);
}

static void
write_long(void)
{
	FILE	   *file;
	int			i;

	write_file("[default]\n", 0600);
	file = fopen(path, "a");
	for (i = 0; i < 10000 && file != NULL; i++)
		fputs("# comment\n", file);
	if (file != NULL)
		fclose(file);
}

static void
test_files(void)
{
	static const char keys[] =
	"[default]\naws_access_key_id = AK\naws_secret_access_key = " SECRET "\n";
	static const int modes[] = {0640, 0604, 0660, 0644, 0620, 0777, 0610};
	char		target[sizeof(path) + 8];
	size_t		i;

	clean_environment();
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
	{
		write_file(keys, modes[i]);
		check(path, NULL, EV_STATUS_FILE, "can be read by others",
			  "an open mode");
	}
	write_file(keys, 0400);
	check(path, NULL, EV_STATUS_OK, "AK|" SECRET "|", "stricter than 0600");
	check(folder, NULL, EV_STATUS_FILE, "not a regular file", "a directory");
	unlink(path);
	ok(mkfifo(path, 0600) == 0, "a pipe");
	check(path, NULL, EV_STATUS_FILE, "not a regular file",
		  "nobody waits for a pipe");
	write_long();
	check(path, NULL, EV_STATUS_FILE, "is too long", "a file without end");
	check("/dev/zero", NULL, EV_STATUS_FILE, "not a regular file", "a device");

	/* Secrets of a container are links. */
	snprintf(target, sizeof(target), "%s.real", path);
	write_file(keys, 0600);
	rename(path, target);
	ok(symlink(target, path) == 0, "a link");
	check(path, NULL, EV_STATUS_OK, "AK|" SECRET "|", "a link to a file");
	chmod(target, 0644);
	check(path, NULL, EV_STATUS_FILE, "can be read by others",
		  "what counts is the file");
	if (geteuid() == 0)
	{
		chmod(target, 0600);
		ok(chown(target, 1, 1) == 0, "given away");
		check(path, NULL, EV_STATUS_FILE, "belongs to another user",
			  "a file of another user");
	}
	unlink(target);
	unlink(path);
	check(path, NULL, EV_STATUS_FILE, "could not open", "no file");
}

/* A file that is changed counts from the next time on. */
static void
test_rotation(void)
{
	EvCredentialsSource *source;
	EvCredentials credentials;
	EvFailure	failure;

	clean_environment();
	ev_failure_clear(&failure);
	write_file("[default]\naws_access_key_id=A1\naws_secret_access_key=x\n",
			   0600);
	ok(ev_credentials_open(path, NULL, &source, &failure) == EV_STATUS_OK &&
	   strstr(ev_credentials_origin(source), path) != NULL, "opened");
	write_file("[default]\naws_access_key_id=A2\naws_secret_access_key=y\n",
			   0600);
	ok(ev_credentials_get(source, &credentials, &failure) == EV_STATUS_OK &&
	   strcmp(credentials.access_key, "A2") == 0 &&
	   strcmp(credentials.secret_key, "y") == 0, "the new keys");
	ev_credentials_wipe(&credentials);
	chmod(path, 0644);
	ok(ev_credentials_get(source, &credentials,
						  &failure) == EV_STATUS_FILE &&
	   credentials.access_key == NULL && credentials.secret_key == NULL,
	   "opened to others, it is refused from then on");
	unlink(path);
	ok(ev_credentials_get(source, &credentials, &failure) == EV_STATUS_FILE,
	   "gone");
	ev_credentials_close(source);
	ev_credentials_close(NULL);
}

int
main(void)
{
	if (mkdtemp(folder) == NULL)
	{
		perror(folder);
		return 2;
	}
	snprintf(path, sizeof(path), "%s/keys", folder);
	test_environment();
	test_sections();
	test_home();
	test_files();
	test_rotation();
	rmdir(folder);
	return tap_done();
}
