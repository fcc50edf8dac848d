/*-------------------------------------------------------------------------
 *
 * s3_handle.h
 *	  What an EvS3 is made of; for s3_handle.c and s3_request.c only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_S3_HANDLE_H
#define EV_UPLOADER_S3_HANDLE_H

#include <curl/curl.h>

#include "s3.h"

struct EvS3
{
	CURLM	   *multi;			/* keeps the one connection */
	char	   *address;		/* of the bucket, without a slash at the end */
	char	   *name;			/* for messages */
	char	   *signer;			/* libcurl's word for how to sign */
	char	   *ca_file;
	bool		https;
	int			page;
	double		connect_seconds;
	double		request_seconds;
	int64_t		low_speed_bytes;
	int			low_speed_seconds;
	int64_t		rate_limit;
	EvCredentialsSource *credentials;
	EvS3TickFunction tick;
	void	   *tick_arg;
};

/*
 * From here on libcurl's copies of this secret are noted, until they are all
 * overwritten.
 */
extern void ev_s3_watch_secret(const char *secret);
extern void ev_s3_forget_secret(void);

#endif							/* EV_UPLOADER_S3_HANDLE_H */
