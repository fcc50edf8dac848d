/*-------------------------------------------------------------------------
 *
 * producer.h
 *	  From a contract to the bytes of records.csv and manifest.json.
 *
 * Used by whoever makes a package and by verify_audit_export(), which makes
 * the same bytes again and compares.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PROCESS_PRODUCER_H
#define EV_PROCESS_PRODUCER_H

#include "ledger/export.h"
#include "ledger/reader.h"
#include "ledger/ruleset.h"
#include "package/package.h"
#include "process/tempfile.h"

typedef struct EvProducer EvProducer;

/* Called every EV_SAFE_POINT_ROWS rows; may stop by raising an error. */
typedef void (*EvProgressFunction) (void *arg, int64 rows_total,
									int64 rows_done, int64 bytes_done);

/*
 * Compile a stored ruleset; freed with the context.  NULL for none.  Raises
 * 22023 for a rule that the engine refuses.
 */
extern EvRedactor *ev_producer_compile(const EvStoredRule *rules, int nrules,
									   MemoryContext context);

/* The SHA-256 of a stored ruleset. */
extern void ev_producer_ruleset_digest(const EvStoredRule *rules, int nrules,
									   int version, char hex[EV_SHA256_HEX]);

/* Translate the canonical filters of a contract; allocated here. */
extern EvFilter *ev_producer_filters(Jsonb *filters, int *nfilters);

/* The request part of a contract, as digest and manifest state it. */
extern void ev_producer_request(const EvContract *contract,
								EvRequest *request);

/*
 * Prepare for a contract; needs its rules, so call it in a transaction that
 * may read them.  Without a temporary file only the digest can be made.  All
 * memory belongs to context.
 */
extern EvProducer *ev_producer_create(const EvContract *contract,
									  EvTempFile *spool,
									  MemoryContext context);

/*
 * Count and read the rows in the current snapshot.  Raises PE002 with the
 * real number if more than max_records belong (0: no limit) and XX000 if
 * reading finds another number than counting did.
 */
extern void ev_producer_read(EvProducer *producer, int64 max_records,
							 EvProgressFunction progress, void *arg);

/* What records.csv became. */
extern const EvRecords *ev_producer_records(const EvProducer *producer);
extern int64 ev_producer_count(const EvProducer *producer);

/*
 * State the records in manifest.json; to be called in a transaction, since
 * text may have to be converted to UTF-8.
 */
extern void ev_producer_write_manifest(EvProducer *producer, int generation);

/*
 * Turn the temporary file into the archive, which lies there in
 * [*start, *start + *size).  Needs no transaction, and should hold no
 * snapshot.
 */
extern void ev_producer_write_archive(EvProducer *producer, int64 *start,
									  int64 *size);

#endif							/* EV_PROCESS_PRODUCER_H */
