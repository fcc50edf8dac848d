/*-------------------------------------------------------------------------
 *
 * spool.c
 *	  A file that has its final name only once it is whole and checked.
 *
 * Bytes go to ".NAME.TOKEN.part" beside the final file, TOKEN being random
 * for each attempt, created exclusively with mode 0600.  Every write, sync
 * and close is checked: a full disk often shows up only there (case C52).
 *
 * The file is locked while its program lives.  A killed program cannot remove
 * its file, so the next attempt for the same name removes every such file
 * whose lock is free and leaves those of running programs alone.
 *
 * The signal handler uses unlink only, on a name that is complete before the
 * file is created; then the signal takes its usual effect, so that a shell
 * sees the program as killed.
 *
 *-------------------------------------------------------------------------
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool.h"

#define TOKEN_BYTES 8
#define TOKEN_TEXT (2 * TOKEN_BYTES + 1)

struct EvSpoolFile
{
	int			descriptor;
	char	   *path;			/* final name */
	char	   *temporary;
	char	   *directory;
	bool		replace;
	bool		kept;
};

/* What the signal handler removes; NULL if nothing. */
static const char *volatile guarded_path = NULL;

static char *directory_of(const char *path);
static const char *name_of(const char *path);
static EvStatus make_names(EvSpoolFile *spool, const char *path,
						   EvFailure *failure);
static void remove_stale(const EvSpoolFile *spool);
static EvStatus take_name(EvSpoolFile *spool, EvFailure *failure);

