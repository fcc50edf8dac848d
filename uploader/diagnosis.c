/*-------------------------------------------------------------------------
 *
 * diagnosis.c
 *	  The list of checks that "doctor" makes, and how it is printed.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>

#include <jansson.h>

#include "diagnosis.h"
#include "log.h"

static const char *const words[] = {
	[EV_HEALTH_OK] = "ok",
	[EV_HEALTH_WARNING] = "warning",
	[EV_HEALTH_FAIL] = "FAIL"
};

void
ev_diagnosis_add(EvDiagnosis *diagnosis, const char *name, EvHealth health,
				 const char *format,...)
{
	EvCheckup  *checkup;
	va_list		arguments;

	if (health == EV_HEALTH_FAIL)
		diagnosis->failed++;
	if (health == EV_HEALTH_WARNING)
		diagnosis->warnings++;
	if (diagnosis->count == EV_CHECKUPS_LIMIT)
		return;
	checkup = &diagnosis->checkups[diagnosis->count++];
	checkup->name = name;
	checkup->health = health;
	checkup->advice[0] = '\0';
	va_start(arguments, format);
	vsnprintf(checkup->text, sizeof(checkup->text), format, arguments);
	va_end(arguments);
}

void
ev_diagnosis_advise(EvDiagnosis *diagnosis, const char *format,...)
{
	EvCheckup  *checkup = &diagnosis->checkups[diagnosis->count - 1];
	va_list		arguments;

	va_start(arguments, format);
	vsnprintf(checkup->advice, sizeof(checkup->advice), format, arguments);
	va_end(arguments);
}

void
ev_diagnosis_failure(EvDiagnosis *diagnosis, const char *name,
					 const EvFailure *failure)
{
	ev_diagnosis_add(diagnosis, name, EV_HEALTH_FAIL, "%s%s%s",
					 failure->doing, failure->doing[0] == '\0' ? "" : ": ",
					 failure->text);
	if (failure->hint[0] != '\0')
		ev_diagnosis_advise(diagnosis, "%s", failure->hint);
}

/* A text that need not be valid. */
static json_t *
text_value(const char *text)
{
	json_t	   *value = json_string(text);

	return value == NULL ? json_string("(not valid UTF-8)") : value;
}

void
ev_diagnosis_print(const EvDiagnosis *diagnosis, bool json)
{
	int			i;

	if (json)
	{
		json_t	   *value = json_object();
		json_t	   *checks = json_array();

		for (i = 0; i < diagnosis->count; i++)
		{
			const EvCheckup *checkup = &diagnosis->checkups[i];
			json_t	   *check = json_object();

			json_object_set_new(check, "check", json_string(checkup->name));
			json_object_set_new(check, "result",
								json_string(words[checkup->health]));
			json_object_set_new(check, "text", text_value(checkup->text));
			json_object_set_new(check, "advice", checkup->advice[0] == '\0' ?
								json_null() : text_value(checkup->advice));
			json_array_append_new(checks, check);
		}
		json_object_set_new(value, "checks", checks);
		json_object_set_new(value, "failed", json_integer(diagnosis->failed));
		json_object_set_new(value, "warnings",
							json_integer(diagnosis->warnings));
		json_dumpf(value, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
		fputc('\n', stdout);
		json_decref(value);
		return;
	}
	for (i = 0; i < diagnosis->count; i++)
	{
		const EvCheckup *checkup = &diagnosis->checkups[i];

		printf("%-8s %-13s ", words[checkup->health], checkup->name);
		ev_log_text(stdout, checkup->text);
		fputc('\n', stdout);
		if (checkup->advice[0] == '\0')
			continue;
		printf("%-22s ", "");
		ev_log_text(stdout, checkup->advice);
		fputc('\n', stdout);
	}
}
