/*-------------------------------------------------------------------------
 *
 * delivery.c
 *	  The way of a finished archive into an object store, and out of it.
 *
 * No transaction stays open while something goes over the network, so
 * everything that must hold afterwards is written down before: the lease,
 * and that sending begins.  From there on the state of the object is unknown
 * until somebody has looked, whoever dies (requirement S3.52; case C48).  All
 * attempts at one archive use one key, which holds the token of the attempt
 * that made it, so sending twice is harmless (X3).
 *
 * The rows are locked in the order export, event, attempt, as a cancellation
 * does.  An uploader that wants to send locks the export first and so either
 * comes before a cancellation, which then plans the object's removal, or
 * learns of it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "base/settings.h"
#include "ledger/delivery.h"
#include "ledger/expiry.h"
#include "ledger/statement.h"

/*
 * After so many failures that count, an event is DEAD: about eight hours, as
 * the pauses grow to five minutes.
 */
#define MAX_DELIVERIES 100

/* The pause after the Nth failure: 2 s doubling to 5 min, with jitter. */
#define BACKOFF_SQL(attempts) \
	"least(300, 2 * power(2, least(" attempts ", 10)))" \
	" * (0.75 + random() / 2) * interval '1 second'"

#define LIVE_SQL \
	"u.ended_at IS NULL AND u.lease_until > evidence._now()"

static void end_lost_attempts(void);
static bool quarantine(const pg_uuid_t *token, const EvDelivered *found);
static void add_found(EvParameters *p, const pg_uuid_t *token,
					  const EvDelivered *found);

void
ev_delivery_announce(void)
{
	static EvStatement notify = {
		"SELECT pg_catalog.pg_notify('" EV_DELIVERY_CHANNEL "', '')"
	};

	ev_statements_begin();
	(void) ev_statement_run(&notify, NULL);
	ev_statements_end();
}

/*
 * A lost attempt counts like one that failed, since an archive that kills its
 * uploader every time must come to an end too.
 */
static void
end_lost_attempts(void)
{
	static EvStatement lose = {
		"WITH dead AS MATERIALIZED ("
		"  SELECT u.token, u.event_id FROM evidence.upload_attempt AS u"
		"    JOIN evidence.outbox_event AS o ON o.id = u.event_id"
		"   WHERE u.ended_at IS NULL AND u.lease_until <= evidence._now()"
		"     FOR UPDATE OF o, u SKIP LOCKED"
		"), attempt AS ("
		"  UPDATE evidence.upload_attempt AS u"
		"     SET ended_at = $1, outcome = 'lost', error_code = 'PE004'"
		"    FROM dead WHERE u.token = dead.token"
		")"
		"UPDATE evidence.outbox_event AS o"
		"   SET attempts = attempts + 1, error_code = 'PE004',"
		"       state = CASE WHEN attempts + 1 >= $2 THEN 'DEAD' ELSE state END,"
		"       version = version + (attempts + 1 >= $2)::int,"
		"       settled_at = CASE WHEN attempts + 1 >= $2 THEN $1 END,"
		"       reason = 'the uploader did not come back'"
		"  FROM dead"
		" WHERE o.id = dead.event_id AND o.state = 'PENDING'"
	};
	EvParameters p = {0};

	ev_add_time(&p, ev_clock_now());
	ev_add_int4(&p, MAX_DELIVERIES);
	(void) ev_statement_run_latest(&lose, &p);
}

/*
 * An upload stays in the bucket and at the key where an earlier attempt may
 * have put the object; a removal is done by whoever serves that bucket.
 */
