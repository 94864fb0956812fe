/* test_rows.c - softmax, sums over rows, losses and metrics, row by row in double. */
#include "tests/kernels/support.h"

#include <math.h>
#include <string.h>

#include "core/base/random.h"

struct shape {
    int64_t rows, columns;
};

static const struct shape shapes[] = {{1, 1},   {1, 3},     {3, 1},     {5, 2},      {100, 10},
                                      {17, 16}, {7, 17},    {3, 1000},  {4099, 10},  {40000, 3},
                                      {2, 70},  {1200, 64}, {1100, 65}, {150000, 1}, {3000, 33}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Of the device; freed by free_labels() */
static int32_t *random_labels(struct device *d, int64_t rows, int64_t classes, uint64_t seed)
{
    int32_t *labels = (int32_t *)new_floats(d, rows);
    for (int64_t i = 0; i < rows; i++)
        labels[i] = (int32_t)(random_u64(seed, (uint64_t)i) % (uint64_t)classes);
    return labels;
}

static void free_labels(struct device *d, int32_t *labels)
{
    free_floats(d, (float *)labels);
}

static double log_sum_exp(const float *x, int64_t n)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - top);
    return top + log(sum);
}

/* --- softmax --- */

static void check_softmax(struct device *d, const struct shape *s)
{
    const int64_t n = s->rows * s->columns;
    float *x = random_floats(d, n, -8, 8, 80), *y = new_floats(d, n);
    float *dy = random_floats(d, n, -1, 1, 81), *dx = random_floats(d, n, -1, 1, 82);
    float *before = copy_floats(d, dx, n);
    d->kernels->softmax(d, y, x, s->rows, s->columns);
    d->kernels->softmax_back(d, dx, dy, y, s->rows, s->columns, true);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i / s->columns * s->columns;
        double total = log_sum_exp(x + row, s->columns), dot = 0;
        assert_near(y[i], exp(x[i] - total), (struct tolerance){3e-6, 1e-9}, "softmax", i);
        if (s->columns > 100 && i % 37) continue; /* the sum below is long */
        for (int64_t j = 0; j < s->columns; j++) dot += (double)y[row + j] * dy[row + j];
        assert_near(dx[i], before[i] + y[i] * (dy[i] - dot), summed, "softmax_back", i);
    }
    d->kernels->softmax_back(d, dx, dy, y, s->rows, s->columns, false);
    d->kernels->axpy(d, dx, 1, before, n);
    d->kernels->softmax_back(d, before, dy, y, s->rows, s->columns, true);
    for (int64_t i = 0; i < n; i++) assert_near(dx[i], before[i], summed, "add", i);
    free_floats(d, x);
    free_floats(d, y);
    free_floats(d, dy);
    free_floats(d, dx);
    free_floats(d, before);
}

static void each_softmax(struct device *d)
{
    for (int i = 0; i < SHAPES; i++)
        if (is_feasible(d, shapes[i].rows)) check_softmax(d, &shapes[i]);
}

static void softmax_and_its_gradient_are_right(void **state)
{
    on_every_device(each_softmax);
}

static void check_large_logits(struct device *d)
{
    float *x = new_floats(d, 3), *y = new_floats(d, 3);
    x[0] = 1e4f, x[1] = 1e4f, x[2] = -1e30f;
    d->kernels->softmax(d, y, x, 1, 3);
    assert_true(y[0] == 0.5f && y[1] == 0.5f && y[2] == 0);
    x[1] = NAN;
    d->kernels->softmax(d, y, x, 1, 3);
    assert_true(isnan(y[0]) && isnan(y[1]));
    free_floats(d, x);
    free_floats(d, y);
}

static void large_logits_do_not_overflow_and_nan_is_not_hidden(void **state)
{
    on_every_device(check_large_logits);
}

static void check_sum_rows(struct device *d, const struct shape *s)
{
    const int64_t n = s->rows * s->columns;
    const struct tolerance t = {1e-6, 1e-6 * sqrt((double)s->rows)};
    float *x = random_floats(d, n, -1, 1, 83), *sums = random_floats(d, s->columns, -1, 1, 84);
    float *added = copy_floats(d, sums, s->columns), *before = copy_floats(d, sums, s->columns);
    d->kernels->sum_rows(d, sums, x, s->rows, s->columns, false);
    d->kernels->sum_rows(d, added, x, s->rows, s->columns, true);
    for (int64_t column = 0; column < s->columns; column++) {
        double want = 0;
        for (int64_t row = 0; row < s->rows; row++) want += x[row * s->columns + column];
        assert_near(sums[column], want, t, "sum_rows", column);
        assert_near(added[column], want + before[column], t, "sum_rows add", column);
    }
    free_floats(d, x);
    free_floats(d, sums);
    free_floats(d, added);
    free_floats(d, before);
}

