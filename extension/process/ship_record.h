/*-------------------------------------------------------------------------
 *
 * ship_record.h
 *	  From a row of the audit log to the line that is shipped.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_SHIP_RECORD_H
#define EV_PROCESS_SHIP_RECORD_H

#include "ledger/shipping.h"
#include "package/line.h"

typedef struct EvRecorder EvRecorder;

/* Its memory belongs to the context. */
extern EvRecorder *ev_recorder_create(MemoryContext context);

/*
 * Take over the newest redaction rules, or none, as the settings say.  To be
 * called in a transaction, before the first record of a pass.
 */
extern void ev_recorder_refresh(EvRecorder *recorder);

/*
 * Make the line of this row, which is valid until the next call.  False with
 * *reason, allocated here, if the row cannot be turned into one; the
 * transaction goes on in any case.
 */
extern bool ev_recorder_make(EvRecorder *recorder, const EvShippingRow *row,
							 const EvBuffer **line, char **reason);

#endif							/* EV_PROCESS_SHIP_RECORD_H */
