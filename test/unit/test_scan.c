/*-------------------------------------------------------------------------
 *
 * test_scan.c
 *	  The fast scans give what a plain loop gives, and overrun nothing.
 *
 * Texts lie in memory of exactly their size, so that the sanitizer build sees
 * any byte read or written behind the end.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "anchor.h"
#include "scan.h"
#include "tap.h"

#define ROUNDS 20000
#define LONGEST 100

static uint32_t state = 1;

static unsigned
random_below(unsigned limit)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % limit;
}

/* Mostly letters, now and then one of the bytes that matter. */
static char *
random_text(size_t length)
{
	static const char odd[] = "\t\n\v\f\r\x01\x1f \x7f,\"%\x80\xff\x7e!";
	char	   *text = malloc(length > 0 ? length : 1);
	size_t		i;

	for (i = 0; i < length; i++)
		if (random_below(12) == 0)
			text[i] = odd[random_below(sizeof(odd))];
		else
			text[i] = (char) ('a' + random_below(26));
	return text;
}

static bool
is_line(char c)
{
	return c >= '\t' && c <= '\r';
}

static bool
is_other(char c)
{
	unsigned char byte = (unsigned char) c;

	return byte >= 0x7F || (byte < 0x20 && !is_line(c));
}

static bool
same_kinds(const char *text, size_t length)
{
	unsigned	kinds = 0;
	size_t		i;

	for (i = 0; i < length; i++)
		kinds |= ev_scan_bytes(text + i, 1);
	return kinds == ev_scan_bytes(text, length);
}

static bool
same_plain(const char *text, size_t length)
{
	size_t		run = 0;

	while (run < length && !is_line(text[run]) && !is_other(text[run]))
		run++;
	return run == ev_scan_plain(text, length);
}

static bool
same_lines(const char *text, size_t length)
{
	char	   *got = malloc(length + 1);
	char	   *wanted = malloc(length + 1);
	char	   *to = got;
	bool		lines = false;
	bool		some = false;
	size_t		used = ev_scan_lines(text, length, &to, &lines);
	size_t		i;
	size_t		n = 0;
	bool		same;

	for (i = 0; i < length && !is_other(text[i]); i++)
		if (is_line(text[i]))
			some = true;
		else
			wanted[n++] = text[i];
	same = used == i && lines == some && (size_t) (to - got) == n &&
		memcmp(got, wanted, n) == 0;
	free(got);
	free(wanted);
	return same;
}

static bool
same_blanks(const char *text, size_t length)
{
	char	   *got = malloc(length > 0 ? length : 1);
	bool		same = true;
	size_t		i;

	/* The function is for ASCII only. */
	if ((ev_scan_bytes(text, length) & EV_HAS_HIGH) == 0)
	{
		ev_blank_controls(text, length, got);
		for (i = 0; i < length; i++)
			same = same &&
				got[i] == (is_line(text[i]) || is_other(text[i]) ?
						   ' ' : text[i]);
	}
	free(got);
	return same;
}

/* Anchors at every place of texts of every length. */
static void
test_anchors(void)
{
	static const char *const literals[] = {"abc", "token", "X-Key", "://"};
	EvAnchorSet *set = ev_anchor_set_create();
	bool		wanted[5];
	int			missed = 0;
	int			wrong = 0;
	int			k;
	size_t		length;

	for (k = 0; k < 4; k++)
		ev_anchor_add(set, literals[k], k);
	for (length = 3; length < 40; length++)
	{
		for (k = 0; k < 4; k++)
		{
			size_t		size = strlen(literals[k]);
			size_t		at;

			for (at = 0; at + size <= length; at++)
			{
				char	   *text = malloc(length);

				memset(text, 'z', length);
				memcpy(text + at, literals[k], size);
				if (random_below(2) == 0 && text[at] >= 'a')
					text[at] = (char) (text[at] - 32);
				if (!ev_anchor_find(set, text, length, wanted, 5) ||
					!wanted[k])
					missed++;
				text[at + size - 1] = '?';
				if (ev_anchor_find(set, text, length, wanted, 5))
					wrong++;
				free(text);
			}
		}
	}
	ok(missed == 0, "anchors are found at every place (%d missed)", missed);
	ok(wrong == 0, "and nothing else is (%d wrong)", wrong);
	ok(ev_anchor_always(set, 4) &&
	   ev_anchor_find(set, "x", 1, wanted, 5) && wanted[4] && !wanted[0],
	   "a rule without anchors is always wanted");
	ok(!ev_anchor_valid("ab") && ev_anchor_valid("abc") &&
	   !ev_anchor_valid("ab\xC3\xA4") &&
	   !ev_anchor_valid("12345678901234567890123456789012345678901"),
	   "anchors have 3 to 40 ASCII characters");
	ev_anchor_set_free(set);
}

int
main(void)
{
	int			kinds = 0;
	int			plain = 0;
	int			lines = 0;
	int			blanks = 0;
	int			i;

	for (i = 0; i < ROUNDS; i++)
	{
		size_t		length = random_below(LONGEST);
		char	   *text = random_text(length);

		kinds += !same_kinds(text, length);
		plain += !same_plain(text, length);
		lines += !same_lines(text, length);
		blanks += !same_blanks(text, length);
		free(text);
	}
	ok(kinds == 0, "kinds of bytes (%d of %d wrong)", kinds, ROUNDS);
	ok(plain == 0, "plain runs (%d wrong)", plain);
	ok(lines == 0, "line breaks dropped (%d wrong)", lines);
	ok(blanks == 0, "controls blanked (%d wrong)", blanks);
	test_anchors();
	return tap_done();
}
