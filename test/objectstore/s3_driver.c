/*-------------------------------------------------------------------------
 *
 * s3_driver.c
 *	  Makes the program's client of object stores do single requests.
 *
 *	  s3_driver [OPTION...] COMMAND ARGUMENT... [, COMMAND ARGUMENT...]...
 *
 * Prints one JSON object a line for each command: what came of it, and what
 * was found.  All commands use one handle, so one connection, until "new" makes
 * another.  Keys come from the environment or from --credentials.  SIGTERM
 * stops what runs.
 *
 * Linked with the objects of the program, so that the tests meet the very
 * code that users run, but not through a command that would decide by itself
 * what to do next.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "package/digest.h"

#include "s3.h"
#include "s3_request.h"

/* A stretch of a file that is sent. */
typedef struct FileSource
{
	int			descriptor;
	int64_t		start;
	int64_t		offset;
	char		sha256[EV_SHA256_HEX];
	int64_t		length;
	int			seeks;
	bool		fixed;			/* it cannot go back to its beginning */
} FileSource;

/* A file that is written. */
typedef struct FileSink
{
	int			descriptor;
	int64_t		written;
	EvS3Object	object;
	bool		began;
	bool		refuse;			/* the object, when it is told of it */
	int64_t		stop_after;		/* bytes; 0: never */
} FileSink;

/* What commands leave for later ones. */
typedef struct Driver
{
	EvS3	   *s3;
	EvS3Settings settings;
	int			page;			/* 0: the usual */
	json_t	   *line;
	json_t	   *list;
	bool		stop;			/* a list at its first item */
	EvS3Result	result;
	char		upload_id[EV_S3_UPLOAD_TEXT];
	EvS3Part	parts[EV_S3_PARTS_LIMIT];
	int			part_count;
} Driver;

typedef bool (*CommandFunction) (Driver *driver, int count, char **words);

typedef struct Command
{
	const char *name;
	int			words;			/* at least */
	CommandFunction run;
} Command;

static volatile sig_atomic_t stopped = 0;

static void
on_signal(int signal_number)
{
	(void) signal_number;
	stopped = 1;
}

static void
fail(const char *what)
{
	fprintf(stderr, "s3_driver: %s\n", what);
	exit(2);
}

static bool
on_tick(void *arg, int64_t done, int64_t total)
{
	(void) arg;
	(void) done;
	(void) total;
	return !stopped;
}

static void
put_text(json_t *into, const char *name, const char *text)
{
	/* Names of objects are bytes; those that are no UTF-8 are not asked. */
	json_object_set_new(into, name, json_string(text));
}

static void
put_number(json_t *into, const char *name, int64_t number)
{
	json_object_set_new(into, name, json_integer(number));
}

static void
put_flag(json_t *into, const char *name, bool flag)
{
	json_object_set_new(into, name, json_boolean(flag));
}

static void
put_object(json_t *into, const EvS3Object *object)
{
	static const char *const modes[] = {"", "GOVERNANCE", "COMPLIANCE"};

	put_flag(into, "exists", object->exists);
	put_number(into, "length", object->length);
	put_text(into, "sha256", object->sha256);
	put_text(into, "etag", object->etag);
	put_text(into, "version", object->version_id);
	put_number(into, "modified", object->last_modified);
	put_text(into, "mode", modes[object->lock.mode]);
	put_number(into, "until", object->lock.retain_until);
	put_flag(into, "hold", object->lock.legal_hold);
}

static void
put_result(json_t *into, const EvS3Result *result)
{
	put_text(into, "outcome", ev_s3_outcome_name(result->outcome));
	put_number(into, "http", result->http_status);
	put_text(into, "code", result->code);
	put_text(into, "message", result->message);
	put_text(into, "hint", result->hint);
	put_flag(into, "retry_helps", result->retry_helps);
	put_flag(into, "maybe_done", result->maybe_done);
	put_number(into, "retry_after", result->retry_after);
	put_number(into, "skew", result->skew);
	put_number(into, "locked_until", result->locked_until);
	put_text(into, "request_id", result->request_id);
}

static ssize_t
read_file(void *arg, void *buffer, size_t size)
{
	FileSource *source = arg;
	ssize_t		got = pread(source->descriptor, buffer, size, source->offset);

	if (got > 0)
		source->offset += got;
	return got;
}

