/*-------------------------------------------------------------------------
 *
 * s3_request.c
 *	  One signed request to an object store.
 *
 * libcurl signs (Signature Version 4) what it is given as headers, besides
 * "host" and "x-amz-date".  Releases before 8 have gaps there; what avoids
 * each of them is marked with "Signing:" below, and the strict encoding of
 * addresses is in s3_text.c.  Signing is never switched off for any of them,
 * and every way is right with later releases as well.
 *
 * A request that changes something is sent at most once.  libcurl repeats a
 * request by itself when a kept connection turns out to be closed, whatever
 * its method; a second start is therefore refused here, and such connections
 * are used again for a moment only, in which closing them is unlikely.
 *
 * The multi interface drives the one transfer, so that a signal or the tick
 * ends it within a quarter of a second, name look-up included.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "package/digest.h"

#include "s3_transfer.h"

#define TICK_MS 250

/* No answer but an object needs more. */
#define BODY_LIMIT (1024 * 1024)

#define TRANSFER_BUFFER (128 * 1024)

/* Seconds a kept connection may have been idle before something is changed. */
#define WRITE_IDLE_SECONDS 3

#define EMPTY_SHA256 \
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static bool has_dot_segment(const char *key);
static bool prepare(EvS3Transfer *transfer, const EvCredentials *credentials,
					const char *address);
static void run(EvS3Transfer *transfer);

void
ev_s3_request_init(EvS3Request *request, EvS3Method method, const char *key)
{
	memset(request, 0, sizeof(*request));
	request->method = method;
	request->key = key;
	request->writes = method != EV_S3_GET && method != EV_S3_HEAD;
	request->repeatable = !request->writes;
	request->subject = key == NULL ? EV_S3_SUBJECT_BUCKET :
		EV_S3_SUBJECT_OBJECT;
	request->expect = EV_S3_EXPECT_NOTHING;
}

/*
 * Signing: one line per name, none empty, and no name that is another one
 * followed by "-", or libcurl signs something else than it sends.
 */
void
ev_s3_request_header(EvS3Request *request, const char *name,
					 const char *value)
{
	if (request->header_count < EV_S3_HEADERS_LIMIT && value[0] != '\0')
		snprintf(request->headers[request->header_count++],
				 EV_S3_HEADER_TEXT, "%s: %s", name, value);
}

/* Nothing of the keys or of a query may be in what others will read. */
static void
clean_answer(EvS3Answer *answer, const EvCredentials *credentials)
{
	const char *const secrets[] = {
		credentials->secret_key, credentials->session_token,
		credentials->access_key
	};

	ev_s3_clean(answer->text, secrets, 3);
	ev_s3_clean(answer->code, secrets, 3);
	ev_s3_clean(answer->request_id, secrets, 3);
}

/* A request that cannot be made right is not sent. */
static EvS3Outcome
check_request(const EvS3Request *request, EvS3Result *result)
{
	if (request->key != NULL && (request->key[0] == '\0' ||
								 strlen(request->key) > EV_S3_KEY_LIMIT))
		return ev_s3_result_set(result, EV_S3_REFUSED, "the key of an object has 1 to %d bytes",
								EV_S3_KEY_LIMIT);
	if (request->body_length < 0 ||
		(request->source != NULL && !ev_s3_is_sha256(request->sha256)))
		return ev_s3_result_set(result, EV_S3_REFUSED, "length or SHA-256 of the body is wrong");
	return EV_S3_OK;
}

/* Ask and get the answer; nothing of libcurl's is left of it. */
static void
transact(EvS3Transfer *transfer, const EvCredentials *credentials)
{
	const EvS3Request *request = transfer->request;
	EvS3Buffer	address;

	memset(&address, 0, sizeof(address));
	ev_s3_buffer_text(&address, transfer->s3->address);
	ev_s3_buffer_text(&address, "/");
	if (request->key != NULL)
		ev_s3_buffer_encoded(&address, request->key, true);
	ev_s3_query_write(&request->query, &address);

	/* A new one each time: a failure can leave options that cannot be set. */
	transfer->easy = curl_easy_init();
	ev_s3_watch_secret(credentials->secret_key);
	if (!address.failed && prepare(transfer, credentials, address.data))
		run(transfer);
	else
		transfer->answer.broken = EV_S3_BREAK_MEMORY;

	/* libcurl's copies of the keys go now: some released, some emptied. */
	curl_easy_cleanup(transfer->easy);
	ev_s3_forget_secret();
	curl_slist_free_all(transfer->headers);
	ev_s3_buffer_free(&address);
}

