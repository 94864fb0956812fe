/* http_clients.c - see http_clients.h. */
#include "net/http_clients.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "core/base/clock.h"
#include "core/base/threads/thread.h"

enum { LOOK_MS = 1000 };

struct client {
    int fd; /* -1: the place is free */
    uint64_t since_ms;
};

struct http_clients {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t end;
    pthread_t thread;
    bool is_ending;
    uint64_t limit_ms;
    int max;
    struct client at[]; /* [max] */
};

/* Only shuts the socket down: its owner sees the end of the stream and closes it. */
static void hang_up_on_slow(struct http_clients *c, uint64_t now_ms)
{
    for (int i = 0; i < c->max; i++)
        if (c->at[i].fd >= 0 && now_ms >= c->at[i].since_ms + c->limit_ms)
            shutdown(c->at[i].fd, SHUT_RDWR);
}

static void *look(void *context)
{
    struct http_clients *c = context;
    pthread_mutex_lock(&c->lock);
    while (!c->is_ending) {
        const struct timespec until = clock_in_ms(LOOK_MS);
        pthread_cond_clockwait(&c->end, &c->lock, CLOCK_MONOTONIC, &until);
        hang_up_on_slow(c, clock_ms());
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

err http_clients_open(int max, int limit_s, struct http_clients **ret)
{
    struct http_clients *c = calloc(1, sizeof *c + (size_t)max * sizeof c->at[0]);
    if (!c) return fail(ERR_MEMORY, "no memory for %d clients", max);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->end, NULL);
    c->limit_ms = (uint64_t)limit_s * 1000;
    c->max = max;
    for (int i = 0; i < max; i++) c->at[i].fd = -1;
    const err e = thread_start(&c->thread, look, c);
    if (e)
        free(c);
    else
        *ret = c;
    return e;
}

void http_clients_close(struct http_clients *c)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->is_ending = true;
    pthread_cond_signal(&c->end);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    pthread_cond_destroy(&c->end);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int http_clients_add(struct http_clients *c, int fd)
{
    int place = 0;
    pthread_mutex_lock(&c->lock);
    while (place < c->max && c->at[place].fd >= 0) place++;
    if (place < c->max) c->at[place] = (struct client){fd, clock_ms()};
    pthread_mutex_unlock(&c->lock);
    return place < c->max ? place : -1;
}

void http_clients_answered(struct http_clients *c, int place)
{
    if (place < 0) return;
    pthread_mutex_lock(&c->lock);
    c->at[place].since_ms = clock_ms();
    pthread_mutex_unlock(&c->lock);
}

void http_clients_remove(struct http_clients *c, int place)
{
    if (place < 0) return;
    pthread_mutex_lock(&c->lock);
    c->at[place].fd = -1;
    pthread_mutex_unlock(&c->lock);
}
