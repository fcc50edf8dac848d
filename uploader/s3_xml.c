/*-------------------------------------------------------------------------
 *
 * s3_xml.c
 *	  Read the XML that object stores answer with; the only user of expat.
 *
 * The answer comes from the network, so it is not trusted: a document type,
 * and with it every entity of the document's own, ends the reading, and so do
 * depth and length beyond what the protocol has.  Stores that need minutes to
 * complete an upload send blanks meanwhile, in front of the document, where
 * XML allows none: they are skipped.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include <expat.h>

#include "s3_xml.h"

/* Expat 2.9 deprecates what 2.5 has, and 2.5 lacks what 2.9 wants instead. */
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
#define BYTE_INDEX XML_GetCurrentByteIndex64
#define BYTE_COUNT XML_GetCurrentByteCount64
#else
#define BYTE_INDEX XML_GetCurrentByteIndex
#define BYTE_COUNT XML_GetCurrentByteCount
#endif

#define PATH_LIMIT 512

/* Expat puts this between the name of a name space and that of an element. */
#define SEPARATOR '\n'

typedef struct XmlReader
{
	XML_Parser	parser;
	EvS3ElementFunction function;
	void	   *arg;
	EvS3XmlResult result;
	size_t		skipped;		/* white space before the document */
	char		path[PATH_LIMIT];
	size_t		path_length;
	int			depth;
	size_t		starts[EV_S3_XML_DEPTH];
	size_t		path_lengths[EV_S3_XML_DEPTH];	/* before the element */
	char	   *text;			/* of the innermost open element */
	size_t		text_length;
} XmlReader;

static void
stop(XmlReader *reader, EvS3XmlResult result)
{
	if (reader->result == EV_S3_XML_OK)
		reader->result = result;
	XML_StopParser(reader->parser, XML_FALSE);
}

static void
on_start(void *arg, const XML_Char * name, const XML_Char * *attributes)
{
	XmlReader  *reader = arg;
	const char *local = strrchr(name, SEPARATOR);
	size_t		length;

	(void) attributes;
	local = local != NULL ? local + 1 : name;
	length = strlen(local);
	if (reader->depth == EV_S3_XML_DEPTH ||
		reader->path_length + length + 2 > PATH_LIMIT)
	{
		stop(reader, EV_S3_XML_MALFORMED);
		return;
	}
	reader->starts[reader->depth] =
		(size_t) BYTE_INDEX(reader->parser) + reader->skipped;
	reader->path_lengths[reader->depth] = reader->path_length;
	if (reader->depth > 0)
		reader->path[reader->path_length++] = '/';
	memcpy(reader->path + reader->path_length, local, length + 1);
	reader->path_length += length;
	reader->depth++;
	reader->text_length = 0;
}

static void
on_end(void *arg, const XML_Char * name)
{
	XmlReader  *reader = arg;
	EvS3Element element;

	(void) name;
	if (reader->result != EV_S3_XML_OK)
		return;
	reader->depth--;
	reader->text[reader->text_length] = '\0';
	element.path = reader->path;
	element.text = reader->text;
	element.start = reader->starts[reader->depth];
	element.end = (size_t) BYTE_INDEX(reader->parser) +
		(size_t) BYTE_COUNT(reader->parser) + reader->skipped;
	if (!reader->function(reader->arg, &element))
		stop(reader, EV_S3_XML_ENDED);
	reader->path_length = reader->path_lengths[reader->depth];
	reader->path[reader->path_length] = '\0';
	reader->text_length = 0;
}

static void
on_text(void *arg, const XML_Char * text, int length)
{
	XmlReader  *reader = arg;

	if (reader->text_length + (size_t) length >= EV_S3_XML_TEXT)
	{
		stop(reader, EV_S3_XML_MALFORMED);
		return;
	}
	memcpy(reader->text + reader->text_length, text, (size_t) length);
	reader->text_length += (size_t) length;
}

/* No store has one; it is where entities that grow are declared. */
static void
on_doctype(void *arg, const XML_Char * name, const XML_Char * system_id,
		   const XML_Char * public_id, int has_internal_subset)
{
	(void) name;
	(void) system_id;
	(void) public_id;
	(void) has_internal_subset;
	stop(arg, EV_S3_XML_MALFORMED);
}

EvS3XmlResult
ev_s3_xml_read(const char *document, size_t length,
			   EvS3ElementFunction function, void *arg)
{
	XmlReader	reader;
	size_t		skipped = 0;

	while (skipped < length && strchr(" \t\r\n", document[skipped]) != NULL &&
		   document[skipped] != '\0')
		skipped++;
	memset(&reader, 0, sizeof(reader));
	reader.function = function;
	reader.arg = arg;
	reader.skipped = skipped;
	reader.text = malloc(EV_S3_XML_TEXT);
	reader.parser = XML_ParserCreateNS(NULL, SEPARATOR);
	if (reader.text == NULL || reader.parser == NULL)
		reader.result = EV_S3_XML_MEMORY;
	else
	{
		XML_SetUserData(reader.parser, &reader);
		XML_SetElementHandler(reader.parser, on_start, on_end);
		XML_SetCharacterDataHandler(reader.parser, on_text);
		XML_SetStartDoctypeDeclHandler(reader.parser, on_doctype);
		if (XML_Parse(reader.parser, document + skipped,
					  (int) (length - skipped), 1) != XML_STATUS_OK &&
			reader.result == EV_S3_XML_OK)
			reader.result = XML_GetErrorCode(reader.parser) ==
				XML_ERROR_NO_MEMORY ? EV_S3_XML_MEMORY : EV_S3_XML_MALFORMED;
	}
	if (reader.parser != NULL)
		XML_ParserFree(reader.parser);
	free(reader.text);
	return reader.result;
}
