/* jute.h - ZooKeeper's serialisation: big-endian 32- and 64-bit integers, and strings preceded by
 * their length in bytes.
 */
#ifndef NET_COORDINATOR_JUTE_H
#define NET_COORDINATOR_JUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JUTE_INT_BYTES = 4, JUTE_LONG_BYTES = 8 };

/* A request under construction. */
struct jute_out {
    unsigned char *to;
    size_t bytes, room;
    bool is_full; /* something did not fit and was left out */
};

void jute_put_int(struct jute_out *, int32_t);
void jute_put_long(struct jute_out *, int64_t);
void jute_put_bool(struct jute_out *, bool);
void jute_put_bytes(struct jute_out *, const void *from, size_t bytes);
void jute_put_text(struct jute_out *, const char *text);
/* Overwrites an int that was put before, at this byte offset */
void jute_set_int(struct jute_out *, size_t at, int32_t);

/* An answer being read. Reading beyond its end, or an impossible length, yields 0 or NULL and sets
 * is_torn. */
struct jute_in {
    const unsigned char *at, *end;
    bool is_torn;
};

int32_t jute_int(struct jute_in *);
int64_t jute_long(struct jute_in *);
void jute_skip(struct jute_in *, size_t bytes);
/* Points into the answer, not terminated; NULL: absent, which is sent as length -1 */
const char *jute_bytes(struct jute_in *, size_t *ret_bytes);
/* Number of items, each at least item_bytes long; 0 also for an absent list, sent as -1 */
int jute_count(struct jute_in *, size_t item_bytes);

#endif
