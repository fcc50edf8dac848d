/*-------------------------------------------------------------------------
 *
 * exporter.h
 *	  The background worker that makes packages, one after the other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_EXPORTER_H
#define EV_PROCESS_EXPORTER_H

#include "postmaster/bgworker.h"

/* What the launcher tells it; copied into the registration. */
typedef struct EvExporterArguments
{
	Oid			database;
	Oid			role;
	int64		job_id;			/* its first one */
	int			slot;
} EvExporterArguments;

/*
 * Register an exporter.  False if the server has no background worker left;
 * the slot is still the caller's then.
 */
extern bool ev_exporter_start(const EvExporterArguments *arguments,
							  BackgroundWorkerHandle **handle);

extern PGDLLEXPORT void ev_exporter_main(Datum main_arg);

#endif							/* EV_PROCESS_EXPORTER_H */