static void each_sum_rows(struct device *d)
{
    for (int i = 0; i < SHAPES; i++) check_sum_rows(d, &shapes[i]);
}

static void rows_are_summed_by_column(void **state)
{
    on_every_device(each_sum_rows);
}

/* --- losses --- */

struct loss_case {
    struct shape shape;
    float smoothing;
    bool is_weighted;
};

static void check_softmax_row(const struct cross_entropy *c, int64_t row)
{
    const float *x = c->logits + row * c->classes;
    const double total = log_sum_exp(x, c->classes), s = c->label_smoothing;
    const bool is_none = c->labels[row] < 0;
    const double weight = is_none ? 0 : c->class_weights ? c->class_weights[c->labels[row]] : 1;
    double loss = 0;
    for (int64_t i = 0; i < c->classes; i++) {
        double target = (i == c->labels[row] ? 1 - s : 0) + s / (double)c->classes;
        loss += target * (total - x[i]);
        const double probability = exp(x[i] - total), scale = weight * *c->scale;
        /* as wrong as the larger of the two is, though their difference be small */
        const struct tolerance t = {0, 3e-6 * scale * fmax(probability, target)};
        assert_near(c->gradient[row * c->classes + i], scale * (probability - target), t,
                    "softmax_cross_entropy gradient", i);
    }
    assert_near(c->losses[row], weight * loss, (struct tolerance){3e-6, 2e-6},
                "softmax_cross_entropy", row);
}

static void check_softmax_loss(struct device *d, const struct loss_case *l)
{
    const int64_t rows = l->shape.rows, classes = l->shape.columns;
    float *x = random_floats(d, rows * classes, -8, 8, 90),
          *gradient = new_floats(d, rows * classes);
    float *losses = new_floats(d, rows), *alone = new_floats(d, rows);
    float *weights = random_floats(d, classes, 0.5f, 2, 91), *scale = new_floats(d, 1);
    int32_t *labels = random_labels(d, rows, classes, 92);
    for (int64_t row = 2; row < rows; row += 5) labels[row] = -1 - (int32_t)row;
    *scale = 1.0f / (float)rows;
    struct cross_entropy c = {.rows = rows,
                              .classes = classes,
                              .logits = x,
                              .labels = labels,
                              .class_weights = l->is_weighted ? weights : NULL,
                              .label_smoothing = l->smoothing,
                              .scale = scale,
                              .losses = losses,
                              .gradient = gradient};
    d->kernels->softmax_cross_entropy(d, &c);
    for (int64_t row = 0; row < rows; row++) check_softmax_row(&c, row);

    c.losses = alone, c.gradient = NULL;
    d->kernels->softmax_cross_entropy(d, &c);
    assert_same_bits(losses, alone, rows, "losses without gradient");
    c.gradient = x;
    d->kernels->softmax_cross_entropy(d, &c);
    assert_same_bits(gradient, x, rows * classes, "gradient in place of the logits");
    assert_same_bits(losses, alone, rows, "losses whose gradient is in place");
    free_floats(d, x);
    free_floats(d, gradient);
    free_floats(d, losses);
    free_floats(d, alone);
    free_floats(d, weights);
    free_floats(d, scale);
    free_labels(d, labels);
}

static void each_softmax_loss(struct device *d)
{
    for (int i = 0; i < SHAPES; i++) {
        if (!is_feasible(d, shapes[i].rows)) continue;
        check_softmax_loss(d, &(struct loss_case){shapes[i], 0, false});
        check_softmax_loss(d, &(struct loss_case){shapes[i], 0.1f, true});
    }
}

static void softmax_cross_entropy_is_right(void **state)
{
    on_every_device(each_softmax_loss);
}

/* One of the losses that compare element by element */
struct pair_loss {
    const char *name;
    void (*run)(struct device *, const struct regression *);
    double (*loss)(double x, double t);
    double (*slope)(double x, double t);
    bool of_probabilities;
};

