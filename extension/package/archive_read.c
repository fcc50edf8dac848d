/*-------------------------------------------------------------------------
 *
 * archive_read.c
 *	  Read a ZIP that may be hostile.
 *
 * libzip finds the members; the compressed bytes are inflated here, so that
 * the length of the deflate stream, the size and the CRC can all be checked
 * against what the archive says, and a bomb stops at the caller's limit
 * instead of filling a disk.  Whether the headers agree with each other is
 * archive_layout.c's business.
 *
 * Nothing is ever written by names of the archive: the caller asks for the
 * two names it knows.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <zip.h>

#include "archive.h"
#include "archive_layout.h"

#define IN_BLOCK (64 * 1024)
#define OUT_BLOCK (64 * 1024)

struct EvArchive
{
	const EvFile *file;
	int64_t		size;
	int64_t		position;		/* of libzip's reading */
	zip_error_t error;			/* of the source callback */
	zip_t	   *zip;
};

/* One member on its way out. */
typedef struct Inflater
{
	struct inflate_state state;
	zip_file_t *file;
	const char *name;
	int64_t		size;			/* declared */
	int64_t		done;			/* bytes that came out */
	uint32_t	crc;
	bool		begun;			/* compressed bytes have come */
	bool		ended;			/* libzip has no more of them */
	unsigned char in[IN_BLOCK];
	unsigned char out[OUT_BLOCK];
} Inflater;

static bool find_member(EvArchive *archive, const char *name,
						zip_stat_t *stat);
static bool inflate_member(Inflater *inflater, EvReadFunction function,
						   void *arg, EvError *error);
static bool refill(Inflater *inflater, EvError *error);
static bool check_end(Inflater *inflater, uint32_t crc, EvError *error);
static zip_int64_t in_callback(void *state, void *data, zip_uint64_t length,
							   zip_source_cmd_t command);
static zip_int64_t in_read(EvArchive *archive, void *data,
						   zip_uint64_t length);
static zip_int64_t in_seek(EvArchive *archive, void *data,
						   zip_uint64_t length);

/*
 * libzip is told to read only and gets no file name, so that it can neither
 * change nor replace anything. It reads the directory here and keeps it; the
 * member's bytes are read later on demand.
 */
EvArchive *
ev_archive_open(const EvFile *in, int64_t size, EvError *error)
{
	EvArchive  *archive = calloc(1, sizeof(EvArchive));
	zip_source_t *source;
	zip_error_t reason;

	if (archive == NULL)
	{
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		return NULL;
	}

	archive->file = in;
	archive->size = size;
	zip_error_init(&archive->error);
	zip_error_init(&reason);
	source = zip_source_function_create(in_callback, archive, &reason);
	if (source != NULL)
		archive->zip = zip_open_from_source(source, ZIP_RDONLY, &reason);
	if (archive->zip == NULL)
	{
		int			code = zip_error_code_zip(&reason);

		ev_error_set(error,
					 code == ZIP_ER_MEMORY ? EV_ERROR_MEMORY :
					 code == ZIP_ER_READ ? EV_ERROR_IO : EV_ERROR_FORMAT,
					 "could not open the archive: %s",
					 zip_error_strerror(&reason));
		zip_source_free(source);
		zip_error_fini(&archive->error);
		free(archive);
		archive = NULL;
	}
	zip_error_fini(&reason);
	return archive;
}

/* Discarding never writes, whatever state the archive is in. */
void
ev_archive_close(EvArchive *archive)
{
	if (archive == NULL)
		return;
	zip_discard(archive->zip);
	zip_error_fini(&archive->error);
	free(archive);
}

bool
ev_archive_check_layout(EvArchive *archive, EvError *error)
{
	return ev_layout_check(archive->file, archive->size, error);
}

/*
 * The declared size is the archive's own word. It serves to show progress and
 * to refuse early; what really comes out is counted while reading.
 */
int64_t
ev_archive_member_size(EvArchive *archive, const char *name)
{
	zip_stat_t	stat;

	if (!find_member(archive, name, &stat) || stat.size > INT64_MAX)
		return -1;
	return (int64_t) stat.size;
}

