/*-------------------------------------------------------------------------
 *
 * records.c
 *	  Read records.csv as a stream and check each byte of it.
 *
 * The file is an attacker's: it may be of any size and hold any bytes.  So
 * memory is one fixed struct, no cell is ever gathered whole, and a block may
 * end anywhere, within a character as well as between CR and LF.
 *
 * This is a reader of its own and shares with the writer only the classes of
 * characters, so that a fault of the writer does not hide itself.
 *
 * Speed: a table tells the bytes at which something has to be decided from
 * those that are plain text; the loop over the latter is short.  Only the
 * first visible character of a cell can be a formula, so the slow look at
 * characters ends there.
 *
 * No fault tells the content of a cell: faults of one kind are counted
 * (tally.c), with the place of the first.
 *
 *-------------------------------------------------------------------------
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "package/unicode.h"

#include "records.h"
#include "tally.h"
#include "timestamp.h"

#define CAPTURE_SIZE 256		/* of a header cell or a key; longer ones are
								 * no key and no name */
#define COLUMN_LIMIT 10000		/* no table is that wide */
#define MARK "[redacted:"
#define MARK_LENGTH 10

/* Where the parser stands. */
typedef enum Place
{
	PLACE_RECORD,				/* before the first byte of a record */
	PLACE_CELL,					/* before the first byte of a cell */
	PLACE_BARE,
	PLACE_QUOTED,
	PLACE_QUOTE,				/* behind a quote within a quoted cell */
	PLACE_CR					/* behind the CR that ends a record */
} Place;

/* What is known of the visible beginning of a cell. */
typedef enum Head
{
	HEAD_START,					/* nothing read yet */
	HEAD_HIDDEN,				/* hidden characters only */
	HEAD_APOSTROPHE,			/* apostrophes only */
	HEAD_APOSTROPHE_HIDDEN,		/* apostrophes, then hidden characters */
	HEAD_KNOWN					/* nothing more to learn */
} Head;

struct EvRecordsReader
{
	const EvRecordsRule *rule;
	EvSha256   *hash;
	EvRecordsFacts facts;

	/* Where we are. */
	Place		place;
	int64_t		record;			/* 0 is the header */
	int			column;
	int			width;			/* cells of the header; 0 until it is read */
	int			time_column;	/* -1: there is none */
	int			id_column;

	/* The cell that is being read. */
	Head		head;
	bool		quoted;
	bool		suspect;		/* begins with + or -: a number or a formula */
	bool		maybe_guarded;	/* guarded if a mark follows at once */
	bool		marked;
	int			mark_matched;	/* bytes of MARK just read */
	bool		capture;
	size_t		captured;
	char		text[CAPTURE_SIZE];

	/* A character of which some bytes are still to come. */
	int			pending;
	int			pending_length;
	char		pending_bytes[4];

	/* The record that is being read, and the one before it. */
	bool		has_time;
	bool		has_id;
	int64_t		at;
	int64_t		id;
	bool		has_previous;
	int64_t		previous_at;
	int64_t		previous_id;

	bool		header_fault;
	EvTally		tally;
};

/*
 * Bytes that end a run of plain text: the comma and the quote, controls, the
 * bracket that may begin a mark, and everything that is not ASCII.
 */
static const unsigned char stops[256] = {
	[0x00] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	[0x10] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	['"'] = 1,[','] = 1,['['] = 1,[0x7f] = 1,
	[0x80] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	[0x90] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	[0xa0] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	[0xb0] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	[0xc0] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	[0xd0] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	[0xe0] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	[0xf0] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
};

static void read_block(EvRecordsReader *reader, const char *data,
					   size_t length);
static bool step(EvRecordsReader *reader, unsigned char byte);
static void step_bare(EvRecordsReader *reader, unsigned char byte);
static void begin_cell(EvRecordsReader *reader);
static void read_plain(EvRecordsReader *reader, const char *data,
					   size_t length);
