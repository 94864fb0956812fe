/* fold.c - broadcasting, reductions over axes, transposes: evaluates a formula for all iterations
 * of loops, and sums over some of the loops.
 *
 * Processes a block of neighbouring elements at a time: neighbours in the result, or if only folded
 * elements are contiguous, in those. If the last loop is short, as over channels, a block has
 * several rows of it. The choice, and the order of each sum, depend only on the loops, not on batch
 * or threads.
 */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

enum { FOLD_BLOCK = 256, FOLD_LANES = 16, STRAIGHT_BLOCK = 4096, OPERANDS = 3 };

/* Neighbours in rows, `row` floats apart; at: the first, or NULL */
struct fold_rows {
    const float *at;
    int64_t row;
};

/* The last loop runs in blocks, all others element by element. */
struct walk {
    struct fold f;
    struct fold_loops outer; /* the other kept loops */
    int64_t n, block;        /* iterations of the blocked loop, which is kept; at most this many per
                                block */
    int64_t blocks;          /* number of blocks */
    int64_t y, a, b, c;      /* its strides */
    bool is_along;           /* blocks are along the last folded loop; n is 1 */
    bool is_straight;        /* all operands are contiguous and the formula's value is the result */
    struct fold_loops inner; /* the other folded loops */
    int64_t folded_places;   /* of `inner` */
    int width;               /* of rows, of which blocks consist then; 0: no rows */
    int64_t row[OPERANDS];   /* stride from row to row; rows are folded, or the blocked loop */
};

/* Contiguous neighbours are used in place, others copied to room. */
ELEMENT const float *gather(float *room, const float *x, int64_t step, int count)
{
    if (!x || step == 1) return x;
    for (int k = 0; k < count; k++) room[k] = x[k * step];
    return room;
}

/* Evaluates the formula in rows of n elements, into v; operands that it does not read may be NULL
 */
ELEMENT void formula(enum fold_of of, const struct fold *f, float *v, int64_t v_row,
                     const struct fold_rows x[OPERANDS], int n, int rows)
{
    const bool has_b = x[1].at != NULL, has_c = x[2].at != NULL;
    for (int r = 0; r < rows; r++) {
        const float *a = x[0].at + r * x[0].row;
        const float *b = has_b ? x[1].at + r * x[1].row : NULL;
        const float *c = has_c ? x[2].at + r * x[2].row : NULL;
        float *to = v + r * v_row;
#pragma omp simd
        for (int k = 0; k < n; k++)
            to[k] = element_fold(of, f, a[k], has_b ? b[k] : 0.0f, has_c ? c[k] : 0.0f);
    }
}

/* By kind, with the kind a constant in the loop */
static void formula_of(const struct fold *f, float *v, int64_t v_row,
                       const struct fold_rows x[OPERANDS], int n, int rows)
{
    switch (f->of) {
#define CASE(kind)                                                                                 \
    case kind:                                                                                     \
        return formula(kind, f, v, v_row, x, n, rows);
        CASE(FOLD_A)
        CASE(FOLD_ADD)
        CASE(FOLD_SUBTRACT)
        CASE(FOLD_MULTIPLY)
        CASE(FOLD_DIVIDE)
        CASE(FOLD_MAXIMUM)
        CASE(FOLD_MINIMUM)
        CASE(FOLD_EXP)
        CASE(FOLD_LOG)
        CASE(FOLD_EXP_TIMES)
        CASE(FOLD_EQUAL)
        CASE(FOLD_IF_EQUAL)
        CASE(FOLD_IF_NOT_LESS)
        CASE(FOLD_IF_MORE)
        CASE(FOLD_DIVIDE_SLOPE)
        CASE(FOLD_CLIP)
        CASE(FOLD_IF_WITHIN)
        CASE(FOLD_INVERSE_ROOT)
        CASE(FOLD_PRODUCT_BELOW)
        CASE(FOLD_PRELU)
        CASE(FOLD_PRELU_BACK)
        CASE(FOLD_PRELU_SLOPE)
        CASE(FOLD_MULTIPLY_ADD)
        CASE(FOLD_DISTANCE)
        CASE(FOLD_BEYOND)
        CASE(FOLD_SUM_ROOT)
        CASE(FOLD_DICE)
        CASE(FOLD_DICE_SLOPE)
        CASE(FOLD_IF_ABOVE)
        CASE(FOLD_DIVIDE_OR_0)
#undef CASE
    default:
        return;
    }
}

/* Evaluates `count` neighbours from index `at` of all three operands on */
static void take_block(const struct fold *f, float *v, const int64_t at[3], const int64_t step[3],
                       int count)
{
    float room[3][FOLD_BLOCK];
    const struct fold_rows x[OPERANDS] = {
        {gather(room[0], f->a + at[0], step[0], count), 0},
        {gather(room[1], f->b ? f->b + at[1] : NULL, step[1], count), 0},
        {gather(room[2], f->c ? f->c + at[2] : NULL, step[2], count), 0},
    };
    formula_of(f, v, 0, x, count, 1);
}

