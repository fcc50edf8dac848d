/*-------------------------------------------------------------------------
 *
 * test_s3_classify.c
 *	  What each answer, and each lack of one, comes to: one table.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include <curl/curl.h>

#include "s3_classify.h"
#include "tap.h"

/* Flags of a row. */
#define SENT 1					/* something went out */
#define WHOLE 2					/* the whole body did */
#define WRITES 4
#define ERROR_BODY 8
#define FITS 16
#define OTHER_BODY 32
#define BUCKET 64
#define MARKER 128
#define ALL (SENT | WHOLE | WRITES)

/* What is expected. */
#define RETRY 1
#define MAYBE 2

typedef struct Row
{
	const char *name;
	int			transport;
	EvS3Break	broken;
	int			http_status;
	const char *code;
	int			flags;
	EvS3Outcome outcome;
	int			expected;
} Row;

static const Row rows[] = {
	/* Answers that are what they should be. */
	{"stored", 0, 0, 200, "", ALL | FITS, EV_S3_OK, 0},
	{"deleted", 0, 0, 204, "", ALL | FITS, EV_S3_OK, 0},

	/* A 200 that is none. */
	{"200 with an error", 0, 0, 200, "InternalError", ALL | ERROR_BODY, EV_S3_BUSY, RETRY | MAYBE},
	{"200 with SlowDown", 0, 0, 200, "SlowDown", ALL | ERROR_BODY, EV_S3_BUSY, RETRY | MAYBE},
	{"200 with an unknown error", 0, 0, 200, "Odd", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"200 with an error though it fits", 0, 0, 200, "Odd", ALL | ERROR_BODY | FITS, EV_S3_REFUSED, 0},
	{"200 with NoSuchUpload", 0, 0, 200, "NoSuchUpload", ALL | ERROR_BODY, EV_S3_ABSENT, 0},
	{"200 of a proxy", 0, 0, 200, "", ALL | OTHER_BODY, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"200 without what must be there", 0, 0, 200, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"200 to a read, of a proxy", 0, 0, 200, "", SENT | WHOLE | OTHER_BODY, EV_S3_UNKNOWN, RETRY},

	/* No final status. */
	{"100 alone", 0, 0, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"100 alone, by its number", 0, 0, 100, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},

	/* Redirects are never followed. */
	{"301", 0, 0, 301, "PermanentRedirect", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"302", 0, 0, 302, "", ALL, EV_S3_REFUSED, 0},
	{"307", 0, 0, 307, "TemporaryRedirect", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"304", 0, 0, 304, "", SENT, EV_S3_REFUSED, 0},

	/* Definite refusals. */
	{"400 without a word", 0, 0, 400, "", ALL, EV_S3_REFUSED, 0},
	{"400 wrong hash", 0, 0, 400, "XAmzContentSHA256Mismatch", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"400 wrong MD5", 0, 0, 400, "BadDigest", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"400 bad argument", 0, 0, 400, "InvalidArgument", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"400 region", 0, 0, 400, "AuthorizationHeaderMalformed", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"400 small parts", 0, 0, 400, "EntityTooSmall", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"405", 0, 0, 405, "MethodNotAllowed", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"411", 0, 0, 411, "MissingContentLength", SENT | WRITES | ERROR_BODY, EV_S3_REFUSED, 0},
	{"413", 0, 0, 413, "", ALL, EV_S3_REFUSED, 0},
	{"501", 0, 0, 501, "NotImplemented", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"501 without a word", 0, 0, 501, "", ALL, EV_S3_REFUSED, 0},

	/* Try again later. */
	{"400 RequestTimeout", 0, 0, 400, "RequestTimeout", ALL | ERROR_BODY, EV_S3_BUSY, RETRY},
	{"408", 0, 0, 408, "", ALL, EV_S3_BUSY, RETRY},
	{"409 at the same time", 0, 0, 409, "ConditionalRequestConflict", ALL | ERROR_BODY, EV_S3_BUSY, RETRY},
	{"409 aborted", 0, 0, 409, "OperationAborted", ALL | ERROR_BODY, EV_S3_BUSY, RETRY},
	{"409 without a word", 0, 0, 409, "", ALL, EV_S3_BUSY, RETRY},
	{"409 state of the bucket", 0, 0, 409, "InvalidBucketState", ALL | ERROR_BODY, EV_S3_REFUSED, 0},
	{"429", 0, 0, 429, "", ALL, EV_S3_BUSY, RETRY},
	{"500", 0, 0, 500, "InternalError", ALL | ERROR_BODY, EV_S3_BUSY, RETRY | MAYBE},
	{"500 of a proxy", 0, 0, 500, "", ALL | OTHER_BODY, EV_S3_BUSY, RETRY | MAYBE},
	{"500 to a read", 0, 0, 500, "InternalError", SENT | WHOLE | ERROR_BODY, EV_S3_BUSY, RETRY},
	{"502", 0, 0, 502, "", ALL | OTHER_BODY, EV_S3_BUSY, RETRY | MAYBE},
	{"503", 0, 0, 503, "SlowDown", ALL | ERROR_BODY, EV_S3_BUSY, RETRY | MAYBE},
	{"503 before the body", 0, 0, 503, "SlowDown", SENT | WRITES | ERROR_BODY, EV_S3_BUSY, RETRY},
	{"504", 0, 0, 504, "", ALL, EV_S3_BUSY, RETRY | MAYBE},

	/* Not there. */
	{"404 key", 0, 0, 404, "NoSuchKey", SENT | WHOLE | ERROR_BODY, EV_S3_ABSENT, 0},
	{"404 version", 0, 0, 404, "NoSuchVersion", SENT | WHOLE | ERROR_BODY, EV_S3_ABSENT, 0},
	{"404 upload", 0, 0, 404, "NoSuchUpload", ALL | ERROR_BODY, EV_S3_ABSENT, 0},
	{"404 look-up of a key", 0, 0, 404, "", SENT | WHOLE, EV_S3_ABSENT, 0},
	{"404 bucket", 0, 0, 404, "NoSuchBucket", ALL | ERROR_BODY, EV_S3_NO_BUCKET, 0},
	{"404 look-up of a bucket", 0, 0, 404, "", SENT | WHOLE | BUCKET, EV_S3_NO_BUCKET, 0},
	{"404 lifecycle", 0, 0, 404, "NoSuchLifecycleConfiguration", SENT | WHOLE | ERROR_BODY | BUCKET, EV_S3_ABSENT, 0},
	{"404 object lock", 0, 0, 404, "ObjectLockConfigurationNotFoundError", SENT | WHOLE | ERROR_BODY | BUCKET, EV_S3_ABSENT, 0},
	{"404 of a web server", 0, 0, 404, "", SENT | WHOLE | OTHER_BODY, EV_S3_REFUSED, 0},
	{"405 a delete marker", 0, 0, 405, "", SENT | WHOLE | MARKER, EV_S3_ABSENT, 0},
	{"410", 0, 0, 410, "", SENT | WHOLE, EV_S3_ABSENT, 0},
	{"412", 0, 0, 412, "PreconditionFailed", ALL | ERROR_BODY, EV_S3_EXISTS, 0},
	{"412 without a word", 0, 0, 412, "", ALL, EV_S3_EXISTS, 0},

	/* Keys and clocks. */
	{"403", 0, 0, 403, "AccessDenied", ALL | ERROR_BODY, EV_S3_DENIED, 0},
	{"403 without a word", 0, 0, 403, "", SENT | WHOLE, EV_S3_DENIED, 0},
	{"401", 0, 0, 401, "", SENT | WHOLE, EV_S3_DENIED, 0},
	{"403 signature", 0, 0, 403, "SignatureDoesNotMatch", ALL | ERROR_BODY, EV_S3_DENIED, 0},
	{"403 key", 0, 0, 403, "InvalidAccessKeyId", ALL | ERROR_BODY, EV_S3_DENIED, 0},
	{"403 expired", 0, 0, 403, "ExpiredToken", ALL | ERROR_BODY, EV_S3_DENIED, RETRY},
	{"400 expired", 0, 0, 400, "ExpiredToken", ALL | ERROR_BODY, EV_S3_DENIED, RETRY},
	{"400 token", 0, 0, 400, "InvalidToken", ALL | ERROR_BODY, EV_S3_DENIED, 0},
	{"403 skew", 0, 0, 403, "RequestTimeTooSkewed", ALL | ERROR_BODY, EV_S3_SKEW, 0},

	/* Never sent. */
	{"no such host", CURLE_COULDNT_RESOLVE_HOST, 0, 0, "", WRITES, EV_S3_UNREACHABLE, RETRY},
	{"refused connection", CURLE_COULDNT_CONNECT, 0, 0, "", WRITES, EV_S3_UNREACHABLE, RETRY},
	{"no time to connect", CURLE_OPERATION_TIMEDOUT, 0, 0, "", WRITES, EV_S3_UNREACHABLE, RETRY},
	{"handshake", CURLE_SSL_CONNECT_ERROR, 0, 0, "", WRITES, EV_S3_UNREACHABLE, RETRY},
	{"reset in the handshake", CURLE_RECV_ERROR, 0, 0, "", WRITES, EV_S3_UNREACHABLE, RETRY},
	{"certificate", CURLE_PEER_FAILED_VERIFICATION, 0, 0, "", WRITES, EV_S3_UNREACHABLE, 0},
	{"file of certificates", CURLE_SSL_CACERT_BADFILE, 0, 0, "", WRITES, EV_S3_UNREACHABLE, 0},
	{"our time before", 0, EV_S3_BREAK_TIME, 0, "", WRITES, EV_S3_UNREACHABLE, RETRY},

	/* Sent, and no answer. */
	{"got nothing", CURLE_GOT_NOTHING, 0, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"send error", CURLE_SEND_ERROR, 0, 0, "", SENT | WRITES, EV_S3_UNKNOWN, RETRY},
	{"receive error", CURLE_RECV_ERROR, 0, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"receive error after 100", CURLE_RECV_ERROR, 0, 100, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"receive error after 200", CURLE_RECV_ERROR, 0, 200, "", ALL | FITS, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"receive error to a read", CURLE_RECV_ERROR, 0, 0, "", SENT | WHOLE, EV_S3_UNKNOWN, RETRY},
	{"time-out", CURLE_OPERATION_TIMEDOUT, 0, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"time-out in the body", CURLE_OPERATION_TIMEDOUT, 0, 0, "", SENT | WRITES, EV_S3_UNKNOWN, RETRY},
	{"short answer", CURLE_PARTIAL_FILE, 0, 200, "", SENT | WHOLE, EV_S3_UNKNOWN, RETRY},
	{"odd answer", CURLE_WEIRD_SERVER_REPLY, 0, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"no HTTP", CURLE_UNSUPPORTED_PROTOCOL, 0, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"no rewind", CURLE_SEND_FAIL_REWIND, 0, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"our time", 0, EV_S3_BREAK_TIME, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"sent again", CURLE_ABORTED_BY_CALLBACK, EV_S3_BREAK_AGAIN, 0, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},
	{"endless answer", CURLE_WRITE_ERROR, EV_S3_BREAK_TOO_LONG, 200, "", ALL, EV_S3_UNKNOWN, RETRY | MAYBE},

	/* At this end. */
	{"stopped before", 0, EV_S3_BREAK_STOPPED, 0, "", WRITES, EV_S3_STOPPED, RETRY},
	{"stopped in the body", 0, EV_S3_BREAK_STOPPED, 0, "", SENT | WRITES, EV_S3_STOPPED, RETRY},
	{"stopped behind it", 0, EV_S3_BREAK_STOPPED, 0, "", ALL, EV_S3_STOPPED, RETRY | MAYBE},
	{"stopped read", CURLE_WRITE_ERROR, EV_S3_BREAK_STOPPED, 200, "", SENT | WHOLE, EV_S3_STOPPED, RETRY},
	{"source", CURLE_ABORTED_BY_CALLBACK, EV_S3_BREAK_SOURCE, 0, "", SENT | WRITES, EV_S3_LOCAL, 0},
	{"memory", CURLE_OUT_OF_MEMORY, 0, 0, "", WRITES, EV_S3_LOCAL, 0},
	{"memory before", 0, EV_S3_BREAK_MEMORY, 0, "", WRITES, EV_S3_LOCAL, 0},
	{"address", CURLE_URL_MALFORMAT, 0, 0, "", WRITES, EV_S3_REFUSED, 0},
	{"protocol", CURLE_UNSUPPORTED_PROTOCOL, 0, 0, "", WRITES, EV_S3_REFUSED, 0},
};

