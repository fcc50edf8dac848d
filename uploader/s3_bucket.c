/*-------------------------------------------------------------------------
 *
 * s3_bucket.c
 *	  The bucket and its settings: versioning, object lock, lifecycle.
 *
 * The protocol replaces a lifecycle as a whole.  Others may have rules in it
 * that we do not even understand, so theirs are carried over byte by byte as
 * they came, and only our own is written anew.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3_objects.h"
#include "s3_xml.h"

#define LIFECYCLE "LifecycleConfiguration"
#define DAYS_OF_YEAR 365

/* GET a setting of the bucket. */
static EvS3Outcome
get_setting(EvS3 *s3, const char *setting, const char *root,
			EvS3Reply *reply, EvS3Result *result)
{
	EvS3Request request;

	ev_s3_request_init(&request, EV_S3_GET, NULL);
	ev_s3_query_add(&request.query, setting, NULL);
	request.expect = EV_S3_EXPECT_DOCUMENT;
	request.root = root;
	return ev_s3_perform(s3, &request, reply, result);
}

/*
 * Asked with a list of at most one object rather than by the bucket's own
 * look-up, whose answer has no body that could tell denied from elsewhere.
 */
EvS3Outcome
ev_s3_bucket(EvS3 *s3, EvS3Result *result)
{
	EvS3Request request;

	ev_s3_request_init(&request, EV_S3_GET, NULL);
	ev_s3_query_add(&request.query, "list-type", "2");
	ev_s3_query_add(&request.query, "max-keys", "1");
	ev_s3_query_add(&request.query, "encoding-type", "url");
	request.expect = EV_S3_EXPECT_DOCUMENT;
	request.root = "ListBucketResult";
	return ev_s3_perform(s3, &request, NULL, result);
}

static bool
read_versioning(void *arg, const EvS3Element *element)
{
	EvS3Versioning *versioning = arg;

	if (strcmp(element->path, "VersioningConfiguration/Status") == 0)
	{
		if (strcmp(element->text, "Enabled") == 0)
			*versioning = EV_S3_VERSIONING_ENABLED;
		else if (strcmp(element->text, "Suspended") == 0)
			*versioning = EV_S3_VERSIONING_SUSPENDED;
	}
	return true;
}

EvS3Outcome
ev_s3_bucket_versioning(EvS3 *s3, EvS3Versioning *versioning,
						EvS3Result *result)
{
	EvS3Reply	reply;

	*versioning = EV_S3_VERSIONING_NEVER;
	if (get_setting(s3, "versioning", "VersioningConfiguration", &reply,
					result) == EV_S3_OK)
		ev_s3_xml_read(reply.body.data, reply.body.length, read_versioning,
					   versioning);
	ev_s3_buffer_free(&reply.body);
	return result->outcome;
}

#define DEFAULT_RETENTION "ObjectLockConfiguration/Rule/DefaultRetention/"

static bool
read_lock(void *arg, const EvS3Element *element)
{
	EvS3BucketLock *lock = arg;

	if (strcmp(element->path,
			   "ObjectLockConfiguration/ObjectLockEnabled") == 0)
		lock->enabled = strcmp(element->text, "Enabled") == 0;
	else if (strcmp(element->path, DEFAULT_RETENTION "Mode") == 0)
		lock->mode = strcmp(element->text, "COMPLIANCE") == 0 ?
			EV_S3_LOCK_COMPLIANCE : EV_S3_LOCK_GOVERNANCE;
	else if (strcmp(element->path, DEFAULT_RETENTION "Days") == 0)
		lock->days = (int) ev_s3_number(element->text);
	else if (strcmp(element->path, DEFAULT_RETENTION "Years") == 0)
		lock->days = (int) ev_s3_number(element->text) * DAYS_OF_YEAR;
	return true;
}

EvS3Outcome
ev_s3_bucket_lock(EvS3 *s3, EvS3BucketLock *lock, EvS3Result *result)
{
	EvS3Reply	reply;

	memset(lock, 0, sizeof(*lock));
	if (get_setting(s3, "object-lock", "ObjectLockConfiguration", &reply,
					result) == EV_S3_OK)
		ev_s3_xml_read(reply.body.data, reply.body.length, read_lock, lock);
	else if (result->outcome == EV_S3_ABSENT)
		ev_s3_result_set(result, EV_S3_OK, "%s", "");
	ev_s3_buffer_free(&reply.body);
	return result->outcome;
}

/* Reads the rules of a lifecycle. */
typedef struct RuleReader
{
	EvS3RuleFunction function;
	void	   *arg;
	EvS3Rule	rule;			/* that is being read */
	const char *document;
	EvS3Buffer *others;			/* gets the text of rules ... */
	const char *but;			/* ... whose id is not this one; may be NULL */
} RuleReader;

static void
clear_rule(EvS3Rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	rule->expire_date = EV_S3_NEVER;
}

/* A number of days; what is none at all counts as the longest time. */
static int
days_of(const char *text)
{
	int64_t		days = ev_s3_number(text);

	return days >= 0 && days < INT32_MAX ? (int) days : INT32_MAX;
}