static void give(const struct fold *f, float *y, float value)
{
    *y = f->add ? *y + f->scale * value : f->scale * value;
}

/* A block of results, each over all folded elements */
static void kept_block(const struct walk *w, const int64_t first[3], float *y, int count)
{
    const struct fold *f = &w->f;
    const int64_t step[3] = {w->a, w->b, w->c};
    float v[FOLD_BLOCK];
    double sum[FOLD_BLOCK];
    float top[FOLD_BLOCK];
    for (int64_t i = 0; i < w->folded_places; i++) {
        const int64_t at[3] = {first[0] + element_place(&w->inner, w->inner.a, i),
                               first[1] + element_place(&w->inner, w->inner.b, i),
                               first[2] + element_place(&w->inner, w->inner.c, i)};
        take_block(f, v, at, step, count);
        if (w->folded_places == 1) break;
        for (int k = 0; k < count && !f->is_max; k++) sum[k] = i ? sum[k] + v[k] : v[k];
        for (int k = 0; k < count && f->is_max; k++) top[k] = i && top[k] >= v[k] ? top[k] : v[k];
    }
    for (int k = 0; k < count && w->folded_places > 1; k++)
        v[k] = f->is_max ? top[k] : (float)sum[k];
    for (int k = 0; k < count; k++) give(f, y + k * w->y, v[k]);
}

/* One result, whose folded elements are contiguous */
static float along(const struct walk *w, const int64_t first[3])
{
    const struct fold *f = &w->f;
    const int last = f->folded.count - 1;
    const int64_t n = f->folded.n[last];
    const int64_t step[3] = {f->folded.a[last], f->folded.b[last], f->folded.c[last]};
    double sum[FOLD_LANES] = {0}, total = 0;
    float v[FOLD_BLOCK], top = -INFINITY;
    for (int64_t i = 0; i < w->folded_places; i++)
        for (int64_t k = 0; k < n; k += FOLD_BLOCK) {
            const int count = n - k < FOLD_BLOCK ? (int)(n - k) : FOLD_BLOCK;
            const int64_t at[3] = {first[0] + element_place(&w->inner, w->inner.a, i) + k * step[0],
                                   first[1] + element_place(&w->inner, w->inner.b, i) + k * step[1],
                                   first[2] + element_place(&w->inner, w->inner.c, i) +
                                       k * step[2]};
            take_block(f, v, at, step, count);
            for (int j = 0; j < count && f->is_max; j++) top = top >= v[j] ? top : v[j];
            for (int j = 0; j < count && !f->is_max; j++) sum[j % FOLD_LANES] += v[j];
        }
    for (int j = 0; j < FOLD_LANES; j++) total += sum[j];
    return f->is_max ? top : (float)total;
}

static void straight_block(const struct walk *w, const int64_t first[3], float *y, int count)
{
    const struct fold *f = &w->f;
    const struct fold_rows x[OPERANDS] = {
        {f->a + first[0], 0},
        {f->b ? f->b + first[1] : NULL, 0},
        {f->c ? f->c + first[2] : NULL, 0},
    };
    formula_of(f, y, 0, x, count, 1);
}

/* ---- short rows ---- */

/* Evaluates the formula in `rows` rows, the first of which begins `skipped` rows later */
static void take_rows(const struct walk *w, float *v, int64_t v_row, const int64_t first[OPERANDS],
                      int64_t skipped, int rows)
{
    const float *const at[OPERANDS] = {w->f.a, w->f.b, w->f.c};
    struct fold_rows x[OPERANDS];
    for (int o = 0; o < OPERANDS; o++)
        x[o] = (struct fold_rows){at[o] ? at[o] + first[o] + skipped * w->row[o] : NULL, w->row[o]};
    formula_of(&w->f, v, v_row, x, w->width, rows);
}

/* sum [n] += each row of v, in order; neighbouring sums stay in registers. */
static void sum_rows(double *sum, const float *v, int n, int rows)
{
    int k = 0;
    for (; k + FOLD_LANES <= n; k += FOLD_LANES) {
        double lane[FOLD_LANES];
        for (int j = 0; j < FOLD_LANES; j++) lane[j] = sum[k + j];
        for (int r = 0; r < rows; r++)
            for (int j = 0; j < FOLD_LANES; j++) lane[j] += v[r * n + k + j];
        for (int j = 0; j < FOLD_LANES; j++) sum[k + j] = lane[j];
    }
    for (int r = 0; r < rows; r++)
        for (int j = k; j < n; j++) sum[j] += v[r * n + j];
}

