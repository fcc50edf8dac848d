/*-------------------------------------------------------------------------
 *
 * fuzz_archive.c
 *	  Any bytes as an archive: no crash, and no bytes beyond the limit.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "memory_file.h"

#define LIMIT 1000000

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
count_bytes(void *arg, const void *data, size_t length, EvError *error)
{
	size_t	   *total = arg;

	(void) data;
	(void) error;
	*total += length;
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {
		EV_RECORDS_MEMBER, EV_MANIFEST_MEMBER
	};
	MemoryFile	file;
	EvArchive  *archive;
	EvError		error;
	int			i;

	memory_file_start(&file);
	ev_buffer_append(&file.bytes, data, size);
	archive = ev_archive_open(&file.file, (int64_t) size, &error);
	if (archive != NULL)
	{
		ev_archive_check_layout(archive, &error);
		for (i = 0; i < 2; i++)
		{
			size_t		total = 0;

			ev_archive_read(archive, names[i], LIMIT, count_bytes, &total,
							&error);
			if (total > LIMIT)
				abort();
		}
	}
	ev_archive_close(archive);
	ev_buffer_free(&file.bytes);
	return 0;
}