static void read_character(EvRecordsReader *reader, uint32_t code,
						   const char *bytes, size_t length);
static size_t read_high(EvRecordsReader *reader, const char *data,
						size_t length);
static void refuse_pending(EvRecordsReader *reader);
static void end_cell(EvRecordsReader *reader);
static void end_record(EvRecordsReader *reader);
static void count(EvRecordsReader *reader, EvTallyKind kind);

EvRecordsReader *
ev_records_create(const EvRecordsRule *rule, EvError *error)
{
	EvRecordsReader *reader = calloc(1, sizeof(EvRecordsReader));

	if (reader == NULL)
	{
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		return NULL;
	}
	reader->rule = rule;
	reader->time_column = -1;
	reader->id_column = -1;
	reader->facts.records = -1;
	reader->hash = ev_sha256_create(error);
	if (reader->hash == NULL)
	{
		free(reader);
		return NULL;
	}
	return reader;
}

void
ev_records_free(EvRecordsReader *reader)
{
	if (reader == NULL)
		return;
	ev_sha256_free(reader->hash);
	free(reader);
}

bool
ev_records_feed(void *arg, const void *data, size_t length, EvError *error)
{
	EvRecordsReader *reader = arg;

	reader->facts.bytes += (int64_t) length;
	read_block(reader, data, length);
	return ev_sha256_update(reader->hash, data, length, error);
}

bool
ev_records_finish(EvRecordsReader *reader, EvVerifyReport *report,
				  EvRecordsFacts *facts, EvError *error)
{
	unsigned char digest[EV_SHA256_BYTES];

	refuse_pending(reader);
	if (reader->place == PLACE_QUOTED)
		count(reader, EV_TALLY_OPEN_QUOTE);
	if (reader->place != PLACE_RECORD)
	{
		if (reader->place != PLACE_QUOTED)
			count(reader, EV_TALLY_LAST_LINE_END);
		if (reader->place == PLACE_CELL)
			begin_cell(reader);
		if (reader->place != PLACE_CR)
			end_cell(reader);
		end_record(reader);
	}
	if (!ev_sha256_finish(reader->hash, digest, error))
		return false;
	ev_sha256_hex(digest, reader->facts.sha256);
	*facts = reader->facts;

	if (facts->records < 0)
		ev_report_fault(report, EV_CHECK_COLUMNS, "records.csv is empty: the header is missing");
	if (reader->header_fault)
		ev_report_fault(report, EV_CHECK_COLUMNS, "the header of records.csv is not the list of columns in the manifest");
	ev_tally_report(&reader->tally, report);
	return true;
}

/* One more fault of a kind, at the place where we are. */
static void
count(EvRecordsReader *reader, EvTallyKind kind)
{
	ev_tally_count(&reader->tally, kind, reader->record, reader->column);
}

/*
 * Split a block into runs of plain text and single bytes that mean something
 * at the place where they stand.
 */
static void
read_block(EvRecordsReader *reader, const char *data, size_t length)
{
	const char *end = data + length;

	while (data < end)
	{
		const char *run = data;

		if (reader->pending > 0)
		{
			data += read_high(reader, data, (size_t) (end - data));
			continue;
		}
		if (reader->place != PLACE_BARE && reader->place != PLACE_QUOTED)
		{
			if (step(reader, (unsigned char) *data))
				data++;
			continue;
		}
		while (data < end && !stops[(unsigned char) *data])
			data++;
		if (data > run)
			read_plain(reader, run, (size_t) (data - run));
		if (data == end)
			break;
		if ((unsigned char) *data >= 0x80)
			data += read_high(reader, data, (size_t) (end - data));
		else if (step(reader, (unsigned char) *data))
			data++;
	}
}