void
ev_delivery_claim(const char *uploader, const char *actor, const char *bucket,
				  const char *prefix, Tuplestorestate *store)
{
	static EvStatement claim = {
		"WITH candidate AS MATERIALIZED ("
		"  SELECT o.id, o.kind, o.export_id, o.generation"
		"    FROM evidence.outbox_event AS o"
		"    JOIN evidence.audit_export AS e ON e.id = o.export_id"
		"   WHERE o.state = 'PENDING' AND o.next_attempt_at <= $5"
		"     AND NOT EXISTS ("
		"         SELECT FROM evidence.upload_attempt AS u"
		"          WHERE u.event_id = o.id AND u.ended_at IS NULL)"
		"     AND CASE o.kind"
		"         WHEN 'archive.upload' THEN"
		"           e.state = 'STAGED' AND e.generation = o.generation"
		"           AND NOT EXISTS ("
		"               SELECT FROM evidence.upload_attempt AS u"
		"                WHERE u.event_id = o.id AND u.sent_at IS NOT NULL"
		"                  AND u.bucket <> $3)"
		"         WHEN 'object.delete' THEN EXISTS ("
		"           SELECT FROM evidence.upload_attempt AS u"
		"            WHERE u.export_id = o.export_id"
		"              AND u.generation = o.generation"
		"              AND u.sent_at IS NOT NULL AND u.bucket = $3)"
		"         ELSE false END"
		"   ORDER BY o.next_attempt_at, o.id"
		"   LIMIT 1"
		"     FOR UPDATE OF o SKIP LOCKED"
		"), place AS ("
		/* Where an earlier attempt may have put the object, newest first. */
		"  SELECT c.*,"
		"         coalesce(u.archive_token, e.archive_token) AS archive_token,"
		"         coalesce(u.object_key, $4 || e.id || '/attempts/'"
		"                  || e.archive_token || '.zip') AS object_key,"
		/* The export's own version is that of its newest generation. */
		"         coalesce(CASE WHEN e.generation = c.generation"
		"           THEN e.object_version END, u.object_version)"
		"           AS object_version,"
		"         u.multipart_id, u.token IS NOT NULL AS look_up,"
		"         e.archive_bytes, e.archive_chunks, e.archive_sha256"
		"    FROM candidate AS c"
		"    JOIN evidence.audit_export AS e ON e.id = c.export_id"
		"    LEFT JOIN LATERAL ("
		"         SELECT * FROM evidence.upload_attempt AS u"
		"          WHERE u.export_id = c.export_id"
		"            AND u.generation = c.generation"
		"            AND u.sent_at IS NOT NULL AND u.bucket = $3"
		"          ORDER BY u.sent_at DESC LIMIT 1) AS u ON true"
		"), attempt AS ("
		"  INSERT INTO evidence.upload_attempt (token, event_id, number,"
		"         export_id, generation, archive_token, bucket, object_key,"
		"         object_version, uploader, actor, started_at, lease_until)"
		"  SELECT gen_random_uuid(), p.id,"
		"         (SELECT count(*) + 1 FROM evidence.upload_attempt AS u"
		"           WHERE u.event_id = p.id),"
		"         p.export_id, p.generation, p.archive_token, $3,"
		"         p.object_key, p.object_version, $1, $2, $5,"
		"         $5 + $6 * interval '1 second'"
		"    FROM place AS p"
		"  RETURNING token, number, lease_until"
		"), held AS ("
		/* Whoever locks the row next sees that it is not due any more. */
		"  UPDATE evidence.outbox_event AS o"
		"     SET next_attempt_at = attempt.lease_until"
		"    FROM candidate AS c, attempt"
		"   WHERE o.id = c.id"
		")"
		"SELECT a.token, p.kind, p.export_id, a.number, p.object_key,"
		"       p.object_version, p.archive_bytes, p.archive_chunks,"
		"       p.archive_sha256, p.look_up, p.multipart_id, $6"
		"  FROM place AS p CROSS JOIN attempt AS a"
	};
	EvParameters p = {0};

	ev_statements_begin();
	end_lost_attempts();
	ev_add_text(&p, uploader);
	ev_add_text(&p, actor);
	ev_add_text(&p, bucket);
	ev_add_text(&p, prefix);
	ev_add_time(&p, ev_clock_now());
	ev_add_int4(&p, ev_lease);
	(void) ev_statement_run_latest(&claim, &p);
	ev_result_store(store);
	ev_statements_end();
}

/*
 * An upload has lost its lease also when its export is not STAGED any more.
 */
