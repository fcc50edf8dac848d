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
extern char *ev_fingerprint_key_file;
extern bool ev_developer_mode;
extern int	ev_clock_offset;	/* seconds */
extern char *ev_debug_pause;

/* Define them all; called once, from _PG_init. */
extern void ev_settings_init(void);

#endif							/* EV_BASE_SETTINGS_H */
