/*-------------------------------------------------------------------------
 *
 * upload.c
 *	  Bring one archive into the object store and have it confirmed.
 *
 * The order of steps is what makes a death at any of them harmless:
 *
 *	1. If an earlier attempt may have stored the object, look it up; if it is
 *	   there, go to 4.
 *	2. Commit that bytes are about to be sent.  From here on, whoever comes
 *	   next begins with 1.
 *	3. Send the archive, under the key that every attempt has used.
 *	4. Look the object up, and tell the ledger what the store says of it.
 *
 * Whether the bytes have arrived is never taken from the answer to 3, which
 * may be missing or come from somebody else, but always from 4.  Which bytes
 * are the right ones, the ledger decides: it compares size and SHA-256 with
 * its own, and quarantines anything else.
 *
 * The store is asked to refuse a key that is taken.  Where it does not honour
 * that, a second attempt writes the same bytes again.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "object_digest.h"
#include "upload.h"

#define SECONDS_PER_DAY 86400

/* A lock may end so much earlier than one that is asked for now. */
#define LOCK_SLACK 3600

static bool look_first(EvWork *work, bool *settled);
static bool send_archive(EvWork *work);
static bool send_whole(EvWork *work, EvArchiveSource *source,
					   EvS3Result *result);
static bool settle(EvWork *work, EvS3Object *found);
static bool protect(EvWork *work, EvS3Object *found);

void
ev_upload(EvWork *work)
{
	bool		settled = false;

	if (work->item.look_up && !look_first(work, &settled))
		return;
	if (!settled)
		send_archive(work);
}

/* Is it there already? */
static bool
look_first(EvWork *work, bool *settled)
{
	EvS3Object	found;

	if (!ev_work_step(work, "look-up") || !ev_work_look(work, NULL, &found))
		return false;
	if (!found.exists)
		return true;
	work->looked_up = true;
	*settled = true;
	return settle(work, &found);
}

/* Send it, then look it up. */
static bool
send_archive(EvWork *work)
{
	EvArchiveSource *source;
	EvS3Object	found;
	EvS3Result	result;
	bool		sent = false;

	if (ev_archive_source_open(work->ledger, &work->item, &source,
							   &work->failure) != EV_STATUS_OK)
		ev_work_ledger(work);
	else if (work->item.bytes >= work->rules->multipart_threshold)
		sent = ev_upload_parts(work, source, &result);
	else
		sent = send_whole(work, source, &result);
	ev_archive_source_free(source);
	if (!sent)
		return false;

	if (!ev_work_step(work, "sent") || !ev_work_look(work, NULL, &found))
		return false;
	if (found.exists)
		return settle(work, &found);
	if (result.outcome != EV_S3_OK)
		return ev_work_store(work, "could not store the archive", &result);
	return ev_work_fail(work, EV_DELIVERY_TRANSIENT, "NotFound",
						"the store took the archive and does not have it");
}

bool
ev_upload_failed(EvWork *work, const EvArchiveSource *source,
				 const char *doing, const EvS3Result *result)
{
	if (result->outcome == EV_S3_LOCAL &&
		source->failure.status != EV_STATUS_OK)
	{
		work->failure = source->failure;
		return ev_work_ledger(work);
	}
	return ev_work_store(work, doing, result);
}

/* What the store is asked to keep the object for. */
static EvS3Lock
wanted_lock(const EvUploadRules *rules)
{
	EvS3Lock	lock = {rules->lock_mode, EV_S3_NEVER, rules->legal_hold};

	if (lock.mode != EV_S3_LOCK_NONE)
		lock.retain_until = (int64_t) time(NULL) +
			(int64_t) rules->lock_days * SECONDS_PER_DAY;
	return lock;
}

/*
 * Send the archive in one request.  True when the store may have it, also if
 * it did not say so.
 */
static bool
send_whole(EvWork *work, EvArchiveSource *source, EvS3Result *result)
{
	static const char doing[] = "could not store the archive";
	EvS3Creation creation = {
		work->item.sha256, true, wanted_lock(work->rules)
	};
	EvS3Source	bytes = ev_archive_source_from(source, 0);

	/* Once its id is forgotten, nobody could end it. */
	if (work->item.multipart_id[0] != '\0' &&
		!ev_upload_discard(work, work->item.multipart_id))
		return false;
	if (!ev_work_step(work, "record-sending"))
		return false;
	if (ev_delivery_sending(work->ledger, work->item.token, NULL,
							&work->failure) != EV_STATUS_OK)
		return ev_work_ledger(work);
	if (!ev_work_step(work, "put"))
		return false;
	ev_s3_put(work->s3, work->item.key, work->item.bytes, &creation, &bytes,
			  NULL, result);
	if (result->outcome == EV_S3_OK || result->outcome == EV_S3_EXISTS)
		return true;

	/* The store compares the bytes with the digest; so do we. */
	if (!ev_archive_source_intact(source))
		return ev_work_fail(work, EV_DELIVERY_DEFINITE, "PE006",
							"the archive in the database is not what the ledger records");
	if (result->maybe_done && result->outcome != EV_S3_STOPPED &&
		result->outcome != EV_S3_LOCAL)
		return true;
	return ev_upload_failed(work, source, doing, result);
}