bool
ev_delivery_renew(const pg_uuid_t *token)
{
	static EvStatement renew = {
		"UPDATE evidence.upload_attempt AS u"
		"   SET lease_until = evidence._now() + $2 * interval '1 second'"
		"  FROM evidence.outbox_event AS o, evidence.audit_export AS e"
		" WHERE u.token = $1 AND " LIVE_SQL
		"   AND o.id = u.event_id AND o.state = 'PENDING'"
		"   AND e.id = u.export_id"
		"   AND (o.kind <> 'archive.upload'"
		"        OR (e.state = 'STAGED' AND e.archive_token = u.archive_token))"
	};
	EvParameters p = {0};
	bool		alive;

	ev_statements_begin();
	ev_add_uuid(&p, token);
	ev_add_int4(&p, ev_lease);
	alive = ev_statement_run_latest(&renew, &p) == 1;
	ev_statements_end();
	return alive;
}

bool
ev_delivery_archive(const pg_uuid_t *token, pg_uuid_t *archive_token)
{
	static EvStatement find = {
		"SELECT u.archive_token,"
		"       u.lease_until < evidence._now() + $2 * interval '0.5 second'"
		"  FROM evidence.upload_attempt AS u"
		"  JOIN evidence.audit_export AS e ON e.id = u.export_id"
		" WHERE u.token = $1 AND " LIVE_SQL
		"   AND e.state = 'STAGED' AND e.archive_token = u.archive_token"
	};
	EvParameters p = {0};
	bool		alive;
	bool		half_over = false;

	ev_statements_begin();
	ev_add_uuid(&p, token);
	ev_add_int4(&p, ev_lease);
	alive = ev_statement_run_latest(&find, &p) == 1;
	if (alive)
	{
		(void) ev_result_uuid(0, 1, archive_token);
		half_over = ev_result_bool(0, 2);
	}
	ev_statements_end();
	if (alive && half_over)
		alive = ev_delivery_renew(token);
	return alive;
}

bool
ev_delivery_sending(const pg_uuid_t *token, const char *multipart_id)
{
	static EvStatement lock_export = {
		"SELECT 1 FROM evidence.audit_export AS e"
		" WHERE e.id = (SELECT export_id FROM evidence.upload_attempt"
		"                WHERE token = $1)"
		"   AND e.state = 'STAGED'"
		"   FOR SHARE"
	};
	static EvStatement sending = {
		"UPDATE evidence.upload_attempt AS u"
		"   SET sent_at = coalesce(u.sent_at, $2), multipart_id = $3"
		"  FROM evidence.audit_export AS e"
		" WHERE u.token = $1 AND " LIVE_SQL
		"   AND e.id = u.export_id AND e.state = 'STAGED'"
		"   AND e.archive_token = u.archive_token"
	};
	EvParameters export = {0};
	EvParameters p = {0};
	bool		alive;

	ev_statements_begin();
	ev_add_uuid(&export, token);
	ev_add_uuid(&p, token);
	ev_add_time(&p, ev_clock_now());
	ev_add_text(&p, multipart_id);
	alive = ev_statement_run_latest(&lock_export, &export) == 1 &&
		ev_statement_run_latest(&sending, &p) == 1;
	ev_statements_end();
	return alive;
}

/* $1 to $7 of the two statements below. */
static void
add_found(EvParameters *p, const pg_uuid_t *token, const EvDelivered *found)
{
	ev_add_uuid(p, token);
	ev_add_int8(p, found->bytes);
	ev_add_text(p, found->sha256);
	ev_add_text(p, found->version);
	ev_add_time(p, ev_clock_now());
}

