/*-------------------------------------------------------------------------
 *
 * notify.c
 *	  Tell the service manager how the service is.
 *
 * The protocol is one datagram of "NAME=VALUE" lines to a socket whose path
 * stands in the environment; "@" in front means that it has no file.  That is
 * little enough to need no library.  Whoever does not listen misses nothing
 * that matters, so failures are passed over.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "notify.h"

void
ev_notify(const char *format,...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	char		message[512];
	size_t		length;
	va_list		arguments;
	int			descriptor;

	if (path == NULL || (path[0] != '/' && path[0] != '@'))
		return;
	length = strlen(path);
	if (length >= sizeof(address.sun_path))
		return;
	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (descriptor < 0)
		return;
	length += offsetof(struct sockaddr_un, sun_path);
	if (sendto(descriptor, message, strlen(message),
			   MSG_NOSIGNAL | MSG_DONTWAIT,
			   (struct sockaddr *) &address, (socklen_t) length) < 0)
		length = 0;
	close(descriptor);
}
