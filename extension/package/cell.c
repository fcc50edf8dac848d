/*-------------------------------------------------------------------------
 *
 * cell.c
 *	  From the text of one value to the text of one CSV cell.
 *
 * The order of steps is a requirement (S1.42, case C10): look at the raw text
 * for a formula, take secrets out of the raw text, clean, look again.
 * Cleaning first would uncover or hide formulas and would join the halves of
 * a split secret unseen.
 *
 * Why the guard can be undone exactly.  A reader takes one apostrophe off a
 * cell that is: one or more apostrophes, then hidden characters, then a
 * trigger or a redaction mark.  The final text gets a guard (a) if it begins
 * like that itself, or (b) if it begins with a trigger after hidden
 * characters, or (c) if the raw text did.  Cells of (a) and (b) are
 * recognised by the rule.  In case (c) without (b) the trigger is gone, and
 * the only step that can take it away is redaction, so the final text begins
 * with the mark after hidden characters and is recognised too: cleaning turns
 * what stands in front of the first visible character into blanks and never
 * into visible text.  A text that got no guard is never recognised, since it
 * would have been (a).
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cell.h"
#include "csv.h"
#include "redact_rule.h"
#include "scan.h"
#include "unicode.h"

#define MARK_START "[redacted:"

static size_t find_visible(const char *text, size_t length, size_t from);
static bool is_dangerous(const char *text, size_t length);
static bool looks_guarded(const char *text, size_t length);
static bool clean_ascii(const char *text, size_t length, EvBuffer *out,
						bool *changed);
static bool clean_text(const char *text, size_t length, EvBuffer *out,
					   bool *changed);
static bool append_shown(EvBuffer *out, uint32_t code);

/*
 * Each step works on the result of the one before and copies only if it
 * changes something, so that an ordinary cell goes through without a copy.
 */
bool
ev_cell_make(EvCellWork *work, EvRedactor *redactor, const char *text,
			 size_t length, EvCell *cell, EvError *error)
{
	unsigned	found = ev_scan_bytes(text, length);

	cell->cleaned = false;
	cell->redacted = false;

	if ((found & EV_HAS_HIGH) != 0 && !ev_utf8_valid(text, length))
	{
		uint64_t	invalid;

		ev_buffer_reset(&work->repaired);
		if (!ev_utf8_repair(text, length, &work->repaired, &invalid))
			return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		text = work->repaired.data;
		length = work->repaired.length;
		cell->cleaned = true;
	}

	cell->guarded = is_dangerous(text, length);

	if (redactor != NULL)
	{
		int			count = ev_redactor_apply_scanned(redactor, text, length,
													  found, &work->redacted,
													  error);

		if (count < 0)
			return false;
		if (count > 0)
		{
			text = work->redacted.data;
			length = work->redacted.length;
			cell->redacted = true;
		}
	}

	if ((found & (EV_HAS_CONTROL | EV_HAS_HIGH)) != 0)
	{
		bool		changed = false;

		ev_buffer_reset(&work->clean);
		if ((found & EV_HAS_HIGH) == 0 ?
			!clean_ascii(text, length, &work->clean, &changed) :
			!clean_text(text, length, &work->clean, &changed))
			return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		if (changed)
		{
			text = work->clean.data;
			length = work->clean.length;
			cell->cleaned = true;
		}
	}

	if (!cell->guarded)
		cell->guarded = looks_guarded(text, length) ||
			((cell->redacted || cell->cleaned) && is_dangerous(text, length));
	cell->text = text;
	cell->length = length;
	cell->special = (found & EV_HAS_SPECIAL) != 0;
	return true;
}

void
ev_cell_work_free(EvCellWork *work)
{
	ev_buffer_free(&work->repaired);
	ev_buffer_free(&work->redacted);
	ev_buffer_free(&work->clean);
}

/*
 * One mark for each bad byte, so that the number of marks says how much was
 * lost.
 */
