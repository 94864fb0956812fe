/* test_fold.c - formulas in the places of loops, some of them folded, one by one in double. */
#include "tests/kernels/support.h"

#include <math.h>
#include <stdlib.h>

enum { FLOATS = 40000, ROUNDS = 300 };

/* The same numbers for everybody */
static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

/* Loops in any order, in which each operand goes through its own floats or stays */
static void make_loops(struct fold *f, uint64_t *state)
{
    static const int64_t lengths_of[] = {1, 2, 3, 5, 17, 40};
    int64_t y = 1, operand[3] = {1, 1, 1};
    const int count = 1 + (int)draw(state, 4);
    f->kept.count = f->folded.count = 0;
    for (int i = 0; i < count; i++) { /* the innermost first */
        const int64_t n = i ? 1 + (int64_t)draw(state, 5) : lengths_of[draw(state, 6)] * 8;
        const bool folds = draw(state, 3) == 0;
        struct fold_loops *l = folds ? &f->folded : &f->kept;
        int64_t *steps[3] = {l->a, l->b, l->c};
        for (int k = l->count++; k > 0; k--) {
            l->n[k] = l->n[k - 1];
            l->y[k] = l->y[k - 1];
            for (int o = 0; o < 3; o++) steps[o][k] = steps[o][k - 1];
        }
        l->n[0] = n;
        l->y[0] = folds ? 0 : y;
        y *= folds ? 1 : n;
        for (int o = 0; o < 3; o++) {
            const bool stays = o > 0 && draw(state, 3) == 0;
            steps[o][0] = stays ? 0 : operand[o];
            operand[o] *= stays ? 1 : n;
        }
    }
}

static double want_of(const struct fold *f, float a, float b, float c)
{
    switch (f->of) {
    case FOLD_ADD:
        return (double)a + b;
    case FOLD_SUBTRACT:
        return (double)a - b;
    case FOLD_MULTIPLY:
        return (double)a * b;
    case FOLD_DIVIDE:
        return (double)a / b;
    case FOLD_MAXIMUM:
        return fmax(a, b);
    case FOLD_MINIMUM:
        return fmin(a, b);
    case FOLD_EXP:
        return exp(a);
    case FOLD_LOG:
        return log(a);
    case FOLD_EXP_TIMES:
        return exp(a) * b;
    case FOLD_EQUAL:
        return a == b;
    case FOLD_IF_EQUAL:
        return a == b ? c : 0;
    case FOLD_IF_NOT_LESS:
        return a >= b ? c : 0;
    case FOLD_IF_MORE:
        return a > b ? c : 0;
    case FOLD_DIVIDE_SLOPE:
        return -(double)c * a / ((double)b * b);
    case FOLD_CLIP:
        return fmin(fmax(a, f->low), f->high);
    case FOLD_IF_WITHIN:
        return a >= f->low && a <= f->high ? c : 0;
    case FOLD_INVERSE_ROOT:
        return 1 / sqrt(fmax(a, f->low));
    case FOLD_PRODUCT_BELOW:
        return a < f->high ? (double)a * b : 0;
    case FOLD_PRELU:
        return a > 0 ? a : (double)a * b;
    case FOLD_PRELU_BACK:
        return a > 0 ? c : (double)c * b;
    case FOLD_PRELU_SLOPE:
        return a > 0 ? 0 : (double)c * a;
    case FOLD_MULTIPLY_ADD:
        return (double)a * b + c;
    case FOLD_DISTANCE:
        return ((double)a - b) * ((double)a - b);
    case FOLD_BEYOND:
        return ((double)a - b) * c;
    case FOLD_SUM_ROOT:
        return 1 / sqrt((double)a + f->low);
    case FOLD_DICE:
        return a * (c + b * (1 - (double)c));
    case FOLD_DICE_SLOPE:
        return a * (1 - (double)b) * c;
    case FOLD_IF_ABOVE:
        return b > f->high ? a : f->low;
    case FOLD_DIVIDE_OR_0:
        return b == 0 ? 0 : (double)a / b;
    default:
        return a;
    }
}

