/*-------------------------------------------------------------------------
 *
 * s3_classify.c
 *	  What an answer of an object store, or the lack of one, means.
 *
 * The order of the questions matters.  First libcurl's verdict: after a broken
 * transfer the status may be that of an earlier "100 Continue", which says
 * nothing.  Then whether the answer is one that an object store gives: a 200
 * can hold an error, and a 200 of somebody else's proxy holds a web page.
 * Only then the status and the store's own word for it (cases C49, C50).
 *
 * Unknown is a result of its own.  Whatever was sent and not answered may
 * have been carried out, so it is neither a success nor a failure, and only
 * looking at the store settles it (case C48).
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "s3_classify.h"

/* Beyond this, stores refuse signatures; they say so only where they may. */
#define SKEW_LIMIT (15 * 60)

#define RETRY_AFTER_LIMIT 3600

/* The store's words for one thing, whatever the status. */
typedef struct CodeRule
{
	const char *code;
	EvS3Outcome outcome;
	bool		retry_helps;
	const char *hint;
} CodeRule;

static const CodeRule code_rules[] = {
	{"RequestTimeTooSkewed", EV_S3_SKEW, false, ""},

	/* Keys are read anew for each request, so new ones end this. */
	{"ExpiredToken", EV_S3_DENIED, true, "The temporary credentials have expired. Renew them; they are read again at the next request."},
	{"TokenRefreshRequired", EV_S3_DENIED, true, "Renew the temporary credentials; they are read again at the next request."},
	{"InvalidToken", EV_S3_DENIED, false, "Renew the temporary credentials, or remove AWS_SESSION_TOKEN if there are none."},
	{"InvalidAccessKeyId", EV_S3_DENIED, false, "The store does not know this access key. Check the credentials."},
	{"SignatureDoesNotMatch", EV_S3_DENIED, false, "Check the secret key and the region."},
	{"AuthorizationHeaderMalformed", EV_S3_REFUSED, false, "Check the region."},
	{"NoSuchBucket", EV_S3_NO_BUCKET, false, "Check the name of the bucket, or make it."},
	{"NoSuchKey", EV_S3_ABSENT, false, ""},
	{"NoSuchVersion", EV_S3_ABSENT, false, ""},
	{"NoSuchUpload", EV_S3_ABSENT, false, ""},
	{"NoSuchLifecycleConfiguration", EV_S3_ABSENT, false, ""},
	{"ObjectLockConfigurationNotFoundError", EV_S3_ABSENT, false, ""},
	{"NoSuchObjectLockConfiguration", EV_S3_ABSENT, false, ""},
	{"PreconditionFailed", EV_S3_EXISTS, false, ""},
	{"RequestTimeout", EV_S3_BUSY, true, ""},
	{"SlowDown", EV_S3_BUSY, true, ""},
	{"ServiceUnavailable", EV_S3_BUSY, true, ""},
	{"InternalError", EV_S3_BUSY, true, ""},
	{"Throttling", EV_S3_BUSY, true, ""},
	{"RequestLimitExceeded", EV_S3_BUSY, true, ""},
	{"OperationAborted", EV_S3_BUSY, true, ""},
	{"ConditionalRequestConflict", EV_S3_BUSY, true, ""},
	{"NotImplemented", EV_S3_REFUSED, false, "This store does not offer what was asked for."},
	{"MethodNotAllowed", EV_S3_REFUSED, false, ""},
	{"InvalidBucketState", EV_S3_REFUSED, false, ""},
	{"EntityTooSmall", EV_S3_REFUSED, false, ""},
	{"XAmzContentSHA256Mismatch", EV_S3_REFUSED, false, "The bytes that arrived are not those of the digest that was announced."},
	{"BadDigest", EV_S3_REFUSED, false, "The bytes that arrived are not those of the digest that was announced."},
};

static const CodeRule *find_code(const char *code);
static void classify_break(const EvS3Answer *answer, EvS3Result *result);
static void classify_transport(const EvS3Answer *answer, EvS3Result *result);
static void classify_status(const EvS3Answer *answer, EvS3Result *result);
static void describe_skew(const EvS3Answer *answer, EvS3Result *result);

