/*-------------------------------------------------------------------------
 *
 * sink_file.c
 *	  The sink "file": one line of JSON per record, in a file of its own.
 *
 * The only way to know that a record arrived is to write it oneself: one
 * write() per record, whose length is checked, and one fsync() per batch
 * before any of its rows becomes sent.  A write that was cut short, by a full
 * disk for instance, is taken back at once.
 *
 * The file is opened anew for each batch, so a file that was renamed, by a
 * program that rotates logs or by this one, is followed by a new one without
 * any signal: all of a batch is in one file, and nothing is written to a
 * renamed one later.  A lock on it (flock) keeps batches of several processes
 * apart; it is the file that was locked only if the name still leads to it.
 *
 * A line without its end is what a crash of the machine has left.  It stays
 * as it is, because a program that follows the file may have read it already
 * and would lose its place; the next record begins on a line of its own, and
 * the rows of the torn batch are shipped again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/syslogger.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#include "base/settings.h"
#include "process/sink.h"

#define DEFAULT_NAME "pg_evidence_audit.jsonl"

/* How long to wait for another process that writes a batch. */
#define LOCK_POLL_MS 5
#define LOCK_TRIES 4000

/* How many times in a row a file may be renamed before it is locked. */
#define OPEN_TRIES 100

/* What is open from begin to finish, in one transaction. */
static struct
{
	char		path[MAXPGPATH];
	int			file;
	off_t		size;			/* where the next record goes */
	bool		torn;			/* the last line has no end */
	bool		is_new;			/* its name may not be on disk yet */
}			current;

static EvSinkState preflight(char reason[EV_SINK_REASON]);
static bool begin(char reason[EV_SINK_REASON]);
static bool ship(const char *record, size_t length,
				 char reason[EV_SINK_REASON]);
static bool finish(char reason[EV_SINK_REASON]);
static bool find_path(char path[MAXPGPATH], char reason[EV_SINK_REASON]);
static int	open_file(const char *path, char reason[EV_SINK_REASON]);
static bool check_file(int file, const char *path,
					   char reason[EV_SINK_REASON]);
static bool check_space(int file, const char *path,
						char reason[EV_SINK_REASON]);
static bool lock_file(int file, const char *path,
					  char reason[EV_SINK_REASON]);
static bool is_still(int file, const char *path);
static bool rename_full(const char *path, char reason[EV_SINK_REASON]);
static bool look_at_end(char reason[EV_SINK_REASON]);
static bool write_all(const char *data, size_t length,
					  char reason[EV_SINK_REASON]);
static bool sync_directory(const char *path, char reason[EV_SINK_REASON]);
static bool refuse(char reason[EV_SINK_REASON], const char *what,
				   const char *path);

const EvSink ev_sink_file = {
	.name = "file",
	.preflight = preflight,
	.begin = begin,
	.ship = ship,
	.finish = finish
};

static EvSinkState
preflight(char reason[EV_SINK_REASON])
{
	char		path[MAXPGPATH];
	int			file;
	bool		good;

	if (!find_path(path, reason))
		return EV_SINK_BROKEN;
	file = open_file(path, reason);
	if (file < 0)
		return EV_SINK_BROKEN;
	good = check_file(file, path, reason) && check_space(file, path, reason);
	CloseTransientFile(file);
	return good ? EV_SINK_READY : EV_SINK_BROKEN;
}

/*
 * Between opening and locking, another process may have renamed the file.
 */