EvS3Outcome
ev_s3_perform(EvS3 *s3, const EvS3Request *request, EvS3Reply *reply,
			  EvS3Result *result)
{
	EvS3Reply	unread;
	EvCredentials credentials;
	EvFailure	failure;
	EvS3Transfer transfer;

	if (reply == NULL)
		reply = &unread;
	memset(reply, 0, sizeof(*reply));
	if (check_request(request, result) != EV_S3_OK)
		return result->outcome;
	ev_failure_clear(&failure);
	memset(&credentials, 0, sizeof(credentials));

	/* Asked for anew: they may have been rotated since the last request. */
	if (ev_credentials_get(s3->credentials, &credentials,
						   &failure) != EV_STATUS_OK)
	{
		ev_s3_result_set(result, EV_S3_LOCAL, "%s%s%s", failure.doing,
						 failure.doing[0] != '\0' ? ": " : "", failure.text);
		snprintf(result->hint, sizeof(result->hint), "%.319s", failure.hint);
		return result->outcome;
	}

	memset(&transfer, 0, sizeof(transfer));
	transfer.s3 = s3;
	transfer.request = request;
	transfer.reply = reply;
	transfer.content_length = -1;
	reply->body.limit = BODY_LIMIT;
	ev_s3_answer_clear(&transfer.answer);
	transact(&transfer, &credentials);
	ev_s3_read_document(&transfer);
	transfer.answer.fits = ev_s3_is_fitting(&transfer);
	clean_answer(&transfer.answer, &credentials);
	ev_credentials_wipe(&credentials);
	ev_s3_classify(&transfer.answer, result);
	if (reply == &unread || result->outcome != EV_S3_OK)
	{
		ev_s3_buffer_free(&reply->body);
		memset(&reply->object, 0, sizeof(reply->object));
	}
	return result->outcome;
}

static ssize_t
read_memory(void *arg, void *buffer, size_t size)
{
	EvS3Transfer *transfer = arg;
	size_t		rest = (size_t) (transfer->request->body_length -
								 transfer->memory_offset);

	if (size > rest)
		size = rest;
	memcpy(buffer, transfer->request->body + transfer->memory_offset, size);
	transfer->memory_offset += (int64_t) size;
	return (ssize_t) size;
}

static bool
seek_memory(void *arg, int64_t offset)
{
	EvS3Transfer *transfer = arg;

	transfer->memory_offset = offset;
	return true;
}

/*
 * libcurl wants more of the body.  A source that ends early must end the
 * request: a read of 0 bytes would leave both sides waiting for each other.
 */
static size_t
on_read(char *buffer, size_t size, size_t count, void *arg)
{
	EvS3Transfer *transfer = arg;
	int64_t		rest = transfer->request->body_length - transfer->given;
	size_t		want = size * count;
	ssize_t		got;

	if ((int64_t) want > rest)
		want = (size_t) rest;
	if (want == 0)
		return 0;
	got = transfer->source->read(transfer->source->arg, buffer, want);
	if (got <= 0 || (size_t) got > want)
	{
		transfer->answer.broken = EV_S3_BREAK_SOURCE;
		return CURL_READFUNC_ABORT;
	}
	transfer->given += got;
	return (size_t) got;
}

/*
 * Once the whole body is on its way the store may have done its work.  That
 * stays so when libcurl goes back to the start of the body, as newer ones do
 * when a connection breaks, whether or not they may send it again.
 */
static void
note_body(EvS3Transfer *transfer)
{
	if (transfer->given == transfer->request->body_length)
		transfer->answer.body_sent = true;
}

/*
 * libcurl wants to begin the body anew.  Without this it would send the rest
 * of it, or give up where it need not (case C51).
 */
