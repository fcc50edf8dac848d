/*-------------------------------------------------------------------------
 *
 * findings.c
 *	  What a comparison of ledger and object store has found.
 *
 * Each rule proposes one action, in the words of the requirement: record,
 * revoke, continue or clean.  The program itself carries out "clean" alone.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "findings.h"
#include "log.h"

static const struct
{
	const char *name;
	const char *action;
}			rules[] = {
	[EV_FINDING_MISSING] = {"object_missing", "revoke"},
	[EV_FINDING_DIFFERS] = {"object_differs", "revoke"},
	[EV_FINDING_ORPHAN] = {"object_orphan", "clean"},
	[EV_FINDING_LEFT] = {"object_left", "clean"},
	[EV_FINDING_MULTIPART] = {"multipart_unfinished", "clean"},
	[EV_FINDING_FOREIGN] = {"object_foreign", "record"}
};

/* A copy, or NULL for a text that says nothing. */
static char *
copy(EvFindings *findings, const char *text)
{
	char	   *result;

	if (text == NULL || text[0] == '\0')
		return NULL;
	result = strdup(text);
	if (result == NULL)
		findings->failed = true;
	return result;
}

EvFinding *
ev_findings_add(EvFindings *findings, EvFindingRule rule, const char *key,
				const char *export_id, const char *state)
{
	EvFinding  *finding;

	if (findings->count == findings->room)
	{
		int			room = findings->room * 2 + 16;
		EvFinding  *items = realloc(findings->items,
									(size_t) room * sizeof(EvFinding));

		if (items == NULL)
		{
			findings->failed = true;
			return NULL;
		}
		findings->items = items;
		findings->room = room;
	}
	finding = &findings->items[findings->count++];
	memset(finding, 0, sizeof(*finding));
	finding->rule = rule;
	finding->key = copy(findings, key);
	finding->export_id = copy(findings, export_id);
	finding->state = copy(findings, state);
	finding->bytes = -1;
	finding->expected_bytes = -1;
	finding->age = -1;
	return finding;
}

void
ev_finding_note(EvFinding *finding, const char *format,...)
{
	char		text[600];
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	free(finding->note);
	finding->note = strdup(text);
}

void
ev_findings_free(EvFindings *findings)
{
	int			i;

	for (i = 0; i < findings->count; i++)
	{
		EvFinding  *finding = &findings->items[i];

		free(finding->key);
		free(finding->export_id);
		free(finding->state);
		free(finding->version);
		free(finding->upload_id);
		free(finding->note);
	}
	free(findings->items);
	memset(findings, 0, sizeof(*findings));
}

/* Keys in a bucket need not be valid text. */
static json_t *
text_value(const char *text)
{
	json_t	   *value;
	char	   *plain;
	char	   *at;

	if (text == NULL)
		return json_null();
	value = json_string(text);
	if (value != NULL)
		return value;
	plain = strdup(text);
	for (at = plain; at != NULL && *at != '\0'; at++)
		if (*at & 0x80)
			*at = '?';
	value = json_string(plain == NULL ? "" : plain);
	free(plain);
	return value;
}

/* Members that are unknown are left out of the detail. */
static void
put_text(json_t *detail, const char *key, const char *text)
{
	if (text != NULL)
		json_object_set_new(detail, key, text_value(text));
}

static void
put_number(json_t *detail, const char *key, int64_t number)
{
	if (number >= 0)
		json_object_set_new(detail, key, json_integer(number));
}

