/*-------------------------------------------------------------------------
 *
 * download.c
 *	  Fetch the archive of a ready export into a file, and verify it.
 *
 * The order of steps keeps two promises.  No download is recorded in vain:
 * the temporary file is made before the grant is asked for.  And no file
 * bears the final name that has not been checked: size and SHA-256 against
 * the ledger, then the content by the offline verifier, which reads the file
 * back.
 *
 * Chunks come in pages, each a transaction of its own, so a lost connection
 * costs one page: the next one is asked for on a new connection with the same
 * grant.  When a grant has run out on the way, a new one is asked for, which
 * the server records again.  Each time at least one page must have come, so
 * none of this goes on for ever.
 *
 * An archive that lies in an object store is fetched from there.  The object
 * is opened, and what the store says of it compared with the ledger; then the
 * download is recorded; then its first byte is taken.  A transfer that breaks
 * off begins anew, with a grant and a record of its own.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "package/digest.h"

#include "download.h"
#include "ledger_delivery.h"
#include "log.h"
#include "outcome.h"
#include "progress.h"
#include "retry.h"
#include "spool.h"
#include "store.h"

#define PAGE_CHUNKS 32			/* 2 MiB in chunks of 64 kiB */
#define RECONNECT_SECONDS 60.0
#define STORE_TRIES 3			/* transfers of one object */

typedef struct Download
{
	EvLedger   *ledger;
	const char *id;
	const char *reason;
	int64_t		size;			/* as the ledger states it */
	char	   *grant;
	EvSpoolFile *spool;
	EvSha256   *hash;
	int			seq;			/* the next chunk */
	int64_t		bytes;			/* written so far */
	const EvStoreOptions *options;
	EvLocation	location;		/* in the object store */
	EvFailure	broken;			/* why a transfer was broken off by us */
} Download;

static EvStatus choose_path(const char *output, const char *id, char **path,
							EvFailure *failure);
static EvStatus begin_anew(Download *download, EvFailure *failure);
static EvStatus get_grant(Download *download, EvFailure *failure);
static EvStatus locate(Download *download, EvFailure *failure);
static EvStatus fetch(Download *download, EvFailure *failure);
static EvStatus fetch_from_store(Download *download, EvFailure *failure);
static EvStatus check_bytes(Download *download, const EvExport *export,
							EvFailure *failure);
static EvStatus check_package(Download *download, EvVerifyReport *report,
							  EvFailure *failure);

EvStatus
ev_download(EvLedger *ledger, const char *id, const char *reason,
			const char *output, bool force, const EvStoreOptions *store,
			char **path, EvVerifyReport *report, EvFailure *failure)
{
	Download	download = {0};
	EvExportList list;
	EvStatus	status;

	*path = NULL;
	ev_report_clear(report);
	status = ev_ledger_exports(ledger, id, NULL, 1, &list, failure);
	if (status != EV_STATUS_OK)
		return status;
	download.ledger = ledger;
	download.id = list.exports[0].id;
	download.reason = reason;
	download.size = list.exports[0].archive_bytes;
	download.options = store;

	status = ev_outcome(&list.exports[0], failure);
	if (status == EV_STATUS_OK)
		status = choose_path(output, download.id, path, failure);
	if (status == EV_STATUS_OK)
		status = ev_spool_file_open(*path, force, &download.spool, failure);
	if (status == EV_STATUS_OK)
		status = begin_anew(&download, failure);
	if (status == EV_STATUS_OK)
		status = get_grant(&download, failure);
	if (status == EV_STATUS_OK)
		status = locate(&download, failure);
	if (status == EV_STATUS_OK)
		status = download.location.found ?
			fetch_from_store(&download, failure) :
			fetch(&download, failure);
	ev_progress_end();
	if (status == EV_STATUS_OK)
		status = check_bytes(&download, &list.exports[0], failure);
	if (status == EV_STATUS_OK)
		status = check_package(&download, report, failure);
	if (status == EV_STATUS_OK)
		status = ev_spool_file_keep(download.spool, failure);

	ev_spool_file_close(download.spool);
	ev_sha256_free(download.hash);
	ev_ledger_forget(download.grant);
	ev_export_list_free(&list);
	return status;
}

EvStatus
ev_download_check(const char *output, bool force, EvFailure *failure)
{
	struct stat status;

	/* Within a directory the name is that of an export yet to be made. */
	if (stat(output, &status) == 0 && S_ISDIR(status.st_mode))
		return EV_STATUS_OK;
	return ev_spool_file_check(output, force, failure);
}

