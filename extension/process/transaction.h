/*-------------------------------------------------------------------------
 *
 * transaction.h
 *	  One transaction of a worker, or of a procedure that commits inside.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_TRANSACTION_H
#define EV_PROCESS_TRANSACTION_H

#include "utils/resowner.h"

#include "base/owner.h"

typedef enum EvTransactionMode
{
	EV_TRANSACTION_WRITE,		/* READ COMMITTED */
	EV_TRANSACTION_SNAPSHOT		/* REPEATABLE READ, READ ONLY */
} EvTransactionMode;

/* Whose transactions these are; zero-fill, then set the first member. */
typedef struct EvTransaction
{
	bool		session;		/* a procedure in somebody's session */
	bool		open;
	EvOwner		owner;
	MemoryContext context;		/* to go back to */
	ResourceOwner resource_owner;
} EvTransaction;

/*
 * Begin as the owner of the extension, with an active snapshot.  A procedure
 * must have called ev_statements_begin_procedure(), and have no work of its
 * own left in the transaction.
 */
extern void ev_transaction_begin(EvTransaction *transaction,
								 EvTransactionMode mode);
extern void ev_transaction_commit(EvTransaction *transaction);

/* After an error has been caught: undo, and be ready to begin again. */
extern void ev_transaction_abort(EvTransaction *transaction);

#endif							/* EV_PROCESS_TRANSACTION_H */
