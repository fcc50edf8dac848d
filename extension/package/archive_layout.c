/*-------------------------------------------------------------------------
 *
 * archive_layout.c
 *	  Check the raw headers of a package archive.
 *
 * libzip reads the central directory and trusts it.  A hostile archive may
 * say one thing there and another in its local headers, so that two readers
 * unpack two different files, or may hide bytes in front of, between or
 * behind the members.  This file reads every header itself and accepts only
 * the one layout that archive_write.c produces: two local headers with their
 * data, the central directory, the end record, each straight behind the one
 * before.
 *
 * ZIP64 fields are accepted where, and only where, a 32-bit field is full.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "archive.h"
#include "archive_layout.h"

#define LOCAL_SIZE 30
#define CENTRAL_SIZE 46
#define END_SIZE 22
#define END64_SIZE 56
#define LOCATOR_SIZE 20
#define MEMBERS 2
#define NAME_MAX_BYTES 32
#define EXTRA_MAX_BYTES 64

#define FULL16 0xFFFF
#define FULL32 UINT32_C(0xFFFFFFFF)

/* Level hints of deflate, and "the name is UTF-8"; nothing else is plain. */
#define FLAGS_ALLOWED (0x0006 | 0x0800)
#define METHOD_DEFLATE 8

/* One member as one of its two headers describes it. */
typedef struct Header
{
	unsigned	flags;
	unsigned	method;
	uint32_t	time;			/* DOS time and date as they stand */
	uint32_t	crc;
	uint64_t	packed;
	uint64_t	size;
	uint64_t	offset;			/* of the local header; central only */
	uint64_t	length;			/* of this header itself */
	char		name[NAME_MAX_BYTES + 1];
} Header;

typedef struct Directory
{
	uint64_t	entries;
	uint64_t	size;
	uint64_t	offset;
	uint64_t	end;			/* where the end records begin */
} Directory;

static bool find_directory(const EvFile *in, int64_t size,
						   Directory *directory, EvError *error);
static bool find_directory64(const EvFile *in, int64_t size,
							 Directory *directory, EvError *error);
static bool agree(uint64_t narrow, uint64_t full, uint64_t wide);
static bool read_central(const EvFile *in, int64_t size, uint64_t offset,
						 Header *header, EvError *error);
static bool read_local(const EvFile *in, int64_t size, uint64_t offset,
					   Header *header, EvError *error);
static bool read_variable(const EvFile *in, int64_t size, uint64_t offset,
						  unsigned name_length, unsigned extra_length,
						  Header *header, bool central, EvError *error);
static bool apply_zip64(const unsigned char *extra, unsigned length,
						Header *header, bool central, EvError *error);
static bool check_member(const Header *central, const Header *local,
						 const char *name, EvError *error);
static bool read_exact(const EvFile *in, int64_t size, uint64_t offset,
					   void *data, size_t length, EvError *error);
static unsigned get16(const unsigned char *p);
static uint32_t get32(const unsigned char *p);
static uint64_t get64(const unsigned char *p);

/*
 * Walk the archive from its end to the directory and from there to each local
 * header. Offsets are followed only after they were compared with where the
 * member before ended, so two members can neither overlap nor leave a gap that
 * hides bytes.
 */
bool
ev_layout_check(const EvFile *in, int64_t size, EvError *error)
{
	static const char *const names[MEMBERS] = {
		EV_RECORDS_MEMBER, EV_MANIFEST_MEMBER
	};
	Directory	directory = {0, 0, 0, 0};
	uint64_t	at;
	uint64_t	data_end = 0;
	int			i;

	if (!find_directory(in, size, &directory, error))
		return false;
	if (directory.entries != MEMBERS)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has %llu members and not two",
							(unsigned long long) directory.entries);

	at = directory.offset;
	for (i = 0; i < MEMBERS; i++)
	{
		Header		central;
		Header		local;

		if (!read_central(in, size, at, &central, error))
			return false;
		if (central.offset != data_end)
			return ev_error_set(error, EV_ERROR_FORMAT, "archive has bytes outside its members");
		if (!read_local(in, size, central.offset, &local, error) ||
			!check_member(&central, &local, names[i], error))
			return false;
		if (central.packed > (uint64_t) size)
			return ev_error_set(error, EV_ERROR_FORMAT, "member \"%s\" is longer than the archive",
								names[i]);
		data_end += local.length + central.packed;
		at += central.length;
	}

	if (data_end != directory.offset)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has bytes outside its members");
	if (at != directory.end || at - directory.offset != directory.size)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has bytes around its directory");
	return true;
}

