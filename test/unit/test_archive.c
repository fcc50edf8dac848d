/*-------------------------------------------------------------------------
 *
 * test_archive.c
 *	  Archives: reproducible ones written, hostile ones refused.
 *
 * Cases C34 to C36 and C52.  Hostile archives are made by changing bytes of a
 * good one, so each differs from it in the one thing its test is about.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "archive_layout.h"
#include "memory_file.h"
#include "package.h"
#include "tap.h"

#define MANIFEST "{\"format\":\"pg_evidence/1\"}"

/* Collects what a member holds. */
static bool
collect(void *arg, const void *data, size_t length, EvError *error)
{
	(void) error;
	return ev_buffer_append(arg, data, length);
}

static bool
refuse(void *arg, const void *data, size_t length, EvError *error)
{
	(void) arg;
	(void) data;
	(void) length;
	return ev_error_set(error, EV_ERROR_IO, "stopped by the reader");
}

/* Rows that compress neither away nor badly; a record is about 60 bytes. */
static bool
write_rows(EvPackage *package, int nrows, EvError *error)
{
	EvCsvWriter *csv = ev_package_csv(package);
	uint32_t	state = 1;
	int			i;

	if (!ev_csv_text(csv, "id", 2, error) ||
		!ev_csv_text(csv, "summary", 7, error) ||
		!ev_csv_end_record(csv, error))
		return false;
	for (i = 0; i < nrows; i++)
	{
		char		text[64];
		int			length;

		state = state * 1664525 + 1013904223;
		length = snprintf(text, sizeof(text), "event %u of host %u, outcome %s",
						  state >> 8, state % 97, i % 3 ? "success" : "denied");
		if (!ev_csv_integer(csv, i, error) ||
			!ev_csv_text(csv, text, (size_t) length, error) ||
			!ev_csv_end_record(csv, error))
			return false;
	}
	return true;
}

static bool
make_package(MemoryFile *out, int nrows, char sha256[EV_SHA256_HEX],
			 EvRecords *records, EvError *error)
{
	EvPackage  *package;
	unsigned char digest[EV_SHA256_BYTES];
	int64_t		start = -1;
	int64_t		size = -1;
	bool		done;

	package = ev_package_create(NULL, &out->file, error);
	done = package != NULL && write_rows(package, nrows, error) &&
		ev_package_close_records(package, records, error) &&
		ev_package_packed(package) > 0 &&
		ev_package_write_archive(package, MANIFEST, strlen(MANIFEST), &start,
								 &size, error);
	if (done && start + size != (int64_t) out->bytes.length)
		done = ev_error_set(error, EV_ERROR_IO, "size is wrong");
	if (done)
	{
		/* The archive is looked at from its first byte on. */
		memmove(out->bytes.data, out->bytes.data + start, (size_t) size);
		out->bytes.length = (size_t) size;
		done = ev_sha256(out->bytes.data, out->bytes.length, digest, error);
		ev_sha256_hex(digest, sha256);
	}
	ev_package_free(package);
	return done;
}

static void
test_reproducible(void)
{
	MemoryFile	first;
	MemoryFile	second;
	char		sha256[EV_SHA256_HEX];
	char		other[EV_SHA256_HEX];
	EvRecords	records;
	EvError		error = {0};

	memory_file_start(&first);
	memory_file_start(&second);
	setenv("TZ", "UTC", 1);
	tzset();
	ok(make_package(&first, 20000, sha256, &records, &error), "package: %s",
	   error.text);
	setenv("TZ", "Asia/Kathmandu", 1);
	tzset();
	ok(make_package(&second, 20000, other, &records, &error), "once more");
	is(other, sha256, "C35 another time zone gives the same archive");
	ok(first.bytes.length == second.bytes.length &&
	   memcmp(first.bytes.data, second.bytes.data, first.bytes.length) == 0,
	   "C35 byte by byte");
	is(records.sha256, "54805ffc1a41b504ff0fa456a0af5b9b557543082c9fe355fac4e9f4bdf849bd", "records.csv never changes");
	is(sha256, "271ad2658f3ce13ab39b18f71aa9dc78276a79a45b2887cf48bdb644b9d7a751",
	   "nor does the archive, or its codec needs a new name (ev_archive_codec)");
	ok(memcmp(first.bytes.data + 10, "\0\0\x21\0", 4) == 0 &&
	   first.bytes.data[4] == 20, "C34 version needed is 20");
	ev_buffer_free(&first.bytes);
	ev_buffer_free(&second.bytes);
}

