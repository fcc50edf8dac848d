/*-------------------------------------------------------------------------
 *
 * test_s3_text.c
 *	  Encodings, dates, buffers and the cleaning of messages.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "s3_text.h"
#include "tap.h"

static void
check_encoded(const char *text, bool keep_slash, const char *wanted)
{
	EvS3Buffer	buffer;

	memset(&buffer, 0, sizeof(buffer));
	ev_s3_buffer_encoded(&buffer, text, keep_slash);
	is(buffer.data != NULL ? buffer.data : "", wanted, "encoded");
	ev_s3_buffer_free(&buffer);
}

static void
test_encoding(void)
{
	char		text[256];
	char		each[4];
	int			i;

	check_encoded("AZaz09-._~", false, "AZaz09-._~");
	check_encoded("a/b", true, "a/b");
	check_encoded("a/b", false, "a%2Fb");
	check_encoded("a b+c=d&e", false, "a%20b%2Bc%3Dd%26e");
	check_encoded("! $'()*,;:@\\\"", true, "%21%20%24%27%28%29%2A%2C%3B%3A%40%5C%22");
	check_encoded("\xc3\xbc\xff\x01\x7f", true, "%C3%BC%FF%01%7F");
	check_encoded("a/../b/./c%2f", true, "a/../b/./c%252f");
	check_encoded("", true, "");

	/* Every byte there and back. */
	for (i = 1; i < 256; i++)
	{
		EvS3Buffer	buffer;

		snprintf(each, sizeof(each), "x%cy", i);
		memset(&buffer, 0, sizeof(buffer));
		ev_s3_buffer_encoded(&buffer, each, false);
		snprintf(text, sizeof(text), "%s", buffer.data);
		ev_s3_decode(text);
		if (strcmp(text, each) != 0)
			break;
		ev_s3_buffer_free(&buffer);
	}
	ok(i == 256, "each byte comes back from its encoding");

	strcpy(text, "a+b%2Bc%");
	ev_s3_decode(text);
	is(text, "a b+c%", "a plus is a blank, a lone percent stays");
	strcpy(text, "%4");
	ev_s3_decode(text);
	is(text, "%4", "half an escape at the end");
	strcpy(text, "%zz%4g");
	ev_s3_decode(text);
	is(text, "%zz%4g", "no hex digits");
}

static void
test_query(void)
{
	EvS3Query	query;
	EvS3Buffer	buffer;
	int			i;

	memset(&query, 0, sizeof(query));
	memset(&buffer, 0, sizeof(buffer));
	ok(ev_s3_query_write(&query, &buffer) && buffer.length == 0,
	   "no query, no question mark");
	ev_s3_query_add(&query, "uploadId", "2~a/b+c");
	ev_s3_query_add(&query, "partNumber", "7");
	ev_s3_query_add(&query, "uploads", NULL);
	ev_s3_query_add(&query, "max-keys", "");
	ev_s3_query_write(&query, &buffer);
	is(buffer.data, "?max-keys=&partNumber=7&uploadId=2~a%2Fb%2Bc&uploads=",
	   "in order, encoded, and an equals sign behind each name");
	for (i = 0; i < 2 * EV_S3_QUERY_LIMIT; i++)
		ev_s3_query_add(&query, "z", "");
	ok(query.count == EV_S3_QUERY_LIMIT, "too many names do no harm");
	ev_s3_buffer_free(&buffer);
}

static void
test_buffer(void)
{
	EvS3Buffer	buffer;
	int			i;

	memset(&buffer, 0, sizeof(buffer));
	buffer.limit = 10;
	ok(ev_s3_buffer_text(&buffer, "12345") &&
	   ev_s3_buffer_text(&buffer, "67890"), "up to the limit");
	ok(!ev_s3_buffer_text(&buffer, "1"), "one more is refused");
	ok(!ev_s3_buffer_text(&buffer, ""), "and everything after that");
	is(buffer.data, "1234567890", "what was there stays");
	ev_s3_buffer_free(&buffer);
	for (i = 0; i < 5000; i++)
		ev_s3_buffer_printf(&buffer, "%d,", i % 10);
	ok(buffer.length == 10000 && strlen(buffer.data) == 10000, "it grows");
	ev_s3_buffer_free(&buffer);
	ev_s3_buffer_xml(&buffer, "a<b>&\"c'");
	is(buffer.data, "a&lt;b&gt;&amp;&quot;c'", "as the content of XML");
	ev_s3_buffer_free(&buffer);
}

