/* meter.c - see meter.h. */
#include "net/meter.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "net/address.h"

enum {
    WORD_BYTES = 8,
    QUESTION_BYTES = 2 * WORD_BYTES,
    PIECE_BYTES = 256 << 10,
    ROUND_TRIPS = 20,
    FIRST_BYTES = 1 << 20, /* first transfer, from which the size of the real one is estimated */
    RETRY_MS = 100,
    REST_MS = 100, /* pause when accept() finds no free descriptor */
};
static const double measure_s = 0.5;
static const char word[WORD_BYTES] = {'d', 't', 'm', 'e', 't', 'e', 'r', '1'};

/* ---- the side that is measured ---- */

struct meter_passage {
    int fd;
    size_t asked; /* bytes of the question received so far */
    unsigned char question[QUESTION_BYTES];
    uint64_t left; /* bytes still to come after it */
    uint64_t heard_ms;
};

struct meter {
    pthread_t thread;
    int listening, ends; /* ends: an eventfd that stops the thread */
    int count;
    struct meter_passage passages[METER_LINKS_MAX];
    char piece[PIECE_BYTES];
};

static void hang_up(struct meter *m, int i)
{
    close(m->passages[i].fd);
    m->passages[i] = m->passages[--m->count];
}

static void take_callers(struct meter *m)
{
    const int fd = accept4(m->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), yes = 1;
    if (fd < 0) { /* with no free descriptor the listener would be ready again at once */
        if (errno != EAGAIN) clock_pause(REST_MS);
        return;
    }
    if (m->count == METER_LINKS_MAX) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    m->passages[m->count++] = (struct meter_passage){.fd = fd, .heard_ms = clock_ms()};
}

static bool answer(const struct meter_passage *p)
{
    return send(p->fd, word, sizeof word, MSG_NOSIGNAL) == (ssize_t)sizeof word;
}

/* The question is complete. false: it is malformed. */
static bool begin(struct meter_passage *p)
{
    uint64_t bytes;
    memcpy(&bytes, p->question + WORD_BYTES, sizeof bytes);
    p->left = le64toh(bytes);
    return memcmp(p->question, word, sizeof word) == 0 && p->left <= METER_BYTES_MAX;
}

static ssize_t take(struct meter *m, struct meter_passage *p)
{
    const bool asks = p->asked < QUESTION_BYTES;
    const size_t most = asks                    ? QUESTION_BYTES - p->asked
                        : p->left < PIECE_BYTES ? (size_t)p->left
                                                : PIECE_BYTES;
    const ssize_t count = recv(p->fd, asks ? (char *)p->question + p->asked : m->piece, most, 0);
    if (count <= 0) return count;
    if (asks)
        p->asked += (size_t)count;
    else
        p->left -= (uint64_t)count;
    return count;
}

/* false: it has disconnected, or what it sends is malformed. */
static bool hear(struct meter *m, struct meter_passage *p)
{
    const bool asks = p->asked < QUESTION_BYTES;
    const ssize_t count = take(m, p);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    p->heard_ms = clock_ms();
    if (p->asked < QUESTION_BYTES) return true;
    if (asks && !begin(p)) return false;
    if (p->left) return true;
    p->asked = 0;
    return answer(p);
}

static void *serve(void *context)
{
    struct meter *m = context;
    struct pollfd polled[METER_LINKS_MAX + 2];
    for (;;) { /* ends: m->ends */
        const int count = m->count;
        for (int i = 0; i < count; i++)
            polled[i] = (struct pollfd){.fd = m->passages[i].fd, .events = POLLIN};
        polled[count] = (struct pollfd){.fd = m->listening, .events = POLLIN};
        polled[count + 1] = (struct pollfd){.fd = m->ends, .events = POLLIN};
        poll(polled, (nfds_t)count + 2, METER_SILENT_MS);
        if (polled[count + 1].revents) return NULL;
        const uint64_t now_ms = clock_ms();
        for (int i = count - 1; i >= 0; i--) {
            const bool is_heard = !polled[i].revents || hear(m, &m->passages[i]);
            if (!is_heard || now_ms > m->passages[i].heard_ms + METER_SILENT_MS) hang_up(m, i);
        }
        if (polled[count].revents) take_callers(m);
    }
}

err meter_open(const char *address, char *ret_address, struct meter **ret)
{
    char taken[ADDRESS_MAX];
    struct meter *m = calloc(1, sizeof *m);
    if (!m) return fail(ERR_MEMORY, "no memory to be measured");
    const err e = address_reserve(address, taken, &m->listening);
    if (e) {
        free(m);
        return e;
    }
    m->ends = eventfd(0, EFD_CLOEXEC);
    if (m->ends < 0 || pthread_create(&m->thread, NULL, serve, m)) {
        if (m->ends >= 0) close(m->ends);
        close(m->listening);
        free(m);
        return fail(ERR_IO, "cannot start a thread to be measured");
    }
    if (ret_address) snprintf(ret_address, ADDRESS_MAX, "%s", taken);
    *ret = m;
    return OK;
}

void meter_close(struct meter *m)
{
    if (!m) return;
    eventfd_write(m->ends, 1);
    pthread_join(m->thread, NULL);
    while (m->count) hang_up(m, m->count - 1);
    close(m->listening);
    close(m->ends);
    free(m);
}