/* The deflate stream depends on the bytes only, not on how they are fed. */
static void
test_call_patterns(void)
{
	static const size_t steps[] = {1, 7, 4096, 262143, 262144, 262145, 900000};
	const size_t length = 900000;
	char	   *data = malloc(length);
	EvMember	members[7];
	MemoryFile	files[7];
	EvError		error;
	bool		same = true;
	size_t		i;
	size_t		k;

	for (i = 0; i < length; i++)
		data[i] = (char) ("abcdefgh, 0123456789\n"[i * i / 7 % 21]);
	for (k = 0; k < 7; k++)
	{
		EvSpool    *spool;

		memory_file_start(&files[k]);
		spool = ev_spool_create(&files[k].file, 0, &error);
		for (i = 0; i < length; i += steps[k])
			same = same &&
				ev_spool_feed(spool, data + i,
							  length - i < steps[k] ? length - i : steps[k],
							  &error);
		same = same && ev_spool_finish(spool, &members[k], &error);
		ev_spool_free(spool);
		same = same && members[k].crc == members[0].crc &&
			members[k].size == (int64_t) length &&
			members[k].packed == members[0].packed &&
			memcmp(files[k].bytes.data, files[0].bytes.data,
				   (size_t) members[0].packed) == 0;
	}
	ok(same, "C35 the stream does not depend on the calls");
	for (k = 0; k < 7; k++)
		ev_buffer_free(&files[k].bytes);
	free(data);
}

static void
test_reading(void)
{
	MemoryFile	file;
	char		sha256[EV_SHA256_HEX];
	EvRecords	records;
	EvError		error = {0};
	EvArchive  *archive;
	EvBuffer	got = {0};
	int64_t		size;

	memory_file_start(&file);
	make_package(&file, 20000, sha256, &records, &error);
	file.read_at_most = 1000;
	archive = ev_archive_open(&file.file, (int64_t) file.bytes.length, &error);
	ok(archive != NULL, "archive opens, by short reads too");
	ok(ev_archive_check_layout(archive, &error), "layout: %s", error.text);
	size = ev_archive_member_size(archive, EV_RECORDS_MEMBER);
	ok(size == (int64_t) records.bytes, "declared size");
	ok(ev_archive_member_size(archive, "x") == -1, "no such member");
	ok(ev_archive_read(archive, EV_RECORDS_MEMBER, size, collect, &got,
					   &error) && got.length == records.bytes,
	   "member is read");
	ok(memcmp(got.data, "id,summary\r\n0,", 14) == 0, "and holds the rows");
	ok(!ev_archive_read(archive, EV_RECORDS_MEMBER, size - 1, collect, &got,
						&error) && error.kind == EV_ERROR_FORMAT,
	   "a limit stops it: %s", error.text);
	ok(!ev_archive_read(archive, EV_RECORDS_MEMBER, size, refuse, NULL,
						&error) && strcmp(error.text, "stopped by the reader") == 0,
	   "the reader stops it");
	ev_buffer_reset(&got);
	ok(ev_archive_read(archive, EV_MANIFEST_MEMBER, EV_MANIFEST_LIMIT, collect,
					   &got, &error), "manifest is read");
	is(got.data, MANIFEST, "and is what was written");
	ev_archive_close(archive);
	ev_buffer_free(&got);
	ev_buffer_free(&file.bytes);
}

/* Where things lie in the small archive that hostile ones are made from. */
typedef struct Places
{
	size_t		central;
	size_t		end;
	size_t		second;			/* local header of manifest.json */
} Places;

static size_t
find_last(const EvBuffer *bytes, const char *signature)
{
	size_t		i = bytes->length - 4;

	while (i > 0 && memcmp(bytes->data + i, signature, 4) != 0)
		i--;
	return i;
}

static size_t
find_first(const EvBuffer *bytes, const char *signature, size_t from)
{
	while (memcmp(bytes->data + from, signature, 4) != 0)
		from++;
	return from;
}

