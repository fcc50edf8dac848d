/*-------------------------------------------------------------------------
 *
 * tables.h
 *	  The ledger's tables as a whole: are they there, can they be locked?
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_TABLES_H
#define EV_LEDGER_TABLES_H

/* Is the extension installed here, in a version that this library knows? */
extern bool ev_tables_present(void);

/*
 * Lock the tables that workers use, without waiting and in one order, for the
 * rest of the transaction.  False if somebody has a conflicting lock:
 * then give the transaction up and try later.
 */
extern bool ev_tables_try_lock(void);

/* The same for those that a batch of the shipper uses, the log included. */
extern bool ev_tables_try_lock_shipping(void);

/*
 * Does anybody wait for a lock that the reading of this table, given as
 * schema.table, stands in the way of?
 */
extern bool ev_tables_in_the_way(const char *table_name);

#endif							/* EV_LEDGER_TABLES_H */
