/*-------------------------------------------------------------------------
 *
 * test_s3_xml.c
 *	  Reading what object stores answer, and what others may send instead.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "s3_text.h"
#include "s3_xml.h"
#include "tap.h"

/* Everything that was handed on, as one text. */
typedef struct Seen
{
	EvS3Buffer	text;
	int			limit;			/* elements; 0: all */
	int			count;
	size_t		start;
	size_t		end;
} Seen;

static bool
take(void *arg, const EvS3Element *element)
{
	Seen	   *seen = arg;

	ev_s3_buffer_printf(&seen->text, "%s=%s;", element->path, element->text);
	seen->start = element->start;
	seen->end = element->end;
	return ++seen->count != seen->limit;
}

/* Read from memory of exactly the size, so that sanitizers see overruns. */
static EvS3XmlResult
read_exactly(const char *document, Seen *seen)
{
	size_t		length = strlen(document);
	char	   *copy = malloc(length > 0 ? length : 1);
	EvS3XmlResult result;

	memcpy(copy, document, length);
	result = ev_s3_xml_read(copy, length, take, seen);
	free(copy);
	return result;
}

static void
check(const char *document, const char *wanted, const char *name)
{
	Seen		seen;

	memset(&seen, 0, sizeof(seen));
	ok(read_exactly(document, &seen) == EV_S3_XML_OK, "%s: read", name);
	is(seen.text.data != NULL ? seen.text.data : "", wanted, name);
	ev_s3_buffer_free(&seen.text);
}

static void
check_bad(const char *document, const char *name)
{
	Seen		seen;

	memset(&seen, 0, sizeof(seen));
	ok(read_exactly(document, &seen) == EV_S3_XML_MALFORMED, "%s", name);
	ev_s3_buffer_free(&seen.text);
}

static char *
nested(int depth, const char *inner)
{
	EvS3Buffer	text;
	int			i;

	memset(&text, 0, sizeof(text));
	for (i = 0; i < depth; i++)
		ev_s3_buffer_text(&text, "<a>");
	ev_s3_buffer_text(&text, inner);
	for (i = 0; i < depth; i++)
		ev_s3_buffer_text(&text, "</a>");
	return text.data;
}

static void
test_limits(void)
{
	char	   *text = nested(EV_S3_XML_DEPTH, "x");
	char	   *inner = malloc(EV_S3_XML_TEXT + 1);
	Seen		seen;

	memset(&seen, 0, sizeof(seen));
	ok(read_exactly(text, &seen) == EV_S3_XML_OK &&
	   seen.count == EV_S3_XML_DEPTH, "as deep as can be");
	ev_s3_buffer_free(&seen.text);
	free(text);
	text = nested(EV_S3_XML_DEPTH + 1, "x");
	check_bad(text, "too deep");
	free(text);
	memset(inner, 'x', EV_S3_XML_TEXT);
	inner[EV_S3_XML_TEXT] = '\0';
	text = nested(1, inner);
	check_bad(text, "too long a text");
	free(text);
	inner[EV_S3_XML_TEXT - 1] = '\0';
	text = nested(1, inner);
	memset(&seen, 0, sizeof(seen));
	ok(read_exactly(text, &seen) == EV_S3_XML_OK &&
	   seen.text.length == EV_S3_XML_TEXT + 2, "as long as can be");
	ev_s3_buffer_free(&seen.text);
	free(text);
	free(inner);
}

int
main(void)
{
	const char *document = " \n<L><Rule><ID>a</ID></Rule><Rule/></L>";
	Seen		seen;

	check("<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>a &amp; b &#x41;</Message></Error>",
		  "Error/Code=NoSuchKey;Error/Message=a & b A;Error=;", "an error");
	check("<L xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><A>1</A></L>",
		  "L/A=1;L=;", "a name space");
	check("<s:L xmlns:s=\"urn:x\"><s:A>1</s:A></s:L>", "L/A=1;L=;",
		  "a prefix");
	check("\n  \n<?xml version=\"1.0\"?><A>1</A>", "A=1;",
		  "blanks in front, as some stores send to say that they live");
	check("<A><B/><C></C><D>x<![CDATA[<y>]]></D></A>",
		  "A/B=;A/C=;A/D=x<y>;A=;", "empty elements and CDATA");
	check("<A>x<B>1</B>y</A>", "A/B=1;A=y;", "text around an element");
	check("<A><!-- no --><B>1</B><?pi x?></A>", "A/B=1;A=;", "comments");

	check_bad("", "nothing");
	check_bad("  \n", "blanks only");
	check_bad("Please sign in", "no XML");
	check_bad("<html><body><br></body></html>", "a web page");
	check_bad("<A><B>1</B>", "half of it");
	check_bad("<A>1</A><B/>", "two roots");
	check_bad("<A>\x01</A>", "a control character");
	check_bad("<A>\xff</A>", "no UTF-8");
	check_bad("<!DOCTYPE a><a/>", "a document type");
	check_bad("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "an entity");
	check_bad("<a>&undefined;</a>", "an entity that is not declared");
	test_limits();

	/* The stretch of the document that an element is. */
	memset(&seen, 0, sizeof(seen));
	seen.limit = 2;
	ok(read_exactly(document, &seen) == EV_S3_XML_ENDED &&
	   seen.count == 2, "ended by whoever reads");
	ok(seen.start == 5 && seen.end == 28, "the place of an element");
	ev_s3_buffer_free(&seen.text);
	memset(&seen, 0, sizeof(seen));
	seen.limit = 3;
	read_exactly(document, &seen);
	ok(seen.start == 28 && seen.end == 35, "and of an empty one");
	ev_s3_buffer_free(&seen.text);
	return tap_done();
}
