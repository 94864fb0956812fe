/* narrow.c - c = op(a) op(b) where c has two to sixteen columns: the last layer of a classifier.
 *
 * The libraries vectorise over the columns of c and leave most of a register empty. Here:
 *
 *   a [m, k]:            c[i][j] is the dot product of a row of a and a column of b, vectorised
 *                        over k; b is packed by columns, each filled with zeros to whole registers.
 *   a transposed [k, m]: vectorised over m; a block of c is built in registers with its columns as
 *                        vectors and turned round as it is stored.
 *
 * Every element of c is summed in an order that depends on k alone.
 */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

enum {
    COLUMNS_MIN = 2,
    COLUMNS_MAX = 16,
    TERMS_MAX = 4096,                  /* k; above, the libraries' cache blocking is faster */
    ROWS_MIN = 8,                      /* below, packing b costs more than it saves */
    COLUMN_STEP = 4,                   /* columns of c in registers at a time */
    ROW_STEP = LANES == 16 ? 4 : 2,    /* rows of c in registers at a time; AVX-512 has more */
    VECTOR_STEP = LANES == 16 ? 4 : 2, /* registers down a column of c */
    BLOCK_ROWS = VECTOR_STEP * LANES
};

struct narrow_task {
    struct gemm g;
    const float *packed; /* [n, padded_k] */
    int64_t padded_k;
};

bool ISA(narrow_can)(const struct gemm *g)
{
    if (g->n < COLUMNS_MIN || g->n > COLUMNS_MAX || g->k < 1 || g->k > TERMS_MAX - LANES)
        return false;
    if (g->transpose_a) return !g->transpose_b && g->m >= BLOCK_ROWS;
    return g->m >= ROWS_MIN && g->k >= LANES;
}

typedef float four __attribute__((vector_size(16)));

ELEMENT four four_load(const float *x)
{
    four v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* to[j][i] = from[i][j] for four rows and columns; steps: row strides in floats */
ELEMENT void turn_four(float *to, int64_t to_step, const float *from, int64_t from_step)
{
    const four a = four_load(from), b = four_load(from + from_step),
               c = four_load(from + 2 * from_step), d = four_load(from + 3 * from_step);
    const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
               ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
               cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const four turned[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                            __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                            __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                            __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int j = 0; j < 4; j++) memcpy(to + j * to_step, &turned[j], sizeof(four));
}

struct matrix {
    float *to;
    const float *from;
    int64_t to_step, from_step;
};

/* to[j][i] = from[i][j], i < rows, j < columns */
static void turn(const struct matrix *m, int64_t rows, int64_t columns)
{
    const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += 4) {
        const float *from = m->from + i * m->from_step;
        for (int64_t j = 0; j < whole_columns; j += 4)
            turn_four(m->to + j * m->to_step + i, m->to_step, from + j, m->from_step);
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
            m->to[j * m->to_step + i] = m->from[i * m->from_step + j];
}

/* --- a [m, k]: dot products --- */

static void pack(const struct gemm *g, float *packed, int64_t padded_k)
{
    if (!g->transpose_b) turn(&(struct matrix){packed, g->b, padded_k, g->n}, g->k, g->n);
    for (int64_t j = 0; j < g->n; j++) {
        float *column = packed + j * padded_k;
        if (g->transpose_b) memcpy(column, g->b + j * g->k, (size_t)g->k * sizeof(float));
        for (int64_t i = g->k; i < padded_k; i++) column[i] = 0.0f;
    }
}

/* Lane i is the sum of lanes i, i + 4, i + 8 ... */
ELEMENT four fold(lanes v)
{
    four part[LANES / 4];
    memcpy(part, &v, sizeof v);
    for (int i = 1; i < LANES / 4; i++) part[0] += part[i];
    return part[0];
}

/* The sums of four vectors, in one vector */
ELEMENT four sum_each(const lanes *v)
{
    four a = fold(v[0]), b = fold(v[1]), c = fold(v[2]), d = fold(v[3]);
    four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) +
           __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

ELEMENT void store_dots(const struct narrow_task *t, four sums, int64_t at, int columns)
{
    float row[4];
    memcpy(row, &sums, sizeof row);
    float *c = t->g.c + at;
    for (int j = 0; j < columns; j++) c[j] = t->g.add ? c[j] + row[j] : row[j];
}

/* rows x columns elements of c at (row, column); the first two are constants where this is inlined
 */
ELEMENT void dot_block(const struct narrow_task *t, int rows, int columns, int64_t row,
                       int64_t column)
{
    const int64_t k = t->g.k, whole = k / LANES * LANES;
    const float *a = t->g.a + row * k, *b = t->packed + column * t->padded_k;
    lanes sum[ROW_STEP][COLUMN_STEP];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < COLUMN_STEP; c++) sum[r][c] = (lanes){0};
    for (int64_t i = 0; i < whole; i += LANES) {
        lanes y[COLUMN_STEP];
        for (int c = 0; c < columns; c++) y[c] = lanes_load(b + c * t->padded_k + i);
        for (int r = 0; r < rows; r++) {
            lanes x = lanes_load(a + r * k + i);
            for (int c = 0; c < columns; c++) sum[r][c] += x * y[c];
        }
    }
    for (int r = 0; r < rows && whole < k; r++) {
        float rest[LANES] = {0};
        memcpy(rest, a + r * k + whole, (size_t)(k - whole) * sizeof(float));
        lanes x = lanes_load(rest);
        for (int c = 0; c < columns; c++) sum[r][c] += x * lanes_load(b + c * t->padded_k + whole);
    }
    for (int r = 0; r < rows; r++)
        store_dots(t, sum_each(sum[r]), (row + r) * t->g.n + column, columns);
}