void
ev_s3_answer_clear(EvS3Answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	answer->retry_after = -1;
	answer->store_time = EV_S3_NEVER;
}

EvS3Outcome
ev_s3_result_set(EvS3Result *result, EvS3Outcome outcome,
				 const char *format,...)
{
	va_list		arguments;

	memset(result, 0, sizeof(*result));
	result->outcome = outcome;
	result->retry_after = -1;
	result->store_time = EV_S3_NEVER;
	result->locked_until = EV_S3_NEVER;
	va_start(arguments, format);
	vsnprintf(result->message, sizeof(result->message), format, arguments);
	va_end(arguments);
	return outcome;
}

/* Set what a branch decides; the facts of the answer are there already. */
static void
decide(EvS3Result *result, EvS3Outcome outcome, bool retry_helps,
	   const char *message)
{
	result->outcome = outcome;
	result->retry_helps = retry_helps;
	if (message != NULL)
		snprintf(result->message, sizeof(result->message), "%s", message);
}

static void
hint(EvS3Result *result, const char *text)
{
	snprintf(result->hint, sizeof(result->hint), "%s", text);
}

void
ev_s3_classify(const EvS3Answer *answer, EvS3Result *result)
{
	ev_s3_result_set(result, EV_S3_OK, "%s", "");
	if (answer->http_status >= 200)
		result->http_status = answer->http_status;
	result->store_time = answer->store_time;
	if (answer->store_time != EV_S3_NEVER)
		result->skew = answer->now - answer->store_time;
	if (answer->retry_after >= 0)
		result->retry_after = answer->retry_after < RETRY_AFTER_LIMIT ?
			answer->retry_after : RETRY_AFTER_LIMIT;
	snprintf(result->code, sizeof(result->code), "%s", answer->code);
	snprintf(result->request_id, sizeof(result->request_id), "%s",
			 answer->request_id);

	if (answer->broken != EV_S3_BREAK_NONE)
		classify_break(answer, result);
	else if (answer->transport != CURLE_OK)
		classify_transport(answer, result);
	else
		classify_status(answer, result);

	/*
	 * Has it perhaps been done?  A store makes no object of a part of a body.
	 * A 5xx may come from a proxy whose store has done the work.
	 */
	switch (result->outcome)
	{
		case EV_S3_UNKNOWN:
		case EV_S3_STOPPED:
		case EV_S3_LOCAL:
			result->maybe_done = answer->writes && answer->sent &&
				answer->body_sent;
			break;
		case EV_S3_BUSY:
			result->maybe_done = answer->writes && answer->sent &&
				answer->body_sent &&
				(answer->http_status >= 500 || answer->http_status < 300);
			break;
		default:
			break;
	}
}

/* It ended at our wish. */
static void
classify_break(const EvS3Answer *answer, EvS3Result *result)
{
	switch (answer->broken)
	{
		case EV_S3_BREAK_STOPPED:
			decide(result, EV_S3_STOPPED, true, "the request was stopped");
			break;
		case EV_S3_BREAK_SOURCE:
			decide(result, EV_S3_LOCAL, false, "the bytes to send could not be read, or are fewer than announced");
			break;
		case EV_S3_BREAK_MEMORY:
			decide(result, EV_S3_LOCAL, false, "out of memory");
			break;
		case EV_S3_BREAK_TIME:
			decide(result, answer->sent ? EV_S3_UNKNOWN : EV_S3_UNREACHABLE,
				   true, "the request took too long");
			break;
		case EV_S3_BREAK_AGAIN:
			decide(result, EV_S3_UNKNOWN, true,
				   "the connection was closed without an answer");
			break;
		default:
			decide(result, EV_S3_UNKNOWN, true, "the answer is too long");
			break;
	}
}

