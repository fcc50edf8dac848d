/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The extension's settings.
 *
 * Limits are PGC_SIGHUP: an administrator sets them for everybody, and no
 * session can raise its own.  No setting holds a secret; the fingerprint key
 * is named by its path only, and even that is shown to superusers alone
 * (case C62).
 *
 * A library that is loaded on demand, in one session, cannot define a
 * PGC_POSTMASTER setting.  Such a session runs no workers, so there the same
 * settings are defined as PGC_SIGHUP and read from the configuration file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"

#include "base/settings.h"

#define SECONDS_PER_DAY (24 * 60 * 60)

char	   *ev_database = NULL;
char	   *ev_worker_role = NULL;
int			ev_max_exporters = 1;
int			ev_lease = 60;
int			ev_max_attempts = 3;
int			ev_max_range = 31 * SECONDS_PER_DAY;
int			ev_max_records = 50000;
int			ev_max_active_per_requester = 3;
int			ev_download_window = SECONDS_PER_DAY;
int			ev_grant_ttl = 5 * 60;
int			ev_delivery = EV_DELIVERY_DATABASE;
int			ev_staged_deadline = 2 * SECONDS_PER_DAY;
int			ev_requeue_window = SECONDS_PER_DAY;
bool		ev_redaction = true;
bool		ev_ship = false;
int			ev_ship_sink = EV_SINK_FILE;
char	   *ev_ship_file = NULL;
int			ev_ship_file_max_size = 0;
int			ev_ship_batch = 256;
int			ev_ship_interval = 5000;
int			ev_ship_backoff_min = 1000;
int			ev_ship_backoff_max = 300000;
bool		ev_ship_redaction = true;
char	   *ev_fingerprint_key_file = NULL;
bool		ev_developer_mode = false;
int			ev_clock_offset = 0;
char	   *ev_debug_pause = NULL;
char	   *ev_debug_sink = NULL;

static void define_process_settings(GucContext start_only);
static void define_limits(void);
static void define_delivery(void);
static void define_shipping(void);
static void define_shipping_pace(void);
static void define_developer_settings(GucContext start_only);

void
ev_settings_init(void)
{
	GucContext	start_only;

	start_only = process_shared_preload_libraries_in_progress ?
		PGC_POSTMASTER : PGC_SIGHUP;

	define_process_settings(start_only);
	define_limits();
	define_delivery();
	define_shipping();
	define_shipping_pace();
	define_developer_settings(start_only);

	MarkGUCPrefixReserved("pg_evidence");
}

/*
 * Which database is served, by whom, with how many processes.
 */
