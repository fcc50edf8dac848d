/*-------------------------------------------------------------------------
 *
 * removal.c
 *	  Remove one object from the store and have that confirmed.
 *
 * Where the bucket keeps versions, deleting an object only hides it: so each
 * version of the key is deleted, and the marks with them.  There can be more
 * than one, since stores that keep versions may take the same key twice.
 *
 * Removed is what a look at the store does not find any more.  A version that
 * is locked stays, and the ledger is told until when.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "removal.h"

#define VERSIONS_LIMIT 1000		/* in one go; more are left for the next */

/* The versions of one key. */
typedef struct Versions
{
	const char *key;
	int			count;
	bool		objects;		/* at least one is no mark */
	char		ids[VERSIONS_LIMIT][EV_S3_VERSION_TEXT];
} Versions;

/* An EvS3VersionFunction.  Keys that only begin alike are none of ours. */
static bool
note_version(void *arg, const char *key, const EvS3Object *object,
			 bool latest, bool delete_marker)
{
	Versions   *versions = arg;

	(void) latest;
	if (strcmp(key, versions->key) != 0 ||
		versions->count == VERSIONS_LIMIT)
		return true;
	memcpy(versions->ids[versions->count++], object->version_id,
		   EV_S3_VERSION_TEXT);
	if (!delete_marker)
		versions->objects = true;
	return true;
}

/* Delete them one by one. */
static EvS3Outcome
delete_versions(EvS3 *s3, const char *key, bool *existed, EvS3Result *result)
{
	Versions   *versions = calloc(1, sizeof(Versions));
	int			i;

	if (versions == NULL)
	{
		memset(result, 0, sizeof(*result));
		snprintf(result->message, sizeof(result->message), "out of memory");
		result->outcome = EV_S3_LOCAL;
		return EV_S3_LOCAL;
	}
	versions->key = key;
	ev_s3_list_versions(s3, key, note_version, versions, result);
	if (result->outcome == EV_S3_OK && versions->objects)
		*existed = true;
	for (i = 0; i < versions->count && result->outcome == EV_S3_OK; i++)
		ev_s3_delete(s3, key, versions->ids[i], result);
	free(versions);
	return result->outcome;
}

/* Stops at the first version that is refused. */
static EvS3Outcome
delete_key(EvS3 *s3, const char *key, const char *version,
		   bool *existed, EvS3Result *result)
{
	EvS3Object	found;

	*existed = false;
	switch (ev_s3_head(s3, key, NULL, &found, result))
	{
		case EV_S3_OK:
			*existed = true;
			if (found.version_id[0] != '\0')
				return delete_versions(s3, key, existed, result);
			return ev_s3_delete(s3, key, NULL, result);
		case EV_S3_ABSENT:
			/* A mark may hide the version that was stored. */
			if (version[0] != '\0')
				return delete_versions(s3, key, existed, result);
			return EV_S3_OK;
		default:
			return result->outcome;
	}
}

void
ev_removal(EvWork *work)
{
	static const char doing[] = "could not remove the object";
	const EvDelivery *item = &work->item;
	EvS3Object	found;
	EvS3Result	result;

	if (!ev_work_step(work, "remove"))
		return;

	/* What was begun and never finished goes first. */
	if (item->multipart_id[0] != '\0' &&
		ev_s3_upload_abort(work->s3, item->key, item->multipart_id,
						   &result) != EV_S3_OK &&
		result.outcome != EV_S3_ABSENT)
	{
		ev_work_store(work, "could not end an unfinished upload", &result);
		return;
	}
	if (!ev_work_step(work, "delete"))
		return;
	if (delete_key(work->s3, item->key, item->version, &work->existed,
				   &result) != EV_S3_OK && !result.maybe_done)
	{
		ev_work_store(work, doing, &result);
		return;
	}

	if (!ev_work_step(work, "deleted") || !ev_work_look(work, NULL, &found))
		return;
	if (found.exists)
	{
		if (result.outcome != EV_S3_OK && result.outcome != EV_S3_ABSENT)
			ev_work_store(work, doing, &result);
		else
			ev_work_fail(work, EV_DELIVERY_TRANSIENT, "StillThere",
						 "the store deleted the object and still has it");
		return;
	}
	if (!ev_work_step(work, "confirm"))
		return;
	if (ev_delivery_removed(work->ledger, item->token, work->existed,
							&work->failure) == EV_STATUS_OK)
		work->end = EV_WORK_DONE;
	else
		ev_work_ledger(work);
}