/* libcurl failed: was anything sent, and is it our own fault? */
static void
classify_transport(const EvS3Answer *answer, EvS3Result *result)
{
	decide(result, answer->sent ? EV_S3_UNKNOWN : EV_S3_UNREACHABLE, true,
		   answer->text[0] != '\0' ? answer->text :
		   curl_easy_strerror((CURLcode) answer->transport));
	switch (answer->transport)
	{
		case CURLE_OUT_OF_MEMORY:
		case CURLE_FAILED_INIT:
		case CURLE_BAD_FUNCTION_ARGUMENT:
		case CURLE_UNKNOWN_OPTION:
		case CURLE_READ_ERROR:
		case CURLE_WRITE_ERROR:
		case CURLE_NOT_BUILT_IN:
			result->outcome = EV_S3_LOCAL;
			result->retry_helps = false;
			break;
		case CURLE_URL_MALFORMAT:
		case CURLE_UNSUPPORTED_PROTOCOL:
			/* The protocol of an answer can be none, too. */
			if (answer->sent)
				break;
			result->outcome = EV_S3_REFUSED;
			result->retry_helps = false;
			hint(result, "Check the endpoint and the name of the bucket.");
			break;
		case CURLE_PEER_FAILED_VERIFICATION:
		case CURLE_SSL_ISSUER_ERROR:
		case CURLE_SSL_CACERT_BADFILE:
		case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		case CURLE_SSL_CERTPROBLEM:
			result->retry_helps = false;
			hint(result, "The store's certificate is not trusted. Name the file of the authority that issued it.");
			break;
		default:
			break;
	}
}

static const CodeRule *
find_code(const char *code)
{
	size_t		i;

	for (i = 0; i < sizeof(code_rules) / sizeof(code_rules[0]); i++)
	{
		if (strcmp(code_rules[i].code, code) == 0)
			return &code_rules[i];
	}
	return NULL;
}

/* A message of what came: the status, the store's word and its text. */
static void
describe(const EvS3Answer *answer, EvS3Result *result)
{
	snprintf(result->message, sizeof(result->message), "HTTP %d%s%s%s%s",
			 answer->http_status, answer->code[0] != '\0' ? " " : "",
			 answer->code, answer->text[0] != '\0' ? ": " : "",
			 answer->text);
}

/* An answer that no object store gives to this request. */
static void
decide_foreign(const EvS3Answer *answer, EvS3Result *result)
{
	result->outcome = EV_S3_UNKNOWN;
	result->retry_helps = true;
	snprintf(result->message, sizeof(result->message), "HTTP %d, but not the answer of an object store",
			 answer->http_status);
	hint(result, "Check the endpoint, and whether something between here and the store answers in its place.");
}

/* A 401 or 403 for which the store had no word: a look-up has no body. */
static void
decide_denied(const EvS3Answer *answer, EvS3Result *result)
{
	decide(result, EV_S3_DENIED, false, NULL);
	hint(result, "Check the credentials and what they are allowed to do.");
	if (llabs(result->skew) > SKEW_LIMIT && answer->code[0] == '\0')
		result->outcome = EV_S3_SKEW;
}

/* A 404: what is not there? */
static void
decide_absent(const EvS3Answer *answer, EvS3Result *result)
{
	if (answer->has_body && !answer->is_error)
	{
		/* A web server's page, not a store's word that there is nothing. */
		decide_foreign(answer, result);
		result->outcome = EV_S3_REFUSED;
		result->retry_helps = false;
	}
	else if (answer->subject == EV_S3_SUBJECT_BUCKET &&
			 answer->code[0] == '\0')
	{
		decide(result, EV_S3_NO_BUCKET, false, NULL);
		hint(result, "Check the name of the bucket, or make it.");
	}
	else
		decide(result, EV_S3_ABSENT, false, NULL);
}