/* The name of the file; a directory gets the default name inside it. */
static EvStatus
choose_path(const char *output, const char *id, char **path,
			EvFailure *failure)
{
	struct stat status;
	int			length;

	if (output == NULL)
		length = asprintf(path, "evidence-%s.zip", id);
	else if (stat(output, &status) == 0 && S_ISDIR(status.st_mode))
		length = asprintf(path, "%s%sevidence-%s.zip", output,
						  output[strlen(output) - 1] == '/' ? "" : "/", id);
	else
		length = asprintf(path, "%s", output);
	if (length < 0)
	{
		*path = NULL;
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	}
	return EV_STATUS_OK;
}

/* With an empty file and nothing hashed. */
static EvStatus
begin_anew(Download *download, EvFailure *failure)
{
	EvError		error;

	ev_sha256_free(download->hash);
	download->hash = ev_sha256_create(&error);
	if (download->hash == NULL)
		return ev_fail_package(failure, NULL, &error);
	download->seq = 0;
	download->bytes = 0;
	return ev_spool_file_rewind(download->spool, failure);
}

/* An EvAttemptFunction. */
static EvStatus
attempt_grant(void *arg, EvFailure *failure)
{
	Download   *download = arg;

	return ev_ledger_grant(download->ledger, download->id, download->reason,
						   &download->grant, failure);
}

/*
 * A grant whose answer was lost is recorded but never used, so asking again
 * does no harm.
 */
static EvStatus
get_grant(Download *download, EvFailure *failure)
{
	ev_ledger_forget(download->grant);
	download->grant = NULL;
	return ev_retry_run(download->ledger, true, attempt_grant, download,
						failure);
}

/* The same code as the server has for evidence that does not fit. */
static EvStatus
mismatch(EvFailure *failure, const char *text)
{
	ev_fail(failure, EV_STATUS_MISMATCH, "the download is not what the ledger records",
			"%s", text);
	snprintf(failure->sqlstate, sizeof(failure->sqlstate), "PE006");
	return ev_fail_hint(failure, "Nothing was kept. Try once more; if it happens again, tell the administrator: evidence.verify_audit_export() examines the archive in the server.");
}

/* An EvChunkFunction: append to the file. */
static EvStatus
take_chunk(void *arg, int seq, const void *data, size_t length,
		   EvFailure *failure)
{
	Download   *download = arg;
	EvError		error;
	EvStatus	status;

	/* A server gone wrong must not fill the disk. */
	if ((int64_t) length > download->size - download->bytes)
		return mismatch(failure, "more bytes came than the ledger states");
	status = ev_spool_file_write(download->spool, data, length, failure);
	if (status != EV_STATUS_OK)
		return status;
	if (!ev_sha256_update(download->hash, data, length, &error))
		return ev_fail_package(failure, NULL, &error);
	download->bytes += (int64_t) length;
	download->seq = seq + 1;
	return EV_STATUS_OK;
}

/*
 * Fetch page by page until one is not full.  What can be mended on the way is
 * mended only if chunks have come since the last time, which bounds it.
 */
static EvStatus
fetch(Download *download, EvFailure *failure)
{
	int			lost_at = -1;	/* chunk at which the last loss happened */
	int			granted_at = 0; /* first chunk under the current grant */
	int			given = PAGE_CHUNKS;

	while (given == PAGE_CHUNKS)
	{
		EvStatus	status;

		ev_progress_download(download->bytes, download->size);
		status = ev_ledger_fetch(download->ledger, download->grant,
								 download->seq, PAGE_CHUNKS, take_chunk,
								 download, &given, failure);
		if (status == EV_STATUS_OK)
			continue;
		if (ev_ledger_lost(download->ledger) && download->seq > lost_at)
		{
			lost_at = download->seq;
			ev_log_note("connection lost after %" PRId64 " bytes, connecting again",
						download->bytes);
			status = ev_retry_reconnect(download->ledger, RECONNECT_SECONDS,
										failure);
		}
		else if ((status == EV_STATUS_GONE || status == EV_STATUS_DENIED ||
				  status == EV_STATUS_STATE) && download->seq > granted_at)
		{
			granted_at = download->seq;
			status = get_grant(download, failure);
		}
		if (status != EV_STATUS_OK)
			return status;
		given = PAGE_CHUNKS;
	}
	ev_progress_download(download->bytes, download->size);
	return EV_STATUS_OK;
}

/* Does the archive lie in an object store? */
static EvStatus
locate(Download *download, EvFailure *failure)
{
	EvStatus	status;

	status = ev_delivery_locate(download->ledger, download->grant,
								&download->location, failure);
	if (status != EV_STATUS_OK || !download->location.found)
		return status;
	if (download->location.bytes != download->size)
		return mismatch(failure, "the ledger states two sizes");
	return EV_STATUS_OK;
}

/*
 * The begin function of an EvS3Sink: what is it that the store has opened?
 * Only when the download is on record a byte of it may come.  A store that
 * does not tell the digest is believed for now: it is compared at the end.
 */
