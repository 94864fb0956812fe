/* http_server.h - answers HTTP, by libmicrohttpd: a thread of its own, so that whoever computes is
 * not held up, and limits on all that a client can make of it.
 *
 * The handler is called in that thread. It may look at what others write only behind a lock or as
 * a copy.
 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "net/transport.h"

enum {
    HTTP_CLIENTS_MAX = 64,         /* connections at a time, */
    HTTP_CLIENTS_OF_HOST_MAX = 16, /* of one host */
    HTTP_SILENCE_MAX_S = 10,       /* of a client */
    HTTP_ANSWER_MAX_S = 20,        /* from one answer to the next, silence included */
    HTTP_HEADERS_MAX = 16 << 10,   /* bytes of a request line and its headers */
    HTTP_RATE_MAX = 200,           /* requests in a second; more wait */
};

struct http_request {
    const char *path; /* "/metrics", without what comes behind a '?' */
    const char *body; /* of a POST; not terminated */
    size_t body_bytes;
};

struct http_reply {
    int status;       /* 200 */
    const char *type; /* "text/plain" */
    char *body;       /* malloc'ed, taken; NULL: there was no memory for it */
    size_t body_bytes;
};

struct http_server_options {
    const char *address; /* "PORT" or "HOST:PORT"; port 0: a free one */
    /* A path that only others take is answered 405; one that nobody takes the handler answers. */
    size_t body_max; /* 0: nothing but GET and HEAD */
    void (*handle)(void *context, const struct http_request *, struct http_reply *ret);
    void *context;
};

struct http_server;
/* ERR_INPUT: the address is none; ERR_IO: it cannot be had, or the library is not there. */
err http_server_open(const struct http_server_options *, struct http_server **ret);
void http_server_close(struct http_server *); /* NULL is fine */
int http_server_port(const struct http_server *);

err http_server_check(const char *address); /* ERR_INPUT; nothing is opened */

/* Of the library: "0.9.75"; "": it is not installed; NULL: not built in. */
const char *http_server_version(void);

#endif
