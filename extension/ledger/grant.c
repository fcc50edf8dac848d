/*-------------------------------------------------------------------------
 *
 * grant.c
 *	  One subject's permission to fetch one archive.
 *
 * The order is everything: the grant and the audit row are committed in one
 * transaction, the bytes are released in a later one.  So BEGIN; grant;
 * fetch; ROLLBACK gets no byte, whatever savepoints, cursors, exception
 * blocks or prepared transactions are put in between (requirement S1.53).
 *
 * Three things make the check sound.  The row is looked up in the newest
 * snapshot, not in the transaction's, so a revocation counts at once, also in
 * REPEATABLE READ and in the middle of a cursor.  Its xmin must not belong to
 * the current transaction, which includes all its subtransactions.  And the
 * commit record must be on disk: with synchronous_commit = off a crash could
 * otherwise lose the audit row of a download that took place.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/grant.h"
#include "ledger/statement.h"

int64
ev_grant_create(const pg_uuid_t *export_id, const EvExportStatus *status,
				const unsigned char *secret_sha256,
				const char *subject, const char *session_role,
				const char *reason)
{
	static EvStatement create = {
		"WITH new_grant AS ("
		"  INSERT INTO evidence.download_grant (secret_sha256, export_id,"
		"         archive_token, subject, session_role, reason, granted_at,"
		"         expires_at)"
		"  VALUES ($1, $2, $3, $4, $5, $6, $7,"
		"          least($7 + $8 * interval '1 second', $9))"
		"  RETURNING id, expires_at"
		"), history AS ("
		"  INSERT INTO evidence.export_event (at, export_id, event, version,"
		"         actor, session_role, reason, detail)"
		"  SELECT $7, $2, 'download_granted', $10, $4, $5, $6,"
		"         jsonb_build_object('grant', id, 'until', expires_at)"
		"    FROM new_grant"
		")"
		"SELECT id FROM new_grant"
	};
	EvParameters p = {0};
	int64		id;

	ev_statements_begin();
	ev_add_bytes(&p, secret_sha256, EV_SHA256_BYTES);
	ev_add_uuid(&p, export_id);
	ev_add_uuid(&p, &status->archive_token);
	ev_add_text(&p, subject);
	ev_add_text(&p, session_role);
	ev_add_text(&p, reason);
	ev_add_time(&p, ev_clock_now());
	ev_add_int4(&p, ev_grant_ttl);
	ev_add_time(&p, status->expires_at);
	ev_add_int8(&p, status->version);
	(void) ev_statement_run(&create, &p);
	id = ev_result_int8(0, 1);
	ev_statements_end();
	return id;
}

EvGrantAnswer
ev_grant_check(const unsigned char *secret_sha256,
			   const char *subject, EvGrant *grant)
{
	static EvStatement find = {
		"SELECT g.id, g.export_id, g.xmin, g.subject = $2,"
		"       g.expires_at <= $3, g.revoked_at IS NOT NULL,"
		"       e.state = 'READY' AND e.expires_at > $3"
		"         AND e.archive_token = g.archive_token,"
		"       g.archive_token, e.archive_chunks, e.object_key IS NOT NULL,"
		"       EXISTS (SELECT FROM evidence.finding AS f"
		"                WHERE f.export_id = e.id AND f.closed_at IS NULL"
		"                  AND f.severity = 'high')"
		"  FROM evidence.download_grant AS g"
		"  JOIN evidence.audit_export AS e ON e.id = g.export_id"
		" WHERE g.secret_sha256 = $1"
	};
	EvParameters p = {0};
	EvGrantAnswer answer;
	TransactionId xmin = InvalidTransactionId;
	bool		isnull;

	ev_statements_begin();
	ev_add_bytes(&p, secret_sha256, EV_SHA256_BYTES);
	ev_add_text(&p, subject);
	ev_add_time(&p, ev_clock_now());
	if (ev_statement_run_latest(&find, &p) != 1 || !ev_result_bool(0, 4))
		answer = EV_GRANT_UNKNOWN;
	else
	{
		grant->id = ev_result_int8(0, 1);
		(void) ev_result_uuid(0, 2, &grant->export_id);
		(void) ev_result_uuid(0, 8, &grant->archive_token);
		grant->archive_chunks = ev_result_int4(0, 9);
		grant->in_store = ev_result_bool(0, 10);
		xmin = DatumGetTransactionId(ev_result_datum(0, 3, &isnull));
		/* First, since a revocation of this transaction has its xmin. */
		if (ev_result_bool(0, 6))
			answer = EV_GRANT_REVOKED;
		else if (TransactionIdIsCurrentTransactionId(xmin))
			answer = EV_GRANT_UNCOMMITTED;
		else if (!ev_result_bool(0, 7))
			answer = EV_GRANT_ARCHIVE_GONE;
		else if (ev_result_bool(0, 5))
			answer = EV_GRANT_EXPIRED;
		else if (ev_result_bool(0, 11))
			answer = EV_GRANT_FROZEN;
		else
			answer = EV_GRANT_OPEN;
	}
	ev_statements_end();

	/* Nothing to do unless the grant was committed asynchronously. */
	if (answer == EV_GRANT_OPEN)
		XLogFlush(TransactionIdGetCommitLSN(xmin));
	return answer;
}

void
ev_grant_opened(const EvGrant *grant, const char *actor,
				const char *session_role)
{
	static EvStatement opened = {
		"INSERT INTO evidence.export_event (at, export_id, event, version,"
		"       actor, session_role, detail)"
		"SELECT $1, e.id, 'download_opened', e.version, $3, $4,"
		"       jsonb_build_object('grant', $5::bigint)"
		"  FROM evidence.audit_export AS e WHERE e.id = $2"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_time(&p, ev_clock_now());
	ev_add_uuid(&p, &grant->export_id);
	ev_add_text(&p, actor);
	ev_add_text(&p, session_role);
	ev_add_int8(&p, grant->id);
	(void) ev_statement_run(&opened, &p);
	ev_statements_end();
}
