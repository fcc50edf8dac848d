/*-------------------------------------------------------------------------
 *
 * base64.c
 *	  Recognise and decode runs of base64 that hold text.
 *
 * Identifiers, hashes and paths look like base64 as well.  Their decoded
 * bytes are hardly ever printable, so decoding stops at the first byte that
 * no text has, which is one of the first few for all of them.
 *
 *-------------------------------------------------------------------------
 */
#include "base64.h"

const int8_t ev_base64_values[256] = {
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, 62, -1, 63,
	52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1,
	-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
	15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, 63,
	-1, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
	41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1
};

bool
ev_base64_text(const char *run, size_t length, EvBuffer *out, bool *text)
{
	uint32_t	bits = 0;
	int			nbits = 0;
	size_t		i;
	char	   *to;

	*text = false;
	ev_buffer_reset(out);
	if (!ev_buffer_reserve(out, length))
		return false;
	to = out->data;
	for (i = 0; i < length; i++)
	{
		unsigned	byte;

		bits = bits << 6 |
			(uint32_t) ev_base64_values[(unsigned char) run[i]];
		nbits += 6;
		if (nbits < 8)
			continue;
		nbits -= 8;
		byte = bits >> nbits & 0xFF;
		if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') ||
			byte >= 0x7F)
			return true;
		*to++ = (char) byte;
	}
	out->length = (size_t) (to - out->data);
	*text = true;
	return true;
}