/* ---- the side that measures ---- */

static int left_ms(uint64_t until_ms)
{
    const uint64_t now_ms = clock_ms();
    return now_ms >= until_ms ? 0 : (int)(until_ms - now_ms);
}

static err fail_late(void)
{
    return fail(ERR_TIMEOUT, "nothing is measuring there");
}

/* ERR_TIMEOUT: cannot connect; the other side may not have started yet. */
static err call(const struct addrinfo *to, uint64_t until_ms, int *ret)
{
    int why = 0, yes = 1;
    socklen_t size = sizeof why;
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return fail(ERR_IO, "socket: %s", strerror(errno));
    if (connect(fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS) why = errno;
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    if (!why && poll(&polled, 1, left_ms(until_ms)) <= 0) why = ETIMEDOUT;
    if (!why && getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size)) why = errno;
    if (why) {
        close(fd);
        return fail_late();
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    *ret = fd;
    return OK;
}

/* Waits for a poll event. */
static err wait_for(int fd, short events, uint64_t until_ms)
{
    struct pollfd polled = {.fd = fd, .events = events};
    return poll(&polled, 1, left_ms(until_ms)) > 0
               ? OK
               : fail(ERR_TIMEOUT, "it stopped in the middle of the measurement");
}

static err say(int fd, const void *at, size_t bytes, uint64_t until_ms)
{
    for (const char *from = at; bytes;) { /* ends: until_ms */
        TRY(wait_for(fd, POLLOUT, until_ms));
        const ssize_t count = send(fd, from, bytes, MSG_NOSIGNAL);
        if (count < 0 && errno != EAGAIN && errno != EINTR)
            return fail(ERR_PROTOCOL,
                        "the listener there is not dtrain doctor, or serves too many already");
        if (count > 0) {
            from += count;
            bytes -= (size_t)count;
        }
    }
    return OK;
}

static err hear_answer(int fd, uint64_t until_ms)
{
    char came[WORD_BYTES];
    for (size_t bytes = 0; bytes < sizeof came;) { /* ends: until_ms */
        TRY(wait_for(fd, POLLIN, until_ms));
        const ssize_t count = recv(fd, came + bytes, sizeof came - bytes, 0);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
            return fail(ERR_PROTOCOL,
                        "the listener there is not dtrain doctor, or serves too many already");
        if (count > 0) bytes += (size_t)count;
    }
    return memcmp(came, word, sizeof word)
               ? fail(ERR_PROTOCOL, "the listener there is not dtrain doctor")
               : OK;
}

/* Asks one question and waits for the answer; ret_s: seconds that took. */
static err ask(int fd, uint64_t bytes, const char *piece, uint64_t until_ms, double *ret_s)
{
    unsigned char question[QUESTION_BYTES];
    const uint64_t wire = htole64(bytes), began_ns = clock_ns();
    memcpy(question, word, sizeof word);
    memcpy(question + WORD_BYTES, &wire, sizeof wire);
    TRY(say(fd, question, sizeof question, until_ms));
    for (uint64_t left = bytes; left;) {
        const size_t next = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        TRY(say(fd, piece, next, until_ms));
        left -= next;
    }
    TRY(hear_answer(fd, until_ms));
    *ret_s = (double)(clock_ns() - began_ns) * 1e-9;
    return OK;
}

static err measure(int fd, const char *piece, uint64_t until_ms, struct metered *ret)
{
    double took_s;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        TRY(ask(fd, 0, piece, until_ms, &took_s));
        if (!i || took_s < ret->round_trip_s) ret->round_trip_s = took_s;
    }
    TRY(ask(fd, FIRST_BYTES, piece, until_ms, &took_s));
    const double wanted = FIRST_BYTES / took_s * measure_s;
    const uint64_t bytes = wanted > METER_BYTES_MAX ? METER_BYTES_MAX
                           : wanted < FIRST_BYTES   ? FIRST_BYTES
                                                    : (uint64_t)wanted;
    TRY(ask(fd, bytes, piece, until_ms, &took_s));
    took_s -= ret->round_trip_s;
    ret->bytes_s = (double)bytes / (took_s > 1e-9 ? took_s : 1e-9);
    return OK;
}

static err call_until(const struct addrinfo *to, uint64_t until_ms, int *ret)
{
    for (;;) { /* ends: until_ms */
        const err e = call(to, until_ms, ret);
        if (e != ERR_TIMEOUT || left_ms(until_ms) <= RETRY_MS) return e;
        clock_pause(RETRY_MS);
    }
}

err meter_measure(const char *address, uint64_t patience_ms, uint64_t until_ms, struct metered *ret)
{
    const uint64_t patient_until_ms = clock_ms() + patience_ms;
    struct address a;
    struct addrinfo *found;
    int fd = -1;
    *ret = (struct metered){0};
    TRY(address_split(address, &a));
    TRY(address_resolve(&a, &found));
    err e = call_until(found, patient_until_ms < until_ms ? patient_until_ms : until_ms, &fd);
    freeaddrinfo(found);
    if (e) return e;
    char *piece = calloc(1, PIECE_BYTES);
    e = piece ? measure(fd, piece, until_ms, ret) : fail(ERR_MEMORY, "no memory to measure");
    free(piece);
    close(fd);
    return e;
}
