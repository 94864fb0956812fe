/* http.c - see http.h. One thread runs all transfers (libcurl's multi interface); calls reach it by
 * a list under a lock. */
#include "net/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/clock.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/retries.h"
#include "core/base/threads/thread.h"
#include "net/http_said.h"
#include "net/library.h"

enum {
    POLL_MAX_MS = 60000,
    TIMEOUT_DEFAULT_S = 30,
    TRIES_DEFAULT = 6,
    TIMEOUT_MAX_S = 3600,
    TRIES_MAX = 100,
    HEADER_LINE_MAX = 8192,
    RECEIVED_BYTES = 256 << 10, /* libcurl's receive buffer */
    LOOK_MS = 50,               /* how often a waiter checks whether its result is still wanted */
    NOTE_MS = 1000,             /* how often it checks whether to log that it waits */
};

enum transfer_state { WAITING, RUNNING, DONE };

struct http_transfer {
    struct http_call *call;
    CURL *easy;
    struct curl_slist *headers;
    struct http_transfer *next; /* in the list of all */
    enum transfer_state state;
    bool is_dropped;
    int redirects; /* in this try, to where the body is sent (body_waits) */
    char address[HTTP_LOCATION_BYTES];
    uint64_t due_ms; /* WAITING: when the next try begins */
    int tries;
    int retry_after_s;
    bool is_other_range;
    bool has_headers;    /* all have come: lines after the body are trailers, ignored */
    bool is_enough;      /* HTTP_REFUSAL_BYTES_MAX of a refusal have come; the rest is not read */
    bool is_endless;     /* too many bytes of headers, or of a body that nobody wants */
    long hops;           /* redirects that libcurl followed to get this answer */
    size_t header_bytes; /* of this try */
    size_t refusal_bytes;
    uint64_t range_first, range_last; /* of Content-Range; 0, 0: none */
    char reason[HTTP_REASON_BYTES];   /* "404 Not Found" */
    char curl_error[CURL_ERROR_SIZE];
    err result;
    char why[ERROR_TEXT_MAX]; /* error text, where result is not OK */
};

/* One per process: initialised by the first call, never closed. */
static struct {
    pthread_mutex_t lock; /* guards the list and the state of what is in it */
    pthread_cond_t done;
    CURLM *multi;
    struct http_transfer *all;
    pthread_t thread;
    bool is_open;
    int64_t timeout_s, tries_max;
    uint64_t pauses; /* counter for the random part of pauses */
    struct log_limit again;
} http = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

/* ---- libcurl, loaded by the first call: with its forty dependencies it would make every start of
 * the program take half as long again ---- */

static struct {
    typeof(curl_easy_cleanup) *easy_cleanup;
    typeof(curl_easy_getinfo) *easy_getinfo;
    typeof(curl_easy_init) *easy_init;
    typeof(curl_easy_reset) *easy_reset;
    typeof(curl_easy_setopt) *easy_setopt;
    typeof(curl_easy_strerror) *easy_strerror;
    typeof(curl_getdate) *getdate;
    typeof(curl_global_init) *global_init;
    typeof(curl_multi_add_handle) *multi_add_handle;
    typeof(curl_multi_info_read) *multi_info_read;
    typeof(curl_multi_init) *multi_init;
    typeof(curl_multi_perform) *multi_perform;
    typeof(curl_multi_poll) *multi_poll;
    typeof(curl_multi_remove_handle) *multi_remove_handle;
    typeof(curl_multi_setopt) *multi_setopt;
    typeof(curl_multi_wakeup) *multi_wakeup;
    typeof(curl_slist_append) *slist_append;
    typeof(curl_slist_free_all) *slist_free_all;
    typeof(curl_version) *version;
} curl;

