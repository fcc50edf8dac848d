/*-------------------------------------------------------------------------
 *
 * s3_xml.h
 *	  Read the XML that object stores answer with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_S3_XML_H
#define EV_UPLOADER_S3_XML_H

#include <stdbool.h>
#include <stddef.h>

#define EV_S3_XML_DEPTH 12		/* of elements in one another */
#define EV_S3_XML_TEXT 8192		/* bytes of the text of one element */

/* An element that has ended. */
typedef struct EvS3Element
{
	const char *path;			/* names from the root on, "/" between */
	const char *text;			/* what it holds besides elements; a blank
								 * between elements counts too */
	size_t		start;			/* where it begins in the document ... */
	size_t		end;			/* ... and ends, tags included */
} EvS3Element;

/* False ends the reading. */
typedef bool (*EvS3ElementFunction) (void *arg, const EvS3Element *element);

typedef enum EvS3XmlResult
{
	EV_S3_XML_OK = 0,
	EV_S3_XML_ENDED,			/* by the function */
	EV_S3_XML_MALFORMED,		/* no XML, too deep, too long, or with a
								 * document type */
	EV_S3_XML_MEMORY
} EvS3XmlResult;

/*
 * Call function for each element that ends, so for the inner ones first.
 * Names come without prefixes of name spaces.  White space before the
 * document is skipped, and counts in start and end.
 */
extern EvS3XmlResult ev_s3_xml_read(const char *document, size_t length,
									EvS3ElementFunction function, void *arg);

#endif							/* EV_UPLOADER_S3_XML_H */
