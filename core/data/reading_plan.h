/* reading_plan.h - which batches of the stream a reader's next ones are, where somebody else hands
 * them out: by their own numbers, ranges of batches one behind the other. */
#ifndef CORE_DATA_READING_PLAN_H
#define CORE_DATA_READING_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { STREAM_RANGES_MAX = 8 };

struct reading_plan {
    uint64_t first;                         /* number of the first one */
    uint64_t ranges[2 * STREAM_RANGES_MAX]; /* [2 count] from where to where */
    int count;                              /* 0: there is none */
};

/* ERR_PROTOCOL: it is none, of batches of this many rows. */
err reading_plan_make(uint64_t first, const uint64_t *ranges, int count, int64_t batch,
                      struct reading_plan *ret);
/* false: it does not say which batch of the stream the one with this number is. */
bool reading_plan_find(const struct reading_plan *, uint64_t number, uint64_t *ret_batch);
/* Behind the last number that it says something of; 0: there is no plan. */
uint64_t reading_plan_end(const struct reading_plan *);
/* Is it the same one by both, or, as it lies before the second, used already? */
bool reading_plan_keeps(const struct reading_plan *, const struct reading_plan *now,
                        uint64_t number);

/* As numbers in the byte order of the wire. Returns how many. */
enum { READING_PLAN_NUMBERS_MAX = 1 + 2 * STREAM_RANGES_MAX };
int reading_plan_pack(const struct reading_plan *, uint64_t ret[READING_PLAN_NUMBERS_MAX]);
/* ERR_PROTOCOL: as reading_plan_make. */
err reading_plan_unpack(const void *body, size_t bytes, int64_t batch, struct reading_plan *ret);

#endif