static const struct library_function functions[] = {
    {"curl_easy_cleanup", (void **)&curl.easy_cleanup},
    {"curl_easy_getinfo", (void **)&curl.easy_getinfo},
    {"curl_easy_init", (void **)&curl.easy_init},
    {"curl_easy_reset", (void **)&curl.easy_reset},
    {"curl_easy_setopt", (void **)&curl.easy_setopt},
    {"curl_easy_strerror", (void **)&curl.easy_strerror},
    {"curl_getdate", (void **)&curl.getdate},
    {"curl_global_init", (void **)&curl.global_init},
    {"curl_multi_add_handle", (void **)&curl.multi_add_handle},
    {"curl_multi_info_read", (void **)&curl.multi_info_read},
    {"curl_multi_init", (void **)&curl.multi_init},
    {"curl_multi_perform", (void **)&curl.multi_perform},
    {"curl_multi_poll", (void **)&curl.multi_poll},
    {"curl_multi_remove_handle", (void **)&curl.multi_remove_handle},
    {"curl_multi_setopt", (void **)&curl.multi_setopt},
    {"curl_multi_wakeup", (void **)&curl.multi_wakeup},
    {"curl_slist_append", (void **)&curl.slist_append},
    {"curl_slist_free_all", (void **)&curl.slist_free_all},
    {"curl_version", (void **)&curl.version},
};

static struct library library = {"libcurl.so.4", "libcurl4", "URLs need libcurl", NULL};

static err open_library(void)
{
    return library_open(&library, functions, sizeof functions / sizeof *functions);
}

/* ---- receiving ---- */

/* The header's value, without the line end; NULL: it is another header. */
static const char *header_value(char *line, const char *name)
{
    const size_t bytes = strlen(name);
    if (strncasecmp(line, name, bytes) || line[bytes] != ':') return NULL;
    return line + bytes + 1 + strspn(line + bytes + 1, " \t");
}

static void begin_answer(struct http_transfer *t, const char *line)
{
    struct http_call *c = t->call;
    const char *space = strchr(line, ' ');
    c->answer.status = space ? atoi(space + 1) : 0;
    snprintf(t->reason, sizeof t->reason, "%s", space ? space + 1 : "no status");
    c->answer.bytes = 0;
    c->answer.total_bytes = c->answer.kept_bytes = 0;
    c->answer.changed_s = 0;
    c->answer.is_cut = t->is_other_range = t->is_enough = t->has_headers = false;
    t->refusal_bytes = 0;
    c->answer.etag[0] = c->answer.said[0] = c->answer.location[0] = '\0';
    t->range_first = t->range_last = 0;
    t->retry_after_s = 0;
}

static void take_range(struct http_transfer *t, const char *value)
{
    unsigned long long first, last, total;
    if (t->call->answer.status == 416 && sscanf(value, "bytes */%llu", &total) == 1)
        t->call->answer.total_bytes = total;
    const int found = sscanf(value, "bytes %llu-%llu/%llu", &first, &last, &total);
    if (found < 2 || last < first) return;
    t->range_first = first;
    t->range_last = last;
    t->call->answer.total_bytes = found == 3 ? total : 0;
}

static uint64_t bytes_kept(const char *value)
{
    unsigned long long last;
    return sscanf(value, "bytes=0-%llu", &last) == 1 ? last + 1 : 0;
}

/* A status line begins an answer only if it is the first, follows an interim one ("100 Continue")
 * or a redirect that libcurl follows; otherwise it is part of a trailer. */
static bool is_of_answer(struct http_transfer *t, const char *line)
{
    long hops = 0;
    curl.easy_getinfo(t->easy, CURLINFO_REDIRECT_COUNT, &hops);
    if (t->has_headers && hops == t->hops) return false;
    t->hops = hops;
    if (strncmp(line, "HTTP/", 5) == 0) begin_answer(t, line);
    if (!line[0]) t->has_headers = t->call->answer.status >= 200;
    return true;
}

static void take_line(struct http_transfer *t, char *line)
{
    struct http_call *c = t->call;
    const char *value;
    if ((value = header_value(line, "ETag")))
        snprintf(c->answer.etag, sizeof c->answer.etag, "%s", value);
    if ((value = header_value(line, "Location")))
        snprintf(c->answer.location, sizeof c->answer.location, "%s", value);
    if ((value = header_value(line, "Last-Modified")))
        c->answer.changed_s = curl.getdate(value, NULL);
    if ((value = header_value(line, "Range"))) c->answer.kept_bytes = bytes_kept(value);
    if ((value = header_value(line, "Content-Range"))) take_range(t, value);
    if ((value = header_value(line, "Retry-After"))) t->retry_after_s = atoi(value);
    if ((value = header_value(line, "Content-Length")) && c->answer.status == 200)
        c->answer.total_bytes = strtoull(value, NULL, 10);
}

