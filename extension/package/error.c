/*-------------------------------------------------------------------------
 *
 * error.c
 *	  Fill the error record that package functions hand to their caller.
 *
 * Runs in server processes, in the client program and in tests alike, so it
 * neither allocates nor prints.  Callers pass only texts of our own and of
 * libraries as arguments, never cell content, keys or other secrets.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "error.h"

bool
ev_error_set(EvError *error, EvErrorKind kind, const char *format,...)
{
	va_list		args;

	if (error == NULL)
		return false;

	error->kind = kind;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return false;
}
