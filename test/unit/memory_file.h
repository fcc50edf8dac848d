/*-------------------------------------------------------------------------
 *
 * memory_file.h
 *	  An EvFile in memory for tests, which can be told to fail.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_TEST_MEMORY_FILE_H
#define EV_TEST_MEMORY_FILE_H

#include <string.h>

#include "archive.h"
#include "buffer.h"

typedef struct MemoryFile
{
	EvBuffer	bytes;
	int			writes_left;	/* -1: as many as wanted */
	int			reads_left;
	size_t		read_at_most;	/* 0: all that is asked for */
	EvFile		file;
} MemoryFile;

static int64_t
memory_read(void *arg, int64_t offset, void *data, size_t length)
{
	MemoryFile *memory = arg;
	size_t		rest;

	if (memory->reads_left == 0)
		return -1;
	if (memory->reads_left > 0)
		memory->reads_left--;
	if ((size_t) offset >= memory->bytes.length)
		return 0;
	rest = memory->bytes.length - (size_t) offset;
	if (length > rest)
		length = rest;
	if (memory->read_at_most > 0 && length > memory->read_at_most)
		length = memory->read_at_most;
	memcpy(data, memory->bytes.data + offset, length);
	return (int64_t) length;
}

static bool
memory_write(void *arg, int64_t offset, const void *data, size_t length)
{
	MemoryFile *memory = arg;
	size_t		end = (size_t) offset + length;

	if (memory->writes_left == 0)
		return false;
	if (memory->writes_left > 0)
		memory->writes_left--;
	if (end > memory->bytes.length)
	{
		size_t		extra = end - memory->bytes.length;

		if (!ev_buffer_reserve(&memory->bytes, extra))
			return false;
		memset(memory->bytes.data + memory->bytes.length, 0, extra);
		memory->bytes.length = end;
	}
	memcpy(memory->bytes.data + offset, data, length);
	return true;
}

static void
memory_file_start(MemoryFile *memory)
{
	memset(memory, 0, sizeof(*memory));
	memory->writes_left = -1;
	memory->reads_left = -1;
	memory->file.arg = memory;
	memory->file.read = memory_read;
	memory->file.write = memory_write;
}

#endif							/* EV_TEST_MEMORY_FILE_H */