static size_t take_header(char *at, size_t size, size_t count, void *context)
{
    struct http_transfer *t = context;
    char line[HEADER_LINE_MAX];
    t->header_bytes += count;
    t->is_endless = t->header_bytes > HTTP_HEADERS_BYTES_MAX;
    if (t->is_endless) return 0;
    if (count >= sizeof line) return count; /* truncated: ignored */
    snprintf(line, sizeof line, "%.*s", (int)count, at);
    line[strcspn(line, "\r\n")] = '\0';
    if (is_of_answer(t, line)) take_line(t, line);
    return count;
}

static void keep_said(struct http_call *c, const char *at, size_t count)
{
    const size_t used = strlen(c->answer.said);
    snprintf(c->answer.said + used, sizeof c->answer.said - used, "%.*s", (int)count, at);
}

/* Whether the answer's range is the one asked for, or that up to the end of the object. */
static bool is_range_asked(const struct http_transfer *t)
{
    const struct http_call *c = t->call;
    const uint64_t end = c->range_at + c->range_bytes;
    uint64_t last =
        c->answer.total_bytes && c->answer.total_bytes < end ? c->answer.total_bytes : end;
    return t->range_first == c->range_at && t->range_last + 1 == last;
}

/* 416 although the object extends beyond range_at: the server contradicts itself. */
static bool denies_range(const struct http_call *c)
{
    return c->answer.status == 416 && c->range_bytes && c->answer.total_bytes > c->range_at;
}

/* Returning less than count ends the transfer. */
static size_t take_body(char *at, size_t size, size_t count, void *context)
{
    struct http_transfer *t = context;
    struct http_call *c = t->call;
    if (c->answer.status >= 300) {
        keep_said(c, at, count);
        t->refusal_bytes += count;
        t->is_enough = t->refusal_bytes > HTTP_REFUSAL_BYTES_MAX;
        return t->is_enough ? 0 : count;
    }
    t->is_other_range = c->answer.status == 206 && c->range_bytes && !is_range_asked(t);
    if (t->is_other_range) return 0;
    const size_t room = c->max - c->answer.bytes, taken = count < room ? count : room;
    if (taken) memcpy((char *)c->to + c->answer.bytes, at, taken);
    c->answer.bytes += taken;
    c->answer.is_cut = taken < count;
    return taken;
}

/* Limits bytes that take_body does not see, as those of redirects. */
static int watch(void *context, curl_off_t to_come, curl_off_t came, curl_off_t to_go,
                 curl_off_t gone)
{
    struct http_transfer *t = context;
    t->is_endless |= (uint64_t)came > (uint64_t)t->call->max + HTTP_SURPLUS_BYTES_MAX;
    return t->is_endless;
}

/* ---- sending ---- */

static void add_header(struct http_transfer *t, const char *header)
{
    struct curl_slist *more = curl.slist_append(t->headers, header);
    if (more) t->headers = more;
}

/* Link-local addresses, such as the cloud metadata server, bypass any proxy. */
static bool is_link_local(const char *url)
{
    const char *host = strstr(url, "://");
    return host && (!strncmp(host + 3, "169.254.", 8) || !strncmp(host + 3, "[fe80:", 6) ||
                    !strncmp(host + 3, "[fd00:ec2:", 10));
}

static void set_address(const struct http_transfer *t)
{
    const struct http_call *c = t->call;
    const char *protocols =
        c->stays_secure && !strncmp(c->url, "https:", 6) ? "https" : "http,https";
    curl.easy_setopt(t->easy, CURLOPT_URL, t->redirects ? t->address : c->url);
    if (is_link_local(c->url)) curl.easy_setopt(t->easy, CURLOPT_NOPROXY, "*");
    curl.easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, protocols);
    curl.easy_setopt(t->easy, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    curl.easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, c->keeps_redirect || c->body_waits ? 0L : 1L);
    curl.easy_setopt(t->easy, CURLOPT_MAXREDIRS, (long)HTTP_REDIRECTS_MAX);
    curl.easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, c->is_counted ? 1L : 0L);
}