/* A row of results, each over all folded rows. Sums start with a value that preserves -0. */
static void folded_rows(const struct walk *w, const int64_t first[OPERANDS], float *y)
{
    const int n = w->width, most = FOLD_BLOCK / n;
    float v[FOLD_BLOCK], top[FOLD_BLOCK];
    double sum[FOLD_BLOCK];
    for (int k = 0; k < n; k++) sum[k] = -0.0;
    for (int k = 0; k < n; k++) top[k] = -INFINITY;
    for (int64_t i = 0; i < w->folded_places; i += most) {
        const int rows = w->folded_places - i < most ? (int)(w->folded_places - i) : most;
        take_rows(w, v, n, first, i, rows);
        if (!w->f.is_max) sum_rows(sum, v, n, rows);
        for (int r = 0; r < rows && w->f.is_max; r++)
            for (int k = 0; k < n; k++) top[k] = top[k] >= v[r * n + k] ? top[k] : v[r * n + k];
    }
    for (int k = 0; k < n; k++) give(&w->f, y + k * w->y, w->f.is_max ? top[k] : (float)sum[k]);
}

/* A block of rows of results */
static void kept_rows(const struct walk *w, const int64_t first[OPERANDS], float *y, int rows)
{
    const int n = w->width;
    float v[FOLD_BLOCK];
    take_rows(w, w->is_straight ? y : v, w->is_straight ? w->y : n, first, 0, rows);
    for (int r = 0; r < rows && !w->is_straight; r++)
        for (int k = 0; k < n; k++) give(&w->f, y + r * w->y + k, v[r * n + k]);
}

static void walk_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct walk *w = arguments;
    for (int64_t i = begin; i < end; i++) {
        const int64_t place = i / w->blocks, k = i % w->blocks * w->block;
        const int count = (int)(w->n - k < w->block ? w->n - k : w->block);
        const int64_t first[3] = {element_place(&w->outer, w->outer.a, place) + k * w->a,
                                  element_place(&w->outer, w->outer.b, place) + k * w->b,
                                  element_place(&w->outer, w->outer.c, place) + k * w->c};
        float *y = w->f.y + element_place(&w->outer, w->outer.y, place) + k * w->y;
        if (w->width && w->f.folded.count)
            folded_rows(w, first, y);
        else if (w->width)
            kept_rows(w, first, y, count);
        else if (w->is_straight)
            straight_block(w, first, y, count);
        else if (w->is_along)
            give(&w->f, y, along(w, first));
        else
            kept_block(w, first, y, count);
    }
}

/* Blocks along the folded elements if those are contiguous and the kept ones are not */
static bool goes_along(const struct fold *f)
{
    const int kept = f->kept.count - 1, folded = f->folded.count - 1;
    return folded >= 0 && f->folded.a[folded] == 1 && (kept < 0 || f->kept.a[kept] != 1);
}

/* Needs no gathering, summing or scaling. */
static bool is_straight(const struct walk *w)
{
    const struct fold *f = &w->f;
    const bool has_steps = w->y == 1 && w->a == 1 && (!f->b || w->b == 1) && (!f->c || w->c == 1);
    return has_steps && !f->folded.count && !f->add && f->scale == 1;
}

/* Makes the last loop a row if it is short and contiguous in all operands; then the loop around it
 * is blocked instead, if both are kept. */
static void make_rows(struct walk *w)
{
    const struct fold_loops *over = w->inner.count ? &w->inner : &w->outer;
    const int last = over->count - 1;
    const bool are_neighbours = w->a == 1 && (!w->f.b || w->b == 1) && (!w->f.c || w->c == 1);
    if (w->is_along || !are_neighbours || w->n > FOLD_BLOCK / 2 || last < 0) return;
    if (w->inner.count > 1 || (!w->inner.count && w->y != 1)) return;
    w->width = (int)w->n;
    w->row[0] = over->a[last];
    w->row[1] = over->b[last];
    w->row[2] = over->c[last];
    if (w->inner.count) return;
    w->n = over->n[last];
    w->y = over->y[last];
    w->a = over->a[last];
    w->b = over->b[last];
    w->c = over->c[last];
    w->block /= w->width;
    w->outer.count--;
}

void ISA(fold)(struct device *d, const struct fold *f)
{
    struct walk w = {*f, .outer = f->kept, .n = 1, .blocks = 1, .inner = f->folded};
    w.is_along = goes_along(f);
    if (w.is_along) {
        w.inner.count--;
    } else if (f->kept.count) {
        const int last = --w.outer.count;
        w.n = f->kept.n[last];
        w.y = f->kept.y[last];
        w.a = f->kept.a[last];
        w.b = f->kept.b[last];
        w.c = f->kept.c[last];
    }
    w.is_straight = is_straight(&w);
    w.block = w.is_straight ? STRAIGHT_BLOCK : FOLD_BLOCK;
    make_rows(&w);
    w.blocks = (w.n + w.block - 1) / w.block;
    w.folded_places = fold_places(&w.inner);
    const int64_t units = fold_places(&w.outer) * w.blocks;
    const int64_t places =
        (w.n < w.block ? w.n : w.block) * (w.width && !f->folded.count ? w.width : 1);
    const int64_t work = fold_places(&f->folded) * places;
    spread(d, units, SPREAD_GRAIN / (4 * (work + 1)) + 1, walk_range, &w);
}
