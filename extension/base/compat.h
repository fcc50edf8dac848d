/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  The only place that knows the differences between server majors.
 *
 * PostgreSQL 15, 17 and 18 are supported.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_BASE_COMPAT_H
#define EV_BASE_COMPAT_H

#include "fmgr.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error pg_evidence needs PostgreSQL 15 or later
#endif

/* PostgreSQL 18 shows a module's name and version. */
#if PG_VERSION_NUM >= 180000
#define EV_MODULE_MAGIC \
	PG_MODULE_MAGIC_EXT(.name = "pg_evidence", .version = EV_VERSION)
#else
#define EV_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/* PostgreSQL 18 exchanged its own attribute for the prefix of C11. */
#define EV_NORETURN __attribute__((noreturn))

/* PostgreSQL 17 gave wait events of extensions names of their own. */
#if PG_VERSION_NUM >= 170000
#define EV_WAIT_EVENT(name) WaitEventExtensionNew(name)
#else
#define EV_WAIT_EVENT(name) ((void) (name), PG_WAIT_EXTENSION)
#endif

/*
 * PostgreSQL 17 has transaction_timeout, which ends background workers as
 * well.  It is meant for sessions that forgot to end a transaction; reading a
 * long export takes as long as it takes.
 */
#if PG_VERSION_NUM >= 170000
#define EV_LIFT_TRANSACTION_TIMEOUT() \
	SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE)
#else
#define EV_LIFT_TRANSACTION_TIMEOUT() ((void) 0)
#endif

#endif							/* EV_BASE_COMPAT_H */
