/* test_update.c - the optimizers against their formulas in double, several steps long. */
#include "tests/kernels/support.h"

#include <math.h>
#include <string.h>

#include "kernels/rules.h"

enum { SLOTS = 4, STEPS = 3 }; /* the value and up to three slots */

struct formula {
    const char *name;
    const struct rule *rule;
    const void *constants;
    int form;
    void (*want)(double x[SLOTS], double g); /* x: value and slots */
    float decay;
};

static void run(struct device *d, const struct formula *f, float *const x[SLOTS], const float *g,
                int64_t n)
{
    struct update u = {.rule = f->rule, .constants = f->constants, .value = x[0], .gradient = g};
    u.form = f->form;
    u.decay = f->decay;
    for (int i = 0; i < f->rule->slots[f->form]; i++) u.slot[i] = x[i + 1];
    d->kernels->update(d, &u, n);
}

static void want_sgd(double x[SLOTS], double g)
{
    x[0] -= (double)0.1f * g;
}

static void want_momentum(double x[SLOTS], double g)
{
    x[1] = x[1] * (double)0.9f + g;
    x[0] -= (double)0.1f * x[1];
}

static void want_nesterov(double x[SLOTS], double g)
{
    x[1] = x[1] * (double)0.9f + g;
    x[0] -= (double)0.1f * g + (double)0.1f * (double)0.9f * x[1];
}

static void want_adagrad(double x[SLOTS], double g)
{
    x[1] += g * g;
    x[0] -= (double)0.1f * g / sqrt(x[1]);
}

static void want_adam(double x[SLOTS], double g)
{
    x[1] += (g - x[1]) * (double)(1.0f - 0.9f);
    x[2] += (g * g - x[2]) * (double)(1.0f - 0.999f);
    x[0] -= (double)0.01f * x[1] / (sqrt(x[2]) + 1e-8);
}

static void want_adamw(double x[SLOTS], double g)
{
    x[0] -= 0.25 * x[0];
    want_adam(x, g);
}

static void want_rmsprop(double x[SLOTS], double g)
{
    x[1] += (g * g - x[1]) * (double)(1.0f - 0.9f);
    x[2] = x[2] * 0.5 + (double)0.01f * g / sqrt(x[1] + 1e-10);
    x[0] -= x[2];
}

static void want_centered(double x[SLOTS], double g)
{
    x[1] += (g * g - x[1]) * (double)(1.0f - 0.9f);
    x[2] += (g - x[2]) * (double)(1.0f - 0.9f);
    x[3] = x[3] * 0.5 + (double)0.01f * g / sqrt(x[1] - x[2] * x[2] + (double)1e-3f);
    x[0] -= x[3];
}

static double shrunk(double x, double by)
{
    const double size = fabs(x) - by;
    return size < 0 ? 0 : copysign(size, x);
}

static void want_adadelta(double x[SLOTS], double g)
{
    const double rho = (double)0.9f, rest = (double)(1.0f - 0.9f), epsilon = (double)1e-3f;
    x[1] = rho * x[1] + rest * g * g;
    const double step = sqrt(x[2] + epsilon) / sqrt(x[1] + epsilon) * g;
    x[2] = rho * x[2] + rest * step * step;
    x[0] -= 0.5 * step;
}

/* Its first slot is the sum: it begins at 1 here. */
static void want_adagrad_da(double x[SLOTS], double g)
{
    x[1] += g;
    x[2] += g * g;
    x[0] = -0.25 * shrunk(x[1], 0.5) / (sqrt(x[2]) + 0.125);
}

/* Of powers, in what passes through zero */
static const struct tolerance of_differences = {1e-5, 4e-6};

static void want_ftrl_power(double x[SLOTS], double g, double power)
{
    const double before = x[1];
    x[1] += g * g;
    x[2] += g + 0.125 * x[0] - (pow(x[1], power) - pow(before, power)) / 0.5 * x[0];
    x[0] = -shrunk(x[2], 0.25) / (pow(x[1], power) / 0.5 + 0.5);
}

static void want_ftrl(double x[SLOTS], double g)
{
    want_ftrl_power(x, g, 0.5);
}

static void want_ftrl_raised(double x[SLOTS], double g)
{
    want_ftrl_power(x, g, 0.75);
}

