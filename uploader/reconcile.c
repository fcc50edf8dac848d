/*-------------------------------------------------------------------------
 *
 * reconcile.c
 *	  The command "reconcile": compare ledger and object store both ways.
 *
 * The store is listed first and the ledger asked afterwards.  An upload is
 * committed in the ledger before its first byte is sent, so whatever the list
 * shows, the ledger knows if it ever will: an object in no row is nobody's.
 * The other way round, each needed object is looked up one by one; whatever
 * seems wrong is held against the ledger once more at the end, for an archive
 * may have expired meanwhile.
 *
 * With --fix, objects that belong to nobody or should be gone are removed, and
 * uploads that were never finished are ended; but only if the key has the form
 * that this program gives to keys, and not before the grace period is over.
 * What others have put below the prefix is reported and never touched, and
 * neither is what lies in quarantine.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "findings.h"
#include "inventory.h"
#include "ledger_delivery.h"
#include "log.h"
#include "object_digest.h"
#include "reconcile.h"
#include "store.h"
#include "uuid.h"

typedef struct Comparison
{
	const EvOptions *options;
	EvLedger   *ledger;
	EvStore		store;
	EvInventory inventory;
	EvKnownList known;
	EvFindings	findings;
	EvReconciliation summary;
	int64_t		now;
} Comparison;

static EvStatus compare(Comparison *comparison, EvFailure *failure);
static EvStatus look_up_needed(Comparison *comparison, EvFailure *failure);
static void judge_objects(Comparison *comparison);
static void judge_uploads(Comparison *comparison);
static EvStatus judge_again(Comparison *comparison, EvFailure *failure);
static void clean(Comparison *comparison);
static EvStatus record(Comparison *comparison, const char *started,
					   EvFailure *failure);

EvStatus
ev_reconcile(const EvOptions *options, EvLedger *ledger, bool *reported,
			 EvFailure *failure)
{
	Comparison	comparison = {0};
	char		started[64];
	EvStatus	status;

	comparison.options = options;
	comparison.ledger = ledger;
	comparison.summary.bucket = options->store.bucket;
	comparison.summary.prefix = options->store.prefix;
	comparison.now = (int64_t) time(NULL);
	status = ev_store_open(&options->store, options->store.bucket, NULL, NULL,
						   &comparison.store, failure);
	if (status == EV_STATUS_OK)
		status = ev_delivery_now(ledger, started, sizeof(started), failure);
	if (status == EV_STATUS_OK)
		status = compare(&comparison, failure);
	if (status == EV_STATUS_OK && options->fix)
		clean(&comparison);
	if (status == EV_STATUS_OK)
		status = record(&comparison, started, failure);
	if (status == EV_STATUS_OK)
	{
		ev_findings_print(&comparison.findings, &comparison.summary,
						  options->json);
		*reported = true;
		if (comparison.summary.open > 0)
			status = ev_fail(failure, EV_STATUS_OPEN, NULL,
							 "%" PRId64 " findings are open",
							 comparison.summary.open);
	}
	ev_findings_free(&comparison.findings);
	ev_known_list_free(&comparison.known);
	ev_inventory_free(&comparison.inventory);
	ev_store_close(&comparison.store);
	return status;
}

/* Both lists, and what is wrong between them. */
static EvStatus
compare(Comparison *comparison, EvFailure *failure)
{
	const EvStoreOptions *store = &comparison->options->store;
	EvStatus	status;

	status = ev_inventory_take(comparison->store.s3, store->prefix,
							   &comparison->inventory, failure);
	if (status == EV_STATUS_OK)
		status = ev_delivery_known(comparison->ledger, store->bucket,
								   &comparison->known, failure);
	if (status == EV_STATUS_OK)
		status = look_up_needed(comparison, failure);
	if (status != EV_STATUS_OK)
		return status;
	comparison->summary.objects = comparison->inventory.objects.count;
	comparison->summary.uploads = comparison->inventory.uploads.count;
	judge_objects(comparison);
	judge_uploads(comparison);
	if (comparison->findings.failed)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	return judge_again(comparison, failure);
}

/* Does the key lie below the prefix? */
static bool
is_below(const char *key, const char *prefix)
{
	size_t		length = strlen(prefix);

	return strncmp(key, prefix, length) == 0 && key[length] == '/';
}

/*
 * Is this a key as this program makes them: PREFIX/UUID/attempts/UUID.zip, or
 * PREFIX/doctor/UUID?
 */
