/*-------------------------------------------------------------------------
 *
 * claims_form.h
 *	  Has a manifest the form of format 1?
 *
 * Private to claims.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_CLAIMS_FORM_H
#define EV_UPLOADER_CLAIMS_FORM_H

#include <jansson.h>

#include "claims.h"

/*
 * Compare the manifest, an object, with the format; each difference becomes a
 * fault.  True if there is none: then every member has the value it must.
 */
extern bool ev_claims_form_check(const json_t *manifest,
								 EvVerifyReport *report);

/*
 * The id of a record: an integer, or its text when JSON cannot hold it.
 * False if it is neither.
 */
extern bool ev_claims_record_id(const json_t *value, int64_t *id);

#endif							/* EV_UPLOADER_CLAIMS_FORM_H */