static void
fill(EvS3Answer *answer, const Row *row)
{
	ev_s3_answer_clear(answer);
	answer->transport = row->transport;
	answer->broken = row->broken;
	answer->http_status = row->http_status;
	answer->subject = (row->flags & BUCKET) != 0 ? EV_S3_SUBJECT_BUCKET :
		EV_S3_SUBJECT_OBJECT;
	answer->sent = (row->flags & SENT) != 0;
	answer->body_sent = (row->flags & WHOLE) != 0;
	answer->writes = (row->flags & WRITES) != 0;
	answer->is_error = (row->flags & ERROR_BODY) != 0;
	answer->has_body = (row->flags & (ERROR_BODY | OTHER_BODY)) != 0;
	answer->fits = (row->flags & FITS) != 0;
	answer->delete_marker = (row->flags & MARKER) != 0;
	strcpy(answer->code, row->code);
}

static void
test_rows(void)
{
	size_t		i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		const Row  *row = &rows[i];
		EvS3Answer	answer;
		EvS3Result	result;

		fill(&answer, row);
		ev_s3_classify(&answer, &result);
		if (!ok(result.outcome == row->outcome &&
				result.retry_helps == ((row->expected & RETRY) != 0) &&
				result.maybe_done == ((row->expected & MAYBE) != 0) &&
				(result.message[0] == '\0') == (row->outcome == EV_S3_OK),
				"%s: %s", row->name, ev_s3_outcome_name(row->outcome)))
			printf("#   got %s, retry %d, maybe %d, \"%s\"\n",
				   ev_s3_outcome_name(result.outcome), result.retry_helps,
				   result.maybe_done, result.message);
	}
}

