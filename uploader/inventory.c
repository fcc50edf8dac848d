/*-------------------------------------------------------------------------
 *
 * inventory.c
 *	  Everything that lies in the object store below a prefix.
 *
 * Where the bucket keeps versions, each of them counts, for each of them holds
 * bytes.  Marks of deletions hold none and are left out.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inventory.h"

/* False without memory. */
static bool
add(EvStoredList *list, const char *key, const char *id, int64_t bytes,
	int64_t since)
{
	EvStoredItem *item;

	if (list->count == list->room)
	{
		int			room = list->room * 2 + 64;
		EvStoredItem *items = realloc(list->items,
									  (size_t) room * sizeof(EvStoredItem));

		if (items == NULL)
		{
			list->failed = true;
			return false;
		}
		list->items = items;
		list->room = room;
	}
	item = &list->items[list->count++];
	item->key = strdup(key);
	item->id = strdup(id);
	item->bytes = bytes;
	item->since = since;
	list->failed = list->failed || item->key == NULL || item->id == NULL;
	return !list->failed;
}

/* An EvS3ObjectFunction. */
static bool
add_object(void *arg, const char *key, const EvS3Object *object)
{
	EvInventory *inventory = arg;

	return add(&inventory->objects, key, "", object->length,
			   object->last_modified);
}

/* An EvS3VersionFunction. */
static bool
add_version(void *arg, const char *key, const EvS3Object *object,
			bool latest, bool delete_marker)
{
	EvInventory *inventory = arg;

	(void) latest;
	return delete_marker || add(&inventory->objects, key, object->version_id,
								object->length, object->last_modified);
}

/* An EvS3UploadFunction. */
static bool
add_upload(void *arg, const char *key, const char *upload_id,
		   int64_t initiated)
{
	EvInventory *inventory = arg;

	return add(&inventory->uploads, key, upload_id, -1, initiated);
}

EvStatus
ev_inventory_take(EvS3 *s3, const char *prefix, EvInventory *inventory,
				  EvFailure *failure)
{
	char		below[EV_S3_KEY_LIMIT + 1];
	EvS3Versioning versioning = EV_S3_VERSIONING_NEVER;
	EvS3Result	result;

	snprintf(below, sizeof(below), "%s/", prefix);
	ev_s3_bucket_versioning(s3, &versioning, &result);
	inventory->versioned = versioning != EV_S3_VERSIONING_NEVER;
	if (result.outcome == EV_S3_OK)
	{
		if (inventory->versioned)
			ev_s3_list_versions(s3, below, add_version, inventory, &result);
		else
			ev_s3_list(s3, below, add_object, inventory, &result);
	}
	if (result.outcome == EV_S3_OK)
		ev_s3_list_uploads(s3, below, add_upload, inventory, &result);
	if (inventory->objects.failed || inventory->uploads.failed)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	if (result.outcome == EV_S3_OK)
		return EV_STATUS_OK;
	ev_s3_fail(&result, "could not list what the object store has", failure);
	failure->status = EV_STATUS_STORE;
	return EV_STATUS_STORE;
}

static void
free_list(EvStoredList *list)
{
	int			i;

	for (i = 0; i < list->count; i++)
	{
		free(list->items[i].key);
		free(list->items[i].id);
	}
	free(list->items);
	memset(list, 0, sizeof(*list));
}

void
ev_inventory_free(EvInventory *inventory)
{
	free_list(&inventory->objects);
	free_list(&inventory->uploads);
}
