/* http_server.h - an HTTP server (libmicrohttpd) with limits on whatever a client can use up.
 *
 * Without `work`, as in a task that trains, one thread answers, and the request rate is limited so
 * that most of a core stays free. With `work`, as in dtrain serve, each client has a thread. The
 * handler is called in these threads: it must lock or copy whatever other threads write.
 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "net/transport.h"

enum {
    HTTP_CLIENTS_MAX = 64,         /* connections at a time */
    HTTP_CLIENTS_OF_HOST_MAX = 16, /* connections at a time from one host */
    HTTP_SILENCE_MAX_S = 10,       /* idle time of a client */
    HTTP_ANSWER_MAX_S = 20,        /* from one answer to the next, idle time included */
    HTTP_HEADERS_MAX = 16 << 10,   /* bytes of a request line and its headers */
    HTTP_RATE_MAX = 200,           /* requests per second; further ones wait */
};

struct http_request {
    bool is_post;     /* false: GET or HEAD */
    const char *path; /* "/metrics", without a query string */
    const char *body; /* of a POST, NUL-terminated, may contain NULs; NULL: none */
    size_t body_bytes;
};

struct http_reply {
    int status;       /* 200 */
    const char *type; /* "text/plain" */
    char *body;       /* malloc'ed; the server frees it; NULL: out of memory */
    size_t body_bytes;
    const char *allow; /* with 405: "POST" */
};

/* For a program whose work is to answer requests */
struct http_work {
    int clients, clients_of_host, silence_s, answer_s; /* replace the limits above */
    size_t body_max, bodies_max;                       /* bytes of one body, and of all at a time */
};

struct http_server_options {
    const char *address;          /* "PORT" or "HOST:PORT"; port 0: any free port */
    const struct http_work *work; /* read only by http_server_open; NULL: GET and HEAD only, in one
                                     thread */
    /* With work, called by several threads at once. */
    void (*handle)(void *context, const struct http_request *, struct http_reply *ret);
    /* Fills in the reply to a request refused before the handler sees it; NULL: `text` is the body
     */
    void (*refuse)(int status, const char *text, struct http_reply *ret);
    void *context;
};

struct http_server;
/* ERR_INPUT: the address is invalid; ERR_IO: cannot listen there, or the library is missing. */
err http_server_open(const struct http_server_options *, struct http_server **ret);
void http_server_close(struct http_server *); /* NULL is fine */
int http_server_port(const struct http_server *);
/* Accepts no new clients; answers from now on close their connection. Waits up to ms for requests
 * in progress and returns how many are left. Call it at most once. */
int http_server_drain(struct http_server *, uint64_t ms);

err http_server_check(const char *address); /* ERR_INPUT; nothing is opened */

/* The library's version, "0.9.75"; "": not installed; NULL: built without. */
const char *http_server_version(void);

#endif
