/* quantiles.c - see quantiles.h. */
#include "core/data/stats/quantiles.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 16 };

struct weighted {
    double number;
    int64_t weight;
};

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_weighted(const void *a, const void *b)
{
    return compare_numbers(&((const struct weighted *)a)->number,
                           &((const struct weighted *)b)->number);
}

static err make_room(struct quantile_level *level)
{
    if (level->count < level->capacity) return OK;
    const int capacity = level->capacity ? 2 * level->capacity : CAPACITY_MIN;
    double *at = realloc(level->at, (size_t)capacity * sizeof *at);
    if (!at) return fail(ERR_MEMORY, "no memory for quantiles");
    level->at = at;
    level->capacity = capacity;
    return OK;
}

static err put(struct quantile_level *level, double number)
{
    TRY(make_room(level));
    level->at[level->count++] = number;
    return OK;
}

/* Moves half of each full level up, which may fill the next one. */
static err settle(struct quantiles *q)
{
    for (int i = 0; q->levels[i].count == QUANTILES_EXACT; i++) {
        struct quantile_level *level = &q->levels[i];
        if (i + 1 == QUANTILE_LEVELS_MAX) return fail(ERR_INPUT, "too many numbers for quantiles");
        qsort(level->at, QUANTILES_EXACT, sizeof *level->at, compare_numbers);
        for (int k = level->keeps_second; k < QUANTILES_EXACT; k += 2)
            TRY(put(&q->levels[i + 1], level->at[k]));
        if (!level->keeps_second) q->error += INT64_C(1) << i;
        level->keeps_second = !level->keeps_second;
        level->count = 0;
    }
    return OK;
}

/* Full levels are settled before adding, so that QUANTILES_EXACT numbers are still exact. */
err quantiles_add(struct quantiles *q, double number)
{
    TRY(settle(q));
    TRY(put(&q->levels[0], number));
    q->count++;
    return OK;
}

static int list(const struct quantiles *q, struct weighted *ret)
{
    int count = 0;
    for (int i = 0; i < QUANTILE_LEVELS_MAX; i++)
        for (int k = 0; k < q->levels[i].count; k++)
            ret[count++] = (struct weighted){q->levels[i].at[k], INT64_C(1) << i};
    qsort(ret, (size_t)count, sizeof *ret, compare_weighted);
    return count;
}

err quantiles_find(const struct quantiles *q, const double *fractions, int count, double *ret)
{
    struct weighted *all = malloc((size_t)QUANTILE_LEVELS_MAX * QUANTILES_EXACT * sizeof *all);
    if (!all) return fail(ERR_MEMORY, "no memory for quantiles");
    const int last = list(q, all) - 1;
    int64_t before = 0;
    for (int i = 0, k = 0; i < count; i++) {
        const int64_t rank = (int64_t)(fractions[i] * (double)(q->count - 1) + 0.5);
        while (k < last && before + all[k].weight <= rank) before += all[k++].weight;
        ret[i] = all[k].number;
    }
    free(all);
    return OK;
}

void quantiles_free(struct quantiles *q)
{
    for (int i = 0; i < QUANTILE_LEVELS_MAX; i++) free(q->levels[i].at);
    *q = (struct quantiles){0};
}
