/*-------------------------------------------------------------------------
 *
 * archive_write.c
 *	  Put finished members together into a ZIP.
 *
 * libzip does the container; this file and archive_read.c are its only users.
 * libzip is given sources that are deflated already and whose sizes and CRC
 * are known before they are read.  It therefore writes neither data
 * descriptors nor ZIP64 fields, except where a size or an offset does not fit
 * 32 bits, and the archive can be read from a stream and by old unpackers
 * (case C34).
 *
 * A member that lies in the output already is read like any other, but what
 * libzip writes into its place is dropped: it is what stands there.  A write
 * that is neither quite inside such a place nor quite outside shows that
 * libzip lays the archive out in another way than was foreseen, and fails.
 *
 * Everything that would differ between two runs is fixed here: the time
 * stamp is the earliest one of the format, in DOS form because libzip would
 * convert a time_t by the process's time zone, and the mode is 0644.
 *
 * libzip's frames are on the stack while our callbacks run, so callbacks
 * report errors by return value only.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include <zip.h>

#include "archive.h"

#define DOS_TIME 0				/* 00:00:00 */
#define DOS_DATE 0x21			/* 1980-01-01, the first that exists */
#define UNIX_MODE 0100644

#define LOCAL_HEADER 30			/* without the name */
#define ZIP64_FIELD 20			/* two sizes of 8 bytes and their header */

/* A member as a source of libzip. */
typedef struct MemberSource
{
	const EvMember *member;
	int64_t		position;
	zip_error_t error;
} MemberSource;

/* The output as a source that libzip writes to. */
typedef struct OutSource
{
	const EvFile *file;
	int64_t		start;			/* the archive's offset in file */
	const EvMember *members;
	int			nmembers;
	int64_t		position;		/* in the archive */
	int64_t		size;
	zip_error_t error;
} OutSource;

static bool add_member(zip_t *archive, MemberSource *source, EvError *error);
static zip_int64_t member_callback(void *state, void *data,
								   zip_uint64_t length,
								   zip_source_cmd_t command);
static zip_int64_t member_stat(MemberSource *source, void *data);
static zip_int64_t member_read(MemberSource *source, void *data,
							   zip_uint64_t length);
static zip_int64_t out_callback(void *state, void *data, zip_uint64_t length,
								zip_source_cmd_t command);
static zip_int64_t out_write(OutSource *out, const void *data,
							 zip_uint64_t length);
static bool lies_there(const OutSource *out, int64_t from, int64_t to,
					   bool *fits);
static zip_int64_t out_seek(OutSource *out, void *data, zip_uint64_t length);
static bool library_error(EvError *error, const char *doing,
						  zip_error_t *reason);

int64_t
ev_archive_header_bytes(const EvMember *member)
{
	bool		zip64 = member->size > UINT32_MAX ||
	member->packed > UINT32_MAX;

	return LOCAL_HEADER + (zip64 ? ZIP64_FIELD : 0) +
		(int64_t) strlen(member->name);
}

/*
 * On success zip_close frees the archive, on failure it does not; discarding
 * it then also frees the sources. Sources belong to the archive as soon as
 * they were added, hence the states may live on the stack and in one array
 * until the end.
 */
bool
ev_archive_write(const EvMember *members, int nmembers, const EvFile *out,
				 int64_t start, int64_t *size, EvError *error)
{
	MemberSource *sources = calloc((size_t) nmembers, sizeof(MemberSource));
	OutSource	target;
	zip_error_t reason;
	zip_source_t *source;
	zip_t	   *archive = NULL;
	bool		done = true;
	int			i;

	if (sources == NULL)
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	memset(&target, 0, sizeof(target));
	target.file = out;
	target.start = start;
	target.members = members;
	target.nmembers = nmembers;
	zip_error_init(&target.error);
	zip_error_init(&reason);

	source = zip_source_function_create(out_callback, &target, &reason);
	if (source != NULL)
		archive = zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE,
									   &reason);
	if (archive == NULL)
	{
		done = library_error(error, "could not begin an archive", &reason);
		zip_source_free(source);
	}

	for (i = 0; done && i < nmembers; i++)
	{
		sources[i].member = &members[i];
		zip_error_init(&sources[i].error);
		done = add_member(archive, &sources[i], error);
	}
	if (done && zip_close(archive) != 0)
		done = library_error(error, "could not write the archive",
							 zip_get_error(archive));
	if (!done && archive != NULL)
		zip_discard(archive);

	*size = target.size;
	zip_error_fini(&reason);
	zip_error_fini(&target.error);
	free(sources);
	return done;
}

