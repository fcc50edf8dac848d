/*-------------------------------------------------------------------------
 *
 * buffer.c
 *	  A growable byte buffer on malloc.
 *
 * The buffer grows by doubling, so that appending n bytes one by one costs
 * O(n).  It uses malloc and not a server memory context because the package
 * code also runs outside the server; the owner frees it on every path,
 * errors included.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"

#define FIRST_CAPACITY 256

bool
ev_buffer_reserve(EvBuffer *buffer, size_t extra)
{
	size_t		needed;
	size_t		capacity;
	char	   *data;

	/* One byte more than asked for holds the terminating zero. */
	if (extra >= SIZE_MAX - buffer->length - 1)
		return false;
	needed = buffer->length + extra + 1;
	if (needed <= buffer->capacity)
		return true;

	capacity = buffer->capacity > 0 ? buffer->capacity : FIRST_CAPACITY;
	while (capacity < needed)
		capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;

	data = realloc(buffer->data, capacity);
	if (data == NULL)
		return false;
	buffer->data = data;
	buffer->capacity = capacity;
	buffer->data[buffer->length] = '\0';
	return true;
}

/*
 * Appending nothing still allocates, so that data is never NULL after a
 * success.
 */
bool
ev_buffer_append(EvBuffer *buffer, const void *data, size_t length)
{
	if (!ev_buffer_reserve(buffer, length))
		return false;
	if (length > 0)
		memcpy(buffer->data + buffer->length, data, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
	return true;
}

bool
ev_buffer_append_string(EvBuffer *buffer, const char *string)
{
	return ev_buffer_append(buffer, string, strlen(string));
}

bool
ev_buffer_append_byte(EvBuffer *buffer, char byte)
{
	return ev_buffer_append(buffer, &byte, 1);
}

void
ev_buffer_reset(EvBuffer *buffer)
{
	buffer->length = 0;
	if (buffer->data != NULL)
		buffer->data[0] = '\0';
}

void
ev_buffer_free(EvBuffer *buffer)
{
	free(buffer->data);
	memset(buffer, 0, sizeof(*buffer));
}
