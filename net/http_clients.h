/* http_clients.h - how long each client of a server of HTTP takes: one that says a byte now and
 * then is never silent, and would keep its place for hours.
 *
 * A thread looks once in a second, and hangs up on who has not had an answer for so long: since it
 * came, or since its last one.
 */
#ifndef NET_HTTP_CLIENTS_H
#define NET_HTTP_CLIENTS_H

#include "core/base/error.h"

struct http_clients;
err http_clients_open(int max, int limit_s, struct http_clients **ret);
void http_clients_close(struct http_clients *); /* NULL is fine; after all of them have gone */

/* From any thread. Returns its place; -1: there is none left, and it is not looked at. */
int http_clients_add(struct http_clients *, int fd);
void http_clients_answered(struct http_clients *, int place); /* -1 is fine */
void http_clients_remove(struct http_clients *, int place);   /* before its socket is closed */

#endif
