/*-------------------------------------------------------------------------
 *
 * s3_classify.h
 *	  What an answer of an object store, or the lack of one, means.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_UPLOADER_S3_CLASSIFY_H
#define EV_UPLOADER_S3_CLASSIFY_H

#include "s3.h"

/* What the answer is about, as far as its meaning depends on that. */
typedef enum EvS3Subject
{
	EV_S3_SUBJECT_OBJECT = 0,	/* a key, a version, an upload */
	EV_S3_SUBJECT_BUCKET		/* the bucket or its settings */
} EvS3Subject;

/* Why a request ended at our wish. */
typedef enum EvS3Break
{
	EV_S3_BREAK_NONE = 0,
	EV_S3_BREAK_STOPPED,		/* the tick, the sink or a listing said so */
	EV_S3_BREAK_SOURCE,			/* the source failed or was too short */
	EV_S3_BREAK_MEMORY,
	EV_S3_BREAK_TIME,			/* beyond the time for the whole request */
	EV_S3_BREAK_AGAIN,			/* libcurl wanted to send it again */
	EV_S3_BREAK_TOO_LONG		/* a header or body beyond all measure */
} EvS3Break;

/* What is known when a request is over. */
typedef struct EvS3Answer
{
	int			transport;		/* a CURLcode */
	EvS3Break	broken;
	EvS3Subject subject;
	bool		sent;			/* a connection stood, so bytes may be out */
	bool		body_sent;		/* all of the body was handed on */
	bool		writes;			/* it would change something */
	int			http_status;	/* 1xx counts as none */
	bool		has_body;		/* the answer had a body that was kept */
	bool		is_error;		/* and it is an Error document */
	bool		fits;			/* a 2xx is what this request gets */
	bool		delete_marker;
	char		code[64];		/* of the Error document */
	char		text[256];
	char		request_id[80];
	int			retry_after;	/* -1 if not said */
	int64_t		store_time;		/* EV_S3_NEVER if not said */
	int64_t		now;			/* by the clock of this host */
} EvS3Answer;

/* All of it empty. */
extern void ev_s3_answer_clear(EvS3Answer *answer);

/* Pure: the same answer has the same result. */
extern void ev_s3_classify(const EvS3Answer *answer, EvS3Result *result);

/* Fill a result for a request that was not sent. */
extern EvS3Outcome ev_s3_result_set(EvS3Result *result, EvS3Outcome outcome,
									const char *format,...) EV_PRINTF(3, 4);

#endif							/* EV_UPLOADER_S3_CLASSIFY_H */
