/*-------------------------------------------------------------------------
 *
 * archive.h
 *	  The ZIP: write a reproducible one, read a hostile one.
 *
 * libzip is used here and nowhere else, ISA-L's deflate likewise.
 *
 * Writing goes in two steps, because a ZIP that every unpacker can read has
 * the sizes and the CRC in front of the data: first a member is compressed
 * into a spool (EvSpool), then ev_archive_write puts the container around
 * finished members.  If they were spooled to where the archive will have
 * them, nothing is copied.  A spool is memory or file, the caller's choice
 * through EvFile.
 *
 * Requirements S1.6, S1.37; cases C34 to C36, C52.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_ARCHIVE_H
#define EV_PACKAGE_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define EV_RECORDS_MEMBER "records.csv"
#define EV_MANIFEST_MEMBER "manifest.json"

/* Name and version of the compressor, as the manifest states them. */
extern const char *ev_archive_codec(void);

/*
 * A random-access byte store given by the caller: a PostgreSQL temporary
 * file, a FILE, a buffer.  read returns the bytes read, 0 at the end, -1 on
 * error; write and read are at absolute offsets.  The functions must not
 * longjmp: a server catches its own errors inside them.
 */
typedef struct EvFile
{
	void	   *arg;
	int64_t		(*read) (void *arg, int64_t offset, void *data, size_t length);
	bool		(*write) (void *arg, int64_t offset, const void *data,
						  size_t length);
} EvFile;

/* One compressed member: raw deflate bytes in [start, start + packed). */
typedef struct EvSpool EvSpool;

typedef struct EvMember
{
	const char *name;
	const EvFile *file;			/* where the compressed bytes lie */
	int64_t		start;			/* offset of the first of them */
	int64_t		packed;			/* their number */
	int64_t		size;			/* bytes before compression */
	uint32_t	crc;			/* CRC-32 before compression */
} EvMember;

/* Begin to compress a member into file at offset start. */
extern EvSpool *ev_spool_create(const EvFile *file, int64_t start,
								EvError *error);

/* Feed bytes; the output depends only on their sequence, not on the calls. */
extern bool ev_spool_feed(EvSpool *spool, const void *data, size_t length,
						  EvError *error);

/* Finish; fills everything of *member but the name. */
extern bool ev_spool_finish(EvSpool *spool, EvMember *member, EvError *error);

/* Compressed bytes written so far. */
extern int64_t ev_spool_packed(const EvSpool *spool);
extern void ev_spool_free(EvSpool *spool);	/* NULL is allowed */

/* Bytes of the local header in front of a member's data, and their limit. */
extern int64_t ev_archive_header_bytes(const EvMember *member);

#define EV_ARCHIVE_HEADER_ROOM(name) (30 + 20 + (int64_t) strlen(name))

/*
 * Write an archive of these members in this order to out, from offset start.
 * *size is the archive's length.  Same members, same bytes: no time, owner or
 * host enters.  No ZIP64, no extra field, no data descriptor unless a size
 * needs them.
 *
 * A member may lie in out itself, with exactly its local header's bytes free
 * in front of it and behind the member before; it is left where it is.
 * EV_ERROR_LIBRARY if libzip would have it elsewhere.
 */
extern bool ev_archive_write(const EvMember *members, int nmembers,
							 const EvFile *out, int64_t start, int64_t *size,
							 EvError *error);

/* Reading.  The archive is treated as hostile. */
typedef struct EvArchive EvArchive;

/* Takes bytes of a member; returns false with *error filled to stop. */
typedef bool (*EvReadFunction) (void *arg, const void *data, size_t length,
								EvError *error);

extern EvArchive *ev_archive_open(const EvFile *in, int64_t size,
								  EvError *error);
extern void ev_archive_close(EvArchive *archive);	/* NULL is allowed */

/*
 * Exactly records.csv and manifest.json, in this order, plain and not
 * encrypted, nothing before, between or behind them, local headers equal to
 * central ones?
 */
extern bool ev_archive_check_layout(EvArchive *archive, EvError *error);

/* Declared size of a member before compression, -1 if there is no such. */
extern int64_t ev_archive_member_size(EvArchive *archive, const char *name);

/*
 * Decompress one member into the caller's function, checking CRC and size;
 * stops with EV_ERROR_FORMAT as soon as more than limit bytes come out.
 */
extern bool ev_archive_read(EvArchive *archive, const char *name,
							int64_t limit, EvReadFunction function, void *arg,
							EvError *error);

#endif							/* EV_PACKAGE_ARCHIVE_H */