/*
 * The size is judged twice: what is declared before anything is read, and what
 * comes out while it does. A member that lies about its size stops at the
 * first byte too many.
 */
bool
ev_archive_read(EvArchive *archive, const char *name, int64_t limit,
				EvReadFunction function, void *arg, EvError *error)
{
	zip_stat_t	stat;
	Inflater   *inflater;
	bool		done;

	if (!find_member(archive, name, &stat))
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has no member \"%s\"", name);
	if (stat.encryption_method != ZIP_EM_NONE ||
		stat.comp_method != ZIP_CM_DEFLATE)
		return ev_error_set(error, EV_ERROR_FORMAT, "member \"%s\" is encrypted or not compressed by deflate",
							name);
	if (stat.size > INT64_MAX || (int64_t) stat.size > limit)
		return ev_error_set(error, EV_ERROR_FORMAT, "member \"%s\" is larger than the limit of %lld bytes",
							name, (long long) limit);

	inflater = malloc(sizeof(Inflater));
	if (inflater == NULL)
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	isal_inflate_init(&inflater->state);
	inflater->name = name;
	inflater->size = (int64_t) stat.size;
	inflater->done = 0;
	inflater->crc = 0;
	inflater->begun = false;
	inflater->ended = false;
	inflater->file = zip_fopen_index(archive->zip, stat.index,
									 ZIP_FL_COMPRESSED);
	if (inflater->file == NULL)
		done = ev_error_set(error, EV_ERROR_FORMAT,
							"could not open member \"%s\": %s", name,
							zip_strerror(archive->zip));
	else
	{
		done = inflate_member(inflater, function, arg, error) &&
			check_end(inflater, stat.crc, error);
		zip_fclose(inflater->file);
	}
	free(inflater);
	return done;
}

/*
 * Names are compared as raw bytes. libzip would otherwise translate old code
 * pages, and two different names could become one.
 */
static bool
find_member(EvArchive *archive, const char *name, zip_stat_t *stat)
{
	const		zip_uint64_t needed = ZIP_STAT_INDEX | ZIP_STAT_SIZE |
	ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD |
	ZIP_STAT_ENCRYPTION_METHOD;

	return zip_stat(archive->zip, name, ZIP_FL_ENC_RAW, stat) == 0 &&
		(stat->valid & needed) == needed;
}

/*
 * The decoder may have ended its output block before its input, so input is
 * fetched only when it ran out. An end of input without an end of the stream
 * means that the member was cut off.
 */
static bool
inflate_member(Inflater *inflater, EvReadFunction function, void *arg,
			   EvError *error)
{
	struct inflate_state *state = &inflater->state;

	while (state->block_state != ISAL_BLOCK_FINISH)
	{
		size_t		length;

		if (!refill(inflater, error))
			return false;
		/* libzip 1.10 and later hand out nothing of a member of size 0. */
		if (inflater->size == 0 && inflater->ended && !inflater->begun)
			return true;
		state->next_out = inflater->out;
		state->avail_out = OUT_BLOCK;
		if (isal_inflate(state) != ISAL_DECOMP_OK)
			return ev_error_set(error, EV_ERROR_FORMAT,
								"member \"%s\" has damaged compressed data",
								inflater->name);

		length = OUT_BLOCK - state->avail_out;
		if (length == 0 && inflater->ended && state->avail_in == 0 &&
			state->block_state != ISAL_BLOCK_FINISH)
			return ev_error_set(error, EV_ERROR_FORMAT,
								"member \"%s\" is cut off", inflater->name);
		if ((int64_t) length > inflater->size - inflater->done)
			return ev_error_set(error, EV_ERROR_FORMAT, "member \"%s\" is larger than its header says",
								inflater->name);
		inflater->done += (int64_t) length;
		inflater->crc = crc32_gzip_refl(inflater->crc, inflater->out, length);
		if (length > 0 && !function(arg, inflater->out, length, error))
			return false;
	}
	return true;
}

