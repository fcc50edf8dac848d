/*-------------------------------------------------------------------------
 *
 * states.c
 *	  The states of the three facts, the legal moves and combinations.
 *
 * An export is the domain's fact, a job is its execution, an outbox event is
 * what was promised and not yet handed over.  Each moves by itself, but only
 * some combinations make sense together: a READY export whose job still runs
 * would mean that two workers believe they own it (requirements S1.17, S3.22).
 *
 * A retry is a move like any other: PROCESSING back to QUEUED.  FAILED can be
 * left by an operator only, with a new generation, so that whatever an older
 * one still sends changes nothing.  EXPIRED, REVOKED and CANCELLED are final,
 * so a late message can never bring an export back.
 *
 * A job has SUCCEEDED once the archive is made.  If that archive never gets
 * into the object store, or is cancelled on its way, the job shares the
 * export's end after all, so that a retry finds it where it begins.
 *
 *-------------------------------------------------------------------------
 */
#include <stddef.h>
#include <string.h>

#include "states.h"

const EvMove ev_moves[] = {
	{EV_FACT_EXPORT, "QUEUED", "PROCESSING"},
	{EV_FACT_EXPORT, "QUEUED", "CANCELLED"},
	{EV_FACT_EXPORT, "QUEUED", "FAILED"},
	{EV_FACT_EXPORT, "PROCESSING", "QUEUED"},
	{EV_FACT_EXPORT, "PROCESSING", "STAGED"},
	{EV_FACT_EXPORT, "PROCESSING", "READY"},
	{EV_FACT_EXPORT, "PROCESSING", "FAILED"},
	{EV_FACT_EXPORT, "PROCESSING", "CANCELLED"},
	{EV_FACT_EXPORT, "STAGED", "READY"},
	{EV_FACT_EXPORT, "STAGED", "FAILED"},
	{EV_FACT_EXPORT, "STAGED", "CANCELLED"},
	{EV_FACT_EXPORT, "READY", "EXPIRED"},
	{EV_FACT_EXPORT, "READY", "REVOKED"},
	{EV_FACT_EXPORT, "FAILED", "QUEUED"},

	{EV_FACT_JOB, "QUEUED", "RUNNING"},
	{EV_FACT_JOB, "QUEUED", "FAILED"},
	{EV_FACT_JOB, "QUEUED", "CANCELLED"},
	{EV_FACT_JOB, "RUNNING", "QUEUED"},
	{EV_FACT_JOB, "RUNNING", "SUCCEEDED"},
	{EV_FACT_JOB, "RUNNING", "FAILED"},
	{EV_FACT_JOB, "RUNNING", "CANCELLED"},
	{EV_FACT_JOB, "SUCCEEDED", "FAILED"},
	{EV_FACT_JOB, "SUCCEEDED", "CANCELLED"},
	{EV_FACT_JOB, "FAILED", "QUEUED"},

	{EV_FACT_OUTBOX, "PENDING", "DELIVERED"},
	{EV_FACT_OUTBOX, "PENDING", "DEAD"},
	{EV_FACT_OUTBOX, "PENDING", "CLOSED"},
	{EV_FACT_OUTBOX, "DEAD", "PENDING"},
	{EV_FACT_OUTBOX, "DEAD", "CLOSED"}
};

const int	ev_move_count = sizeof(ev_moves) / sizeof(ev_moves[0]);

const EvCombination ev_combinations[] = {
	{"QUEUED", "QUEUED", "PENDING"},
	{"QUEUED", "QUEUED", "DELIVERED"},
	{"QUEUED", "QUEUED", "DEAD"},
	{"PROCESSING", "RUNNING", "DELIVERED"},
	{"STAGED", "SUCCEEDED", "DELIVERED"},
	{"READY", "SUCCEEDED", "DELIVERED"},
	{"EXPIRED", "SUCCEEDED", "DELIVERED"},
	{"REVOKED", "SUCCEEDED", "DELIVERED"},
	{"FAILED", "FAILED", "DELIVERED"},
	{"FAILED", "FAILED", "DEAD"},
	{"FAILED", "FAILED", "CLOSED"},
	{"CANCELLED", "CANCELLED", "DELIVERED"},
	{"CANCELLED", "CANCELLED", "CLOSED"}
};

const int	ev_combination_count =
sizeof(ev_combinations) / sizeof(ev_combinations[0]);

/* NULL: there is none, since the archive stays in the database. */
static const struct
{
	const char *export;
	const char *upload;
}			upload_combinations[] = {
	{"QUEUED", NULL},
	{"PROCESSING", NULL},
	{"STAGED", "PENDING"},
	{"STAGED", "DEAD"},
	{"READY", "DELIVERED"},
	{"READY", NULL},
	{"EXPIRED", "DELIVERED"},
	{"EXPIRED", NULL},
	{"REVOKED", "DELIVERED"},
	{"REVOKED", NULL},
	{"FAILED", "CLOSED"},
	{"FAILED", NULL},
	{"CANCELLED", "CLOSED"},
	{"CANCELLED", NULL}
};

static const char *const fact_names[EV_FACT_COUNT] = {
	"export", "job", "outbox"
};

bool
ev_fact_from_name(const char *name, EvFact *fact)
{
	int			i;

	for (i = 0; i < EV_FACT_COUNT; i++)
	{
		if (strcmp(name, fact_names[i]) == 0)
		{
			*fact = (EvFact) i;
			return true;
		}
	}
	return false;
}

const char *
ev_fact_name(EvFact fact)
{
	return fact_names[fact];
}

/*
 * A state exists if a move begins or ends there; there is no second list that
 * could disagree with the moves.
 */
bool
ev_state_known(EvFact fact, const char *state)
{
	int			i;

	for (i = 0; i < ev_move_count; i++)
	{
		if (ev_moves[i].fact == fact &&
			(strcmp(ev_moves[i].from, state) == 0 ||
			 strcmp(ev_moves[i].to, state) == 0))
			return true;
	}
	return false;
}

bool
ev_move_legal(EvFact fact, const char *from, const char *to)
{
	int			i;

	for (i = 0; i < ev_move_count; i++)
	{
		if (ev_moves[i].fact == fact &&
			strcmp(ev_moves[i].from, from) == 0 &&
			strcmp(ev_moves[i].to, to) == 0)
			return true;
	}
	return false;
}

bool
ev_state_final(EvFact fact, const char *state)
{
	int			i;

	for (i = 0; i < ev_move_count; i++)
	{
		if (ev_moves[i].fact == fact && strcmp(ev_moves[i].from, state) == 0)
			return false;
	}
	return ev_state_known(fact, state);
}

bool
ev_combination_legal(const char *export, const char *job, const char *event)
{
	int			i;

	for (i = 0; i < ev_combination_count; i++)
	{
		if (strcmp(ev_combinations[i].export, export) == 0 &&
			strcmp(ev_combinations[i].job, job) == 0 &&
			strcmp(ev_combinations[i].event, event) == 0)
			return true;
	}
	return false;
}

bool
ev_upload_combination_legal(const char *export, const char *upload)
{
	const size_t count =
	sizeof(upload_combinations) / sizeof(upload_combinations[0]);
	size_t		i;

	for (i = 0; i < count; i++)
	{
		const char *known = upload_combinations[i].upload;

		if (strcmp(upload_combinations[i].export, export) == 0 &&
			(known == NULL ? upload == NULL :
			 upload != NULL && strcmp(known, upload) == 0))
			return true;
	}
	return false;
}
