/*-------------------------------------------------------------------------
 *
 * s3_handle.c
 *	  Check the settings of an object store and make the handle.
 *
 * Plain http is for tests on this very host: keys do not travel on it, but a
 * signature can be replayed and the archive can be read, so no setting allows
 * it to another host.
 *
 * libcurl copies keys into memory of its own and frees that without wiping.
 * It is therefore given memory functions that wipe what is released.  Some
 * copies of the secret key it keeps as long as the connection, without any
 * further use: it sets them anew for each request.  Copies are noted as they
 * are made, and emptied when the request is over.
 *
 *-------------------------------------------------------------------------
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "s3_handle.h"
#include "s3_request.h"

#define CONNECT_SECONDS 10.0
#define REQUEST_SECONDS 300.0
#define LOW_SPEED_BYTES 1024
#define LOW_SPEED_SECONDS 60

/*
 * A page of a listing must fit into the 1 MiB that an answer may have: a key
 * has up to 1024 bytes, each of which may come as three.
 */
#define PAGE_ITEMS 250

#define NAME_CHARACTERS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

/* libcurl makes four of a password; more are not found by chance. */
#define COPIES_LIMIT 32

/*
 * The copies of the secret that is in use.  Each thread has its own, since
 * libcurl looks up names in another one.
 */
static __thread const char *watched = NULL;
static __thread char *copies[COPIES_LIMIT];
static __thread int copy_count = 0;

static EvStatus make_address(EvS3 *s3, const EvS3Settings *settings,
							 const char *region, EvFailure *failure);

void
ev_s3_watch_secret(const char *secret)
{
	watched = secret;
}

void
ev_s3_forget_secret(void)
{
	while (copy_count > 0)
	{
		char	   *copy = copies[--copy_count];

		explicit_bzero(copy, strlen(copy));
	}
	watched = NULL;
}

/* A copy that is released need not be emptied any more. */
static void
forget_copy(const void *block)
{
	int			i;

	for (i = 0; i < copy_count; i++)
	{
		if (copies[i] == block)
		{
			copies[i] = copies[--copy_count];
			return;
		}
	}
}

static char *
watching_strdup(const char *text)
{
	char	   *copy = strdup(text);

	if (copy != NULL && watched != NULL && strcmp(text, watched) == 0 &&
		copy_count < COPIES_LIMIT)
		copies[copy_count++] = copy;
	return copy;
}

static void
wipe_free(void *block)
{
	if (block == NULL)
		return;
	forget_copy(block);
	explicit_bzero(block, malloc_usable_size(block));
	free(block);
}

/* A block that moves leaves nothing behind. */
static void *
wipe_realloc(void *block, size_t size)
{
	size_t		old = block != NULL ? malloc_usable_size(block) : 0;
	void	   *grown;

	if (size > 0 && size <= old)
		return block;
	grown = malloc(size);
	if (grown != NULL && block != NULL)
	{
		memcpy(grown, block, old < size ? old : size);
		wipe_free(block);
	}
	return grown;
}

/* Once in the life of the process. */
static EvStatus
start_library(EvFailure *failure)
{
	static bool started = false;

	if (started)
		return EV_STATUS_OK;
	if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wipe_free,
							 wipe_realloc, watching_strdup,
							 calloc) != CURLE_OK)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "libcurl could not be started");

	/* With CURLOPT_NOSIGNAL nobody else takes this signal from OpenSSL. */
	signal(SIGPIPE, SIG_IGN);
	started = true;
	return EV_STATUS_OK;
}