/*
 * The name gets no encoding flag, since both names are ASCII and a flag would
 * only be one more field that readers disagree on.
 */
static bool
add_member(zip_t *archive, MemberSource *state, EvError *error)
{
	zip_source_t *source;
	zip_int64_t index;

	source = zip_source_function(archive, member_callback, state);
	if (source == NULL)
		return library_error(error, "could not add a member",
							 zip_get_error(archive));

	index = zip_file_add(archive, state->member->name, source, 0);
	if (index < 0)
	{
		zip_source_free(source);
		return library_error(error, "could not add a member",
							 zip_get_error(archive));
	}
	if (zip_file_set_dostime(archive, (zip_uint64_t) index, DOS_TIME, DOS_DATE,
							 0) != 0 ||
		zip_file_set_external_attributes(archive, (zip_uint64_t) index, 0,
										 ZIP_OPSYS_UNIX,
										 (zip_uint32_t) UNIX_MODE << 16) != 0)
		return library_error(error, "could not add a member",
							 zip_get_error(archive));
	return true;
}

/*
 * A source must answer ZIP_SOURCE_SUPPORTS truthfully: one that claims to be
 * seekable is read in another way.
 */
static zip_int64_t
member_callback(void *state, void *data, zip_uint64_t length,
				zip_source_cmd_t command)
{
	MemberSource *source = state;

	switch (command)
	{
		case ZIP_SOURCE_OPEN:
			source->position = 0;
			return 0;
		case ZIP_SOURCE_READ:
			return member_read(source, data, length);
		case ZIP_SOURCE_CLOSE:
		case ZIP_SOURCE_FREE:
			return 0;
		case ZIP_SOURCE_STAT:
			return member_stat(source, data);
		case ZIP_SOURCE_ERROR:
			return zip_error_to_data(&source->error, data, length);
		case ZIP_SOURCE_SUPPORTS:
			return ZIP_SOURCE_SUPPORTS_READABLE;
		default:
			zip_error_set(&source->error, ZIP_ER_OPNOTSUPP, 0);
			return -1;
	}
}

/*
 * With sizes, CRC and method all valid, libzip copies the bytes as they are,
 * and the local header has its final length at once.
 */
static zip_int64_t
member_stat(MemberSource *source, void *data)
{
	zip_stat_t *stat = data;

	zip_stat_init(stat);
	stat->size = (zip_uint64_t) source->member->size;
	stat->comp_size = (zip_uint64_t) source->member->packed;
	stat->crc = source->member->crc;
	stat->comp_method = ZIP_CM_DEFLATE;
	stat->encryption_method = ZIP_EM_NONE;
	stat->valid = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC |
		ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
	return sizeof(*stat);
}

/*
 * The spool is read back here for the first time, so a spool that lost bytes
 * on a full disk fails the archive instead of shortening it.
 */
static zip_int64_t
member_read(MemberSource *source, void *data, zip_uint64_t length)
{
	const EvMember *member = source->member;
	int64_t		rest = member->packed - source->position;
	int64_t		got;

	if ((uint64_t) rest < length)
		length = (zip_uint64_t) rest;
	if (length == 0)
		return 0;

	got = member->file->read(member->file->arg,
							 member->start + source->position, data,
							 (size_t) length);
	if (got <= 0)
	{
		zip_error_set(&source->error, ZIP_ER_READ, 0);
		return -1;
	}
	source->position += got;
	return got;
}

/*
 * The output never has anything to be read: libzip is told to truncate, and
 * it only needs to hear that there is an empty file.
 */
