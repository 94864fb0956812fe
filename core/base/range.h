/* range.h - a range of an array of floats: of a block, or of a whole variable. */
#ifndef CORE_BASE_RANGE_H
#define CORE_BASE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct range {
    int64_t begin, end; /* [begin, end) */
};

static inline int64_t range_count(struct range r)
{
    return r.end - r.begin;
}

static inline bool range_is_empty(struct range r)
{
    return r.end <= r.begin;
}

/* The intersection, which may be empty. */
static inline struct range range_meet(struct range a, struct range b)
{
    return (struct range){a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

#endif
