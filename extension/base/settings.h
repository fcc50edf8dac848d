/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The extension's settings; each is described in settings.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef EV_BASE_SETTINGS_H
#define EV_BASE_SETTINGS_H

/* More exporters than this cannot be configured. */
#define EV_MAX_EXPORTERS 16

/* Where finished archives lie. */
typedef enum EvDelivery
{
	EV_DELIVERY_DATABASE,
	EV_DELIVERY_OBJECT_STORE
} EvDelivery;

/* Where audit records are shipped to; see process/sink.h. */
typedef enum EvSinkKind
{
	EV_SINK_FILE,
	EV_SINK_SERVER_LOG
} EvSinkKind;

extern char *ev_database;
extern char *ev_worker_role;
extern int	ev_max_exporters;
extern int	ev_lease;			/* seconds */
extern int	ev_max_attempts;
extern int	ev_max_range;		/* seconds */
extern int	ev_max_records;
extern int	ev_max_active_per_requester;
extern int	ev_download_window; /* seconds */
extern int	ev_grant_ttl;		/* seconds */
extern int	ev_delivery;		/* EvDelivery */
extern int	ev_staged_deadline; /* seconds */
extern int	ev_requeue_window;	/* seconds */
extern bool ev_redaction;
extern bool ev_ship;
extern int	ev_ship_sink;		/* EvSinkKind */
extern char *ev_ship_file;
extern int	ev_ship_file_max_size;	/* kB, 0 = no limit */
extern int	ev_ship_batch;
extern int	ev_ship_interval;	/* milliseconds */
extern int	ev_ship_backoff_min;	/* milliseconds */
extern int	ev_ship_backoff_max;	/* milliseconds */
extern bool ev_ship_redaction;
extern char *ev_fingerprint_key_file;
extern bool ev_developer_mode;
extern int	ev_clock_offset;	/* seconds */
extern char *ev_debug_pause;
extern char *ev_debug_sink;

/* Define them all; called once, from _PG_init. */
extern void ev_settings_init(void);

#endif							/* EV_BASE_SETTINGS_H */
