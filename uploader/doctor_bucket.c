/*-------------------------------------------------------------------------
 *
 * doctor_bucket.c
 *	  What "doctor" reads of a bucket: lifecycle, versions, locks.
 *
 * The lifecycle of the bucket is a safety net behind the removals that the
 * ledger orders: it must exist, and it must never be faster than the window
 * in which an archive can be downloaded.  It works by whole days, counted from
 * midnight by some stores, hence the margin of a day.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "doctor_bucket.h"

#define SECONDS_PER_DAY 86400
#define WINDOW 86400			/* when the server could not be asked */
#define MARGIN_DAYS 1
#define NET_DAYS 2				/* what --apply-lifecycle sets at least */

/* What the rules of a lifecycle do below our prefix. */
typedef struct Lifecycle
{
	char		below[EV_S3_KEY_LIMIT + 1]; /* our prefix and a slash */
	int			needed_days;	/* an object must live at least so long */
	int			expire_days;	/* of the first one to act on all of it */
	int			abort_days;
	char		fastest[256];	/* rule that acts too early, "" if none does */
	int			fastest_days;
} Lifecycle;

static void examine_lifecycle(const EvOptions *options,
							  const EvDeliveryStatus *delivery, EvS3 *s3,
							  EvDiagnosis *diagnosis);
static void examine_versions(EvS3 *s3, EvDiagnosis *diagnosis);
static void examine_lock(const EvOptions *options, EvS3 *s3,
						 EvDiagnosis *diagnosis);

void
ev_doctor_bucket(const EvOptions *options, const EvDeliveryStatus *delivery,
				 EvS3 *s3, EvDiagnosis *diagnosis)
{
	examine_lifecycle(options, delivery, s3, diagnosis);
	examine_versions(s3, diagnosis);
	examine_lock(options, s3, diagnosis);
}

/* An EvS3RuleFunction. */
static bool
judge_rule(void *arg, const EvS3Rule *rule)
{
	Lifecycle  *lifecycle = arg;
	size_t		length = strlen(rule->prefix);
	bool		covers = strncmp(lifecycle->below, rule->prefix, length) == 0;
	bool		touches = covers ||
	strncmp(rule->prefix, lifecycle->below,
			strlen(lifecycle->below)) == 0;

	if (!rule->enabled || !touches)
		return true;
	if ((rule->expire_days > 0 &&
		 rule->expire_days < lifecycle->needed_days) ||
		rule->expire_date != EV_S3_NEVER)
	{
		snprintf(lifecycle->fastest, sizeof(lifecycle->fastest), "%s",
				 rule->id[0] == '\0' ? "(without a name)" : rule->id);
		lifecycle->fastest_days = rule->expire_days;
	}

	/* A rule that acts on some objects only is no net. */
	if (!covers || rule->partial)
		return true;
	if (rule->expire_days > 0 && (lifecycle->expire_days == 0 ||
								  rule->expire_days < lifecycle->expire_days))
		lifecycle->expire_days = rule->expire_days;
	if (rule->abort_days > 0 && (lifecycle->abort_days == 0 ||
								 rule->abort_days < lifecycle->abort_days))
		lifecycle->abort_days = rule->abort_days;
	return true;
}

/* Set our own rule. */
static bool
apply_lifecycle(const Lifecycle *lifecycle, EvS3 *s3, EvDiagnosis *diagnosis)
{
	EvS3Rule	rule;
	EvS3Result	result;
	char	   *at;

	memset(&rule, 0, sizeof(rule));
	snprintf(rule.prefix, sizeof(rule.prefix), "%s", lifecycle->below);
	snprintf(rule.id, sizeof(rule.id), "pg_evidence-%.200s",
			 lifecycle->below);
	for (at = rule.id; *at != '\0'; at++)
		if (*at == '/')
			*at = at[1] == '\0' ? '\0' : '.';
	rule.enabled = true;
	rule.expire_date = EV_S3_NEVER;
	rule.expire_days = lifecycle->needed_days > NET_DAYS ?
		lifecycle->needed_days : NET_DAYS;
	rule.abort_days = rule.expire_days;
	if (ev_s3_put_lifecycle(s3, &rule, &result) == EV_S3_OK)
		return true;
	ev_doctor_result(diagnosis, "lifecycle", "could not set the lifecycle",
					 &result);
	if (result.outcome == EV_S3_DENIED)
		ev_diagnosis_advise(diagnosis, "Run this with keys that have the right s3:PutLifecycleConfiguration; uploads do not need it.");
	return false;
}

/* Read the rules.  False when they cannot be read. */
static bool
read_lifecycle(Lifecycle *lifecycle, EvS3 *s3, EvDiagnosis *diagnosis)
{
	EvS3Result	result;

	lifecycle->expire_days = 0;
	lifecycle->abort_days = 0;
	lifecycle->fastest[0] = '\0';
	if (ev_s3_lifecycle(s3, judge_rule, lifecycle, &result) == EV_S3_OK)
		return true;
	if (result.outcome == EV_S3_DENIED)
	{
		ev_diagnosis_add(diagnosis, "lifecycle", EV_HEALTH_WARNING,
						 "these keys may not read the lifecycle: %s",
						 result.message);
		ev_diagnosis_advise(diagnosis, "Give them s3:GetLifecycleConfiguration, or see to it that objects are not removed within %d days.",
							lifecycle->needed_days);
	}
	else
		ev_doctor_result(diagnosis, "lifecycle", "could not read the lifecycle",
						 &result);
	return false;
}

