/*-------------------------------------------------------------------------
 *
 * tables.c
 *	  The ledger's tables as a whole: are they there, can they be locked?
 *
 * DROP EXTENSION and ALTER EXTENSION UPDATE lock the tables one after the
 * other.  A background process that locks them in another order, or waits for
 * one while it holds another, deadlocks with them, and it is the DROP that
 * loses.  So launcher and workers take all their locks at the start of a
 * transaction, always in this order, and never wait while they hold one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

#include "ledger/statement.h"
#include "ledger/tables.h"

typedef struct TableLock
{
	const char *name;
	LOCKMODE	mode;
} TableLock;

/*
 * What the statements of background processes use, the log itself excepted.
 * The order matters; see above.  A sequence has a lock of its own.
 */
static const TableLock tables[] = {
	{"attempt", RowExclusiveLock},
	{"audit_export", RowExclusiveLock},
	{"background_job", RowExclusiveLock},
	{"outbox_event", RowExclusiveLock},
	{"outbox_event_id_seq", RowExclusiveLock},
	{"upload_attempt", RowExclusiveLock},
	{"archive_chunk", RowExclusiveLock},
	{"export_event", RowExclusiveLock},
	{"export_event_id_seq", RowExclusiveLock},
	{"guard", RowExclusiveLock},
	{"instance", AccessShareLock},
	{"audit_source", AccessShareLock},
	{"capability", AccessShareLock},
	{"redaction_rule", AccessShareLock}
};

/* What a batch of the shipper uses, the log included. */
static const TableLock shipping_tables[] = {
	{"audit_log", AccessShareLock},
	{"audit_delivery", RowExclusiveLock},
	{"pass_log", RowExclusiveLock},
	{"pass_log_id_seq", RowExclusiveLock},
	{"instance", AccessShareLock},
	{"redaction_rule", AccessShareLock}
};

static bool try_lock(const TableLock *locks, int count);

bool
ev_tables_present(void)
{
	static EvStatement version = {
		"SELECT extversion FROM pg_catalog.pg_extension"
		" WHERE extname = 'pg_evidence'"
	};
	char	   *installed = NULL;

	if (!OidIsValid(get_extension_oid("pg_evidence", true)))
		return false;
	ev_statements_begin();
	if (ev_statement_run_latest(&version, NULL) == 1)
		installed = ev_result_text(0, 1);
	ev_statements_end();
	return installed != NULL && strcmp(installed, EV_VERSION) == 0;
}

bool
ev_tables_try_lock(void)
{
	return try_lock(tables, lengthof(tables));
}

bool
ev_tables_try_lock_shipping(void)
{
	return try_lock(shipping_tables, lengthof(shipping_tables));
}

static bool
try_lock(const TableLock *locks, int count)
{
	Oid			schema = get_namespace_oid("evidence", true);
	int			i;

	for (i = 0; i < count; i++)
	{
		Oid			table = get_relname_relid(locks[i].name, schema);

		if (!OidIsValid(table) ||
			!ConditionalLockRelationOid(table, locks[i].mode))
			return false;
	}
	return true;
}

/*
 * A reader is in the way of nothing but an exclusive lock.  Since PostgreSQL
 * 17 it can no longer find that out by asking for another lock on the table:
 * whoever holds one gets the next one in front of all who wait.  So the lock
 * table is read; all of it, but only while the table stands there, which it
 * does not for readers and writers alone.
 */
bool
ev_tables_in_the_way(const char *table_name)
{
	List	   *names;
	Oid			table;
	LOCKTAG		tag;
	LockData   *all;
	bool		found = false;
	int			i;

	names = textToQualifiedNameList(cstring_to_text(table_name));
	table = RangeVarGetRelid(makeRangeVarFromNameList(names), NoLock, true);
	if (!OidIsValid(table))
		return false;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, table);
	/* Despite its name the function counts locks that are held, too. */
	if (LockWaiterCount(&tag) == 0)
		return false;

	all = GetLockStatusData();
	for (i = 0; i < all->nelements && !found; i++)
		found = all->locks[i].waitLockMode == AccessExclusiveLock &&
			memcmp(&all->locks[i].locktag, &tag, sizeof(tag)) == 0;
	pfree(all->locks);
	pfree(all);
	return found;
}
