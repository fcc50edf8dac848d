/*-------------------------------------------------------------------------
 *
 * trace.h
 *	  How an export came to stand where it stands, from everything on record.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_TRACE_H
#define EV_LEDGER_TRACE_H

#include "utils/jsonb.h"
#include "utils/tuplestore.h"
#include "utils/uuid.h"

/*
 * Every record that belongs to the export, oldest first: the OUT columns of
 * trace_audit_export().  whole adds what requesters do not see: places in the
 * object store, and the rows of the audit log.
 */
extern void ev_trace_export(const pg_uuid_t *id, bool whole,
							Tuplestorestate *store);

/* The way back from one grant, newest first. */
extern void ev_trace_download(const pg_uuid_t *id, int64 grant_id,
							  Tuplestorestate *store);

/* Whose archive the grant opens; false if there is no such grant. */
extern bool ev_trace_find_grant(int64 grant_id, pg_uuid_t *id);

/* All that a person needs who must decide about the export. */
extern Jsonb *ev_trace_dossier(const pg_uuid_t *id);

#endif							/* EV_LEDGER_TRACE_H */
