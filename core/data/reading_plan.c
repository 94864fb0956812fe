/* reading_plan.c - see reading_plan.h. */
#include "core/data/reading_plan.h"

#include <endian.h>
#include <string.h>

static const uint64_t STREAM_ROWS_MAX = UINT64_C(1) << 62;

err reading_plan_make(uint64_t first, const uint64_t *ranges, int count, int64_t batch,
                      struct reading_plan *ret)
{
    if (count < 1 || count > STREAM_RANGES_MAX)
        return fail(ERR_PROTOCOL, "a plan of %d ranges of batches, expected 1 to %d", count,
                    (int)STREAM_RANGES_MAX);
    for (int i = 0; i < 2 * count; i++)
        if (ranges[i] > STREAM_ROWS_MAX / (uint64_t)batch || (i % 2 && ranges[i] < ranges[i - 1]))
            return fail(ERR_PROTOCOL, "a plan of batches that no stream has");
    *ret = (struct reading_plan){.first = first, .count = count};
    memcpy(ret->ranges, ranges, 2 * (size_t)count * sizeof *ranges);
    return OK;
}

bool reading_plan_find(const struct reading_plan *plan, uint64_t number, uint64_t *ret_batch)
{
    if (number < plan->first) return false;
    uint64_t left = number - plan->first;
    for (int i = 0; i < 2 * plan->count; i += 2) {
        const uint64_t batches = plan->ranges[i + 1] - plan->ranges[i];
        *ret_batch = plan->ranges[i] + left;
        if (left < batches) return true;
        left -= batches;
    }
    return false;
}

uint64_t reading_plan_end(const struct reading_plan *plan)
{
    uint64_t end = plan->first;
    for (int i = 0; i < 2 * plan->count; i += 2) end += plan->ranges[i + 1] - plan->ranges[i];
    return plan->count ? end : 0;
}

int reading_plan_pack(const struct reading_plan *plan, uint64_t ret[READING_PLAN_NUMBERS_MAX])
{
    ret[0] = htole64(plan->first);
    for (int i = 0; i < 2 * plan->count; i++) ret[1 + i] = htole64(plan->ranges[i]);
    return 1 + 2 * plan->count;
}

err reading_plan_unpack(const void *body, size_t bytes, int64_t batch, struct reading_plan *ret)
{
    uint64_t numbers[READING_PLAN_NUMBERS_MAX];
    const size_t count = bytes / sizeof *numbers;
    if (bytes % sizeof *numbers || count % 2 == 0 || count > READING_PLAN_NUMBERS_MAX)
        return fail(ERR_PROTOCOL, "%zu bytes are no plan of batches", bytes);
    memcpy(numbers, body, bytes);
    for (size_t i = 0; i < count; i++) numbers[i] = le64toh(numbers[i]);
    return reading_plan_make(numbers[0], numbers + 1, (int)(count - 1) / 2, batch, ret);
}

bool reading_plan_keeps(const struct reading_plan *plan, const struct reading_plan *now,
                        uint64_t number)
{
    uint64_t was, is;
    if (number < now->first) return true;
    return reading_plan_find(plan, number, &was) && reading_plan_find(now, number, &is) &&
           was == is;
}