static bool
seek_file(void *arg, int64_t offset)
{
	FileSource *source = arg;

	source->offset = source->start + offset;
	source->seeks++;
	return !source->fixed;
}

/* Open a stretch of a file and compute its digest; length -1: to the end. */
static void
open_source(FileSource *source, const char *path, int64_t start,
			int64_t length)
{
	static char buffer[65536];
	unsigned char digest[EV_SHA256_BYTES];
	struct stat information;
	EvSha256   *hash = ev_sha256_create(NULL);
	int64_t		done;

	memset(source, 0, sizeof(*source));
	source->descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (source->descriptor < 0 ||
		fstat(source->descriptor, &information) != 0 || hash == NULL)
		fail(path);
	source->start = start;
	source->length = length >= 0 ? length : information.st_size - start;
	for (done = 0; done < source->length;)
	{
		size_t		want = sizeof(buffer);
		ssize_t		got;

		if ((int64_t) want > source->length - done)
			want = (size_t) (source->length - done);
		got = pread(source->descriptor, buffer, want, start + done);
		if (got <= 0)
			break;				/* fewer than announced: a test of that */
		ev_sha256_update(hash, buffer, (size_t) got, NULL);
		done += got;
	}
	ev_sha256_finish(hash, digest, NULL);
	ev_sha256_hex(digest, source->sha256);
	ev_sha256_free(hash);
}

/* An option like name=value among the words; NULL if it is not there. */
static const char *
option(int count, char **words, const char *name)
{
	size_t		length = strlen(name);
	int			i;

	for (i = 0; i < count; i++)
	{
		if (strncmp(words[i], name, length) == 0 &&
			(words[i][length] == '=' || words[i][length] == '\0'))
			return words[i][length] == '=' ? words[i] + length + 1 : "";
	}
	return NULL;
}

/* sha256=, create, governance=SECONDS, compliance=SECONDS, hold. */
static void
read_creation(EvS3Creation *creation, const char *sha256, int count,
			  char **words)
{
	const char *seconds;

	memset(creation, 0, sizeof(*creation));
	creation->sha256 = option(count, words, "sha256");
	if (creation->sha256 == NULL)
		creation->sha256 = sha256;
	creation->create_only = option(count, words, "create") != NULL;
	creation->lock.legal_hold = option(count, words, "hold") != NULL;
	creation->lock.retain_until = EV_S3_NEVER;
	seconds = option(count, words, "governance");
	if (seconds != NULL)
		creation->lock.mode = EV_S3_LOCK_GOVERNANCE;
	else
	{
		seconds = option(count, words, "compliance");
		if (seconds != NULL)
			creation->lock.mode = EV_S3_LOCK_COMPLIANCE;
	}
	if (seconds != NULL)
		creation->lock.retain_until = (int64_t) time(NULL) + atoll(seconds);
}

static bool
run_put(Driver *driver, int count, char **words)
{
	const char *length = option(count - 2, words + 2, "length");
	EvS3Creation creation;
	EvS3Source	source;
	EvS3Object	object;
	FileSource	file;

	open_source(&file, words[1], 0, length != NULL ? atoll(length) : -1);
	read_creation(&creation, file.sha256, count - 2, words + 2);
	source.read = read_file;
	source.seek = seek_file;
	source.arg = &file;
	file.fixed = option(count - 2, words + 2, "fixed") != NULL;
	ev_s3_put(driver->s3, words[0], file.length, &creation, &source, &object,
			  &driver->result);
	put_object(driver->line, &object);
	put_number(driver->line, "seeks", file.seeks);
	close(file.descriptor);
	return true;
}

static bool
run_head(Driver *driver, int count, char **words)
{
	EvS3Object	object;

	ev_s3_head(driver->s3, words[0], count > 1 ? words[1] : NULL, &object,
			   &driver->result);
	put_object(driver->line, &object);
	return true;
}

static bool
begin_file(void *arg, const EvS3Object *object)
{
	FileSink   *sink = arg;

	if (sink->began || sink->written > 0)
		fail("the sink was begun twice or too late");
	sink->began = true;
	sink->object = *object;
	return !sink->refuse;
}

