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
#include "s3.h"
#include "work.h"

typedef enum EvCommand
{
	EV_COMMAND_NONE = 0,
	EV_COMMAND_REQUEST,
	EV_COMMAND_WAIT,
	EV_COMMAND_LIST,
	EV_COMMAND_SHOW,
	EV_COMMAND_CANCEL,
	EV_COMMAND_DOWNLOAD,
	EV_COMMAND_VERIFY,
	EV_COMMAND_UPLOAD,
	EV_COMMAND_RECONCILE,
	EV_COMMAND_DOCTOR
} EvCommand;

/* What to do instead of the command, when the line asks for it. */
typedef enum EvInformation
{
	EV_INFORMATION_NONE = 0,
	EV_INFORMATION_HELP,
	EV_INFORMATION_VERSION
} EvInformation;

/* Where the object store is.  NULL leaves a value to its default. */
typedef struct EvStoreOptions
{
	const char *bucket;
	const char *prefix;			/* of all keys, without a slash at the end */
	const char *endpoint;
	const char *region;
	const char *ca_file;
	const char *credentials_file;
	const char *profile;
	bool		allow_http;
	EvS3Style	style;
	int64_t		limit_rate;		/* bytes per second; 0: none */
} EvStoreOptions;

typedef struct EvOptions
{
	EvCommand	command;
	const char *command_name;
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
	EvStoreOptions store;
	EvUploadRules rules;
	const char *config;			/* file; NULL if none was given */
	const char *lock_mode;		/* as given; the rules have it too */
	const char *log_format;
	bool		log_json;
	bool		once;
	bool		fix;
	bool		apply_lifecycle;
	int			grace;			/* seconds */

	/* What request points to, when it was put together here. */
	EvBuffer	filters;
	EvBuffer	columns;
	char		key[64];

	char	   *config_text;	/* texts of the configuration file */
	int			argc;			/* what was read, to read it again */
	char	  **argv;
} EvOptions;

/*
 * Read argv and the configuration file, if it names one.  argv is permuted and
 * the options point into it; it may be read again.  Every mistake is
 * EV_STATUS_USAGE, a file that cannot be read EV_STATUS_FILE.  Release with
 * ev_options_free in either case.
 */
extern EvStatus ev_options_parse(EvOptions *options, int argc, char **argv,
								 EvFailure *failure);
extern void ev_options_free(EvOptions *options);

/* Print the help of a command, or the general one. */
extern void ev_options_help(EvCommand command);

#endif							/* EV_UPLOADER_OPTIONS_H */
