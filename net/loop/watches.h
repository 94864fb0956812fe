/* watches.h - the descriptors of a loop, in two epoll instances: those of members of the job, and
 * those of guests (guests.h), which are asked only when guests have their turn.
 *
 * A watch is named by its index, never by a pointer: the table moves. epoll hands the index and its
 * generation back, so that an event for a watch that has gone in the meantime is recognised.
 */
#ifndef NET_LOOP_WATCHES_H
#define NET_LOOP_WATCHES_H

#include <sys/epoll.h>

#include "net/loop_inside.h"

struct watch {
    int fd; /* -1: free */
    uint32_t generation, events;
    bool is_guest;
    loop_ready *ready;
    void (*plain_ready)(void *context); /* loop_watch: instead of ready */
    void *context;
    int next_free;
};

struct watches {
    int members_fd, guests_fd; /* epoll instances */
    struct watch *at;
    int count, first_free;
};

err watches_open(struct watches *ret); /* ERR_IO */
void watches_close(struct watches *);

err watches_add(struct watches *, const struct loop_watcher *, int *ret_watch);
void watches_change(struct watches *, int watch, uint32_t events);
void watches_move(struct watches *, int watch, bool is_guest);
void watches_remove(struct watches *, int watch);

/* What epoll said. true: a callback was made. */
bool watches_dispatch(struct watches *, const struct epoll_event *);

#endif
