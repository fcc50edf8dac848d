/*-------------------------------------------------------------------------
 *
 * store.c
 *	  Open the object store that the options name.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "store.h"

EvStatus
ev_store_open(const EvStoreOptions *options, const char *bucket,
			  EvS3TickFunction tick, void *tick_arg, EvStore *store,
			  EvFailure *failure)
{
	EvS3Settings settings;
	EvStatus	status;

	memset(store, 0, sizeof(*store));
	status = ev_credentials_open(options->credentials_file, options->profile,
								 &store->credentials, failure);
	if (status != EV_STATUS_OK)
		return status;
	memset(&settings, 0, sizeof(settings));
	settings.endpoint = options->endpoint;
	settings.region = options->region;
	settings.bucket = bucket;
	settings.style = options->style;
	settings.ca_file = options->ca_file;
	settings.allow_http = options->allow_http;
	settings.rate_limit = options->limit_rate;
	settings.credentials = store->credentials;
	settings.tick = tick;
	settings.tick_arg = tick_arg;
	return ev_s3_open(&settings, &store->s3, failure);
}

void
ev_store_close(EvStore *store)
{
	ev_s3_close(store->s3);
	ev_credentials_close(store->credentials);
	memset(store, 0, sizeof(*store));
}
