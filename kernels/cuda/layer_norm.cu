/* layer_norm.cu - normalizes each row to mean 0 and variance 1. */
#include "kernels/cuda/rows.cuh"

struct layer_norm_row {
    enum { IS_SUM = false, BLOCKS = 2 };
    struct layer_norm v;

    template <typename Row>
    __device__ double power_sum(const Row &row, float *held, float less, bool is_square) const
    {
        double sum = 0;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(held, v.x, at);
            row.each(at, [&](int i, int64_t) {
                const float x = held[i] - less;
                sum += is_square ? x * x : x;
            });
        }
        return row.group.sum(sum);
    }

    template <typename Row> __device__ double operator()(const Row &row) const
    {
        float held[HELD], result[HELD];
        const float mean = (float)(power_sum(row, held, 0.0f, false) / (double)v.columns);
        const double variance = power_sum(row, held, mean, true) / (double)v.columns;
        const float inverse = 1.0f / sqrtf((float)variance + v.epsilon);
        if (row.columns > 0 && row.group.rank == 0) v.inverse[row.row] = inverse;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(held, v.x, at);
            row.each(at, [&](int i, int64_t column) {
                held[i] = (held[i] - mean) * inverse;
                result[i] = held[i] * v.gamma[column] + v.beta[column];
            });
            row.write(v.normal, held, at);
            row.write(v.y, result, at);
        }
        return 0;
    }
};

void cuda_layer_norm(struct device *d, const struct layer_norm *v)
{
    if (v->rows == 0) return;
    each_row(d, "layer_norm", layer_norm_row{*v}, {v->rows, v->columns},
             is_packed(v->y) && is_packed(v->x) && is_packed(v->normal));
}

struct layer_norm_back_row {
    enum { IS_SUM = false, BLOCKS = 2 };
    struct layer_norm v;

    template <typename Row> __device__ double operator()(const Row &row) const
    {
        float slopes[HELD], normal[HELD], before[HELD];
        double sum = 0, products = 0;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(slopes, v.dy, at);
            row.read(normal, v.normal, at);
            row.each(at, [&](int i, int64_t column) {
                const float slope = slopes[i] * v.gamma[column];
                sum += slope;
                products += slope * normal[i];
            });
        }
        const float mean = (float)(row.group.sum(sum) / (double)v.columns);
        const float product = (float)(row.group.sum(products) / (double)v.columns);
        const float inverse = row.columns > 0 ? v.inverse[row.row] : 0.0f;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(slopes, v.dy, at);
            row.read(normal, v.normal, at);
            if (v.add) row.read(before, v.dx, at);
            row.each(at, [&](int i, int64_t column) {
                const float g = (slopes[i] * v.gamma[column] - mean - normal[i] * product) * inverse;
                slopes[i] = v.add ? before[i] + g : g;
            });
            row.write(v.dx, slopes, at);
        }
        return 0;
    }
};

void cuda_layer_norm_back(struct device *d, const struct layer_norm *v)
{
    if (v->rows == 0) return;
    each_row(d, "layer_norm_back", layer_norm_back_row{*v}, {v->rows, v->columns},
             is_packed(v->dx) && is_packed(v->dy) && is_packed(v->normal));
}