EvDeliveryVerdict
ev_delivery_confirm(const pg_uuid_t *token, const EvDelivered *found)
{
	static EvStatement confirm = {
		"WITH live AS MATERIALIZED ("
		"  SELECT u.*, u.event_id AS event FROM evidence.upload_attempt AS u"
		"    JOIN evidence.audit_export AS e ON e.id = u.export_id"
		"   WHERE u.token = $1 AND " LIVE_SQL
		"     FOR NO KEY UPDATE OF e, u"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = 'READY', version = e.version + 1, ready_at = $5,"
		"         expires_at = $5 + $6 * interval '1 second',"
		"         object_bucket = live.bucket, object_key = live.object_key,"
		"         object_version = $4,"
		"         locked_until = CASE WHEN $7 IS NOT NULL THEN $8 END,"
		"         legal_hold = $9"
		"    FROM live"
		"   WHERE e.id = live.export_id AND e.state = 'STAGED'"
		"     AND e.generation = live.generation"
		"     AND e.archive_token = live.archive_token"
		"     AND e.archive_bytes = $2 AND e.archive_sha256 = $3"
		"  RETURNING e.id, e.version, live.event, e.archive_token,"
		"            live.number, live.bucket"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'DELIVERED', version = o.version + 1,"
		"         settled_at = $5, error_code = NULL, reason = NULL"
		"    FROM export WHERE o.id = export.event AND o.state = 'PENDING'"
		"), attempt AS ("
		"  UPDATE evidence.upload_attempt AS u"
		"     SET ended_at = $5, outcome = 'confirmed', object_version = $4"
		"    FROM export WHERE u.token = $1"
		"), chunks AS ("
		"  DELETE FROM evidence.archive_chunk AS c"
		"   USING export WHERE c.attempt_token = export.archive_token"
		"), history AS ("
		"  INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"         to_state, version, actor, session_role, attempt, detail)"
		"  SELECT $5, id, 'ready', 'STAGED', 'READY', version, current_user,"
		"         session_user, left(archive_token::text, 8),"
		"         jsonb_build_object('upload', number, 'bucket', bucket,"
		"           'bytes', $2::bigint, 'sha256', $3::text,"
		"           'lock', $7::text, 'legal_hold', $9::boolean)"
		"    FROM export"
		")"
		"SELECT id FROM export"
	};
	EvParameters p = {0};
	pg_uuid_t	export_id;
	bool		done;

	ev_statements_begin();
	add_found(&p, token, found);
	ev_add_int4(&p, ev_download_window);
	ev_add_text(&p, found->lock_mode);
	ev_add_time(&p, found->locked_until);
	ev_add_bool(&p, found->legal_hold);
	done = ev_statement_run_latest(&confirm, &p) == 1;
	if (done)
		(void) ev_result_uuid(0, 1, &export_id);
	ev_statements_end();
	if (done)
	{
		ev_export_check_combination(&export_id);
		return EV_DELIVERY_DONE;
	}
	return quarantine(token, found) ? EV_DELIVERY_QUARANTINED :
		EV_DELIVERY_LOST;
}

/*
 * Under a key that nobody else can know lies something else.  It is left as
 * it is for whoever examines it, and nothing is sent again (requirement
 * S3.57).  False if the attempt is not the archive's any more.
 */