static void
test_clock(void)
{
	EvS3Answer	answer;
	EvS3Result	result;

	/* A look-up has no body that could tell of the skew. */
	ev_s3_answer_clear(&answer);
	answer.http_status = 403;
	answer.sent = true;
	answer.now = 1000000;
	answer.store_time = answer.now + 901;
	ev_s3_classify(&answer, &result);
	ok(result.outcome == EV_S3_SKEW && result.skew == -901, "behind");
	is(result.message,
	   "the clock of this host is 901 seconds behind that of the store",
	   "what is said of it");
	answer.store_time = answer.now + 900;
	ev_s3_classify(&answer, &result);
	ok(result.outcome == EV_S3_DENIED, "not enough to be the reason");
	answer.store_time = answer.now - 5000;
	strcpy(answer.code, "AccessDenied");
	ev_s3_classify(&answer, &result);
	ok(result.outcome == EV_S3_DENIED, "the store has another reason");
	strcpy(answer.code, "RequestTimeTooSkewed");
	ev_s3_classify(&answer, &result);
	ok(result.outcome == EV_S3_SKEW && result.skew == 5000 &&
	   strstr(result.message, "5000 seconds ahead of") != NULL, "ahead");
	answer.store_time = EV_S3_NEVER;
	ev_s3_classify(&answer, &result);
	ok(result.outcome == EV_S3_SKEW && result.skew == 0 &&
	   result.store_time == EV_S3_NEVER, "the store tells no time");
}

