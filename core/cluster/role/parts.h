/* parts.h - a block that goes over a link in parts, in any order: which of them, is a set.
 *
 * All parts of a block have the same size but for the last one, which may be smaller. Stretches are
 * in bytes of the block.
 */
#ifndef CORE_CLUSTER_ROLE_PARTS_H
#define CORE_CLUSTER_ROLE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

enum { PARTS_MAX = 64 };       /* of a block: a set of them is a number */
#define FIRST_PART UINT64_C(1) /* at the front of the block */

struct parts {
    uint64_t block, part; /* bytes */
};

struct stretch {
    uint64_t offset, length;
};

/* Enough parts that both directions of a link are busy together, and each worth the work of telling
 * it. */
struct parts parts_of(uint64_t block_bytes);

uint64_t parts_all(const struct parts *);
/* The parts that the stretch consists of; 0: it begins or ends amid one, or is none. */
uint64_t parts_in(const struct parts *, struct stretch);
uint64_t parts_touched(const struct parts *, struct stretch); /* of which it has some bytes */
uint64_t parts_before(const struct parts *, uint64_t end);    /* that are wholly in front of it */
uint64_t parts_last(uint64_t set);                            /* of a set that is not empty */
/* Removes the longest stretch at the end of the set, which is not empty: what is wanted first. */
struct stretch parts_take_last(const struct parts *, uint64_t *set);
/* Removes the one that begins with the block, which may be empty. */
struct stretch parts_take_front(const struct parts *, uint64_t *set);

#endif
