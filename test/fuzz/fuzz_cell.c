/*-------------------------------------------------------------------------
 *
 * fuzz_cell.c
 *	  Any bytes as a cell: no crash, valid UTF-8, a guard that can be undone.
 *
 * The built-in rules run on the bytes too, so this also looks for texts on
 * which a pattern is slow.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "unicode.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

/* Where the text begins behind a guard, by the rule of csv.h. */
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

		if (ev_is_trigger(code) ||
			(length - at >= 10 && memcmp(cell + at, "[redacted:", 10) == 0))
			return 1;
		if (!ev_is_hidden(code))
			return 0;
		at += (size_t) width;
	}
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static EvRedactor *redactor;
	static EvCellWork work;
	static EvBuffer out;
	char	   *text = malloc(size + 1);
	EvError		error;
	EvCell		cell;

	if (redactor == NULL)
		redactor = ev_redactor_create(ev_builtin_rules, ev_builtin_rule_count,
									  &error);
	demand(redactor != NULL);

	/* A copy of the exact size, so that reading over its end is seen. */
	memcpy(text, data, size);
	text = realloc(text, size > 0 ? size : 1);
	demand(ev_cell_make(&work, redactor, text, size, &cell, &error));
	demand(ev_utf8_valid(cell.text, cell.length));

	ev_buffer_reset(&out);
	if (cell.guarded)
		ev_buffer_append_byte(&out, '\'');
	ev_buffer_append(&out, cell.text, cell.length);
	demand(undo(out.data, out.length) == (cell.guarded ? 1 : 0));
	free(text);
	return 0;
}
