/*-------------------------------------------------------------------------
 *
 * report.c
 *	  What the verifier found: every fault, by the check that found it.
 *
 * The report has a fixed size, whatever the file holds: faults of one kind
 * are counted where they are found and reported once with their number.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

static const struct
{
	const char *name;
	const char *meaning;
}			checks[EV_CHECK_COUNT] = {

	[EV_CHECK_LAYOUT] = {"layout",
	"the ZIP holds records.csv and manifest.json and nothing else"},
	[EV_CHECK_MANIFEST] = {"manifest",
	"manifest.json can be read and is complete"},
	[EV_CHECK_CANONICAL] = {"canonical",
	"manifest.json has the canonical form"},
	[EV_CHECK_FORMAT] = {"format",
	"the format is known"},
	[EV_CHECK_IDENTITY] = {"identity",
	"the package is that of the export asked for"},
	[EV_CHECK_DIGEST] = {"digest",
	"the request digest is that of the request"},
	[EV_CHECK_BYTES] = {"bytes",
	"records.csv has the stated size"},
	[EV_CHECK_SHA256] = {"sha256",
	"records.csv has the stated SHA-256"},
	[EV_CHECK_RECORDS] = {"records",
	"records.csv has the stated number of records"},
	[EV_CHECK_COLUMNS] = {"columns",
	"header and records fit the stated columns"},
	[EV_CHECK_CSV] = {"csv",
	"records.csv follows RFC 4180 with CR LF"},
	[EV_CHECK_UTF8] = {"utf8",
	"records.csv is valid UTF-8"},
	[EV_CHECK_CONTROL] = {"control",
	"no cell holds control or bidirectional characters"},
	[EV_CHECK_FORMULA] = {"formula",
	"no cell opens as a formula"},
	[EV_CHECK_RANGE] = {"range",
	"every record lies in the stated range"},
	[EV_CHECK_ORDER] = {"order",
	"records ascend by created_at and id"},
	[EV_CHECK_ENDS] = {"ends",
	"first and last record are those stated"},
	[EV_CHECK_CELLS] = {"cells",
	"the stated numbers of changed cells are possible"}
};

void
ev_report_clear(EvVerifyReport *report)
{
	memset(report, 0, sizeof(*report));
	report->records = -1;
	report->records_bytes = -1;
	report->archive_bytes = -1;
}

void
ev_report_fault(EvVerifyReport *report, EvCheck check, const char *format,...)
{
	report->verdicts[check] = EV_VERDICT_FAILED;
	if (report->nfaults < EV_FAULT_LIMIT)
	{
		EvFault    *fault = &report->faults[report->nfaults];
		va_list		arguments;

		fault->check = check;
		va_start(arguments, format);
		vsnprintf(fault->text, sizeof(fault->text), format, arguments);
		va_end(arguments);
	}
	report->nfaults++;
}

void
ev_report_checked(EvVerifyReport *report, EvCheck check)
{
	if (report->verdicts[check] == EV_VERDICT_SKIPPED)
		report->verdicts[check] = EV_VERDICT_PASSED;
}

const char *
ev_check_name(EvCheck check)
{
	return checks[check].name;
}

const char *
ev_check_meaning(EvCheck check)
{
	return checks[check].meaning;
}
