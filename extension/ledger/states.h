/*-------------------------------------------------------------------------
 *
 * states.h
 *	  The states of the three facts, the legal moves and combinations.
 *
 * The only place in the tree that knows them: CHECK constraints, the guard
 * trigger, the ledger functions and the documentation view all ask here.
 * Pure C, so that a unit test can walk through every case.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_LEDGER_STATES_H
#define EV_LEDGER_STATES_H

#include <stdbool.h>

typedef enum EvFact
{
	EV_FACT_EXPORT,
	EV_FACT_JOB,
	EV_FACT_OUTBOX
} EvFact;

#define EV_FACT_COUNT 3

typedef struct EvMove
{
	EvFact		fact;
	const char *from;
	const char *to;
} EvMove;

typedef struct EvCombination
{
	const char *export;
	const char *job;
	const char *event;			/* of the outbox event audit_export.generate */
} EvCombination;

extern const EvMove ev_moves[];
extern const int ev_move_count;
extern const EvCombination ev_combinations[];
extern const int ev_combination_count;

/* "export", "job" or "outbox"; false if name is none of them. */
extern bool ev_fact_from_name(const char *name, EvFact *fact);
extern const char *ev_fact_name(EvFact fact);

/* Is this a state of the fact at all? */
extern bool ev_state_known(EvFact fact, const char *state);

/* May the fact go from one state to the other in one step? */
extern bool ev_move_legal(EvFact fact, const char *from, const char *to);

/* Can the fact still leave this state? */
extern bool ev_state_final(EvFact fact, const char *state);

/* May the three facts of one export stand like this together? */
extern bool ev_combination_legal(const char *export, const char *job,
								 const char *event);

/*
 * May an export stand like this while the outbox event archive.upload of its
 * generation does, or NULL, while it has none?
 */
extern bool ev_upload_combination_legal(const char *export,
										const char *upload);

#endif							/* EV_LEDGER_STATES_H */