static bool
is_ours(const char *key, const char *prefix)
{
	static const char middle[] = "/attempts/";
	char		id[EV_ID_TEXT];

	key += strlen(prefix) + 1;
	if (strncmp(key, "doctor/", 7) == 0)
		return ev_uuid_is_text(key + 7);
	if (strlen(key) != 36 + strlen(middle) + 36 + 4 ||
		strncmp(key + 36, middle, strlen(middle)) != 0 ||
		strcmp(key + strlen(key) - 4, ".zip") != 0)
		return false;
	snprintf(id, sizeof(id), "%.36s", key);
	if (!ev_uuid_is_text(id))
		return false;
	snprintf(id, sizeof(id), "%.36s", key + 36 + strlen(middle));
	return ev_uuid_is_text(id);
}

/* Order a key and a known object, for bsearch. */
static int
compare_key(const void *key, const void *object)
{
	return strcmp(key, ((const EvKnownObject *) object)->key);
}

/* What the ledger knows of a key; NULL: nothing. */
static const EvKnownObject *
find(const EvKnownList *known, const char *key)
{
	return bsearch(key, known->objects, (size_t) known->count,
				   sizeof(EvKnownObject), compare_key);
}

/* One needed object: is it there, and is it what the ledger says? */
static EvStatus
look_up(Comparison *comparison, const EvKnownObject *known,
		EvFailure *failure)
{
	EvS3	   *s3 = comparison->store.s3;
	EvFinding  *finding;
	EvS3Object	found;
	EvS3Result	result;

	ev_s3_head(s3, known->key, known->version, &found, &result);
	if (result.outcome == EV_S3_OK && found.sha256[0] == '\0' &&
		found.length == known->bytes)
		ev_object_digest(s3, known->key, known->version, found.sha256,
						 &result);
	if (result.outcome == EV_S3_ABSENT)
	{
		finding = ev_findings_add(&comparison->findings, EV_FINDING_MISSING,
								  known->key, known->export_id, known->state);
		if (finding != NULL)
			finding->expected_bytes = known->bytes;
		return EV_STATUS_OK;
	}
	if (result.outcome != EV_S3_OK)
	{
		ev_s3_fail(&result, "could not look an object up", failure);
		failure->status = EV_STATUS_STORE;
		return EV_STATUS_STORE;
	}
	if (found.length == known->bytes &&
		strcmp(found.sha256, known->sha256) == 0)
		return EV_STATUS_OK;
	finding = ev_findings_add(&comparison->findings, EV_FINDING_DIFFERS,
							  known->key, known->export_id, known->state);
	if (finding != NULL)
	{
		finding->bytes = found.length;
		finding->expected_bytes = known->bytes;
		if (strcmp(found.sha256, known->sha256) != 0)
			ev_finding_note(finding, "SHA-256 %s, %s expected",
							found.sha256[0] == '\0' ? "unknown" :
							found.sha256, known->sha256);
	}
	return EV_STATUS_OK;
}

/* From the ledger to the store. */
static EvStatus
look_up_needed(Comparison *comparison, EvFailure *failure)
{
	const char *prefix = comparison->options->store.prefix;
	EvStatus	status = EV_STATUS_OK;
	int			i;

	for (i = 0; i < comparison->known.count && status == EV_STATUS_OK; i++)
	{
		const EvKnownObject *known = &comparison->known.objects[i];

		if (!known->needed || known->busy || !is_below(known->key, prefix))
			continue;
		comparison->summary.needed++;
		status = look_up(comparison, known, failure);
	}
	return status;
}

/* Add what is wrong with something that the store has. */
static void
judge(Comparison *comparison, EvFindingRule rule, const EvStoredItem *item,
	  const EvKnownObject *known, bool upload)
{
	bool		ours = is_ours(item->key, comparison->options->store.prefix);
	EvFinding  *finding;

	if (!ours && known == NULL)
		rule = EV_FINDING_FOREIGN;
	finding = ev_findings_add(&comparison->findings, rule, item->key,
							  known == NULL ? NULL : known->export_id,
							  known == NULL ? NULL : known->state);
	if (finding == NULL)
		return;
	finding->bytes = item->bytes;
	finding->age = item->since < 0 ? -1 : comparison->now - item->since;
	if (item->since >= 0 && finding->age < 0)
		finding->age = 0;
	finding->expected_bytes = rule == EV_FINDING_DIFFERS ? known->bytes : -1;
	finding->cleanable = ours && rule != EV_FINDING_DIFFERS;
	if (item->id[0] == '\0')
		return;
	if (upload)
		finding->upload_id = strdup(item->id);
	else
		finding->version = strdup(item->id);
	if (finding->upload_id == NULL && finding->version == NULL)
		comparison->findings.failed = true;
}

