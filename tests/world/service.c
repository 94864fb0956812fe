/* service.c - see service.h. */
#include "tests/world/service.h"

#include "tests/world/machine.h"
#include "tests/world/sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { READ_BYTES = 64 << 10, HEAD_BYTES_MAX = 16 << 10, LATE_MS = 8000 };

struct connection {
    struct socket *socket;
    char *in, *out;
    size_t in_bytes, in_room, out_bytes, out_at;
    bool is_cut, is_silent; /* after what is sent; nothing is said any more */
};

static struct trouble {
    int share;
    uint64_t until_ns, denies_until_ns;
} trouble;

void service_trouble(int share, uint64_t until_ns)
{
    trouble.share = share;
    trouble.until_ns = until_ns;
}

void service_deny(uint64_t until_ns)
{
    trouble.denies_until_ns = until_ns;
}

void service_heal(void)
{
    trouble = (struct trouble){0};
}

bool request_header(const struct request *request, const char *name, char *ret, size_t size)
{
    const size_t bytes = strlen(name);
    for (const char *at = request->head; (at = strstr(at, "\r\n")); at += 2)
        if (strncasecmp(at + 2, name, bytes) == 0 && at[2 + bytes] == ':') {
            const char *value = at + 3 + bytes + strspn(at + 3 + bytes, " ");
            snprintf(ret, size, "%.*s", (int)strcspn(value, "\r"), value);
            return true;
        }
    return false;
}

static void send_more(void *subject, uint64_t unused)
{
    struct connection *c = subject;
    while (c->out_at < c->out_bytes) {
        const struct iovec piece = {c->out + c->out_at, c->out_bytes - c->out_at};
        const ssize_t sent = socket_send(c->socket, &piece, 1);
        if (sent <= 0) return;
        c->out_at += (size_t)sent;
    }
    if (c->is_cut) socket_close(c->socket);
}

static void answer(struct connection *c, const struct response *response)
{
    char head[512];
    const int length =
        snprintf(head, sizeof head, "HTTP/1.1 %d Said\r\nContent-Length: %zu\r\n%s\r\n",
                 response->status, response->body_bytes, response->headers);
    const size_t body = response->has_no_body ? 0 : response->body_bytes;
    c->out = realloc(c->out, (size_t)length + body);
    memcpy(c->out, head, (size_t)length);
    if (body) memcpy(c->out + length, response->body, body);
    c->out_bytes = (size_t)length + body;
    c->out_at = 0;
}

/* What was asked for was done, or not. */
static void spoil(struct connection *c)
{
    static const struct response refusal = {.status = 503};
    switch (draw_below(4)) {
    case 0:
        answer(c, &refusal);
        break;
    case 1:
        c->out_bytes = draw_below(c->out_bytes);
        c->is_cut = true;
        break;
    case 2:
        c->is_silent = true;
        return;
    default:
        event_at(machine.now_ns + draw_below(LATE_MS) * MS_NS, send_more, c, 0);
        return;
    }
    send_more(c, 0);
}

/* A job that has not begun ends for good where it is denied; a coordinator denies nobody. */
static bool is_begun; /* the one that all befalls has written what a job writes that goes on */

static void note_begun(const struct request *request)
{
    const char *target = request->target;
    is_begun |= strcmp(request->method, "PUT") == 0 && strstr(target, "/run/") &&
                !strstr(target, "/.writable") && !strstr(target, "/eval/");
}

static bool denies(struct connection *c, const struct request *request)
{
    static const struct response denial = {.status = 403};
    if (!is_begun || machine.now_ns >= trouble.denies_until_ns) return false;
    if (!strstr(request->target, "/bucket")) return false;
    answer(c, &denial);
    send_more(c, 0);
    return true;
}

static void take_request(struct connection *c, service_answer *act, const struct request *request)
{
    static const struct response refusal = {.status = 503};
    struct response response = {.status = 200};
    const bool is_spoilt = machine.now_ns < trouble.until_ns && draw_chance(trouble.share);
    machine_note("request", request->body_bytes);
    if (denies(c, request)) return;
    if (is_spoilt && draw_below(3) == 0) {
        answer(c, &refusal);
        send_more(c, 0);
        return;
    }
    act(request, &response);
    note_begun(request);
    machine_say("%s %s: %d", request->method, request->target, response.status);
    answer(c, &response);
    if (is_spoilt)
        spoil(c);
    else
        send_more(c, 0);
}

/* The first whole request of what has come, if there is one. */
static void read_request(struct connection *c, service_answer *act)
{
    static char head[HEAD_BYTES_MAX];
    char length[32] = "0", *end = memmem(c->in, c->in_bytes, "\r\n\r\n", 4);
    if (!end || end - c->in >= HEAD_BYTES_MAX) return;
    const size_t head_bytes = (size_t)(end - c->in) + 4;
    memcpy(head, c->in, head_bytes - 2);
    head[head_bytes - 2] = '\0';
    struct request request = {.head = strstr(head, "\r\n"), .body = c->in + head_bytes};
    request_header(&request, "Content-Length", length, sizeof length);
    request.body_bytes = strtoull(length, NULL, 10);
    if (c->in_bytes < head_bytes + request.body_bytes) return;
    char *rest = head;
    request.method = strsep(&rest, " ");
    request.target = strsep(&rest, " ");
    request.head = rest;
    take_request(c, act, &request);
    const size_t taken = head_bytes + request.body_bytes;
    memmove(c->in, c->in + taken, c->in_bytes - taken);
    c->in_bytes -= taken;
}

static service_answer *acts[HOSTS_MAX];

static void serve(struct socket *socket)
{
    struct connection *c = socket->served;
    if (!c) {
        c = socket->served = calloc(1, sizeof *c);
        c->socket = socket;
    }
    if (socket->is_closed || c->is_silent) return;
    for (ssize_t got = 1; got > 0;) {
        if (c->in_bytes + READ_BYTES > c->in_room)
            c->in = realloc(c->in, c->in_room = 2 * (c->in_bytes + READ_BYTES));
        got = socket_receive(socket, &(struct iovec){c->in + c->in_bytes, READ_BYTES}, 1, 0);
        if (got > 0) c->in_bytes += (size_t)got;
    }
    if (socket->has_end || socket->state != SOCKET_OPEN) {
        socket_close(socket);
        return;
    }
    send_more(c, 0);
    if (!socket->is_closed) read_request(c, acts[socket->host]);
}

void service_start(int host, int port, service_answer *act)
{
    acts[host] = act;
    socket_serve(host, port, serve);
}
