/*-------------------------------------------------------------------------
 *
 * line.h
 *	  One audit record as one line of JSON.
 *
 * {"id":1,"event":"user.login","created_at":"2026-01-01T00:00:00.000000Z",
 * "fields":{...}} and a line feed, without any other one in it.  The four
 * members stand in this order; fields holds the columns in the order in which
 * they are given.  README documents the form, and it does not change.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_LINE_H
#define EV_PACKAGE_LINE_H

#include <stdint.h>

#include "json.h"
#include "redact.h"

/* Zero-filled is valid; buffers are kept from record to record. */
typedef struct EvLine
{
	EvBuffer	text;			/* the line, once it is finished */
	EvJson		json;
	EvRedactor *redactor;		/* NULL: nothing is redacted */
	EvBuffer	repaired;
	EvBuffer	redacted;
	EvBuffer	rewritten;
	EvBuffer	pair;
	EvBuffer	decoded;
} EvLine;

/*
 * Begin a record.  All texts of this file are repaired where they are no
 * UTF-8, and redacted.  All functions that return bool fill *error when they
 * return false: memory is exhausted or a library fails.
 */
extern bool ev_line_begin(EvLine *line, EvRedactor *redactor, int64_t id,
						  const char *event, size_t event_length,
						  int64_t created_at, EvError *error);

/* Its fields. */
extern void ev_line_null(EvLine *line, const char *name);
extern void ev_line_integer(EvLine *line, const char *name, int64_t value);
extern void ev_line_boolean(EvLine *line, const char *name, bool value);
extern void ev_line_timestamp(EvLine *line, const char *name,
							  int64_t microseconds);
extern bool ev_line_text(EvLine *line, const char *name, const char *text,
						 size_t length, EvError *error);

/*
 * A field that is JSON.  A value is redacted as the text that it is together
 * with its key, so that the value of a key like "password" is replaced; the
 * result is valid JSON again.
 */
extern bool ev_line_json(EvLine *line, const char *name, const char *text,
						 size_t length, EvError *error);

/* Close it; the line is line->text. */
extern bool ev_line_finish(EvLine *line, EvError *error);

extern void ev_line_free(EvLine *line);

#endif							/* EV_PACKAGE_LINE_H */