static bool
begin_object(void *arg, const EvS3Object *object)
{
	Download   *download = arg;
	const EvLocation *location = &download->location;
	const char *sha256 = object->sha256[0] == '\0' ?
	location->sha256 : object->sha256;

	if (ev_delivery_download(download->ledger, download->grant,
							 object->length, sha256,
							 &download->broken) != EV_STATUS_OK)
		return false;
	if (object->length == location->bytes &&
		strcmp(sha256, location->sha256) == 0)
		return true;
	mismatch(&download->broken, "the store has another size or SHA-256");
	return false;
}

/* The write function of an EvS3Sink. */
static bool
take_bytes(void *arg, const void *data, size_t length)
{
	Download   *download = arg;

	return take_chunk(download, 0, data, length,
					  &download->broken) == EV_STATUS_OK;
}

/* An EvS3TickFunction. */
static bool
show_progress(void *arg, int64_t done, int64_t total)
{
	Download   *download = arg;

	(void) done;
	(void) total;
	ev_progress_download(download->bytes, download->size);
	return true;
}

/* One transfer.  *again: it may succeed if it is tried once more. */
static EvStatus
transfer(Download *download, EvS3 *s3, bool *again, EvFailure *failure)
{
	EvS3Sink	sink = {begin_object, take_bytes, download};
	EvS3Result	result;

	*again = false;
	ev_failure_clear(&download->broken);
	ev_failure_export(&download->broken, download->id);
	ev_s3_get(s3, download->location.key, download->location.version, &sink,
			  &result);
	if (result.outcome == EV_S3_OK)
		return EV_STATUS_OK;
	if (download->broken.status != EV_STATUS_OK)
	{
		*failure = download->broken;
		return failure->status;
	}
	*again = result.retry_helps;
	ev_s3_fail(&result, "could not fetch the archive from the object store",
			   failure);
	failure->status = EV_STATUS_STORE;
	if (result.outcome == EV_S3_ABSENT)
		ev_fail_hint(failure, "The ledger says that it is there. Tell the administrator: \"pg_evidence reconcile\" compares both.");
	return EV_STATUS_STORE;
}

static EvStatus
fetch_from_store(Download *download, EvFailure *failure)
{
	EvStore		store;
	EvStatus	status;
	bool		again;
	int			tries;

	status = ev_store_open(download->options, download->location.bucket,
						   show_progress, download, &store, failure);
	if (status == EV_STATUS_USAGE && failure->hint[0] == '\0')
		ev_fail_hint(failure, "The archive lies in bucket \"%s\" of an object store; see \"pg_evidence download --help\".",
					 download->location.bucket);
	for (tries = 1; status == EV_STATUS_OK; tries++)
	{
		status = transfer(download, store.s3, &again, failure);
		if (status == EV_STATUS_OK || !again || tries == STORE_TRIES)
			break;
		ev_log_note("the transfer broke off after %" PRId64 " bytes, beginning anew",
					download->bytes);
		ev_retry_sleep(tries);
		status = begin_anew(download, failure);
		if (status == EV_STATUS_OK)
			status = get_grant(download, failure);
	}
	ev_store_close(&store);
	return status;
}

/* Size and SHA-256 against the ledger. */
static EvStatus
check_bytes(Download *download, const EvExport *export, EvFailure *failure)
{
	unsigned char digest[EV_SHA256_BYTES];
	char		hex[EV_SHA256_HEX];
	EvError		error;

	if (download->bytes != download->size)
		return mismatch(failure, "fewer bytes came than the ledger states");
	if (!ev_sha256_finish(download->hash, digest, &error))
		return ev_fail_package(failure, NULL, &error);
	ev_sha256_hex(digest, hex);
	if (export->archive_sha256 == NULL ||
		strcmp(hex, export->archive_sha256) != 0)
		return mismatch(failure, "its SHA-256 is another one");
	return EV_STATUS_OK;
}

/* The content, as it is on disk now. */
static EvStatus
check_package(Download *download, EvVerifyReport *report, EvFailure *failure)
{
	EvStatus	status;

	status = ev_verify(ev_spool_file_descriptor(download->spool),
					   download->id, report, failure);
	if (status != EV_STATUS_OK || report->nfaults == 0)
		return status;
	ev_fail(failure, EV_STATUS_MISMATCH, "the package is not intact",
			"%s: %s", ev_check_name(report->faults[0].check),
			report->faults[0].text);
	snprintf(failure->sqlstate, sizeof(failure->sqlstate), "PE006");
	snprintf(failure->detail, sizeof(failure->detail),
			 "The verifier found %d faults; nothing was kept.",
			 report->nfaults);
	return EV_STATUS_MISMATCH;
}
