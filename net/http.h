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
    HTTP_SAID_BYTES = 2048, /* kept of a server's text about a failure */
    HTTP_LOCATION_BYTES = 8192,
    HTTP_TAG_BYTES = 256,
    HTTP_REASON_BYTES = 64,
    HTTP_BYTES_PER_S_MIN = 1024,
    HTTP_TRY_MAX_S = 600, /* a server may take minutes to put a large object together */
    HTTP_HEADERS_BYTES_MAX = 256 << 10,
    HTTP_REFUSAL_BYTES_MAX = 64 << 10,
    HTTP_SURPLUS_BYTES_MAX = 1 << 20,
};

/* Files for TLS; NULL: libcurl's default, or no certificate of our own. */
struct http_tls {
    const char *authorities;       /* trusted to sign the server's certificate */
    const char *certificate, *key; /* our own */
};

struct http_answer {
    int status;                     /* 200, 206, 404, ... */
    char reason[HTTP_REASON_BYTES]; /* "404 Not Found" */
    int tries;                      /* that it took */
    size_t bytes;                   /* that came to `to` */
    bool is_cut;
    uint64_t total_bytes; /* of the whole object; 0: not known */
    uint64_t kept_bytes;  /* of what was sent, by the header Range of the answer; 0: not said */
    int64_t changed_s;    /* Last-Modified; 0: not said */
    char etag[HTTP_TAG_BYTES];  /* "": none */
    char said[HTTP_SAID_BYTES]; /* the answer's text, if status is 300 or more */
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
    uint64_t range_at;     /* range_bytes not 0: only these bytes, as far as they exist */
    size_t range_bytes;
    int try_s;           /* not 0: the limit of each try, in seconds */
    int tries_max;       /* 0: DTRAIN_URL_TRIES */
    bool needs_answer;   /* tries again only where a server has answered at all */
    bool keeps_redirect; /* a redirect is the answer; else it is followed */
    bool body_waits;     /* the body is sent only to where the first answer redirects to */
    bool stays_secure;   /* https is never redirected to http */
    bool is_counted;     /* on a new connection, so that each try is counted: on a kept one libcurl
                            itself repeats a request that got no answer */
    const struct http_tls *tls; /* NULL: libcurl's default files, and no certificate of our own */
    const char *secret;         /* hidden where messages quote the server; NULL: nothing */
    const char *unproven; /* why it has no credentials, for the text of a 401 or 403; or NULL */
    bool lends;           /* the answer is a secret, also one that refuses: it is never quoted */
    /* Whether a refusal may be temporary, beside the statuses above; NULL: none is. */
    bool (*may_pass)(const struct http_call *);
    void *to;   /* what comes */
    size_t max; /* at most this many bytes are kept; if there are more, is_cut */

    struct http_answer answer;
    struct http_transfer *transfer; /* under way; NULL: none */
};

/* ERR_MEMORY. The struct must not move until the call was waited for or dropped. */
err http_start(struct http_call *);
/* OK: there is an answer, whatever its status. ERR_IO: there is none after all tries; long waits
 * between them are logged. The text names URL, status and what the server said. */
err http_wait(struct http_call *);
bool http_is_done(const struct http_call *); /* of one that was started: http_wait would not wait */
void http_drop(struct http_call *);          /* whether started or not */

/* For an answer that is not a success: the text as above. 401, 403, 404, 410 and 412 are ERR_INPUT,
 * which a person can mend; others ERR_IO, and so are 401 and 403 of url_is_let_in(). errno is
 * ENOENT after 404 and 410, else EIO. */
err http_refused(const struct http_call *);

/* Sleeps as between two tries; tries: how many there were, 1 or more */
void http_pause(int tries);

/* "libcurl/7.88.1 OpenSSL/3.0.15 ..."; "": it is not installed */
const char *http_version(void);

#endif
