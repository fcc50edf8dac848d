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
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

#include "ledger/statement.h"
#include "ledger/tables.h"

/*
 * What the statements of background processes use, the log itself excepted.
 * The order matters; see above.  A sequence has a lock of its own.
 */
static const struct
{
	const char *name;
	LOCKMODE	mode;
}			tables[] = {
	{"attempt", RowExclusiveLock},
	{"audit_export", RowExclusiveLock},
	{"background_job", RowExclusiveLock},
	{"outbox_event", RowExclusiveLock},
	{"archive_chunk", RowExclusiveLock},
	{"export_event", RowExclusiveLock},
	{"export_event_id_seq", RowExclusiveLock},
	{"guard", RowExclusiveLock},
	{"instance", AccessShareLock},
	{"audit_source", AccessShareLock},
	{"capability", AccessShareLock},
	{"redaction_rule", AccessShareLock}
};

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
	Oid			schema = get_namespace_oid("evidence", true);
	int			i;

	for (i = 0; i < lengthof(tables); i++)
	{
		Oid			table = get_relname_relid(tables[i].name, schema);

		if (!OidIsValid(table) ||
			!ConditionalLockRelationOid(table, tables[i].mode))
			return false;
	}
	return true;
}

/*
 * A conditional lock that is a little stronger than a reader's fails exactly
 * when somebody stands in the queue with a lock that readers conflict with.
 * The lock manager cannot be asked directly, since a reader's own lock is
 * usually not in its shared table at all.
 */
bool
ev_tables_in_the_way(const char *table_name)
{
	List	   *names;
	Oid			table;

	names = textToQualifiedNameList(cstring_to_text(table_name));
	table = RangeVarGetRelid(makeRangeVarFromNameList(names), NoLock, true);
	if (!OidIsValid(table))
		return false;
	if (!ConditionalLockRelationOid(table, RowShareLock))
		return true;
	UnlockRelationOid(table, RowShareLock);
	return false;
}
