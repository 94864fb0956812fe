/* combine.cu - combines rows of a table by ids, and their gradients, each summed by one thread in a
 * fixed order. */
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

/* Block b of n computes the rows with row mod n = b. It searches all ids for them, with one thread
 * per id, and sums what it finds in the order of the batch, with one thread per element of a row.
 * So the total work grows with the ids, not with their square, and not with the table. */
struct combine_back {
    struct combine c;
    float *dtable;
    const float *dy;
    int span; /* threads per row; for narrow rows a block has several groups of them */

    /* Index among the block's own rows of the row at this place; -1: another block's */
    __device__ int64_t own_row(int64_t place) const
    {
        if (place >= c.batch * c.places || !element_is_row(&c, place)) return -1;
        const int64_t row = c.ids[place], own = quotient_of(row, gridDim.x);
        return row - own * gridDim.x == blockIdx.x ? own : -1;
    }

    /* The contribution of a place to element k of a row */
    __device__ float part(int64_t place, int64_t k) const
    {
        const int64_t example = quotient_of(place, c.places);
        return element_share(&c, example) * element_weight(&c, place) * dy[example * c.width + k];
    }
};

enum { PARTS_TOGETHER = 8 }; /* values that a thread reads before it adds the first */

/* Adds those of the found places whose row belongs to this thread's group */
ON_GPU void add_found(const struct combine_back &b, int64_t first, const int *found, int count)
{
    const int group = (int)threadIdx.x / b.span, groups = BLOCK / b.span;
    for (int64_t k = threadIdx.x - group * b.span; k < b.c.width; k += b.span)
        for (int i = 0; i < count; i += PARTS_TOGETHER) {
            float part[PARTS_TOGETHER], *to[PARTS_TOGETHER];
#pragma unroll
            for (int j = 0; j < PARTS_TOGETHER; j++) {
                const int64_t place = first + found[i + j < count ? i + j : i];
                const int64_t own = b.own_row(place), turn = own - quotient_of(own, groups) * groups;
                const bool is_mine = i + j < count && turn == group;
                to[j] = is_mine ? b.dtable + b.c.ids[place] * b.c.width + k : NULL;
                part[j] = is_mine ? b.part(place, k) : 0.0f;
            }
#pragma unroll
            for (int j = 0; j < PARTS_TOGETHER; j++)
                if (to[j]) *to[j] += part[j];
        }
}

/* Lists the threads of the block with is_found, in order; returns how many. All threads must call
 * it. */
ON_GPU int find_threads(bool is_found, int *found)
{
    __shared__ int counts[BLOCK_WARPS];
    const int warp = (int)threadIdx.x / WARP;
    const unsigned lanes = __ballot_sync(0xffffffffu, is_found);
    int before = 0, all = 0;
    if (lane_index() == 0) counts[warp] = __popc(lanes);
    __syncthreads();
    for (int i = 0; i < BLOCK_WARPS; i++) {
        before += i < warp ? counts[i] : 0;
        all += counts[i];
    }
    if (is_found) found[before + __popc(lanes & ((1u << lane_index()) - 1))] = (int)threadIdx.x;
    __syncthreads();
    return all;
}

static __global__ void __launch_bounds__(BLOCK) combine_back_rows(struct combine_back b)
{
    __shared__ int found[BLOCK];
    for (int64_t first = 0; first < b.c.batch * b.c.places; first += BLOCK) {
        const int count = find_threads(b.own_row(first + threadIdx.x) >= 0, found);
        add_found(b, first, found, count);
    }
}

void cuda_rows_combine_back(struct device *d, const struct combine *c, float *dtable, const float *dy, bool add)
{
    enum { BLOCKS_MAX = 1024 };
    const int64_t n = c->batch * c->places;
    const combine_back b = {*c, dtable, dy, c->width < BLOCK ? (int)c->width : BLOCK};
    if (!add) cuda_fill(d, dtable, 0.0f, c->rows * c->width);
    if (n == 0 || c->rows == 0 || c->width == 0) return;
    launch(d, {"rows_combine_back", blocks_for(n < c->rows ? n : c->rows, 1, BLOCKS_MAX), 1},
           combine_back_rows, b);
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