static bool
quarantine(const pg_uuid_t *token, const EvDelivered *found)
{
	static EvStatement isolate = {
		"WITH live AS MATERIALIZED ("
		"  SELECT u.* FROM evidence.upload_attempt AS u"
		"    JOIN evidence.audit_export AS e ON e.id = u.export_id"
		"   WHERE u.token = $1 AND " LIVE_SQL
		"     AND e.state = 'STAGED' AND e.archive_token = u.archive_token"
		"     FOR NO KEY UPDATE OF e, u"
		"), before AS MATERIALIZED ("
		"  SELECT e.id, e.archive_bytes, e.archive_sha256"
		"    FROM evidence.audit_export AS e JOIN live ON e.id = live.export_id"
		"), export AS ("
		"  UPDATE evidence.audit_export AS e"
		"     SET state = 'FAILED', version = e.version + 1, failed_at = $5,"
		"         error_code = 'PE006',"
		"         error_message = 'the object store has other content under the key of this archive',"
		"         error_hint = 'Have the object examined; table evidence.finding tells which. Then request the export again.',"
		EV_NO_ARCHIVE_SQL
		"    FROM live"
		"   WHERE e.id = live.export_id AND e.state = 'STAGED'"
		"  RETURNING e.id, e.version, live.event_id, live.archive_token,"
		"            live.bucket, live.object_key"
		"), job AS ("
		"  UPDATE evidence.background_job AS j"
		"     SET state = 'FAILED', version = j.version + 1, finished_at = $5,"
		"         error_code = 'PE006'"
		"    FROM export"
		"   WHERE j.export_id = export.id AND j.state = 'SUCCEEDED'"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'CLOSED', version = o.version + 1, settled_at = $5,"
		"         error_code = 'PE006', reason = 'other content in the store'"
		"    FROM export WHERE o.id = export.event_id"
		"), attempt AS ("
		"  UPDATE evidence.upload_attempt AS u"
		"     SET ended_at = $5, outcome = 'quarantined', error_code = 'PE006',"
		"         object_version = $4"
		"    FROM export WHERE u.token = $1"
		"), chunks AS ("
		"  DELETE FROM evidence.archive_chunk AS c"
		"   USING export WHERE c.attempt_token = export.archive_token"
		"), finding AS ("
		"  INSERT INTO evidence.finding (rule, scope, subject, export_id,"
		"         severity, action, detail, found_at, seen_at)"
		"  SELECT 'object_differs', export.bucket, export.object_key,"
		"         export.id, 'high', 'record',"
		"         jsonb_build_object('ledger_bytes', before.archive_bytes,"
		"           'ledger_sha256', before.archive_sha256,"
		"           'store_bytes', $2::bigint, 'store_sha256', $3::text),"
		"         $5, $5"
		"    FROM export JOIN before ON before.id = export.id"
		"  ON CONFLICT (scope, rule, subject) WHERE closed_at IS NULL"
		"  DO UPDATE SET seen_at = $5"
		"), history AS ("
		"  INSERT INTO evidence.export_event (at, export_id, event, from_state,"
		"         to_state, version, actor, session_role, attempt, reason)"
		"  SELECT $5, id, 'failed', 'STAGED', 'FAILED', version, current_user,"
		"         session_user, left(archive_token::text, 8), 'PE006'"
		"    FROM export"
		")"
		"SELECT id FROM export"
	};
	EvParameters p = {0};
	pg_uuid_t	export_id;
	bool		done;

	ev_statements_begin();
	add_found(&p, token, found);
	done = ev_statement_run_latest(&isolate, &p) == 1;
	if (done)
		(void) ev_result_uuid(0, 1, &export_id);
	ev_statements_end();
	if (done)
		ev_export_check_combination(&export_id);
	return done;
}

bool
ev_delivery_removed(const pg_uuid_t *token, bool existed)
{
	static EvStatement removed = {
		"WITH live AS MATERIALIZED ("
		"  SELECT u.* FROM evidence.upload_attempt AS u"
		"    JOIN evidence.outbox_event AS o ON o.id = u.event_id"
		"   WHERE u.token = $1 AND " LIVE_SQL
		"     AND o.kind = 'object.delete' AND o.state = 'PENDING'"
		"     FOR UPDATE OF o, u"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = 'DELIVERED', version = o.version + 1,"
		"         settled_at = $2, error_code = NULL, reason = NULL"
		"    FROM live WHERE o.id = live.event_id"
		"), attempt AS ("
		"  UPDATE evidence.upload_attempt AS u"
		"     SET ended_at = $2,"
		"         outcome = CASE WHEN $3 THEN 'removed' ELSE 'absent' END"
		"    FROM live WHERE u.token = live.token"
		")"
		"INSERT INTO evidence.export_event (at, export_id, event, version,"
		"       actor, session_role, attempt, detail)"
		"SELECT $2, live.export_id, 'object_removed', e.version, current_user,"
		"       session_user, left(live.archive_token::text, 8),"
		"       jsonb_build_object('bucket', live.bucket, 'existed', $3)"
		"  FROM live JOIN evidence.audit_export AS e ON e.id = live.export_id"
	};
	EvParameters p = {0};
	bool		done;

	ev_statements_begin();
	ev_add_uuid(&p, token);
	ev_add_time(&p, ev_clock_now());
	ev_add_bool(&p, existed);
	done = ev_statement_run_latest(&removed, &p) == 1;
	ev_statements_end();
	return done;
}

