/* http_server.h - answers HTTP, by libmicrohttpd, with limits on all that a client can make of it.
 *
 * A task answers beside its work: in one thread, so that whoever computes is not held up, and no
 * more requests in a second than leave most of a core free. Of a server, whose work requests are,
 * each client has a thread. The handler is called there. It may look at what others write only
 * behind a lock or as a copy.
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
    bool is_post;     /* else it asks for what is there */
    const char *path; /* "/metrics", without what comes behind a '?' */
    const char *body; /* of a POST; a NUL is behind it, and may be in it; NULL: none */
    size_t body_bytes;
};

struct http_reply {
    int status;       /* 200 */
    const char *type; /* "text/plain" */
    char *body;       /* malloc'ed, taken; NULL: there was no memory for it */
    size_t body_bytes;
    const char *allow; /* with 405: "POST" */
};

/* Of a server */
struct http_work {
    int clients, clients_of_host, silence_s, answer_s; /* instead of the above */
    size_t body_max, bodies_max; /* bytes of one, and of all that are there at a time */
};

struct http_server_options {
    const char *address;          /* "PORT" or "HOST:PORT"; port 0: a free one */
    const struct http_work *work; /* borrowed until it is open; NULL: it answers GET and HEAD beside
                                     its work */
    /* May be called by several threads at once where there is work. */
    void (*handle)(void *context, const struct http_request *, struct http_reply *ret);
    /* What is refused before the handler sees it: status, type and body; NULL: the text as it is */
    void (*refuse)(int status, const char *text, struct http_reply *ret);
    void *context;
};

struct http_server;
/* ERR_INPUT: the address is none; ERR_IO: it cannot be had, or the library is not there. */
err http_server_open(const struct http_server_options *, struct http_server **ret);
void http_server_close(struct http_server *); /* NULL is fine */
int http_server_port(const struct http_server *);
/* Takes no new clients; answers say from now on that they are the last ones. Waits at most so long
 * for requests that have begun, and returns how many are left. Once. */
int http_server_drain(struct http_server *, uint64_t ms);

err http_server_check(const char *address); /* ERR_INPUT; nothing is opened */

/* Of the library: "0.9.75"; "": it is not installed; NULL: not built in. */
const char *http_server_version(void);

#endif
