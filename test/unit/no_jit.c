/*-------------------------------------------------------------------------
 *
 * no_jit.c
 *	  PCRE2 without its just-in-time compiler, for the tests under valgrind.
 *
 * The linker puts this function in the place of the library's own.
 *
 *-------------------------------------------------------------------------
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

extern int	__wrap_pcre2_jit_compile_8(pcre2_code *code, uint32_t options);

int
__wrap_pcre2_jit_compile_8(pcre2_code *code, uint32_t options)
{
	(void) code;
	(void) options;
	return PCRE2_ERROR_JIT_BADOPTION;
}
