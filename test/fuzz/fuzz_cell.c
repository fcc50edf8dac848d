/*-------------------------------------------------------------------------
 *
 * fuzz_cell.c
 *	  Any bytes as the cells of a record, with and without redaction.
 *
 * What must hold: the cell is valid UTF-8 without controls, nothing in it
 * opens as a formula, its guard can be undone, and a reader of RFC 4180 gets
 * back exactly the cells that were written.  The rule of undoing and the
 * reader are written here a second time, from the text in csv.h and from the
 * RFC.
 *
 *-------------------------------------------------------------------------
 */
#include "cell.h"
#include "csv.h"
#include "unicode.h"

#include "fuzz.h"

#define CELLS 16

/* What a cell must read as: its text with the guard; NULL is no text. */
typedef struct Expected
{
	bool		is_null;
	EvBuffer	text;
} Expected;

/* Where the text begins behind a guard. */
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

/* No control, and no trigger behind characters that nobody sees. */
static void
check_characters(const char *cell, size_t length)
{
	bool		visible = false;
	size_t		at = 0;

	while (at < length)
	{
		uint32_t	code;
		int			width = ev_utf8_decode(cell + at, length - at, &code);

		demand(width > 0);
		demand(!ev_is_control(code) && !ev_is_bidi(code));
		if (!visible && !ev_is_hidden(code))
		{
			demand(!ev_is_trigger(code));
			visible = true;
		}
		at += (size_t) width;
	}
}

static bool
collect(void *arg, const void *data, size_t length, EvError *error)
{
	(void) error;
	return ev_buffer_append(arg, data, length);
}

/* Read one cell; returns the byte behind it.  A bare empty cell is NULL. */
static size_t
read_cell(const EvBuffer *csv, size_t at, EvBuffer *cell, bool *is_null)
{
	bool		quoted = at < csv->length && csv->data[at] == '"';

	ev_buffer_reset(cell);
	if (!quoted)
	{
		while (at < csv->length && csv->data[at] != ',' &&
			   csv->data[at] != '\r')
		{
			demand(csv->data[at] != '"' && csv->data[at] != '\n');
			ev_buffer_append_byte(cell, csv->data[at++]);
		}
		*is_null = cell->length == 0;
		return at;
	}
	*is_null = false;
	for (at++; at < csv->length; at++)
	{
		if (csv->data[at] == '"')
		{
			at++;
			if (at == csv->length || csv->data[at] != '"')
				return at;
		}
		ev_buffer_append_byte(cell, csv->data[at]);
	}
	demand(false && "the quote is closed");
	return at;
}

static void
read_back(const EvBuffer *csv, const Expected *expected, int ncells)
{
	static EvBuffer cell;
	size_t		at = 0;
	int			i;

	for (i = 0; i < ncells; i++)
	{
		bool		is_null;

		at = read_cell(csv, at, &cell, &is_null);
		demand(is_null == expected[i].is_null);
		demand(cell.length == expected[i].text.length);
		demand(cell.length == 0 ||
			   memcmp(cell.data, expected[i].text.data, cell.length) == 0);
		demand(at < csv->length);
		demand(csv->data[at] == (i < ncells - 1 ? ',' : '\r'));
		at++;
	}
	demand(at + 1 == csv->length && csv->data[at] == '\n');
}

/* What the cell must be, by the function below the writer. */
static void
expect_cell(EvRedactor *redactor, const char *text, size_t length,
			Expected *expected)
{
	static EvCellWork work;
	EvCell		cell;
	EvError		error;

	demand(ev_cell_make(&work, redactor, text, length, &cell, &error));
	ev_buffer_reset(&expected->text);
	if (cell.guarded)
		ev_buffer_append_byte(&expected->text, '\'');
	ev_buffer_append(&expected->text, cell.text, cell.length);
	check_characters(expected->text.data, expected->text.length);
	demand(undo(expected->text.data, expected->text.length) ==
		   (cell.guarded ? 1 : 0));
}

/* The first byte says whether secrets are taken out. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Expected expected[CELLS];
	static EvBuffer csv;
	EvRedactor *redactor;
	EvCsvWriter *writer;
	EvError		error;
	Piece		piece;
	int			n = 0;

	if (size == 0)
		return 0;
	redactor = (data[0] & 1) != 0 ? NULL : builtin_redactor();
	data++;
	size--;

	ev_buffer_reset(&csv);
	writer = ev_csv_create(redactor, collect, &csv, &error);
	demand(writer != NULL);
	while (n < CELLS && next_piece(&data, &size, &piece))
	{
		char	   *text = exact_copy(piece.text, piece.length);

		expected[n].is_null = piece.length == 1 && text[0] == '\xFD';
		ev_buffer_reset(&expected[n].text);
		if (expected[n].is_null)
			demand(ev_csv_null(writer, &error));
		else
		{
			expect_cell(redactor, text, piece.length, &expected[n]);
			demand(ev_csv_text(writer, text, piece.length, &error));
		}
		free(text);
		n++;
	}
	if (n > 0)
	{
		demand(ev_csv_end_record(writer, &error));
		demand(ev_csv_finish(writer, &error));
		read_back(&csv, expected, n);
	}
	ev_csv_free(writer);
	return 0;
}
