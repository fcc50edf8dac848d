/*-------------------------------------------------------------------------
 *
 * deliver.c
 *	  The command "upload": carry out what is due between ledger and store.
 *
 * One process does one piece of work at a time; any number of processes, on
 * any hosts, share the load, since the ledger gives each piece to one of them
 * and keeps it for that one while its lease is renewed.  Nothing is kept in
 * the process: killed at any moment, it leaves a lease that runs out.
 *
 * The server announces new work; between announcements the process sleeps,
 * and asks once a minute, or when the ledger says that something falls due.
 *
 * When the store as a whole is the trouble, no further piece of work is
 * spoiled: the process pauses, longer each time, and looks whether the bucket
 * is there before it asks for work again.
 *
 * SIGTERM and SIGINT end it: the running request is broken off, and the work
 * is given back without counting.  SIGHUP has it read configuration and keys
 * again, between two pieces of work.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "breaker.h"
#include "deliver.h"
#include "log.h"
#include "notify.h"
#include "removal.h"
#include "retry.h"
#include "stop.h"
#include "store.h"
#include "upload.h"

#define POLL_SECONDS 60.0		/* between two looks at the ledger */
#define LEDGER_PAUSE 5.0		/* when the server refuses or is not there */
#define RECONNECT_SECONDS 30.0
#define ONCE_RECONNECTS 2		/* before --once gives up */
#define REFUSALS_LIMIT 8		/* then the pause is the longest */

typedef struct Uploader
{
	const EvOptions *options;	/* those in force */
	EvOptions  *reloaded;		/* NULL: still those of the command line */
	EvLedger   *ledger;
	EvStore		store;
	EvLease    *lease;			/* of the work at hand; NULL: none */
	EvBreaker	breaker;
	char		name[128];
	bool		idle;			/* the ledger said that nothing waits */
	int			refusals;		/* claims in a row that found what is due in
								 * other hands */
	int			unreachable;	/* attempts to reach the ledger in a row */
	int64_t		done;
	int64_t		failed;
	int64_t		dead;
} Uploader;

static bool tick(void *arg, int64_t done, int64_t total);
static void greet(Uploader *uploader);
static void reload(Uploader *uploader);
static EvStatus reach_ledger(Uploader *uploader, EvFailure *failure);
static EvStatus probe(Uploader *uploader, EvFailure *failure);
static EvStatus turn(Uploader *uploader, bool *drained, EvFailure *failure);
static EvStatus carry_out(Uploader *uploader, const EvDelivery *item,
						  double claimed, EvFailure *failure);
static void tell(Uploader *uploader, EvWork *work, double seconds);
static double due_in(Uploader *uploader);
static EvStatus finish(const Uploader *uploader, EvStatus status,
					   EvFailure *failure);

EvStatus
ev_deliver_setup(EvFailure *failure)
{
	return ev_stop_setup(failure);
}

EvStatus
ev_deliver(const EvOptions *options, EvLedger *ledger, EvFailure *failure)
{
	Uploader	uploader = {0};
	char		host[64] = "";
	bool		drained = false;
	EvStatus	status;

	uploader.options = options;
	uploader.ledger = ledger;
	gethostname(host, sizeof(host) - 1);
	snprintf(uploader.name, sizeof(uploader.name), "%s:%d", host,
			 (int) getpid());
	status = ev_store_open(&options->store, options->store.bucket, tick,
						   &uploader, &uploader.store, failure);
	if (status == EV_STATUS_OK && !options->once)
		status = ev_delivery_listen(ledger, failure);
	if (status == EV_STATUS_OK)
		greet(&uploader);
	while (status == EV_STATUS_OK && !drained && !ev_stop_requested())
	{
		if (ev_stop_reload())
			reload(&uploader);
		if (ev_ledger_lost(ledger))
			status = reach_ledger(&uploader, failure);
		else if (uploader.breaker.open)
			status = probe(&uploader, failure);
		else
			status = turn(&uploader, &drained, failure);
	}
	ev_notify("STOPPING=1");
	if (uploader.store.s3 != NULL)
		status = finish(&uploader, status, failure);
	ev_store_close(&uploader.store);
	if (uploader.reloaded != NULL)
		ev_options_free(uploader.reloaded);
	free(uploader.reloaded);
	return status;
}

