/* deferred.h - messages that have come for an owner who is busy, who hears them when it listens
 * again.
 *
 * They are of kinds that parts of windows may overtake (message_may_wait). Bodies are copied.
 */
#ifndef NET_LOOP_DEFERRED_H
#define NET_LOOP_DEFERRED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "net/message.h"

enum { DEFERRED_MAX = 256, DEFERRED_BYTES_MAX = 1 << 20 };

struct deferred {
    struct message *at;
    int count, capacity;
    size_t bytes; /* of bodies */
};

bool deferred_has_room(const struct deferred *, size_t body_bytes);
err deferred_add(struct deferred *, const struct message *); /* where there is room; ERR_MEMORY */
void deferred_free(struct deferred *);                       /* leaves an empty one */

#endif
