/*-------------------------------------------------------------------------
 *
 * package.c
 *	  Build one evidence package: rows in, archive out.
 *
 * The bytes of records.csv go from the CSV writer block by block into the
 * hash and into the compressor; they exist in full nowhere.  The manifest can
 * be written only when the hash is known, so records.csv is closed first and
 * the archive is put together last.
 *
 * Both members are spooled to where the archive has them, so that it grows
 * around them and no byte is copied.  How long the header in front of
 * records.csv is depends on its size, which is known last: the spool leaves
 * room for the longest, and the archive may begin a little behind offset 0.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "package.h"

struct EvPackage
{
	const EvFile *spool_file;	/* NULL: only hash */
	EvSpool    *spool;
	EvCsvWriter *csv;
	EvSha256   *hash;
	uint64_t	bytes;
	bool		closed;
	EvMember	records;
};

static bool take_block(void *arg, const void *data, size_t length,
					   EvError *error);
static bool spool_manifest(EvPackage *package, const char *manifest,
						   size_t length, EvMember *member, EvError *error);

/*
 * All parts are made before the first row, so that running out of memory shows
 * at once and not after an hour.
 */
EvPackage *
ev_package_create(EvRedactor *redactor, const EvFile *spool, EvError *error)
{
	EvPackage  *package = calloc(1, sizeof(EvPackage));

	if (package == NULL)
	{
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		return NULL;
	}

	package->spool_file = spool;
	package->csv = ev_csv_create(redactor, take_block, package, error);
	package->hash = ev_sha256_create(error);
	if (spool != NULL)
		package->spool =
			ev_spool_create(spool, EV_ARCHIVE_HEADER_ROOM(EV_RECORDS_MEMBER),
							error);
	if (package->csv == NULL || package->hash == NULL ||
		(spool != NULL && package->spool == NULL))
	{
		ev_package_free(package);
		return NULL;
	}
	return package;
}

void
ev_package_free(EvPackage *package)
{
	if (package == NULL)
		return;
	ev_csv_free(package->csv);
	ev_sha256_free(package->hash);
	ev_spool_free(package->spool);
	free(package);
}

EvCsvWriter *
ev_package_csv(EvPackage *package)
{
	return package->csv;
}

/*
 * After the records are closed their spool is gone, and its final length
 * stays.
 */
int64_t
ev_package_packed(const EvPackage *package)
{
	if (package->spool != NULL)
		return ev_spool_packed(package->spool);
	return package->records.packed;
}

/*
 * The spool's buffers, more than half a megabyte, are released here and not at
 * the end, because the manifest needs such a spool again.
 */
bool
ev_package_close_records(EvPackage *package, EvRecords *records,
						 EvError *error)
{
	unsigned char digest[EV_SHA256_BYTES];

	if (package->closed)
		return ev_error_set(error, EV_ERROR_ARGUMENT,
							"records are closed already");
	if (!ev_csv_finish(package->csv, error) ||
		!ev_sha256_finish(package->hash, digest, error))
		return false;
	if (package->spool != NULL)
	{
		if (!ev_spool_finish(package->spool, &package->records, error))
			return false;
		package->records.name = EV_RECORDS_MEMBER;
		ev_spool_free(package->spool);
		package->spool = NULL;
	}

	package->closed = true;
	records->bytes = package->bytes;
	ev_sha256_hex(digest, records->sha256);
	records->cells = *ev_csv_counts(package->csv);
	return true;
}

/*
 * The manifest is compressed behind the records into the same file.  Calling
 * this again with another manifest overwrites it, so a failed attempt to write
 * leaves nothing behind that matters.
 */
bool
ev_package_write_archive(EvPackage *package, const char *manifest,
						 size_t manifest_length, int64_t *start,
						 int64_t *size, EvError *error)
{
	EvMember	members[2];

	if (!package->closed || package->spool_file == NULL)
		return ev_error_set(error, EV_ERROR_ARGUMENT,
							"records are not closed or were not kept");

	members[0] = package->records;
	*start = members[0].start - ev_archive_header_bytes(&members[0]);
	return spool_manifest(package, manifest, manifest_length, &members[1],
						  error) &&
		ev_archive_write(members, 2, package->spool_file, *start, size,
						 error);
}

/*
 * Hash and compressor see the same block in one go, while it is in the
 * processor's cache.
 */
static bool
take_block(void *arg, const void *data, size_t length, EvError *error)
{
	EvPackage  *package = arg;

	package->bytes += length;
	return ev_sha256_update(package->hash, data, length, error) &&
		(package->spool == NULL ||
		 ev_spool_feed(package->spool, data, length, error));
}

static bool
spool_manifest(EvPackage *package, const char *manifest, size_t length,
			   EvMember *member, EvError *error)
{
	EvSpool    *spool;
	bool		done;

	memset(member, 0, sizeof(*member));
	member->name = EV_MANIFEST_MEMBER;
	member->size = (int64_t) length;
	spool = ev_spool_create(package->spool_file,
							package->records.start + package->records.packed +
							ev_archive_header_bytes(member), error);
	done = spool != NULL &&
		ev_spool_feed(spool, manifest, length, error) &&
		ev_spool_finish(spool, member, error);
	ev_spool_free(spool);
	return done;
}
