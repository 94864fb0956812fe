/* parts.h - a block that is sent in parts, in any order; sets of parts are bit masks.
 *
 * All parts of a block have the same size but for the last one, which may be smaller.
 */
#ifndef CORE_CLUSTER_ROLE_PARTS_H
#define CORE_CLUSTER_ROLE_PARTS_H

#include "core/base/range.h"

enum { PARTS_MAX = 64 };       /* of a block: one uint64_t holds a set */
#define FIRST_PART UINT64_C(1) /* at the front of the block */

struct parts {
    int64_t block, part; /* floats */
};

/* Enough parts to keep both directions of a link busy, each large enough to be worth a message. */
struct parts parts_of(int64_t block_floats);
/* The parts of the first `floats` floats of the block, where the last one may be smaller. */
struct parts parts_front(struct parts block, int64_t floats);

uint64_t parts_all(const struct parts *);
/* The parts that the range consists of; 0: it begins or ends within one, or is empty or outside. */
uint64_t parts_in(const struct parts *, struct range);
uint64_t parts_touched(const struct parts *, struct range); /* that overlap it */
uint64_t parts_before(const struct parts *, int64_t end);   /* that end at or before it */
uint64_t parts_last(uint64_t set);                          /* the set is not empty */
/* Removes the longest contiguous range at the end of the set, which must not be empty: it is needed
 * first. */
struct range parts_take_last(const struct parts *, uint64_t *set);
/* Removes the range at the front of the block, which may be empty. */
struct range parts_take_front(const struct parts *, uint64_t *set);

#endif
