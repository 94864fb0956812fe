/* http_server.c - see http_server.h. */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "net/address.h"
#include "net/gzip.h"
#include "net/http_clients.h"
#include "net/library.h"
#include "net/transport.h"

enum {
    NICE = 10,
    BACKLOG = 64,
    ADDRESSES_MAX = 8,
    BODY_LEAST = 4096, /* bytes allocated at first */
    TEXT_BYTES = 80,
    REFUSED_TIMES = 4, /* a body that is too long is still read up to this multiple of the limit */
};

struct http_server {
    struct http_server_options options;
    struct http_work work; /* options.work, or defaults where that is NULL */
    struct http_clients *clients;
    struct MHD_Daemon *daemon;
    int port, quiet; /* quiet: the former listening socket; -1: none */
    uint64_t second; /* of the monotonic clock; `requests` counts those of this second */
    int requests;
    bool is_nice;

    pthread_mutex_t lock; /* guards what is below */
    pthread_cond_t fewer;
    size_t bodies; /* bytes allocated for bodies */
    int active;    /* requests in progress */
    bool is_ending;
};

/* A request of which a part has come. */
struct coming {
    char *body; /* [room] */
    size_t bytes, room;
    int refused;    /* HTTP status of the refusal; 0: not refused */
    bool is_packed; /* by gzip */
};

/* ---- libmicrohttpd, loaded on first use: it has a dozen dependencies ---- */

static struct {
    typeof(MHD_start_daemon) *start;
    typeof(MHD_stop_daemon) *stop;
    typeof(MHD_quiesce_daemon) *quiesce;
    typeof(MHD_create_response_from_buffer) *response;
    typeof(MHD_add_response_header) *header;
    typeof(MHD_queue_response) *queue;
    typeof(MHD_destroy_response) *destroy;
    typeof(MHD_lookup_connection_value) *lookup;
    typeof(MHD_get_connection_info) *about;
    typeof(MHD_get_version) *version;
} mhd;

static const struct library_function functions[] = {
    {"MHD_start_daemon", (void **)&mhd.start},
    {"MHD_stop_daemon", (void **)&mhd.stop},
    {"MHD_quiesce_daemon", (void **)&mhd.quiesce},
    {"MHD_create_response_from_buffer", (void **)&mhd.response},
    {"MHD_add_response_header", (void **)&mhd.header},
    {"MHD_queue_response", (void **)&mhd.queue},
    {"MHD_destroy_response", (void **)&mhd.destroy},
    {"MHD_lookup_connection_value", (void **)&mhd.lookup},
    {"MHD_get_connection_info", (void **)&mhd.about},
    {"MHD_get_version", (void **)&mhd.version},
};

static struct library library = {"libmicrohttpd.so.12", "libmicrohttpd12",
                                 "HTTP needs libmicrohttpd", NULL};

static err open_library(void)
{
    return library_open(&library, functions, sizeof functions / sizeof *functions);
}

const char *http_server_version(void)
{
    return open_library() ? "" : mhd.version();
}

/* ---- requests ---- */

/* Limits the rate, so that busy clients take only a part of one core. */
static void pace(struct http_server *s)
{
    const uint64_t now_ms = clock_ms();
    if (!s->is_nice) setpriority(PRIO_PROCESS, 0, NICE); /* of this thread alone */
    s->is_nice = true;
    if (now_ms / 1000 != s->second) {
        s->second = now_ms / 1000;
        s->requests = 0;
    }
    if (++s->requests < HTTP_RATE_MAX) return;
    const struct timespec rest = clock_in_ms(1000 - now_ms % 1000);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &rest, NULL);
}