static int
on_seek(void *arg, curl_off_t offset, int origin)
{
	EvS3Transfer *transfer = arg;

	if (origin != SEEK_SET ||
		!transfer->source->seek(transfer->source->arg, offset))
		return CURL_SEEKFUNC_FAIL;
	note_body(transfer);
	transfer->given = offset;
	return CURL_SEEKFUNC_OK;
}

/*
 * A connection stands, and the request is about to be sent, perhaps not for
 * the first time: a connection that was kept and is closed without a byte of
 * an answer makes libcurl send any request once more, a DELETE or the start
 * of a multipart upload too, and tell nobody.
 */
static int
on_start(void *arg, char *remote, char *local, int remote_port,
		 int local_port)
{
	EvS3Transfer *transfer = arg;

	(void) remote;
	(void) local;
	(void) remote_port;
	(void) local_port;
	if (transfer->starts++ > 0 && !transfer->request->repeatable)
	{
		transfer->answer.broken = EV_S3_BREAK_AGAIN;
		return CURL_PREREQFUNC_ABORT;
	}
	transfer->answer.sent = true;
	return CURL_PREREQFUNC_OK;
}

/* Add "name: value" to the headers, leaving no copy of it behind. */
static bool
add_header(EvS3Transfer *transfer, const char *name, const char *value)
{
	struct curl_slist *longer;
	size_t		size = strlen(name) + strlen(value) + 3;
	char	   *line = malloc(size);

	if (line == NULL)
		return false;
	snprintf(line, size, "%s: %s", name, value);
	longer = curl_slist_append(transfer->headers, line);
	explicit_bzero(line, size);
	free(line);
	if (longer == NULL)
		return false;
	transfer->headers = longer;
	return true;
}

/*
 * The headers that are signed.  Signing: libcurl before 8.0 takes the digest
 * of the body from x-amz-content-sha256, and signs that of an empty one if
 * there is none.  It knows nothing of session tokens.  It must not be given
 * x-amz-date, nor a name without a value to keep a header of its own away.
 */
static bool
make_headers(EvS3Transfer *transfer, const EvCredentials *credentials)
{
	const EvS3Request *request = transfer->request;
	char		computed[EV_SHA256_HEX] = EMPTY_SHA256;
	char		base64[EV_S3_BASE64_TEXT];
	const char *sha256 = computed;
	int			i;

	if (request->source != NULL)
		sha256 = request->sha256;
	else if (request->body != NULL)
	{
		unsigned char digest[EV_SHA256_BYTES];

		if (!ev_sha256(request->body, (size_t) request->body_length, digest,
					   NULL))
			return false;
		ev_sha256_hex(digest, computed);
	}
	if (!add_header(transfer, "x-amz-content-sha256", sha256))
		return false;
	if (credentials->session_token != NULL &&
		!add_header(transfer, "x-amz-security-token",
					credentials->session_token))
		return false;

	/*
	 * Amazon asks for one of its own check sums, or an MD5, with everything
	 * that object lock or a lifecycle has to do with; the digest that is
	 * signed does not count as one.
	 */
	if (request->method == EV_S3_PUT)
	{
		ev_s3_base64(sha256, base64);
		if (!add_header(transfer, "x-amz-checksum-sha256", base64) ||
			!add_header(transfer, "x-amz-sdk-checksum-algorithm", "SHA256"))
			return false;
	}

	/* A text of ours is a document; libcurl would call it a form. */
	if (request->source == NULL &&
		(request->method == EV_S3_PUT || request->method == EV_S3_POST) &&
		!add_header(transfer, "content-type", "application/xml"))
		return false;
	for (i = 0; i < request->header_count; i++)
	{
		struct curl_slist *longer = curl_slist_append(transfer->headers,
													  request->headers[i]);

		if (longer == NULL)
			return false;
		transfer->headers = longer;
	}
	return true;
}

#define SET(option, value) \
	(failed = failed || curl_easy_setopt(easy, option, value) != CURLE_OK)

