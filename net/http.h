/* http.h - requests to servers by HTTP: the one place that knows libcurl.
 *
 * A call is one request and its answer. It is started, and later waited for; one thread of the
 * process carries all calls out at once, over connections that stay open. What may succeed when it
 * is asked again is tried again, later each time: connections that are refused or break, silence,
 * answers that end early or are another range than was asked for, and statuses 408, 429, 500, 502,
 * 503 and 504.
 *
 * Limits: HTTP_CONNECT_MAX_S for a connection; DTRAIN_URL_TIMEOUT of the environment (30 s) without
 * a byte, or, of a file that is read, with less than HTTP_BYTES_PER_S_MIN; for a try
 * HTTP_TRY_MAX_S, and as long as its bytes take at that rate; DTRAIN_URL_TRIES (6) tries, between
 * which pass HTTP_PAUSE_MS, twice that, ... up to HTTP_PAUSE_MAX_MS, or what the server asks for,
 * up to HTTP_RETRY_AFTER_MAX_S. Of an answer come HTTP_HEADERS_BYTES_MAX of headers, of a refusal
 * HTTP_REFUSAL_BYTES_MAX; of what libcurl reads and nobody wants, as of a redirect,
 * HTTP_SURPLUS_BYTES_MAX.
 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum {
    HTTP_CONNECT_MAX_S = 10,
    HTTP_PAUSE_MS = 200,
    HTTP_PAUSE_MAX_MS = 5000,
    HTTP_RETRY_AFTER_MAX_S = 30,
    HTTP_REDIRECTS_MAX = 5,
    HTTP_CONNECTIONS_MAX = 64,      /* at once */
    HTTP_CONNECTIONS_KEPT_MAX = 32, /* open, without a call */
    HTTP_HEADERS_MAX = 12,
    HTTP_HEADER_BYTES_MAX = 8448,
    HTTP_SAID_BYTES = 2048, /* of what a server says of a failure */
    HTTP_LOCATION_BYTES = 8192,
    HTTP_TAG_BYTES = 256,
    HTTP_REASON_BYTES = 64,
    HTTP_BYTES_PER_S_MIN = 1024,
    HTTP_TRY_MAX_S = 600, /* a server may put a large object together for minutes */
    HTTP_HEADERS_BYTES_MAX = 256 << 10,
    HTTP_REFUSAL_BYTES_MAX = 64 << 10,
    HTTP_SURPLUS_BYTES_MAX = 1 << 20,
};

/* Files for TLS, each NULL where libcurl's own do, or none is. */
struct http_tls {
    const char *authorities;       /* who may have signed the server's certificate */
    const char *certificate, *key; /* our own */
};

struct http_answer {
    int status;                     /* 200, 206, 404, ... */
    char reason[HTTP_REASON_BYTES]; /* "404 Not Found" */
    int tries;                      /* that it took */
    size_t bytes;                   /* that came to `to` */
    bool is_cut;
    uint64_t total_bytes;       /* of the whole, where it is known; else 0 */
    uint64_t kept_bytes;        /* of what was sent, by the header Range of the answer; else 0 */
    int64_t changed_s;          /* Last-Modified; 0: not said */
    char etag[HTTP_TAG_BYTES];  /* "": none */
    char said[HTTP_SAID_BYTES]; /* of a status of 300 and more: what came, as text */
    char location[HTTP_LOCATION_BYTES];
};

struct http_call {
    /* The request; borrowed until the call is over. */
    const char *method; /* "GET", "PUT", ... */
    const char *url;
    const char *shown;                     /* for messages: without secrets */
    const char *headers[HTTP_HEADERS_MAX]; /* "Name: value"; NULL at the end */
    const void *body;                      /* NULL: none */
    size_t body_bytes;
    const char *body_type; /* NULL: application/octet-stream */
    uint64_t range_at; /* where range_bytes is not 0: these bytes alone, or as many as there are */
    size_t range_bytes;
    int try_s;           /* not 0: this many seconds for all of a try */
    int tries_max;       /* 0: DTRAIN_URL_TRIES */
    bool needs_answer;   /* to be tried again: where nobody is there, none is waited for */
    bool keeps_redirect; /* a redirect is the answer; else it is followed */
    bool body_waits;     /* the body goes to where the first answer redirects to, not before */
    bool stays_secure;   /* a redirect of https leads to https alone */
    bool is_counted;     /* needs a new connection: on a kept one libcurl itself sends again what
                            got no answer, and no try is counted */
    const struct http_tls *tls; /* NULL: libcurl's own files, and no certificate of ours */
    const char *secret;   /* what no message may have of what the server says; NULL: nothing */
    const char *unproven; /* why nothing proves who asks, for the text of a 401 or 403; NULL */
    bool lends;           /* what the server gives is a secret, also in an answer that refuses */
    /* Whether a refusal may pass, beside the statuses above; NULL: none does. */
    bool (*may_pass)(const struct http_call *);
    void *to;   /* what comes */
    size_t max; /* at most this many bytes; more: the rest is left, and is_cut */

    struct http_answer answer;
    struct http_transfer *transfer; /* on its way; NULL: none */
};

/* ERR_MEMORY. The call stays where it is until it has been waited for or dropped. */
err http_start(struct http_call *);
/* OK: there is an answer, which may be a status that says no. ERR_IO: there is none after all
 * tries; the log tells of a long wait between them. The text names URL, status and what the server
 * said. */
err http_wait(struct http_call *);
bool http_is_done(const struct http_call *); /* of one that was started: http_wait does not wait */
void http_drop(struct http_call *);          /* whether started or not */

/* Of an answer that is none of success: the text as above. 401, 403, 404, 410 and 412 are
 * ERR_INPUT, what a person can change; others ERR_IO, and so are 401 and 403 of url_is_let_in().
 * errno is ENOENT of 404 and 410, else EIO. */
err http_refused(const struct http_call *);

/* Sleeps as between one try and the next; tries: 1 and more */
void http_pause(int tries);

/* "libcurl/7.88.1 OpenSSL/3.0.15 ..."; "": it is not installed */
const char *http_version(void);

#endif
