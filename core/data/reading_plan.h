/* reading_plan.h - if ps/0 hands out batches: maps the reader's own numbers of batches to batches
 * of the stream, as consecutive ranges. */
#ifndef CORE_DATA_READING_PLAN_H
#define CORE_DATA_READING_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { STREAM_RANGES_MAX = 8 };

struct reading_plan {
    uint64_t first;                         /* the reader's number of the first batch */
    uint64_t ranges[2 * STREAM_RANGES_MAX]; /* [2 count] begin and end of each range */
    int count;                              /* 0: no plan */
};

/* batch: rows, to check limits. ERR_PROTOCOL: not a valid plan. */
err reading_plan_make(uint64_t first, const uint64_t *ranges, int count, int64_t batch,
                      struct reading_plan *ret);
/* false: the plan does not cover this number. */
bool reading_plan_find(const struct reading_plan *, uint64_t number, uint64_t *ret_batch);
/* One past the last number that it covers; 0: no plan. */
uint64_t reading_plan_end(const struct reading_plan *);
/* Whether both plans give this number the same batch, or it is before `now`, so already used. */
bool reading_plan_keeps(const struct reading_plan *, const struct reading_plan *now,
                        uint64_t number);

/* As little-endian numbers for the wire. Returns how many. */
enum { READING_PLAN_NUMBERS_MAX = 1 + 2 * STREAM_RANGES_MAX };
int reading_plan_pack(const struct reading_plan *, uint64_t ret[READING_PLAN_NUMBERS_MAX]);
/* ERR_PROTOCOL: as reading_plan_make. */
err reading_plan_unpack(const void *body, size_t bytes, int64_t batch, struct reading_plan *ret);

#endif
