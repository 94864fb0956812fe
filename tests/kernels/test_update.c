/* test_update.c - the optimizers against their formulas in double, several steps long. */
#include "tests/kernels/support.h"

#include <math.h>
#include <string.h>

enum { SLOTS = 4, STEPS = 3 }; /* the value and up to three slots */

struct rule {
    const char *name;
    /* one call on n floats; x: value and slots, g: gradient */
    void (*run)(struct device *, float *const x[SLOTS], const float *g, int64_t n);
    void (*want)(double x[SLOTS], double g);
};

static void run_sgd(struct device *d, float *const x[SLOTS], const float *g, int64_t n)
{
    d->kernels->update_sgd(d, &(struct update_sgd){x[0], g, 0.1f}, n);
}

static void want_sgd(double x[SLOTS], double g)
{
    x[0] -= (double)0.1f * g;
}

static void run_momentum(struct device *d, float *const x[SLOTS], const float *g, int64_t n)
{
    d->kernels->update_momentum(d, &(struct update_momentum){x[0], x[1], g, 0.1f, 0.9f, false}, n);
}

static void want_momentum(double x[SLOTS], double g)
{
    x[1] = x[1] * (double)0.9f + g;
    x[0] -= (double)0.1f * x[1];
}

static void run_nesterov(struct device *d, float *const x[SLOTS], const float *g, int64_t n)
{
    d->kernels->update_momentum(d, &(struct update_momentum){x[0], x[1], g, 0.1f, 0.9f, true}, n);
}

static void want_nesterov(double x[SLOTS], double g)
{
    x[1] = x[1] * (double)0.9f + g;
    x[0] -= (double)0.1f * g + (double)0.1f * (double)0.9f * x[1];
}

static void run_adagrad(struct device *d, float *const x[SLOTS], const float *g, int64_t n)
{
    d->kernels->update_adagrad(d, &(struct update_adagrad){x[0], x[1], g, 0.1f}, n);
}

static void want_adagrad(double x[SLOTS], double g)
{
    x[1] += g * g;
    x[0] -= (double)0.1f * g / sqrt(x[1]);
}

static void run_adam(struct device *d, float *const x[SLOTS], const float *g, int64_t n)
{
    struct update_adam u = {x[0], x[1], x[2], g, 0.01f, 0.9f, 0.999f, 1e-8f};
    d->kernels->update_adam(d, &u, n);
}

static void want_adam(double x[SLOTS], double g)
{
    x[1] += (g - x[1]) * (double)(1.0f - 0.9f);
    x[2] += (g * g - x[2]) * (double)(1.0f - 0.999f);
    x[0] -= (double)0.01f * x[1] / (sqrt(x[2]) + 1e-8);
}

static void run_rmsprop(struct device *d, float *const x[SLOTS], const float *g, int64_t n)
{
    struct update_rmsprop u = {x[0], x[1], NULL, x[2], g, 0.01f, 0.9f, 0.5f, 1e-10f};
    d->kernels->update_rmsprop(d, &u, n);
}

static void want_rmsprop(double x[SLOTS], double g)
{
    x[1] += (g * g - x[1]) * (double)(1.0f - 0.9f);
    x[2] = x[2] * 0.5 + (double)0.01f * g / sqrt(x[1] + 1e-10);
    x[0] -= x[2];
}

static void run_centered(struct device *d, float *const x[SLOTS], const float *g, int64_t n)
{
    struct update_rmsprop u = {x[0], x[1], x[3], x[2], g, 0.01f, 0.9f, 0.5f, 1e-3f};
    d->kernels->update_rmsprop(d, &u, n);
}

static void want_centered(double x[SLOTS], double g)
{
    x[1] += (g * g - x[1]) * (double)(1.0f - 0.9f);
    x[3] += (g - x[3]) * (double)(1.0f - 0.9f);
    x[2] = x[2] * 0.5 + (double)0.01f * g / sqrt(x[1] - x[3] * x[3] + (double)1e-3f);
    x[0] -= x[2];
}

static const struct rule rules[] = {
    {"sgd", run_sgd, want_sgd},
    {"momentum", run_momentum, want_momentum},
    {"nesterov", run_nesterov, want_nesterov},
    {"adagrad", run_adagrad, want_adagrad},
    {"adam", run_adam, want_adam},
    {"rmsprop", run_rmsprop, want_rmsprop},
    {"rmsprop, centered", run_centered, want_centered},
};
enum { RULES = sizeof rules / sizeof *rules };