static bool
begin(char reason[EV_SINK_REASON])
{
	int			tries;

	if (!find_path(current.path, reason))
		return false;
	for (tries = 0; tries < OPEN_TRIES; tries++)
	{
		struct stat status;
		int			file = open_file(current.path, reason);

		if (file < 0)
			return false;
		if (!check_file(file, current.path, reason) ||
			!lock_file(file, current.path, reason))
		{
			CloseTransientFile(file);
			return false;
		}
		if (fstat(file, &status) != 0 || !is_still(file, current.path))
		{
			CloseTransientFile(file);
			continue;
		}
		if (ev_ship_file_max_size > 0 &&
			status.st_size >= (off_t) ev_ship_file_max_size * 1024)
		{
			bool		renamed = rename_full(current.path, reason);

			CloseTransientFile(file);
			if (!renamed)
				return false;
			continue;
		}
		current.file = file;
		current.size = status.st_size;
		current.is_new = status.st_size == 0;
		if (look_at_end(reason))
			return true;
		CloseTransientFile(file);
		return false;
	}
	snprintf(reason, EV_SINK_REASON,
			 "file \"%s\" is renamed faster than it can be opened",
			 current.path);
	return false;
}

static bool
ship(const char *record, size_t length, char reason[EV_SINK_REASON])
{
	if (current.torn)
	{
		if (!write_all("\n", 1, reason))
			return false;
		current.torn = false;
	}
	return write_all(record, length, reason);
}

/*
 * A file that was removed meanwhile takes with it all that was written.
 */
static bool
finish(char reason[EV_SINK_REASON])
{
	struct stat status;
	bool		good = true;

	if (pg_fsync(current.file) != 0)
		good = refuse(reason, "could not write to disk", current.path);
	else if (fstat(current.file, &status) != 0)
		good = refuse(reason, "could not look at", current.path);
	else if (status.st_nlink == 0)
	{
		snprintf(reason, EV_SINK_REASON,
				 "file \"%s\" was removed while it was written to",
				 current.path);
		good = false;
	}
	else if (current.is_new)
		good = sync_directory(current.path, reason);
	if (CloseTransientFile(current.file) != 0 && good)
		good = refuse(reason, "could not close", current.path);
	return good;
}

/*
 * The directory of the server's log is made by the logging collector when it
 * starts, so without one it need not be there.
 */
static bool
find_path(char path[MAXPGPATH], char reason[EV_SINK_REASON])
{
	bool		by_default = ev_ship_file == NULL || ev_ship_file[0] == '\0';
	const char *given = by_default ? Log_directory : ev_ship_file;
	char		directory[MAXPGPATH];

	if (is_absolute_path(given))
		snprintf(path, MAXPGPATH, "%s", given);
	else
		join_path_components(path, DataDir, given);
	if (by_default)
	{
		snprintf(directory, MAXPGPATH, "%s", path);
		canonicalize_path(directory);
		if (MakePGDirectory(directory) != 0 && errno != EEXIST)
			return refuse(reason, "could not create directory", directory);
		join_path_components(path, directory, DEFAULT_NAME);
	}
	canonicalize_path(path);
	return true;
}

static int
open_file(const char *path, char reason[EV_SINK_REASON])
{
	int			file;

	file = OpenTransientFilePerm(path, O_RDWR | O_APPEND | O_CREAT |
								 O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
								 PG_BINARY, S_IRUSR | S_IWUSR);
	if (file < 0)
		(void) refuse(reason, "could not open", path);
	return file;
}

/*
 * Whoever else can write to the file can forge what stands in it.
 */
static bool
check_file(int file, const char *path, char reason[EV_SINK_REASON])
{
	struct stat status;

	if (fstat(file, &status) != 0)
		return refuse(reason, "could not look at", path);
	if (!S_ISREG(status.st_mode))
		snprintf(reason, EV_SINK_REASON, "\"%s\" is not a regular file", path);
	else if (status.st_uid != geteuid())
		snprintf(reason, EV_SINK_REASON,
				 "file \"%s\" belongs to another user than the server's",
				 path);
	else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		snprintf(reason, EV_SINK_REASON,
				 "file \"%s\" can be written by others than the server's user",
				 path);
	else
		return true;
	return false;
}

static bool
check_space(int file, const char *path, char reason[EV_SINK_REASON])
{
	struct statvfs space;

	if (fstatvfs(file, &space) == 0 && space.f_bavail == 0)
	{
		errno = ENOSPC;
		return refuse(reason, "could not write to", path);
	}
	return true;
}

