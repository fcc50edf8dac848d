/*-------------------------------------------------------------------------
 *
 * utf8.c
 *	  Carry a text of the database to the package code, which wants UTF-8.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "catalog/namespace.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "process/utf8.h"

/*
 * Some encodings have bytes without a meaning, and the server stores them.
 * One of them must not make a whole range unexportable, so it is handed on as
 * a byte that is no UTF-8 either; the package code replaces it like any other
 * (case C16).
 */
const char *
ev_utf8_from_database(const char *bytes, size_t length,
					  size_t *converted_length)
{
	int			encoding = GetDatabaseEncoding();
	size_t		size = length * MAX_CONVERSION_GROWTH + 1;
	size_t		read = 0;
	size_t		written = 0;
	char	   *converted;
	Oid			function;

	*converted_length = length;
	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII)
		return bytes;
	function = FindDefaultConversionProc(encoding, PG_UTF8);
	if (size > INT_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("value of %zu bytes is too long to be converted to UTF-8",
						length)));
	converted = MemoryContextAllocHuge(CurrentMemoryContext, size);
	for (;;)
	{
		unsigned char *from = (unsigned char *) bytes + read;
		unsigned char *to = (unsigned char *) converted + written;

		read += pg_do_encoding_conversion_buf(function, encoding, PG_UTF8,
											  from, length - read,
											  to, size - written, true);
		written += strlen(converted + written);
		if (read >= length)
			break;
		converted[written++] = '\xff';
		read += Min(pg_encoding_mblen(encoding, bytes + read), length - read);
	}
	*converted_length = written;
	return converted;
}
