/*-------------------------------------------------------------------------
 *
 * commands.h
 *	  The commands of the program.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_COMMANDS_H
#define EV_UPLOADER_COMMANDS_H

#include "options.h"

/*
 * Carry out the command and print its result.  *reported tells whether a
 * command that failed has said so on standard output itself, as verify does.
 */
extern EvStatus ev_command_run(const EvOptions *options, bool *reported,
							   EvFailure *failure);

#endif							/* EV_UPLOADER_COMMANDS_H */
