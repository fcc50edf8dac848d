/*-------------------------------------------------------------------------
 *
 * test_cell.c
 *	  Cells: guard, cleaning, and that the guard can be undone.
 *
 * Cases C01 to C11, C14 to C17.  The undo rule is written here a second time,
 * from the text in csv.h, and tried on all texts over a small alphabet of
 * everything that matters.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "csv.h"
#include "tap.h"
#include "unicode.h"

static EvCellWork work;
static EvRedactor *redactor;

/* The cell's text with its guard, in a buffer that lasts until the next. */
static const char *
cell_of(const char *text, size_t length, EvRedactor *rules, EvCell *cell)
{
	static EvBuffer out;
	static EvError error;

	ev_buffer_reset(&out);
	if (!ev_cell_make(&work, rules, text, length, cell, &error))
		return error.text;
	if (cell->guarded)
		ev_buffer_append_byte(&out, '\'');
	ev_buffer_append(&out, cell->text, cell->length);
	return out.data;
}

static void
check_cell(const char *text, const char *wanted, const char *name)
{
	EvCell		cell;

	is(cell_of(text, strlen(text), redactor, &cell), wanted, name);
}

static void
test_guard(void)
{
	check_cell("=1+1", "'=1+1", "C01 equals");
	check_cell("+A1", "'+A1", "C01 plus");
	check_cell("-2+3", "'-2+3", "C01 minus");
	check_cell("@SUM(1)", "'@SUM(1)", "C01 at");
	check_cell("\t=1", "' =1", "C02 tab");
	check_cell("\r\n\x1f=1", "'   =1", "C02 several controls");
	check_cell("\x7f=1", "' =1", "C02 DEL");
	check_cell("  =1", "'  =1", "C03 blanks");
	check_cell("\xC2\xA0=1", "'\xC2\xA0=1", "C03 no-break space");
	check_cell("\xC2\x85=1", "' =1", "C03 next line");
	check_cell("\xE3\x80\x80=1", "'\xE3\x80\x80=1", "C03 ideographic space");
	check_cell("\xEF\xBB\xBF=1", "'\xEF\xBB\xBF=1", "C04 BOM");
	check_cell("\xE2\x80\x8B=1", "'\xE2\x80\x8B=1", "C04 zero width space");
	check_cell("\xE2\x80\x8E=1", "' =1", "C04 bidi mark becomes a blank");
	check_cell("\xCC\x81=1", "'\xCC\x81=1", "C04 combining accent");
	check_cell("\xCD\xB8=1", "'\xCD\xB8=1", "C04 unassigned");
	check_cell("\xE3\x85\xA4=1", "'\xE3\x85\xA4=1", "C04 Hangul filler");
	check_cell("\xF3\xA0\x80\xAD=1", "' =1", "C04 tag character");
	check_cell("\xEF\xBC\x9D" "1", "'\xEF\xBC\x9D" "1", "C05 full width");
	check_cell("\xEF\xB9\xA3" "1", "'\xEF\xB9\xA3" "1", "C05 small minus");
	check_cell("\xE2\x81\xBC" "1", "'\xE2\x81\xBC" "1", "C05 superscript");
	check_cell("\xE2\x88\x92" "1", "\xE2\x88\x92" "1", "C05 minus sign stays");
	check_cell("x;=1+1", "x;=1+1", "C06 after a separator nothing changes");
	check_cell("'=1", "''=1", "C07 apostrophe and trigger");
	check_cell("''=1", "'''=1", "C07 two apostrophes and trigger");
	check_cell("' =1", "'' =1", "C07 apostrophe, blank, trigger");
	check_cell("'tis fine", "'tis fine", "C07 apostrophe alone");
	check_cell("'", "'", "C07 nothing but an apostrophe");
	check_cell("-42", "'-42", "C08 signed number");
	check_cell("a=b", "a=b", "C08 trigger inside");
	check_cell("=token:" "Zr81kQvT0bLmW2", "'=token:[redacted:secret]",
			   "C10 formula and secret");
	check_cell("'[redacted:x]", "''[redacted:x]",
			   "C10 what looks like a guarded mark is guarded");
}

