/*-------------------------------------------------------------------------
 *
 * s3_text.c
 *	  Encodings, dates and buffers for the client of object stores.
 *
 * libcurl before 8.3 signs the path and the query of an address as they are
 * given, while the store computes its own strict form of them.  The two agree
 * for every key only if the address is in the strict form to begin with: each
 * byte but the unreserved ones as %XX with upper-case digits, the query in
 * the order of its names, and a "=" behind a name without a value.  All three
 * are done here, and right with later releases too.
 *
 * Nothing here knows libcurl, so that unit tests link this file alone.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "s3_text.h"

#define BUFFER_FIRST 256
#define SHA256_DIGITS 64
#define REDACTED "[redacted]"
#define BLANKS " \t\r\n"

bool
ev_s3_buffer_add(EvS3Buffer *buffer, const void *data, size_t length)
{
	if (buffer->failed ||
		(buffer->limit > 0 && length > buffer->limit - buffer->length))
	{
		buffer->failed = true;
		return false;
	}
	if (buffer->length + length + 1 > buffer->size)
	{
		size_t		size = buffer->size > 0 ? buffer->size : BUFFER_FIRST;
		char	   *grown;

		while (size < buffer->length + length + 1)
			size *= 2;
		grown = realloc(buffer->data, size);
		if (grown == NULL)
		{
			buffer->failed = true;
			return false;
		}
		buffer->data = grown;
		buffer->size = size;
	}
	if (length > 0)
		memcpy(buffer->data + buffer->length, data, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
	return true;
}

bool
ev_s3_buffer_text(EvS3Buffer *buffer, const char *text)
{
	return ev_s3_buffer_add(buffer, text, strlen(text));
}

bool
ev_s3_buffer_printf(EvS3Buffer *buffer, const char *format,...)
{
	va_list		arguments;
	char	   *text;
	int			length;
	bool		added;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0)
	{
		buffer->failed = true;
		return false;
	}
	added = ev_s3_buffer_add(buffer, text, (size_t) length);
	free(text);
	return added;
}

bool
ev_s3_buffer_xml(EvS3Buffer *buffer, const char *text)
{
	for (; *text != '\0'; text++)
	{
		switch (*text)
		{
			case '&':
				ev_s3_buffer_text(buffer, "&amp;");
				break;
			case '<':
				ev_s3_buffer_text(buffer, "&lt;");
				break;
			case '>':
				ev_s3_buffer_text(buffer, "&gt;");
				break;
			case '"':
				ev_s3_buffer_text(buffer, "&quot;");
				break;
			default:
				ev_s3_buffer_add(buffer, text, 1);
				break;
		}
	}
	return !buffer->failed;
}

/* The bytes that no encoder of the protocol touches; isalnum has a locale. */
static bool
is_unreserved(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		(c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
		c == '~';
}

bool
ev_s3_buffer_encoded(EvS3Buffer *buffer, const char *text, bool keep_slash)
{
	for (; *text != '\0'; text++)
	{
		if (is_unreserved(*text) || (keep_slash && *text == '/'))
			ev_s3_buffer_add(buffer, text, 1);
		else
			ev_s3_buffer_printf(buffer, "%%%02X", (unsigned char) *text);
	}
	return !buffer->failed;
}

void
ev_s3_buffer_free(EvS3Buffer *buffer)
{
	free(buffer->data);
	memset(buffer, 0, sizeof(*buffer));
}

void
ev_s3_query_add(EvS3Query *query, const char *name, const char *value)
{
	int			at = query->count;

	if (at == EV_S3_QUERY_LIMIT)
		return;

	/* In order: libcurl before 8.3 signs a query unsorted. */
	while (at > 0 && strcmp(query->names[at - 1], name) > 0)
	{
		query->names[at] = query->names[at - 1];
		query->values[at] = query->values[at - 1];
		at--;
	}
	query->names[at] = name;
	query->values[at] = value;
	query->count++;
}

bool
ev_s3_query_write(const EvS3Query *query, EvS3Buffer *buffer)
{
	int			i;

	for (i = 0; i < query->count; i++)
	{
		ev_s3_buffer_text(buffer, i == 0 ? "?" : "&");
		ev_s3_buffer_encoded(buffer, query->names[i], false);

		/* Even without a value: "?uploads" alone is signed wrongly. */
		ev_s3_buffer_text(buffer, "=");
		if (query->values[i] != NULL)
			ev_s3_buffer_encoded(buffer, query->values[i], false);
	}
	return !buffer->failed;
}

bool
ev_s3_unquote(const char *text, char *to, size_t size)
{
	size_t		length = strlen(text);

	if (length >= 2 && text[0] == '"' && text[length - 1] == '"')
	{
		text++;
		length -= 2;
	}
	to[0] = '\0';
	if (length >= size)
		return false;
	memcpy(to, text, length);
	to[length] = '\0';
	return true;
}

/* The value of a hex digit, or -1. */
static int
digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

void
ev_s3_decode(char *text)
{
	char	   *to = text;

	for (; *text != '\0'; text++)
	{
		if (*text == '%' && digit_value(text[1]) >= 0 &&
			digit_value(text[2]) >= 0)
		{
			*to++ = (char) (digit_value(text[1]) * 16 +
							digit_value(text[2]));
			text += 2;
		}
		else
			*to++ = *text == '+' ? ' ' : *text;
	}
	*to = '\0';
}

bool
ev_s3_is_sha256(const char *text)
{
	return strlen(text) == SHA256_DIGITS &&
		strspn(text, "0123456789abcdef") == SHA256_DIGITS;
}

static const char base64_digits[] =
"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
ev_s3_base64(const char *sha256, char base64[EV_S3_BASE64_TEXT])
{
	unsigned	bits = 0;
	int			count = 0;
	int			length = 0;
	int			i;

	for (i = 0; i < SHA256_DIGITS; i++)
	{
		bits = bits << 4 | (unsigned) digit_value(sha256[i]);
		count += 4;
		if (count >= 6)
		{
			count -= 6;
			base64[length++] = base64_digits[bits >> count & 63];
		}
	}

	/* 256 bits are 42 digits, 4 bits that fill one more, and a "=". */
	base64[length++] = base64_digits[bits << (6 - count) & 63];
	base64[length++] = '=';
	base64[length] = '\0';
}

bool
ev_s3_unbase64(const char *base64, char sha256[EV_S3_SHA256_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	char		again[EV_S3_BASE64_TEXT];
	const char *from;
	unsigned	bits = 0;
	int			count = 0;
	int			length = 0;

	for (from = base64; length < SHA256_DIGITS; from++)
	{
		const char *found = *from != '\0' ? strchr(base64_digits, *from) :
		NULL;

		if (found == NULL)
			break;
		bits = bits << 6 | (unsigned) (found - base64_digits);
		for (count += 6; count >= 4 && length < SHA256_DIGITS; count -= 4)
			sha256[length++] = digits[bits >> (count - 4) & 15];
	}
	sha256[length] = '\0';

	/* The way there tells whether the end was right, too. */
	if (length == SHA256_DIGITS)
	{
		ev_s3_base64(sha256, again);
		if (strcmp(base64, again) == 0)
			return true;
	}
	sha256[0] = '\0';
	return false;
}

/* timegm takes any numbers; these are of a date that is there. */
static int64_t
seconds_of(int year, int month, int day, int hour, int minute, int second)
{
	struct tm	broken;
	struct tm	again;
	time_t		seconds;

	memset(&broken, 0, sizeof(broken));
	broken.tm_year = year - 1900;
	broken.tm_mon = month - 1;
	broken.tm_mday = day;
	broken.tm_hour = hour;
	broken.tm_min = minute;
	broken.tm_sec = second;
	seconds = timegm(&broken);
	if (seconds < 0 || gmtime_r(&seconds, &again) == NULL ||
		again.tm_mon != month - 1 || again.tm_mday != day ||
		again.tm_hour != hour)
		return -1;
	return (int64_t) seconds;
}

int64_t
ev_s3_iso_date(const char *text)
{
	int			year;
	int			month;
	int			day;
	int			hour;
	int			minute;
	int			second;
	int			end = 0;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour,
			   &minute, &second, &end) != 6 || end == 0)
		return -1;
	text += end;
	if (*text == '.')
		text += 1 + strspn(text + 1, "0123456789");
	if (strcmp(text, "Z") != 0)
		return -1;
	return seconds_of(year, month, day, hour, minute, second);
}