static void set_body(struct http_transfer *t)
{
    const struct http_call *c = t->call;
    const bool is_sent = !c->body_waits || t->redirects > 0;
    char type[128];
    curl.easy_setopt(t->easy, CURLOPT_POSTFIELDS, is_sent ? c->body : "");
    curl.easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)(is_sent ? c->body_bytes : 0));
    snprintf(type, sizeof type, "Content-Type: %s",
             c->body_type ? c->body_type : "application/octet-stream");
    add_header(t, type);
    add_header(t, "Expect:");
}

static void set_tls(CURL *e, const struct http_tls *tls)
{
    if (tls->authorities) curl.easy_setopt(e, CURLOPT_CAINFO, tls->authorities);
    if (tls->certificate) curl.easy_setopt(e, CURLOPT_SSLCERT, tls->certificate);
    if (tls->key) curl.easy_setopt(e, CURLOPT_SSLKEY, tls->key);
}

/* The minimum rate applies to reads only: while a server works on a write it may send a byte now
 * and then to keep the connection alive. */
static void set_limits(CURL *e, const struct http_call *c)
{
    const bool reads = strcmp(c->method, "GET") == 0;
    const size_t bytes = c->max + c->body_bytes;
    curl.easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)HTTP_CONNECT_MAX_S);
    curl.easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, reads ? (long)HTTP_BYTES_PER_S_MIN : 1L);
    curl.easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)http.timeout_s);
    curl.easy_setopt(e, CURLOPT_TIMEOUT,
                     c->try_s ? (long)c->try_s
                              : HTTP_TRY_MAX_S + (long)(bytes / HTTP_BYTES_PER_S_MIN));
}

static void set_up(struct http_transfer *t)
{
    const struct http_call *c = t->call;
    CURL *e = t->easy;
    char range[64];
    set_address(t);
    set_limits(e, c);
    /* With HTTP/2 all ranges of a file would share one connection and its flow control window. */
    curl.easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl.easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(e, CURLOPT_BUFFERSIZE, (long)RECEIVED_BYTES);
    curl.easy_setopt(e, CURLOPT_USERAGENT, "dtrain/" DTRAIN_VERSION);
    curl.easy_setopt(e, CURLOPT_ERRORBUFFER, t->curl_error);
    curl.easy_setopt(e, CURLOPT_PRIVATE, t);
    curl.easy_setopt(e, CURLOPT_HEADERFUNCTION, take_header);
    curl.easy_setopt(e, CURLOPT_HEADERDATA, t);
    curl.easy_setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    curl.easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl.easy_setopt(e, CURLOPT_XFERINFOFUNCTION, watch);
    curl.easy_setopt(e, CURLOPT_XFERINFODATA, t);
    curl.easy_setopt(e, CURLOPT_NOPROGRESS, 0L);
    curl.easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* ignore a proxy's own answer */
    if (c->body) set_body(t);
    if (c->tls) set_tls(e, c->tls);
    if (strcmp(c->method, "HEAD") == 0) curl.easy_setopt(e, CURLOPT_NOBODY, 1L);
    curl.easy_setopt(e, CURLOPT_CUSTOMREQUEST, c->method);
    snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)c->range_at,
             (unsigned long long)(c->range_at + c->range_bytes - 1));
    if (c->range_bytes) curl.easy_setopt(e, CURLOPT_RANGE, range);
    for (int i = 0; i < HTTP_HEADERS_MAX && c->headers[i]; i++) add_header(t, c->headers[i]);
    curl.easy_setopt(e, CURLOPT_HTTPHEADER, t->headers);
}

/* ---- outcome of a try; callers hold the lock ---- */

static bool may_pass(const struct http_call *c)
{
    const int status = c->answer.status;
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
           status == 504 || (status >= 300 && c->may_pass && c->may_pass(c));
}

/* Errors that the user can fix. */
static bool is_users(CURLcode code)
{
    return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ||
           code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_CERTPROBLEM;
}

/* Errors of libcurl for which retrying is pointless. */
static bool is_final(CURLcode code)
{
    return is_users(code) || code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_OUT_OF_MEMORY;
}