/* An object lies under the key: hand what the store says to the ledger. */
static bool
settle(EvWork *work, EvS3Object *found)
{
	static const char *const modes[] = {
		[EV_S3_LOCK_NONE] = NULL,
		[EV_S3_LOCK_GOVERNANCE] = "GOVERNANCE",
		[EV_S3_LOCK_COMPLIANCE] = "COMPLIANCE"
	};
	EvDeliveryProof proof;
	EvDeliveryVerdict verdict;
	EvS3Result	result;

	if (found->sha256[0] == '\0' &&
		ev_object_digest(work->s3, work->item.key, found->version_id,
						 found->sha256, &result) != EV_S3_OK)
		return ev_work_store(work, "could not read the object back", &result);

	/* Other bytes are not ours to protect. */
	if (found->length == work->item.bytes &&
		strcmp(found->sha256, work->item.sha256) == 0 &&
		!protect(work, found))
		return false;

	proof.bytes = found->length;
	proof.sha256 = found->sha256;
	proof.version = found->version_id;
	proof.lock_mode = modes[found->lock.mode];
	proof.retain_until = found->lock.mode == EV_S3_LOCK_NONE ?
		-1 : found->lock.retain_until;
	proof.legal_hold = found->lock.legal_hold;
	if (!ev_work_step(work, "confirm"))
		return false;
	if (ev_delivery_confirm(work->ledger, work->item.token, &proof, &verdict,
							&work->failure) != EV_STATUS_OK)
		return ev_work_ledger(work);
	work->end = EV_WORK_DONE;
	if (verdict == EV_DELIVERY_QUARANTINED)
	{
		work->end = EV_WORK_QUARANTINED;
		ev_fail(&work->failure, EV_STATUS_OPEN,
				"the archive is in quarantine",
				"other bytes than those of the ledger lie under its key: %" PRId64 " bytes, SHA-256 %s",
				found->length, found->sha256);
		ev_fail_hint(&work->failure, "Find out who wrote object \"%s\". \"pg_evidence reconcile\" lists it.",
					 work->item.key);
		ev_failure_export(&work->failure, work->item.export_id);
	}
	return false;
}

/* Does the object have at least the protection that is wanted? */
static bool
is_protected(const EvS3Object *found, const EvS3Lock *lock)
{
	if (lock->legal_hold && !found->lock.legal_hold)
		return false;
	return lock->mode == EV_S3_LOCK_NONE ||
		(found->lock.mode >= lock->mode &&
		 found->lock.retain_until >= lock->retain_until - LOCK_SLACK);
}

/*
 * Have the object locked as the rules want it.  The headers of an upload in
 * parts are dropped without a word by some stores, so what counts is what a
 * look at the object shows.
 */
static bool
protect(EvWork *work, EvS3Object *found)
{
	static const char doing[] = "could not lock the object";
	EvS3Lock	lock = wanted_lock(work->rules);
	EvS3Result	result;

	if (is_protected(found, &lock))
		return true;
	if (!ev_work_step(work, "lock"))
		return false;
	if (lock.mode != EV_S3_LOCK_NONE &&
		ev_s3_put_retention(work->s3, work->item.key, found->version_id,
							lock.mode, lock.retain_until,
							&result) != EV_S3_OK)
		return ev_work_store(work, doing, &result);
	if (lock.legal_hold &&
		ev_s3_put_legal_hold(work->s3, work->item.key, found->version_id,
							 true, &result) != EV_S3_OK)
		return ev_work_store(work, doing, &result);
	if (!ev_work_look(work, found->version_id, found))
		return false;
	if (found->exists && is_protected(found, &lock))
		return true;
	return ev_work_fail(work, EV_DELIVERY_DEFINITE, "ObjectLock",
						"the object is stored, but the store does not lock it as --lock-mode, --lock-days and --legal-hold want");
}
