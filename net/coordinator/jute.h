/* jute.h - how ZooKeeper writes what it says: numbers of 32 and 64 bits, the highest byte first,
 * and texts behind their number of bytes.
 */
#ifndef NET_COORDINATOR_JUTE_H
#define NET_COORDINATOR_JUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JUTE_INT_BYTES = 4, JUTE_LONG_BYTES = 8 };

/* What is to be said. */
struct jute_out {
    unsigned char *to;
    size_t bytes, room;
    bool is_full; /* something had no room, and was left out */
};

void jute_put_int(struct jute_out *, int32_t);
void jute_put_long(struct jute_out *, int64_t);
void jute_put_bool(struct jute_out *, bool);
void jute_put_bytes(struct jute_out *, const void *from, size_t bytes);
void jute_put_text(struct jute_out *, const char *text);
/* A number that was put before, at a byte of the whole */
void jute_set_int(struct jute_out *, size_t at, int32_t);

/* What was said. Whatever is asked for beyond its end, or with a length that it does not have, is 0
 * or none, and is_torn. */
struct jute_in {
    const unsigned char *at, *end;
    bool is_torn;
};

int32_t jute_int(struct jute_in *);
int64_t jute_long(struct jute_in *);
void jute_skip(struct jute_in *, size_t bytes);
/* Where they are, without a NUL; NULL: none, which is written as a length of -1 */
const char *jute_bytes(struct jute_in *, size_t *ret_bytes);
/* Of how many, each of item_bytes at least; none is written as -1, too */
int jute_count(struct jute_in *, size_t item_bytes);

#endif
