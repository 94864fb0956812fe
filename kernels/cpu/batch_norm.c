/* batch_norm.c - batch normalization per channel: one pass over memory for mean and variance, one
 * for the sums of gradients, one for the result.
 *
 * Rows are cut into parts, whose sums are added in order, and a part into cache-sized tiles,
 * processed one register of channels at a time. All of that depends on the shape only. Squares are
 * taken of the distance from the mean of the tile, and shifted to the first row in double: a mean
 * far from zero, or a first row far from the others, costs no precision.
 */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

/* Floats of a tile, and rows that are summed in float before adding to the double sums */
enum { TILE = 4096, TOGETHER = 8 };

struct norm_walk {
    struct batch_norm v;
    int64_t width;     /* of a part's sums, rounded up to whole registers */
    int64_t part_rows; /* of each but the last */
    int64_t parts, tile_rows;
};

static struct norm_walk walk_of(const struct batch_norm *v)
{
    const int64_t even = (v->rows + BATCH_NORM_PARTS - 1) / BATCH_NORM_PARTS;
    const int64_t least = SPREAD_GRAIN / 4 / (v->channels + 1) + 1;
    struct norm_walk w = {.v = *v, .part_rows = even > least ? even : least};
    w.width = batch_norm_partials(v->channels) / BATCH_NORM_PARTS / 2;
    w.parts = (v->rows + w.part_rows - 1) / w.part_rows;
    w.tile_rows = (TILE / w.width / TOGETHER + 1) * TOGETHER;
    return w;
}

/* The two sums per channel of a part */
static double *sums_of(const struct norm_walk *w, int64_t part)
{
    return w->v.partial + part * 2 * w->width;
}

typedef void tile_body(const struct norm_walk *, int64_t first, int64_t rows, double *sums);

/* The parts begin .. end - 1, a tile at a time */
ELEMENT void each_tile(const struct norm_walk *w, int64_t begin, int64_t end, tile_body *body)
{
    for (int64_t part = begin; part < end; part++) {
        const int64_t first = part * w->part_rows;
        const int64_t last = first + w->part_rows < w->v.rows ? first + w->part_rows : w->v.rows;
        double *sums = sums_of(w, part);
        memset(sums, 0, 2 * (size_t)w->width * sizeof *sums);
        for (int64_t row = first; row < last; row += w->tile_rows)
            body(w, row, last - row < w->tile_rows ? last - row : w->tile_rows, sums);
    }
}

/* Replaces the two rows of sums of the first part by those of all parts */
static void add_parts(const struct norm_walk *w)
{
    double *to = w->v.partial;
    for (int64_t part = 1; part < w->parts; part++)
        for (int64_t i = 0; i < 2 * w->width; i++) to[i] += sums_of(w, part)[i];
}

/* Loads the first columns of a register at the end of a row */
ELEMENT lanes columns_load(const float *x, int count)
{
    if (count == LANES) return lanes_load(x);
    float some[LANES];
    for (int i = 0; i < LANES; i++) some[i] = i < count ? x[i] : 0.0f;
    return lanes_load(some);
}

ELEMENT void columns_add(double *sums, lanes some)
{
    float each[LANES];
    memcpy(each, &some, sizeof each);
    for (int i = 0; i < LANES; i++) sums[i] += each[i];
}

/* ---- mean and variance ---- */

/* Sums of the distance from the first row, and of its square, for numbers near to each other */
ELEMENT void moments_columns(const float *x, int64_t stride, int64_t rows, int count,
                             const float *first, double *sum, double *square)
{
    lanes total = {0};
    for (int64_t row = 0; row < rows; row++) total += columns_load(x + row * stride, count);
    const lanes middle = total / (float)rows, from = columns_load(first, count);
    double some[LANES] = {0}, squares[LANES] = {0};
    for (int64_t row = 0; row < rows; row += TOGETHER) {
        const int64_t end = rows - row < TOGETHER ? rows : row + TOGETHER;
        lanes few = {0}, few_squares = {0};
        for (int64_t r = row; r < end; r++) {
            const lanes beyond = columns_load(x + r * stride, count) - middle;
            few += beyond;
            few_squares += beyond * beyond;
        }
        columns_add(some, few);
        columns_add(squares, few_squares);
    }
    for (int i = 0; i < LANES; i++) {
        const double shift = (double)middle[i] - (double)from[i], n = (double)rows;
        sum[i] += some[i] + n * shift;
        square[i] += squares[i] + shift * (2 * some[i] + n * shift);
    }
}