/* Take one byte that may end something; false to look at it once more. */
static bool
step(EvRecordsReader *reader, unsigned char byte)
{
	char		character = (char) byte;

	switch (reader->place)
	{
		case PLACE_RECORD:
			reader->column = 0;
			reader->place = PLACE_CELL;
			return false;
		case PLACE_CELL:
			begin_cell(reader);
			reader->quoted = byte == '"';
			reader->place = reader->quoted ? PLACE_QUOTED : PLACE_BARE;
			return reader->quoted;
		case PLACE_CR:
			if (byte != '\n')
				count(reader, EV_TALLY_LINE_END);
			end_record(reader);
			reader->place = PLACE_RECORD;
			return byte == '\n';
		case PLACE_QUOTED:
			if (byte == '"')
				reader->place = PLACE_QUOTE;
			else
				read_character(reader, byte, &character, 1);
			return true;
		case PLACE_QUOTE:
			if (byte == '"')
			{
				read_character(reader, byte, &character, 1);
				reader->place = PLACE_QUOTED;
				return true;
			}
			reader->place = PLACE_BARE;
			if (byte != ',' && byte != '\r' && byte != '\n')
				count(reader, EV_TALLY_AFTER_QUOTE);
			return false;
		case PLACE_BARE:
			step_bare(reader, byte);
			return true;
	}
	return true;
}

/* A byte within a cell without quotes; only here a record can end. */
static void
step_bare(EvRecordsReader *reader, unsigned char byte)
{
	char		character = (char) byte;

	if (byte == ',')
	{
		end_cell(reader);
		if (reader->column < COLUMN_LIMIT)
			reader->column++;
		reader->place = PLACE_CELL;
	}
	else if (byte == '\r')
	{
		end_cell(reader);
		reader->place = PLACE_CR;
	}
	else if (byte == '\n')
	{
		/* Counted once per record: a file with LF alone is one fault. */
		count(reader, EV_TALLY_LINE_END);
		end_cell(reader);
		end_record(reader);
		reader->place = PLACE_RECORD;
	}
	else
	{
		if (byte == '"')
			count(reader, EV_TALLY_BARE_QUOTE);
		read_character(reader, byte, &character, 1);
	}
}

/* Nothing is known of the next cell. */
static void
begin_cell(EvRecordsReader *reader)
{
	reader->head = HEAD_START;
	reader->suspect = false;
	reader->maybe_guarded = false;
	reader->marked = false;
	reader->mark_matched = 0;
	reader->captured = 0;
	reader->capture = reader->record == 0 ||
		reader->column == reader->time_column ||
		reader->column == reader->id_column;
}

/* Keep the bytes of a cell that is looked at as a whole. */
static void
keep(EvRecordsReader *reader, const char *data, size_t length)
{
	size_t		space = CAPTURE_SIZE - reader->captured;

	if (length > space)
		length = space;
	memcpy(reader->text + reader->captured, data, length);
	reader->captured += length;
}

/* A run of printable ASCII without comma, quote and bracket. */
static void
read_plain(EvRecordsReader *reader, const char *data, size_t length)
{
	/* Most cells begin with a letter or a digit, and that settles it. */
	if (reader->head == HEAD_START && isalnum((unsigned char) *data))
		reader->head = HEAD_KNOWN;
	while (length > 0 &&
		   (reader->head != HEAD_KNOWN || reader->mark_matched > 0))
	{
		read_character(reader, (unsigned char) *data, data, 1);
		data++;
		length--;
	}
	if (reader->capture)
		keep(reader, data, length);
}

/*
 * Learn from one character what the visible beginning of the cell is.
 *
 * A cell that begins with apostrophes, then hidden characters, then a trigger
 * or a redaction mark carries a guard; that is the rule by which a reader
 * takes it off (package/csv.h).
 */
