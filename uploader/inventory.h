/*-------------------------------------------------------------------------
 *
 * inventory.h
 *	  Everything that lies in the object store below a prefix.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_INVENTORY_H
#define EV_UPLOADER_INVENTORY_H

#include "s3.h"

typedef struct EvStoredItem
{
	char	   *key;
	char	   *id;				/* version of an object, "" if there is none;
								 * or the id of an unfinished upload */
	int64_t		bytes;			/* of an object */
	int64_t		since;			/* seconds since 1970 */
} EvStoredItem;

typedef struct EvStoredList
{
	EvStoredItem *items;
	int			count;
	int			room;
	bool		failed;			/* no memory */
} EvStoredList;

/* Zero-filled is a valid empty one. */
typedef struct EvInventory
{
	EvStoredList objects;		/* each version is one */
	EvStoredList uploads;		/* in parts, unfinished */
	bool		versioned;
} EvInventory;

/* Release with ev_inventory_free in either case. */
extern EvStatus ev_inventory_take(EvS3 *s3, const char *prefix,
								  EvInventory *inventory, EvFailure *failure);
extern void ev_inventory_free(EvInventory *inventory);

#endif							/* EV_UPLOADER_INVENTORY_H */