static void run_sigmoid(struct device *d, const struct regression *r)
{
    d->kernels->sigmoid_cross_entropy(d, &(struct cross_entropy){.rows = r->rows,
                                                                 .classes = r->columns,
                                                                 .logits = r->predictions,
                                                                 .targets = r->targets,
                                                                 .label_smoothing = r->delta,
                                                                 .scale = r->scale,
                                                                 .losses = r->losses,
                                                                 .gradient = r->gradient});
}

static const float smoothing_or_delta = 0.25f;

static double smooth(double t)
{
    return t * (1 - smoothing_or_delta) + smoothing_or_delta / 2;
}

static double sigmoid_loss(double x, double t)
{
    return fmax(x, 0) - x * smooth(t) + log1p(exp(-fabs(x)));
}

static double sigmoid_slope(double x, double t)
{
    return 1 / (1 + exp(-x)) - smooth(t);
}

static void run_weighted(struct device *d, const struct regression *r)
{
    d->kernels->weighted_cross_entropy(d, r);
}

static double weighted_loss(double x, double t)
{
    return t * smoothing_or_delta * log1p(exp(-x)) + (1 - t) * log1p(exp(x));
}

static double weighted_slope(double x, double t)
{
    return (1 - t) / (1 + exp(-x)) - t * smoothing_or_delta / (1 + exp(x));
}

static void run_log(struct device *d, const struct regression *r)
{
    d->kernels->log_loss(d, r);
}

static double log_loss(double x, double t)
{
    return -t * log(x + smoothing_or_delta) - (1 - t) * log(1 - x + smoothing_or_delta);
}

static double log_slope(double x, double t)
{
    return (1 - t) / (1 - x + smoothing_or_delta) - t / (x + smoothing_or_delta);
}

static void run_squared(struct device *d, const struct regression *r)
{
    d->kernels->squared_error(d, r);
}

static double squared_loss(double x, double t)
{
    return (x - t) * (x - t);
}

static double squared_slope(double x, double t)
{
    return 2 * (x - t);
}

static void run_huber(struct device *d, const struct regression *r)
{
    d->kernels->huber(d, r);
}

static double huber_loss(double x, double t)
{
    double e = fabs(x - t), delta = smoothing_or_delta;
    return e <= delta ? e * e / 2 : delta * e - delta * delta / 2;
}

static double huber_slope(double x, double t)
{
    return fmin(fmax(x - t, -smoothing_or_delta), smoothing_or_delta);
}

static const struct pair_loss pair_losses[] = {
    {"sigmoid_cross_entropy", run_sigmoid, sigmoid_loss, sigmoid_slope},
    {"weighted_cross_entropy", run_weighted, weighted_loss, weighted_slope},
    {"log_loss", run_log, log_loss, log_slope, .of_probabilities = true},
    {"squared_error", run_squared, squared_loss, squared_slope},
    {"huber", run_huber, huber_loss, huber_slope},
};

static void check_pair_rows(const struct pair_loss *p, const struct regression *r)
{
    for (int64_t row = 0; row < r->rows; row++) {
        double loss = 0;
        for (int64_t i = row * r->columns; i < (row + 1) * r->columns; i++) {
            loss += p->loss(r->predictions[i], r->targets[i]);
            assert_near(r->gradient[i], *r->scale * p->slope(r->predictions[i], r->targets[i]),
                        summed, p->name, i);
        }
        assert_near(r->losses[row], loss, summed, p->name, row);
    }
}

static void check_pair_loss(struct device *d, const struct pair_loss *p, const struct shape *s)
{
    const int64_t n = s->rows * s->columns;
    const float low = p->of_probabilities ? 0 : -6, high = p->of_probabilities ? 1 : 6;
    float *x = random_floats(d, n, low, high, 93), *targets = random_floats(d, n, 0, 1, 94);
    float *losses = new_floats(d, s->rows), *alone = new_floats(d, s->rows);
    float *gradient = new_floats(d, n), *scale = new_floats(d, 1);
    struct regression r = {s->rows, s->columns, x,       targets, smoothing_or_delta,
                           scale,   losses,     gradient};
    *scale = 0.5f;
    p->run(d, &r);
    check_pair_rows(p, &r);
    r.losses = alone, r.gradient = NULL;
    p->run(d, &r);
    assert_same_bits(losses, alone, s->rows, p->name);
    free_floats(d, x);
    free_floats(d, targets);
    free_floats(d, losses);
    free_floats(d, alone);
    free_floats(d, gradient);
    free_floats(d, scale);
}

