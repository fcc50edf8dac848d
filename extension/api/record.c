/*-------------------------------------------------------------------------
 *
 * record.c
 *	  record_audit_event() and fingerprint(): write the log.
 *
 * The time, the transaction and the fingerprint of a row are ours to say, so
 * none of them is an argument.  A raw source, usually an address, goes in and
 * only its keyed digest is kept: it links rows of one source without telling
 * which it is, as long as the key stays secret.  That is a pseudonym, not
 * anonymity (requirement S1.45).
 *
 * The key is read from a file that only the server's user can read, so it is
 * in no table, dump or setting.  It is read again when the file changes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "api/call.h"
#include "base/errors.h"
#include "base/settings.h"
#include "ledger/audit.h"
#include "package/digest.h"

/* A key file is one short line. */
#define KEY_FILE_LIMIT 1024
#define KEY_ID_LIMIT 64
#define MIN_KEY_BYTES 16

/* The key as last read, and what the file looked like then. */
static struct
{
	char		path[MAXPGPATH];
	struct stat status;
	char		id[KEY_ID_LIMIT + 1];
	char		key[KEY_FILE_LIMIT];
	size_t		key_length;
}			cached;

static char *make_fingerprint(const char *raw_source);
static void load_key(void);
static void parse_key(char *line);
static EV_NORETURN void refuse_key_file(const char *reason);
static void require(const char *value, const char *name);

PG_FUNCTION_INFO_V1(ev_sql_record_audit_event);
PG_FUNCTION_INFO_V1(ev_sql_fingerprint);

Datum
ev_sql_record_audit_event(PG_FUNCTION_ARGS)
{
	EvCall		call;
	EvAuditRow	row = {0};
	char	   *source = ev_call_text(fcinfo, 10);
	int64		id;

	row.action = ev_call_text(fcinfo, 0);
	row.actor_id = ev_call_text(fcinfo, 1);
	row.actor_role = ev_call_text(fcinfo, 2);
	row.target_type = ev_call_text(fcinfo, 3);
	row.target_id = ev_call_text(fcinfo, 4);
	row.outcome = ev_call_text(fcinfo, 5);
	row.error_code = ev_call_text(fcinfo, 6);
	row.request_id = ev_call_text(fcinfo, 7);
	row.summary = ev_call_text(fcinfo, 8);
	row.tenant_id = ev_call_text(fcinfo, 9);
	row.metadata = PG_ARGISNULL(11) ? NULL : PG_GETARG_JSONB_P(11);

	ev_call_begin(&call, "record_audit_event", EV_WRITER);
	require(row.action, "action");
	require(row.actor_id, "actor_id");
	require(row.tenant_id, "tenant_id");
	if (row.outcome == NULL || (strcmp(row.outcome, "success") != 0 &&
								strcmp(row.outcome, "failure") != 0 &&
								strcmp(row.outcome, "denied") != 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown outcome"),
				 errhint("Outcomes are success, failure and denied.")));
	if (source != NULL)
		row.source_fingerprint = make_fingerprint(source);
	id = ev_audit_append(&row);
	ev_call_end(&call);
	PG_RETURN_INT64(id);
}

static void
require(const char *value, const char *name)
{
	if (value == NULL || value[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not be empty", name),
				 errhint("An audit row says at least who did what.")));
}

Datum
ev_sql_fingerprint(PG_FUNCTION_ARGS)
{
	EvCall		call;
	char	   *source = ev_call_text(fcinfo, 0);
	char	   *fingerprint = NULL;

	ev_call_begin(&call, "fingerprint", EV_WRITER);
	if (source != NULL)
		fingerprint = make_fingerprint(source);
	ev_call_end(&call);
	if (fingerprint == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(fingerprint));
}

static char *
make_fingerprint(const char *raw_source)
{
	unsigned char digest[EV_SHA256_BYTES];
	char		hex[EV_SHA256_HEX];
	EvError		error;

	load_key();
	if (!ev_hmac_sha256(cached.key, cached.key_length, raw_source,
						strlen(raw_source), digest, &error))
		ev_raise(&error);
	ev_sha256_hex(digest, hex);
	return psprintf("%s:%s", cached.id, hex);
}

static void
load_key(void)
{
	struct stat status;
	char		line[KEY_FILE_LIMIT];
	size_t		length;
	FILE	   *file;

	if (ev_fingerprint_key_file == NULL || ev_fingerprint_key_file[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot make a fingerprint: no key file is set"),
				 errhint("Set pg_evidence.fingerprint_key_file to a file with one line, <key id>:<key>, or leave source out.")));
	if (stat(ev_fingerprint_key_file, &status) != 0)
		refuse_key_file("it does not exist or cannot be reached");
	if (strcmp(cached.path, ev_fingerprint_key_file) == 0 &&
		cached.status.st_mtim.tv_sec == status.st_mtim.tv_sec &&
		cached.status.st_mtim.tv_nsec == status.st_mtim.tv_nsec &&
		cached.status.st_ino == status.st_ino &&
		cached.status.st_size == status.st_size)
		return;

	if (!S_ISREG(status.st_mode))
		refuse_key_file("it is not a regular file");
	if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		refuse_key_file("others than its owner have access; its mode must be 0600 or 0400");
	if ((file = AllocateFile(ev_fingerprint_key_file, "r")) == NULL)
		refuse_key_file("it cannot be read");
	length = fread(line, 1, sizeof(line) - 1, file);
	FreeFile(file);
	line[length] = '\0';
	parse_key(line);
	snprintf(cached.path, sizeof(cached.path), "%s", ev_fingerprint_key_file);
	cached.status = status;
}

/*
 * The cache is marked as empty first, so that a bad file does not leave half
 * of a key behind.
 */
static void
parse_key(char *line)
{
	char	   *colon = strchr(line, ':');
	char	   *c;

	cached.path[0] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (colon == NULL || colon == line || colon - line > KEY_ID_LIMIT)
		refuse_key_file("its line is not <key id>:<key>");
	for (c = line; c < colon; c++)
	{
		if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-",
				   *c) == NULL)
			refuse_key_file("its key id has other characters than letters, digits, _ . -");
	}
	if (strlen(colon + 1) < MIN_KEY_BYTES)
		refuse_key_file("its key is shorter than 16 bytes");
	memcpy(cached.id, line, colon - line);
	cached.id[colon - line] = '\0';
	cached.key_length = strlen(colon + 1);
	memcpy(cached.key, colon + 1, cached.key_length);
	explicit_bzero(line, strlen(line));
}

static void
refuse_key_file(const char *reason)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot use the fingerprint key file: %s", reason),
			 errhint("pg_evidence.fingerprint_key_file names a file with one line, <key id>:<key of at least 16 bytes>, owned by the server's user, mode 0600.")));
	pg_unreachable();
}