static void
test_cleaning(void)
{
	EvCell		cell;

	check_cell("one\r\ntwo", "one  two", "C11 CR LF is two blanks");
	check_cell("one\xE2\x80\xA8two", "one two", "C11 line separator");
	check_cell("one\x0btwo\x0cx", "one two x", "C11 VT and FF");
	check_cell("\xEF\xBF\xBDx", "\xEF\xBF\xBDx", "C16 U+FFFD passes");
	check_cell("a\xF4\x8F\xBF\xBF", "a\xF4\x8F\xBF\xBF", "C16 U+10FFFF");
	check_cell("a\xFF" "b", "a\xEF\xBF\xBD" "b", "C16 a byte that is no UTF-8");
	check_cell("\xED\xA0\xBD", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD",
			   "C16 a surrogate is three bad bytes");
	check_cell("\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD", "C16 overlong zero");
	check_cell("ab\xE2\x82", "ab\xEF\xBF\xBD\xEF\xBF\xBD", "C16 cut off");
	check_cell("a\xE2\x80\xAEz", "a<U+202E>z", "C17 override is shown");
	check_cell("a\xD8\x9Cz", "a<U+061C>z", "C17 Arabic mark is shown");
	check_cell("a\xF3\xA0\x81\x81z", "a<U+E0041>z", "C17 tag is shown");
	check_cell("\xD7\xA9\xD7\x9C 42", "\xD7\xA9\xD7\x9C 42", "C17 Hebrew stays");

	cell_of("a\0b", 3, NULL, &cell);
	ok(cell.cleaned && cell.length == 3 && memcmp(cell.text, "a b", 3) == 0,
	   "a zero byte is a control character");
	cell_of("plain", 5, redactor, &cell);
	ok(!cell.cleaned && !cell.redacted && !cell.guarded && !cell.special,
	   "a plain cell counts nowhere");
	cell_of("\xFF", 1, NULL, &cell);
	ok(cell.cleaned, "a repaired cell counts as cleaned");
	cell_of("password=Hd73pYx2LkQw\x01", 22, redactor, &cell);
	ok(cell.redacted, "a redacted cell counts as redacted");
	cell_of("a,b", 3, NULL, &cell);
	ok(cell.special, "a comma needs quotes");
}

/* The rule of csv.h: where does the text begin behind a guard? */
static size_t
undo(const char *cell, size_t length)
{
	size_t		at = 0;

	while (at < length && cell[at] == '\'')
		at++;
	if (at == 0)
		return 0;
	while (at < length)
	{
		uint32_t	code;
		int			width = ev_utf8_decode(cell + at, length - at, &code);

		if (width == 0)
			return 0;
		if (ev_is_trigger(code) || (length - at >= 10 &&
									memcmp(cell + at, "[redacted:", 10) == 0))
			return 1;
		if (!ev_is_hidden(code))
			return 0;
		at += (size_t) width;
	}
	return 0;
}

/* Seen by the eye, behind characters that the eye does not see? */
static bool
begins_with_trigger(const char *text, size_t length)
{
	while (length > 0)
	{
		uint32_t	code;
		int			width = ev_utf8_decode(text, length, &code);

		if (ev_is_trigger(code))
			return true;
		if (!ev_is_hidden(code))
			return false;
		text += width;
		length -= (size_t) width;
	}
	return false;
}

static int
compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

/* How many texts of up to five, or of up to three, of ten pieces there are. */
#ifdef EV_TEST_SLOW
#define TEXTS 1111
#else
#define TEXTS 111111
#endif

/*
 * Every text of up to five pieces: undoing the guard gives back the cleaned
 * and redacted text, and two such texts never share a cell.  The second part
 * follows from the first, but is checked on its own by sorting.
 */
static void
test_undo(void)
{
	static const char *const pieces[] = {
		"'", "=", " ", "\t", "x", "\xE2\x80\xAE", "\xE2\x80\x8B",
		"[redacted:secret]", "\xEF\xBC\x9D", ("-----BEGIN " "PRIVATE KEY-----")
	};
	const int	npieces = 10;
	const int	total = TEXTS;
	char	  **pairs = malloc((size_t) total * sizeof(char *));
	int			n;
	int			wrong = 0;
	int			visible = 0;
	int			shared = 0;

	for (n = 0; n < total; n++)
	{
		char		text[256] = "";
		EvBuffer	pair = {0};
		EvCell		cell;
		const char *written;
		size_t		length;
		size_t		skipped;
		int			rest = n;

		/* Numbers in base 10 with digits 1 to 10 name all texts once. */
		while (rest > 0)
		{
			strcat(text, pieces[(rest - 1) % npieces]);
			rest = (rest - 1) / npieces;
		}
		written = cell_of(text, strlen(text), redactor, &cell);
		length = cell.length + cell.guarded;
		skipped = undo(written, length);
		if (length - skipped != cell.length ||
			memcmp(written + skipped, cell.text, cell.length) != 0)
			wrong++;

		visible += begins_with_trigger(written, length);
		ev_buffer_append_string(&pair, written);
		ev_buffer_append_byte(&pair, '\n');
		ev_buffer_append(&pair, cell.text, cell.length);
		pairs[n] = pair.data;
	}

	qsort(pairs, (size_t) total, sizeof(char *), compare_texts);
	for (n = 1; n < total; n++)
	{
		size_t		head = (size_t) (strchr(pairs[n], '\n') - pairs[n]) + 1;

		if (strncmp(pairs[n - 1], pairs[n], head) == 0 &&
			strcmp(pairs[n - 1], pairs[n]) != 0)
			shared++;
	}
	ok(wrong == 0, "the guard can be undone (%d of %d texts wrong)", wrong,
	   total);
	ok(shared == 0, "different texts give different cells (%d shared)", shared);
	ok(visible == 0, "no cell begins with a trigger (%d do)", visible);
	for (n = 0; n < total; n++)
		free(pairs[n]);
	free(pairs);
}

int
main(void)
{
	EvError		error;

	redactor = ev_redactor_create(ev_builtin_rules, ev_builtin_rule_count,
								  &error);
	if (!ok(redactor != NULL, "rules compile"))
		return 1;
	test_guard();
	test_cleaning();
	test_undo();
	ev_redactor_free(redactor);
	ev_cell_work_free(&work);
	return tap_done();
}
