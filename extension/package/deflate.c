/*-------------------------------------------------------------------------
 *
 * deflate.c
 *	  Compress one member of an archive into a spool, with ISA-L's igzip.
 *
 * The deflate stream must be the same wherever and however often it is made
 * (case C35).  igzip's output depends on how the input is cut into calls, so
 * the spool gathers blocks of one fixed size first; level 1 gives the same
 * bytes on all processors it was tried on, level 3 does not.
 *
 * The working set is fixed: the level buffer, one block in, one block out.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include <isa-l.h>

#include "archive.h"

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) \
	TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#define ISAL_VERSION_TEXT \
	VERSION_TEXT(ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION)

#define IN_BLOCK (256 * 1024)
#define OUT_BLOCK (64 * 1024)
#define LEVEL 1
#define LEVEL_BUFFER ISAL_DEF_LVL1_DEFAULT

struct EvSpool
{
	const EvFile *file;
	int64_t		start;
	int64_t		packed;
	int64_t		size;
	uint32_t	crc;
	size_t		fill;			/* bytes in in */
	struct isal_zstream stream;
	unsigned char in[IN_BLOCK];
	unsigned char out[OUT_BLOCK];
	unsigned char level_buffer[LEVEL_BUFFER];
};

static bool compress_block(EvSpool *spool, bool last, EvError *error);

/*
 * This names all that shapes the bytes.  The library cannot be asked for its
 * version at run time, so it is the one that the build saw.
 */
const char *
ev_archive_codec(void)
{
	return "isa-l " ISAL_VERSION_TEXT " igzip 1, blocks of 256 KiB";
}

/*
 * The state lies in one piece of memory with its buffers, about 900 kB,
 * whatever the member's size.
 */
EvSpool *
ev_spool_create(const EvFile *file, int64_t start, EvError *error)
{
	EvSpool    *spool = calloc(1, sizeof(EvSpool));

	if (spool == NULL)
	{
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		return NULL;
	}

	isal_deflate_init(&spool->stream);
	spool->stream.level = LEVEL;
	spool->stream.level_buf = spool->level_buffer;
	spool->stream.level_buf_size = sizeof(spool->level_buffer);
	spool->file = file;
	spool->start = start;
	return spool;
}

bool
ev_spool_feed(EvSpool *spool, const void *data, size_t length, EvError *error)
{
	const unsigned char *bytes = data;

	while (length > 0)
	{
		size_t		room;
		size_t		part;

		/*
		 * A full block waits for the next byte, because only then it is known
		 * not to be the last one.
		 */
		if (spool->fill == IN_BLOCK && !compress_block(spool, false, error))
			return false;
		room = IN_BLOCK - spool->fill;
		part = length < room ? length : room;
		memcpy(spool->in + spool->fill, bytes, part);
		spool->fill += part;
		bytes += part;
		length -= part;
	}
	return true;
}

/* An empty member is a valid one: its stream is a single empty block. */
bool
ev_spool_finish(EvSpool *spool, EvMember *member, EvError *error)
{
	if (!compress_block(spool, true, error))
		return false;
	member->file = spool->file;
	member->start = spool->start;
	member->packed = spool->packed;
	member->size = spool->size;
	member->crc = spool->crc;
	return true;
}

int64_t
ev_spool_packed(const EvSpool *spool)
{
	return spool->packed;
}

void
ev_spool_free(EvSpool *spool)
{
	free(spool);
}

/*
 * The output loop ends when the compressor leaves room: then it has nothing
 * more to say. A member may be larger than 4 GB, hence the library's own
 * 32-bit totals are not used.
 */
static bool
compress_block(EvSpool *spool, bool last, EvError *error)
{
	struct isal_zstream *stream = &spool->stream;

	spool->crc = crc32_gzip_refl(spool->crc, spool->in, spool->fill);
	spool->size += (int64_t) spool->fill;
	stream->next_in = spool->in;
	stream->avail_in = (uint32_t) spool->fill;
	stream->end_of_stream = last ? 1 : 0;
	stream->flush = NO_FLUSH;
	spool->fill = 0;

	do
	{
		size_t		length;

		stream->next_out = spool->out;
		stream->avail_out = sizeof(spool->out);
		if (isal_deflate(stream) != COMP_OK)
			return ev_error_set(error, EV_ERROR_LIBRARY,
								"could not compress: deflate failed");
		length = sizeof(spool->out) - stream->avail_out;
		if (length > 0 &&
			!spool->file->write(spool->file->arg,
								spool->start + spool->packed, spool->out,
								length))
			return ev_error_set(error, EV_ERROR_IO,
								"could not write compressed data");
		spool->packed += (int64_t) length;
	} while (stream->avail_out == 0);
	return true;
}