static void
test_facts(void)
{
	EvS3Answer	answer;
	EvS3Result	result;
	EvFailure	failure;
	int			i;

	ev_s3_answer_clear(&answer);
	answer.http_status = 503;
	answer.retry_after = 7;
	strcpy(answer.code, "SlowDown");
	strcpy(answer.text, "Please reduce your request rate");
	strcpy(answer.request_id, "tx1");
	ev_s3_classify(&answer, &result);
	ok(result.http_status == 503 && result.retry_after == 7 &&
	   strcmp(result.request_id, "tx1") == 0, "what the store said");
	is(result.message, "HTTP 503 SlowDown: Please reduce your request rate",
	   "in a message");
	answer.retry_after = 1000000;
	ev_s3_classify(&answer, &result);
	ok(result.retry_after == 3600, "nobody waits for days");
	answer.retry_after = -1;
	ev_s3_classify(&answer, &result);
	ok(result.retry_after == -1, "or when nothing was said");

	/* The status of a broken transfer is nothing to go by. */
	ev_s3_answer_clear(&answer);
	answer.http_status = 100;
	answer.transport = CURLE_RECV_ERROR;
	answer.sent = true;
	strcpy(answer.text, "Recv failure: Connection reset by peer");
	ev_s3_classify(&answer, &result);
	ok(result.http_status == 0, "100 is no status");
	is(result.message, "Recv failure: Connection reset by peer",
	   "libcurl's own words");
	ev_failure_clear(&failure);
	ok(ev_s3_fail(&result, "could not store", &failure) ==
	   EV_STATUS_CONNECTION &&
	   strcmp(failure.doing, "could not store") == 0 &&
	   strcmp(failure.text, result.message) == 0, "as a failure");
	strcpy(result.hint, "Try later.");
	ev_s3_fail(&result, "could not store", &failure);
	is(failure.hint, "Try later.", "with the hint");
	for (i = EV_S3_ABSENT; i <= EV_S3_LOCAL; i++)
	{
		result.outcome = (EvS3Outcome) i;
		ok(ev_s3_fail(&result, NULL, &failure) != EV_STATUS_OK,
		   "%s is a failure", ev_s3_outcome_name((EvS3Outcome) i));
	}
}

int
main(void)
{
	test_rows();
	test_clock();
	test_facts();
	return tap_done();
}
