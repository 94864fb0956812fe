/* mover.c - see mover.h. */
#include "net/loop/mover.h"

#include "net/loop_inside.h"

#include "core/base/clock.h"
#include "core/base/threads/thread.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct kept_message {
    struct link *link;
    struct message message;
};

struct sockets {
    struct loop_socket at[MOVER_SOCKETS_MAX];
    int count;
};

struct mover {
    struct loop *loop;
    int wake_fd;
    pthread_t thread;
    atomic_bool is_wanted; /* the owner wants the loop back: the thread must not take the mutex */
    pthread_mutex_t mutex; /* guards all that follows, and the loop while it is lent */
    pthread_cond_t changed;
    bool is_lent, has_ended;
    bool is_moving;
    bool is_polling;   /* the thread is in poll() on `sockets` */
    uint64_t lendings; /* counts loop_lend: a list from an earlier one may name freed links */
    struct sockets sockets;
    uint64_t looks_again_ns; /* next time for reading */
    bool was_full; /* in the last lending `kept` filled up: sockets were left with unread data */
    int kept_count;
    struct kept_message kept[MOVER_KEPT_MAX];
};

/* ---- the thread ---- */

/* Polls for input only every MOVER_LOOK_MS, so that small pieces are read together. */
static int list_polled(const struct mover *m, struct pollfd *ret)
{
    const bool looks = clock_ns() >= m->looks_again_ns;
    for (int i = 0; i < m->sockets.count; i++) {
        const struct loop_socket *socket = &m->sockets.at[i];
        const uint32_t events = looks ? socket->events : socket->events & EPOLLOUT;
        ret[i] = (struct pollfd){.fd = events ? socket->fd : -1, .events = (short)events};
    }
    ret[m->sockets.count] = (struct pollfd){.fd = m->wake_fd, .events = POLLIN};
    return looks ? MOVER_SLEEP_MS : MOVER_LOOK_MS;
}

static void clear_wake(const struct mover *m)
{
    uint64_t count;
    const ssize_t got = read(m->wake_fd, &count, sizeof count);
    (void)got; /* nothing to read: cleared already */
}

/* Releases the mutex while it blocks. true: the same lending goes on and some are ready. */
static bool sleep_until_ready(struct mover *m, struct pollfd *polled)
{
    const uint64_t lendings = m->lendings;
    const int count = m->sockets.count, timeout_ms = list_polled(m, polled);
    m->is_polling = true;
    pthread_mutex_unlock(&m->mutex);
    const int ready = poll(polled, (nfds_t)count + 1, timeout_ms);
    if (ready > 0 && polled[count].revents) clear_wake(m);
    pthread_mutex_lock(&m->mutex);
    m->is_polling = false;
    return ready > 0 && m->is_lent && m->lendings == lendings;
}

/* polled NULL: all sockets; else those that are ready */
static void look_at(struct mover *m, const struct pollfd *polled)
{
    enum { NS_IN_MS = 1000000 };
    m->is_moving = true;
    for (int i = 0; i < m->sockets.count; i++)
        if (!polled || polled[i].revents) loop_look_amid(m->loop, m->sockets.at[i].link);
    m->is_moving = false;
    m->looks_again_ns = clock_ns() + (uint64_t)MOVER_LOOK_MS * NS_IN_MS;
}

static void *run(void *context)
{
    struct mover *m = context;
    struct pollfd polled[MOVER_SOCKETS_MAX + 1];
    pthread_mutex_lock(&m->mutex);
    while (!m->has_ended) {
        if (!m->is_lent || atomic_load(&m->is_wanted)) {
            pthread_cond_wait(&m->changed, &m->mutex);
            continue;
        }
        m->sockets.count = loop_list_sockets(m->loop, m->sockets.at, MOVER_SOCKETS_MAX);
        if (m->was_full) {
            m->was_full = false;
            look_at(m, NULL);
        } else if (sleep_until_ready(m, polled)) {
            look_at(m, polled);
        }
    }
    pthread_mutex_unlock(&m->mutex);
    return NULL;
}

/* ---- the owner ---- */

static void free_mover(struct mover *m)
{
    if (m->wake_fd >= 0) close(m->wake_fd);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

err mover_open(struct loop *loop, struct mover **ret)
{
    struct mover *m = calloc(1, sizeof *m);
    if (!m) return fail(ERR_MEMORY, "no memory for a thread that moves bytes");
    m->loop = loop;
    m->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&m->mutex, NULL);
    pthread_cond_init(&m->changed, NULL);
    const err e = m->wake_fd < 0 ? fail(ERR_IO, "eventfd: %s", strerror(errno))
                                 : thread_start(&m->thread, run, m);
    if (e)
        free_mover(m);
    else
        *ret = m;
    return e ? fail_prefix(e, "to move bytes") : OK;
}

static void wake(struct mover *m)
{
    const uint64_t one = 1;
    const ssize_t put = write(m->wake_fd, &one, sizeof one);
    (void)put; /* the counter is full: it wakes anyway */
}

void mover_close(struct mover *m)
{
    if (!m) return;
    pthread_mutex_lock(&m->mutex);
    m->has_ended = true;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->mutex);
    wake(m);
    pthread_join(m->thread, NULL);
    free_mover(m);
}

/* Whether the thread's poll() watches other sockets or events than it should */
static bool polls_for_others(const struct mover *m)
{
    struct loop_socket now[MOVER_SOCKETS_MAX];
    const int count = loop_list_sockets(m->loop, now, MOVER_SOCKETS_MAX);
    bool differs = count != m->sockets.count;
    for (int i = 0; i < count && !differs; i++) {
        const struct loop_socket *was = &m->sockets.at[i];
        differs = now[i].link != was->link || now[i].fd != was->fd || now[i].events != was->events;
    }
    return differs;
}

void mover_lend(struct mover *m)
{
    pthread_mutex_lock(&m->mutex);
    assert(!m->is_lent);
    m->is_lent = true;
    m->lendings++;
    if (!m->is_polling)
        pthread_cond_signal(&m->changed);
    else if (m->was_full || polls_for_others(m))
        wake(m);
    pthread_mutex_unlock(&m->mutex);
}

/* A callback may close any link; messages of closed ones are dropped. */
static void deliver_kept(struct mover *m)
{
    m->was_full |= mover_is_full(m);
    for (int i = 0; i < m->kept_count; i++)
        if (m->kept[i].link->state != LINK_CLOSED) link_tell(m->kept[i].link, &m->kept[i].message);
    m->kept_count = 0;
}

void mover_reclaim(struct mover *m)
{
    atomic_store(&m->is_wanted, true);
    pthread_mutex_lock(&m->mutex);
    assert(m->is_lent);
    m->is_lent = false;
    atomic_store(&m->is_wanted, false);
    pthread_mutex_unlock(&m->mutex);
    deliver_kept(m);
}

/* ---- links ---- */

bool mover_is_moving(const struct mover *m)
{
    return m && m->is_moving;
}

bool mover_is_full(const struct mover *m)
{
    return m->kept_count == MOVER_KEPT_MAX;
}

void mover_keep(struct mover *m, struct link *link, const struct message *message)
{
    m->kept[m->kept_count++] = (struct kept_message){link, *message};
}
