/*-------------------------------------------------------------------------
 *
 * view.c
 *	  Changed copies of a text, with a way back to the original.
 *
 * Each byte of a view knows the original bytes it stands for, so views can be
 * made of views: percent signs inside a text that is split by invisible
 * characters are decoded from the copy without these.  The memory is nine
 * times the text, but views are made only of texts that need them, and the
 * buffers are used again.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "unicode.h"
#include "view.h"

static EvOrigin origin_of(const EvView *view, size_t at);
static bool prepare(EvView *out, size_t length);
static void publish(EvView *out, size_t length);
static size_t strip_into(const EvView *from, bool lines, char *text,
						 EvOrigin *origin);
static bool has_percent(const EvView *view);
static int	hex_value(char c);
static void repair_utf8(char *text, size_t length);

/* The view is never longer than the text, so its memory is known before. */
bool
ev_view_strip(const EvView *from, bool lines, EvView *out)
{
	if (!prepare(out, from->length))
		return false;
	publish(out, strip_into(from, lines, out->bytes.data,
							(EvOrigin *) (void *) out->origins.data));
	return true;
}

/*
 * A decoded byte stands for all three characters of its sign, so that a
 * secret which ends in one is replaced to its last digit.
 */
bool
ev_view_percent(const EvView *from, EvView *out, bool *changed)
{
	char	   *text;
	EvOrigin   *origin;
	size_t		i = 0;
	size_t		n = 0;

	*changed = has_percent(from);
	if (!*changed)
		return true;
	if (!prepare(out, from->length))
		return false;
	text = out->bytes.data;
	origin = (EvOrigin *) (void *) out->origins.data;

	while (i < from->length)
	{
		int			high = -1;
		int			low = -1;

		origin[n] = origin_of(from, i);
		if (from->text[i] == '%' && from->length - i > 2)
		{
			high = hex_value(from->text[i + 1]);
			low = hex_value(from->text[i + 2]);
		}
		if (high >= 0 && low >= 0)
		{
			text[n] = (char) (high << 4 | low);
			origin[n].end = origin_of(from, i + 2).end;
			i += 3;
		}
		else
			text[n] = from->text[i++];
		n++;
	}

	/* Stripping in place is safe: it never writes ahead of its reading. */
	repair_utf8(text, n);
	publish(out, n);
	publish(out, strip_into(out, false, text, origin));
	return true;
}

void
ev_view_locate(const EvView *view, size_t start, size_t end,
			   size_t *original_start, size_t *original_end)
{
	*original_start = origin_of(view, start).start;
	*original_end = origin_of(view, end - 1).end;
}

void
ev_view_free(EvView *view)
{
	ev_buffer_free(&view->bytes);
	ev_buffer_free(&view->origins);
}

/* The original text is its own view and needs no table. */
static EvOrigin
origin_of(const EvView *view, size_t at)
{
	EvOrigin	origin;

	if (view->origin != NULL)
		return view->origin[at];
	origin.start = (uint32_t) at;
	origin.end = (uint32_t) at + 1;
	return origin;
}

/*
 * The buffers are kept from value to value, because values that need a view
 * come in swarms.
 */
static bool
prepare(EvView *out, size_t length)
{
	ev_buffer_reset(&out->bytes);
	ev_buffer_reset(&out->origins);
	return ev_buffer_reserve(&out->bytes, length) &&
		ev_buffer_reserve(&out->origins, length * sizeof(EvOrigin));
}

/* The pointers are set only now, since reserving memory may have moved it. */
static void
publish(EvView *out, size_t length)
{
	out->text = out->bytes.data;
	out->length = length;
	out->origin = (const EvOrigin *) (const void *) out->origins.data;
}

/* A character is dropped or kept as a whole, so the view stays valid UTF-8. */
static size_t
strip_into(const EvView *from, bool lines, char *text, EvOrigin *origin)
{
	const char *source = from->text;
	size_t		length = from->length;
	size_t		i = 0;
	size_t		n = 0;

	while (i < length)
	{
		uint32_t	code;
		int			width = 1;
		bool		drop = false;

		if ((unsigned char) source[i] < 0x20 ||
			(unsigned char) source[i] >= 0x7F)
		{
			width = ev_utf8_decode(source + i, length - i, &code);
			drop = ev_is_splitter(code) || (lines && ev_is_control(code));
			if (code == 0x1B)
				width = ev_escape_length(source + i, length - i);
		}
		for (; width > 0; width--, i++)
		{
			if (drop)
				continue;
			origin[n] = origin_of(from, i);
			text[n++] = source[i];
		}
	}
	return n;
}

/*
 * Percent signs and digits also stand in ordinary text.  Only a sign that
 * decodes to a visible byte makes decoding worth its price.
 */
static bool
has_percent(const EvView *view)
{
	const char *text = view->text;
	const char *end = text + view->length;

	while (end - text > 2 &&
		   (text = memchr(text, '%', (size_t) (end - text) - 2)) != NULL)
	{
		if (hex_value(text[1]) >= 2 && hex_value(text[2]) >= 0)
			return true;
		text++;
	}
	return false;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The pattern matcher must never see bytes that are no UTF-8. */
static void
repair_utf8(char *text, size_t length)
{
	size_t		i = 0;

	while (i < length)
	{
		uint32_t	code;
		int			width = ev_utf8_decode(text + i, length - i, &code);

		if (width == 0)
		{
			text[i] = '?';
			width = 1;
		}
		i += width;
	}
}
