/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *	  What the fuzz targets share: a demand, and pieces of an input.
 *
 * A target says what must hold for every input, and aborts when it does not;
 * the fuzzer then keeps the input.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_TEST_FUZZ_H
#define EV_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redact.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define demand(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, \
					#condition); \
			abort(); \
		} \
	} while (0)

/* No text in UTF-8 has this byte, so it can part the pieces of an input. */
#define SEPARATOR 0xFE

typedef struct Piece
{
	const char *text;
	size_t		length;
} Piece;

/* Take the next piece off an input; false when there is none. */
static inline bool
next_piece(const uint8_t **data, size_t *size, Piece *piece)
{
	const uint8_t *end;

	if (*size == 0)
		return false;
	end = memchr(*data, SEPARATOR, *size);
	piece->text = (const char *) *data;
	piece->length = end != NULL ? (size_t) (end - *data) : *size;
	*size -= piece->length + (end != NULL);
	*data += piece->length + (end != NULL);
	return true;
}

/* Bytes in memory of exactly their size, so that reading over it is seen. */
static inline char *
exact_copy(const void *data, size_t length)
{
	char	   *copy = malloc(length > 0 ? length : 1);

	demand(copy != NULL);
	memcpy(copy, data, length);
	return copy;
}

/* The redactor with the rules of this library; made once. */
static inline EvRedactor *
builtin_redactor(void)
{
	static EvRedactor *redactor = NULL;
	EvError		error;

	if (redactor == NULL)
		redactor = ev_redactor_create(ev_builtin_rules,
									  ev_builtin_rule_count, &error);
	demand(redactor != NULL);
	return redactor;
}

#endif							/* EV_TEST_FUZZ_H */
