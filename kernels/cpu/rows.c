/* rows.c - kernels on the rows of a matrix: softmax and the sum over rows. */
#include "kernels/cpu/chunk.h"
#include "kernels/cpu/isa.h"

struct softmax {
    float *y;       /* [rows, columns] */
    const float *x; /* the same */
    int64_t columns;
};

/* Rows that are worth a thread; a short row costs as much as a chunk */
static int64_t softmax_grain(int64_t columns)
{
    return SPREAD_GRAIN / 4 / (columns + CHUNK) + 1;
}

static void softmax_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct softmax s = *(const struct softmax *)arguments;
    for (int64_t row = begin; row < end; row++) {
        const float *x = s.x + row * s.columns;
        float *y = s.y + row * s.columns;
        float factor = 1.0f / row_exp(y, x, row_max(x, s.columns), s.columns);
        for (int64_t i = 0; i < s.columns; i++) y[i] *= factor;
    }
}

void ISA(softmax)(struct device *d, float *y, const float *x, int64_t rows, int64_t columns)
{
    spread(d, rows, softmax_grain(columns), softmax_rows, &(struct softmax){y, x, columns});
}

struct softmax_back {
    float *dx;
    const float *dy, *y;
    int64_t columns;
    bool add;
};

static float row_dot(const float *a, const float *b, int64_t columns)
{
    double sum[CHUNK] = {0};
    float x[CHUNK], y[CHUNK];
    for (int64_t at = 0; at < columns; at += CHUNK) {
        int count = chunk_count(columns - at);
        chunk_load(x, a + at, count, 0.0f);
        chunk_load(y, b + at, count, 0.0f);
#pragma omp simd
        for (int i = 0; i < CHUNK; i++) sum[i] += (double)x[i] * y[i];
    }
    return (float)chunk_sum(sum);
}

/* dx = y (dy - sum(dy y)) */
static void softmax_back_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct softmax_back s = *(const struct softmax_back *)arguments;
    for (int64_t row = begin; row < end; row++) {
        const float *y = s.y + row * s.columns, *dy = s.dy + row * s.columns;
        float *dx = s.dx + row * s.columns;
        float dot = row_dot(dy, y, s.columns);
        if (s.add) {
#pragma omp simd
            for (int64_t i = 0; i < s.columns; i++) dx[i] += y[i] * (dy[i] - dot);
        } else {
#pragma omp simd
            for (int64_t i = 0; i < s.columns; i++) dx[i] = y[i] * (dy[i] - dot);
        }
    }
}

void ISA(softmax_back)(struct device *d, float *dx, const float *dy, const float *y, int64_t rows,
                       int64_t columns, bool add)
{
    spread(d, rows, softmax_grain(columns), softmax_back_rows,
           &(struct softmax_back){dx, dy, y, columns, add});
}

/* Sums over rows: COLUMN_BLOCK columns at a time, in slices of rows whose number depends only on
 * the shape; in float within RUN rows, in double beyond. */
enum { COLUMN_BLOCK = 64, ROW_SLICES_MAX = 16, ROW_SLICE_MIN = 512, RUN = 32 };

struct column_sums_task {
    const float *x; /* the first column of the block */
    int64_t rows, columns, slice_rows;
    int block;
    double (*partial)[COLUMN_BLOCK]; /* [slice][column of the block] */
};

/* sum [COLUMN_BLOCK] = rows begin to end - 1, in floats: at most RUN of them */
static void sum_run(float *restrict sum, const struct column_sums_task *c, int64_t begin,
                    int64_t end)
{
    memset(sum, 0, COLUMN_BLOCK * sizeof(float));
    for (int64_t row = begin; row < end; row++) {
        const float *restrict x = c->x + row * c->columns;
        if (c->block == COLUMN_BLOCK)
            for (int i = 0; i < COLUMN_BLOCK; i++) sum[i] += x[i];
        else
            for (int i = 0; i < c->block; i++) sum[i] += x[i];
    }
}

static void column_slices(const void *arguments, int64_t begin, int64_t end)
{
    const struct column_sums_task c = *(const struct column_sums_task *)arguments;
    float run[COLUMN_BLOCK];
    for (int64_t slice = begin; slice < end; slice++) {
        double *sum = c.partial[slice];
        memset(sum, 0, COLUMN_BLOCK * sizeof *sum);
        int64_t row = slice * c.slice_rows, last = row + c.slice_rows;
        if (last > c.rows) last = c.rows;
        for (; row < last; row += RUN) {
            sum_run(run, &c, row, row + RUN < last ? row + RUN : last);
            for (int i = 0; i < COLUMN_BLOCK; i++) sum[i] += run[i];
        }
    }
}

void ISA(sum_rows)(struct device *d, float *sums, const float *x, int64_t rows, int64_t columns,
                   bool add)
{
    double partial[ROW_SLICES_MAX][COLUMN_BLOCK];
    int64_t slices = rows / ROW_SLICE_MIN;
    slices = slices < 1 ? 1 : slices > ROW_SLICES_MAX ? ROW_SLICES_MAX : slices;
    const int64_t slice_rows = (rows + slices - 1) / slices;

    for (int64_t column = 0; column < columns; column += COLUMN_BLOCK) {
        int block = columns - column < COLUMN_BLOCK ? (int)(columns - column) : COLUMN_BLOCK;
        int64_t grain = rows * block < 2 * SPREAD_GRAIN ? slices + 1 : 1;
        spread(d, slices, grain, column_slices,
               &(struct column_sums_task){x + column, rows, columns, slice_rows, block, partial});
        for (int i = 0; i < block; i++) {
            double sum = 0;
            for (int64_t slice = 0; slice < slices; slice++) sum += partial[slice][i];
            sums[column + i] = (add ? sums[column + i] : 0.0f) + (float)sum;
        }
    }
}
