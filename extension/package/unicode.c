/*-------------------------------------------------------------------------
 *
 * unicode.c
 *	  Walk UTF-8 and tell the classes of characters that cells care about.
 *
 * The classes are written out by code point and do not follow the locale or
 * the version of any library: a package made today and one made by a later
 * release from the same rows must have the same bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "unicode.h"

typedef struct EvCodeRange
{
	uint32_t	first;
	uint32_t	last;
} EvCodeRange;

#include "unicode_ranges.h"

#define ESCAPE_LENGTH_MAX 16

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Overlong forms and surrogates are refused: other readers refuse the whole
 * file for one of them, and an overlong zero or quote could hide from the
 * checks here.
 */
int
ev_utf8_decode(const char *text, size_t limit, uint32_t *code)
{
	const unsigned char *p = (const unsigned char *) text;
	uint32_t	value;
	uint32_t	least;
	int			length;
	int			i;

	if (p[0] < 0x80)
	{
		*code = p[0];
		return 1;
	}
	if (p[0] < 0xC2 || p[0] > 0xF4)
		return 0;
	length = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
	if (limit < (size_t) length)
		return 0;

	value = p[0] & (0xFF >> (length + 1));
	for (i = 1; i < length; i++)
	{
		if ((p[i] & 0xC0) != 0x80)
			return 0;
		value = value << 6 | (p[i] & 0x3F);
	}

	least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
	if (value < least || value > 0x10FFFF ||
		(value >= 0xD800 && value <= 0xDFFF))
		return 0;
	*code = value;
	return length;
}

/*
 * This is asked before anything else looks at a text that is not ASCII, so all
 * later code may trust the lengths it finds.
 */
bool
ev_utf8_valid(const char *text, size_t length)
{
	size_t		i = 0;

	while (i < length)
	{
		uint32_t	code;
		int			width = ev_utf8_decode(text + i, length - i, &code);

		if (width == 0)
			return false;
		i += width;
	}
	return true;
}

/*
 * U+2028 and U+2029 are not controls by category, but some readers end a
 * record at them.
 */
bool
ev_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7F && code <= 0x9F) ||
		code == 0x2028 || code == 0x2029;
}

/*
 * These change the order in which a reviewer sees letters, or are not seen at
 * all, so a cell could say one thing to the eye and another to a program.
 * Letters of scripts that run from right to left are not among them.
 */
bool
ev_is_bidi(uint32_t code)
{
	return code == 0x061C || code == 0x200E || code == 0x200F ||
		(code >= 0x202A && code <= 0x202E) ||
		(code >= 0x2066 && code <= 0x206F) ||
		(code >= 0xE0000 && code <= 0xE007F);
}

/*
 * The table has some eight hundred ranges. It is searched only for characters
 * in front of the first visible one, so its speed hardly matters.
 */
bool
ev_is_hidden(uint32_t code)
{
	size_t		low = 0;
	size_t		high = LENGTH_OF(hidden_ranges);

	while (low < high)
	{
		size_t		middle = (low + high) / 2;

		if (code < hidden_ranges[middle].first)
			high = middle;
		else if (code > hidden_ranges[middle].last)
			low = middle + 1;
		else
			return true;
	}
	return false;
}

/*
 * Narrower than ev_is_hidden: combining accents and blanks are visible parts
 * of words, and taking them out would join what belongs apart.
 */
bool
ev_is_splitter(uint32_t code)
{
	/* TAB, LF, VT, FF, CR and the line ends separate words. */
	if ((code >= 0x09 && code <= 0x0D) || code == 0x85)
		return false;
	if (code < 0x20 || (code >= 0x7F && code <= 0x9F))
		return true;
	if (code < 0xAD)
		return false;

	/* Format characters, fillers drawn as nothing, variation selectors. */
	return code == 0xAD || code == 0x034F || code == 0x061C ||
		code == 0x115F || code == 0x1160 ||
		code == 0x17B4 || code == 0x17B5 ||
		(code >= 0x180B && code <= 0x180F) ||
		(code >= 0x200B && code <= 0x200F) ||
		(code >= 0x202A && code <= 0x202E) ||
		(code >= 0x2060 && code <= 0x206F) ||
		code == 0x2800 || code == 0x3164 ||
		(code >= 0xFE00 && code <= 0xFE0F) || code == 0xFEFF ||
		code == 0xFFA0 || (code >= 0xFFF9 && code <= 0xFFFB) ||
		(code >= 0x1BCA0 && code <= 0x1BCA3) ||
		(code >= 0x1D173 && code <= 0x1D17A) ||
		(code >= 0xE0000 && code <= 0xE0FFF);
}

/*
 * Logs of terminals hold sequences such as ESC [ 3 1 m.  They are taken out
 * as a whole, or the rest of each would stand in the middle of a word.
 */
int
ev_escape_length(const char *text, size_t limit)
{
	size_t		i = 2;

	if (limit < 3 || text[0] != 0x1B || text[1] != '[')
		return 1;
	while (i < limit && i < ESCAPE_LENGTH_MAX &&
		   text[i] >= 0x20 && text[i] <= 0x3F)
		i++;
	if (i == limit || i == ESCAPE_LENGTH_MAX || text[i] < 0x40 ||
		text[i] == 0x7F)
		return 1;
	return (int) i + 1;
}

/*
 * The list is what compatibility folding (NFKC) turns into one of the four
 * signs at the front. U+2212, the mathematical minus, is not folded and no
 * spreadsheet begins a formula with it.
 */
bool
ev_is_trigger(uint32_t code)
{
	switch (code)
	{
		case '=':
		case '+':
		case '-':
		case '@':
		case 0x207A:			/* superscript plus, equals */
		case 0x207C:
		case 0x208A:			/* subscript plus, equals */
		case 0x208C:
		case 0x2A75:			/* two and three equals in one sign */
		case 0x2A76:
		case 0xFB29:			/* Hebrew plus */
		case 0xFE62:			/* small plus, hyphen, equals, at */
		case 0xFE63:
		case 0xFE66:
		case 0xFE6B:
		case 0xFF0B:			/* full-width plus, hyphen, equals, at */
		case 0xFF0D:
		case 0xFF1D:
		case 0xFF20:
			return true;
		default:
			return false;
	}
}
