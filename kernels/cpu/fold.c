/* fold.c - broadcasting, reductions over axes, moves: a formula in the places of loops, summed over
 * some of them.
 *
 * A block of neighbours at a time goes through the formula: neighbours of the result, or where
 * only what is folded lies side by side, of that. Which of the two, and the order of each sum,
 * depend on the loops alone, whatever the batch and the threads are.
 */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

enum { FOLD_BLOCK = 256, FOLD_LANES = 16, STRAIGHT_BLOCK = 4096 };

/* The last loop goes in blocks, all others place by place. */
struct walk {
    struct fold f;
    struct fold_loops outer; /* kept ones that are no block */
    int64_t n, block;        /* of the block's loop, which is kept; the most of a block */
    int64_t blocks;          /* how many it makes */
    int64_t y, a, b, c;      /* its steps */
    bool is_along;           /* blocks are of the last folded loop; n is 1 */
    bool is_straight;        /* the formula in neighbours of all sides is the result */
    struct fold_loops inner; /* folded ones that are no block */
    int64_t folded_places;   /* of `inner` */
};

/* Neighbours that lie side by side are used where they are. */
ELEMENT const float *gather(float *room, const float *x, int64_t step, int count)
{
    if (!x || step == 1) return x;
    for (int k = 0; k < count; k++) room[k] = x[k * step];
    return room;
}

/* The formula in a row of places; what it does not read may be NULL */
ELEMENT void formula(enum fold_of of, const struct fold *f, float *v, const float *a,
                     const float *b, const float *c, int count)
{
    const bool has_b = b != NULL, has_c = c != NULL;
#pragma omp simd
    for (int k = 0; k < count; k++)
        v[k] = element_fold(of, f, a[k], has_b ? b[k] : 0.0f, has_c ? c[k] : 0.0f);
}

/* By kind, with the kind a constant in the loop */
static void formula_of(const struct fold *f, float *v, const float *a, const float *b,
                       const float *c, int count)
{
    switch (f->of) {
#define CASE(kind)                                                                                 \
    case kind:                                                                                     \
        return formula(kind, f, v, a, b, c, count);
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

/* From place `at` of all three on, `count` neighbours by their steps */
static void take_block(const struct fold *f, float *v, const int64_t at[3], const int64_t step[3],
                       int count)
{
    float room[3][FOLD_BLOCK];
    const float *a = gather(room[0], f->a + at[0], step[0], count);
    const float *b = gather(room[1], f->b ? f->b + at[1] : NULL, step[1], count);
    const float *c = gather(room[2], f->c ? f->c + at[2] : NULL, step[2], count);
    formula_of(f, v, a, b, c, count);
}

static void give(const struct fold *f, float *y, float value)
{
    *y = f->add ? *y + f->scale * value : f->scale * value;
}

/* A block of results, each over all folded places */
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

/* One result, whose folded places lie side by side */
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
    formula_of(f, y, f->a + first[0], f->b ? f->b + first[1] : NULL, f->c ? f->c + first[2] : NULL,
               count);
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
        if (w->is_straight)
            straight_block(w, first, y, count);
        else if (w->is_along)
            give(&w->f, y, along(w, first));
        else
            kept_block(w, first, y, count);
    }
}

/* Along the folded places, where they are the neighbours in memory and the kept ones are not */
static bool goes_along(const struct fold *f)
{
    const int kept = f->kept.count - 1, folded = f->folded.count - 1;
    return folded >= 0 && f->folded.a[folded] == 1 && (kept < 0 || f->kept.a[kept] != 1);
}

/* Nothing is gathered, summed or scaled. */
static bool is_straight(const struct walk *w)
{
    const struct fold *f = &w->f;
    const bool has_steps = w->y == 1 && w->a == 1 && (!f->b || w->b == 1) && (!f->c || w->c == 1);
    return has_steps && !f->folded.count && !f->add && f->scale == 1;
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
    w.blocks = (w.n + w.block - 1) / w.block;
    w.folded_places = fold_places(&w.inner);
    const int64_t units = fold_places(&w.outer) * w.blocks;
    const int64_t work = fold_places(&f->folded) * (w.n < w.block ? w.n : w.block);
    spread(d, units, SPREAD_GRAIN / (4 * (work + 1)) + 1, walk_range, &w);
}