/*
 * An EvS3TickFunction.  During a request that may take long the lease is
 * renewed here; when it is lost, or the program shall end, so does the
 * request.
 */
static bool
tick(void *arg, int64_t done, int64_t total)
{
	Uploader   *uploader = arg;

	(void) done;
	(void) total;
	if (ev_stop_requested())
		return false;
	return uploader->lease == NULL || ev_lease_keep(uploader->lease);
}

/* Say who is at work, for the log and the service manager. */
static void
greet(Uploader *uploader)
{
	EvDeliveryStatus status;
	EvFailure	failure;

	ev_failure_clear(&failure);
	ev_log_note("uploader %s: %s, prefix \"%s\", keys from %s", uploader->name,
				ev_s3_name(uploader->store.s3),
				uploader->options->store.prefix,
				ev_credentials_origin(uploader->store.credentials));
	if (ev_delivery_status(uploader->ledger, &status,
						   &failure) == EV_STATUS_OK &&
		strcmp(status.delivery, "object_store") != 0)
		ev_log_note("pg_evidence.delivery of the server is \"%s\": new archives stay there",
					status.delivery);
	ev_notify("READY=1\nSTATUS=waiting for work");
}

/*
 * Read the command line and the configuration file again.  What cannot be
 * used is refused as a whole, and the settings in force stay.
 */
static void
reload(Uploader *uploader)
{
	EvOptions  *options = calloc(1, sizeof(EvOptions));
	EvStore		store = {0};
	EvFailure	failure;
	EvStatus	status;

	if (options == NULL)
		return;
	ev_failure_clear(&failure);
	ev_notify("RELOADING=1\nMONOTONIC_USEC=%.0f", ev_retry_clock() * 1e6);
	status = ev_options_parse(options, uploader->options->argc,
							  uploader->options->argv, &failure);
	if (status == EV_STATUS_OK)
		status = ev_store_open(&options->store, options->store.bucket, tick,
							   uploader, &store, &failure);
	if (status == EV_STATUS_OK)
	{
		ev_store_close(&uploader->store);
		uploader->store = store;
		if (uploader->reloaded != NULL)
			ev_options_free(uploader->reloaded);
		free(uploader->reloaded);
		uploader->reloaded = options;
		uploader->options = options;
		ev_log_setup(options->quiet, options->log_json);
		ev_breaker_close(&uploader->breaker);
		uploader->idle = false;
		ev_log_note("configuration read again: %s",
					ev_s3_name(uploader->store.s3));
	}
	else
	{
		ev_store_close(&store);
		ev_options_free(options);
		free(options);
		snprintf(failure.detail, sizeof(failure.detail),
				 "The configuration was read again and cannot be used; the one before stays in force.");
		ev_log_warning(&failure);
	}
	ev_notify("READY=1");
}

/* The connection to the server is lost: get another one. */
static EvStatus
reach_ledger(Uploader *uploader, EvFailure *failure)
{
	EvStatus	status;

	status = ev_retry_reconnect(uploader->ledger, RECONNECT_SECONDS, failure);
	if (status == EV_STATUS_OK)
	{
		if (uploader->unreachable > 0)
			ev_log_note("connected to the server again");
		uploader->unreachable = 0;
		uploader->idle = false;
		return EV_STATUS_OK;
	}
	if (status != EV_STATUS_CONNECTION)
		return status;
	if (++uploader->unreachable == ONCE_RECONNECTS && uploader->options->once)
		return status;
	if (uploader->unreachable == 1)
		ev_log_warning(failure);
	ev_notify("STATUS=no connection to the server");
	ev_retry_sleep(LEDGER_PAUSE);
	return EV_STATUS_OK;
}

