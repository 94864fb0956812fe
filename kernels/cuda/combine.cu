/* combine.cu - rows of a table by ids, and their gradients, each summed by one thread. */
#include "kernels/cuda/launch.cuh"

struct combine_body {
    struct combine c;
    float *y;
    const float *table;
    bool add;

    __device__ void operator()(int64_t index) const
    {
        const int64_t example = quotient_of(index, c.width), k = index - example * c.width;
        const float share = element_share(&c, example);
        float sum = add ? y[index] : 0.0f;
        for (int64_t at = example * c.places; at < (example + 1) * c.places; at++)
            if (element_is_row(&c, at)) sum += share * element_weight(&c, at) * table[c.ids[at] * c.width + k];
        y[index] = sum;
    }
};

void cuda_rows_combine(struct device *d, const struct combine *c, float *y, const float *table, bool add)
{
    each(d, "rows_combine", combine_body{*c, y, table, add}, c->batch * c->width);
}

/* A thread has one place of the width of the row that an id of the batch names for the first time,
 * and looks at the ids behind it for more: the work does not depend on the size of the table. */
struct combine_back_body {
    struct combine c;
    float *dtable;
    const float *dy;

    __device__ bool is_like(int64_t at, int64_t place) const
    {
        return c.ids[at] == c.ids[place] && element_is_row(&c, at);
    }

    __device__ bool is_first(int64_t place) const
    {
        for (int64_t at = 0; at < place; at++)
            if (is_like(at, place)) return false;
        return true;
    }

    __device__ void operator()(int64_t index) const
    {
        const int64_t place = quotient_of(index, c.width), k = index - place * c.width;
        if (!element_is_row(&c, place) || !is_first(place)) return;
        float *to = dtable + c.ids[place] * c.width + k, sum = *to;
        for (int64_t at = place; at < c.batch * c.places; at++) {
            if (!is_like(at, place)) continue;
            const int64_t example = quotient_of(at, c.places);
            sum += element_share(&c, example) * element_weight(&c, at) * dy[example * c.width + k];
        }
        *to = sum;
    }
};

void cuda_rows_combine_back(struct device *d, const struct combine *c, float *dtable, const float *dy, bool add)
{
    if (!add) cuda_fill(d, dtable, 0.0f, c->rows * c->width);
    each(d, "rows_combine_back", combine_back_body{*c, dtable, dy}, c->batch * c->places * c->width);
}

struct ids_mask_body {
    float *y;
    const int64_t *ids;

    __device__ void operator()(int64_t i) const
    {
        y[i] = ids[i] >= 0 ? 1.0f : 0.0f;
    }
};

void cuda_ids_mask(struct device *d, float *y, const int64_t *ids, int64_t n)
{
    each(d, "ids_mask", ids_mask_body{y, ids}, n);
}

struct ids_count_body {
    struct combine c;
    float *y;

    __device__ void operator()(int64_t example) const
    {
        for (int64_t at = example * c.places; at < (example + 1) * c.places; at++)
            if (element_is_row(&c, at)) y[example * c.rows + c.ids[at]] += element_weight(&c, at);
    }
};

void cuda_ids_count(struct device *d, const struct combine *c, float *y)
{
    cuda_fill(d, y, 0.0f, c->batch * c->rows);
    each(d, "ids_count", ids_count_body{*c, y}, c->batch);
}

struct same_ids_body {
    struct same_ids s;

    __device__ void operator()(int64_t index) const
    {
        const int64_t row = quotient_of(index, s.columns), column = index - row * s.columns;
        if (element_is_same(&s, row, column)) s.y[row * s.step + column] = s.value;
    }
};

void cuda_same_ids(struct device *d, const struct same_ids *s)
{
    each(d, "same_ids", same_ids_body{*s}, s->rows * s->columns);
}
