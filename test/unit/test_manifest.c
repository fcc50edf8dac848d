/*-------------------------------------------------------------------------
 *
 * test_manifest.c
 *	  Canonical JSON, the request digest and the manifest.
 *
 * Cases C33 and C36; design section 6.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "manifest.h"
#include "tap.h"

static const char *const columns[] = {"id", "created_at", "summary"};
static const char *const actions[] = {"login.failure", "login.success"};
static const char *const targets[] = {"token=" "Zr81kQvT0bLmW2"};
static const EvFilter filters[] = {
	{"action", actions, 2}, {"target_id", targets, 1}
};

static EvRequest
example_request(void)
{
	EvRequest	request = {0};

	request.source = "audit_log";
	request.start_at = 0;
	request.end_at = INT64_C(86400000000);
	request.filters = filters;
	request.nfilters = 2;
	request.columns = columns;
	request.ncolumns = 3;
	request.purpose = "quarterly \"review\"";
	return request;
}

static void
test_json(void)
{
	EvBuffer	out = {0};
	EvJson		json;
	int			i;

	ev_json_start(&json, &out);
	ev_json_object(&json);
	ev_json_key(&json, "a");
	ev_json_array(&json);
	ev_json_integer(&json, 1);
	ev_json_boolean(&json, false);
	ev_json_null(&json);
	ev_json_object(&json);
	ev_json_end_object(&json);
	ev_json_end_array(&json);
	ev_json_key(&json, "b");
	ev_json_string(&json, "\b\t\n\f\r\"\\/\x01\x1f\x7f\xC3\xA4");
	ev_json_key(&json, "c");
	ev_json_integer(&json, INT64_C(9007199254740993));
	ev_json_key(&json, "d");
	ev_json_string(&json, NULL);
	ev_json_end_object(&json);
	ok(ev_json_finish(&json), "JSON is complete");
	is(out.data, "{\"a\":[1,false,null,{}],\"b\":\"\\b\\t\\n\\f\\r\\\"\\\\/"
	   "\\u0001\\u001f\x7f\xC3\xA4\",\"c\":\"9007199254740993\",\"d\":null}",
	   "JSON has the canonical form");

	ev_buffer_reset(&out);
	ev_json_start(&json, &out);
	ev_json_array(&json);
	ok(!ev_json_finish(&json), "an array that stays open is no success");
	ev_json_start(&json, &out);
	ev_json_end_array(&json);
	ok(!ev_json_finish(&json), "nor is one that was never begun");
	ev_json_start(&json, &out);
	for (i = 0; i < EV_JSON_DEPTH; i++)
		ev_json_array(&json);
	for (i = 0; i < EV_JSON_DEPTH; i++)
		ev_json_end_array(&json);
	ok(!ev_json_finish(&json), "nor are too many within each other");
	ev_buffer_free(&out);
}

static void
test_request(void)
{
	EvRequest	request = example_request();
	EvBuffer	out = {0};
	EvError		error;
	char		hex[EV_SHA256_HEX];
	char		other[EV_SHA256_HEX];

	ok(ev_request_json(&request, &out), "request becomes JSON");
	is(out.data, "{\"columns\":[\"id\",\"created_at\",\"summary\"],"
	   "\"end\":\"2000-01-02T00:00:00.000000Z\","
	   "\"filters\":{\"action\":[\"login.failure\",\"login.success\"],"
	   "\"target_id\":[\"token=Zr81kQvT0bLmW2\"]},"
	   "\"purpose\":\"quarterly \\\"review\\\"\",\"source\":\"audit_log\","
	   "\"start\":\"2000-01-01T00:00:00.000000Z\"}", "request JSON");
	ok(ev_request_digest(&request, hex, &error), "request has a digest");
	is(hex, "a0b39becbf64b0ca707103708344f7e983274895c2aa95c6027c70bd8b918d56", "the digest never changes");
	request.end_at++;
	ok(ev_request_digest(&request, other, &error) && strcmp(hex, other) != 0,
	   "one microsecond is another request");
	ev_buffer_free(&out);
}

static EvManifest
example_manifest(void)
{
	EvManifest	manifest = {0};

	manifest.request = example_request();
	manifest.export_id = "01234567-89ab-4cde-8f01-23456789abcd";
	manifest.generation = 1;
	manifest.requested_by = "alice";
	manifest.request_digest = "digest";
	manifest.policy_version = 3;
	manifest.consistency = "as-of-request";
	manifest.pg_snapshot = "10:20:10,14";
	manifest.system_identifier = "7000000000000000001";
	manifest.redaction = true;
	manifest.ruleset_version = 1;
	manifest.ruleset_sha256 = "rules";
	manifest.producer_version = "1.0";
	manifest.records_sha256 = "records";
	return manifest;
}

static void
test_manifest(void)
{
	EvManifest	manifest = example_manifest();
	EvBuffer	out = {0};
	EvBuffer	again = {0};
	EvError		error;
	EvRedactor *redactor;

	redactor = ev_redactor_create(ev_builtin_rules, ev_builtin_rule_count,
								  &error);
	ok(ev_manifest_json(&manifest, redactor, &out, &error),
	   "an empty export has a manifest");
	ok(strstr(out.data, "\"record_count\":0") != NULL, "C36 count 0");
	ok(strstr(out.data, "\"first\":null") != NULL &&
	   strstr(out.data, "\"last\":null") != NULL, "C36 no first, no last");
	ok(strstr(out.data, "Zr81kQvT0bLmW2") == NULL &&
	   strstr(out.data, "token=[redacted:secret]") != NULL,
	   "C33 a secret in a filter is redacted");
	ok(strstr(out.data, "\"policy\":{\"version\":3}") != NULL, "policy");
	ok(strstr(out.data, "\"redaction\":{\"enabled\":true,\"ruleset\":"
			  "\"pg_evidence\",\"sha256\":\"rules\",\"version\":1}") != NULL,
	   "redaction");
	ok(ev_manifest_json(&manifest, redactor, &again, &error) &&
	   strcmp(out.data, again.data) == 0, "C35 same values, same bytes");

	manifest.has_records = true;
	manifest.first_at = EV_TIMESTAMP_INFINITY;
	manifest.first_id = INT64_MAX;
	manifest.record_count = 5;
	ev_buffer_reset(&out);
	ok(ev_manifest_json(&manifest, NULL, &out, &error) &&
	   strstr(out.data, "\"first\":{\"created_at\":\"infinity\","
			  "\"id\":\"9223372036854775807\"}") != NULL,
	   "C36 an id above 2^53 is a string");
	ok(strstr(out.data, "Zr81kQvT0bLmW2") != NULL,
	   "without a redactor the filter stands as it was given");
	ev_redactor_free(redactor);
	ev_buffer_free(&out);
	ev_buffer_free(&again);
}

static void
test_digests(void)
{
	unsigned char digest[EV_SHA256_BYTES];
	char		hex[EV_SHA256_HEX];
	EvError		error;

	ok(ev_sha256("abc", 3, digest, &error), "SHA-256");
	ev_sha256_hex(digest, hex);
	is(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
	   "SHA-256 of abc as FIPS 180 has it");
	ok(ev_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, digest,
					  &error), "HMAC");
	ev_sha256_hex(digest, hex);
	is(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
	   "HMAC-SHA-256 as RFC 4231 has it");
	ok(!ev_hmac_sha256("", 2000000, "x", 1, digest, &error) &&
	   error.kind == EV_ERROR_ARGUMENT, "a key of 2 MB is refused");
	ok(ev_digest_equal("abc", "abc", 3) && !ev_digest_equal("abc", "abd", 3),
	   "comparison of digests");
}

int
main(void)
{
	test_json();
	test_request();
	test_manifest();
	test_digests();
	return tap_done();
}
