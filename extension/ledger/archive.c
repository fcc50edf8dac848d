/*-------------------------------------------------------------------------
 *
 * archive.c
 *	  The bytes of an archive in the database.
 *
 * Chunks are written under the token of the attempt that made them, in the
 * transaction that selects this attempt's archive.  A worker that lost its
 * lease can therefore leave nothing behind, and if it could, nobody would
 * ever read it.
 *
 * Three digests stand above the bytes: one per chunk, one over the chunks'
 * digests and one over all bytes.  The first two let a download be checked
 * before its first byte and at every chunk, without reading everything twice.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "base/errors.h"
#include "ledger/archive.h"
#include "ledger/statement.h"

static void hash_or_raise(const void *data, size_t length,
						  unsigned char sha256[EV_SHA256_BYTES]);
static bytea *read_chunk(const pg_uuid_t *archive_token, int32 seq,
						 bool *intact);

static void
hash_or_raise(const void *data, size_t length,
			  unsigned char sha256[EV_SHA256_BYTES])
{
	EvError		error;

	if (!ev_sha256(data, length, sha256, &error))
		ev_raise(&error);
}

void
ev_chunk_store(const EvClaim *claim, int32 seq, const void *data,
			   size_t length, unsigned char sha256[EV_SHA256_BYTES])
{
	static EvStatement store = {
		"INSERT INTO evidence.archive_chunk"
		"       (attempt_token, seq, sha256, data, export_id)"
		" VALUES ($1, $2, $3, $4, $5)"
	};
	EvParameters p = {0};

	hash_or_raise(data, length, sha256);
	ev_statements_begin();
	ev_add_uuid(&p, &claim->token);
	ev_add_int4(&p, seq);
	ev_add_bytes(&p, sha256, EV_SHA256_BYTES);
	ev_add_bytes(&p, data, length);
	ev_add_uuid(&p, &claim->export_id);
	(void) ev_statement_run(&store, &p);
	ev_statements_end();
}

bytea *
ev_chunk_read(const pg_uuid_t *archive_token, int32 seq)
{
	bool		intact;
	bytea	   *data = read_chunk(archive_token, seq, &intact);

	if (data != NULL && !intact)
		ereport(ERROR,
				(errcode(EV_ERRCODE_MISMATCH),
				 errmsg("chunk %d of the archive is not what was stored",
						seq),
				 errhint("Do not use this archive. Request the export again and have the storage examined.")));
	return data;
}

/*
 * NULL if there is no such chunk.  Whether one that differs from its digest is
 * an error or one finding among others is for the caller to say.
 */
static bytea *
read_chunk(const pg_uuid_t *archive_token, int32 seq, bool *intact)
{
	static EvStatement read = {
		"SELECT data, sha256 FROM evidence.archive_chunk"
		" WHERE attempt_token = $1 AND seq = $2"
	};
	MemoryContext caller = CurrentMemoryContext;
	EvParameters p = {0};
	bytea	   *data = NULL;
	bytea	   *expected;
	unsigned char sha256[EV_SHA256_BYTES];
	bool		isnull;

	ev_statements_begin();
	ev_add_uuid(&p, archive_token);
	ev_add_int4(&p, seq);
	if (ev_statement_run_latest(&read, &p) == 1)
	{
		data = ev_result_bytes(0, 1, caller);
		expected = DatumGetByteaP(ev_result_datum(0, 2, &isnull));
		hash_or_raise(VARDATA(data), VARSIZE(data) - VARHDRSZ, sha256);
		*intact = VARSIZE(expected) - VARHDRSZ == EV_SHA256_BYTES &&
			ev_digest_equal(VARDATA(expected), sha256, EV_SHA256_BYTES);
	}
	ev_statements_end();
	return data;
}

bool
ev_chunks_check(const EvExportStatus *status)
{
	static EvStatement list = {
		"SELECT count(*), coalesce(sum(length(data)), 0)::bigint,"
		"       coalesce(min(seq), -1), coalesce(max(seq), -1),"
		"       string_agg(sha256, ''::bytea ORDER BY seq)"
		"  FROM evidence.archive_chunk"
		" WHERE attempt_token = $1"
	};
	EvParameters p = {0};
	unsigned char sha256[EV_SHA256_BYTES];
	char		hex[EV_SHA256_HEX];
	bool		isnull;
	bool		same;

	ev_statements_begin();
	ev_add_uuid(&p, &status->archive_token);
	(void) ev_statement_run_latest(&list, &p);
	same = ev_result_int8(0, 1) == status->archive_chunks &&
		ev_result_int8(0, 2) == status->archive_bytes &&
		ev_result_int4(0, 3) == 0 &&
		ev_result_int4(0, 4) == status->archive_chunks - 1;
	if (same)
	{
		bytea	   *digests = DatumGetByteaP(ev_result_datum(0, 5, &isnull));

		hash_or_raise(VARDATA(digests), VARSIZE(digests) - VARHDRSZ, sha256);
		ev_sha256_hex(sha256, hex);
		same = strcmp(hex, status->chunks_sha256) == 0;
	}
	ev_statements_end();
	return same;
}

bool
ev_chunks_check_bytes(const EvExportStatus *status)
{
	EvError		error;
	EvSha256   *hash;
	unsigned char sha256[EV_SHA256_BYTES];
	char		hex[EV_SHA256_HEX];
	bool		complete = true;

	if ((hash = ev_sha256_create(&error)) == NULL)
		ev_raise(&error);
	PG_TRY();
	{
		int32		seq;

		for (seq = 0; complete && seq < status->archive_chunks; seq++)
		{
			bytea	   *data;
			bool		intact;

			CHECK_FOR_INTERRUPTS();
			data = read_chunk(&status->archive_token, seq, &intact);
			complete = data != NULL && intact;
			if (complete &&
				!ev_sha256_update(hash, VARDATA(data),
								  VARSIZE(data) - VARHDRSZ, &error))
				ev_raise(&error);
			if (complete)
				pfree(data);
		}
		if (!ev_sha256_finish(hash, sha256, &error))
			ev_raise(&error);
	}
	PG_FINALLY();
	{
		ev_sha256_free(hash);
	}
	PG_END_TRY();

	ev_sha256_hex(sha256, hex);
	return complete && strcmp(hex, status->archive_sha256) == 0;
}

bool
ev_chunks_exist(const EvExportStatus *status)
{
	static EvStatement exist = {
		"SELECT 1 FROM evidence.archive_chunk WHERE attempt_token = $1 LIMIT 1"
	};
	EvParameters p = {0};
	bool		found;

	ev_statements_begin();
	ev_add_uuid(&p, &status->archive_token);
	found = ev_statement_run_latest(&exist, &p) == 1;
	ev_statements_end();
	return found;
}
