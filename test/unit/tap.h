/*-------------------------------------------------------------------------
 *
 * tap.h
 *	  The few lines that a unit test needs to print TAP.
 *
 * Each test program includes this once.  A failed check says where it stands
 * and goes on; the exit code is 1 if any check failed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_TEST_TAP_H
#define EV_TEST_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int	tap_count = 0;
static int	tap_failed = 0;

/* One line of TAP; returns what was checked. */
static bool
__attribute__((format(printf, 4, 5)))
tap_check(bool passed, const char *file, int line, const char *name,...)
{
	va_list		args;

	printf("%s %d - ", passed ? "ok" : "not ok", ++tap_count);
	va_start(args, name);
	vprintf(name, args);
	va_end(args);
	putchar('\n');
	if (!passed)
	{
		printf("#   failed at %s line %d\n", file, line);
		tap_failed++;
	}
	return passed;
}

#define ok(passed, ...) tap_check(passed, __FILE__, __LINE__, __VA_ARGS__)

/* Compare two byte strings and show both if they differ. */
static bool
__attribute__((unused))
tap_same(const char *got, size_t got_length, const char *wanted,
		 size_t wanted_length, const char *file, int line, const char *name)
{
	bool		same = got_length == wanted_length;
	size_t		i;

	for (i = 0; same && i < got_length; i++)
		same = got[i] == wanted[i];
	tap_check(same, file, line, "%s", name);
	if (!same)
		printf("#   got    \"%.*s\"\n#   wanted \"%.*s\"\n",
			   (int) got_length, got, (int) wanted_length, wanted);
	return same;
}

#define is(got, wanted, name) \
	tap_same(got, strlen(got), wanted, strlen(wanted), __FILE__, __LINE__, \
			 name)

static int
tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed > 0;
}

#endif							/* EV_TEST_TAP_H */