static bool
write_file(void *arg, const void *data, size_t length)
{
	FileSink   *sink = arg;

	if (!sink->began || sink->refuse)
		fail("bytes came before the object was told of");
	if (write(sink->descriptor, data, length) != (ssize_t) length)
		fail(strerror(errno));
	sink->written += (int64_t) length;
	return sink->stop_after == 0 || sink->written < sink->stop_after;
}

/* get KEY FILE [version=ID] [refuse] [stop=BYTES] */
static bool
run_get(Driver *driver, int count, char **words)
{
	const char *stop = option(count - 2, words + 2, "stop");
	EvS3Sink	sink = {begin_file, write_file, NULL};
	FileSink	file;

	memset(&file, 0, sizeof(file));
	file.refuse = option(count - 2, words + 2, "refuse") != NULL;
	file.stop_after = stop != NULL ? atoll(stop) : 0;
	file.descriptor = open(words[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
						   0600);
	if (file.descriptor < 0)
		fail(words[1]);
	sink.arg = &file;
	ev_s3_get(driver->s3, words[0], option(count - 2, words + 2, "version"),
			  &sink, &driver->result);
	put_object(driver->line, &file.object);
	put_flag(driver->line, "began", file.began);
	put_number(driver->line, "written", file.written);
	close(file.descriptor);
	return true;
}

static bool
run_delete(Driver *driver, int count, char **words)
{
	ev_s3_delete(driver->s3, words[0], count > 1 ? words[1] : NULL,
				 &driver->result);
	return true;
}

static bool
run_begin(Driver *driver, int count, char **words)
{
	EvS3Creation creation;

	read_creation(&creation, words[1], count - 2, words + 2);
	ev_s3_upload_begin(driver->s3, words[0], &creation, driver->upload_id,
					   &driver->result);
	driver->part_count = 0;
	put_text(driver->line, "upload", driver->upload_id);
	return true;
}

/* The id that a word stands for: "@" is that of the last begin. */
static const char *
upload_of(const Driver *driver, const char *word)
{
	return strcmp(word, "@") == 0 ? driver->upload_id : word;
}

/* part KEY UPLOAD NUMBER FILE OFFSET LENGTH [sha256=] */
static bool
run_part(Driver *driver, int count, char **words)
{
	const char *sha256 = option(count - 6, words + 6, "sha256");
	EvS3Source	source;
	FileSource	file;
	EvS3Part	part;

	open_source(&file, words[3], atoll(words[4]), atoll(words[5]));
	source.read = read_file;
	source.seek = seek_file;
	source.arg = &file;
	ev_s3_upload_part(driver->s3, words[0], upload_of(driver, words[1]),
					  atoi(words[2]), file.length,
					  sha256 != NULL ? sha256 : file.sha256, &source, &part,
					  &driver->result);
	if (driver->result.outcome == EV_S3_OK)
		driver->parts[driver->part_count++] = part;
	put_text(driver->line, "etag", part.etag);
	close(file.descriptor);
	return true;
}

static bool
take_part(void *arg, const EvS3Part *part)
{
	Driver	   *driver = arg;
	json_t	   *item = json_object();

	driver->parts[driver->part_count++] = *part;
	put_number(item, "number", part->number);
	put_number(item, "length", part->length);
	put_text(item, "etag", part->etag);
	put_text(item, "sha256", part->sha256);
	json_array_append_new(driver->list, item);
	return !driver->stop;
}

static bool
run_parts(Driver *driver, int count, char **words)
{
	(void) count;
	driver->part_count = 0;
	ev_s3_upload_parts(driver->s3, words[0], upload_of(driver, words[1]),
					   take_part, driver, &driver->result);
	return true;
}

/* complete KEY UPLOAD [create]: the parts that were sent or listed last. */
static bool
run_complete(Driver *driver, int count, char **words)
{
	EvS3Object	object;

	ev_s3_upload_complete(driver->s3, words[0], upload_of(driver, words[1]),
						  driver->parts, driver->part_count,
						  option(count - 2, words + 2, "create") != NULL,
						  &object, &driver->result);
	put_object(driver->line, &object);
	return true;
}

static bool
run_abort(Driver *driver, int count, char **words)
{
	(void) count;
	ev_s3_upload_abort(driver->s3, words[0], upload_of(driver, words[1]),
					   &driver->result);
	return true;
}

static bool
take_upload(void *arg, const char *key, const char *upload_id,
			int64_t initiated)
{
	Driver	   *driver = arg;
	json_t	   *item = json_object();

	put_text(item, "key", key);
	put_text(item, "upload", upload_id);
	put_number(item, "initiated", initiated);
	json_array_append_new(driver->list, item);
	return !driver->stop;
}

static bool
run_uploads(Driver *driver, int count, char **words)
{
	ev_s3_list_uploads(driver->s3, count > 0 ? words[0] : "", take_upload,
					   driver, &driver->result);
	return true;
}

static bool
take_object(void *arg, const char *key, const EvS3Object *object)
{
	Driver	   *driver = arg;
	json_t	   *item = json_object();

	put_text(item, "key", key);
	put_object(item, object);
	json_array_append_new(driver->list, item);
	return !driver->stop;
}

static bool
run_list(Driver *driver, int count, char **words)
{
	ev_s3_list(driver->s3, count > 0 ? words[0] : "", take_object, driver,
			   &driver->result);
	return true;
}

static bool
take_version(void *arg, const char *key, const EvS3Object *object,
			 bool latest, bool delete_marker)
{
	Driver	   *driver = arg;
	json_t	   *item = json_object();

	put_text(item, "key", key);
	put_object(item, object);
	put_flag(item, "latest", latest);
	put_flag(item, "marker", delete_marker);
	json_array_append_new(driver->list, item);
	return !driver->stop;
}

static bool
run_versions(Driver *driver, int count, char **words)
{
	ev_s3_list_versions(driver->s3, count > 0 ? words[0] : "", take_version,
						driver, &driver->result);
	return true;
}

/* retention KEY VERSION governance|compliance SECONDS */
static bool
run_retention(Driver *driver, int count, char **words)
{
	(void) count;
	ev_s3_put_retention(driver->s3, words[0], words[1],
						words[2][0] == 'g' ? EV_S3_LOCK_GOVERNANCE :
						EV_S3_LOCK_COMPLIANCE,
						(int64_t) time(NULL) + atoll(words[3]),
						&driver->result);
	return true;
}

static bool
run_hold(Driver *driver, int count, char **words)
{
	(void) count;
	ev_s3_put_legal_hold(driver->s3, words[0], words[1],
						 strcmp(words[2], "on") == 0, &driver->result);
	return true;
}

/* name: what messages call the store. */
static bool
run_name(Driver *driver, int count, char **words)
{
	(void) count;
	(void) words;
	put_text(driver->line, "name", ev_s3_name(driver->s3));
	return false;
}

static bool
run_bucket(Driver *driver, int count, char **words)
{
	(void) count;
	(void) words;
	ev_s3_bucket(driver->s3, &driver->result);
	return true;
}

static bool
run_versioning(Driver *driver, int count, char **words)
{
	EvS3Versioning versioning;

	(void) count;
	(void) words;
	ev_s3_bucket_versioning(driver->s3, &versioning, &driver->result);
	put_number(driver->line, "versioning", versioning);
	return true;
}

static bool
run_lock(Driver *driver, int count, char **words)
{
	EvS3BucketLock lock;

	(void) count;
	(void) words;
	ev_s3_bucket_lock(driver->s3, &lock, &driver->result);
	put_flag(driver->line, "enabled", lock.enabled);
	put_number(driver->line, "mode", lock.mode);
	put_number(driver->line, "days", lock.days);
	return true;
}

static bool
take_rule(void *arg, const EvS3Rule *rule)
{
	Driver	   *driver = arg;
	json_t	   *item = json_object();

	put_text(item, "id", rule->id);
	put_text(item, "prefix", rule->prefix);
	put_flag(item, "enabled", rule->enabled);
	put_flag(item, "partial", rule->partial);
	put_number(item, "expire_days", rule->expire_days);
	put_number(item, "expire_date", rule->expire_date);
	put_number(item, "abort_days", rule->abort_days);
	put_number(item, "noncurrent_days", rule->noncurrent_days);
	json_array_append_new(driver->list, item);
	return !driver->stop;
}

static bool
run_lifecycle(Driver *driver, int count, char **words)
{
	(void) count;
	(void) words;
	ev_s3_lifecycle(driver->s3, take_rule, driver, &driver->result);
	return true;
}

/* rule ID PREFIX EXPIRE ABORT [NONCURRENT] */
static bool
run_rule(Driver *driver, int count, char **words)
{
	EvS3Rule	rule;

	memset(&rule, 0, sizeof(rule));
	snprintf(rule.id, sizeof(rule.id), "%s", words[0]);
	snprintf(rule.prefix, sizeof(rule.prefix), "%s", words[1]);
	rule.expire_days = atoi(words[2]);
	rule.abort_days = atoi(words[3]);
	rule.noncurrent_days = count > 4 ? atoi(words[4]) : 0;
	ev_s3_put_lifecycle(driver->s3, &rule, &driver->result);
	return true;
}

static bool
open_store(Driver *driver, EvFailure *failure)
{
	if (ev_s3_open(&driver->settings, &driver->s3, failure) != EV_STATUS_OK)
		return false;
	if (driver->page > 0)
		ev_s3_set_page(driver->s3, driver->page);
	return true;
}

/* new: the commands that follow have a connection of their own. */
static bool
run_new(Driver *driver, int count, char **words)
{
	EvFailure	failure;

	(void) count;
	(void) words;
	ev_s3_close(driver->s3);
	if (!open_store(driver, &failure))
		fail(failure.text);
	return false;
}

/* shell COMMAND: so that something changes between two requests. */
static bool
run_shell(Driver *driver, int count, char **words)
{
	(void) driver;
	(void) count;
	if (system(words[0]) != 0)
		fail("the shell's command failed");
	return false;
}

/* memory: the most that this process has ever had. */
static bool
run_memory(Driver *driver, int count, char **words)
{
	FILE	   *status = fopen("/proc/self/status", "r");
	char		line[256];

	(void) count;
	(void) words;
	if (status == NULL)
		fail("no /proc/self/status");
	while (fgets(line, sizeof(line), status) != NULL)
	{
		if (strncmp(line, "VmHWM:", 6) == 0)
			put_number(driver->line, "peak_kb", atoll(line + 6));
	}
	fclose(status);
	return false;
}

/*
 * wiped TEXT: is the text, given backwards, nowhere in the memory that this
 * process can write?  Backwards, since the words of the command are there.
 */
static bool
run_wiped(Driver *driver, int count, char **words)
{
	size_t		length = strlen(words[0]);
	FILE	   *maps = fopen("/proc/self/maps", "r");
	char		line[512];
	int			found = 0;
	int			looked = 0;

	(void) count;
	if (maps == NULL)
		fail("no /proc/self/maps");
	while (fgets(line, sizeof(line), maps) != NULL)
	{
		unsigned long start;
		unsigned long end;
		unsigned long at;
		char		rights[5];

		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 ||
			rights[0] != 'r' || rights[1] != 'w')
			continue;
		for (at = start; at + length <= end; at++)
		{
			const volatile char *byte = (const volatile char *) at;
			size_t		i;

			looked++;
			for (i = 0; i < length; i++)
			{
				if (byte[i] != words[0][length - 1 - i])
					break;
			}
			found += i == length;
		}
	}
	fclose(maps);
	put_number(driver->line, "found", found);
	put_flag(driver->line, "looked", looked > 100000);
	return false;
}