/* The end record must be the last thing, without a comment behind it. */
static bool
find_directory(const EvFile *in, int64_t size, Directory *directory,
			   EvError *error)
{
	unsigned char end[END_SIZE];

	if (size < END_SIZE)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"file is too short for an archive");
	directory->end = (uint64_t) size - END_SIZE;
	if (!read_exact(in, size, directory->end, end, END_SIZE, error))
		return false;
	if (memcmp(end, "PK\5\6", 4) != 0 || get16(end + 20) != 0)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive does not end with a plain end record");
	if (get16(end + 4) != 0 || get16(end + 6) != 0 ||
		get16(end + 8) != get16(end + 10))
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive is split over several disks");

	directory->entries = get16(end + 10);
	directory->size = get32(end + 12);
	directory->offset = get32(end + 16);
	return find_directory64(in, size, directory, error);
}

/*
 * libzip writes a ZIP64 end record whenever a member needs 64 bits, even if
 * the plain end record could hold all its own values.  Both must agree.
 */
static bool
find_directory64(const EvFile *in, int64_t size, Directory *directory,
				 EvError *error)
{
	unsigned char locator[LOCATOR_SIZE];
	unsigned char end[END64_SIZE];
	bool		needed;

	needed = directory->entries == FULL16 || directory->size == FULL32 ||
		directory->offset == FULL32;
	if (directory->end < LOCATOR_SIZE + END64_SIZE)
		return !needed || ev_error_set(error, EV_ERROR_FORMAT,
									   "archive has no ZIP64 end record");
	if (!read_exact(in, size, directory->end - LOCATOR_SIZE, locator,
					LOCATOR_SIZE, error))
		return false;
	if (!needed && memcmp(locator, "PK\6\7", 4) != 0)
		return true;

	directory->end -= LOCATOR_SIZE + END64_SIZE;
	if (!read_exact(in, size, directory->end, end, END64_SIZE, error))
		return false;
	if (memcmp(locator, "PK\6\7", 4) != 0 || get32(locator + 4) != 0 ||
		get64(locator + 8) != directory->end || get32(locator + 16) != 1 ||
		memcmp(end, "PK\6\6", 4) != 0 || get64(end + 4) != END64_SIZE - 12 ||
		get32(end + 16) != 0 || get32(end + 20) != 0 ||
		get64(end + 24) != get64(end + 32) ||
		!agree(directory->entries, FULL16, get64(end + 32)) ||
		!agree(directory->size, FULL32, get64(end + 40)) ||
		!agree(directory->offset, FULL32, get64(end + 48)))
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has a damaged ZIP64 end record");

	directory->entries = get64(end + 32);
	directory->size = get64(end + 40);
	directory->offset = get64(end + 48);
	return true;
}

/* A field of the plain end record, against the same one in 64 bits. */
static bool
agree(uint64_t narrow, uint64_t full, uint64_t wide)
{
	return narrow == (wide < full ? wide : full);
}

/*
 * One directory entry. The version fields and the attributes are not compared:
 * they tell an unpacker what to expect and cannot change which bytes come out.
 */
static bool
read_central(const EvFile *in, int64_t size, uint64_t offset, Header *header,
			 EvError *error)
{
	unsigned char raw[CENTRAL_SIZE];

	if (!read_exact(in, size, offset, raw, CENTRAL_SIZE, error))
		return false;
	if (memcmp(raw, "PK\1\2", 4) != 0)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has a damaged directory entry");
	if (get16(raw + 32) != 0 || get16(raw + 34) != 0)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has a member comment or several disks");

	header->flags = get16(raw + 8);
	header->method = get16(raw + 10);
	header->time = get32(raw + 12);
	header->crc = get32(raw + 16);
	header->packed = get32(raw + 20);
	header->size = get32(raw + 24);
	header->offset = get32(raw + 42);
	header->length = CENTRAL_SIZE + get16(raw + 28) + get16(raw + 30);
	return read_variable(in, size, offset + CENTRAL_SIZE, get16(raw + 28),
						 get16(raw + 30), header, true, error);
}

/*
 * One local header. A reader of a stream sees nothing else, so everything it
 * says is compared with the directory entry.
 */
static bool
read_local(const EvFile *in, int64_t size, uint64_t offset, Header *header,
		   EvError *error)
{
	unsigned char raw[LOCAL_SIZE];

	if (!read_exact(in, size, offset, raw, LOCAL_SIZE, error))
		return false;
	if (memcmp(raw, "PK\3\4", 4) != 0)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has a damaged local header");

	header->flags = get16(raw + 6);
	header->method = get16(raw + 8);
	header->time = get32(raw + 10);
	header->crc = get32(raw + 14);
	header->packed = get32(raw + 18);
	header->size = get32(raw + 22);
	header->offset = 0;
	header->length = LOCAL_SIZE + get16(raw + 26) + get16(raw + 28);
	return read_variable(in, size, offset + LOCAL_SIZE, get16(raw + 26),
						 get16(raw + 28), header, false, error);
}