/* Is this archive refused somewhere, by layout or by reading? */
static void
check_refused(MemoryFile *file, const char *name)
{
	EvError		error = {0};
	EvBuffer	got = {0};
	EvArchive  *archive;
	bool		accepted = false;

	archive = ev_archive_open(&file->file, (int64_t) file->bytes.length,
							  &error);
	if (archive != NULL)
		accepted = ev_archive_check_layout(archive, &error) &&
			ev_archive_read(archive, EV_RECORDS_MEMBER, 1000000, collect, &got,
							&error) &&
			ev_archive_read(archive, EV_MANIFEST_MEMBER, 1000000, collect,
							&got, &error);
	ok(!accepted && error.text[0] != '\0', "%s: %s", name, error.text);
	ev_archive_close(archive);
	ev_buffer_free(&got);
	ev_buffer_free(&file->bytes);
}

static Places
start_hostile(MemoryFile *file)
{
	Places		places;
	char		sha256[EV_SHA256_HEX];
	EvRecords	records;
	EvError		error;

	memory_file_start(file);
	make_package(file, 50, sha256, &records, &error);
	places.central = find_first(&file->bytes, "PK\1\2", 0);
	places.end = find_last(&file->bytes, "PK\5\6");
	places.second = find_first(&file->bytes, "PK\3\4", 1);
	return places;
}

static bool
layout_accepts(MemoryFile *file)
{
	EvError		error;

	return ev_layout_check(&file->file, (int64_t) file->bytes.length, &error);
}

/* Change one byte at an offset from some place. */
typedef struct Change
{
	const char *name;
	char		place;			/* l, m, c, d or e: which header */
	size_t		offset;
	char		byte;
} Change;

static void
test_changed_headers(void)
{
	static const Change changes[] = {
		{"encrypted", 'l', 6, 1}, {"encrypted, central", 'c', 8, 1},
		{"data descriptor", 'l', 6, 8},
		{"other method", 'l', 8, 0}, {"other method, central", 'c', 10, 0},
		{"other CRC", 'l', 14, 0x5A}, {"other CRC, central", 'c', 16, 0x5A},
		{"other packed size", 'l', 18, 0x11},
		{"other packed size, central", 'c', 20, 0x11},
		{"other size", 'l', 22, 0x11}, {"other size, central", 'c', 24, 0x11},
		{"other time", 'l', 10, 1}, {"other name", 'l', 30, 'R'},
		{"other name, central", 'c', 46, 'R'},
		{"name with a zero byte", 'c', 49, 0},
		{"extra field length", 'l', 28, 1},
		{"extra field length, central", 'c', 30, 4},
		{"member comment", 'c', 32, 1}, {"other disk", 'c', 34, 1},
		{"second member elsewhere", 'd', 42, 1},
		{"first member elsewhere", 'c', 42, 1},
		{"three members", 'e', 8, 3}, {"one member", 'e', 10, 1},
		{"directory size", 'e', 12, 1}, {"directory offset", 'e', 16, 1},
		{"archive comment length", 'e', 20, 1}, {"disk number", 'e', 4, 1},
		{"second local header damaged", 'm', 0, 'Q'},
		{"compressed data damaged", 'l', 60, 0x7F}
	};
	size_t		i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
	{
		const Change *change = &changes[i];
		MemoryFile	file;
		Places		places = start_hostile(&file);
		size_t		at = change->offset;

		if (change->place == 'c')
			at += places.central;
		else if (change->place == 'd')
			at += find_last(&file.bytes, "PK\1\2");
		else if (change->place == 'm')
			at += places.second;
		else if (change->place == 'e')
			at += places.end;
		file.bytes.data[at] = change->byte;

		/* libzip may be the first to refuse it; the layout alone must. */
		ok(at == 60 || !layout_accepts(&file), "the layout shows it: %s",
		   change->name);
		check_refused(&file, change->name);
	}
}

