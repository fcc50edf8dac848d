/*-------------------------------------------------------------------------
 *
 * filters.h
 *	  Check the filters of a request and bring them into canonical form.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_API_FILTERS_H
#define EV_API_FILTERS_H

#include "utils/jsonb.h"

/*
 * An object whose values are strings or lists of strings becomes one of
 * sorted lists without doubles.  NULL means no filter.  Raises 22023 for an
 * unknown key, an empty list, or a value that is no string.
 */
extern Jsonb *ev_filters_canonical(Jsonb *filters);

#endif							/* EV_API_FILTERS_H */
