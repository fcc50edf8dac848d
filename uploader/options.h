/*-------------------------------------------------------------------------
 *
 * options.h
 *	  The command line: what was asked for, checked as far as possible
 *	  without a server.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_OPTIONS_H
#define EV_UPLOADER_OPTIONS_H

#include <stdint.h>

#include "package/buffer.h"

#include "failure.h"
#include "ledger.h"

typedef enum EvCommand
{
	EV_COMMAND_NONE = 0,
	EV_COMMAND_REQUEST,
	EV_COMMAND_WAIT,
	EV_COMMAND_LIST,
	EV_COMMAND_SHOW,
	EV_COMMAND_CANCEL,
	EV_COMMAND_DOWNLOAD,
	EV_COMMAND_VERIFY
} EvCommand;

/* What to do instead of the command, when the line asks for it. */
typedef enum EvInformation
{
	EV_INFORMATION_NONE = 0,
	EV_INFORMATION_HELP,
	EV_INFORMATION_VERSION
} EvInformation;

typedef struct EvOptions
{
	EvCommand	command;
	EvInformation information;
	const char *target;			/* export id, or the file to verify */
	EvConnection connection;
	bool		json;
	bool		quiet;
	bool		wait;
	bool		force;
	const char *output;			/* file to download to; NULL if not given */
	const char *reason;
	const char *state;
	int			timeout;		/* seconds; 0 waits without end */
	int			limit;
	EvExportRequest request;

	/* What request points to, when it was put together here. */
	EvBuffer	filters;
	EvBuffer	columns;
	char		key[64];
} EvOptions;

/*
 * Read argv.  argv is permuted and the options point into it.  Every mistake
 * is EV_STATUS_USAGE.  Release with ev_options_free in either case.
 */
extern EvStatus ev_options_parse(EvOptions *options, int argc, char **argv,
								 EvFailure *failure);
extern void ev_options_free(EvOptions *options);

/* Print the help of a command, or the general one. */
extern void ev_options_help(EvCommand command);

#endif							/* EV_UPLOADER_OPTIONS_H */
