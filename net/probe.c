/* probe.c - see probe.h. */
#include "net/probe.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "net/address.h"

enum { AT_ONCE = 256 };

struct probe_trial {
    struct probe *probe;
    int fd; /* -1: it is over */
    uint64_t began_ns;
};

static bool says_loopback(const char *host)
{
    return !strcmp(host, "localhost") || !strncmp(host, "127.", strlen("127.")) ||
           !strcmp(host, "::1");
}

static void finish(struct probe_trial *t, int why)
{
    struct probe *p = t->probe;
    if (t->fd >= 0) close(t->fd);
    t->fd = -1;
    p->took_ns = clock_ns() - t->began_ns;
    p->outcome = !why ? PROBE_LISTENS : why == ECONNREFUSED ? PROBE_REFUSED : PROBE_UNREACHABLE;
    if (why) snprintf(p->text, sizeof p->text, "%s", strerror(why));
}

static void begin(struct probe_trial *t)
{
    struct address a;
    struct addrinfo *found = NULL;
    struct probe *p = t->probe;
    t->fd = -1;
    p->outcome = PROBE_SILENT;
    if (address_split(p->address, &a) || address_resolve(&a, &found)) {
        p->outcome = PROBE_NO_NAME;
        snprintf(p->text, sizeof p->text, "%s", error_text());
        return;
    }
    p->is_on_loopback = address_is_loopback(found->ai_addr) && !says_loopback(a.host);
    t->began_ns = clock_ns();
    t->fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (t->fd < 0 || (connect(t->fd, found->ai_addr, found->ai_addrlen) && errno != EINPROGRESS))
        finish(t, errno);
    freeaddrinfo(found);
}

static void hear(struct probe_trial *t)
{
    int why = 0;
    socklen_t size = sizeof why;
    if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &why, &size)) why = errno;
    finish(t, why);
}

static void hear_all(struct probe_trial *trials, int count, uint64_t until_ms)
{
    for (;;) { /* ends: until_ms */
        struct pollfd polled[AT_ONCE];
        struct probe_trial *of[AT_ONCE];
        int open = 0;
        for (int i = 0; i < count; i++) {
            if (trials[i].fd < 0) continue;
            polled[open] = (struct pollfd){.fd = trials[i].fd, .events = POLLOUT};
            of[open++] = &trials[i];
        }
        const uint64_t now_ms = clock_ms();
        if (!open || now_ms >= until_ms) return;
        poll(polled, (nfds_t)open, (int)(until_ms - now_ms));
        for (int i = 0; i < open; i++)
            if (polled[i].revents) hear(of[i]);
    }
}

static void run_some(struct probe *probes, int count, uint64_t timeout_ms)
{
    struct probe_trial trials[AT_ONCE];
    for (int i = 0; i < count; i++) {
        trials[i] = (struct probe_trial){.probe = &probes[i]};
        begin(&trials[i]);
    }
    hear_all(trials, count, clock_ms() + timeout_ms);
    for (int i = 0; i < count; i++)
        if (trials[i].fd >= 0) close(trials[i].fd);
}

void probes_run(struct probe *probes, int count, uint64_t timeout_ms)
{
    for (int from = 0; from < count; from += AT_ONCE) {
        const int left = count - from;
        run_some(probes + from, left < AT_ONCE ? left : AT_ONCE, timeout_ms);
    }
}
