/* loop.h - one thread waits here for everything: sockets, shared rings, signals, time.
 *
 * Waiting looks for `spin_us` microseconds with sched_yield between looks (rings and sockets
 * alike), then blocks in epoll. A peer that puts something into a ring while this side blocks
 * wakes it by a byte on a socket (only then).
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

struct link;
struct loop;
struct tls_keys;

enum { LOOP_SPIN_US = 50, LOOP_WATCH_MAX = 16384 };

err loop_open(struct loop **ret);
void loop_close(struct loop *); /* closes links and listeners that are left, without callbacks */
void loop_set_spin(struct loop *, int spin_us);
/* Before there are links and listeners: what those between hosts prove and ask (net/tls.h).
 * Borrowed until the loop is closed; NULL: they are not encrypted, and whoever comes is heard. */
void loop_set_keys(struct loop *, struct tls_keys *);
/* Whoever reaches it from another host may be heard, though there are no keys. */
void loop_set_insecure(struct loop *, bool);
bool loop_is_insecure(const struct loop *);      /* of no loop: no */
struct tls_keys *loop_keys(const struct loop *); /* of no loop: none */

/* Delivers what is there; if nothing is, waits up to timeout_ms (0: only looks; -1:
 * LOOP_WAIT_MAX_MS) for something. Returns true when something was delivered, or all that a link
 * had queued has been sent (link_is_idle). */
enum { LOOP_WAIT_MAX_MS = 60000 };
bool loop_poll(struct loop *, int timeout_ms);

/* From a callback that computes for long: what is queued goes on leaving, and parts of windows
 * (message_is_part) go on coming and are delivered; whatever else has come waits for loop_poll. */
void loop_move(struct loop *);
/* The same until more has come of this link. ERR_PEER: it has ended, which its owner hears of
 * later, or nothing may come before something else is heard; ERR_TIMEOUT: nothing came. Inproc,
 * both ends being in this loop, the other one hears all that has come for it meanwhile, and
 * ERR_TIMEOUT comes at once where nothing moves. */
err loop_await(struct loop *, struct link *, int timeout_ms);

/* While its owner computes, a thread does so on sockets. Between the two the owner uses neither the
 * loop nor a link; parts are delivered by loop_reclaim. ERR_MEMORY, ERR_IO: no such thread can be
 * had, and nothing was lent. */
err loop_lend(struct loop *);
void loop_reclaim(struct loop *); /* nothing where it is not lent */

/* Bytes of the messages of a type (net/message.h) that links of this loop have sent, and that have
 * been delivered; what lies in shared memory counts, what a process says to itself does not. */
struct loop_bytes {
    uint64_t sent, received;
};
struct loop_bytes loop_bytes(const struct loop *, uint32_t type);

/* Any descriptor: ready() is called from loop_poll while it is readable. */
err loop_watch(struct loop *, int fd, void (*ready)(void *context), void *context);
void loop_unwatch(struct loop *, int fd);

/* Guests (link_set_guest) get a twentieth of the time of a loop that has others to serve, too. Work
 * for them that is done outside of callbacks is done between these two. false: not now; loop_poll
 * returns when it is time. has_more: the same, there is more to do. */
bool loop_begin_guests(struct loop *);
bool loop_guests_had_their_slice(const struct loop *); /* what is left is for the next time */
void loop_end_guests(struct loop *, bool has_more);
/* The same at a moment that the caller cannot choose, as between two updates: true whenever guests
 * do not rest, whoever's turn it is. Begin only with something to do: it takes time from other
 * guests. */
bool loop_begin_guests_here(struct loop *);
void loop_end_guests_here(struct loop *);

#endif
