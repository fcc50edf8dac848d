/*-------------------------------------------------------------------------
 *
 * owner.c
 *	  Who called, and acting as the extension's owner on the caller's behalf.
 *
 * The SQL functions are SECURITY INVOKER: rights are judged by the role that
 * really calls, and only then does C become the owner for its own statements.
 * With SECURITY DEFINER the caller's identity would be lost before our code
 * runs, and a session_user test instead would let a superuser's session be
 * used by a function that somebody else wrote.
 *
 * pg_temp stands last in the search path, so that a caller's temporary table
 * can never stand in front of one of ours (case C61).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/rel.h"

#include "base/owner.h"

Oid
ev_owner_oid(void)
{
	Relation	relation;
	ScanKeyData key[1];
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			owner = InvalidOid;

	relation = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum("pg_evidence"));
	scan = systable_beginscan(relation, ExtensionNameIndexId, true, NULL, 1,
							  key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(relation, AccessShareLock);

	if (!OidIsValid(owner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" is not installed in this database",
						"pg_evidence"),
				 errhint("Run CREATE EXTENSION pg_evidence as a superuser.")));
	return owner;
}

/*
 * The owner of the database need not be a superuser, and may set search_path
 * for everybody who connects to it; our processes connect as a superuser.
 */
void
ev_owner_pin_search_path(void)
{
	SetConfigOption("search_path", "pg_catalog, pg_temp", PGC_SUSET,
					PGC_S_OVERRIDE);
}

void
ev_owner_enter(EvOwner *owner)
{
	GetUserIdAndSecContext(&owner->caller, &owner->security_context);
	SetUserIdAndSecContext(ev_owner_oid(),
						   owner->security_context |
						   SECURITY_LOCAL_USERID_CHANGE);
	owner->guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, evidence, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
}

void
ev_owner_leave(const EvOwner *owner)
{
	AtEOXact_GUC(true, owner->guc_level);
	SetUserIdAndSecContext(owner->caller, owner->security_context);
}