/* Value in [-1, 1); the squares' slots begin at 1, as rmsprop has it, the others at 0. */
static void new_state(struct device *d, float *x[SLOTS], int64_t n)
{
    x[0] = random_floats(d, n, -1, 1, 20);
    x[1] = new_floats(d, n);
    x[2] = new_floats(d, n);
    x[3] = new_floats(d, n);
    d->kernels->fill(d, x[1], 1.0f, n);
}

static void free_state(struct device *d, float *x[SLOTS])
{
    for (int i = 0; i < SLOTS; i++) free_floats(d, x[i]);
}

static void check_rule(struct device *d, const struct rule *rule, int64_t n)
{
    float *x[SLOTS], *g[STEPS];
    new_state(d, x, n);
    float *before = copy_floats(d, x[0], n);
    for (int step = 0; step < STEPS; step++) {
        g[step] = random_floats(d, n, -1, 1, 30 + (uint64_t)step);
        rule->run(d, x, g[step], n);
    }
    for (int64_t i = 0; i < n; i++) {
        double want[SLOTS] = {before[i], 1, 0, 0};
        for (int step = 0; step < STEPS; step++) rule->want(want, g[step][i]);
        for (int slot = 0; slot < SLOTS; slot++)
            assert_near(x[slot][i], want[slot], summed, rule->name, i);
    }
    for (int step = 0; step < STEPS; step++) free_floats(d, g[step]);
    free_floats(d, before);
    free_state(d, x);
}

static void each_rule(struct device *d)
{
    for (int r = 0; r < RULES; r++)
        for (int i = 0; i < LENGTHS; i++) check_rule(d, &rules[r], lengths[i]);
}

static void optimizers_follow_their_formulas(void **state)
{
    on_every_device(each_rule);
}

/* Stretches of a block arrive one by one and in any size: the cut must not show. */
static void check_cut(struct device *d, const struct rule *rule, int64_t n, int64_t cut)
{
    float *whole[SLOTS], *parts[SLOTS], *rest[SLOTS];
    float *g = random_floats(d, n, -1, 1, 40);
    new_state(d, whole, n);
    new_state(d, parts, n);
    for (int i = 0; i < SLOTS; i++) rest[i] = parts[i] + cut;
    for (int step = 0; step < STEPS; step++) {
        rule->run(d, whole, g, n);
        rule->run(d, parts, g, cut);
        rule->run(d, rest, g + cut, n - cut);
    }
    for (int i = 0; i < SLOTS; i++) assert_same_bits(whole[i], parts[i], n, rule->name);
    free_floats(d, g);
    free_state(d, whole);
    free_state(d, parts);
}

static void each_cut(struct device *d)
{
    const int64_t cuts[] = {16, 48, 64, 992, 1, 7, 501};
    for (int r = 0; r < RULES; r++) {
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
            check_cut(d, &rules[r], 1003, cuts[i]);
        check_cut(d, &rules[r], LENGTH_MAX, 4096);
    }
}

static void a_stretch_gives_the_same_bits_in_one_piece_and_in_two(void **state)
{
    on_every_device(each_cut);
}

/* Computed by TensorFlow: w0 = (1, -2), gradients (.1, -.2), (.3, 0), (-.2, .4) */
static void run_vectors(struct device *d)
{
    const float gradients[STEPS][2] = {{0.1f, -0.2f}, {0.3f, 0}, {-0.2f, 0.4f}};
    float *w = new_floats(d, 2), *a = new_floats(d, 2), *g = new_floats(d, 2);
    w[0] = 1, w[1] = -2;
    a[0] = a[1] = 0.1f;
    for (int step = 0; step < STEPS; step++) {
        memcpy(g, gradients[step], sizeof gradients[step]);
        d->kernels->update_adagrad(d, &(struct update_adagrad){w, a, g, 0.1f}, 2);
    }
    assert_near(w[0], 0.94359166, close_by, "adagrad", 0);
    assert_near(w[1], -2.01957743, close_by, "adagrad", 1);
    free_floats(d, w);
    free_floats(d, a);
    free_floats(d, g);
}

static void adagrad_reproduces_tensorflows_numbers(void **state)
{
    on_every_device(run_vectors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_follow_their_formulas),
        cmocka_unit_test(a_stretch_gives_the_same_bits_in_one_piece_and_in_two),
        cmocka_unit_test(adagrad_reproduces_tensorflows_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