static void want_ftrl_flat(double x[SLOTS], double g)
{
    want_ftrl_power(x, g, 0);
}

static void want_standing(double x[SLOTS], double g)
{
}

static void want_proximal_sgd(double x[SLOTS], double g)
{
    x[0] = shrunk(x[0] - 0.25 * g, 0.125) / 1.5;
}

static void want_proximal_adagrad(double x[SLOTS], double g)
{
    x[1] += g * g;
    const double rate = 0.25 / sqrt(x[1]);
    x[0] = shrunk(x[0] - rate * g, rate * 0.5) / (1 + rate * 2);
}

static const struct gradient_descent_constants sgd = {0.1f};
static const struct momentum_constants momentum = {0.1f, 0.9f, false},
                                       nesterov = {0.1f, 0.9f, true};
static const struct adagrad_constants adagrad = {0.1f};
static const struct adam_constants adam = {{0.01f, 0.9f, 0.999f, 1e-8f}};
static const struct adamw_constants adamw = {{0.01f, 0.9f, 0.999f, 1e-8f}, 0.25f};
static const struct rmsprop_constants rmsprop = {0.01f, 0.9f, 0.5f, 1e-10f};
static const struct rmsprop_constants centered = {0.01f, 0.9f, 0.5f, 1e-3f};

static const struct adadelta_constants adadelta = {0.5f, 0.9f, 1e-3f};
static const struct adagrad_da_constants adagrad_da = {0.25f, 0.5f, 0.125f};
static const struct ftrl_constants ftrl = {0.5f, 0.5f, 0.25f, 0.5f, 0.125f},
                                   ftrl_raised = {0.5f, 0.75f, 0.25f, 0.5f, 0.125f},
                                   ftrl_flat = {0.5f, 0, 0.25f, 0.5f, 0.125f},
                                   ftrl_standing = {0, 0.5f, 0.25f, 0.5f, 0.125f};
static const struct proximal_gradient_descent_constants proximal_sgd = {0.25f, 0.125f, 1.5f};
static const struct proximal_adagrad_constants proximal_adagrad = {0.25f, 0.5f, 2};

static const struct lazy_momentum_constants lazy_momentum = {{0.1f, 0.9f, false}};
static const struct lazy_adam_constants lazy_adam = {{0.01f, 0.9f, 0.999f, 1e-8f}};

static const struct formula formulas[] = {
    {"sgd", &rule_gradient_descent, &sgd, 0, want_sgd},
    {"momentum", &rule_momentum, &momentum, 0, want_momentum},
    {"nesterov", &rule_momentum, &nesterov, 0, want_nesterov},
    {"adagrad", &rule_adagrad, &adagrad, 0, want_adagrad},
    {"adam", &rule_adam, &adam, 0, want_adam},
    {"lazy_adam", &rule_lazy_adam, &lazy_adam, 0, want_adam},
    {"lazy_momentum", &rule_lazy_momentum, &lazy_momentum, 0, want_momentum},
    {"adamw", &rule_adamw, &adamw, 0, want_adamw},
    {"rmsprop", &rule_rmsprop, &rmsprop, 0, want_rmsprop},
    {"rmsprop, centered", &rule_rmsprop, &centered, 1, want_centered},
    {"adadelta", &rule_adadelta, &adadelta, 0, want_adadelta},
    {"adagrad_da", &rule_adagrad_da, &adagrad_da, 0, want_adagrad_da},
    {"ftrl", &rule_ftrl, &ftrl, 0, want_ftrl},
    {"ftrl, power 0.75", &rule_ftrl, &ftrl_raised, 1, want_ftrl_raised},
    {"ftrl, power 0", &rule_ftrl, &ftrl_flat, 1, want_ftrl_flat},
    {"ftrl, rate 0", &rule_ftrl, &ftrl_standing, 0, want_standing},
    {"proximal_gradient_descent", &rule_proximal_gradient_descent, &proximal_sgd, 0,
     want_proximal_sgd},
    {"sgd, decayed", &rule_gradient_descent, &sgd, 0, want_sgd, 0.25f},
    {"adam, decayed", &rule_adam, &adam, 0, want_adam, 0.25f},
    {"rmsprop, centered, decayed", &rule_rmsprop, &centered, 1, want_centered, 0.25f},
    {"proximal_adagrad", &rule_proximal_adagrad, &proximal_adagrad, 0, want_proximal_adagrad},
};
enum { FORMULAS = sizeof formulas / sizeof *formulas };

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