/* Several bytes at an offset from some place, for the layout alone. */
static void
test_layout(void)
{
	static const struct
	{
		const char *fault;
		char		place;		/* l, c, d or e as above; b is l and c */
		size_t		offset;
		const char *bytes;
		size_t		length;
	}			changes[] = {
		{"points behind its own end", 'e', 16, "\0\0\0\x7F", 4},
		{"damaged directory entry", 'c', 0, "PK\1\3", 4},
		{"damaged ZIP64 end record", 'e', 8, "\xFF\xFF\xFF\xFF", 4},
		{"unknown member or extra field", 'c', 28, "\x40\0", 2},
		{"longer than the archive", 'p', 0, "\xFF\xFF\xFF\x7F", 4},
		{"bytes outside its members", 'q', 0, "\1\0\0\0", 4},
		{"bytes around its directory", 'e', 12, "\1\0\0\0", 4},
		{"split over several disks", 'e', 8, "\1\0", 2}
	};
	MemoryFile	file;
	EvError		error;
	size_t		i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
	{
		Places		places = start_hostile(&file);
		size_t		second = find_last(&file.bytes, "PK\1\2");
		char	   *data = file.bytes.data;
		size_t		length = changes[i].length;

		switch (changes[i].place)
		{
			case 'c':
				data += places.central + changes[i].offset;
				break;
			case 'e':
				data += places.end + changes[i].offset;
				break;
			case 'p':
				/* The packed size of the first member, in both headers. */
				memcpy(data + 18, changes[i].bytes, length);
				data += places.central + 20;
				break;
			case 'q':
				/* And of the second one. */
				memcpy(data + places.second + 18, changes[i].bytes, length);
				data += second + 20;
				break;
		}
		memcpy(data, changes[i].bytes, length);
		error.text[0] = '\0';
		ok(!ev_layout_check(&file.file, (int64_t) file.bytes.length, &error) &&
		   strstr(error.text, changes[i].fault) != NULL, "layout: %s",
		   error.text);
		ev_buffer_free(&file.bytes);
	}

	memory_file_start(&file);
	ev_buffer_append(&file.bytes,
					 "PK\5\6\0\0\0\0\xFF\xFF\xFF\xFF\0\0\0\0\0\0\0\0\0\0",
					 22);
	ok(!ev_layout_check(&file.file, 22, &error) &&
	   strstr(error.text, "no ZIP64 end record") != NULL, "layout: %s",
	   error.text);
	ev_buffer_free(&file.bytes);
}

/* A file that stops giving bytes at any moment is an error. */
static void
test_failing_reads(void)
{
	MemoryFile	file;
	int			reads;
	bool		done = false;
	bool		layout_done = false;
	int			silent = 0;

	start_hostile(&file);
	for (reads = 0; !(done && layout_done) && reads < 1000; reads++)
	{
		EvError		error = {EV_ERROR_NONE, ""};
		EvBuffer	got = {0};
		EvArchive  *archive;

		file.reads_left = reads;
		layout_done = layout_accepts(&file);
		file.reads_left = reads;
		archive = ev_archive_open(&file.file, (int64_t) file.bytes.length,
								  &error);
		done = archive != NULL &&
			ev_archive_read(archive, EV_RECORDS_MEMBER, 1000000, collect,
							&got, &error) &&
			ev_archive_read(archive, EV_MANIFEST_MEMBER, 1000000, collect,
							&got, &error);
		silent += !done && error.text[0] == '\0';
		ev_archive_close(archive);
		ev_buffer_free(&got);
	}
	ok(done && layout_done && reads > 10, "an archive needs %d reads",
	   reads - 1);
	ok(silent == 0, "each read that fails is told");
	ev_buffer_free(&file.bytes);
}

/* A byte hidden between the end of the deflate stream and the next member. */
static void
test_slack(void)
{
	MemoryFile	spool;
	MemoryFile	out;
	EvMember	members[2];
	EvSpool    *writer;
	EvError		error;
	int64_t		size;

	memory_file_start(&spool);
	memory_file_start(&out);
	writer = ev_spool_create(&spool.file, 0, &error);
	ev_spool_feed(writer, MANIFEST, strlen(MANIFEST), &error);
	ev_spool_finish(writer, &members[0], &error);
	ev_spool_free(writer);
	ev_buffer_append(&spool.bytes, "x", 1);
	members[0].packed++;
	members[1] = members[0];
	members[0].name = EV_RECORDS_MEMBER;
	members[1].name = EV_MANIFEST_MEMBER;
	ev_archive_write(members, 2, &out.file, 0, &size, &error);
	check_refused(&out, "a byte behind the compressed data");
	ev_buffer_free(&spool.bytes);
}

