/*-------------------------------------------------------------------------
 *
 * prompt.h
 *	  Ask for a password on the terminal.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_PROMPT_H
#define EV_UPLOADER_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Read one line without echo into password.  False when there is no terminal
 * or the line is too long.
 */
extern bool ev_prompt_password(char *password, size_t size);

#endif							/* EV_UPLOADER_PROMPT_H */