ELEMENT void dot_rows(const struct narrow_task *t, int rows, int64_t row)
{
    const int64_t n = t->g.n;
    int64_t column = 0;
    for (; column + COLUMN_STEP <= n; column += COLUMN_STEP)
        dot_block(t, rows, COLUMN_STEP, row, column);
    if (n - column == 3) dot_block(t, rows, 3, row, column);
    if (n - column == 2) dot_block(t, rows, 2, row, column);
    if (n - column == 1) dot_block(t, rows, 1, row, column);
}

static void dot_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct narrow_task *t = arguments;
    int64_t row = begin;
    for (; row + ROW_STEP <= end; row += ROW_STEP) dot_rows(t, ROW_STEP, row);
    for (; row < end; row++) dot_rows(t, 1, row);
}

/* --- a [k, m]: columns of c as vectors --- */

/* block [n, BLOCK_ROWS] = columns of c from `column`, for the rows of c from `row` */
ELEMENT void column_block(const struct gemm *g, float *block, int columns, int64_t row,
                          int64_t column)
{
    lanes sum[COLUMN_STEP][VECTOR_STEP];
    for (int c = 0; c < columns; c++)
        for (int v = 0; v < VECTOR_STEP; v++) sum[c][v] = (lanes){0};
    for (int64_t i = 0; i < g->k; i++) {
        const float *a = g->a + i * g->m + row, *b = g->b + i * g->n + column;
        lanes x[VECTOR_STEP];
        for (int v = 0; v < VECTOR_STEP; v++) x[v] = lanes_load(a + v * LANES);
        for (int c = 0; c < columns; c++)
            for (int v = 0; v < VECTOR_STEP; v++) sum[c][v] += x[v] * b[c];
    }
    for (int c = 0; c < columns; c++)
        memcpy(block + (column + c) * BLOCK_ROWS, sum[c], sizeof sum[c]);
}

static void column_rows(const struct gemm *g, float *block, int64_t row)
{
    const int64_t n = g->n;
    int64_t column = 0;
    for (; column + COLUMN_STEP <= n; column += COLUMN_STEP)
        column_block(g, block, COLUMN_STEP, row, column);
    if (n - column == 3) column_block(g, block, 3, row, column);
    if (n - column == 2) column_block(g, block, 2, row, column);
    if (n - column == 1) column_block(g, block, 1, row, column);
}

/* Rows from `first` of the block to c; those before it were stored with the block before. */
static void store_block(const struct gemm *g, const float *block, int64_t row, int64_t first)
{
    float tile[BLOCK_ROWS * COLUMNS_MAX]; /* [BLOCK_ROWS, n] */
    turn(&(struct matrix){tile, block, g->n, BLOCK_ROWS}, g->n, BLOCK_ROWS);
    float *c = g->c + row * g->n;
    for (int64_t i = first * g->n; i < BLOCK_ROWS * g->n; i++)
        c[i] = g->add ? c[i] + tile[i] : tile[i];
}

static void column_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct gemm g = ((const struct narrow_task *)arguments)->g;
    float block[COLUMNS_MAX * BLOCK_ROWS];
    for (int64_t done = begin; done < end; done += BLOCK_ROWS) {
        int64_t row = done + BLOCK_ROWS <= end ? done : end - BLOCK_ROWS;
        column_rows(&g, block, row);
        store_block(&g, block, row, done - row);
    }
}

void ISA(narrow_run)(struct device *d, const struct gemm *g, float *packed)
{
    struct narrow_task t = {
        .g = *g, .packed = packed, .padded_k = (g->k + LANES - 1) / LANES * LANES};
    int64_t grain = 2 * SPREAD_GRAIN * LANES / (g->k * g->n) + 1;
    if (g->transpose_a) {
        spread(d, g->m, grain < BLOCK_ROWS ? BLOCK_ROWS : grain, column_range, &t);
        return;
    }
    pack(g, packed, t.padded_k);
    spread(d, g->m, grain, dot_range, &t);
}
