/*-------------------------------------------------------------------------
 *
 * options_private.h
 *	  What the files options*.c share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_OPTIONS_PRIVATE_H
#define EV_UPLOADER_OPTIONS_PRIVATE_H

#include "options.h"

#define EV_FILTERS_LIMIT 1000

/* The --filter options in the order given. */
typedef struct EvFilterList
{
	const char *words[EV_FILTERS_LIMIT];
	int			count;
} EvFilterList;

/* Every mistake on the command line gets the same hint. */
extern EvStatus ev_options_usage(EvFailure *failure, const char *format,...)
			EV_PRINTF(2, 3);

/* What only "request" needs; --output includes --wait. */
extern EvStatus ev_options_check_request(EvOptions *options,
										 EvFailure *failure);
extern EvStatus ev_options_complete_request(EvOptions *options,
											EvFilterList *filters,
											EvFailure *failure);

/*
 * Take one setting of the configuration file; line is its number, value may be
 * kept, for it lives as long as the options.
 */
typedef EvStatus (*EvSettingFunction) (void *arg, int line, const char *name,
									   char *value, EvFailure *failure);

/* Read the file into memory that *text owns, and hand on each setting. */
extern EvStatus ev_options_read_config(const char *path, char **text,
									   EvSettingFunction function, void *arg,
									   EvFailure *failure);

/* Numbers with a unit; false if the text is none or too large. */
extern bool ev_options_bytes(const char *text, int64_t *bytes);
extern bool ev_options_seconds(const char *text, int *seconds);

/* What the commands that use an object store need. */
extern EvStatus ev_options_check_store(EvOptions *options,
									   EvFailure *failure);

#endif							/* EV_UPLOADER_OPTIONS_PRIVATE_H */