int64_t
ev_s3_http_date(const char *text)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char		name[4];
	const char *month;
	int			year;
	int			day;
	int			hour;
	int			minute;
	int			second;
	int			end = 0;

	if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n",
			   &day, name, &year, &hour, &minute, &second, &end) != 6 ||
		end == 0 || text[end] != '\0' || strlen(name) != 3)
		return -1;
	month = strstr(months, name);
	if (month == NULL || (month - months) % 3 != 0)
		return -1;
	return seconds_of(year, (int) (month - months) / 3 + 1, day, hour,
					  minute, second);
}

void
ev_s3_date_text(int64_t seconds, char text[EV_S3_DATE_TEXT])
{
	time_t		moment = (time_t) seconds;
	struct tm	broken;

	if (gmtime_r(&moment, &broken) == NULL ||
		strftime(text, EV_S3_DATE_TEXT, "%Y-%m-%dT%H:%M:%SZ", &broken) == 0)
		text[0] = '\0';
}

int64_t
ev_s3_number(const char *text)
{
	int64_t		value = 0;

	if (*text == '\0')
		return -1;
	for (; *text != '\0'; text++)
	{
		if (*text < '0' || *text > '9' || value > (INT64_MAX - 9) / 10)
			return -1;
		value = value * 10 + (*text - '0');
	}
	return value;
}