static void each_pair_loss(struct device *d)
{
    for (size_t p = 0; p < sizeof pair_losses / sizeof *pair_losses; p++)
        for (int i = 0; i < SHAPES; i++)
            if (is_feasible(d, shapes[i].rows)) check_pair_loss(d, &pair_losses[p], &shapes[i]);
}

static void elementwise_losses_are_right(void **state)
{
    on_every_device(each_pair_loss);
}

/* --- metrics --- */

static int64_t want_in_top(const float *x, const int32_t *labels, const struct shape *s, int64_t k)
{
    int64_t count = 0;
    for (int64_t row = 0; row < s->rows; row++) {
        int64_t larger = 0;
        for (int64_t i = 0; i < s->columns; i++)
            larger += x[row * s->columns + i] > x[row * s->columns + labels[row]];
        count += larger < k;
    }
    return count;
}

static void each_count_in_top(struct device *d)
{
    for (int i = 0; i < SHAPES; i++) {
        if (!is_feasible(d, shapes[i].rows)) continue;
        const struct shape *s = &shapes[i];
        float *x = random_floats(d, s->rows * s->columns, -8, 8, 95);
        int32_t *labels = random_labels(d, s->rows, s->columns, 96);
        for (int64_t k = 1; k < 6; k += 2) {
            int64_t want = want_in_top(x, labels, s, k);
            assert_int_equal(d->kernels->count_in_top(d, x, labels, s->rows, s->columns, k, false),
                             want);
        }
        free_labels(d, labels);
        free_floats(d, x);
    }
}

static void labels_among_the_largest_are_counted(void **state)
{
    on_every_device(each_count_in_top);
}

static void check_ties(struct device *d)
{
    /* rows of four; the label is 1 in each */
    const float rows[6][4] = {{1, 2, 0, 0}, {2, 2, 0, 0},   {0, 2, 2, 0},
                              {0, 2, 3, 0}, {NAN, 2, 0, 0}, {0, INFINITY, 0, 0}};
    int32_t *labels = (int32_t *)new_floats(d, 6);
    float *x = new_floats(d, 24);
    for (int row = 0; row < 6; row++) labels[row] = 1;
    memcpy(x, rows, sizeof rows);
    const struct kernels *k = d->kernels;
    assert_int_equal(k->count_in_top(d, x, labels, 6, 4, 1, false), 3); /* rows 0, 1, 2 */
    assert_int_equal(k->count_in_top(d, x, labels, 6, 4, 1, true), 2);  /* row 1: 0 comes first */
    assert_int_equal(k->count_in_top(d, x, labels, 6, 4, 2, true), 4);  /* and row 3 */
    assert_int_equal(k->count_in_top(d, x, labels, 6, 4, 4, false), 4); /* never rows 4 and 5 */
    labels[0] = -1;
    assert_int_equal(k->count_in_top(d, x, labels, 6, 4, 4, false), 3); /* nor what is none */
    free_labels(d, labels);
    free_floats(d, x);
}

static void ties_and_rows_that_are_not_finite_count_as_tensorflow_has_it(void **state)
{
    on_every_device(check_ties);
}

static void each_threshold(struct device *d)
{
    for (int i = 0; i < LENGTHS; i++) {
        int64_t n = lengths[i], want = 0;
        float *x = random_floats(d, n, -1, 1, 97), *t = random_floats(d, n, 0, 1, 98);
        for (int64_t j = 0; j < n; j++) want += (x[j] > 0.1f) == (t[j] > 0.5f);
        assert_int_equal(d->kernels->count_threshold(d, x, t, 0.1f, n), want);
        free_floats(d, x);
        free_floats(d, t);
    }
}

static void predictions_on_the_right_side_of_a_threshold_are_counted(void **state)
{
    on_every_device(each_threshold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_and_its_gradient_are_right),
        cmocka_unit_test(large_logits_do_not_overflow_and_nan_is_not_hidden),
        cmocka_unit_test(rows_are_summed_by_column),
        cmocka_unit_test(softmax_cross_entropy_is_right),
        cmocka_unit_test(elementwise_losses_are_right),
        cmocka_unit_test(labels_among_the_largest_are_counted),
        cmocka_unit_test(ties_and_rows_that_are_not_finite_count_as_tensorflow_has_it),
        cmocka_unit_test(predictions_on_the_right_side_of_a_threshold_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