static void describe(struct http_transfer *t, CURLcode code)
{
    char said[HTTP_SAID_SHOWN_BYTES], last[ERROR_TEXT_MAX / 2];
    const struct http_call *c = t->call;
    if (t->is_other_range && denies_range(c))
        snprintf(
            last, sizeof last,
            "asked for %zu bytes from %llu, the answer says that none is there, and that there "
            "are %llu in all",
            c->range_bytes, (unsigned long long)c->range_at,
            (unsigned long long)c->answer.total_bytes);
    else if (t->is_other_range && is_range_asked(t))
        snprintf(last, sizeof last, "asked for %zu bytes from %llu, and %zu came", c->range_bytes,
                 (unsigned long long)c->range_at, c->answer.bytes);
    else if (t->is_other_range)
        snprintf(last, sizeof last, "asked for %zu bytes from %llu, the answer has %llu to %llu",
                 c->range_bytes, (unsigned long long)c->range_at,
                 (unsigned long long)t->range_first, (unsigned long long)t->range_last);
    else if (t->is_endless)
        snprintf(last, sizeof last,
                 "the answer is too large: over %d KiB of headers, or %d KiB that nobody asked for",
                 HTTP_HEADERS_BYTES_MAX >> 10, HTTP_SURPLUS_BYTES_MAX >> 10);
    else if (code && !t->is_enough)
        snprintf(last, sizeof last, "%s",
                 t->curl_error[0] ? t->curl_error : curl.easy_strerror(code));
    else if (!t->has_headers)
        snprintf(last, sizeof last, "the answer ends before its headers do");
    else
        snprintf(last, sizeof last, "%s %s%s", c->method, t->reason,
                 http_said_in_short(c->answer.said, c->lends, said, sizeof said));
    snprintf(t->why, sizeof t->why, "%s: %s (%d %s)", c->shown, last, t->tries,
             t->tries == 1 ? "try" : "tries");
}

static uint64_t pause_ms(int tries, int retry_after_s)
{
    const uint64_t most = clock_backoff_ms(HTTP_PAUSE_MS, HTTP_PAUSE_MAX_MS, (uint64_t)tries - 1);
    const float part = random_uniform(clock_ns(), http.pauses++);
    const int asked = retry_after_s < 0 ? 0 : retry_after_s;
    const uint64_t asked_ms =
        1000u * (uint64_t)(asked < HTTP_RETRY_AFTER_MAX_S ? asked : HTTP_RETRY_AFTER_MAX_S);
    const uint64_t own = most / 2 + (uint64_t)((float)most * part / 2);
    return own > asked_ms ? own : asked_ms;
}

/* Follows the redirect to where the body is sent; false: the answer is no such redirect. */
static bool is_led_on(struct http_transfer *t)
{
    const struct http_call *c = t->call;
    if (!c->body_waits || c->answer.status / 100 != 3 || !c->answer.location[0]) return false;
    if (t->redirects == HTTP_REDIRECTS_MAX) return false;
    memcpy(t->address, c->answer.location, sizeof t->address);
    t->redirects++;
    t->state = WAITING;
    t->due_ms = 0;
    return true;
}

static void finish(struct http_transfer *t, CURLcode code)
{
    struct http_call *c = t->call;
    const bool is_left = code == CURLE_WRITE_ERROR && (c->answer.is_cut || t->is_enough);
    const bool is_whole = (code == CURLE_OK && t->has_headers) || is_left;
    if (is_whole && is_led_on(t)) return;
    const bool is_range = is_whole && c->answer.status == 206 && c->range_bytes;
    t->is_other_range |= is_range && c->answer.bytes != t->range_last + 1 - t->range_first;
    t->is_other_range |= is_whole && denies_range(c);
    t->state = DONE;
    t->result = OK;
    pthread_cond_broadcast(&http.done);
    http_hide(c->answer.said, c->secret);
    http_hide(t->reason, c->secret);
    if (is_whole && !may_pass(c) && !t->is_other_range) return;
    describe(t, code);
    t->result = code == CURLE_OUT_OF_MEMORY ? ERR_MEMORY : is_users(code) ? ERR_INPUT : ERR_IO;
    const bool is_last = t->tries >= (c->tries_max ? c->tries_max : http.tries_max);
    if (is_last || (c->needs_answer && !is_whole) || (is_final(code) && !t->is_other_range)) return;
    t->redirects = 0;
    t->state = WAITING;
    retries_note();
    log_limited(&http.again, clock_ms(), LOG_INFO, "asks again: %s", t->why);
    t->due_ms = clock_ms() + pause_ms(t->tries, t->retry_after_s);
}

/* ---- the thread ---- */