EvStatus
ev_s3_open(const EvS3Settings *settings, EvS3 **s3, EvFailure *failure)
{
	const char *region = settings->region;
	EvS3	   *created;
	EvStatus	status;

	*s3 = NULL;
	if (region == NULL || region[0] == '\0')
		region = "us-east-1";
	if (region[strspn(region, NAME_CHARACTERS)] != '\0')
		return ev_fail(failure, EV_STATUS_USAGE, NULL, "\"%s\" is no name of a region",
					   region);
	status = start_library(failure);
	if (status != EV_STATUS_OK)
		return status;
	created = calloc(1, sizeof(EvS3));
	if (created == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	created->page = PAGE_ITEMS;
	created->connect_seconds = settings->connect_seconds > 0 ?
		settings->connect_seconds : CONNECT_SECONDS;
	created->request_seconds = settings->request_seconds > 0 ?
		settings->request_seconds : REQUEST_SECONDS;
	created->low_speed_bytes = settings->low_speed_bytes > 0 ?
		settings->low_speed_bytes : LOW_SPEED_BYTES;
	created->low_speed_seconds = settings->low_speed_seconds > 0 ?
		settings->low_speed_seconds : LOW_SPEED_SECONDS;
	created->rate_limit = settings->rate_limit > 0 ? settings->rate_limit : 0;

	/* Who asks for less than that must not be cut off for getting it. */
	if (created->rate_limit > 0 &&
		created->low_speed_bytes > created->rate_limit / 4)
		created->low_speed_bytes = created->rate_limit / 4 + 1;
	created->credentials = settings->credentials;
	created->tick = settings->tick;
	created->tick_arg = settings->tick_arg;
	status = make_address(created, settings, region, failure);
	if (status == EV_STATUS_OK)
	{
		created->multi = curl_multi_init();
		if (settings->ca_file != NULL)
			created->ca_file = strdup(settings->ca_file);
		if (created->multi == NULL ||
			(settings->ca_file != NULL && created->ca_file == NULL) ||
			asprintf(&created->signer, "aws:amz:%s:s3", region) < 0)
		{
			created->signer = NULL;
			status = ev_fail(failure, EV_STATUS_INTERNAL, NULL,
							 "out of memory");
		}
		else
			curl_multi_setopt(created->multi, CURLMOPT_MAXCONNECTS, 1L);
	}
	if (status != EV_STATUS_OK)
	{
		ev_s3_close(created);
		return status;
	}
	*s3 = created;
	return EV_STATUS_OK;
}

void
ev_s3_close(EvS3 *s3)
{
	if (s3 == NULL)
		return;
	curl_multi_cleanup(s3->multi);
	free(s3->address);
	free(s3->name);
	free(s3->signer);
	free(s3->ca_file);
	free(s3);
}

const char *
ev_s3_name(const EvS3 *s3)
{
	return s3->name;
}

int
ev_s3_page(const EvS3 *s3)
{
	return s3->page;
}

void
ev_s3_set_page(EvS3 *s3, int items)
{
	s3->page = items;
}

/* The parts of an endpoint; release with free_endpoint. */
typedef struct Endpoint
{
	CURLU	   *url;
	char	   *scheme;
	char	   *host;
	char	   *port;			/* NULL if none was given */
	char	   *path;
	char	   *other;			/* user, query or fragment: must be NULL */
} Endpoint;

static void
free_endpoint(Endpoint *endpoint)
{
	curl_free(endpoint->scheme);
	curl_free(endpoint->host);
	curl_free(endpoint->port);
	curl_free(endpoint->path);
	curl_free(endpoint->other);
	curl_url_cleanup(endpoint->url);
}

/* Take an endpoint apart; the text is not in messages: it may hold a key. */
static EvStatus
read_endpoint(const char *text, Endpoint *endpoint, EvFailure *failure)
{
	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->url = curl_url();
	if (endpoint->url == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	if (strstr(text, "://") == NULL ||
		curl_url_set(endpoint->url, CURLUPART_URL, text,
					 CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK ||
		curl_url_get(endpoint->url, CURLUPART_SCHEME, &endpoint->scheme,
					 0) != CURLUE_OK ||
		curl_url_get(endpoint->url, CURLUPART_HOST, &endpoint->host,
					 0) != CURLUE_OK ||
		curl_url_get(endpoint->url, CURLUPART_PATH, &endpoint->path,
					 0) != CURLUE_OK)
		return ev_fail(failure, EV_STATUS_USAGE, NULL, "the endpoint is no address like https://host:port");
	curl_url_get(endpoint->url, CURLUPART_PORT, &endpoint->port, 0);
	if (strcmp(endpoint->path, "/") != 0 ||
		curl_url_get(endpoint->url, CURLUPART_USER, &endpoint->other,
					 0) == CURLUE_OK ||
		curl_url_get(endpoint->url, CURLUPART_QUERY, &endpoint->other,
					 0) == CURLUE_OK ||
		curl_url_get(endpoint->url, CURLUPART_FRAGMENT, &endpoint->other,
					 0) == CURLUE_OK)
		return ev_fail(failure, EV_STATUS_USAGE, NULL, "the endpoint has more than scheme, host and port");
	return EV_STATUS_OK;
}

/* Is this a name or number of the host the program runs on? */
static bool
is_loopback(const char *host)
{
	size_t		length = strlen(host);
	int			digits[4];
	int			end = 0;

	if (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
		(length > 10 && strcasecmp(host + length - 10, ".localhost") == 0))
		return true;
	return sscanf(host, "%3d.%3d.%3d.%3d%n", &digits[0], &digits[1],
				  &digits[2], &digits[3], &end) == 4 &&
		host[end] == '\0' && digits[0] == 127;
}

/* Is this a number, which has no names below it? */
static bool
is_number(const char *host)
{
	return host[0] == '[' || host[strspn(host, "0123456789.")] == '\0';
}

static EvStatus
check_scheme(EvS3 *s3, const EvS3Settings *settings, const Endpoint *endpoint,
			 EvFailure *failure)
{
	s3->https = strcmp(endpoint->scheme, "https") == 0;
	if (s3->https)
		return EV_STATUS_OK;
	if (strcmp(endpoint->scheme, "http") != 0)
		return ev_fail(failure, EV_STATUS_USAGE, NULL, "the endpoint must begin with https://");
	if (!settings->allow_http || !is_loopback(endpoint->host))
	{
		ev_fail(failure, EV_STATUS_USAGE, NULL, "the endpoint is plain http");
		return ev_fail_hint(failure, "Use https. Plain http is possible to this host itself only, for tests, and must be allowed.");
	}
	return EV_STATUS_OK;
}

/* Where the bucket is: in the path of the address, or in the host's name. */
static EvStatus
make_address(EvS3 *s3, const EvS3Settings *settings, const char *region,
			 EvFailure *failure)
{
	const char *bucket = settings->bucket;
	EvS3Style	style = settings->style;
	char	   *amazon = NULL;
	Endpoint	endpoint;
	EvStatus	status;
	int			length;

	if (bucket == NULL || strlen(bucket) < 3 || strlen(bucket) > 63 ||
		bucket[strspn(bucket, NAME_CHARACTERS "._")] != '\0' ||
		strstr(bucket, "..") != NULL || bucket[0] == '.')
		return ev_fail(failure, EV_STATUS_USAGE, NULL, "\"%s\" is no name of a bucket",
					   bucket != NULL ? bucket : "");

	/* A certificate for *.host covers one label, so no dot may be in it. */
	if (style == EV_S3_STYLE_AUTO)
		style = settings->endpoint == NULL && strchr(bucket, '.') == NULL ?
			EV_S3_STYLE_VIRTUAL : EV_S3_STYLE_PATH;
	if (settings->endpoint == NULL &&
		asprintf(&amazon, "https://s3.%s.amazonaws.com", region) < 0)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	status = read_endpoint(amazon != NULL ? amazon : settings->endpoint,
						   &endpoint, failure);
	if (status == EV_STATUS_OK)
		status = check_scheme(s3, settings, &endpoint, failure);
	if (status == EV_STATUS_OK && style == EV_S3_STYLE_VIRTUAL &&
		is_number(endpoint.host))
		status = ev_fail(failure, EV_STATUS_USAGE, NULL, "a bucket cannot be part of the host's name when that is a number");
	if (status == EV_STATUS_OK)
	{
		length = asprintf(&s3->address, "%s://%s%s%s%s%s%s%s",
						  endpoint.scheme,
						  style == EV_S3_STYLE_VIRTUAL ? bucket : "",
						  style == EV_S3_STYLE_VIRTUAL ? "." : "",
						  endpoint.host,
						  endpoint.port != NULL ? ":" : "",
						  endpoint.port != NULL ? endpoint.port : "",
						  style == EV_S3_STYLE_PATH ? "/" : "",
						  style == EV_S3_STYLE_PATH ? bucket : "");
		if (length < 0)
			s3->address = NULL;
		if (length < 0 ||
			asprintf(&s3->name, "bucket \"%s\" at %s://%s%s%s", bucket,
					 endpoint.scheme, endpoint.host,
					 endpoint.port != NULL ? ":" : "",
					 endpoint.port != NULL ? endpoint.port : "") < 0)
		{
			s3->name = NULL;
			status = ev_fail(failure, EV_STATUS_INTERNAL, NULL,
							 "out of memory");
		}
	}
	free_endpoint(&endpoint);
	free(amazon);
	return status;
}
