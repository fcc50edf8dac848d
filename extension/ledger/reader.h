/*-------------------------------------------------------------------------
 *
 * reader.h
 *	  The reading loop: the rows that belong to a contract, in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_READER_H
#define EV_LEDGER_READER_H

#include "executor/tuptable.h"

#include "ledger/export.h"

/* Between two safe points at most so many rows are looked at. */
#define EV_SAFE_POINT_ROWS 100

/* The slot begins with created_at and id, whatever the columns are. */
#define EV_KEY_ATTRIBUTES 2

/*
 * One row that belongs; the columns of the contract follow the key attributes
 * of the slot, which is valid during the call only.
 */
typedef void (*EvRowFunction) (void *arg, TupleTableSlot *slot);

/*
 * Called every EV_SAFE_POINT_ROWS rows that were looked at, whether or not
 * they belong: to show a sign of life, and to stop by raising an error.
 */
typedef void (*EvSafePointFunction) (void *arg);

/* How many rows belong. */
extern uint64 ev_reader_count(const EvContract *contract,
							  EvSafePointFunction safe_point, void *arg);

/* Hand each of them to row, by (created_at, id); returns the number. */
extern uint64 ev_reader_rows(const EvContract *contract, EvRowFunction row,
							 EvSafePointFunction safe_point, void *arg);

#endif							/* EV_LEDGER_READER_H */
