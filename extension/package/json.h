/*-------------------------------------------------------------------------
 *
 * json.h
 *	  Write canonical JSON (RFC 8785): the bytes that are hashed.
 *
 * Only what manifests and contracts need: objects, arrays, strings, 64-bit
 * integers within +-2^53 (larger ones are written as strings, as RFC 8785
 * advises), true, false, null.  The caller gives members in canonical order;
 * an assertion checks it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_JSON_H
#define EV_PACKAGE_JSON_H

#include <stdint.h>

#include "buffer.h"

#define EV_JSON_DEPTH 16

typedef struct EvJson
{
	EvBuffer   *out;
	bool		failed;			/* memory was exhausted at some point */
	bool		any_order;		/* members as they come: not canonical */
	int			depth;
	bool		first[EV_JSON_DEPTH];	/* no element yet at this depth */
	const char *last[EV_JSON_DEPTH];	/* the key before, to check the order;
										 * keys must outlive their object */
} EvJson;

/* Begin writing at the end of out. */
extern void ev_json_start(EvJson *json, EvBuffer *out);

/*
 * The same for text that is read and not hashed: members keep the order in
 * which they are given.
 */
extern void ev_json_start_plain(EvJson *json, EvBuffer *out);

/* False if anything went wrong since ev_json_start. */
extern bool ev_json_finish(EvJson *json);

extern void ev_json_object(EvJson *json);
extern void ev_json_end_object(EvJson *json);
extern void ev_json_array(EvJson *json);
extern void ev_json_end_array(EvJson *json);
extern void ev_json_key(EvJson *json, const char *key);

/* Strings must be valid UTF-8; NULL is written as null. */
extern void ev_json_string(EvJson *json, const char *string);
extern void ev_json_string_n(EvJson *json, const char *string, size_t length);
extern void ev_json_integer(EvJson *json, int64_t value);
extern void ev_json_boolean(EvJson *json, bool value);
extern void ev_json_null(EvJson *json);

/* A value that is JSON already. */
extern void ev_json_raw(EvJson *json, const char *text, size_t length);

#endif							/* EV_PACKAGE_JSON_H */