/* Put the mark in the place of every occurrence that fits. */
static void
redact(char *text, const char *secret)
{
	size_t		length = strlen(secret);
	char	   *found;

	if (length == 0)
		return;
	while ((found = strstr(text, secret)) != NULL)
	{
		size_t		mark = strlen(REDACTED);

		if (mark > length)
			mark = length;
		memcpy(found, REDACTED, mark);
		memmove(found + mark, found + length, strlen(found + length) + 1);

		/* A secret of the mark's own letters must not be found for ever. */
		text = found + mark;
	}
}

/* What signs a request must not be read by others while it counts. */
static void
redact_signatures(char *text)
{
	static const char name[] = "signature=";
	char	   *found = text;

	while ((found = strcasestr(found, name)) != NULL)
	{
		char	   *value = found + sizeof(name) - 1;
		size_t		length = strcspn(value, BLANKS ",&\"'<>");

		memmove(value, value + length, strlen(value + length) + 1);
		found = value;
	}
}

void
ev_s3_clean(char *text, const char *const *secrets, int count)
{
	char	   *from;
	char	   *to;
	int			i;

	for (i = 0; i < count; i++)
	{
		if (secrets[i] != NULL)
			redact(text, secrets[i]);
	}
	redact_signatures(text);
	for (from = to = text; *from != '\0'; from++)
	{
		/* What stands behind "?" in an address may be a signature. */
		if (*from == '?' && from > text && strchr(BLANKS, from[-1]) == NULL &&
			strchr(BLANKS, from[1]) == NULL)
			from += strcspn(from, " \t\r\n\"'<>") - 1;
		else if ((unsigned char) *from >= 0x20 && *from != 0x7f)
			*to++ = *from;
		else if (to > text && to[-1] != ' ')
			*to++ = ' ';
	}
	while (to > text && (to[-1] == ' ' || to[-1] == '.'))
		to--;
	*to = '\0';
}