/* What stands below a rule, at whatever depth. */
static void
read_rule_field(EvS3Rule *rule, const char *name, const char *text)
{
	if (strcmp(name, "ID") == 0)
		snprintf(rule->id, sizeof(rule->id), "%s", text);
	else if (strcmp(name, "Status") == 0)
		rule->enabled = strcmp(text, "Enabled") == 0;
	else if (strcmp(name, "Prefix") == 0 ||
			 strcmp(name, "Filter/Prefix") == 0 ||
			 strcmp(name, "Filter/And/Prefix") == 0)
		snprintf(rule->prefix, sizeof(rule->prefix), "%s", text);
	else if (strcmp(name, "Expiration/Days") == 0)
		rule->expire_days = days_of(text);
	else if (strcmp(name, "Expiration/Date") == 0)
		rule->expire_date = ev_s3_iso_date(text);
	else if (strcmp(name,
					"AbortIncompleteMultipartUpload/DaysAfterInitiation") == 0)
		rule->abort_days = days_of(text);
	else if (strcmp(name,
					"NoncurrentVersionExpiration/NoncurrentDays") == 0)
		rule->noncurrent_days = days_of(text);
	else if (strncmp(name, "Filter/", 7) == 0 &&
			 strcmp(name, "Filter/And") != 0)
		rule->partial = true;
}

static bool
read_rule(void *arg, const EvS3Element *element)
{
	static const char start[] = LIFECYCLE "/Rule";
	RuleReader *reader = arg;
	bool		wanted = true;

	if (strncmp(element->path, start, sizeof(start) - 1) != 0)
		return true;
	if (element->path[sizeof(start) - 1] == '/')
	{
		read_rule_field(&reader->rule, element->path + sizeof(start),
						element->text);
		return true;
	}
	if (reader->function != NULL)
		wanted = reader->function(reader->arg, &reader->rule);
	if (reader->others != NULL &&
		strcmp(reader->rule.id, reader->but) != 0)
		ev_s3_buffer_add(reader->others, reader->document + element->start,
						 element->end - element->start);
	clear_rule(&reader->rule);
	return wanted;
}

/* Read all rules; a bucket without a lifecycle has none. */
static EvS3Outcome
read_rules(EvS3 *s3, RuleReader *reader, EvS3Result *result)
{
	EvS3Reply	reply;

	clear_rule(&reader->rule);
	get_setting(s3, "lifecycle", LIFECYCLE, &reply, result);
	if (result->outcome == EV_S3_OK)
	{
		reader->document = reply.body.data;
		if (ev_s3_xml_read(reply.body.data, reply.body.length, read_rule,
						   reader) == EV_S3_XML_ENDED)
			ev_s3_result_set(result, EV_S3_STOPPED, "the listing was ended");
	}
	else if (result->outcome == EV_S3_ABSENT)
		ev_s3_result_set(result, EV_S3_OK, "%s", "");
	ev_s3_buffer_free(&reply.body);
	return result->outcome;
}

EvS3Outcome
ev_s3_lifecycle(EvS3 *s3, EvS3RuleFunction function, void *arg,
				EvS3Result *result)
{
	RuleReader	reader;

	memset(&reader, 0, sizeof(reader));
	reader.function = function;
	reader.arg = arg;
	return read_rules(s3, &reader, result);
}

static bool
write_rule(EvS3Buffer *document, const EvS3Rule *rule)
{
	ev_s3_buffer_text(document, "<Rule><ID>");
	ev_s3_buffer_xml(document, rule->id);
	ev_s3_buffer_text(document, "</ID><Filter><Prefix>");
	ev_s3_buffer_xml(document, rule->prefix);
	ev_s3_buffer_text(document, "</Prefix></Filter><Status>Enabled</Status>");
	if (rule->expire_days > 0)
		ev_s3_buffer_printf(document, "<Expiration><Days>%d</Days></Expiration>",
							rule->expire_days);
	if (rule->abort_days > 0)
		ev_s3_buffer_printf(document, "<AbortIncompleteMultipartUpload><DaysAfterInitiation>%d</DaysAfterInitiation></AbortIncompleteMultipartUpload>",
							rule->abort_days);
	if (rule->noncurrent_days > 0)
		ev_s3_buffer_printf(document, "<NoncurrentVersionExpiration><NoncurrentDays>%d</NoncurrentDays></NoncurrentVersionExpiration>",
							rule->noncurrent_days);
	return ev_s3_buffer_text(document, "</Rule>");
}

EvS3Outcome
ev_s3_put_lifecycle(EvS3 *s3, const EvS3Rule *rule, EvS3Result *result)
{
	EvS3Buffer	document;
	EvS3Request request;
	RuleReader	reader;

	if (rule->id[0] == '\0' || rule->expire_days < 0 ||
		rule->abort_days < 0 || rule->noncurrent_days < 0 ||
		rule->expire_days + rule->abort_days + rule->noncurrent_days == 0)
		return ev_s3_result_set(result, EV_S3_REFUSED, "a rule of a lifecycle needs an id and a number of days");
	memset(&document, 0, sizeof(document));
	memset(&reader, 0, sizeof(reader));
	reader.others = &document;
	reader.but = rule->id;
	ev_s3_buffer_text(&document, "<" LIFECYCLE " xmlns=\"" EV_S3_NAMESPACE "\">");
	if (read_rules(s3, &reader, result) == EV_S3_OK)
	{
		write_rule(&document, rule);
		ev_s3_buffer_text(&document, "</" LIFECYCLE ">");
		ev_s3_request_init(&request, EV_S3_PUT, NULL);
		ev_s3_query_add(&request.query, "lifecycle", NULL);
		request.repeatable = true;
		request.body = document.data;
		request.body_length = (int64_t) document.length;
		if (document.failed)
			ev_s3_result_set(result, EV_S3_LOCAL, "out of memory");
		else
			ev_s3_perform(s3, &request, NULL, result);
	}
	ev_s3_buffer_free(&document);
	return result->outcome;
}