static const Command commands[] = {
	{"put", 2, run_put},
	{"head", 1, run_head},
	{"get", 2, run_get},
	{"delete", 1, run_delete},
	{"begin", 2, run_begin},
	{"part", 6, run_part},
	{"parts", 2, run_parts},
	{"complete", 2, run_complete},
	{"abort", 2, run_abort},
	{"uploads", 0, run_uploads},
	{"list", 0, run_list},
	{"versions", 0, run_versions},
	{"retention", 4, run_retention},
	{"hold", 3, run_hold},
	{"name", 0, run_name},
	{"bucket", 0, run_bucket},
	{"versioning", 0, run_versioning},
	{"lock", 0, run_lock},
	{"lifecycle", 0, run_lifecycle},
	{"rule", 4, run_rule},
	{"new", 0, run_new},
	{"shell", 1, run_shell},
	{"memory", 0, run_memory},
	{"wiped", 1, run_wiped},
};

static void
run_command(Driver *driver, int count, char **words)
{
	size_t		i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
	{
		if (count > commands[i].words &&
			strcmp(words[0], commands[i].name) == 0)
		{
			driver->line = json_object();
			driver->list = json_array();
			driver->stop = strcmp(words[count - 1], "stop") == 0;
			put_text(driver->line, "command", words[0]);
			if (commands[i].run(driver, count - 1, words + 1))
				put_result(driver->line, &driver->result);
			json_object_set_new(driver->line, "list", driver->list);
			json_dumpf(driver->line, stdout, JSON_COMPACT);
			putchar('\n');
			fflush(stdout);
			json_decref(driver->line);
			return;
		}
	}
	fail(words[0]);
}

