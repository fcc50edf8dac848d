/*-------------------------------------------------------------------------
 *
 * anchor.c
 *	  Which of many short literals occur in a text?
 *
 * Every byte of every exported cell passes here, so this is the one hot loop
 * of redaction.  Each position's three bytes, folded to one case, are hashed
 * into a small table that says whether any literal begins like that.  The
 * positions do not depend on each other, so a processor works on several at a
 * time; an automaton needs one memory access after the other and was measured
 * slower.  Only a position that the table lets through is compared in full.
 *
 * Folding by one bit mixes some punctuation up, which only costs a
 * comparison: the comparison itself folds letters alone.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "anchor.h"

#define LENGTH_MIN 3
#define LENGTH_MAX 40
#define HASH_BITS 16
#define HASH_SIZE (1 << HASH_BITS)
#define TABLE_SIZE 4096

typedef struct Anchor
{
	char		literal[LENGTH_MAX + 1];	/* lower case */
	size_t		length;
	int			rule;
	int			next;			/* with the same hash, or -1 */
} Anchor;

struct EvAnchorSet
{
	Anchor	   *anchors;
	int			nanchors;
	int		   *always;
	int			nalways;
	uint64_t	maybe[HASH_SIZE / 64];	/* one bit for each hash */
	int			first[TABLE_SIZE];	/* index of an anchor, or -1 */
};

static unsigned hash_of(uint32_t three);
static uint64_t maybe(const EvAnchorSet *set, unsigned hash);
static uint32_t load_three(const char *text);
static bool check_position(const EvAnchorSet *set, unsigned hash,
						   const char *text, size_t length, bool *wanted,
						   int nrules, bool any);
static void want_always(const EvAnchorSet *set, bool *wanted, int nrules);
static char lower(char c);

EvAnchorSet *
ev_anchor_set_create(void)
{
	EvAnchorSet *set = calloc(1, sizeof(EvAnchorSet));

	if (set != NULL)
		memset(set->first, -1, sizeof(set->first));
	return set;
}

void
ev_anchor_set_free(EvAnchorSet *set)
{
	if (set == NULL)
		return;
	free(set->anchors);
	free(set->always);
	free(set);
}

bool
ev_anchor_valid(const char *literal)
{
	size_t		length = strlen(literal);
	size_t		i;

	for (i = 0; i < length; i++)
		if (literal[i] < 0x20 || literal[i] > 0x7E)
			return false;
	return length >= LENGTH_MIN && length <= LENGTH_MAX;
}

/*
 * Literals are stored in lower case, so that each comparison folds one side
 * only.
 */
bool
ev_anchor_add(EvAnchorSet *set, const char *literal, int rule)
{
	size_t		length = strlen(literal);
	Anchor	   *anchors;
	Anchor	   *anchor;
	unsigned	hash;
	size_t		i;

	anchors = realloc(set->anchors,
					  (size_t) (set->nanchors + 1) * sizeof(Anchor));
	if (anchors == NULL)
		return false;
	set->anchors = anchors;
	anchor = &anchors[set->nanchors];
	for (i = 0; i < length; i++)
		anchor->literal[i] = lower(literal[i]);
	anchor->literal[length] = '\0';
	anchor->length = length;
	anchor->rule = rule;

	hash = hash_of(load_three(anchor->literal));
	anchor->next = set->first[hash % TABLE_SIZE];
	set->first[hash % TABLE_SIZE] = set->nanchors++;
	set->maybe[hash / 64] |= UINT64_C(1) << hash % 64;
	return true;
}

bool
ev_anchor_always(EvAnchorSet *set, int rule)
{
	int		   *always;

	always = realloc(set->always, (size_t) (set->nalways + 1) * sizeof(int));
	if (always == NULL)
		return false;
	set->always = always;
	always[set->nalways++] = rule;
	return true;
}

/*
 * wanted is cleared on the first find and not before: for most texts there is
 * none, and clearing it would cost more than the search.
 */
bool
ev_anchor_find(const EvAnchorSet *set, const char *text, size_t length,
			   bool *wanted, int nrules)
{
	bool		any = false;
	size_t		i = 0;

	/* Eight bytes hold six positions; four of them are looked up at once. */
	for (; i + 8 <= length; i += 4)
	{
		uint64_t	eight;
		unsigned	hash[4];
		int			k;

		memcpy(&eight, text + i, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		eight = __builtin_bswap64(eight);
#endif
		hash[0] = hash_of(eight & 0xFFFFFF);
		hash[1] = hash_of(eight >> 8 & 0xFFFFFF);
		hash[2] = hash_of(eight >> 16 & 0xFFFFFF);
		hash[3] = hash_of(eight >> 24 & 0xFFFFFF);
		if (((maybe(set, hash[0]) | maybe(set, hash[1]) |
			  maybe(set, hash[2]) | maybe(set, hash[3])) & 1) == 0)
			continue;
		for (k = 0; k < 4; k++)
			if ((maybe(set, hash[k]) & 1) != 0)
				any = check_position(set, hash[k], text + i + k,
									 length - i - (size_t) k, wanted, nrules,
									 any);
	}
	for (; i + LENGTH_MIN <= length; i++)
	{
		unsigned	hash = hash_of(load_three(text + i));

		if ((maybe(set, hash) & 1) != 0)
			any = check_position(set, hash, text + i, length - i, wanted,
								 nrules, any);
	}

	if (!any && set->nalways > 0)
	{
		want_always(set, wanted, nrules);
		any = true;
	}
	return any;
}

/* Three bytes, the first one lowest, whatever the processor's byte order. */
static uint32_t
load_three(const char *text)
{
	const unsigned char *p = (const unsigned char *) text;

	return p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16;
}

/* Setting bit 5 makes letters lower case; the rest is a usual multiply. */
static inline unsigned
hash_of(uint32_t three)
{
	return ((three | 0x202020) * UINT32_C(2654435761)) >> (32 - HASH_BITS);
}

/* Bit 0 tells whether any literal has this hash; the others are noise. */
static inline uint64_t
maybe(const EvAnchorSet *set, unsigned hash)
{
	return set->maybe[hash / 64] >> hash % 64;
}

/* An anchor whose rule is wanted already needs no comparison. */
static bool
check_position(const EvAnchorSet *set, unsigned hash, const char *text,
			   size_t length, bool *wanted, int nrules, bool any)
{
	int			index;

	for (index = set->first[hash % TABLE_SIZE]; index >= 0;
		 index = set->anchors[index].next)
	{
		const Anchor *anchor = &set->anchors[index];
		size_t		i = 0;

		if (anchor->length > length || (any && wanted[anchor->rule]))
			continue;
		while (i < anchor->length && lower(text[i]) == anchor->literal[i])
			i++;
		if (i < anchor->length)
			continue;
		if (!any)
			want_always(set, wanted, nrules);
		any = true;
		wanted[anchor->rule] = true;
	}
	return any;
}

static void
want_always(const EvAnchorSet *set, bool *wanted, int nrules)
{
	int			i;

	memset(wanted, 0, (size_t) nrules * sizeof(bool));
	for (i = 0; i < set->nalways; i++)
		wanted[set->always[i]] = true;
}

/* Not tolower, which follows the locale. */
static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char) (c + 32) : c;
}