static void check_formula(struct device *d, const struct formula *f, int64_t n)
{
    float *x[SLOTS], *g[STEPS];
    new_state(d, x, n);
    float *before = copy_floats(d, x[0], n);
    for (int step = 0; step < STEPS; step++) {
        g[step] = random_floats(d, n, -1, 1, 30 + (uint64_t)step);
        run(d, f, x, g[step], n);
    }
    for (int64_t i = 0; i < n; i++) {
        double want[SLOTS] = {before[i], 1, 0, 0};
        for (int step = 0; step < STEPS; step++) {
            want[0] -= (double)f->decay * want[0];
            f->want(want, g[step][i]);
        }
        for (int slot = 0; slot < SLOTS; slot++)
            assert_near(x[slot][i], want[slot], of_differences, f->name, i);
    }
    for (int step = 0; step < STEPS; step++) free_floats(d, g[step]);
    free_floats(d, before);
    free_state(d, x);
}

static void each_formula(struct device *d)
{
    for (int r = 0; r < FORMULAS; r++)
        for (int i = 0; i < LENGTHS; i++) check_formula(d, &formulas[r], lengths[i]);
}

static void optimizers_follow_their_formulas(void **state)
{
    on_every_device(each_formula);
}

/* Stretches of a block arrive one by one and in any size: the cut must not show. */
static void check_cut(struct device *d, const struct formula *f, int64_t n, int64_t cut)
{
    float *whole[SLOTS], *parts[SLOTS], *rest[SLOTS];
    float *g = random_floats(d, n, -1, 1, 40);
    new_state(d, whole, n);
    new_state(d, parts, n);
    for (int i = 0; i < SLOTS; i++) rest[i] = parts[i] + cut;
    for (int step = 0; step < STEPS; step++) {
        run(d, f, whole, g, n);
        run(d, f, parts, g, cut);
        run(d, f, rest, g + cut, n - cut);
    }
    for (int i = 0; i < SLOTS; i++) assert_same_bits(whole[i], parts[i], n, f->name);
    free_floats(d, g);
    free_state(d, whole);
    free_state(d, parts);
}

static void each_cut(struct device *d)
{
    const int64_t cuts[] = {16, 48, 64, 992, 1, 7, 501};
    for (int r = 0; r < FORMULAS; r++) {
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
            check_cut(d, &formulas[r], 1003, cuts[i]);
        check_cut(d, &formulas[r], LENGTH_MAX, 4096);
    }
}

static void a_stretch_gives_the_same_bits_in_one_piece_and_in_two(void **state)
{
    on_every_device(each_cut);
}

/* Rows of a table are what they would be as a vector with zeros where nobody names a row; without a
 * sweep those stay. */

enum { TABLE_ROWS = 700, TABLE_START = 41 }; /* the slice, and where it begins */

/* Returns how many; every third or so, or none */
static int64_t some_ids(int64_t ids[TABLE_ROWS], bool none)
{
    int64_t count = 0;
    for (int64_t i = 0; i < TABLE_ROWS && !none; i++)
        if (i * i % 7 < 2) ids[count++] = TABLE_START + i;
    return count;
}

struct table {
    int64_t width, count, n;
    int64_t *ids; /* of the device */
    float *rows;  /* gradients of those that are named */
    float *dense; /* the same in their places, zeros elsewhere */
};

static void open_table(struct device *d, int64_t width, bool none, struct table *t)
{
    int64_t ids[TABLE_ROWS];
    *t = (struct table){.width = width, .count = some_ids(ids, none), .n = TABLE_ROWS * width};
    t->ids = (int64_t *)new_floats(d, TABLE_ROWS * 2);
    memcpy(t->ids, ids, (size_t)t->count * sizeof *ids);
    t->rows = random_floats(d, t->n, -1, 1, 50);
    t->dense = new_floats(d, t->n);
    for (int64_t i = 0; i < t->count; i++)
        memcpy(t->dense + (ids[i] - TABLE_START) * width, t->rows + i * width,
               (size_t)width * sizeof(float));
}

