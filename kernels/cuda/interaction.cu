/* interaction.cu - dot products among the vectors of an example, one by one or summed. */
#include "kernels/cuda/launch.cuh"

/* The example and the vector of a row, if an example has one row per vector */
struct vector_place {
    int64_t example, i;
};

ON_GPU vector_place place_of(const interaction &v, int64_t row)
{
    const int64_t example = quotient_of(row, v.vectors);
    return {example, row - example * v.vectors};
}

ON_GPU const float *vector_of(const interaction &v, int64_t example, int64_t i)
{
    return v.x[element_source(&v, i)] + element_vector(&v, example, i);
}

/* Pairs per example */
ON_GPU int64_t pairs_of(const interaction &v)
{
    return element_pair(v.vectors, 0);
}

/* One warp computes all pairs of a vector with those before it. */
static __global__ void dot_rows(struct interaction v, float *y)
{
    const int lane = lane_index();
    for (int64_t row = grid_warp(); row < v.batch * v.vectors; row += grid_warps()) {
        const vector_place at = place_of(v, row);
        const float *own = vector_of(v, at.example, at.i);
        float *to = y + at.example * pairs_of(v);
        for (int64_t j = 0; j < at.i; j++) {
            const float *other = vector_of(v, at.example, j);
            float sum = 0;
            for (int64_t k = lane; k < v.width; k += WARP) sum += own[k] * other[k];
            sum = warp_sum(sum);
            if (lane == 0) to[element_pair(at.i, j)] = sum;
        }
    }
}

void cuda_dot_interaction(struct device *d, const struct interaction *v, float *y)
{
    const int64_t rows = v->batch * v->vectors;
    if (interaction_pairs(v) > 0 && rows > 0)
        launch(d, {"dot_interaction", row_blocks(rows), 1}, dot_rows, *v, y);
}

/* One thread computes element k of all vectors of an example, one after the other, because two
 * sources may share a gradient. */
struct back_body {
    struct interaction v;
    const float *dy;

    __device__ void operator()(int64_t index) const
    {
        const int64_t example = quotient_of(index, v.width), k = index - example * v.width;
        const float *slopes = dy + example * pairs_of(v);
        for (int64_t i = 0; i < v.vectors; i++) {
            const int source = element_source(&v, i);
            if (!v.dx[source]) continue;
            float *dx = v.dx[source] + element_vector(&v, example, i) + k;
            float sum = v.add[source] ? *dx : 0.0f;
            for (int64_t j = 0; j < v.vectors; j++)
                if (j != i) sum += slopes[element_pair(i, j)] * vector_of(v, example, j)[k];
            *dx = sum;
        }
    }
};

void cuda_dot_interaction_back(struct device *d, const struct interaction *v, const float *dy)
{
    each(d, "dot_interaction_back", back_body{*v, dy}, v->batch * v->width);
}

/* One warp per example; each number is multiplied by the sum of those before it. */
static __global__ void sum_pairs(struct interaction v, float *y)
{
    const int lane = lane_index();
    for (int64_t example = grid_warp(); example < v.batch; example += grid_warps()) {
        float sum = 0;
        for (int64_t k = lane; k < v.width; k += WARP) {
            float before = 0;
            for (int64_t i = 0; i < v.vectors; i++) {
                const float x = vector_of(v, example, i)[k];
                sum += x * before;
                before += x;
            }
        }
        sum = warp_sum(sum);
        if (lane == 0) y[example] = sum;
    }
}

void cuda_factorization_machine(struct device *d, const struct interaction *v, float *y)
{
    if (v->batch > 0)
        launch(d, {"factorization_machine", row_blocks(v->batch), 1}, sum_pairs, *v, y);
}

/* One thread computes element k of all vectors of an example, as above. */
struct back_sum_body {
    struct interaction v;
    const float *dy;

    __device__ void operator()(int64_t index) const
    {
        const int64_t example = quotient_of(index, v.width), k = index - example * v.width;
        float all = 0;
        for (int64_t i = 0; i < v.vectors; i++) all += vector_of(v, example, i)[k];
        for (int64_t i = 0; i < v.vectors; i++) {
            const int source = element_source(&v, i);
            if (!v.dx[source]) continue;
            float *dx = v.dx[source] + element_vector(&v, example, i) + k;
            const float others = all - vector_of(v, example, i)[k];
            *dx = (v.add[source] ? *dx : 0.0f) + dy[example] * others;
        }
    }
};

void cuda_factorization_machine_back(struct device *d, const struct interaction *v, const float *dy)
{
    each(d, "factorization_machine_back", back_sum_body{*v, dy}, v->batch * v->width);
}
