/*-------------------------------------------------------------------------
 *
 * doctor.c
 *	  The command "doctor": try everything that delivery needs.
 *
 * What keys may do is decided in several places of a store, so each right is
 * tried: a small object is stored below PREFIX/doctor/, looked up, read and
 * removed again, and an upload in parts is begun and ended.  What cannot be
 * tried, such as a lifecycle that acts by the day, is read and held against
 * what the ledger needs.
 *
 * A check whose failure makes the next ones senseless ends the examination of
 * its side, database or store.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "package/digest.h"

#include "diagnosis.h"
#include "doctor.h"
#include "doctor_bucket.h"
#include "ledger_delivery.h"
#include "store.h"

#define PROBE_BYTES 64
#define SKEW_WARNING 60			/* seconds; stores refuse at 900 */

/* An object that is made, looked at and removed. */
typedef struct Probe
{
	EvDiagnosis *diagnosis;
	EvS3	   *s3;
	char		key[EV_S3_KEY_LIMIT + 1];
	unsigned char bytes[PROBE_BYTES];
	char		sha256[EV_SHA256_HEX];
	int64_t		at;				/* what was read of bytes */
	int64_t		came;			/* how many came back, -1: wrong ones */
	EvS3Object	object;
} Probe;

static void examine_server(const EvOptions *options, EvDiagnosis *diagnosis,
						   EvDeliveryStatus *delivery);
static void examine_store(const EvOptions *options, EvDiagnosis *diagnosis,
						  const EvDeliveryStatus *delivery);
static bool examine_bucket(EvDiagnosis *diagnosis, EvS3 *s3);
static void examine_objects(const EvOptions *options, EvDiagnosis *diagnosis,
							EvS3 *s3);
static void examine_listing(const EvOptions *options, EvDiagnosis *diagnosis,
							EvS3 *s3);