/* The store is in trouble: wait, then see whether the bucket is there. */
static EvStatus
probe(Uploader *uploader, EvFailure *failure)
{
	EvS3Result	result;
	double		left = uploader->breaker.until - ev_retry_clock();

	if (left > 0)
	{
		ev_delivery_await(uploader->ledger, left);
		return EV_STATUS_OK;
	}
	if (ev_s3_bucket(uploader->store.s3, &result) == EV_S3_OK)
	{
		ev_log_note("%s: the store answers again",
					ev_s3_name(uploader->store.s3));
		ev_notify("STATUS=waiting for work");
		ev_breaker_half_open(&uploader->breaker);
		uploader->idle = false;
		return EV_STATUS_OK;
	}
	if (result.outcome == EV_S3_STOPPED)
		return EV_STATUS_OK;
	ev_s3_fail(&result, "the object store cannot be used", failure);
	ev_breaker_trip(&uploader->breaker, result.retry_after);
	snprintf(failure->detail, sizeof(failure->detail),
			 "The next look is in %.0f s; nothing is lost meanwhile.",
			 ceil(uploader->breaker.until - ev_retry_clock()));
	ev_log_warning(failure);
	return EV_STATUS_OK;
}

/* Do one piece of work, or wait for one. */
static EvStatus
turn(Uploader *uploader, bool *drained, EvFailure *failure)
{
	const EvStoreOptions *store = &uploader->options->store;
	double		claimed = ev_retry_clock();
	EvDelivery	item;
	bool		found;
	EvStatus	status;

	status = ev_delivery_claim(uploader->ledger, uploader->name,
							   store->bucket, store->prefix, &item, &found,
							   failure);
	if (ev_ledger_lost(uploader->ledger))
		return EV_STATUS_OK;
	if (status == EV_STATUS_OK && found)
	{
		uploader->idle = false;
		uploader->refusals = 0;
		return carry_out(uploader, &item, claimed, failure);
	}
	if (status == EV_STATUS_OK && uploader->options->once)
		*drained = true;
	else if (status == EV_STATUS_OK)
		ev_delivery_await(uploader->ledger, due_in(uploader));
	else if (!uploader->options->once &&
			 (status == EV_STATUS_STATE || status == EV_STATUS_PAUSED ||
			  status == EV_STATUS_RETRIES))
	{
		/* A standby, a pause, a crowd: all of them pass. */
		ev_log_warning(failure);
		ev_delivery_await(uploader->ledger, POLL_SECONDS);
	}
	else
		return status;
	return EV_STATUS_OK;
}

/*
 * How long until something falls due.  Once the ledger has said that nothing
 * waits, what comes is announced, and it need not be asked each time.
 */
static double
due_in(Uploader *uploader)
{
	EvDeliveryStatus status;
	EvFailure	failure;

	if (uploader->idle)
		return POLL_SECONDS;
	ev_failure_clear(&failure);
	if (ev_delivery_status(uploader->ledger, &status,
						   &failure) != EV_STATUS_OK)
		return LEDGER_PAUSE;
	uploader->idle = status.next_due < 0;
	if (uploader->idle || status.next_due > POLL_SECONDS)
		return POLL_SECONDS;

	/*
	 * What is due and not to be had is in other hands, perhaps for a moment,
	 * or for another bucket than ours, and then for ever.
	 */
	if (status.next_due > 0)
		uploader->refusals = 0;
	else if (uploader->refusals < REFUSALS_LIMIT)
		uploader->refusals++;
	return fmin(status.next_due + 0.25 * (1 << uploader->refusals),
				POLL_SECONDS);
}