/*
 * Waiting in flock() itself could not be interrupted.
 */
static bool
lock_file(int file, const char *path, char reason[EV_SINK_REASON])
{
	int			tries;

	for (tries = 0; tries < LOCK_TRIES; tries++)
	{
		if (flock(file, LOCK_EX | LOCK_NB) == 0)
			return true;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return refuse(reason, "could not lock", path);
		if (!ev_sink_wait(LOCK_POLL_MS))
			break;
	}
	snprintf(reason, EV_SINK_REASON, "file \"%s\" is locked by another process",
			 path);
	return false;
}

/* Does the name still lead to the open file? */
static bool
is_still(int file, const char *path)
{
	struct stat opened;
	struct stat named;

	return fstat(file, &opened) == 0 && lstat(path, &named) == 0 &&
		opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/*
 * With the lock held.  link() refuses a name that is taken, which rename()
 * would replace.
 */
static bool
rename_full(const char *path, char reason[EV_SINK_REASON])
{
	char		target[MAXPGPATH + 40];
	TimestampTz now = GetCurrentTimestamp();
	pg_time_t	seconds = timestamptz_to_time_t(now);
	struct pg_tm *utc = pg_gmtime(&seconds);

	snprintf(target, sizeof(target), "%s.%04d%02d%02dT%02d%02d%02d.%06dZ",
			 path, utc->tm_year + 1900, utc->tm_mon + 1, utc->tm_mday,
			 utc->tm_hour, utc->tm_min, utc->tm_sec,
			 (int) ((now % USECS_PER_SEC + USECS_PER_SEC) % USECS_PER_SEC));
	if (link(path, target) != 0)
		return refuse(reason, "could not rename", path);
	if (unlink(path) != 0)
	{
		(void) refuse(reason, "could not rename", path);
		(void) unlink(target);
		return false;
	}
	return sync_directory(path, reason);
}

static bool
look_at_end(char reason[EV_SINK_REASON])
{
	char		last;

	current.torn = false;
	if (current.size == 0)
		return true;
	if (pg_pread(current.file, &last, 1, current.size - 1) != 1)
		return refuse(reason, "could not read", current.path);
	current.torn = last != '\n';
	return true;
}

/*
 * A part of a record is worse than none: take it back, or else see to it that
 * the next record begins on a line of its own.
 */
static bool
write_all(const char *data, size_t length, char reason[EV_SINK_REASON])
{
	ssize_t		written;

	do
	{
		errno = 0;
		written = write(current.file, data, length);
	} while (written < 0 && errno == EINTR);

	if (written == (ssize_t) length)
	{
		current.size += written;
		return true;
	}
	/* A write that is cut short sets no error; its cause is a full disk. */
	if (errno == 0)
		errno = ENOSPC;
	(void) refuse(reason, "could not write to", current.path);
	if (written > 0 && ftruncate(current.file, current.size) != 0)
	{
		current.size += written;
		current.torn = true;
	}
	return false;
}

static bool
sync_directory(const char *path, char reason[EV_SINK_REASON])
{
	char		directory[MAXPGPATH];
	int			file;
	bool		good = true;

	snprintf(directory, sizeof(directory), "%s", path);
	get_parent_directory(directory);
	file = OpenTransientFile(directory, O_RDONLY | PG_BINARY);
	if (file < 0)
		return refuse(reason, "could not open directory", directory);
	if (pg_fsync(file) != 0)
		good = refuse(reason, "could not write to disk directory", directory);
	CloseTransientFile(file);
	return good;
}

/* Say what failed, from errno; returns false. */
static bool
refuse(char reason[EV_SINK_REASON], const char *what, const char *path)
{
	int			saved = errno;

	snprintf(reason, EV_SINK_REASON, "%s \"%s\": %s", what, path,
			 strerror(saved));
	errno = saved;
	return false;
}