static void
read_head(EvRecordsReader *reader, uint32_t code)
{
	bool		hidden = ev_is_hidden(code);

	switch (reader->head)
	{
		case HEAD_START:
			if (code == '\'')
				reader->head = HEAD_APOSTROPHE;
			else if (hidden)
				reader->head = HEAD_HIDDEN;
			else
			{
				reader->head = HEAD_KNOWN;
				if (!ev_is_trigger(code))
					break;

				/* A bare number or time may begin with a sign. */
				if (!reader->quoted && (code == '-' || code == '+') &&
					reader->record > 0)
				{
					reader->suspect = true;
					reader->capture = true;
				}
				else
					count(reader, EV_TALLY_FORMULA);
			}
			break;
		case HEAD_HIDDEN:
			if (hidden)
				break;
			reader->head = HEAD_KNOWN;
			if (ev_is_trigger(code))
				count(reader, EV_TALLY_FORMULA);
			break;
		case HEAD_APOSTROPHE:
			if (code == '\'')
				break;
			/* FALLTHROUGH */
		case HEAD_APOSTROPHE_HIDDEN:
			if (hidden)
			{
				reader->head = HEAD_APOSTROPHE_HIDDEN;
				break;
			}
			reader->head = HEAD_KNOWN;
			if (ev_is_trigger(code))
				reader->facts.guarded++;
			else if (code == '[')
				reader->maybe_guarded = true;
			break;
		case HEAD_KNOWN:
			break;
	}
}

/* One character of a cell; bytes are those it is written with. */
static void
read_character(EvRecordsReader *reader, uint32_t code, const char *bytes,
			   size_t length)
{
	if (reader->head != HEAD_KNOWN)
		read_head(reader, code);
	if (ev_is_control(code))
		count(reader, EV_TALLY_CONTROL);
	else if (ev_is_bidi(code))
		count(reader, EV_TALLY_BIDI);

	if (code == (unsigned char) MARK[reader->mark_matched])
	{
		if (++reader->mark_matched == MARK_LENGTH)
		{
			reader->mark_matched = 0;
			reader->marked = true;
			if (reader->maybe_guarded)
				reader->facts.guarded++;
			reader->maybe_guarded = false;
		}
	}
	else
	{
		reader->mark_matched = code == '[';
		reader->maybe_guarded = false;
	}
	if (reader->capture)
		keep(reader, bytes, length);
}

/*
 * The bytes that wait are no character.  Each counts, as it would if it had
 * not stood at the end of a block: the result does not depend on the blocks.
 */
static void
refuse_pending(EvRecordsReader *reader)
{
	for (; reader->pending > 0; reader->pending--)
		count(reader, EV_TALLY_UTF8);
}

/*
 * Read one character that is not ASCII; returns how many bytes were used.
 * One that crosses the end of a block waits in pending_bytes.
 */
static size_t
read_high(EvRecordsReader *reader, const char *data, size_t length)
{
	uint32_t	code;
	int			decoded;
	unsigned char first = (unsigned char) data[0];

	if (reader->pending == 0)
	{
		int			wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;

		if (first >= 0xc2 && first <= 0xf4 && length < (size_t) wanted)
		{
			reader->pending = 1;
			reader->pending_length = wanted;
			reader->pending_bytes[0] = data[0];
			return 1;
		}
		decoded = ev_utf8_decode(data, length, &code);
		if (decoded > 0)
			read_character(reader, code, data, (size_t) decoded);
		else
			count(reader, EV_TALLY_UTF8);
		return decoded > 0 ? (size_t) decoded : 1;
	}

	/* A byte that cannot continue the character is read on its own. */
	if ((first & 0xc0) != 0x80)
	{
		refuse_pending(reader);
		return 0;
	}
	reader->pending_bytes[reader->pending++] = data[0];
	if (reader->pending < reader->pending_length)
		return 1;
	decoded = ev_utf8_decode(reader->pending_bytes,
							 (size_t) reader->pending, &code);
	if (decoded == reader->pending)
	{
		read_character(reader, code, reader->pending_bytes,
					   (size_t) decoded);
		reader->pending = 0;
	}
	refuse_pending(reader);
	return 1;
}