/* Options with their values, up to the first command; its place. */
static int
read_options(EvS3Settings *settings, const char **credentials,
			 const char **profile, int *page, int count, char **words)
{
	int			i;

	memset(settings, 0, sizeof(*settings));
	settings->bucket = "archive";
	settings->endpoint = getenv("AWS_ENDPOINT_URL_S3");
	settings->tick = on_tick;
	for (i = 1; i + 1 < count && strncmp(words[i], "--", 2) == 0; i += 2)
	{
		const char *name = words[i] + 2;
		const char *value = words[i + 1];

		if (strcmp(name, "bucket") == 0)
			settings->bucket = value;
		else if (strcmp(name, "endpoint") == 0)
			settings->endpoint = value[0] != '\0' ? value : NULL;
		else if (strcmp(name, "region") == 0)
			settings->region = value;
		else if (strcmp(name, "ca") == 0)
			settings->ca_file = value;
		else if (strcmp(name, "http") == 0)
			settings->allow_http = strcmp(value, "yes") == 0;
		else if (strcmp(name, "style") == 0)
			settings->style = strcmp(value, "virtual") == 0 ?
				EV_S3_STYLE_VIRTUAL : EV_S3_STYLE_PATH;
		else if (strcmp(name, "connect") == 0)
			settings->connect_seconds = atof(value);
		else if (strcmp(name, "request") == 0)
			settings->request_seconds = atof(value);
		else if (strcmp(name, "low-bytes") == 0)
			settings->low_speed_bytes = atoll(value);
		else if (strcmp(name, "low-seconds") == 0)
			settings->low_speed_seconds = atoi(value);
		else if (strcmp(name, "rate") == 0)
			settings->rate_limit = atoll(value);
		else if (strcmp(name, "page") == 0)
			*page = atoi(value);
		else if (strcmp(name, "credentials") == 0)
			*credentials = value;
		else if (strcmp(name, "profile") == 0)
			*profile = value;
		else
			fail(name);
	}
	return i;
}