/* Only calls that are safe in a handler: unlink, signal, raise. */
static void
on_signal(int signal_number)
{
	if (guarded_path != NULL)
		unlink(guarded_path);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void
ev_spool_file_guard(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action;
	size_t		i;

	/* A limit on file sizes is to be an error of write, not our end. */
	signal(SIGXFSZ, SIG_IGN);

	memset(&action, 0, sizeof(action));
	sigemptyset(&action.sa_mask);
	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
	{
		struct sigaction old;

		/* A program started by nohup keeps ignoring SIGHUP. */
		if (sigaction(signals[i], NULL, &old) == 0 &&
			old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

EvStatus
ev_spool_file_check(const char *path, bool replace, EvFailure *failure)
{
	struct stat existing;

	if (replace || lstat(path, &existing) != 0)
		return EV_STATUS_OK;
	ev_fail(failure, EV_STATUS_FILE, NULL, "file \"%s\" exists already", path);
	return ev_fail_hint(failure, "Give another name, or --force to replace it.");
}

EvStatus
ev_spool_file_open(const char *path, bool replace, EvSpoolFile **spool,
				   EvFailure *failure)
{
	EvSpoolFile *created = calloc(1, sizeof(EvSpoolFile));
	EvStatus	status;

	*spool = NULL;
	if (created == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	created->descriptor = -1;
	created->replace = replace;
	status = make_names(created, path, failure);
	if (status == EV_STATUS_OK)
		status = ev_spool_file_check(path, replace, failure);
	if (status == EV_STATUS_OK)
	{
		remove_stale(created);

		/* Guarded before it exists, so that no signal finds it unguarded. */
		guarded_path = created->temporary;
		created->descriptor = open(created->temporary,
								   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
								   O_CLOEXEC, 0600);
		if (created->descriptor < 0)
			status = ev_fail_errno(failure, EV_STATUS_FILE,
								   "could not create file \"%s\"",
								   created->temporary);
		else
			flock(created->descriptor, LOCK_EX | LOCK_NB);
	}
	if (status != EV_STATUS_OK)
	{
		ev_spool_file_close(created);
		return status;
	}
	*spool = created;
	return EV_STATUS_OK;
}

EvStatus
ev_spool_file_write(EvSpoolFile *spool, const void *data, size_t length,
					EvFailure *failure)
{
	const char *from = data;

	while (length > 0)
	{
		ssize_t		written = write(spool->descriptor, from, length);

		if (written < 0)
		{
			if (errno == EINTR)
				continue;
			return ev_fail_errno(failure, EV_STATUS_FILE,
								 "could not write file \"%s\"",
								 spool->temporary);
		}
		from += written;
		length -= (size_t) written;
	}
	return EV_STATUS_OK;
}

EvStatus
ev_spool_file_rewind(EvSpoolFile *spool, EvFailure *failure)
{
	if (ftruncate(spool->descriptor, 0) == 0 &&
		lseek(spool->descriptor, 0, SEEK_SET) == 0)
		return EV_STATUS_OK;
	return ev_fail_errno(failure, EV_STATUS_FILE,
						 "could not empty file \"%s\"", spool->temporary);
}

int
ev_spool_file_descriptor(const EvSpoolFile *spool)
{
	return spool->descriptor;
}

EvStatus
ev_spool_file_keep(EvSpoolFile *spool, EvFailure *failure)
{
	EvStatus	status;
	int			directory;
	int			lock;
	int			closed;

	/* Durable before it has its name: a crash leaves a part, not a lie. */
	if (fsync(spool->descriptor) != 0)
		return ev_fail_errno(failure, EV_STATUS_FILE,
							 "could not write file \"%s\"", spool->temporary);

	/* A second descriptor holds the lock until the name is taken. */
	lock = dup(spool->descriptor);
	closed = close(spool->descriptor);
	spool->descriptor = lock;
	if (closed != 0)
		return ev_fail_errno(failure, EV_STATUS_FILE,
							 "could not write file \"%s\"", spool->temporary);
	status = take_name(spool, failure);
	if (status != EV_STATUS_OK)
		return status;
	spool->kept = true;

	/* The new name, too, must survive a crash of the machine. */
	directory = open(spool->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory >= 0)
	{
		fsync(directory);
		close(directory);
	}
	return EV_STATUS_OK;
}

void
ev_spool_file_close(EvSpoolFile *spool)
{
	if (spool == NULL)
		return;
	if (spool->descriptor >= 0)
		close(spool->descriptor);
	if (spool->temporary != NULL && !spool->kept)
		unlink(spool->temporary);
	guarded_path = NULL;
	free(spool->path);
	free(spool->temporary);
	free(spool->directory);
	free(spool);
}

/*
 * Rename without replacing a file that somebody has made meanwhile.  link
 * refuses an existing name; on a file system without links the look just
 * before the rename has to do.
 */
static EvStatus
take_name(EvSpoolFile *spool, EvFailure *failure)
{
	struct stat existing;
	int			result;

	if (spool->replace)
		result = rename(spool->temporary, spool->path);
	else
	{
		result = link(spool->temporary, spool->path);
		if (result == 0)
			unlink(spool->temporary);
		else if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
		{
			if (lstat(spool->path, &existing) == 0)
				errno = EEXIST;
			else
				result = rename(spool->temporary, spool->path);
		}
	}
	if (result != 0)
		return ev_fail_errno(failure, EV_STATUS_FILE,
							 "could not give file \"%s\" its name",
							 spool->path);
	return EV_STATUS_OK;
}

/* Fill path, directory and temporary. */
static EvStatus
make_names(EvSpoolFile *spool, const char *path, EvFailure *failure)
{
	unsigned char bytes[TOKEN_BYTES];
	char		token[TOKEN_TEXT];
	size_t		i;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
		return ev_fail_errno(failure, EV_STATUS_INTERNAL,
							 "could not name a temporary file");
	for (i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	spool->path = strdup(path);
	spool->directory = directory_of(path);
	if (spool->path == NULL || spool->directory == NULL ||
		asprintf(&spool->temporary, "%s/.%s.%s.part", spool->directory,
				 name_of(path), token) < 0)
	{
		spool->temporary = NULL;
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	}
	return EV_STATUS_OK;
}

/* The directory part of a path, "." if it has none; release with free. */
static char *
directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return strdup(".");
	if (slash == path)
		return strdup("/");
	return strndup(path, (size_t) (slash - path));
}

/* The part of a path behind the last slash. */
static const char *
name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

/* Is this the name of a temporary file for the same final name? */
static bool
is_temporary(const char *name, const char *final)
{
	size_t		length = strlen(final);

	return name[0] == '.' && strncmp(name + 1, final, length) == 0 &&
		name[1 + length] == '.' &&
		strspn(name + 2 + length, "0123456789abcdef") == TOKEN_TEXT - 1 &&
		strcmp(name + 2 + length + TOKEN_TEXT - 1, ".part") == 0;
}

/* Remove what killed programs left; failing to do so harms nothing. */
static void
remove_stale(const EvSpoolFile *spool)
{
	DIR		   *directory = opendir(spool->directory);
	struct dirent *entry;

	if (directory == NULL)
		return;
	while ((entry = readdir(directory)) != NULL)
	{
		int			descriptor;

		if (!is_temporary(entry->d_name, name_of(spool->path)))
			continue;
		descriptor = openat(dirfd(directory), entry->d_name,
							O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (descriptor < 0)
			continue;
		if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
			unlinkat(dirfd(directory), entry->d_name, 0);
		close(descriptor);
	}
	closedir(directory);
}