static void close_table(struct device *d, struct table *t)
{
    free_floats(d, (float *)t->ids);
    free_floats(d, t->rows);
    free_floats(d, t->dense);
}

static void keep_unnamed(const struct table *t, const float *before, float *after)
{
    int64_t next = 0;
    for (int64_t row = 0; row < TABLE_ROWS; row++) {
        const bool is_named = next < t->count && t->ids[next] == TABLE_START + row;
        next += is_named;
        if (!is_named)
            memcpy(after + row * t->width, before + row * t->width,
                   (size_t)t->width * sizeof(float));
    }
}

static void check_rows(struct device *d, const struct formula *f, const struct table *t,
                       bool sweeps)
{
    float *x[SLOTS], *want[SLOTS], *before[SLOTS];
    new_state(d, x, t->n);
    new_state(d, want, t->n);
    struct row_update u = {.rule = f->rule, .constants = f->constants, .value = x[0]};
    for (int i = 0; i < f->rule->slots[f->form]; i++) u.slot[i] = x[i + 1];
    u.ids = t->ids, u.gradient = t->rows, u.count = t->count, u.width = t->width;
    u.start = TABLE_START, u.rows = TABLE_ROWS, u.sweeps = sweeps, u.form = f->form;
    u.decay = f->decay;
    for (int step = 0; step < 2; step++) {
        d->kernels->update_rows(d, &u);
        for (int i = 0; i < SLOTS; i++) before[i] = copy_floats(d, want[i], t->n);
        run(d, f, want, t->dense, t->n);
        for (int i = 0; i < SLOTS; i++) {
            if (!sweeps) keep_unnamed(t, before[i], want[i]);
            assert_same_bits(x[i], want[i], t->n, f->name);
            free_floats(d, before[i]);
        }
    }
    free_state(d, x);
    free_state(d, want);
}

static void each_table(struct device *d)
{
    static const int64_t widths[] = {1, 3, 16, 33};
    for (int w = 0; w < 4; w++)
        for (int none = 0; none < 2; none++) {
            struct table t;
            open_table(d, widths[w], none, &t);
            for (int r = 0; r < FORMULAS; r++)
                for (int sweeps = 0; sweeps < 2; sweeps++) check_rows(d, &formulas[r], &t, sweeps);
            close_table(d, &t);
        }
}

static void rows_of_a_table_are_updated_as_a_vector_is(void **state)
{
    on_every_device(each_table);
}

/* Computed by TensorFlow: w0 = (1, -2), gradients (.1, -.2), (.3, 0), (-.2, .4) */
static void run_vectors(struct device *d)
{
    const float gradients[STEPS][2] = {{0.1f, -0.2f}, {0.3f, 0}, {-0.2f, 0.4f}};
    const struct formula formula = {"adagrad", &rule_adagrad, &adagrad, 0, NULL};
    float *w = new_floats(d, 2), *a = new_floats(d, 2), *g = new_floats(d, 2);
    float *const state[SLOTS] = {w, a};
    w[0] = 1, w[1] = -2;
    a[0] = a[1] = 0.1f;
    for (int step = 0; step < STEPS; step++) {
        memcpy(g, gradients[step], sizeof gradients[step]);
        run(d, &formula, state, g, 2);
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

static bool is_tested(const struct rule *rule)
{
    bool is_there[2] = {false};
    for (int i = 0; i < FORMULAS; i++)
        if (formulas[i].rule == rule) is_there[formulas[i].form] = true;
    return is_there[0] && (rule->forms == 1 || is_there[1]);
}

static void every_rule_has_a_formula_here(void **state)
{
#define TESTED(name) assert_true(is_tested(&rule_##name));
    RULES(TESTED)
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_has_a_formula_here),
        cmocka_unit_test(optimizers_follow_their_formulas),
        cmocka_unit_test(a_stretch_gives_the_same_bits_in_one_piece_and_in_two),
        cmocka_unit_test(rows_of_a_table_are_updated_as_a_vector_is),
        cmocka_unit_test(adagrad_reproduces_tensorflows_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