static void
examine_lifecycle(const EvOptions *options, const EvDeliveryStatus *delivery,
				  EvS3 *s3, EvDiagnosis *diagnosis)
{
	Lifecycle	lifecycle;
	int			window = delivery->download_window > 0 ?
	delivery->download_window : WINDOW;

	memset(&lifecycle, 0, sizeof(lifecycle));
	snprintf(lifecycle.below, sizeof(lifecycle.below), "%s/",
			 options->store.prefix);
	lifecycle.needed_days = MARGIN_DAYS +
		(window + SECONDS_PER_DAY - 1) / SECONDS_PER_DAY;
	if (options->apply_lifecycle &&
		!apply_lifecycle(&lifecycle, s3, diagnosis))
		return;
	if (!read_lifecycle(&lifecycle, s3, diagnosis))
		return;

	if (lifecycle.fastest[0] != '\0')
	{
		ev_diagnosis_add(diagnosis, "lifecycle", EV_HEALTH_FAIL,
						 "rule \"%s\" removes archives after %d days or on a fixed date; they can be downloaded for %d h",
						 lifecycle.fastest, lifecycle.fastest_days,
						 window / 3600);
		ev_diagnosis_advise(diagnosis, "Have it remove them after %d days at the earliest, or keep it away from prefix \"%s\".",
							lifecycle.needed_days, lifecycle.below);
	}
	else if (lifecycle.expire_days == 0 || lifecycle.abort_days == 0)
	{
		ev_diagnosis_add(diagnosis, "lifecycle", EV_HEALTH_WARNING,
						 "nothing removes %s that were left behind",
						 lifecycle.expire_days == 0 ? "archives" :
						 "unfinished uploads");
		ev_diagnosis_advise(diagnosis, "Run \"pg_evidence doctor --apply-lifecycle\" for a safety net.");
	}
	else
		ev_diagnosis_add(diagnosis, "lifecycle", EV_HEALTH_OK,
						 "what is left behind goes after %d days, unfinished uploads after %d",
						 lifecycle.expire_days, lifecycle.abort_days);
}

static void
examine_versions(EvS3 *s3, EvDiagnosis *diagnosis)
{
	EvS3Versioning versioning;
	EvS3Result	result;

	if (ev_s3_bucket_versioning(s3, &versioning, &result) != EV_S3_OK)
	{
		ev_diagnosis_add(diagnosis, "versions", EV_HEALTH_WARNING,
						 "could not ask whether the bucket keeps versions: %s",
						 result.message);
		ev_diagnosis_advise(diagnosis, "\"pg_evidence reconcile\" needs the right s3:GetBucketVersioning.");
	}
	else if (versioning == EV_S3_VERSIONING_NEVER)
		ev_diagnosis_add(diagnosis, "versions", EV_HEALTH_OK,
						 "the bucket keeps no versions");
	else
		ev_diagnosis_add(diagnosis, "versions", EV_HEALTH_OK,
						 "the bucket keeps versions; removals delete each of them");
}

static void
examine_lock(const EvOptions *options, EvS3 *s3, EvDiagnosis *diagnosis)
{
	const EvUploadRules *rules = &options->rules;
	bool		wanted = rules->lock_mode != EV_S3_LOCK_NONE ||
	rules->legal_hold;
	EvS3BucketLock lock;
	EvS3Result	result;

	if (ev_s3_bucket_lock(s3, &lock, &result) != EV_S3_OK)
	{
		ev_diagnosis_add(diagnosis, "lock", wanted ? EV_HEALTH_FAIL :
						 EV_HEALTH_WARNING,
						 "could not ask whether the bucket has object lock: %s",
						 result.message);
		ev_diagnosis_advise(diagnosis, "The keys need the right s3:GetBucketObjectLockConfiguration.");
	}
	else if (!lock.enabled && wanted)
	{
		ev_diagnosis_add(diagnosis, "lock", EV_HEALTH_FAIL,
						 "uploads shall be locked, and the bucket has no object lock");
		ev_diagnosis_advise(diagnosis, "Make a bucket with object lock; most stores cannot add it later.");
	}
	else if (!lock.enabled)
		ev_diagnosis_add(diagnosis, "lock", EV_HEALTH_OK,
						 "no object lock, and none is asked for");
	else if (lock.mode == EV_S3_LOCK_NONE)
		ev_diagnosis_add(diagnosis, "lock", EV_HEALTH_OK,
						 "object lock is on, without a retention of the bucket's own");
	else
		ev_diagnosis_add(diagnosis, "lock", EV_HEALTH_OK,
						 "the bucket locks each object for %d days (%s): expired archives stay so long",
						 lock.days, lock.mode == EV_S3_LOCK_COMPLIANCE ?
						 "COMPLIANCE" : "GOVERNANCE");
}