/* The statuses that mean the same whatever the store says beside them. */
static void
decide_status(const EvS3Answer *answer, EvS3Result *result)
{
	switch (answer->http_status)
	{
		case 401:
		case 403:
			decide_denied(answer, result);
			break;
		case 404:
		case 410:
			decide_absent(answer, result);
			break;
		case 412:
			decide(result, EV_S3_EXISTS, false, NULL);
			break;
		case 408:
		case 409:				/* somebody else is at it (case C48) */
		case 425:
		case 429:
			decide(result, EV_S3_BUSY, true, NULL);
			break;
		case 501:
		case 505:
			decide(result, EV_S3_REFUSED, false, NULL);
			break;
		default:
			if (answer->http_status >= 500)
				decide(result, EV_S3_BUSY, true, NULL);
			else
				decide(result, EV_S3_REFUSED, false, NULL);
			break;
	}
}

/* There is a whole answer. */
static void
classify_status(const EvS3Answer *answer, EvS3Result *result)
{
	const CodeRule *rule = find_code(answer->code);

	describe(answer, result);
	if (answer->http_status >= 200 && answer->http_status < 300 &&
		!answer->is_error)
	{
		if (answer->fits)
			decide(result, EV_S3_OK, false, "");
		else
			decide_foreign(answer, result);
	}
	else if (answer->http_status < 200)
		decide(result, EV_S3_UNKNOWN, true, "there was no final answer");
	else if (answer->http_status >= 300 && answer->http_status < 400)
	{
		decide(result, EV_S3_REFUSED, false, NULL);
		hint(result, "The store sends us elsewhere, and that is never followed. Check the endpoint, the region and the style of addresses.");
	}
	else if (answer->delete_marker && answer->http_status == 405)
		decide(result, EV_S3_ABSENT, false, NULL);
	else if (rule != NULL)
	{
		decide(result, rule->outcome, rule->retry_helps, NULL);
		hint(result, rule->hint);
	}
	else if (answer->http_status < 300)
	{
		/* An Error document in a 200 with a word that is not known. */
		decide(result, EV_S3_REFUSED, false, NULL);
	}
	else
		decide_status(answer, result);
	if (result->outcome == EV_S3_SKEW)
		describe_skew(answer, result);
}

/* Say how far the clocks are apart, for the key is not to blame. */
static void
describe_skew(const EvS3Answer *answer, EvS3Result *result)
{
	if (answer->store_time == EV_S3_NEVER)
		snprintf(result->message, sizeof(result->message), "the clocks of this host and of the store differ too much");
	else
		snprintf(result->message, sizeof(result->message), "the clock of this host is %lld seconds %s that of the store",
				 llabs((long long) result->skew),
				 result->skew < 0 ? "behind" : "ahead of");
	hint(result, "Check the clock of this host.");
}

const char *
ev_s3_outcome_name(EvS3Outcome outcome)
{
	static const char *const names[] = {
		"ok", "absent", "exists", "denied", "skew", "no_bucket", "locked",
		"refused", "busy", "unreachable", "unknown", "stopped", "local"
	};

	return names[outcome];
}

EvStatus
ev_s3_fail(const EvS3Result *result, const char *doing, EvFailure *failure)
{
	EvStatus	status = EV_STATUS_INTERNAL;

	switch (result->outcome)
	{
		case EV_S3_DENIED:
			status = EV_STATUS_DENIED;
			break;
		case EV_S3_ABSENT:
			status = EV_STATUS_GONE;
			break;
		case EV_S3_EXISTS:
			status = EV_STATUS_CONFLICT;
			break;
		case EV_S3_LOCKED:
		case EV_S3_SKEW:
		case EV_S3_NO_BUCKET:
			status = EV_STATUS_STATE;
			break;
		case EV_S3_REFUSED:
			status = EV_STATUS_ARGUMENT;
			break;
		case EV_S3_BUSY:
		case EV_S3_UNREACHABLE:
		case EV_S3_UNKNOWN:
			status = EV_STATUS_CONNECTION;
			break;
		case EV_S3_LOCAL:
			status = EV_STATUS_FILE;
			break;
		case EV_S3_STOPPED:
		case EV_S3_OK:
			break;
	}
	ev_fail(failure, status, doing, "%s", result->message);
	if (result->hint[0] != '\0')
		ev_fail_hint(failure, "%s", result->hint);
	return status;
}