/* The name and the extra field behind a header's fixed part. */
static bool
read_variable(const EvFile *in, int64_t size, uint64_t offset,
			  unsigned name_length, unsigned extra_length, Header *header,
			  bool central, EvError *error)
{
	unsigned char extra[EXTRA_MAX_BYTES];

	if (name_length > NAME_MAX_BYTES || extra_length > EXTRA_MAX_BYTES)
		return ev_error_set(error, EV_ERROR_FORMAT, "archive has an unknown member or extra field");
	if (!read_exact(in, size, offset, header->name, name_length, error) ||
		!read_exact(in, size, offset + name_length, extra, extra_length,
					error))
		return false;
	header->name[name_length] = '\0';
	if (strlen(header->name) != name_length)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has a member name with a zero byte");
	return apply_zip64(extra, extra_length, header, central, error);
}

/*
 * Replace full 32-bit fields by their 64-bit values.  A local header holds
 * both sizes or none, a directory entry holds just the full fields.
 */
static bool
apply_zip64(const unsigned char *extra, unsigned length, Header *header,
			bool central, EvError *error)
{
	bool		sizes = header->size == FULL32 || header->packed == FULL32;
	unsigned	needed = 0;
	unsigned	at = 4;

	if (central)
		needed = 8 * ((header->size == FULL32) + (header->packed == FULL32) +
					  (header->offset == FULL32));
	else if (sizes)
		needed = 16;
	if (needed == 0 && length == 0)
		return true;
	if (length != needed + 4 || get16(extra) != 1 ||
		get16(extra + 2) != needed)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive has an extra field that is not needed");

	if (header->size == FULL32 || (!central && sizes))
	{
		header->size = get64(extra + at);
		at += 8;
	}
	if (header->packed == FULL32 || (!central && sizes))
	{
		header->packed = get64(extra + at);
		at += 8;
	}
	if (central && header->offset == FULL32)
		header->offset = get64(extra + at);
	return true;
}

/*
 * The two headers of one member against each other and against what a package
 * may hold. A name is compared as a whole: a path, another case or a trailing
 * blank is another name.
 */
static bool
check_member(const Header *central, const Header *local, const char *name,
			 EvError *error)
{
	if (strcmp(central->name, name) != 0)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive does not hold \"%s\" where it belongs",
							name);
	if (strcmp(local->name, name) != 0 || local->flags != central->flags ||
		local->method != central->method || local->time != central->time ||
		local->crc != central->crc || local->packed != central->packed ||
		local->size != central->size)
		return ev_error_set(error, EV_ERROR_FORMAT, "member \"%s\" has different local and central headers",
							name);
	if ((central->flags & ~FLAGS_ALLOWED) != 0)
		return ev_error_set(error, EV_ERROR_FORMAT, "member \"%s\" is encrypted or has a data descriptor",
							name);
	if (central->method != METHOD_DEFLATE)
		return ev_error_set(error, EV_ERROR_FORMAT, "member \"%s\" is compressed by method %u and not by deflate",
							name, central->method);
	return true;
}

/*
 * Bounds are checked against the size that the caller stated and not by what
 * read returns, so a file that grows meanwhile changes nothing. Short reads
 * are allowed, since the bytes may come from a pipe or a database.
 */
static bool
read_exact(const EvFile *in, int64_t size, uint64_t offset, void *data,
		   size_t length, EvError *error)
{
	char	   *bytes = data;

	if (offset > (uint64_t) size || length > (uint64_t) size - offset)
		return ev_error_set(error, EV_ERROR_FORMAT,
							"archive points behind its own end");
	while (length > 0)
	{
		int64_t		got = in->read(in->arg, (int64_t) offset, bytes, length);

		if (got <= 0)
			return ev_error_set(error, EV_ERROR_IO,
								"could not read the archive");
		bytes += got;
		offset += (uint64_t) got;
		length -= (size_t) got;
	}
	return true;
}

/* ZIP is little-endian on every machine. */
static unsigned
get16(const unsigned char *p)
{
	return p[0] | (unsigned) p[1] << 8;
}

static uint32_t
get32(const unsigned char *p)
{
	return get16(p) | (uint32_t) get16(p + 2) << 16;
}

static uint64_t
get64(const unsigned char *p)
{
	return get32(p) | (uint64_t) get32(p + 4) << 32;
}
