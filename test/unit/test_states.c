/*-------------------------------------------------------------------------
 *
 * test_states.c
 *	  Every move and every combination of the three facts, one by one.
 *
 * The legal ones are written down here a second time, from the requirements
 * and not from the code, and every other pair or triple must be illegal.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "../../extension/ledger/states.c"
#include "tap.h"

#define LENGTH(list) ((int) (sizeof(list) / sizeof((list)[0])))

static const char *const export_states[] = {
	"QUEUED", "PROCESSING", "STAGED", "READY", "EXPIRED", "REVOKED", "FAILED",
	"CANCELLED"
};
static const char *const job_states[] = {
	"QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"
};
static const char *const outbox_states[] = {
	"PENDING", "DELIVERED", "DEAD", "CLOSED"
};

/* "FROM>TO" of each fact, separated and surrounded by blanks. */
static const char export_moves[] =
" QUEUED>PROCESSING QUEUED>CANCELLED QUEUED>FAILED PROCESSING>QUEUED"
" PROCESSING>STAGED PROCESSING>READY PROCESSING>FAILED"
" PROCESSING>CANCELLED STAGED>READY STAGED>FAILED STAGED>CANCELLED"
" READY>EXPIRED READY>REVOKED FAILED>QUEUED ";

static const char job_moves[] =
" QUEUED>RUNNING QUEUED>FAILED QUEUED>CANCELLED RUNNING>QUEUED"
" RUNNING>SUCCEEDED RUNNING>FAILED RUNNING>CANCELLED"
" SUCCEEDED>FAILED SUCCEEDED>CANCELLED FAILED>QUEUED ";

static const char outbox_moves[] =
" PENDING>DELIVERED PENDING>DEAD PENDING>CLOSED DEAD>PENDING"
" DEAD>CLOSED ";

static const char *const wanted_moves[EV_FACT_COUNT] = {
	export_moves, job_moves, outbox_moves
};

static const char wanted_combinations[] =
" QUEUED/QUEUED/PENDING QUEUED/QUEUED/DELIVERED QUEUED/QUEUED/DEAD"
" PROCESSING/RUNNING/DELIVERED"
" STAGED/SUCCEEDED/DELIVERED"
" READY/SUCCEEDED/DELIVERED EXPIRED/SUCCEEDED/DELIVERED"
" REVOKED/SUCCEEDED/DELIVERED"
" FAILED/FAILED/DELIVERED FAILED/FAILED/DEAD FAILED/FAILED/CLOSED"
" CANCELLED/CANCELLED/DELIVERED CANCELLED/CANCELLED/CLOSED ";

/* The export and its upload event; "-" is none. */
static const char wanted_uploads[] =
" QUEUED/- PROCESSING/- STAGED/PENDING STAGED/DEAD READY/DELIVERED READY/-"
" EXPIRED/DELIVERED EXPIRED/- REVOKED/DELIVERED REVOKED/- FAILED/CLOSED"
" FAILED/- CANCELLED/CLOSED CANCELLED/- ";

static void
check_moves(EvFact fact, const char *const *states, int nstates)
{
	int			from;
	int			to;

	for (from = 0; from < nstates; from++)
	{
		bool		leaves = false;

		ok(ev_state_known(fact, states[from]), "%s is a state of %s",
		   states[from], ev_fact_name(fact));
		for (to = 0; to < nstates; to++)
		{
			char		move[64];
			bool		wanted;

			snprintf(move, sizeof(move), " %s>%s ", states[from],
					 states[to]);
			wanted = strstr(wanted_moves[fact], move) != NULL;
			leaves = leaves || wanted;
			ok(ev_move_legal(fact, states[from], states[to]) == wanted,
			   "%s%sis %s", ev_fact_name(fact), move,
			   wanted ? "legal" : "illegal");
		}
		ok(ev_state_final(fact, states[from]) == !leaves,
		   "%s of %s is %s", states[from], ev_fact_name(fact),
		   leaves ? "not final" : "final");
	}
	ok(!ev_state_known(fact, "UNHEARD_OF") && !ev_state_known(fact, "") &&
	   !ev_state_final(fact, "UNHEARD_OF"),
	   "%s has no other states", ev_fact_name(fact));
}

static void
check_combinations(void)
{
	int			export;
	int			job;
	int			event;

	for (export = 0; export < LENGTH(export_states); export++)
		for (job = 0; job < LENGTH(job_states); job++)
			for (event = 0; event < LENGTH(outbox_states); event++)
			{
				char		triple[64];
				bool		wanted;

				snprintf(triple, sizeof(triple), " %s/%s/%s ",
						 export_states[export], job_states[job],
						 outbox_states[event]);
				wanted = strstr(wanted_combinations, triple) != NULL;
				ok(ev_combination_legal(export_states[export],
										job_states[job],
										outbox_states[event]) == wanted,
				   "S1.17:%sis %s", triple, wanted ? "legal" : "illegal");
			}
}

static void
check_uploads(void)
{
	int			export;
	int			upload;

	for (export = 0; export < LENGTH(export_states); export++)
		for (upload = -1; upload < LENGTH(outbox_states); upload++)
		{
			const char *state = upload < 0 ? NULL : outbox_states[upload];
			char		pair[64];
			bool		wanted;

			snprintf(pair, sizeof(pair), " %s/%s ", export_states[export],
					 state == NULL ? "-" : state);
			wanted = strstr(wanted_uploads, pair) != NULL;
			ok(ev_upload_combination_legal(export_states[export],
										   state) == wanted,
			   "an upload:%sis %s", pair, wanted ? "legal" : "illegal");
		}
}

int
main(void)
{
	EvFact		fact;

	check_moves(EV_FACT_EXPORT, export_states, LENGTH(export_states));
	check_moves(EV_FACT_JOB, job_states, LENGTH(job_states));
	check_moves(EV_FACT_OUTBOX, outbox_states, LENGTH(outbox_states));
	check_combinations();
	check_uploads();

	ok(ev_fact_from_name("export", &fact) && fact == EV_FACT_EXPORT,
	   "a fact is found by its name");
	ok(!ev_fact_from_name("exports", &fact), "and only by that");
	is(ev_fact_name(EV_FACT_OUTBOX), "outbox", "a fact knows its name");
	return tap_done();
}