static void
test_digests(void)
{
	static const char empty[] =
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
	static const char ones[] =
	"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";
	char		base64[EV_S3_BASE64_TEXT];
	char		sha256[EV_S3_SHA256_SIZE];

	ev_s3_base64(empty, base64);
	is(base64, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "Base64");
	ok(ev_s3_unbase64(base64, sha256), "and back");
	is(sha256, empty, "to the same digest");
	ev_s3_base64(ones, base64);
	ok(ev_s3_unbase64(base64, sha256) && strcmp(sha256, ones) == 0,
	   "all bits set");
	ok(!ev_s3_unbase64("47DEQpj8HBSa", sha256) && sha256[0] == '\0',
	   "too short");
	ok(!ev_s3_unbase64("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", sha256),
	   "without the sign at the end");
	ok(!ev_s3_unbase64("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=", sha256),
	   "bits where none can be");
	ok(!ev_s3_unbase64("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU==", sha256),
	   "too long");
	ok(!ev_s3_unbase64("", sha256), "empty");
	ok(ev_s3_is_sha256(empty), "a digest");
	ok(!ev_s3_is_sha256(empty + 1) && !ev_s3_is_sha256("") &&
	   !ev_s3_is_sha256("E3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
	   "no digests: too short, empty, upper case");
}

static void
test_quotes(void)
{
	char		to[6];

	ok(ev_s3_unquote("\"abc\"", to, sizeof(to)), "an ETag in quotes");
	is(to, "abc", "without them");
	ok(ev_s3_unquote("abcde", to, sizeof(to)), "one without");
	is(to, "abcde", "as it is");
	ok(ev_s3_unquote("\"", to, sizeof(to)) && strcmp(to, "\"") == 0,
	   "a single quote is no pair");
	ok(ev_s3_unquote("\"\"", to, sizeof(to)) && to[0] == '\0', "empty");
	ok(!ev_s3_unquote("abcdef", to, sizeof(to)) && to[0] == '\0',
	   "what does not fit is not cut");
}

static void
test_dates(void)
{
	char		text[EV_S3_DATE_TEXT];

	ok(ev_s3_iso_date("1970-01-01T00:00:00Z") == 0, "the first second");
	ok(ev_s3_iso_date("2026-11-30T20:00:00Z") == 1796068800, "a date");
	ok(ev_s3_iso_date("2026-11-30T20:00:00.123456789Z") == 1796068800,
	   "with a fraction");
	ok(ev_s3_iso_date("2024-02-29T12:00:00Z") == 1709208000, "a leap day");
	ok(ev_s3_iso_date("2026-02-29T12:00:00Z") == -1, "none");
	ok(ev_s3_iso_date("2026-13-01T12:00:00Z") == -1, "a month 13");
	ok(ev_s3_iso_date("2026-11-30T25:00:00Z") == -1, "an hour 25");
	ok(ev_s3_iso_date("2026-11-30T20:00:00") == -1, "no zone");
	ok(ev_s3_iso_date("2026-11-30T20:00:00+01:00") == -1, "another zone");
	ok(ev_s3_iso_date("") == -1 && ev_s3_iso_date("x") == -1, "no date");
	ok(ev_s3_http_date("Mon, 30 Nov 2026 20:00:00 GMT") == 1796068800,
	   "a date as HTTP has it");
	ok(ev_s3_http_date("Mon, 30 nov 2026 20:00:00 GMT") == -1 &&
	   ev_s3_http_date("Mon, 30 Nov 2026 20:00:00") == -1 &&
	   ev_s3_http_date("Mon, 30 Nov 2026 20:00:00 GMTx") == -1 &&
	   ev_s3_http_date("Mon, 30 anF 2026 20:00:00 GMT") == -1 &&
	   ev_s3_http_date("Mon, 31 Nov 2026 20:00:00 GMT") == -1 &&
	   ev_s3_http_date("") == -1, "none as HTTP has it");
	ev_s3_date_text(1796068800, text);
	is(text, "2026-11-30T20:00:00Z", "as a text");
	ev_s3_date_text(INT64_MAX, text);
	is(text, "", "a date beyond all calendars");
}

static void
test_numbers(void)
{
	ok(ev_s3_number("0") == 0 && ev_s3_number("0012") == 12 &&
	   ev_s3_number("200000000") == 200000000, "numbers");
	ok(ev_s3_number("") == -1 && ev_s3_number("-1") == -1 &&
	   ev_s3_number("+1") == -1 && ev_s3_number(" 1") == -1 &&
	   ev_s3_number("1x") == -1 && ev_s3_number("0x1") == -1, "no numbers");
	ok(ev_s3_number("99999999999999999999") == -1, "too large a number");
}

static void
check_clean(const char *text, const char *secret, const char *wanted)
{
	const char *secrets[2] = {secret, NULL};
	char		copy[256];

	strcpy(copy, text);
	ev_s3_clean(copy, secrets, 2);
	is(copy, wanted, "cleaned");
}

static void
test_cleaning(void)
{
	check_clean("Please reduce your request rate.", NULL,
				"Please reduce your request rate");
	check_clean("key hunter2secret is hunter2secret", "hunter2secret",
				"key [redacted] is [redacted]");
	check_clean("abab", "ab", "[r[r");
	check_clean("aaaa", "a", "[[[[");
	check_clean("empty secret", "", "empty secret");
	check_clean("see https://host/a?X-Amz-Signature=0123&b=c for it", NULL,
				"see https://host/a for it");
	check_clean("(\"http://h/k?sig=1\")", NULL, "(\"http://h/k\")");
	check_clean("at the end http://h/k?sig=1", NULL, "at the end http://h/k");
	check_clean("why? because", NULL, "why? because");
	check_clean("why?", NULL, "why?");
	check_clean("?a=b", NULL, "?a=b");
	check_clean("two\r\nlines\tand\x1b[2J", NULL, "two lines and [2J");
	check_clean("Signature=0123abcd, x X-Amz-Signature=ff signature=", NULL,
				"Signature=, x X-Amz-Signature= signature=");
	check_clean("", NULL, "");
	check_clean(" . . ", NULL, "");
}

int
main(void)
{
	test_encoding();
	test_query();
	test_buffer();
	test_digests();
	test_quotes();
	test_dates();
	test_numbers();
	test_cleaning();
	return tap_done();
}