static void moments_tile(const struct norm_walk *w, int64_t first, int64_t rows, double *sums)
{
    const int64_t channels = w->v.channels;
    for (int64_t at = 0; at < channels; at += LANES) {
        const float *x = w->v.x + first * channels + at, *from = w->v.x + at;
        double *sum = sums + at, *square = sums + w->width + at;
        if (channels - at >= LANES)
            moments_columns(x, channels, rows, LANES, from, sum, square);
        else
            moments_columns(x, channels, rows, (int)(channels - at), from, sum, square);
    }
}

static void moments_range(const void *arguments, int64_t begin, int64_t end)
{
    each_tile(arguments, begin, end, moments_tile);
}

void ISA(batch_norm_moments)(struct device *d, const struct batch_norm *v)
{
    const struct norm_walk w = walk_of(v);
    const double share = 1.0 / (double)v->rows;
    spread(d, w.parts, 1, moments_range, &w);
    add_parts(&w);
    for (int64_t i = 0; i < v->channels; i++) {
        const double mean = v->partial[i] * share;
        const double variance = v->partial[w.width + i] * share - mean * mean;
        v->mean[i] = (float)((double)v->x[i] + mean);
        v->variance[i] = variance < 0 ? 0.0f : (float)variance;
    }
}

/* ---- backward ---- */

ELEMENT void sums_columns(const float *x, const float *dy, int64_t stride, int64_t rows, int count,
                          const float *from, double *sum, double *product)
{
    const lanes mean = columns_load(from, count);
    for (int64_t row = 0; row < rows; row += TOGETHER) {
        const int64_t end = rows - row < TOGETHER ? rows : row + TOGETHER;
        lanes few = {0}, products = {0};
        for (int64_t r = row; r < end; r++) {
            const lanes slope = columns_load(dy + r * stride, count);
            few += slope;
            products += (columns_load(x + r * stride, count) - mean) * slope;
        }
        columns_add(sum, few);
        columns_add(product, products);
    }
}

static void sums_tile(const struct norm_walk *w, int64_t first, int64_t rows, double *sums)
{
    const int64_t channels = w->v.channels;
    for (int64_t at = 0; at < channels; at += LANES) {
        const float *x = w->v.x + first * channels + at, *dy = w->v.dy + first * channels + at;
        const float *mean = w->v.mean + at;
        double *sum = sums + at, *product = sums + w->width + at;
        if (channels - at >= LANES)
            sums_columns(x, dy, channels, rows, LANES, mean, sum, product);
        else
            sums_columns(x, dy, channels, rows, (int)(channels - at), mean, sum, product);
    }
}

static void sums_range(const void *arguments, int64_t begin, int64_t end)
{
    each_tile(arguments, begin, end, sums_tile);
}

void ISA(batch_norm_sums)(struct device *d, const struct batch_norm *v)
{
    const struct norm_walk w = walk_of(v);
    spread(d, w.parts, 1, sums_range, &w);
    add_parts(&w);
    for (int64_t i = 0; i < v->channels; i++) v->sum[i] = (float)v->partial[i];
    for (int64_t i = 0; i < v->channels; i++) v->product[i] = (float)v->partial[w.width + i];
}

static void back_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct batch_norm v = *(const struct batch_norm *)arguments;
    for (int64_t row = begin; row < end; row++) {
        const float *x = v.x + row * v.channels, *dy = v.dy + row * v.channels;
        float *dx = v.dx + row * v.channels;
#pragma omp simd
        for (int64_t i = 0; i < v.channels; i++) {
            const float g = dy[i] * v.scale[i] + (x[i] - v.mean[i]) * v.slope[i] + v.offset[i];
            dx[i] = v.add ? dx[i] + g : g;
        }
    }
}

void ISA(batch_norm_back)(struct device *d, const struct batch_norm *v)
{
    spread(d, v->rows, SPREAD_GRAIN / 4 / (v->channels + 1) + 1, back_range, v);
}