static void
define_process_settings(GucContext start_only)
{
	DefineCustomStringVariable("pg_evidence.database",
							   "Names the one database that the launcher serves.",
							   "CREATE EXTENSION pg_evidence is refused in any other database of a server that preloads the library.",
							   &ev_database,
							   "postgres",
							   start_only, 0,
							   NULL, NULL, NULL);

	DefineCustomStringVariable("pg_evidence.worker_role",
							   "Names the role as which exporters connect.",
							   "Empty means the owner of the extension.",
							   &ev_worker_role,
							   "",
							   PGC_SIGHUP, 0,
							   NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.max_exporters",
							"Sets how many exports run at the same time.",
							"0 starts none; requests then wait as QUEUED.",
							&ev_max_exporters,
							1, 0, EV_MAX_EXPORTERS,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.lease",
							"Sets how long an exporter owns a job without a sign of life.",
							"A worker whose lease has ended can commit nothing; the job starts again under a new token.",
							&ev_lease,
							60, 1, 3600,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.max_attempts",
							"Sets how many times an export is tried before it is FAILED.",
							"Attempts are counted when they start, so that a job which kills its worker ends too.",
							&ev_max_attempts,
							3, 1, 100,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	DefineCustomStringVariable("pg_evidence.fingerprint_key_file",
							   "Names the file that holds the key of source fingerprints.",
							   "One line, <key id>:<key>, readable by the server's user only; empty means that no fingerprint can be made.",
							   &ev_fingerprint_key_file,
							   "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
}

/*
 * What one request may ask for and how long its result lives.
 */
static void
define_limits(void)
{
	DefineCustomIntVariable("pg_evidence.max_range",
							"Sets the longest range of one export.",
							"31 days are 31 times 24 hours, whatever the time zone; the setting can only lower the bound.",
							&ev_max_range,
							31 * SECONDS_PER_DAY, 1, 31 * SECONDS_PER_DAY,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.max_records",
							"Sets how many rows one export may hold.",
							"An export that matches more fails with the real number; it is never cut.",
							&ev_max_records,
							50000, 1, INT_MAX,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.max_active_per_requester",
							"Sets how many unfinished exports one requester may have.",
							NULL,
							&ev_max_active_per_requester,
							3, 1, 1000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.download_window",
							"Sets how long an archive can be downloaded after it became READY.",
							"Stored with the export when it becomes READY; a later change does not move it.",
							&ev_download_window,
							SECONDS_PER_DAY, 1, 365 * SECONDS_PER_DAY,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.grant_ttl",
							"Sets how long a download grant can be used.",
							NULL,
							&ev_grant_ttl,
							5 * 60, 1, 3600,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("pg_evidence.redaction",
							 "Replaces known shapes of secrets in exported text.",
							 "The manifest says whether it was on when the export was requested.",
							 &ev_redaction,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
}

/*
 * Where finished archives go, and how long that may take.
 */
static void
define_delivery(void)
{
	static const struct config_enum_entry deliveries[] = {
		{"database", EV_DELIVERY_DATABASE, false},
		{"object_store", EV_DELIVERY_OBJECT_STORE, false},
		{NULL, 0, false}
	};

	DefineCustomEnumVariable("pg_evidence.delivery",
							 "Says where finished archives are kept for download.",
							 "object_store needs \"pg_evidence upload\" running somewhere; archives that are finished keep their place when this changes.",
							 &ev_delivery,
							 EV_DELIVERY_DATABASE, deliveries,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.staged_deadline",
							"Sets how long a finished archive may wait for its upload before the export is FAILED.",
							NULL,
							&ev_staged_deadline,
							2 * SECONDS_PER_DAY, 1, 365 * SECONDS_PER_DAY,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.requeue_window",
							"Sets how long after it was given up an outbox event can be taken up again.",
							"See evidence.requeue_outbox_event().",
							&ev_requeue_window,
							SECONDS_PER_DAY, 1, 365 * SECONDS_PER_DAY,
							PGC_SIGHUP, GUC_UNIT_S,
							NULL, NULL, NULL);
}

/*
 * Whether and where audit records are shipped to.
 */
static void
define_shipping(void)
{
	static const struct config_enum_entry sinks[] = {
		{"file", EV_SINK_FILE, false},
		{"server_log", EV_SINK_SERVER_LOG, false},
		{NULL, 0, false}
	};

	DefineCustomBoolVariable("pg_evidence.ship",
							 "Ships every audit record that is written from now on to a sink.",
							 "Records that are older are shipped by evidence.ship_audit_records().",
							 &ev_ship,
							 false,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);

	DefineCustomEnumVariable("pg_evidence.ship_sink",
							 "Says where audit records are shipped to.",
							 "file is a file of its own, one JSON object per line; server_log is the server's log.",
							 &ev_ship_sink,
							 EV_SINK_FILE, sinks,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);

	DefineCustomStringVariable("pg_evidence.ship_file",
							   "Names the file of sink \"file\".",
							   "Empty means pg_evidence_audit.jsonl in log_directory; a relative path begins in the data directory.",
							   &ev_ship_file,
							   "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.ship_file_max_size",
							"Sets the size from which on the file of sink \"file\" is renamed and a new one begun.",
							"0 means never.",
							&ev_ship_file_max_size,
							0, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_KB,
							NULL, NULL, NULL);

	DefineCustomBoolVariable("pg_evidence.ship_redaction",
							 "Replaces known shapes of secrets in shipped records.",
							 "The rules are those of exports, in their newest version.",
							 &ev_ship_redaction,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
}

/*
 * How fast records are shipped, and how refused ones are tried again.
 */
static void
define_shipping_pace(void)
{
	DefineCustomIntVariable("pg_evidence.ship_batch",
							"Sets how many records are shipped in one transaction.",
							NULL,
							&ev_ship_batch,
							256, 1, 10000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.ship_interval",
							"Sets the time between two passes of the shipper.",
							"A pass ships all that is due, in batches.",
							&ev_ship_interval,
							5000, 10, 3600000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.ship_backoff_min",
							"Sets the pause after the first time that the sink refused a record.",
							"It doubles each time, up to ship_backoff_max.",
							&ev_ship_backoff_min,
							1000, 1, 3600000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.ship_backoff_max",
							"Sets the longest pause before a refused record is tried again.",
							NULL,
							&ev_ship_backoff_max,
							300000, 1, 86400000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
}

/*
 * What only tests and developers need; without effect on a server that was
 * not started in developer mode.
 */
static void
define_developer_settings(GucContext start_only)
{
	DefineCustomBoolVariable("pg_evidence.developer_mode",
							 "Lets clock_offset, debug_pause and debug_sink take effect.",
							 "For tests only: with a moved clock no deadline means anything.",
							 &ev_developer_mode,
							 false,
							 start_only, GUC_NOT_IN_SAMPLE,
							 NULL, NULL, NULL);

	DefineCustomIntVariable("pg_evidence.clock_offset",
							"Moves the clock by which deadlines are decided.",
							"Needs developer_mode; a warning is logged at start when it is not zero.",
							&ev_clock_offset,
							0, INT_MIN, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_S | GUC_NOT_IN_SAMPLE,
							NULL, NULL, NULL);

	DefineCustomStringVariable("pg_evidence.debug_pause",
							   "Names the step before which a worker stands still.",
							   "Needs developer_mode; the worker goes on when the setting changes.",
							   &ev_debug_pause,
							   "",
							   PGC_SIGHUP, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);

	DefineCustomStringVariable("pg_evidence.debug_sink",
							   "Makes the sink of shipped records refuse or dawdle.",
							   "Needs developer_mode; see process/sink.c.",
							   &ev_debug_sink,
							   "",
							   PGC_SIGHUP, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);
}
