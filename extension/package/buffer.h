/*-------------------------------------------------------------------------
 *
 * buffer.h
 *	  A growable byte buffer on malloc.
 *
 * A zero-filled EvBuffer is a valid empty buffer.  data is always followed
 * by a zero byte that is not counted in length (once data is not NULL).
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_BUFFER_H
#define EV_PACKAGE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct EvBuffer
{
	char	   *data;
	size_t		length;
	size_t		capacity;
} EvBuffer;

/* Make room for extra more bytes; false when memory is exhausted. */
extern bool ev_buffer_reserve(EvBuffer *buffer, size_t extra);

/* Append bytes, a C string, one byte; false when memory is exhausted. */
extern bool ev_buffer_append(EvBuffer *buffer, const void *data,
							 size_t length);
extern bool ev_buffer_append_string(EvBuffer *buffer, const char *string);
extern bool ev_buffer_append_byte(EvBuffer *buffer, char byte);

/* Forget the content, keep the memory. */
extern void ev_buffer_reset(EvBuffer *buffer);

/* Release the memory; the buffer is empty and usable again afterwards. */
extern void ev_buffer_free(EvBuffer *buffer);

#endif							/* EV_PACKAGE_BUFFER_H */
