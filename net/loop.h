/* loop.h - the event loop: one thread waits for sockets, shared rings, signals and timeouts.
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
/* Keys for links between hosts (net/tls.h). To be called before links and listeners are made;
 * borrowed until the loop is closed. NULL: no encryption and no authentication. */
void loop_set_keys(struct loop *, struct tls_keys *);
/* Accept connections from other hosts even without keys. */
void loop_set_insecure(struct loop *, bool);
bool loop_is_insecure(const struct loop *);      /* NULL: false */
struct tls_keys *loop_keys(const struct loop *); /* NULL: NULL */

/* Delivers what has come; if nothing has, waits up to timeout_ms (0: does not wait; -1:
 * LOOP_WAIT_MAX_MS). Returns true when something was delivered, or all that a link
 * had queued has been sent (link_is_idle). */
enum { LOOP_WAIT_MAX_MS = 60000 };
bool loop_poll(struct loop *, int timeout_ms);

/* To be called now and then by a callback that computes for long: sends what is queued, receives
 * and delivers parts of windows (message_is_part); all else that has come waits for loop_poll. */
void loop_move(struct loop *);
/* The same until more has come over this link. ERR_PEER: it has ended (closed() is called later),
 * or the next message is one that has to wait for loop_poll; ERR_TIMEOUT: nothing came. Inproc, the
 * other end, which is in this loop too, gets all its messages meanwhile, and ERR_TIMEOUT comes at
 * once if nothing moves. */
err loop_await(struct loop *, struct link *, int timeout_ms);

/* Lends the loop to a thread that does the same on sockets while the owner computes. Until
 * loop_reclaim, which delivers the parts, the owner must use neither the loop nor a link.
 * ERR_MEMORY, ERR_IO: the thread cannot be started, nothing is lent. */
err loop_lend(struct loop *);
void loop_reclaim(struct loop *); /* no effect if it is not lent */

/* Bytes of messages of a type (net/message.h) that links of this loop have sent and delivered.
 * Stretches in shared memory count, inproc messages do not. */
struct loop_bytes {
    uint64_t sent, received;
};
struct loop_bytes loop_bytes(const struct loop *, uint32_t type);

/* Any descriptor: ready() is called from loop_poll while it is readable. */
err loop_watch(struct loop *, int fd, void (*ready)(void *context), void *context);
void loop_unwatch(struct loop *, int fd);

/* Guests (link_set_guest) get a twentieth of the time of a loop that also has members. Work for
 * guests outside of callbacks is done between begin and end. false: not now; loop_poll returns when
 * it is time. has_more: there is more to do, loop_poll returns likewise. */
bool loop_begin_guests(struct loop *);
bool loop_guests_had_their_slice(const struct loop *); /* true: leave the rest for the next turn */
void loop_end_guests(struct loop *, bool has_more);
/* loop_begin_guests for moments that the caller cannot choose, as between two updates: true
 * whenever guests do not rest, even if it is their links' turn. Call it only with work to do: it
 * takes time from other guests. */
bool loop_begin_guests_here(struct loop *);
void loop_end_guests_here(struct loop *);

#endif
