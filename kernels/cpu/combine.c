/* combine.c - combines rows of a table by ids, and their gradients. One thread computes an example,
 * or a row's gradient, so that every sum is in the order of the batch. */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

struct combine_task {
    struct combine c;
    const float *from; /* the table; dy */
    float *to;         /* y; dtable */
    bool add;
};

static void add_row(float *restrict to, const float *restrict from, float weight, int64_t width)
{
#pragma omp simd
    for (int64_t k = 0; k < width; k++) to[k] += weight * from[k];
}

static void combine_examples(const void *arguments, int64_t begin, int64_t end)
{
    const struct combine_task *t = arguments;
    const struct combine *c = &t->c;
    float *y = t->to + begin * c->width;
    if (!t->add) memset(y, 0, (size_t)((end - begin) * c->width) * sizeof *y);
    for (int64_t example = begin; example < end; example++, y += c->width) {
        const float share = element_share(c, example);
        for (int64_t at = example * c->places; at < (example + 1) * c->places; at++)
            if (element_is_row(c, at))
                add_row(y, t->from + c->ids[at] * c->width, share * element_weight(c, at),
                        c->width);
    }
}

void ISA(rows_combine)(struct device *d, const struct combine *c, float *y, const float *table,
                       bool add)
{
    const int64_t grain = SPREAD_GRAIN / (c->places * c->width + 1) + 1;
    spread(d, c->batch, grain, combine_examples, &(struct combine_task){*c, table, y, add});
}

/* Looks through all ids for rows begin to end - 1. */
static void combine_rows_back(const void *arguments, int64_t begin, int64_t end)
{
    const struct combine_task *t = arguments;
    const struct combine *c = &t->c;
    float *first = t->to + begin * c->width;
    if (!t->add) memset(first, 0, (size_t)((end - begin) * c->width) * sizeof *first);
    for (int64_t example = 0; example < c->batch; example++) {
        const float share = element_share(c, example), *dy = t->from + example * c->width;
        for (int64_t at = example * c->places; at < (example + 1) * c->places; at++)
            if (c->ids[at] >= begin && c->ids[at] < end && element_is_row(c, at))
                add_row(t->to + c->ids[at] * c->width, dy, share * element_weight(c, at), c->width);
    }
}

void ISA(rows_combine_back)(struct device *d, const struct combine *c, float *dtable,
                            const float *dy, bool add)
{
    const int64_t grain = SPREAD_GRAIN / (c->width + 1) + 1;
    spread(d, c->rows, grain, combine_rows_back, &(struct combine_task){*c, dy, dtable, add});
}

struct ids_mask {
    float *y;
    const int64_t *ids;
};

static void mask_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct ids_mask *m = arguments;
    for (int64_t i = begin; i < end; i++) m->y[i] = m->ids[i] >= 0 ? 1.0f : 0.0f;
}

void ISA(ids_mask)(struct device *d, float *y, const int64_t *ids, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, mask_range, &(struct ids_mask){y, ids});
}

static void count_examples(const void *arguments, int64_t begin, int64_t end)
{
    const struct combine_task *t = arguments;
    const struct combine *c = &t->c;
    float *y = t->to + begin * c->rows;
    memset(y, 0, (size_t)((end - begin) * c->rows) * sizeof *y);
    for (int64_t example = begin; example < end; example++, y += c->rows)
        for (int64_t at = example * c->places; at < (example + 1) * c->places; at++)
            if (element_is_row(c, at)) y[c->ids[at]] += element_weight(c, at);
}

void ISA(ids_count)(struct device *d, const struct combine *c, float *y)
{
    const int64_t grain = SPREAD_GRAIN / (c->places + c->rows) + 1;
    spread(d, c->batch, grain, count_examples, &(struct combine_task){.c = *c, .to = y});
}

static void same_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct same_ids *s = arguments;
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < s->columns; column++)
            if (element_is_same(s, row, column)) s->y[row * s->step + column] = s->value;
}

void ISA(same_ids)(struct device *d, const struct same_ids *s)
{
    spread(d, s->rows, SPREAD_GRAIN / (s->columns + 1) + 1, same_range, s);
}
