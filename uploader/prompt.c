/*-------------------------------------------------------------------------
 *
 * prompt.c
 *	  Ask for a password on the terminal.
 *
 * The terminal itself is opened, not standard input and output: those may be
 * a pipe, and a prompt must not become part of a result.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>
#include <termios.h>

#include "prompt.h"

bool
ev_prompt_password(char *password, size_t size)
{
	FILE	   *terminal = fopen("/dev/tty", "w+");
	struct termios saved;
	struct termios silent;
	bool		complete;

	if (terminal == NULL)
		return false;
	if (tcgetattr(fileno(terminal), &saved) != 0)
	{
		fclose(terminal);
		return false;
	}

	/* Before the prompt, or a fast answer would be shown and thrown away. */
	silent = saved;
	silent.c_lflag &= ~(tcflag_t) ECHO;
	tcsetattr(fileno(terminal), TCSAFLUSH, &silent);
	fputs("Password: ", terminal);
	fflush(terminal);
	complete = fgets(password, (int) size, terminal) != NULL &&
		strchr(password, '\n') != NULL;
	tcsetattr(fileno(terminal), TCSAFLUSH, &saved);
	fputc('\n', terminal);
	fclose(terminal);

	if (complete)
		password[strcspn(password, "\r\n")] = '\0';
	else
		explicit_bzero(password, size);
	return complete;
}
