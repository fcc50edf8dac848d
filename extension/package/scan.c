/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  Which kinds of bytes does a text hold?
 *
 * With SSE2, which every x86-64 processor has, the scan takes 16 bytes at a
 * time; elsewhere and for short texts it goes byte by byte.  Both ways give
 * the same answer, so a package does not depend on the processor.
 *
 *-------------------------------------------------------------------------
 */
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "scan.h"

#if defined(__SSE2__)
static bool drop_lines(const char *text, char **to, bool *lines);
#endif

/* The kind of each byte, as in scan.h. */
static const unsigned char kinds[256] = {
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	0, 0, 4, 0, 0, 8, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2
};

/*
 * All kinds are gathered over the whole text and asked for once at the end.
 * That is faster than stopping at the first find, because there hardly ever is
 * one.
 */
unsigned
ev_scan_bytes(const char *text, size_t length)
{
	unsigned	found = 0;
	size_t		i = 0;

#if defined(__SSE2__)
	if (length >= 16)
	{
		const __m128i last_c0 = _mm_set1_epi8(0x1F);
		__m128i		high = _mm_setzero_si128();
		__m128i		control = high;
		__m128i		special = high;
		__m128i		percent = high;

		/* The last block overlaps the one before, so nothing is overrun. */
		for (; i < length; i += 16)
		{
			__m128i		block;

			if (length - i < 16)
				i = length - 16;
			block = _mm_loadu_si128((const __m128i *) (text + i));
			high = _mm_or_si128(high, block);
			control = _mm_or_si128(control,
								   _mm_cmpeq_epi8(_mm_min_epu8(block, last_c0),
												  block));
			control = _mm_or_si128(control,
								   _mm_cmpeq_epi8(block,
												  _mm_set1_epi8(0x7F)));
			special = _mm_or_si128(special,
								   _mm_cmpeq_epi8(block, _mm_set1_epi8(',')));
			special = _mm_or_si128(special,
								   _mm_cmpeq_epi8(block, _mm_set1_epi8('"')));
			percent = _mm_or_si128(percent,
								   _mm_cmpeq_epi8(block, _mm_set1_epi8('%')));
		}
		return (_mm_movemask_epi8(high) != 0 ? EV_HAS_HIGH : 0) |
			(_mm_movemask_epi8(control) != 0 ? EV_HAS_CONTROL : 0) |
			(_mm_movemask_epi8(special) != 0 ? EV_HAS_SPECIAL : 0) |
			(_mm_movemask_epi8(percent) != 0 ? EV_HAS_PERCENT : 0);
	}
#endif

	for (; i < length; i++)
		found |= kinds[(unsigned char) text[i]];
	return found;
}

/* Callers go on from run to run, so short runs matter as much as long ones. */
size_t
ev_scan_plain(const char *text, size_t length)
{
	size_t		i = 0;

#if defined(__SSE2__)
	/* As signed bytes, everything not ASCII is negative. */
	for (; length - i >= 16; i += 16)
	{
		__m128i		block = _mm_loadu_si128((const __m128i *) (text + i));
		__m128i		plain;
		unsigned	other;

		plain = _mm_and_si128(_mm_cmpgt_epi8(block, _mm_set1_epi8(0x1F)),
							  _mm_cmplt_epi8(block, _mm_set1_epi8(0x7F)));
		other = (unsigned) _mm_movemask_epi8(plain) ^ 0xFFFF;
		if (other != 0)
			return i + (size_t) __builtin_ctz(other);
	}
#endif

	while (i < length && (signed char) text[i] >= 0x20 &&
		   (signed char) text[i] < 0x7F)
		i++;
	return i;
}

/*
 * Writing the byte first and then advancing only if it stays avoids a branch
 * that no processor can predict.
 */
size_t
ev_scan_lines(const char *text, size_t length, char **to, bool *lines)
{
	char	   *out = *to;
	size_t		i = 0;

	while (i < length)
	{
		unsigned char byte;
		bool		line;

#if defined(__SSE2__)
		while (length - i >= 32 && drop_lines(text + i, &out, lines))
			i += 16;
#endif

		/* Then byte by byte for a while, before blocks are tried again. */
		do
		{
			byte = (unsigned char) text[i];
			line = byte - 0x09u <= 0x0Du - 0x09u;
			if ((byte < 0x20 && !line) || byte >= 0x7F)
			{
				*to = out;
				return i;
			}
			*out = (char) byte;
			out += !line;
			*lines |= line;
			i++;
		} while (i < length && i % 16 != 0);
	}
	*to = out;
	return i;
}

#if defined(__SSE2__)

/*
 * The same for one block of 16 bytes, or false if it holds other bytes.  Each
 * piece between two line breaks is copied as 16 bytes, of which the next
 * piece overwrites what is too much, so 32 bytes must be there to be read.
 */
static bool
drop_lines(const char *text, char **to, bool *lines)
{
	__m128i		block = _mm_loadu_si128((const __m128i *) text);
	__m128i		plain;
	__m128i		line;
	unsigned	mask;
	unsigned	from = 0;

	plain = _mm_and_si128(_mm_cmpgt_epi8(block, _mm_set1_epi8(0x1F)),
						  _mm_cmplt_epi8(block, _mm_set1_epi8(0x7F)));
	line = _mm_and_si128(_mm_cmpgt_epi8(block, _mm_set1_epi8(0x08)),
						 _mm_cmplt_epi8(block, _mm_set1_epi8(0x0E)));
	if (_mm_movemask_epi8(_mm_or_si128(plain, line)) != 0xFFFF)
		return false;

	mask = (unsigned) _mm_movemask_epi8(line);
	*lines |= mask != 0;
	while (mask != 0)
	{
		unsigned	at = (unsigned) __builtin_ctz(mask);

		block = _mm_loadu_si128((const __m128i *) (text + from));
		_mm_storeu_si128((__m128i *) *to, block);
		*to += at - from;
		from = at + 1;
		mask &= mask - 1;
	}
	block = _mm_loadu_si128((const __m128i *) (text + from));
	_mm_storeu_si128((__m128i *) *to, block);
	*to += 16 - from;
	return true;
}

#endif

/* Every byte stays one byte, so this is one pass without a decision. */
void
ev_blank_controls(const char *text, size_t length, char *out)
{
	size_t		i = 0;

#if defined(__SSE2__)
	for (; length - i >= 16; i += 16)
	{
		__m128i		block = _mm_loadu_si128((const __m128i *) (text + i));
		__m128i		control;

		control = _mm_or_si128(_mm_cmplt_epi8(block, _mm_set1_epi8(0x20)),
							   _mm_cmpeq_epi8(block, _mm_set1_epi8(0x7F)));
		block = _mm_or_si128(_mm_andnot_si128(control, block),
							 _mm_and_si128(control, _mm_set1_epi8(' ')));
		_mm_storeu_si128((__m128i *) (out + i), block);
	}
#endif

	for (; i < length; i++)
		out[i] = kinds[(unsigned char) text[i]] == EV_HAS_CONTROL ?
			' ' : text[i];
}
