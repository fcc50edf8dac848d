/*-------------------------------------------------------------------------
 *
 * errors.c
 *	  Turn a failure of the package code into a PostgreSQL error.
 *
 * The package code cannot raise errors itself, see package/error.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/errors.h"

static int
errcode_for_kind(EvErrorKind kind)
{
	switch (kind)
	{
		case EV_ERROR_MEMORY:
			return ERRCODE_OUT_OF_MEMORY;
		case EV_ERROR_ARGUMENT:
			return ERRCODE_INVALID_PARAMETER_VALUE;
		case EV_ERROR_LIBRARY:
			return ERRCODE_EXTERNAL_ROUTINE_EXCEPTION;
		case EV_ERROR_IO:
			return ERRCODE_IO_ERROR;
		case EV_ERROR_FORMAT:
			return EV_ERRCODE_MISMATCH;
		case EV_ERROR_NONE:
			break;
	}
	return ERRCODE_INTERNAL_ERROR;
}

void
ev_raise(const EvError *error)
{
	ereport(ERROR,
			(errcode(errcode_for_kind(error->kind)),
			 errmsg_internal("%s", error->text)));
	pg_unreachable();
}