char *
ev_delivery_fail(const pg_uuid_t *token, EvDeliveryFailure failure,
				 const char *code, const char *message, int retry_after,
				 TimestampTz not_before)
{
	static EvStatement fail = {
		"WITH live AS MATERIALIZED ("
		"  SELECT u.token, u.event_id, o.state = 'PENDING' AS open,"
		"         $4 = 'definite' OR ($4 = 'transient' AND o.attempts + 1 >= $8)"
		"           AS final"
		"    FROM evidence.upload_attempt AS u"
		"    JOIN evidence.outbox_event AS o ON o.id = u.event_id"
		"   WHERE u.token = $1 AND " LIVE_SQL
		"     FOR UPDATE OF o, u"
		"), attempt AS ("
		"  UPDATE evidence.upload_attempt AS u"
		"     SET ended_at = $5, error_code = $2, error_message = $3,"
		"         outcome = CASE WHEN NOT live.open THEN 'cancelled'"
		"                        WHEN $4 = 'deferral' THEN 'deferred'"
		"                        ELSE 'failed' END"
		"    FROM live WHERE u.token = live.token"
		"), event AS ("
		"  UPDATE evidence.outbox_event AS o"
		"     SET state = CASE WHEN live.final THEN 'DEAD' ELSE state END,"
		"         version = o.version + live.final::int,"
		"         settled_at = CASE WHEN live.final THEN $5 END,"
		"         attempts = o.attempts + ($4 <> 'deferral')::int,"
		"         error_code = $2, reason = $3,"
		"         next_attempt_at = greatest("
		"           $5 + greatest($6 * interval '1 second', CASE"
		"             WHEN $4 = 'deferral' THEN interval '1 second'"
		"             ELSE " BACKOFF_SQL("o.attempts") " END), $7)"
		"    FROM live"
		"   WHERE o.id = live.event_id AND live.open"
		"  RETURNING o.state"
		")"
		"SELECT coalesce((SELECT state FROM event),"
		"                (SELECT o.state FROM evidence.outbox_event AS o"
		"                  WHERE o.id = live.event_id))"
		"  FROM live"
	};
	static const char *const names[] = {
		"deferral", "transient", "definite"
	};
	EvParameters p = {0};
	char	   *state = NULL;

	ev_statements_begin();
	ev_add_uuid(&p, token);
	ev_add_text(&p, code);
	ev_add_text(&p, message);
	ev_add_text(&p, names[failure]);
	ev_add_time(&p, ev_clock_now());
	ev_add_int4(&p, retry_after);
	ev_add_time(&p, not_before);
	ev_add_int4(&p, MAX_DELIVERIES);
	if (ev_statement_run_latest(&fail, &p) == 1)
		state = ev_result_text(0, 1);
	ev_statements_end();
	return state;
}

void
ev_delivery_status(Tuplestorestate *store)
{
	static EvStatement status = {
		"SELECT $1, $2, $3, $4,"
		"       count(*) FILTER (WHERE kind = 'archive.upload'"
		"                          AND state = 'PENDING'),"
		"       count(*) FILTER (WHERE kind = 'archive.upload'"
		"                          AND state = 'DEAD'),"
		"       count(*) FILTER (WHERE kind = 'object.delete'"
		"                          AND state = 'PENDING'),"
		"       count(*) FILTER (WHERE kind = 'object.delete'"
		"                          AND state = 'DEAD'),"
		"       min(created_at) FILTER (WHERE state = 'PENDING'),"
		"       extract(epoch FROM min("
		"         greatest(next_attempt_at - evidence._now(), interval '0'))"
		"         FILTER (WHERE state = 'PENDING'))::double precision"
		"  FROM evidence.outbox_event"
		" WHERE kind IN ('archive.upload', 'object.delete')"
		"   AND state IN ('PENDING', 'DEAD')"
	};
	EvParameters p = {0};

	ev_statements_begin();
	ev_add_text(&p, ev_delivery == EV_DELIVERY_OBJECT_STORE ?
				"object_store" : "database");
	ev_add_int4(&p, ev_download_window);
	ev_add_int4(&p, ev_staged_deadline);
	ev_add_int4(&p, ev_lease);
	(void) ev_statement_run_latest(&status, &p);
	ev_result_store(store);
	ev_statements_end();
}
