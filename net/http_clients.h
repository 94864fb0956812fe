/* http_clients.h - a timeout per client of an HTTP server: one that sends a byte now and then is
 * never idle and would keep its slot for hours.
 *
 * Once a second a thread hangs up on clients that have had no answer for limit_s since they
 * connected, or since their last answer.
 */
#ifndef NET_HTTP_CLIENTS_H
#define NET_HTTP_CLIENTS_H

#include "core/base/error.h"

struct http_clients;
err http_clients_open(int max, int limit_s, struct http_clients **ret);
void http_clients_close(struct http_clients *); /* NULL is fine; after all clients were removed */

/* From any thread. Returns its place; -1: all max places are taken, it has no timeout. */
int http_clients_add(struct http_clients *, int fd);
void http_clients_answered(struct http_clients *, int place); /* -1 is fine */
void http_clients_remove(struct http_clients *, int place); /* call it before closing the socket */

#endif