bool
ev_utf8_repair(const char *text, size_t length, EvBuffer *out,
			   uint64_t *invalid)
{
	size_t		from = 0;
	size_t		i = 0;

	*invalid = 0;
	while (i < length)
	{
		uint32_t	code;
		int			width = ev_utf8_decode(text + i, length - i, &code);

		if (width > 0)
		{
			i += width;
			continue;
		}
		if (!ev_buffer_append(out, text + from, i - from) ||
			!ev_buffer_append(out, "\xEF\xBF\xBD", 3))
			return false;
		(*invalid)++;
		i++;
		from = i;
	}
	return ev_buffer_append(out, text + from, length - from);
}

/* Offset of the first visible character at or after from, or length. */
static size_t
find_visible(const char *text, size_t length, size_t from)
{
	while (from < length)
	{
		unsigned char byte = (unsigned char) text[from];
		uint32_t	code;
		int			width;

		if (byte > 0x20 && byte < 0x7F)
			break;
		width = ev_utf8_decode(text + from, length - from, &code);
		if (width == 0 || !ev_is_hidden(code))
			break;
		from += width;
	}
	return from;
}

static bool
is_dangerous(const char *text, size_t length)
{
	size_t		at;
	uint32_t	code;

	/* Nearly all texts begin with a visible ASCII character. */
	if (length > 0 && text[0] > 0x20 && text[0] < 0x7F)
		return ev_is_trigger((unsigned char) text[0]);

	at = find_visible(text, length, 0);
	return at < length &&
		ev_utf8_decode(text + at, length - at, &code) > 0 &&
		ev_is_trigger(code);
}

/* Apostrophes, then a trigger or a mark: would be taken for a guard. */
static bool
looks_guarded(const char *text, size_t length)
{
	size_t		at = 0;

	while (at < length && text[at] == '\'')
		at++;
	if (at == 0)
		return false;
	if (is_dangerous(text + at, length - at))
		return true;
	at = find_visible(text, length, at);
	return length - at >= strlen(MARK_START) &&
		memcmp(text + at, MARK_START, strlen(MARK_START)) == 0;
}

/* The same as clean_text, for the text that most cells have. */
static bool
clean_ascii(const char *text, size_t length, EvBuffer *out, bool *changed)
{
	/* Redaction may have taken the last control character away. */
	*changed = ev_scan_plain(text, length) < length;
	if (!ev_buffer_reserve(out, length))
		return false;
	ev_blank_controls(text, length, out->data);
	out->length = length;
	return true;
}

/*
 * Copy text with each control character as one blank, CR LF as two (so the
 * cleaned text keeps its length in characters), and with bidi controls and
 * tag characters shown.  In front of the first visible character these become
 * blanks as well: there they are part of what hides a trigger, and showing
 * them would put visible text in front of it.
 */
static bool
clean_text(const char *text, size_t length, EvBuffer *out, bool *changed)
{
	bool		leading = true;
	size_t		from = 0;
	size_t		i = 0;

	while (i < length)
	{
		uint32_t	code;
		int			width;
		bool		shown;

		if ((unsigned char) text[i] > 0x20 && (unsigned char) text[i] < 0x7F)
		{
			leading = false;
			i++;
			continue;
		}
		width = ev_utf8_decode(text + i, length - i, &code);
		shown = ev_is_bidi(code);
		if (!shown && !ev_is_control(code))
		{
			if (leading && !ev_is_hidden(code))
				leading = false;
			i += width;
			continue;
		}

		*changed = true;
		if (!ev_buffer_append(out, text + from, i - from))
			return false;
		if (shown && !leading ? !append_shown(out, code) :
			!ev_buffer_append_byte(out, ' '))
			return false;
		i += width;
		from = i;
	}
	return ev_buffer_append(out, text + from, length - from);
}

/*
 * The form is that of the Unicode standard, in brackets that no other text
 * around is likely to have.
 */
static bool
append_shown(EvBuffer *out, uint32_t code)
{
	char		shown[16];
	int			length = snprintf(shown, sizeof(shown), "<U+%04X>",
								  (unsigned) code);

	return ev_buffer_append(out, shown, (size_t) length);
}