static void
test_hostile(void)
{
	MemoryFile	file;
	Places		places;
	EvBuffer	old;
	size_t		cut;
	bool		crashed = false;

	start_hostile(&file);
	ev_buffer_append(&file.bytes, "x", 1);
	check_refused(&file, "bytes behind the end");

	/* A byte in front moves everything. */
	start_hostile(&file);
	old = file.bytes;
	memset(&file.bytes, 0, sizeof(file.bytes));
	ev_buffer_append(&file.bytes, "x", 1);
	ev_buffer_append(&file.bytes, old.data, old.length);
	ev_buffer_free(&old);
	check_refused(&file, "a byte in front");

	/* Both names changed in the same way: an unknown pair of members. */
	places = start_hostile(&file);
	memcpy(file.bytes.data + 30, "manifest.jso", 11);
	memcpy(file.bytes.data + places.central + 46, "manifest.jso", 11);
	check_refused(&file, "unknown member");

	/* Sizes that lie together in both headers: found by reading. */
	places = start_hostile(&file);
	file.bytes.data[22]++;
	file.bytes.data[places.central + 24]++;
	check_refused(&file, "size that lies in both headers");
	places = start_hostile(&file);
	file.bytes.data[22]--;
	file.bytes.data[places.central + 24]--;
	check_refused(&file, "smaller size in both headers");
	places = start_hostile(&file);
	file.bytes.data[14]++;
	file.bytes.data[places.central + 16]++;
	check_refused(&file, "CRC that lies in both headers");

	/* Both headers agree on what must not be. */
	places = start_hostile(&file);
	file.bytes.data[6] |= 1;
	file.bytes.data[places.central + 8] |= 1;
	check_refused(&file, "encrypted in both headers");
	places = start_hostile(&file);
	file.bytes.data[8] = 0;
	file.bytes.data[places.central + 10] = 0;
	check_refused(&file, "stored in both headers");
	test_slack();

	/* Every way to cut it off. */
	for (cut = 0;; cut += 13)
	{
		EvError		error = {0};
		EvArchive  *archive;

		start_hostile(&file);
		if (cut >= file.bytes.length)
			break;
		file.bytes.length = cut;
		archive = ev_archive_open(&file.file, (int64_t) cut, &error);
		if (archive != NULL && ev_archive_check_layout(archive, &error))
			crashed = true;
		ev_archive_close(archive);
		ev_buffer_free(&file.bytes);
	}
	ev_buffer_free(&file.bytes);
	ok(!crashed, "C52 an archive that is cut off is refused wherever it ends");
}

/* A small archive whose one member is far larger than its headers say. */
static void
test_bomb(void)
{
	MemoryFile	spool;
	MemoryFile	out;
	EvMember	members[2];
	EvSpool    *writer;
	EvArchive  *archive;
	EvBuffer	got = {0};
	EvError		error = {0};
	char		zeros[65536] = {0};
	int64_t		size;
	int			i;

	memory_file_start(&spool);
	memory_file_start(&out);
	writer = ev_spool_create(&spool.file, 0, &error);
	for (i = 0; i < 1000; i++)
		ev_spool_feed(writer, zeros, sizeof(zeros), &error);
	ev_spool_finish(writer, &members[0], &error);
	ev_spool_free(writer);
	members[0].name = EV_RECORDS_MEMBER;
	members[0].size = 100;
	members[1] = members[0];
	members[1].name = EV_MANIFEST_MEMBER;
	ok(ev_archive_write(members, 2, &out.file, 0, &size, &error) &&
	   size < 1000000, "a bomb in a small archive");
	archive = ev_archive_open(&out.file, size, &error);
	ok(archive != NULL && ev_archive_check_layout(archive, &error),
	   "has a good layout");
	ok(!ev_archive_read(archive, EV_RECORDS_MEMBER, 1000, collect, &got,
						&error) && got.length <= 65536,
	   "and stops at once: %s", error.text);
	ev_archive_close(archive);
	ev_buffer_free(&got);
	ev_buffer_free(&out.bytes);
	ev_buffer_free(&spool.bytes);
}

/* Sizes beyond 32 bits bring ZIP64 fields, and the layout check knows them. */
static void
test_zip64(void)
{
	MemoryFile	spool;
	MemoryFile	out;
	EvMember	members[2];
	EvSpool    *writer;
	EvArchive  *archive;
	EvError		error = {0};
	int64_t		size;

	memory_file_start(&spool);
	memory_file_start(&out);
	writer = ev_spool_create(&spool.file, 0, &error);
	ev_spool_feed(writer, MANIFEST, strlen(MANIFEST), &error);
	ev_spool_finish(writer, &members[0], &error);
	ev_spool_free(writer);
	members[1] = members[0];
	members[0].name = EV_RECORDS_MEMBER;
	members[0].size = INT64_C(5000000000);
	members[1].name = EV_MANIFEST_MEMBER;
	ok(ev_archive_write(members, 2, &out.file, 0, &size, &error),
	   "a member of 5 GB");
	ok(out.bytes.data[4] == 45, "needs version 45");
	archive = ev_archive_open(&out.file, size, &error);
	ok(archive != NULL && ev_archive_check_layout(archive, &error),
	   "ZIP64 layout: %s", error.text);
	ok(ev_archive_member_size(archive, EV_RECORDS_MEMBER) ==
	   INT64_C(5000000000), "its size is declared in full");
	ev_archive_close(archive);
	ev_buffer_free(&out.bytes);
	ev_buffer_free(&spool.bytes);
}