/*
 * From the store to the ledger.  A version beside the selected one was made by
 * an attempt whose answer was lost.
 */
static void
judge_objects(Comparison *comparison)
{
	const EvStoredList *objects = &comparison->inventory.objects;
	int			i;

	for (i = 0; i < objects->count; i++)
	{
		const EvStoredItem *item = &objects->items[i];
		const EvKnownObject *known = find(&comparison->known, item->key);

		if (known == NULL)
			judge(comparison, EV_FINDING_ORPHAN, item, NULL, false);
		else if (known->busy)
			continue;
		else if (strcmp(known->state, "QUARANTINED") == 0)
			judge(comparison, EV_FINDING_DIFFERS, item, known, false);
		else if (!known->needed)
			judge(comparison, EV_FINDING_LEFT, item, known, false);
		else if (known->version[0] != '\0' &&
				 strcmp(known->version, item->id) != 0)
			judge(comparison, EV_FINDING_ORPHAN, item, known, false);
	}
}

/* An upload that is on its way is no finding. */
static void
judge_uploads(Comparison *comparison)
{
	const EvStoredList *uploads = &comparison->inventory.uploads;
	int			i;

	for (i = 0; i < uploads->count; i++)
	{
		const EvStoredItem *item = &uploads->items[i];
		const EvKnownObject *known = find(&comparison->known, item->key);

		if (known == NULL || !known->busy)
			judge(comparison, EV_FINDING_MULTIPART, item, known, true);
	}
}

/*
 * The ledger has gone on meanwhile.  A finding stays if the ledger still says
 * about its key what it said before.
 */
static EvStatus
judge_again(Comparison *comparison, EvFailure *failure)
{
	EvKnownList known;
	EvStatus	status;
	int			i;

	if (comparison->findings.count == 0)
		return EV_STATUS_OK;
	status = ev_delivery_known(comparison->ledger,
							   comparison->options->store.bucket, &known,
							   failure);
	for (i = 0; i < comparison->findings.count && status == EV_STATUS_OK; i++)
	{
		EvFinding  *finding = &comparison->findings.items[i];
		const EvKnownObject *before = find(&comparison->known, finding->key);
		const EvKnownObject *after = find(&known, finding->key);

		finding->dropped = (before == NULL) != (after == NULL) ||
			(after != NULL && (after->needed != before->needed ||
							   after->busy != before->busy ||
							   strcmp(after->multipart_id,
									  before->multipart_id) != 0));
	}
	ev_known_list_free(&known);
	return status;
}

/* Remove one object or end one upload, and see that it is gone. */
static void
clean_one(EvS3 *s3, EvFinding *finding)
{
	EvS3Object	found;
	EvS3Result	result;

	if (finding->rule == EV_FINDING_MULTIPART)
	{
		ev_s3_upload_abort(s3, finding->key, finding->upload_id, &result);
		finding->fixed = result.outcome == EV_S3_OK ||
			result.outcome == EV_S3_ABSENT;
	}
	else
	{
		ev_s3_delete(s3, finding->key, finding->version, &result);
		if (result.outcome == EV_S3_OK || result.maybe_done)
			finding->fixed = ev_s3_head(s3, finding->key, finding->version,
										&found, &result) == EV_S3_ABSENT;
	}
	if (finding->fixed)
		return;
	if (result.outcome == EV_S3_LOCKED && result.locked_until >= 0)
	{
		char		until[32];
		time_t		seconds = (time_t) result.locked_until;
		struct tm	parts;

		strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ",
				 gmtime_r(&seconds, &parts));
		ev_finding_note(finding, "locked until %s", until);
	}
	else
		ev_finding_note(finding, "could not be removed: %s",
						result.outcome == EV_S3_OK ? "it is still there" :
						result.message);
}

static void
clean(Comparison *comparison)
{
	int			i;

	for (i = 0; i < comparison->findings.count; i++)
	{
		EvFinding  *finding = &comparison->findings.items[i];

		if (finding->dropped || !finding->cleanable)
			continue;
		if (finding->age < comparison->options->grace)
			ev_finding_note(finding, "younger than the grace period");
		else
			clean_one(comparison->store.s3, finding);
	}
}

static EvStatus
record(Comparison *comparison, const char *started, EvFailure *failure)
{
	char	   *findings = ev_findings_json(&comparison->findings);
	EvStatus	status;

	if (findings == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	status = ev_delivery_reconciled(comparison->ledger,
									comparison->options->store.bucket,
									comparison->options->store.prefix,
									started, comparison->summary.objects,
									findings, &comparison->summary.open,
									failure);
	free(findings);
	return status;
}