/* Get more compressed bytes once all earlier ones are used up. */
static bool
refill(Inflater *inflater, EvError *error)
{
	zip_int64_t got;

	if (inflater->state.avail_in > 0 || inflater->ended)
		return true;
	got = zip_fread(inflater->file, inflater->in, IN_BLOCK);
	if (got < 0)
		return ev_error_set(error, EV_ERROR_IO,
							"could not read member \"%s\"", inflater->name);
	inflater->begun |= got > 0;
	inflater->ended = got == 0;
	inflater->state.next_in = inflater->in;
	inflater->state.avail_in = (uint32_t) got;
	return true;
}

/* The stream has ended: nothing may follow it, and all must add up. */
static bool
check_end(Inflater *inflater, uint32_t crc, EvError *error)
{
	/* Whole bytes that the decoder has read ahead were not part of it. */
	bool		more = inflater->state.avail_in > 0 ||
	inflater->state.read_in_length >= 8;

	if (!more && !inflater->ended)
	{
		if (!refill(inflater, error))
			return false;
		more = inflater->state.avail_in > 0;
	}
	if (more)
		return ev_error_set(error, EV_ERROR_FORMAT, "member \"%s\" has bytes behind its compressed data",
							inflater->name);
	if (inflater->done != inflater->size)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"member \"%s\" is smaller than its header says",
							inflater->name);
	if (inflater->crc != crc)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"member \"%s\" does not match its CRC",
							inflater->name);
	return true;
}

/*
 * libzip asks for far more commands than a read-only source needs. All others
 * are refused by the default branch, so a later libzip finds no half-made
 * answer.
 */
static zip_int64_t
in_callback(void *state, void *data, zip_uint64_t length,
			zip_source_cmd_t command)
{
	EvArchive  *archive = state;

	switch (command)
	{
		case ZIP_SOURCE_OPEN:
			archive->position = 0;
			return 0;
		case ZIP_SOURCE_READ:
			return in_read(archive, data, length);
		case ZIP_SOURCE_SEEK:
			return in_seek(archive, data, length);
		case ZIP_SOURCE_TELL:
			return archive->position;
		case ZIP_SOURCE_CLOSE:
		case ZIP_SOURCE_FREE:
			return 0;
		case ZIP_SOURCE_STAT:
			zip_stat_init(data);
			((zip_stat_t *) data)->size = (zip_uint64_t) archive->size;
			((zip_stat_t *) data)->valid = ZIP_STAT_SIZE;
			return sizeof(zip_stat_t);
		case ZIP_SOURCE_ERROR:
			return zip_error_to_data(&archive->error, data, length);
		case ZIP_SOURCE_SUPPORTS:
			return ZIP_SOURCE_SUPPORTS_SEEKABLE;
		default:
			zip_error_set(&archive->error, ZIP_ER_OPNOTSUPP, 0);
			return -1;
	}
}

/*
 * A read behind the end is an end and no error: libzip looks for the end
 * record by reading backwards from there.
 */
static zip_int64_t
in_read(EvArchive *archive, void *data, zip_uint64_t length)
{
	int64_t		rest = archive->size - archive->position;
	int64_t		got;

	if (rest <= 0)
		return 0;
	if (length > (uint64_t) rest)
		length = (zip_uint64_t) rest;
	got = archive->file->read(archive->file->arg, archive->position, data,
							  (size_t) length);
	if (got < 0)
	{
		zip_error_set(&archive->error, ZIP_ER_READ, 0);
		return -1;
	}
	archive->position += got;
	return got;
}

/* libzip computes the new place itself and refuses one outside of the file. */
static zip_int64_t
in_seek(EvArchive *archive, void *data, zip_uint64_t length)
{
	zip_int64_t position;

	position = zip_source_seek_compute_offset((zip_uint64_t) archive->position,
											  (zip_uint64_t) archive->size,
											  data, length, &archive->error);
	if (position < 0)
		return -1;
	archive->position = position;
	return 0;
}