/* Is this exactly a whole number as the exporter writes it? */
static bool
read_integer(const char *text, size_t length, int64_t *value)
{
	char		again[24];
	char		copy[24];

	if (length == 0 || length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*value = strtoll(copy, NULL, 10);
	snprintf(again, sizeof(again), "%" PRId64, *value);
	return strcmp(again, copy) == 0;
}

/* Does a header cell hold this name? */
static bool
is_name(const EvRecordsReader *reader, const char *name)
{
	return reader->captured == strlen(name) &&
		memcmp(reader->text, name, reader->captured) == 0;
}

/* A cell of the header: find the key columns, compare with the manifest. */
static void
end_name(EvRecordsReader *reader)
{
	const EvRecordsRule *rule = reader->rule;

	if (rule->ncolumns > 0 &&
		(reader->column >= rule->ncolumns ||
		 !is_name(reader, rule->columns[reader->column])))
		reader->header_fault = true;
	if (is_name(reader, "created_at"))
		reader->time_column = reader->column;
	if (is_name(reader, "id"))
		reader->id_column = reader->column;
}

/*
 * A cell is complete.  Now it is known whether a sign in front belongs to a
 * number or a time, and what the key of the record is.
 */
static void
end_cell(EvRecordsReader *reader)
{
	int64_t		value;

	if (reader->marked)
		reader->facts.marked++;
	if (reader->record == 0)
	{
		end_name(reader);
		return;
	}
	if (reader->suspect &&
		((reader->rule->only_key_typed &&
		  reader->column != reader->time_column &&
		  reader->column != reader->id_column) ||
		 (!read_integer(reader->text, reader->captured, &value) &&
		  !ev_timestamp_parse(reader->text, reader->captured, &value))))
		count(reader, EV_TALLY_FORMULA);
	if (reader->column == reader->time_column)
	{
		reader->has_time = !reader->quoted &&
			ev_timestamp_parse(reader->text, reader->captured, &reader->at);
		if (!reader->has_time)
			count(reader, EV_TALLY_TIME);
	}
	if (reader->column == reader->id_column)
	{
		reader->has_id = !reader->quoted &&
			read_integer(reader->text, reader->captured, &reader->id);
		if (!reader->has_id)
			count(reader, EV_TALLY_ID);
	}
}

/* Compare a record with the range and with the record before it. */
static void
check_key(EvRecordsReader *reader)
{
	const EvRecordsRule *rule = reader->rule;

	if (rule->has_range &&
		(reader->at < rule->start_at || reader->at >= rule->end_at))
		count(reader, EV_TALLY_RANGE);
	if (reader->has_previous &&
		(reader->at < reader->previous_at ||
		 (reader->has_id && reader->at == reader->previous_at &&
		  reader->id <= reader->previous_id)))
		count(reader, EV_TALLY_ORDER);
	if (!reader->has_previous)
	{
		reader->facts.first_at = reader->at;
		reader->facts.first_id = reader->id;
	}
	reader->has_previous = true;
	reader->previous_at = reader->at;
	reader->previous_id = reader->id;
	reader->facts.last_at = reader->at;
	reader->facts.last_id = reader->id;
}

/*
 * A record is complete.  A record whose key cannot be read makes the first
 * and last key uncertain, so those are not compared then.
 */
static void
end_record(EvRecordsReader *reader)
{
	int			width = reader->column + 1;

	if (reader->record == 0)
	{
		reader->width = width;
		if (reader->rule->ncolumns > 0 && width != reader->rule->ncolumns)
			reader->header_fault = true;
		reader->facts.has_time = reader->time_column >= 0;
		reader->facts.has_id = reader->id_column >= 0;
	}
	else
	{
		if (width != reader->width)
			count(reader, EV_TALLY_WIDTH);
		if (reader->has_time && (reader->has_id || reader->id_column < 0))
			check_key(reader);
		else
		{
			reader->facts.has_time = false;
			reader->facts.has_id = false;
		}
	}
	reader->has_time = false;
	reader->has_id = false;
	reader->facts.records++;
	reader->record++;
	reader->column = 0;
}
