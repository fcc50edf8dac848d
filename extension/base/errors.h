/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  The conditions of our own, class PE, and how to raise them.
 *
 * Everything else uses PostgreSQL's standard codes: 22023 for a bad argument,
 * 42501 for a missing right and for an unknown or foreign id (one text for
 * both, so that nobody can probe for ids), 53400 for a limit or quota, 55000
 * for a wrong state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_BASE_ERRORS_H
#define EV_BASE_ERRORS_H

#include "utils/elog.h"

#include "base/compat.h"
#include "package/error.h"

/* Same idempotency key, other parameters. */
#define EV_ERRCODE_CONFLICT MAKE_SQLSTATE('P', 'E', '0', '0', '1')
/* More rows match than pg_evidence.max_records allows. */
#define EV_ERRCODE_TOO_MANY_ROWS MAKE_SQLSTATE('P', 'E', '0', '0', '2')
/* Expired or revoked: the bytes are not to be had any more. */
#define EV_ERRCODE_GONE MAKE_SQLSTATE('P', 'E', '0', '0', '3')
/* The attempt is over: its lease ended or somebody else has the job. */
#define EV_ERRCODE_LOST_LEASE MAKE_SQLSTATE('P', 'E', '0', '0', '4')
/* The export has no archive yet. */
#define EV_ERRCODE_NOT_READY MAKE_SQLSTATE('P', 'E', '0', '0', '5')
/* Stored bytes or facts are not what the ledger says. */
#define EV_ERRCODE_MISMATCH MAKE_SQLSTATE('P', 'E', '0', '0', '6')

/*
 * Raise what the package code reported: 53200 for memory, 22023 for a bad
 * argument, 58030 for input or output, 38000 for a library, PE006 for bytes
 * that are not what they must be.
 */
extern EV_NORETURN void ev_raise(const EvError *error);

#endif							/* EV_BASE_ERRORS_H */
