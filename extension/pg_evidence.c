/*-------------------------------------------------------------------------
 *
 * pg_evidence.c
 *	  Entry of the library.
 *
 * Preloaded by the server (shared_preload_libraries), it reserves shared
 * memory and registers the launcher.  Loaded on demand by one session it only
 * defines its settings; all SQL functions work, and CALL evidence.run_once()
 * does what the processes would do.
 *
 * pg_upgrade starts the server in binary-upgrade mode; no process of ours may
 * run then, since the catalogs are in the making.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/compat.h"
#include "base/settings.h"
#include "process/launcher.h"
#include "process/shmem.h"

EV_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	ev_settings_init();

	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;
	ev_shmem_init();
	ev_launcher_register();
}