/* What every request of this handle has in common. */
static bool
set_common(EvS3Transfer *transfer)
{
	const EvS3 *s3 = transfer->s3;
	CURL	   *easy = transfer->easy;
	bool		failed = false;

	SET(CURLOPT_ERRORBUFFER, transfer->error);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_NOPROGRESS, 1L);
	SET(CURLOPT_USERAGENT, "pg_evidence/" EV_VERSION);
	SET(CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);

	/* The keys go to the store alone (case C54). */
	SET(CURLOPT_PROTOCOLS_STR, s3->https ? "https" : "http");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_NETRC, (long) CURL_NETRC_IGNORED);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
	if (s3->ca_file != NULL)
	{
		SET(CURLOPT_CAINFO, s3->ca_file);
		SET(CURLOPT_CAPATH, NULL);
	}

	SET(CURLOPT_CONNECTTIMEOUT_MS, (long) (s3->connect_seconds * 1000));
	if (!transfer->request->slow_answer)
	{
		SET(CURLOPT_LOW_SPEED_LIMIT, (long) s3->low_speed_bytes);
		SET(CURLOPT_LOW_SPEED_TIME, (long) s3->low_speed_seconds);
	}
	if (s3->rate_limit > 0)
	{
		SET(CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t) s3->rate_limit);
		SET(CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t) s3->rate_limit);
	}

	/* A look-up of a name that hangs is left behind. */
	SET(CURLOPT_QUICK_EXIT, 1L);

	SET(CURLOPT_BUFFERSIZE, (long) TRANSFER_BUFFER);
	SET(CURLOPT_UPLOAD_BUFFERSIZE, (long) TRANSFER_BUFFER);
	SET(CURLOPT_HEADERFUNCTION, ev_s3_on_header);
	SET(CURLOPT_HEADERDATA, transfer);
	SET(CURLOPT_WRITEFUNCTION, ev_s3_on_write);
	SET(CURLOPT_WRITEDATA, transfer);
	SET(CURLOPT_PREREQFUNCTION, on_start);
	SET(CURLOPT_PREREQDATA, transfer);
	return !failed;
}

/* The method, and the body if there is one. */
static bool
set_method(EvS3Transfer *transfer)
{
	const EvS3Request *request = transfer->request;
	CURL	   *easy = transfer->easy;
	bool		failed = false;

	switch (request->method)
	{
		case EV_S3_GET:
			SET(CURLOPT_HTTPGET, 1L);
			return !failed;
		case EV_S3_HEAD:
			SET(CURLOPT_NOBODY, 1L);
			return !failed;
		case EV_S3_DELETE:
			SET(CURLOPT_CUSTOMREQUEST, "DELETE");
			return !failed;
		case EV_S3_POST:
			SET(CURLOPT_CUSTOMREQUEST, "POST");
			break;
		case EV_S3_PUT:
			break;
	}
	transfer->source = request->source;
	if (transfer->source == NULL)
	{
		transfer->memory.read = read_memory;
		transfer->memory.seek = seek_memory;
		transfer->memory.arg = transfer;
		transfer->source = &transfer->memory;
	}

	/*
	 * Signing: "Expect: 100-continue", which libcurl adds to every body,
	 * cannot be taken away without breaking the signature.  It is welcome: a
	 * store that refuses does so before the body is sent.
	 */
	SET(CURLOPT_UPLOAD, 1L);
	SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t) request->body_length);
	SET(CURLOPT_READFUNCTION, on_read);
	SET(CURLOPT_READDATA, transfer);
	SET(CURLOPT_SEEKFUNCTION, on_seek);
	SET(CURLOPT_SEEKDATA, transfer);
	return !failed;
}

/* Has the key a part "." or ".."?  No key of ours has. */
static bool
has_dot_segment(const char *key)
{
	while (key != NULL)
	{
		size_t		length = strcspn(key, "/");

		if (length > 0 && length <= 2 && strspn(key, ".") == length)
			return true;
		key = key[length] == '/' ? key + length + 1 : NULL;
	}
	return false;
}