static EvStatus
carry_out(Uploader *uploader, const EvDelivery *item, double claimed,
		  EvFailure *failure)
{
	EvWork	   *work = calloc(1, sizeof(EvWork));

	if (work == NULL)
		return ev_fail(failure, EV_STATUS_INTERNAL, NULL, "out of memory");
	work->ledger = uploader->ledger;
	work->s3 = uploader->store.s3;
	work->rules = &uploader->options->rules;
	work->item = *item;
	work->retry_after = -1;
	ev_lease_start(&work->lease, uploader->ledger, item, claimed);
	uploader->lease = &work->lease;
	ev_ledger_patience(uploader->ledger, item->lease_seconds);
	ev_notify("STATUS=%s of export %s",
			  item->kind == EV_DELIVERY_UPLOAD ? "upload" : "removal",
			  item->export_id);
	if (item->kind == EV_DELIVERY_UPLOAD)
		ev_upload(work);
	else
		ev_removal(work);
	uploader->lease = NULL;
	tell(uploader, work, ev_retry_clock() - claimed);

	/* Alone and once, there is no use in waiting for a store. */
	if (work->store_fault && uploader->options->once)
	{
		*failure = work->failure;
		failure->status = EV_STATUS_STORE;
	}
	else
		failure->status = EV_STATUS_OK;
	free(work);
	ev_notify("STATUS=waiting for work");
	return failure->status;
}

/* What is to be said about work that has not been done. */
static const char *
prospect(const EvWork *work)
{
	switch (work->end)
	{
		case EV_WORK_DEFERRED:
			return "It is tried again later, and this attempt does not count.";
		case EV_WORK_FAILED:
			return "It is tried again later.";
		case EV_WORK_DEAD:
			return "It is not tried again by itself: mend the reason, then call evidence.requeue_outbox_event().";
		case EV_WORK_UNTOLD:
			return "The server could not be told; somebody goes on when the lease has run out.";
		default:
			return "";
	}
}

/* Log how it ended, count it, and see whether the store is the trouble. */
static void
tell(Uploader *uploader, EvWork *work, double seconds)
{
	const EvDelivery *item = &work->item;

	if (work->end == EV_WORK_DONE)
	{
		uploader->done++;
		ev_breaker_close(&uploader->breaker);
		if (item->kind == EV_DELIVERY_REMOVAL)
			ev_log_export(item->export_id, "object %s %s", item->key,
						  work->existed ? "removed" : "was gone already");
		else
			ev_log_export(item->export_id, "%s %" PRId64 " bytes as %s in %.1f s",
						  work->looked_up ? "found" : "uploaded",
						  item->bytes, item->key, seconds);
		return;
	}
	if (work->end == EV_WORK_LOST)
	{
		ev_log_export(item->export_id, "cancelled, or taken over by another uploader");
		return;
	}
	if (work->end == EV_WORK_DEFERRED && ev_stop_requested())
	{
		ev_log_export(item->export_id, "given back");
		return;
	}
	if (work->end == EV_WORK_DEAD || work->end == EV_WORK_QUARANTINED)
		uploader->dead++;
	else
		uploader->failed++;
	if (work->failure.detail[0] == '\0')
		snprintf(work->failure.detail, sizeof(work->failure.detail), "%s",
				 prospect(work));
	if (!work->store_fault || !uploader->options->once)
		ev_log_warning(&work->failure);
	if (work->store_fault)
		ev_breaker_trip(&uploader->breaker, work->retry_after);
	else if (work->end == EV_WORK_FAILED)
		ev_breaker_count(&uploader->breaker, work->retry_after);
}

/* The last words, and the exit code. */
static EvStatus
finish(const Uploader *uploader, EvStatus status, EvFailure *failure)
{
	ev_log_note("%" PRId64 " done, %" PRId64 " put off, %" PRId64 " given up",
				uploader->done, uploader->failed, uploader->dead);
	if (status != EV_STATUS_OK || !uploader->options->once)
		return status;
	if (ev_stop_requested())
		return ev_fail(failure, EV_STATUS_OPEN, NULL,
					   "told to end before everything was done");
	if (uploader->failed + uploader->dead == 0)
		return EV_STATUS_OK;
	ev_fail(failure, EV_STATUS_OPEN, NULL,
			"%" PRId64 " put off and %" PRId64 " given up",
			uploader->failed, uploader->dead);
	return ev_fail_hint(failure, "The lines above tell why. What was put off is tried again by the next run.");
}
