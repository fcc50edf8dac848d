/*-------------------------------------------------------------------------
 *
 * cell.h
 *	  From the text of one value to the text of one CSV cell.
 *
 * Private to this folder; csv.h documents what a reader of a package sees.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_CELL_H
#define EV_PACKAGE_CELL_H

#include "redact.h"

/* Zero-filled is valid; buffers are kept from cell to cell. */
typedef struct EvCellWork
{
	EvBuffer	repaired;
	EvBuffer	redacted;
	EvBuffer	clean;
} EvCellWork;

typedef struct EvCell
{
	const char *text;			/* without the guard; valid until next call */
	size_t		length;
	bool		guarded;		/* an apostrophe goes in front */
	bool		redacted;
	bool		cleaned;
	bool		special;		/* holds a comma, a quote or a line end */
} EvCell;

/* False with *error filled when memory or a library fails. */
extern bool ev_cell_make(EvCellWork *work, EvRedactor *redactor,
						 const char *text, size_t length, EvCell *cell,
						 EvError *error);
extern void ev_cell_work_free(EvCellWork *work);

#endif							/* EV_PACKAGE_CELL_H */