EvStatus
ev_doctor(const EvOptions *options, bool *reported, EvFailure *failure)
{
	EvDiagnosis *diagnosis = calloc(1, sizeof(EvDiagnosis));
	EvDeliveryStatus delivery = {0};
	EvStatus	status = EV_STATUS_OK;

	if (diagnosis == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	examine_server(options, diagnosis, &delivery);
	examine_store(options, diagnosis, &delivery);
	ev_diagnosis_print(diagnosis, options->json);
	*reported = true;
	if (diagnosis->failed > 0)
		status = ev_fail(failure, EV_STATUS_OPEN, NULL, "%d checks failed",
						 diagnosis->failed);
	free(diagnosis);
	return status;
}

/* Connection, versions, rights, and how delivery stands. */
static void
examine_server(const EvOptions *options, EvDiagnosis *diagnosis,
			   EvDeliveryStatus *delivery)
{
	EvLedger   *ledger;
	EvFailure	failure;

	ev_failure_clear(&failure);
	if (ev_ledger_open(&options->connection, &ledger,
					   &failure) != EV_STATUS_OK)
	{
		ev_diagnosis_failure(diagnosis, "server", &failure);
		return;
	}
	ev_diagnosis_add(diagnosis, "server", EV_HEALTH_OK,
					 "connected; program and extension are of version %s",
					 EV_VERSION);
	if (ev_delivery_status(ledger, delivery, &failure) != EV_STATUS_OK)
	{
		ev_diagnosis_failure(diagnosis, "capability", &failure);
		if (failure.status == EV_STATUS_DENIED)
			ev_diagnosis_advise(diagnosis, "Ask a superuser for SELECT evidence.grant_capability('<this role>', 'uploader').");
		ev_ledger_close(ledger);
		return;
	}
	ev_ledger_close(ledger);
	ev_diagnosis_add(diagnosis, "capability", EV_HEALTH_OK,
					 "this role may deliver archives");
	if (strcmp(delivery->delivery, "object_store") == 0)
		ev_diagnosis_add(diagnosis, "delivery", EV_HEALTH_OK,
						 "new archives go to the object store");
	else
	{
		ev_diagnosis_add(diagnosis, "delivery", EV_HEALTH_WARNING,
						 "pg_evidence.delivery is \"%s\": new archives stay in the database",
						 delivery->delivery);
		ev_diagnosis_advise(diagnosis, "Set pg_evidence.delivery = 'object_store' and reload the server.");
	}
	if (delivery->uploads_dead + delivery->removals_dead > 0)
	{
		ev_diagnosis_add(diagnosis, "queue", EV_HEALTH_WARNING,
						 "%" PRId64 " uploads and %" PRId64 " removals have been given up",
						 delivery->uploads_dead, delivery->removals_dead);
		ev_diagnosis_advise(diagnosis, "Mend the reason, which evidence.outbox_event has, then call evidence.requeue_outbox_event().");
	}
	else
		ev_diagnosis_add(diagnosis, "queue", EV_HEALTH_OK,
						 "%" PRId64 " uploads and %" PRId64 " removals wait",
						 delivery->uploads_waiting,
						 delivery->removals_waiting);
}

static void
examine_store(const EvOptions *options, EvDiagnosis *diagnosis,
			  const EvDeliveryStatus *delivery)
{
	EvStore		store;
	EvFailure	failure;

	ev_failure_clear(&failure);
	if (ev_store_open(&options->store, options->store.bucket, NULL, NULL,
					  &store, &failure) != EV_STATUS_OK)
	{
		ev_diagnosis_failure(diagnosis, "store", &failure);
		ev_store_close(&store);
		return;
	}
	ev_diagnosis_add(diagnosis, "keys", EV_HEALTH_OK, "taken from %s",
					 ev_credentials_origin(store.credentials));
	if (options->store.endpoint != NULL &&
		strncmp(options->store.endpoint, "http://", 7) == 0)
	{
		ev_diagnosis_add(diagnosis, "encryption", EV_HEALTH_WARNING,
						 "requests go over plain http");
		ev_diagnosis_advise(diagnosis, "Use an https:// endpoint but for tests on one machine.");
	}
	if (examine_bucket(diagnosis, store.s3))
	{
		ev_doctor_bucket(options, delivery, store.s3, diagnosis);
		examine_objects(options, diagnosis, store.s3);
		examine_listing(options, diagnosis, store.s3);
	}
	ev_store_close(&store);
}

void
ev_doctor_result(EvDiagnosis *diagnosis, const char *name, const char *doing,
				 const EvS3Result *result)
{
	EvFailure	failure;

	ev_failure_clear(&failure);
	ev_s3_fail(result, doing, &failure);
	ev_diagnosis_failure(diagnosis, name, &failure);
}

/* Is it there, and do the clocks agree? */
static bool
examine_bucket(EvDiagnosis *diagnosis, EvS3 *s3)
{
	EvS3Result	result;

	if (ev_s3_bucket(s3, &result) != EV_S3_OK)
	{
		ev_doctor_result(diagnosis, "bucket", "could not find the bucket",
						 &result);
		return false;
	}
	ev_diagnosis_add(diagnosis, "bucket", EV_HEALTH_OK, "%s is there",
					 ev_s3_name(s3));
	if (result.store_time == EV_S3_NEVER)
		ev_diagnosis_add(diagnosis, "clock", EV_HEALTH_WARNING,
						 "the store does not tell its time");
	else if (llabs(result.skew) > SKEW_WARNING)
	{
		ev_diagnosis_add(diagnosis, "clock", EV_HEALTH_WARNING,
						 "this host is %" PRId64 " s %s the store",
						 (int64_t) llabs(result.skew),
						 result.skew > 0 ? "ahead of" : "behind");
		ev_diagnosis_advise(diagnosis, "Set the clock of this host by NTP: from 15 minutes on the store refuses everything.");
	}
	else
		ev_diagnosis_add(diagnosis, "clock", EV_HEALTH_OK,
						 "%" PRId64 " s apart from the store",
						 (int64_t) llabs(result.skew));
	return true;
}

/* The read function of an EvS3Source. */
static ssize_t
read_probe(void *arg, void *buffer, size_t size)
{
	Probe	   *probe = arg;
	size_t		left = (size_t) (PROBE_BYTES - probe->at);

	if (size > left)
		size = left;
	memcpy(buffer, probe->bytes + probe->at, size);
	probe->at += (int64_t) size;
	return (ssize_t) size;
}

/* The seek function. */
static bool
seek_probe(void *arg, int64_t offset)
{
	Probe	   *probe = arg;

	probe->at = offset;
	return offset >= 0 && offset <= PROBE_BYTES;
}

/* The begin function of an EvS3Sink. */
static bool
begin_probe(void *arg, const EvS3Object *object)
{
	(void) arg;
	return object->length == PROBE_BYTES;
}

/* The write function. */
static bool
compare_probe(void *arg, const void *data, size_t length)
{
	Probe	   *probe = arg;

	if (probe->came < 0 ||
		length > (size_t) (PROBE_BYTES - probe->came) ||
		memcmp(data, probe->bytes + probe->came, length) != 0)
		probe->came = -1;
	else
		probe->came += (int64_t) length;
	return probe->came >= 0;
}

/* Random bytes under a random key. */
static bool
make_probe(Probe *probe, const char *prefix)
{
	unsigned char digest[EV_SHA256_BYTES];
	unsigned char id[16];
	EvError		error;

	if (getrandom(probe->bytes, PROBE_BYTES, 0) != PROBE_BYTES ||
		getrandom(id, sizeof(id), 0) != (ssize_t) sizeof(id) ||
		!ev_sha256(probe->bytes, PROBE_BYTES, digest, &error))
		return false;
	ev_sha256_hex(digest, probe->sha256);
	snprintf(probe->key, sizeof(probe->key),
			 "%s/doctor/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			 prefix, id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7],
			 id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
	return true;
}

/* Store it, and see whether a second one under the same key is refused. */
static bool
put_probe(Probe *probe)
{
	EvS3Creation creation = {
		probe->sha256, true, {EV_S3_LOCK_NONE, EV_S3_NEVER, false}
	};
	EvS3Source	source = {read_probe, seek_probe, probe};
	EvS3Result	result;

	if (ev_s3_put(probe->s3, probe->key, PROBE_BYTES, &creation, &source,
				  NULL, &result) != EV_S3_OK)
	{
		ev_doctor_result(probe->diagnosis, "put", "could not store a small object",
						 &result);
		ev_diagnosis_advise(probe->diagnosis, "%s", result.outcome == EV_S3_DENIED ?
							"The keys need the right s3:PutObject below the prefix." :
							result.hint);
		return false;
	}
	ev_diagnosis_add(probe->diagnosis, "put", EV_HEALTH_OK,
					 "a small object was stored");
	if (ev_s3_put(probe->s3, probe->key, PROBE_BYTES, &creation, &source,
				  NULL, &result) == EV_S3_EXISTS)
		ev_diagnosis_add(probe->diagnosis, "create-only", EV_HEALTH_OK,
						 "the store refuses a key that is taken");
	else
		ev_diagnosis_add(probe->diagnosis, "create-only", EV_HEALTH_OK,
						 "the store takes a key twice: a repeated upload makes a second version of the same bytes");
	return true;
}

/* Look it up and read it. */
static void
get_probe(Probe *probe)
{
	EvS3Sink	sink = {begin_probe, compare_probe, probe};
	EvS3Result	result;

	if (ev_s3_head(probe->s3, probe->key, NULL, &probe->object,
				   &result) != EV_S3_OK)
		ev_doctor_result(probe->diagnosis, "head", "could not look the object up",
						 &result);
	else if (probe->object.length != PROBE_BYTES)
		ev_diagnosis_add(probe->diagnosis, "head", EV_HEALTH_FAIL,
						 "the object has %" PRId64 " bytes instead of %d",
						 probe->object.length, PROBE_BYTES);
	else if (strcmp(probe->object.sha256, probe->sha256) != 0)
	{
		ev_diagnosis_add(probe->diagnosis, "head", EV_HEALTH_WARNING,
						 "the store does not keep x-amz-meta-sha256");
		ev_diagnosis_advise(probe->diagnosis, "Each archive has to be read back once in order to be confirmed.");
	}
	else
		ev_diagnosis_add(probe->diagnosis, "head", EV_HEALTH_OK,
						 "the store tells size and SHA-256");

	ev_s3_get(probe->s3, probe->key, NULL, &sink, &result);
	if (result.outcome == EV_S3_OK && probe->came == PROBE_BYTES)
		ev_diagnosis_add(probe->diagnosis, "get", EV_HEALTH_OK,
						 "the bytes came back as they were");
	else if (result.outcome == EV_S3_OK || result.outcome == EV_S3_STOPPED)
		ev_diagnosis_add(probe->diagnosis, "get", EV_HEALTH_FAIL,
						 "other bytes came back");
	else
		ev_doctor_result(probe->diagnosis, "get", "could not read the object",
						 &result);
}

/* What list_versions gives to forget_version. */
static bool
delete_version(void *arg, const char *key, const EvS3Object *object,
			   bool latest, bool delete_marker)
{
	Probe	   *probe = arg;

	(void) latest;
	(void) delete_marker;
	if (strcmp(key, probe->key) == 0 && object->version_id[0] != '\0')
		probe->object = *object;
	return true;
}

/* Remove it; of a bucket with versions, each of them. */
static void
remove_probe(Probe *probe)
{
	EvS3Object	found;
	EvS3Result	result;
	bool		versioned = probe->object.version_id[0] != '\0';
	int			i;

	for (i = 0; i < 4; i++)
	{
		ev_s3_delete(probe->s3, probe->key, probe->object.version_id,
					 &result);
		if (result.outcome != EV_S3_OK || !versioned)
			break;
		probe->object.version_id[0] = '\0';
		ev_s3_list_versions(probe->s3, probe->key, delete_version, probe,
							&result);
		if (result.outcome != EV_S3_OK || probe->object.version_id[0] == '\0')
			break;
	}
	if (result.outcome == EV_S3_LOCKED)
		ev_diagnosis_add(probe->diagnosis, "delete", EV_HEALTH_OK,
						 "the bucket's own retention protects each object; \"%s\" stays until it ends",
						 probe->key);
	else if (result.outcome != EV_S3_OK)
	{
		ev_doctor_result(probe->diagnosis, "delete", "could not remove the object",
						 &result);
		ev_diagnosis_advise(probe->diagnosis, "The keys need s3:DeleteObject, with versions s3:DeleteObjectVersion and s3:ListBucketVersions. \"%s\" is left.",
							probe->key);
	}
	else if (ev_s3_head(probe->s3, probe->key, NULL, &found,
						&result) == EV_S3_OK)
		ev_diagnosis_add(probe->diagnosis, "delete", EV_HEALTH_FAIL,
						 "object \"%s\" is still there after its removal",
						 probe->key);
	else
		ev_diagnosis_add(probe->diagnosis, "delete", EV_HEALTH_OK,
						 "the object was removed");
}

/* An object, and an upload in parts. */
static void
examine_objects(const EvOptions *options, EvDiagnosis *diagnosis, EvS3 *s3)
{
	static Probe probe;
	EvS3Creation creation = {
		probe.sha256, true, {EV_S3_LOCK_NONE, EV_S3_NEVER, false}
	};
	char		upload_id[EV_S3_UPLOAD_TEXT];
	EvS3Result	result;

	memset(&probe, 0, sizeof(probe));
	probe.diagnosis = diagnosis;
	probe.s3 = s3;
	if (!make_probe(&probe, options->store.prefix))
	{
		ev_diagnosis_add(diagnosis, "put", EV_HEALTH_FAIL,
						 "could not make a random object");
		return;
	}
	if (put_probe(&probe))
	{
		get_probe(&probe);
		remove_probe(&probe);
	}
	if (ev_s3_upload_begin(s3, probe.key, &creation, upload_id,
						   &result) != EV_S3_OK)
	{
		ev_doctor_result(diagnosis, "parts", "could not begin an upload in parts",
						 &result);
		return;
	}
	if (ev_s3_upload_abort(s3, probe.key, upload_id, &result) == EV_S3_OK)
		ev_diagnosis_add(diagnosis, "parts", EV_HEALTH_OK,
						 "an upload in parts was begun and ended");
	else
	{
		ev_doctor_result(diagnosis, "parts", "could not end an upload in parts",
						 &result);
		ev_diagnosis_advise(diagnosis, "The keys need the right s3:AbortMultipartUpload.");
	}
}

/* Take one item and no more. */
static bool
list_object(void *arg, const char *key, const EvS3Object *object)
{
	(void) arg;
	(void) key;
	(void) object;
	return false;
}

static bool
list_upload(void *arg, const char *key, const char *upload_id,
			int64_t initiated)
{
	(void) arg;
	(void) key;
	(void) upload_id;
	(void) initiated;
	return false;
}

/* "reconcile" has to list. */
static void
examine_listing(const EvOptions *options, EvDiagnosis *diagnosis, EvS3 *s3)
{
	char		below[EV_S3_KEY_LIMIT + 1];
	EvS3Result	result;

	snprintf(below, sizeof(below), "%s/", options->store.prefix);
	ev_s3_list(s3, below, list_object, NULL, &result);
	if (result.outcome == EV_S3_OK || result.outcome == EV_S3_STOPPED)
		ev_s3_list_uploads(s3, below, list_upload, NULL, &result);
	if (result.outcome == EV_S3_OK || result.outcome == EV_S3_STOPPED)
	{
		ev_diagnosis_add(diagnosis, "list", EV_HEALTH_OK,
						 "objects and unfinished uploads can be listed");
		return;
	}
	ev_doctor_result(diagnosis, "list", "could not list the bucket", &result);
	ev_diagnosis_advise(diagnosis, "\"pg_evidence reconcile\" needs the rights s3:ListBucket and s3:ListBucketMultipartUploads.");
}