static void describe(struct http_server *s, struct MHD_Response *response,
                     const struct http_reply *r)
{
    pthread_mutex_lock(&s->lock);
    const bool is_ending = s->is_ending;
    pthread_mutex_unlock(&s->lock);
    mhd.header(response, "Content-Type", r->body ? r->type : "text/plain; charset=utf-8");
    mhd.header(response, "Cache-Control", "no-store");
    mhd.header(response, "X-Content-Type-Options", "nosniff");
    mhd.header(response, "X-Frame-Options", "DENY");
    mhd.header(response, "Content-Security-Policy",
               "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
               "connect-src 'self'; img-src data:");
    if (r->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        mhd.header(response, "Allow", r->allow ? r->allow : "GET, HEAD");
    if (is_ending) mhd.header(response, "Connection", "close");
}

static enum MHD_Result reply(struct http_server *s, struct MHD_Connection *connection,
                             struct http_reply *r)
{
    static char no_memory[] = "no memory for an answer\n";
    struct MHD_Response *response =
        r->body ? mhd.response(r->body_bytes, r->body, MHD_RESPMEM_MUST_FREE)
                : mhd.response(sizeof no_memory - 1, no_memory, MHD_RESPMEM_PERSISTENT);
    if (!response) {
        free(r->body);
        return MHD_NO;
    }
    describe(s, response, r);
    const enum MHD_Result result = mhd.queue(
        connection, r->body ? (unsigned)r->status : MHD_HTTP_SERVICE_UNAVAILABLE, response);
    mhd.destroy(response);
    return result;
}

static void tell_refusal(const struct http_server *s, int status, char ret[TEXT_BYTES])
{
    const char *text = "too many bodies of requests are here: try again";
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        text = s->work.body_max ? "GET, HEAD and POST only" : "GET and HEAD only";
    if (status == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE)
        text = "a body is read that is packed by gzip (Content-Encoding), or not at all";
    if (status == MHD_HTTP_BAD_REQUEST)
        text = "the body is not what gzip packs, as Content-Encoding says";
    if (status == MHD_HTTP_CONTENT_TOO_LARGE)
        snprintf(ret, TEXT_BYTES, "the body is too long: at most %zu bytes\n", s->work.body_max);
    else
        snprintf(ret, TEXT_BYTES, "%s\n", text);
}

static enum MHD_Result refuse(struct http_server *s, struct MHD_Connection *connection, int status)
{
    char text[TEXT_BYTES];
    struct http_reply r = {.status = status,
                           .type = "text/plain; charset=utf-8",
                           .allow = s->work.body_max ? "GET, HEAD, POST" : NULL};
    tell_refusal(s, status, text);
    if (s->options.refuse)
        s->options.refuse(status, text, &r);
    else if ((r.body = strdup(text)))
        r.body_bytes = strlen(text);
    return reply(s, connection, &r);
}

/* Up to this many bytes of a refused body are read: a client does not read the answer while it is
 * still writing. */
static unsigned long long readable(const struct http_server *s)
{
    return (unsigned long long)REFUSED_TIMES * s->work.body_max;
}

/* By Content-Length; without that the length is checked as the body comes. */
static bool is_too_long(const struct http_server *s, struct MHD_Connection *connection)
{
    const char *said = mhd.lookup(connection, MHD_HEADER_KIND, "Content-Length");
    return said && strtoull(said, NULL, 10) > readable(s);
}

/* Other encodings than gzip are refused once the body has been read. */
static void note_packing(struct coming *coming, struct MHD_Connection *connection)
{
    const char *said = mhd.lookup(connection, MHD_HEADER_KIND, "Content-Encoding");
    if (!said || !*said || !strcasecmp(said, "identity")) return;
    coming->is_packed = !strcasecmp(said, "gzip") || !strcasecmp(said, "x-gzip");
    if (!coming->is_packed) coming->refused = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
}

static enum MHD_Result begin(struct http_server *s, struct MHD_Connection *connection,
                             const char *method, void **state)
{
    const bool only_reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    const bool brings = s->work.body_max && strcmp(method, "POST") == 0;
    if (!s->options.work) pace(s);
    if (!only_reads && !brings) return refuse(s, connection, MHD_HTTP_METHOD_NOT_ALLOWED);
    if (is_too_long(s, connection)) return refuse(s, connection, MHD_HTTP_CONTENT_TOO_LARGE);
    *state = calloc(1, sizeof(struct coming));
    if (!*state) return MHD_NO;
    if (brings) note_packing(*state, connection);
    pthread_mutex_lock(&s->lock);
    s->active++;
    pthread_mutex_unlock(&s->lock);
    return MHD_YES;
}

/* Counts more bytes of bodies; false: bodies_max would be exceeded. */
static bool reserve(struct http_server *s, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    const bool fits = bytes <= s->work.bodies_max - s->bodies;
    if (fits) s->bodies += bytes;
    pthread_mutex_unlock(&s->lock);
    return fits;
}

static void release(struct http_server *s, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    s->bodies -= bytes;
    pthread_mutex_unlock(&s->lock);
}

/* Makes room for count more bytes and a NUL. Returns 0, or the HTTP status of a refusal. */
static int make_room(struct http_server *s, struct coming *coming, size_t count)
{
    size_t room = coming->room ? coming->room : BODY_LEAST;
    while (room < coming->bytes + count + 1) room *= 2;
    if (room == coming->room) return 0;
    if (!reserve(s, room - coming->room)) return MHD_HTTP_SERVICE_UNAVAILABLE;
    char *larger = realloc(coming->body, room);
    if (!larger) {
        release(s, room - coming->room);
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    coming->body = larger;
    coming->room = room;
    return 0;
}

/* Takes a piece of the body; MHD_NO closes the connection. */
static enum MHD_Result take(struct http_server *s, struct coming *coming, const char *bytes,
                            size_t *count)
{
    const size_t all = coming->bytes + *count;
    if (all > readable(s)) return MHD_NO;
    if (!coming->refused && all > s->work.body_max) coming->refused = MHD_HTTP_CONTENT_TOO_LARGE;
    if (!coming->refused) coming->refused = make_room(s, coming, *count);
    if (!coming->refused) memcpy(coming->body + coming->bytes, bytes, *count);
    coming->bytes = all;
    *count = 0;
    return MHD_YES;
}

/* Decompresses into plain. Returns 0, or the HTTP status of a refusal. */
static int read_packed(struct http_server *s, struct gzip *packed, struct coming *plain)
{
    enum gzip_state state = GZIP_MORE;
    while (state == GZIP_MORE) { /* ends: plain grows, up to body_max */
        size_t count;
        const int refused = make_room(s, plain, BODY_LEAST);
        if (refused) return refused;
        state =
            gzip_read(packed, plain->body + plain->bytes, plain->room - plain->bytes - 1, &count);
        plain->bytes += count;
        if (plain->bytes > s->work.body_max) return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    return state == GZIP_DONE ? 0 : MHD_HTTP_BAD_REQUEST;
}

/* Replaces the body by its decompressed form. Returns 0, or the HTTP status of a refusal. */
static int unpack(struct http_server *s, struct coming *coming)
{
    struct coming plain = {0};
    struct gzip *packed = gzip_open(coming->body, coming->bytes);
    if (!packed) return MHD_HTTP_SERVICE_UNAVAILABLE;
    const int refused = read_packed(s, packed, &plain);
    struct coming *left = refused ? &plain : coming;
    gzip_close(packed);
    release(s, left->room);
    free(left->body);
    if (!refused) *coming = plain;
    return refused;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *bytes, size_t *count, void **state)
{
    struct http_server *s = context;
    struct coming *coming = *state;
    if (!coming) return begin(s, connection, method, state);
    if (*count) return take(s, coming, bytes, count);
    if (!coming->refused && coming->is_packed) coming->refused = unpack(s, coming);
    if (coming->refused) return refuse(s, connection, coming->refused);
    if (coming->body) coming->body[coming->bytes] = '\0';
    const struct http_request request = {strcmp(method, "POST") == 0, path, coming->body,
                                         coming->bytes};
    struct http_reply r = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8"};
    s->options.handle(s->options.context, &request, &r);
    return reply(s, connection, &r);
}

/* The connection's context is 1 + its place in s->clients. */
static void on_connection(void *context, struct MHD_Connection *connection, void **place,
                          enum MHD_ConnectionNotificationCode code)
{
    const struct http_server *s = context;
    const union MHD_ConnectionInfo *info = mhd.about(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        http_clients_remove(s->clients, (int)(intptr_t)*place - 1);
    else
        *place = (void *)(intptr_t)(http_clients_add(s->clients, info ? info->connect_fd : -1) + 1);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *s = context;
    const union MHD_ConnectionInfo *info =
        mhd.about(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct coming *coming = *state;
    if (info) http_clients_answered(s->clients, (int)(intptr_t)info->socket_context - 1);
    if (!coming) return;
    pthread_mutex_lock(&s->lock);
    s->bodies -= coming->room;
    s->active--;
    pthread_cond_broadcast(&s->fewer);
    pthread_mutex_unlock(&s->lock);
    free(coming->body);
    free(coming);
    *state = NULL;
}

/* ---- opening and closing ---- */

/* "8080", "localhost:8080", "[::1]:0" */
static err read_address(const char *text, struct address *ret, bool *ret_is_any)
{
    char whole[ADDRESS_MAX];
    *ret_is_any = !strchr(text, ':');
    if (strlen(text) + sizeof "localhost:" > sizeof whole)
        return fail(ERR_INPUT, "\"%.64s...\" is too long", text);
    snprintf(whole, sizeof whole, "%s%s", *ret_is_any ? "localhost:" : "", text);
    const err e = address_split(whole, ret);
    return e ? fail(ERR_INPUT, "\"%s\" is neither PORT nor HOST:PORT", text) : OK;
}

err http_server_check(const char *address)
{
    struct address split;
    bool is_any;
    return read_address(address, &split, &is_any);
}

/* Returns a listening socket; -1: errno says why. */
static int listen_at(const struct sockaddr *at, socklen_t length)
{
    const int on = 1, off = 0;
    const int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, at, length) == 0 && listen(fd, BACKLOG) == 0) return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Listens at all addresses of this host: IPv4, and IPv6 where it has that. */
static int listen_anywhere(const char *port)
{
    const in_port_t number = htons((uint16_t)atoi(port));
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = number};
    const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = number};
    const int fd = listen_at((const struct sockaddr *)&six, sizeof six);
    if (fd >= 0 || errno == EADDRINUSE || errno == EACCES) return fd;
    return listen_at((const struct sockaddr *)&four, sizeof four);
}

static err explain_listen(const char *text, const char *port, int reason)
{
    char address[64], owner[64] = "";
    snprintf(address, sizeof address, "0.0.0.0:%s", port);
    if (reason == EADDRINUSE) address_owner(address, owner, sizeof owner);
    return fail(ERR_IO, "cannot listen at %s: %s%s%s%s", text, strerror(reason),
                owner[0] ? " by " : "", owner,
                reason == EADDRINUSE ? "; port 0 takes one that is free" : "");
}

static err listen_at_address(const char *text, int *ret)
{
    struct address split;
    bool is_any;
    TRY(read_address(text, &split, &is_any));
    if (is_any) {
        *ret = listen_anywhere(split.port);
    } else {
        struct addrinfo *found;
        const err e = address_resolve(&split, &found);
        if (e) return fail_prefix(e, "cannot listen at %s", text);
        *ret = listen_at(found->ai_addr, found->ai_addrlen);
        freeaddrinfo(found);
    }
    return *ret < 0 ? explain_listen(text, split.port, errno) : OK;
}

static int port_of(int fd)
{
    struct sockaddr_storage at;
    socklen_t length = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &length)) return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                          : ((struct sockaddr_in *)&at)->sin_port);
}