static zip_int64_t
out_callback(void *state, void *data, zip_uint64_t length,
			 zip_source_cmd_t command)
{
	OutSource  *out = state;

	switch (command)
	{
		case ZIP_SOURCE_BEGIN_WRITE:
			out->position = 0;
			out->size = 0;
			return 0;
		case ZIP_SOURCE_WRITE:
			return out_write(out, data, length);
		case ZIP_SOURCE_SEEK_WRITE:
			return out_seek(out, data, length);
		case ZIP_SOURCE_TELL_WRITE:
			return out->position;
		case ZIP_SOURCE_STAT:
			zip_stat_init(data);
			((zip_stat_t *) data)->size = 0;
			((zip_stat_t *) data)->valid = ZIP_STAT_SIZE;
			return sizeof(zip_stat_t);
		case ZIP_SOURCE_ERROR:
			return zip_error_to_data(&out->error, data, length);
		case ZIP_SOURCE_SUPPORTS:
			return ZIP_SOURCE_SUPPORTS_WRITABLE;
		case ZIP_SOURCE_READ:
		case ZIP_SOURCE_TELL:
		case ZIP_SOURCE_OPEN:
		case ZIP_SOURCE_CLOSE:
		case ZIP_SOURCE_SEEK:
		case ZIP_SOURCE_FREE:
		case ZIP_SOURCE_COMMIT_WRITE:
		case ZIP_SOURCE_ROLLBACK_WRITE:
			return 0;
		default:
			zip_error_set(&out->error, ZIP_ER_OPNOTSUPP, 0);
			return -1;
	}
}

/*
 * libzip returns to the local header once to write it again, with the CRC, so
 * the position may be behind the size.
 */
static zip_int64_t
out_write(OutSource *out, const void *data, zip_uint64_t length)
{
	int64_t		from = out->start + out->position;
	bool		fits;

	if (!lies_there(out, from, from + (int64_t) length, &fits))
	{
		if (!fits)
		{
			zip_error_set(&out->error, ZIP_ER_INTERNAL, 0);
			return -1;
		}
		if (!out->file->write(out->file->arg, from, data, (size_t) length))
		{
			zip_error_set(&out->error, ZIP_ER_WRITE, 0);
			return -1;
		}
	}
	out->position += (int64_t) length;
	if (out->position > out->size)
		out->size = out->position;
	return (zip_int64_t) length;
}

/*
 * Is [from, to) inside a member that lies in the output?  Otherwise, *fits
 * says whether it is clear of all of them.
 */
static bool
lies_there(const OutSource *out, int64_t from, int64_t to, bool *fits)
{
	int			i;

	*fits = true;
	for (i = 0; i < out->nmembers; i++)
	{
		const EvMember *member = &out->members[i];
		int64_t		end = member->start + member->packed;

		if (member->file != out->file)
			continue;
		if (from >= member->start && to <= end)
			return true;
		if (from < end && to > member->start)
			*fits = false;
	}
	return false;
}

/* Seeking must work, or zip_close fails after all the work was done. */
static zip_int64_t
out_seek(OutSource *out, void *data, zip_uint64_t length)
{
	zip_int64_t position;

	position = zip_source_seek_compute_offset((zip_uint64_t) out->position,
											  (zip_uint64_t) out->size, data,
											  length, &out->error);
	if (position < 0)
		return -1;
	out->position = position;
	return 0;
}

/*
 * The caller wants to know whether a retry may help. A failed callback is the
 * caller's own file; everything else is the library's.
 */
static bool
library_error(EvError *error, const char *doing, zip_error_t *reason)
{
	EvErrorKind kind = EV_ERROR_LIBRARY;

	if (zip_error_code_zip(reason) == ZIP_ER_MEMORY)
		kind = EV_ERROR_MEMORY;
	else if (zip_error_code_zip(reason) == ZIP_ER_READ ||
			 zip_error_code_zip(reason) == ZIP_ER_WRITE)
		kind = EV_ERROR_IO;
	return ev_error_set(error, kind, "%s: %s", doing,
						zip_error_strerror(reason));
}
