/* mover.h - a thread that sends and receives on a loop's sockets while the loop's owner computes.
 *
 * The loop belongs to one thread at a time. Its owner lends it and reclaims it; in between the
 * owner touches neither the loop nor a link, and the thread does on members' sockets what loop_move
 * would do: it sends what is queued and reads parts into their windows. The messages of the parts
 * are kept and delivered when the loop is reclaimed. Once MOVER_KEPT_MAX are kept, nothing more is
 * read.
 *
 * Reclaiming waits for one look at a socket at most.
 */
#ifndef NET_LOOP_MOVER_H
#define NET_LOOP_MOVER_H

#include "core/base/error.h"
#include "net/link.h"

struct mover;

enum {
    MOVER_SOCKETS_MAX = 256, /* further ones move only when the owner polls the loop */
    MOVER_KEPT_MAX = 256,
    MOVER_LOOK_MS = 1,     /* between two reads: input can wait, output cannot */
    MOVER_SLEEP_MS = 1000, /* poll() timeout when nothing is ready */
};

err mover_open(struct loop *, struct mover **ret); /* ERR_MEMORY, ERR_IO: cannot start the thread */
void mover_close(struct mover *);                  /* NULL is fine */

void mover_lend(struct mover *);
void mover_reclaim(struct mover *); /* calls callbacks, for parts only */

/* For links. true: called in the thread, where messages are kept instead of delivered. */
bool mover_is_moving(const struct mover *);
bool mover_is_full(const struct mover *);
void mover_keep(struct mover *, struct link *, const struct message *);

#endif
