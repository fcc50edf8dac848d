/*-------------------------------------------------------------------------
 *
 * anchor.h
 *	  Which of many short literals occur in a text?
 *
 * Private to this folder.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_PACKAGE_ANCHOR_H
#define EV_PACKAGE_ANCHOR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct EvAnchorSet EvAnchorSet;

/* NULL when memory is exhausted. */
extern EvAnchorSet *ev_anchor_set_create(void);
extern void ev_anchor_set_free(EvAnchorSet *set);	/* NULL is allowed */

/* 3 to 40 printable ASCII characters? */
extern bool ev_anchor_valid(const char *literal);

/* The literal belongs to this rule; false when memory is exhausted. */
extern bool ev_anchor_add(EvAnchorSet *set, const char *literal, int rule);

/* This rule is wanted whatever the text. */
extern bool ev_anchor_always(EvAnchorSet *set, int rule);

/*
 * Fill wanted[0 .. nrules) and return true, or return false without touching
 * it if no rule is wanted.
 */
extern bool ev_anchor_find(const EvAnchorSet *set, const char *text,
						   size_t length, bool *wanted, int nrules);

#endif							/* EV_PACKAGE_ANCHOR_H */
