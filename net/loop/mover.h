/* mover.h - a thread that moves bytes of a loop's sockets while the loop's owner computes.
 *
 * The loop belongs to one thread at a time. Its owner lends it and reclaims it; in between it
 * touches neither the loop nor a link, and the thread does on the sockets of members what loop_move
 * would do: what is queued leaves, parts of windows come to their place. What a part means is its
 * owner's business: it is kept, and delivered when the loop is reclaimed. Where MOVER_KEPT_MAX are
 * kept, what has come waits in its socket.
 *
 * Reclaiming waits for one look at a socket at most.
 */
#ifndef NET_LOOP_MOVER_H
#define NET_LOOP_MOVER_H

#include "core/base/error.h"
#include "net/link.h"

struct mover;

enum {
    MOVER_SOCKETS_MAX = 256, /* of more, the others move when their owner looks at them */
    MOVER_KEPT_MAX = 256,
    MOVER_LOOK_MS = 1,     /* between two looks at what comes: it can wait, what leaves not */
    MOVER_SLEEP_MS = 1000, /* where nothing is ready */
};

err mover_open(struct loop *, struct mover **ret); /* ERR_MEMORY, ERR_IO: no thread can be had */
void mover_close(struct mover *);                  /* NULL is fine */

void mover_lend(struct mover *);
void mover_reclaim(struct mover *); /* callbacks are made from here, for parts alone */

/* For links. true: the thread is the one that moves, so that a message is kept and not heard. */
bool mover_is_moving(const struct mover *);
bool mover_is_full(const struct mover *);
void mover_keep(struct mover *, struct link *, const struct message *);

#endif