static void reset(struct http_transfer *t)
{
    curl.slist_free_all(t->headers);
    t->headers = NULL;
    curl.easy_reset(t->easy);
}

static void free_transfer(struct http_transfer *t)
{
    curl.slist_free_all(t->headers);
    curl.easy_cleanup(t->easy);
    free(t);
}

static void begin(struct http_transfer *t)
{
    reset(t);
    begin_answer(t, "");
    t->curl_error[0] = '\0';
    t->header_bytes = 0;
    t->hops = 0;
    t->is_endless = false;
    if (!t->redirects) t->tries++;
    t->state = RUNNING;
    set_up(t);
    if (curl.multi_add_handle(http.multi, t->easy)) finish(t, CURLE_OUT_OF_MEMORY);
}

/* Frees the transfers that their owners have dropped. */
static void sweep(void)
{
    for (struct http_transfer **at = &http.all; *at;) {
        struct http_transfer *t = *at;
        if (!t->is_dropped) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        if (t->state == RUNNING) curl.multi_remove_handle(http.multi, t->easy);
        t->call->transfer = NULL;
        free_transfer(t);
        pthread_cond_broadcast(&http.done);
    }
}

/* Returns ms until the next transfer is due. */
static int begin_due(void)
{
    const uint64_t now = clock_ms();
    int wait = POLL_MAX_MS;
    for (struct http_transfer *t = http.all; t; t = t->next) {
        if (t->state != WAITING) continue;
        if (t->due_ms <= now) begin(t);
        if (t->state == WAITING && t->due_ms - now < (uint64_t)wait)
            wait = t->due_ms > now ? (int)(t->due_ms - now) : 0;
    }
    return wait;
}

static void take_ended(void)
{
    int left;
    for (CURLMsg *m; (m = curl.multi_info_read(http.multi, &left));) {
        struct http_transfer *t = NULL;
        const CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE) continue;
        curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        curl.multi_remove_handle(http.multi, t->easy);
        finish(t, code);
    }
}

static void *run(void *context)
{
    for (;;) {
        int running;
        pthread_mutex_lock(&http.lock);
        sweep();
        begin_due();
        pthread_mutex_unlock(&http.lock);
        curl.multi_perform(http.multi, &running);
        pthread_mutex_lock(&http.lock);
        take_ended();
        const int wait = begin_due();
        pthread_mutex_unlock(&http.lock);
        curl.multi_poll(http.multi, NULL, 0, wait, NULL);
    }
    return NULL;
}

/* ---- for callers ---- */

static int64_t limit_of(const char *name, int64_t fallback, int64_t max)
{
    const char *text = getenv(name);
    char *end;
    const long long value = text ? strtoll(text, &end, 10) : 0;
    return text && *text && !*end && value >= 1 && value <= max ? value : fallback;
}

static err open_once(void)
{
    if (http.is_open) return OK;
    http.timeout_s = limit_of("DTRAIN_URL_TIMEOUT", TIMEOUT_DEFAULT_S, TIMEOUT_MAX_S);
    http.tries_max = limit_of("DTRAIN_URL_TRIES", TRIES_DEFAULT, TRIES_MAX);
    TRY(open_library());
    if (!http.multi && !curl.global_init(CURL_GLOBAL_DEFAULT)) http.multi = curl.multi_init();
    if (!http.multi) return fail(ERR_MEMORY, "no memory for libcurl");
    curl.multi_setopt(http.multi, CURLMOPT_MAXCONNECTS, (long)HTTP_CONNECTIONS_KEPT_MAX);
    curl.multi_setopt(http.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)HTTP_CONNECTIONS_MAX);
    TRY(thread_start(&http.thread, run, NULL));
    http.is_open = true;
    return OK;
}

static err new_transfer(struct http_call *c, struct http_transfer **ret)
{
    TRY(open_once());
    struct http_transfer *t = calloc(1, sizeof *t);
    if (t) t->easy = curl.easy_init();
    if (!t || !t->easy) {
        free(t);
        return fail(ERR_MEMORY, "%s: no memory for a request", c->shown);
    }
    t->call = c;
    *ret = t;
    return OK;
}