/*
 * Members that lie in the output already stay where they are, whichever form
 * their headers have; one that lies anywhere else is an error.
 */
static void
test_in_place(void)
{
	static const int64_t sizes[] = {
		1000, UINT32_MAX - INT64_C(1), UINT32_MAX + INT64_C(1)
	};
	int			i;
	int			off;

	for (i = 0; i < 3; i++)
	{
		for (off = -1; off <= 1; off++)
		{
			MemoryFile	out;
			EvMember	members[2];
			EvSpool    *writer;
			EvError		error = {0};
			EvBuffer	before = {0};
			int64_t		start;
			int64_t		size;
			bool		done;

			memory_file_start(&out);
			writer = ev_spool_create(&out.file, 100, &error);
			ev_spool_feed(writer, MANIFEST, strlen(MANIFEST), &error);
			ev_spool_finish(writer, &members[0], &error);
			ev_spool_free(writer);
			members[0].name = EV_RECORDS_MEMBER;
			members[0].size = sizes[i];
			members[1] = members[0];
			members[1].name = EV_MANIFEST_MEMBER;
			members[1].file = NULL;
			members[1].packed = 0;
			members[1].size = 0;
			ev_buffer_append(&before, out.bytes.data + 100,
							 (size_t) members[0].packed);
			start = 100 + off - ev_archive_header_bytes(&members[0]);
			done = ev_archive_write(members, 2, &out.file, start, &size,
									&error);
			ok(done == (off == 0), "size %lld, member off by %d: %s",
			   (long long) sizes[i], off, done ? "written" : error.text);
			ok(memcmp(out.bytes.data + 100, before.data, before.length) == 0,
			   "its bytes are the same");
			ev_buffer_free(&before);
			ev_buffer_free(&out.bytes);
		}
	}
}

/* A disk that is full at any moment is an error, never a short archive. */
static void
test_full_disk(void)
{
	EvRecords	records;
	EvError		error;
	char		sha256[EV_SHA256_HEX];
	int			writes;
	bool		done = false;
	bool		lied = false;

	for (writes = 0; !done && writes < 100; writes++)
	{
		MemoryFile	out;

		memory_file_start(&out);
		out.writes_left = writes;
		error.kind = EV_ERROR_NONE;
		done = make_package(&out, 50, sha256, &records, &error);
		if (!done && error.kind != EV_ERROR_IO)
			lied = true;
		ev_buffer_free(&out.bytes);
	}
	ok(done && writes > 3, "C52 the archive needs %d writes", writes - 1);
	ok(!lied, "C52 each failed write is an input/output error");
}

static void
test_hash_only(void)
{
	EvError		error = {0};
	EvRecords	kept;
	EvRecords	hashed;
	MemoryFile	out;
	char		sha256[EV_SHA256_HEX];
	int64_t		start;
	int64_t		size;
	EvPackage  *package = ev_package_create(NULL, NULL, &error);

	memory_file_start(&out);
	ok(write_rows(package, 50, &error) &&
	   ev_package_close_records(package, &hashed, &error),
	   "records can be hashed without a spool");
	ok(!ev_package_write_archive(package, MANIFEST, strlen(MANIFEST), &start,
								 &size, &error),
	   "but then there is no archive: %s", error.text);
	ok(!ev_package_close_records(package, &hashed, &error),
	   "and they close once only");
	ev_package_free(package);
	make_package(&out, 50, sha256, &kept, &error);
	is(hashed.sha256, kept.sha256, "both ways give the same hash");

	/* An empty export is a header and nothing else. */
	ev_buffer_reset(&out.bytes);
	ok(make_package(&out, 0, sha256, &kept, &error) && kept.bytes == 12,
	   "C36 an empty export is a package");
	ev_buffer_free(&out.bytes);
}

int
main(void)
{
	test_reproducible();
	test_call_patterns();
	test_reading();
	test_changed_headers();
	test_layout();
	test_failing_reads();
	test_hostile();
	test_bomb();
	test_zip64();
	test_in_place();
	test_full_disk();
	test_hash_only();
	return tap_done();
}