static void
print_failure(const EvFailure *failure)
{
	json_t	   *line = json_object();

	put_text(line, "command", "open");
	put_text(line, "outcome", ev_status_name(failure->status));
	put_text(line, "message", failure->text);
	put_text(line, "doing", failure->doing);
	put_text(line, "hint", failure->hint);
	json_dumpf(line, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(line);
}

int
main(int argc, char **argv)
{
	static Driver driver;
	EvCredentialsSource *credentials = NULL;
	const char *file = NULL;
	const char *profile = NULL;
	struct sigaction action;
	EvFailure	failure;
	int			first;
	int			i;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGTERM, &action, NULL);
	ev_failure_clear(&failure);
	first = read_options(&driver.settings, &file, &profile, &driver.page, argc,
						 argv);
	if (ev_credentials_open(file, profile, &credentials,
							&failure) == EV_STATUS_OK)
	{
		driver.settings.credentials = credentials;
		open_store(&driver, &failure);
	}
	if (driver.s3 == NULL)
	{
		print_failure(&failure);
		ev_credentials_close(credentials);
		return 1;
	}
	for (i = first; i <= argc; i++)
	{
		if (i < argc && strcmp(argv[i], ",") != 0)
			continue;
		if (i > first)
			run_command(&driver, i - first, argv + first);
		first = i + 1;
	}
	ev_s3_close(driver.s3);
	ev_credentials_close(credentials);
	return 0;
}