/* Where the place with this number is: its digits are those of the loops. */
static int64_t place_of(const struct fold_loops *l, const int64_t *step, int64_t place)
{
    int64_t at = 0;
    for (int k = l->count - 1; k >= 0; place /= l->n[k--]) at += place % l->n[k] * step[k];
    return at;
}

static double want_at(const struct fold *f, int64_t kept, double *ret_size)
{
    double sum = 0, top = -INFINITY;
    *ret_size = 0;
    for (int64_t i = 0; i < fold_places(&f->folded); i++) {
        const struct fold_loops *k = &f->kept, *o = &f->folded;
        const double v = want_of(f, f->a[place_of(k, k->a, kept) + place_of(o, o->a, i)],
                                 f->b[place_of(k, k->b, kept) + place_of(o, o->b, i)],
                                 f->c[place_of(k, k->c, kept) + place_of(o, o->c, i)]);
        sum += v;
        *ret_size += fabs(v);
        top = v > top ? v : top;
    }
    return f->is_max ? top : sum;
}

static void check_fold(struct device *d, struct fold *f, const float *before)
{
    const int64_t kept = fold_places(&f->kept);
    d->kernels->copy(d, f->y, before, kept);
    d->kernels->fold(d, f);
    for (int64_t i = 0; i < kept; i++) {
        double size;
        const double want = f->scale * want_at(f, i, &size) + (f->add ? before[i] : 0);
        const struct tolerance t = {2e-6, 1e-6 + 2e-6 * size};
        assert_near(f->y[place_of(&f->kept, f->kept.y, i)], want, t, "fold", i);
    }
}

static void each_fold(struct device *d)
{
    uint64_t state = 7;
    float *y = new_floats(d, FLOATS), *before = random_floats(d, FLOATS, -1, 1, 1);
    float *operands[3];
    for (int i = 0; i < 3; i++) operands[i] = random_floats(d, FLOATS, 0.25f, 1, 2 + (uint64_t)i);
    for (int64_t i = 0; i < FLOATS; i += 3) operands[0][i] = operands[1][i]; /* equal ones */
    for (int round = 0; round < ROUNDS; round++) {
        struct fold f = {(enum fold_of)(round % FOLD_COUNT),
                         round % 5 == 0,
                         round / FOLD_COUNT % 2 == 0, /* of each formula both */
                         round % 3 ? 0.5f : 1,
                         0.3f,
                         0.8f,
                         .y = y,
                         .a = operands[0],
                         .b = operands[1],
                         .c = operands[2]};
        make_loops(&f, &state);
        const int64_t places = fold_places(&f.kept) * fold_places(&f.folded);
        if (places <= FLOATS && is_feasible(d, places)) check_fold(d, &f, before);
    }
    for (int i = 0; i < 3; i++) free_floats(d, operands[i]);
    free_floats(d, y);
    free_floats(d, before);
}

/* The columns of a matrix, into which its rows are folded */
static void check_columns(struct device *d, int64_t rows, int64_t columns)
{
    const int64_t n = rows * columns;
    float *y = new_floats(d, columns), *before = random_floats(d, columns, -1, 1, 1);
    float *x = random_floats(d, n, 0.25f, 1, 2);
    for (int i = 0; i < 4; i++) {
        struct fold f = {.of = FOLD_MULTIPLY,
                         .is_max = i % 2,
                         .add = i / 2,
                         .scale = 0.5f,
                         .y = y,
                         .a = x,
                         .b = before,
                         .c = x};
        fold_axis(&f, rows, 0, columns, 0, columns);
        fold_axis(&f, columns, 1, 1, 1, 1);
        check_fold(d, &f, before);
    }
    free_floats(d, y);
    free_floats(d, before);
    free_floats(d, x);
}

static void each_matrix(struct device *d)
{
    check_columns(d, 300, 3);
    check_columns(d, 64, 1);
    check_columns(d, 90, 40);
    check_columns(d, 1000, 33);
}

static void rows_are_folded_into_columns(void **state)
{
    on_every_device(each_matrix);
}

static void folds_are_right_in_every_place(void **state)
{
    on_every_device(each_fold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds_are_right_in_every_place),
        cmocka_unit_test(rows_are_folded_into_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
