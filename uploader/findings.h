/*-------------------------------------------------------------------------
 *
 * findings.h
 *	  What a comparison of ledger and object store has found.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_FINDINGS_H
#define EV_UPLOADER_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "failure.h"

typedef enum EvFindingRule
{
	EV_FINDING_MISSING = 0,		/* a needed object is not there */
	EV_FINDING_DIFFERS,			/* other bytes than those of the ledger */
	EV_FINDING_ORPHAN,			/* of our form, and in no row */
	EV_FINDING_LEFT,			/* should have been removed */
	EV_FINDING_MULTIPART,		/* an upload in parts that goes on no more */
	EV_FINDING_FOREIGN			/* not of our form */
} EvFindingRule;

/* Texts are NULL where nothing is known, numbers -1. */
typedef struct EvFinding
{
	EvFindingRule rule;
	char	   *key;
	char	   *export_id;
	char	   *state;			/* of that export */
	char	   *version;
	char	   *upload_id;		/* of an upload in parts */
	char	   *note;			/* why it was not mended */
	int64_t		bytes;
	int64_t		expected_bytes;
	int64_t		age;			/* seconds */
	bool		cleanable;		/* --fix may remove it */
	bool		fixed;
	bool		dropped;		/* it is none any more */
} EvFinding;

/* Zero-filled is a valid empty one. */
typedef struct EvFindings
{
	EvFinding  *items;
	int			count;
	int			room;
	bool		failed;			/* no memory */
} EvFindings;

/* What there is to be said besides the findings. */
typedef struct EvReconciliation
{
	const char *bucket;
	const char *prefix;
	int64_t		objects;		/* in the store */
	int64_t		needed;			/* by the ledger */
	int64_t		uploads;		/* in parts, unfinished */
	int64_t		open;
} EvReconciliation;

/*
 * Add one; the result, to be filled further, lives until the next one is
 * added.  Texts are copied and may be NULL.  NULL without memory.
 */
extern EvFinding *ev_findings_add(EvFindings *findings, EvFindingRule rule,
								  const char *key, const char *export_id,
								  const char *state);
extern void ev_finding_note(EvFinding *finding, const char *format,...)
			EV_PRINTF(2, 3);
extern void ev_findings_free(EvFindings *findings);

/* As the JSON array that the ledger takes; release with free. */
extern char *ev_findings_json(const EvFindings *findings);

/* Print all of it, as a table or as one JSON document. */
extern void ev_findings_print(const EvFindings *findings,
							  const EvReconciliation *summary, bool json);

#endif							/* EV_UPLOADER_FINDINGS_H */
