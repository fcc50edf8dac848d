/*-------------------------------------------------------------------------
 *
 * uuid.c
 *	  The text form of an export id.
 *
 * PostgreSQL reads more forms than this one (braces, no hyphens).  They are
 * refused here because the id goes into file names and is compared with the
 * one in a manifest.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "uuid.h"

bool
ev_uuid_is_text(const char *text)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t		i;

	if (strlen(text) != sizeof(form) - 1)
		return false;
	for (i = 0; i < sizeof(form) - 1; i++)
	{
		if (form[i] == '-' ? text[i] != '-' :
			strspn(text + i, "0123456789abcdefABCDEF") == 0)
			return false;
	}
	return true;
}