err http_start(struct http_call *c)
{
    pthread_mutex_lock(&http.lock);
    const err e = new_transfer(c, &c->transfer);
    if (!e) {
        c->transfer->next = http.all;
        http.all = c->transfer;
        curl.multi_wakeup(http.multi);
    }
    pthread_mutex_unlock(&http.lock);
    return e;
}

void http_drop(struct http_call *c)
{
    pthread_mutex_lock(&http.lock);
    if (c->transfer) {
        c->transfer->is_dropped = true;
        curl.multi_wakeup(http.multi);
    }
    while (c->transfer) pthread_cond_wait(&http.done, &http.lock);
    pthread_mutex_unlock(&http.lock);
}

bool http_is_done(const struct http_call *c)
{
    pthread_mutex_lock(&http.lock);
    const bool is_done = c->transfer && c->transfer->state == DONE;
    pthread_mutex_unlock(&http.lock);
    return is_done;
}

/* Logs only after failed tries: an answer may simply take long. The lock is held. */
static void note_wait(const struct http_transfer *t, uint64_t since_ms, uint64_t *noted_ms)
{
    const uint64_t now_ms = clock_ms(), waited_ms = now_ms - since_ms;
    if (t->state == DONE || !t->why[0] || !log_wait_is_due(since_ms, *noted_ms, now_ms)) return;
    *noted_ms = now_ms;
    log_line(log_wait_level(waited_ms), "tries again, %llu s so far: %s",
             (unsigned long long)waited_ms / 1000, t->why);
}

/* Waits until it is DONE or the calling thread is to end. The lock is held. */
static void await_done(const struct http_transfer *t)
{
    const uint64_t since_ms = clock_ms();
    uint64_t noted_ms = since_ms;
    while (t->state != DONE && !thread_is_over()) {
        const struct timespec look = clock_in_ms(thread_is_watched() ? LOOK_MS : NOTE_MS);
        pthread_cond_clockwait(&http.done, &http.lock, CLOCK_MONOTONIC, &look);
        note_wait(t, since_ms, &noted_ms);
    }
}

err http_wait(struct http_call *c)
{
    struct http_transfer *t = c->transfer;
    pthread_mutex_lock(&http.lock);
    await_done(t);
    if (t->state != DONE) {
        pthread_mutex_unlock(&http.lock);
        http_drop(c);
        return fail(ERR_IO, "%s: not read to the end: its reader was stopped", c->shown);
    }
    for (struct http_transfer **at = &http.all; *at; at = &(*at)->next) {
        if (*at != t) continue;
        *at = t->next;
        break;
    }
    pthread_mutex_unlock(&http.lock);
    c->transfer = NULL;
    c->answer.tries = t->tries;
    if (!t->result) snprintf(c->answer.reason, sizeof c->answer.reason, "%s", t->reason);
    const err e = t->result ? fail(t->result, "%s", t->why) : OK;
    free_transfer(t);
    errno = EIO;
    return e;
}

err http_refused(const struct http_call *c)
{
    char said[HTTP_SAID_SHOWN_BYTES];
    const int status = c->answer.status;
    const bool is_denied = status == 401 || status == 403, is_unproven = is_denied && c->unproven;
    const bool is_users = (is_denied && !url_is_let_in(c->shown)) || status == 404 ||
                          status == 410 || status == 412 || status / 100 == 3;
    const err e =
        fail(is_users ? ERR_INPUT : ERR_IO, "%s: %s %s%s%s%s%s", c->shown, c->method,
             c->answer.reason, http_said_in_short(c->answer.said, c->lends, said, sizeof said),
             is_unproven ? " (not signed: " : "", is_unproven ? c->unproven : "",
             is_unproven ? ")" : "");
    errno = c->answer.status == 404 || c->answer.status == 410 ? ENOENT : EIO;
    return e;
}

void http_pause(int tries)
{
    pthread_mutex_lock(&http.lock);
    const uint64_t ms = pause_ms(tries, 0);
    pthread_mutex_unlock(&http.lock);
    for (uint64_t left = ms; left && !thread_is_over();) { /* ends: left decreases */
        const uint64_t part = thread_is_watched() && left > LOOK_MS ? LOOK_MS : left;
        clock_pause(part);
        left -= part;
    }
}

const char *http_version(void)
{
    pthread_mutex_lock(&http.lock);
    const err e = open_library();
    pthread_mutex_unlock(&http.lock);
    return e ? "" : curl.version();
}