/* With work: one thread per client. Its threads block all signals; other threads handle them. */
static struct MHD_Daemon *start(struct http_server *s, int fd)
{
    const unsigned how = s->options.work
                             ? MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                                   MHD_USE_POLL | MHD_USE_ITC
                             : MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    struct MHD_Daemon *daemon = mhd.start(
        how, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->work.clients, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)s->work.clients_of_host, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)s->work.silence_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADERS_MAX,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        s, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

static struct http_server *new_server(const struct http_server_options *options, int fd)
{
    static const struct http_work beside = {.clients = HTTP_CLIENTS_MAX,
                                            .clients_of_host = HTTP_CLIENTS_OF_HOST_MAX,
                                            .silence_s = HTTP_SILENCE_MAX_S,
                                            .answer_s = HTTP_ANSWER_MAX_S};
    struct http_server *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (struct http_server){.options = *options,
                              .work = options->work ? *options->work : beside,
                              .port = port_of(fd),
                              .quiet = -1,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .fewer = PTHREAD_COND_INITIALIZER};
    if (!http_clients_open(s->work.clients, s->work.answer_s, &s->clients))
        s->daemon = start(s, fd);
    if (s->daemon) return s;
    http_clients_close(s->clients);
    free(s);
    return NULL;
}

err http_server_open(const struct http_server_options *options, struct http_server **ret)
{
    int fd;
    TRY(open_library());
    TRY(listen_at_address(options->address, &fd));
    struct http_server *s = new_server(options, fd);
    if (!s) {
        close(fd);
        return fail(ERR_IO, "cannot answer HTTP at %s: out of memory, threads or file descriptors",
                    options->address);
    }
    *ret = s;
    return OK;
}

void http_server_close(struct http_server *s)
{
    if (!s) return;
    mhd.stop(s->daemon);
    http_clients_close(s->clients);
    if (s->quiet >= 0) close(s->quiet);
    pthread_cond_destroy(&s->fewer);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int http_server_drain(struct http_server *s, uint64_t ms)
{
    const struct timespec until = clock_in_ms(ms);
    int failed = 0;
    pthread_mutex_lock(&s->lock);
    s->is_ending = true;
    pthread_mutex_unlock(&s->lock);
    s->quiet = mhd.quiesce(s->daemon);
    pthread_mutex_lock(&s->lock);
    while (s->active > 0 && !failed)
        failed = pthread_cond_clockwait(&s->fewer, &s->lock, CLOCK_MONOTONIC, &until);
    const int left = s->active;
    pthread_mutex_unlock(&s->lock);
    return left;
}

int http_server_port(const struct http_server *s)
{
    return s->port;
}