/* Tell libcurl all of it.  False means that memory is exhausted. */
static bool
prepare(EvS3Transfer *transfer, const EvCredentials *credentials,
		const char *address)
{
	CURL	   *easy = transfer->easy;
	bool		failed = false;

	if (easy == NULL || !make_headers(transfer, credentials) ||
		!set_common(transfer) || !set_method(transfer))
		return false;
	SET(CURLOPT_URL, address);

	/* Or libcurl would make another key of it.  Newer ones refuse to sign. */
	if (has_dot_segment(transfer->request->key))
		SET(CURLOPT_PATH_AS_IS, 1L);
	SET(CURLOPT_HTTPHEADER, transfer->headers);
	SET(CURLOPT_AWS_SIGV4, transfer->s3->signer);
	SET(CURLOPT_USERNAME, credentials->access_key);
	SET(CURLOPT_PASSWORD, credentials->secret_key);
	if (!transfer->request->repeatable)
		SET(CURLOPT_MAXAGE_CONN, (long) WRITE_IDLE_SECONDS);
	return !failed;
}

/* The time for the request is up when its bytes need no more of it. */
static bool
is_late(const EvS3Transfer *transfer, double now)
{
	int64_t		bytes = transfer->request->body_length;

	if (transfer->began)
		bytes += transfer->content_length;
	return now - transfer->started > transfer->s3->request_seconds +
		(double) bytes / (double) transfer->s3->low_speed_bytes;
}

/* Four times a second: does the caller want to go on, and may we? */
static bool
goes_on(EvS3Transfer *transfer)
{
	const EvS3 *s3 = transfer->s3;
	double		now = ev_s3_clock();
	bool		uploads = transfer->request->body_length > 0;

	if (now < transfer->next_tick)
		return true;
	transfer->next_tick = now + TICK_MS / 1000.0;
	if (s3->tick != NULL &&
		!s3->tick(s3->tick_arg,
				  uploads ? transfer->given :
				  transfer->began ? transfer->received : 0,
				  uploads ? transfer->request->body_length :
				  transfer->began ? transfer->content_length : 0))
		transfer->answer.broken = EV_S3_BREAK_STOPPED;
	else if (is_late(transfer, now))
		transfer->answer.broken = EV_S3_BREAK_TIME;
	return transfer->answer.broken == EV_S3_BREAK_NONE;
}

/* Drive the transfer to its end. */
static void
drive(EvS3Transfer *transfer)
{
	CURLM	   *multi = transfer->s3->multi;
	int			running = 1;
	int			waiting;
	CURLMsg    *message;

	while (goes_on(transfer))
	{
		if (curl_multi_perform(multi, &running) != CURLM_OK)
		{
			transfer->answer.transport = CURLE_OUT_OF_MEMORY;
			return;
		}
		if (running == 0)
			break;

		/* A signal ends this early, and the next tick sees its flag. */
		curl_multi_poll(multi, NULL, 0, TICK_MS, NULL);
	}
	while ((message = curl_multi_info_read(multi, &waiting)) != NULL)
	{
		if (message->msg == CURLMSG_DONE)
			transfer->answer.transport = message->data.result;
	}
}

static void
run(EvS3Transfer *transfer)
{
	EvS3Answer *answer = &transfer->answer;
	EvS3	   *s3 = transfer->s3;

	/* Every try begins at the beginning, whoever read the source before. */
	if (transfer->source != NULL &&
		!transfer->source->seek(transfer->source->arg, 0))
	{
		answer->broken = EV_S3_BREAK_SOURCE;
		return;
	}
	transfer->started = ev_s3_clock();
	if (curl_multi_add_handle(s3->multi, transfer->easy) != CURLM_OK)
	{
		answer->broken = EV_S3_BREAK_MEMORY;
		return;
	}
	drive(transfer);
	curl_multi_remove_handle(s3->multi, transfer->easy);

	/* An object without a byte has not met its sink yet. */
	if (answer->broken == EV_S3_BREAK_NONE && answer->transport == CURLE_OK &&
		transfer->request->sink != NULL && ev_s3_is_object(transfer))
		ev_s3_begin_sink(transfer);

	answer->writes = transfer->request->writes;
	answer->subject = transfer->request->subject;
	note_body(transfer);
	answer->has_body = transfer->reply->body.length > 0;
	answer->now = (int64_t) time(NULL);
	if (answer->transport != CURLE_OK)
		snprintf(answer->text, sizeof(answer->text), "%s", transfer->error);
}
