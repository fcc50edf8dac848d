/*-------------------------------------------------------------------------
 *
 * diagnosis.h
 *	  The list of checks that "doctor" makes, and how it is printed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_DIAGNOSIS_H
#define EV_UPLOADER_DIAGNOSIS_H

#include <stdbool.h>

#include "failure.h"

typedef enum EvHealth
{
	EV_HEALTH_OK = 0,
	EV_HEALTH_WARNING,			/* it works, but not as it should */
	EV_HEALTH_FAIL				/* delivery does not work like this */
} EvHealth;

typedef struct EvCheckup
{
	const char *name;			/* a constant */
	EvHealth	health;
	char		text[700];
	char		advice[500];	/* what to do; empty: nothing */
} EvCheckup;

#define EV_CHECKUPS_LIMIT 40

typedef struct EvDiagnosis
{
	EvCheckup	checkups[EV_CHECKUPS_LIMIT];
	int			count;
	int			failed;
	int			warnings;
} EvDiagnosis;

/* Add a check with its result. */
extern void ev_diagnosis_add(EvDiagnosis *diagnosis, const char *name,
							 EvHealth health, const char *format,...)
			EV_PRINTF(4, 5);

/* Say what to do about the one that was added last. */
extern void ev_diagnosis_advise(EvDiagnosis *diagnosis,
								const char *format,...) EV_PRINTF(2, 3);

/* Add one that has failed with this failure. */
extern void ev_diagnosis_failure(EvDiagnosis *diagnosis, const char *name,
								 const EvFailure *failure);

/* Print all of them, a line or two for each, or one JSON document. */
extern void ev_diagnosis_print(const EvDiagnosis *diagnosis, bool json);

#endif							/* EV_UPLOADER_DIAGNOSIS_H */