/* All of them, in the form that the ledger takes. */
static json_t *
findings_value(const EvFindings *findings)
{
	json_t	   *list = json_array();
	int			i;

	for (i = 0; i < findings->count; i++)
	{
		const EvFinding *finding = &findings->items[i];
		json_t	   *value = json_object();
		json_t	   *detail = json_object();

		if (finding->dropped)
		{
			json_decref(value);
			json_decref(detail);
			continue;
		}
		put_text(detail, "state", finding->state);
		put_text(detail, "version", finding->version);
		put_text(detail, "upload_id", finding->upload_id);
		put_text(detail, "note", finding->note);
		put_number(detail, "bytes", finding->bytes);
		put_number(detail, "expected_bytes", finding->expected_bytes);
		put_number(detail, "age_seconds", finding->age);
		json_object_set_new(value, "rule",
							json_string(rules[finding->rule].name));
		json_object_set_new(value, "key", text_value(finding->key));
		json_object_set_new(value, "export_id",
							text_value(finding->export_id));
		json_object_set_new(value, "action",
							json_string(rules[finding->rule].action));
		json_object_set_new(value, "fixed", json_boolean(finding->fixed));
		json_object_set_new(value, "detail", detail);
		json_array_append_new(list, value);
	}
	return list;
}

char *
ev_findings_json(const EvFindings *findings)
{
	json_t	   *value = findings_value(findings);
	char	   *text = json_dumps(value, JSON_COMPACT);

	json_decref(value);
	return text;
}

/* An age in the unit that suits it. */
static void
age_text(char *text, size_t size, int64_t age)
{
	if (age < 0)
		text[0] = '\0';
	else if (age < 7200)
		snprintf(text, size, "%" PRId64 " min", age / 60);
	else if (age < 2 * 86400)
		snprintf(text, size, "%" PRId64 " h", age / 3600);
	else
		snprintf(text, size, "%" PRId64 " d", age / 86400);
}

/* One line, and a second one for what is to be said besides. */
static void
print_finding(const EvFinding *finding)
{
	char		age[32];

	age_text(age, sizeof(age), finding->age);
	printf("%-20s  %-8s  %-8s  ", rules[finding->rule].name,
		   finding->fixed ? "cleaned" : rules[finding->rule].action, age);
	ev_log_text(stdout, finding->key == NULL ? "" : finding->key);
	if (finding->version != NULL)
	{
		printf(" version ");
		ev_log_text(stdout, finding->version);
	}
	fputc('\n', stdout);
	if (finding->bytes >= 0 && finding->expected_bytes >= 0 &&
		finding->bytes != finding->expected_bytes)
		printf("%42s%" PRId64 " bytes, %" PRId64 " expected\n", "",
			   finding->bytes, finding->expected_bytes);
	if (finding->export_id != NULL)
		printf("%42sexport %s is %s\n", "", finding->export_id,
			   finding->state == NULL ? "unknown" : finding->state);
	if (finding->note != NULL)
	{
		printf("%42s", "");
		ev_log_text(stdout, finding->note);
		fputc('\n', stdout);
	}
}

void
ev_findings_print(const EvFindings *findings,
				  const EvReconciliation *summary, bool json)
{
	int			shown = 0;
	int			i;

	if (json)
	{
		json_t	   *value = json_object();

		json_object_set_new(value, "bucket", text_value(summary->bucket));
		json_object_set_new(value, "prefix", text_value(summary->prefix));
		json_object_set_new(value, "objects", json_integer(summary->objects));
		json_object_set_new(value, "needed", json_integer(summary->needed));
		json_object_set_new(value, "unfinished_uploads",
							json_integer(summary->uploads));
		json_object_set_new(value, "open", json_integer(summary->open));
		json_object_set_new(value, "findings", findings_value(findings));
		json_dumpf(value, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
		fputc('\n', stdout);
		json_decref(value);
		return;
	}
	for (i = 0; i < findings->count; i++)
	{
		if (findings->items[i].dropped)
			continue;
		if (shown++ == 0)
			printf("%-20s  %-8s  %-8s  %s\n", "RULE", "ACTION", "AGE", "KEY");
		print_finding(&findings->items[i]);
	}
	if (shown > 0)
		fputc('\n', stdout);
	printf("bucket \"%s\", prefix \"%s\": %" PRId64 " objects, %" PRId64 " needed, %" PRId64 " unfinished uploads, %" PRId64 " findings open\n",
		   summary->bucket, summary->prefix, summary->objects,
		   summary->needed, summary->uploads, summary->open);
}
