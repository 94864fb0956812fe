/* parts.h - a block that goes over a link in parts, in any order: which of them, is a set.
 *
 * All parts of a block have the same size but for the last one, which may be smaller.
 */
#ifndef CORE_CLUSTER_ROLE_PARTS_H
#define CORE_CLUSTER_ROLE_PARTS_H

#include "core/base/range.h"

enum { PARTS_MAX = 64 };       /* of a block: a set of them is a number */
#define FIRST_PART UINT64_C(1) /* at the front of the block */

struct parts {
    int64_t block, part; /* floats */
};

/* Enough parts that both directions of a link are busy together, and each worth the work of telling
 * it. */
struct parts parts_of(int64_t block_floats);
/* Those of the front of the block, up to `floats`, where the last of them may end sooner. */
struct parts parts_front(struct parts block, int64_t floats);

uint64_t parts_all(const struct parts *);
/* The parts that the range consists of; 0: it begins or ends amid one, or is none. */
uint64_t parts_in(const struct parts *, struct range);
uint64_t parts_touched(const struct parts *, struct range); /* of which it has some floats */
uint64_t parts_before(const struct parts *, int64_t end);   /* that are wholly in front of it */
uint64_t parts_last(uint64_t set);                          /* of a set that is not empty */
/* Removes the longest range at the end of the set, which is not empty: what is wanted first. */
struct range parts_take_last(const struct parts *, uint64_t *set);
/* Removes the one that begins with the block, which may be empty. */
struct range parts_take_front(const struct parts *, uint64_t *set);

#endif
