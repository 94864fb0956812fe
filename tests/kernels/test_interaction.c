/* test_interaction.c - dot products among vectors, pair by pair in double. */
#include "tests/kernels/support.h"

#include <math.h>

struct shape {
    int64_t batch, vectors, width;
};

/* Around the widths of registers and of a warp; nothing to pair, many pairs, and threads */
static const struct shape shapes[] = {{1, 2, 1},   {3, 3, 4},    {5, 1, 3},  {7, 4, 17},
                                      {2, 27, 16}, {33, 8, 100}, {0, 3, 5},  {4, 5, 33},
                                      {700, 6, 7}, {40, 60, 31}, {90, 7, 64}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Vectors of one tensor, or of several; dx as much once more, its old numbers in before. */
struct vectors {
    struct interaction v;
    float *before[INTERACTION_SOURCES_MAX];
    int64_t n; /* floats of a source */
};

static struct vectors new_vectors(struct device *d, const struct shape *s, int sources)
{
    struct vectors t = {.v = {s->batch, s->vectors, s->width, .sources = sources}};
    t.n = s->batch * s->vectors * s->width / sources;
    for (int i = 0; i < sources; i++) {
        t.v.x[i] = random_floats(d, t.n, -1, 1, 100 + (uint64_t)i);
        t.v.dx[i] = random_floats(d, t.n, -1, 1, 200 + (uint64_t)i);
        t.before[i] = copy_floats(d, t.v.dx[i], t.n);
        t.v.add[i] = i % 2 == 1;
    }
    return t;
}

static void free_vectors(struct device *d, struct vectors *t)
{
    for (int i = 0; i < t->v.sources; i++) {
        free_floats(d, (float *)t->v.x[i]);
        free_floats(d, t->v.dx[i]);
        free_floats(d, t->before[i]);
    }
}

/* Number k of vector i of an example, in what has the layout of x */
static float *at(float *const sources[], const struct interaction *v, int64_t example, int64_t i,
                 int64_t k)
{
    if (v->sources > 1) return sources[i] + example * v->width + k;
    return sources[0] + (example * v->vectors + i) * v->width + k;
}

static double x_at(const struct interaction *v, int64_t example, int64_t i, int64_t k)
{
    return *at((float *const *)v->x, v, example, i, k);
}

/* Of a sum of `terms` products of numbers up to 1, which may nearly cancel out */
static struct tolerance sum_of(int64_t terms)
{
    return (struct tolerance){summed.relative, summed.absolute + 5e-7 * (double)terms};
}

/* Row by row of the triangle below the diagonal; sums [batch] of them */
static void check_forward(const struct interaction *v, const float *y, const float *sums)
{
    int64_t pair = 0;
    for (int64_t example = 0; example < v->batch; example++) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < v->vectors; i++)
            for (int64_t j = 0; j < i; j++, pair++) {
                double want = 0;
                for (int64_t k = 0; k < v->width; k++)
                    want += x_at(v, example, i, k) * x_at(v, example, j, k);
                assert_near(y[pair], want, sum_of(v->width), "dot_interaction", pair);
                sum += want;
                size += fabs(want);
            }
        const struct tolerance t = {0, 1e-6 + 1e-5 * size};
        assert_near(sums[example], sum, t, "factorization_machine", example);
    }
}

/* want [vectors]: of number k of an example's vectors, pair by pair; one_slope: of all of them */
static void back_pairs(const struct interaction *v, const float *dy, bool one_slope,
                       int64_t example, int64_t k, double *want)
{
    const float *slope = dy + example * (one_slope ? 1 : interaction_pairs(v));
    for (int64_t i = 0; i < v->vectors; i++)
        for (int64_t j = 0; j < i; j++, slope += !one_slope) {
            want[i] += *slope * x_at(v, example, j, k);
            want[j] += *slope * x_at(v, example, i, k);
        }
}

static void check_back(const struct vectors *t, const float *dy, bool one_slope)
{
    enum { VECTORS_MAX = 64 };
    const struct interaction *v = &t->v;
    for (int64_t example = 0; example < v->batch; example++)
        for (int64_t k = 0; k < v->width; k++) {
            double want[VECTORS_MAX] = {0};
            back_pairs(v, dy, one_slope, example, k, want);
            for (int64_t i = 0; i < v->vectors; i++) {
                const bool adds = v->add[v->sources > 1 ? i : 0];
                if (adds) want[i] += *at(t->before, v, example, i, k);
                assert_near(*at(v->dx, v, example, i, k), want[i], sum_of(v->vectors), "back", i);
            }
        }
}

static void check_shape(struct device *d, const struct shape *s, int sources, bool add_first)
{
    struct vectors t = new_vectors(d, s, sources);
    const int64_t n = s->batch * interaction_pairs(&t.v);
    float *y = new_floats(d, n), *sums = new_floats(d, s->batch);
    float *dy = random_floats(d, n > s->batch ? n : s->batch, -1, 1, 300);
    t.v.add[0] = add_first;
    d->kernels->dot_interaction(d, &t.v, y);
    d->kernels->factorization_machine(d, &t.v, sums);
    check_forward(&t.v, y, sums);
    d->kernels->dot_interaction_back(d, &t.v, dy);
    check_back(&t, dy, false);
    for (int i = 0; i < sources; i++) d->kernels->copy(d, t.v.dx[i], t.before[i], t.n);
    d->kernels->factorization_machine_back(d, &t.v, dy);
    check_back(&t, dy, true);
    free_floats(d, y);
    free_floats(d, sums);
    free_floats(d, dy);
    free_vectors(d, &t);
}

static void each_shape(struct device *d)
{
    for (int i = 0; i < SHAPES; i++) {
        const struct shape *s = &shapes[i];
        if (!is_feasible(d, 10 * s->batch * s->vectors)) continue;
        check_shape(d, s, 1, i % 2 == 0);
        if (s->vectors <= INTERACTION_SOURCES_MAX) check_shape(d, s, (int)s->vectors, false);
    }
}

static void pairs_and_their_gradients_are_right(void **state)
{
    on_every_device(each_shape);
}

/* One source as the first and the last, whose gradients add up; that between is not wanted. */
static void check_twice(struct device *d,
                        void (*back)(struct device *, const struct interaction *, const float *))
{
    const struct shape s = {5, 3, 6};
    struct vectors t = new_vectors(d, &s, 3);
    float *dy = random_floats(d, s.batch * interaction_pairs(&t.v), -1, 1, 301);
    d->kernels->copy(d, (float *)t.v.x[2], t.v.x[0], t.n);
    struct interaction same = t.v;
    same.x[2] = same.x[0];
    same.dx[0] = same.dx[2] = t.before[0];
    same.dx[1] = NULL;
    same.add[2] = true;
    t.v.add[0] = same.add[0] = t.v.add[2] = false;
    back(d, &same, dy);
    back(d, &t.v, dy);
    for (int64_t i = 0; i < t.n; i++)
        assert_near(t.before[0][i], (double)t.v.dx[0][i] + t.v.dx[2][i], summed, "twice", i);
    free_floats(d, dy);
    free_vectors(d, &t);
}

static void each_twice(struct device *d)
{
    check_twice(d, d->kernels->dot_interaction_back);
    check_twice(d, d->kernels->factorization_machine_back);
}

static void a_source_may_be_there_twice(void **state)
{
    on_every_device(each_twice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_and_their_gradients_are_right),
        cmocka_unit_test(a_source_may_be_there_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
