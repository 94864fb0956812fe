/* test_packs.c - vectors and rows on a GPU wherever they lie: of any length, at any distance to a
 * multiple of 16 bytes, alike or not, and in place; against the CPU, and against each other.
 */
#include <math.h>
#include <string.h>

#include "core/base/random.h"
#include "kernels/rules.h"
#include "tests/kernels/support.h"

enum { VECTORS = 5, SHIFTS = 4, GUARD = 16 };

/* From one length to the next, of those that are counted and of those in a list. A sanitizer takes
 * fifteen times as long, and a GPU's driver its time for each allocation; both see as much in some
 * lengths as in all, if they are of every remainder of a pack. */
#if defined __SANITIZE_ADDRESS__ || defined SOME_LENGTHS
enum { LENGTH_STEP = 17, LONG_STEP = 3 };
#else
enum { LENGTH_STEP = 1, LONG_STEP = 1 };
#endif
static const float untouched = 12345.0f; /* what stands before and behind a vector */

/* One call on vectors; the first ones are those that it may write. */
struct call {
    const char *name;
    void (*run)(struct device *, float *const at[VECTORS], int64_t n);
};

static void run_fill(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->fill(d, at[0], 2.5f, n);
}

static void run_copy(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->copy(d, at[0], at[1], n);
}

static void run_axpy(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->axpy(d, at[0], 0.3f, at[1], n);
}

static void run_scale(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->scale(d, at[0], 0.3f, n);
}

static void run_add_in_place(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->add(d, at[0], at[0], at[1], n);
}

static void run_multiply_add(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->multiply_add(d, at[0], at[1], at[2], n);
}

static void run_clamp(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->clamp(d, at[0], 0.2f, 0.7f, n);
}

static void run_regularize(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->regularize(d, at[0], at[1], 0.1f, 0.2f, n);
}

static void run_sum_ordered(struct device *d, float *const at[VECTORS], int64_t n)
{
    const float *const sources[] = {at[1], at[2], at[0], at[3], at[4], at[1], at[2]};
    d->kernels->sum_ordered(d, at[0], sources, 7, 0.125f, n);
}

static void drop(struct device *d, float *const at[VECTORS], int64_t n, bool add)
{
    const uint64_t number = 77;
    void *draw;
    assert_int_equal(d->kernels->allocate(d, sizeof number, &draw), OK);
    d->kernels->upload(d, draw, &number, sizeof number);
    d->kernels->dropout(d, &(struct dropout){at[0], at[1], 0.4f, 99, draw, add}, n);
    assert_int_equal(d->kernels->synchronize(d), OK);
    d->kernels->release(d, draw);
}

static void run_dropout(struct device *d, float *const at[VECTORS], int64_t n)
{
    drop(d, at, n, false);
}

static void run_dropout_add(struct device *d, float *const at[VECTORS], int64_t n)
{
    drop(d, at, n, true);
}

static void run_activate(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->activate(d, at[0], at[1], ACTIVATION_TANH, 0, n);
}

static void run_activate_back(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->activate_back(d, at[0], at[1], at[2], at[3], ACTIVATION_SWISH, 0, n, true);
}

/* dx is dy, and no x is there. */
static void run_activate_back_in_place(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->activate_back(d, at[0], at[0], at[1], NULL, ACTIVATION_RELU, 0, n, false);
}

/* Rows of 7 columns, which no pack ends with, and what is left over as rows of 1 */
static void run_bias(struct device *d, float *const at[VECTORS], int64_t n)
{
    const int64_t whole = n / 7 * 7;
    d->kernels->bias_activate(d, at[0], at[2], at[1], ACTIVATION_SIGMOID, 0, n / 7, 7);
    d->kernels->bias_activate(d, at[0] + whole, at[2], NULL, ACTIVATION_RELU, 0, n - whole, 1);
}

static void run_sgd(struct device *d, float *const at[VECTORS], int64_t n)
{
    const struct gradient_descent_constants k = {0.1f};
    d->kernels->update(d, &(struct update){&rule_gradient_descent, &k, at[0], at[1]}, n);
}

static void run_momentum(struct device *d, float *const at[VECTORS], int64_t n)
{
    const struct momentum_constants k = {0.1f, 0.9f, true};
    d->kernels->update(d, &(struct update){&rule_momentum, &k, at[0], at[2], {at[1]}}, n);
}

static void run_adagrad(struct device *d, float *const at[VECTORS], int64_t n)
{
    const struct adagrad_constants k = {0.1f};
    d->kernels->update(d, &(struct update){&rule_adagrad, &k, at[0], at[2], {at[1]}}, n);
}

static void run_adam(struct device *d, float *const at[VECTORS], int64_t n)
{
    const struct adam_constants k = {{0.01f, 0.9f, 0.999f, 1e-8f}};
    d->kernels->update(d, &(struct update){&rule_adam, &k, at[0], at[3], {at[1], at[2]}}, n);
}

static void run_rmsprop(struct device *d, float *const at[VECTORS], int64_t n)
{
    const struct rmsprop_constants k = {0.01f, 0.9f, 0.5f, 1e-3f};
    d->kernels->update(d, &(struct update){&rule_rmsprop, &k, at[0], at[3], {at[1], at[2]}}, n);
}

/* The mean begins so far below the mean square that the variance is positive. */
static void run_centered(struct device *d, float *const at[VECTORS], int64_t n)
{
    const struct rmsprop_constants k = {0.01f, 0.9f, 0.5f, 1.0f};
    const struct update u = {&rule_rmsprop, &k, at[0], at[4], {at[1], at[3], at[2]}, 1};
    d->kernels->update(d, &u, n);
}

static void run_squared_error(struct device *d, float *const at[VECTORS], int64_t n)
{
    d->kernels->squared_error(d, &(struct regression){.rows = n,
                                                      .columns = 1,
                                                      .predictions = at[2],
                                                      .targets = at[3],
                                                      .scale = at[4],
                                                      .losses = at[0],
                                                      .gradient = at[1]});
}

static const struct call calls[] = {
    {"fill", run_fill},
    {"copy", run_copy},
    {"axpy", run_axpy},
    {"scale", run_scale},
    {"add in place", run_add_in_place},
    {"multiply_add", run_multiply_add},
    {"clamp", run_clamp},
    {"regularize", run_regularize},
    {"sum_ordered", run_sum_ordered},
    {"dropout", run_dropout},
    {"dropout add", run_dropout_add},
    {"activate", run_activate},
    {"activate_back", run_activate_back},
    {"activate_back in place", run_activate_back_in_place},
    {"bias_activate", run_bias},
    {"update_gradient_descent", run_sgd},
    {"update_momentum", run_momentum},
    {"update_adagrad", run_adagrad},
    {"update_adam", run_adam},
    {"update_rmsprop", run_rmsprop},
    {"update_rmsprop, centered", run_centered},
    {"squared_error", run_squared_error},
};
enum { CALLS = sizeof calls / sizeof *calls };

static struct device open_gpu(void)
{
    struct device d;
    if (device_open_gpu(&(struct gpu_options){.is_watched = true}, &d))
        fail_msg("%s", error_text());
    return d;
}

static struct device open_cpu(void)
{
    struct device d;
    if (device_open_cpu(1, NULL, &d)) fail_msg("%s", error_text());
    return d;
}

static void close_device(struct device *d)
{
    assert_int_equal(d->kernels->synchronize(d), OK);
    device_close(d);
}

/* Vectors with guards, each shifted by some floats from a multiple of 64 bytes */
struct vectors {
    float *memory[VECTORS], *at[VECTORS];
    int64_t n;
};

static int64_t length_of(int64_t n)
{
    return GUARD + SHIFTS + n + GUARD;
}

static struct vectors new_vectors(struct device *d, int64_t n, const int shifts[VECTORS])
{
    struct vectors v = {.n = n};
    for (int i = 0; i < VECTORS; i++) {
        v.memory[i] = new_floats(d, length_of(n));
        v.at[i] = v.memory[i] + GUARD + shifts[i];
        for (int64_t j = 0; j < length_of(n); j++) v.memory[i][j] = untouched;
        for (int64_t j = 0; j < n; j++)
            v.at[i][j] = 0.1f + 0.9f * random_uniform((uint64_t)i, (uint64_t)j);
    }
    return v;
}

/* The guards are as they were. */
static void free_vectors(struct device *d, struct vectors *v, const char *name)
{
    for (int i = 0; i < VECTORS; i++) {
        for (int64_t j = 0; j < length_of(v->n); j++) {
            const int64_t place = v->memory[i] + j - v->at[i];
            if ((place < 0 || place >= v->n) && v->memory[i][j] != untouched)
                fail_msg("%s of %lld: vector %d, %lld was written", name, (long long)v->n, i,
                         (long long)place);
        }
        free_floats(d, v->memory[i]);
    }
}

static const int together[VECTORS] = {0, 0, 0, 0, 0};

static struct vectors run_call(struct device *d, const struct call *call, int64_t n,
                               const int shifts[VECTORS])
{
    struct vectors v = new_vectors(d, n, shifts);
    call->run(d, v.at, n);
    assert_int_equal(d->kernels->synchronize(d), OK);
    return v;
}

/* Alike by 1, 2, 3 floats; one apart; each for itself */
static const int layouts[][VECTORS] = {{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}, {3, 3, 3, 3, 3},
                                       {0, 1, 0, 0, 0}, {3, 0, 3, 3, 3}, {0, 1, 2, 3, 1}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* Number by number and four at once: a compiler may make one instruction of a product and a sum in
 * one of them and two in the other. */
static void check_layouts(struct device *gpu, const struct call *call, const struct vectors *want)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        struct vectors v = run_call(gpu, call, want->n, layouts[layout]);
        for (int i = 0; i < VECTORS; i++)
            for (int64_t j = 0; j < want->n; j++)
                assert_near(v.at[i][j], want->at[i][j], close_by, call->name, j);
        free_vectors(gpu, &v, call->name);
    }
}

static void check_against_cpu(struct device *cpu, const struct call *call,
                              const struct vectors *got)
{
    struct vectors want = run_call(cpu, call, got->n, together);
    for (int i = 0; i < VECTORS; i++)
        for (int64_t j = 0; j < got->n; j++)
            assert_near(got->at[i][j], want.at[i][j], summed, call->name, j);
    free_vectors(cpu, &want, call->name);
}

static void check_length(struct device *gpu, struct device *cpu, int64_t n)
{
    for (int c = 0; c < CALLS; c++) {
        struct vectors v = run_call(gpu, &calls[c], n, together);
        check_against_cpu(cpu, &calls[c], &v);
        check_layouts(gpu, &calls[c], &v);
        free_vectors(gpu, &v, calls[c].name);
    }
}

static void vectors_of_any_length_lie_where_they_like(void **state)
{
    const int64_t around[] = {255, 256, 257, 1023, 1024, 1025, 1027, 4095, 4096, 4099, 20001};
    struct device gpu = open_gpu(), cpu = open_cpu();
    for (int64_t n = 0; n <= 70; n += LENGTH_STEP) check_length(&gpu, &cpu, n);
    for (size_t i = 0; i < sizeof around / sizeof *around; i += LONG_STEP)
        check_length(&gpu, &cpu, around[i]);
    close_device(&gpu);
    close_device(&cpu);
}

/* So long that threads have several packs at once, and some of them fewer than the others; by a
 * sanitizer it is left out, which sees no more in three million numbers than in twenty thousand. */
[[gnu::unused]] static void long_vectors_give_each_thread_several_packs(void **state)
{
    const int64_t n = 4 * (3 * (1 << 18) + 300) + 3;
    struct device gpu = open_gpu(), cpu = open_cpu();
    for (int c = 0; c < CALLS; c++) {
        struct vectors v = run_call(&gpu, &calls[c], n, layouts[0]);
        check_against_cpu(&cpu, &calls[c], &v);
        free_vectors(&gpu, &v, calls[c].name);
    }
    close_device(&gpu);
    close_device(&cpu);
}

/* --- sums --- */

static void check_sums(struct device *d, int64_t n)
{
    double sums[SHIFTS][3];
    int64_t counts[SHIFTS];
    for (int shift = 0; shift < SHIFTS; shift++) {
        const int shifts[VECTORS] = {shift, shift / 2};
        struct vectors v = new_vectors(d, n, shifts);
        sums[shift][0] = kernels_sum(d, v.at[0], n);
        const struct summed of[] = {{v.at[0], n, SUM_ABS}, {v.at[0], n, SUM_SQUARE}};
        d->kernels->sums(d, of, 2, &sums[shift][1]);
        counts[shift] = d->kernels->count_threshold(d, v.at[0], v.at[1], 0.5f, n);
        assert_true(d->kernels->all_finite(d, v.at[0], n));
        if (n > 0) v.at[0][n - 1] = NAN;
        assert_int_equal(d->kernels->all_finite(d, v.at[0], n), n == 0);
        v.at[0][n > 0 ? n - 1 : 0] = untouched;
        free_vectors(d, &v, "sum");
        assert_memory_equal(sums[shift], sums[0], sizeof *sums);
        assert_int_equal(counts[shift], counts[0]);
    }
}

static void sums_have_the_same_bits_wherever_the_vector_lies(void **state)
{
    const int64_t around[] = {1023, 1024, 1025, 4096, 65536, 300001, 65541};
    struct device gpu = open_gpu();
    for (int64_t n = 0; n <= 70; n += LENGTH_STEP) check_sums(&gpu, n);
    for (size_t i = 0; i < sizeof around / sizeof *around; i += LONG_STEP)
        check_sums(&gpu, around[i]);
    close_device(&gpu);
}

/* --- rows --- */

struct rows_call {
    const char *name;
    void (*run)(struct device *, float *const at[VECTORS], int64_t rows, int64_t columns);
};

static void run_softmax(struct device *d, float *const at[VECTORS], int64_t rows, int64_t columns)
{
    d->kernels->softmax(d, at[0], at[1], rows, columns);
    d->kernels->softmax(d, at[2], at[2], rows, columns);
}

static void run_softmax_back(struct device *d, float *const at[VECTORS], int64_t rows,
                             int64_t columns)
{
    d->kernels->softmax_back(d, at[0], at[1], at[2], rows, columns, true);
    d->kernels->softmax_back(d, at[3], at[3], at[2], rows, columns, false);
}

/* Labels take the place of the last vector's numbers, the first of them of its end. */
static void run_softmax_loss(struct device *d, float *const at[VECTORS], int64_t rows,
                             int64_t columns)
{
    int32_t *labels = (int32_t *)at[4];
    for (int64_t row = 0; row < rows; row++) labels[row] = (int32_t)((row + columns - 1) % columns);
    struct cross_entropy c = {.rows = rows,
                              .classes = columns,
                              .logits = at[1],
                              .labels = labels,
                              .scale = at[1],
                              .losses = at[2],
                              .gradient = at[0]};
    d->kernels->softmax_cross_entropy(d, &c);
    c.logits = c.gradient = at[3];
    c.losses = at[2] + rows;
    c.label_smoothing = 0.1f;
    if (columns > 1) d->kernels->softmax_cross_entropy(d, &c);
}

static void run_sigmoid_loss(struct device *d, float *const at[VECTORS], int64_t rows,
                             int64_t columns)
{
    d->kernels->sigmoid_cross_entropy(d, &(struct cross_entropy){.rows = rows,
                                                                 .classes = columns,
                                                                 .logits = at[1],
                                                                 .targets = at[2],
                                                                 .label_smoothing = 0.1f,
                                                                 .scale = at[4],
                                                                 .losses = at[3],
                                                                 .gradient = at[0]});
}

static void run_huber(struct device *d, float *const at[VECTORS], int64_t rows, int64_t columns)
{
    d->kernels->huber(d,
                      &(struct regression){rows, columns, at[1], at[2], 0.2f, at[4], at[3], at[0]});
}

static void run_sum_rows(struct device *d, float *const at[VECTORS], int64_t rows, int64_t columns)
{
    d->kernels->sum_rows(d, at[0], at[1], rows, columns, true);
    d->kernels->sum_rows(d, at[2], at[1], rows, columns, false);
}

static void run_bias_rows(struct device *d, float *const at[VECTORS], int64_t rows, int64_t columns)
{
    d->kernels->bias_activate(d, at[0], at[1], at[2], ACTIVATION_GELU, 0, rows, columns);
}

/* dst and src are rows of one matrix, whose first half goes to the second. */
static void run_strided(struct device *d, float *const at[VECTORS], int64_t rows, int64_t columns)
{
    const int64_t half = columns / 2;
    const struct strided s = {rows, half, columns, columns, at[0] + half, at[1]};
    d->kernels->copy_strided(d, &s);
    d->kernels->add_strided(d,
                            &(struct strided){rows, half, columns, columns, at[2], at[1] + half});
}

static const struct rows_call rows_calls[] = {
    {"softmax", run_softmax},
    {"softmax_back", run_softmax_back},
    {"softmax_cross_entropy", run_softmax_loss},
    {"sigmoid_cross_entropy", run_sigmoid_loss},
    {"huber", run_huber},
    {"sum_rows", run_sum_rows},
    {"bias_activate", run_bias_rows},
    {"strided", run_strided},
};
enum { ROWS_CALLS = sizeof rows_calls / sizeof *rows_calls };

struct rows_shape {
    int64_t rows, columns;
};

static void check_rows_call(struct device *gpu, struct device *cpu, const struct rows_call *call,
                            const struct rows_shape *s)
{
    for (int shift = 0; shift < SHIFTS; shift += 3) {
        const int shifts[VECTORS] = {shift, shift, shift, shift, shift};
        struct vectors got = new_vectors(gpu, s->rows * s->columns, shifts);
        struct vectors want = new_vectors(cpu, s->rows * s->columns, together);
        call->run(gpu, got.at, s->rows, s->columns);
        call->run(cpu, want.at, s->rows, s->columns);
        assert_int_equal(gpu->kernels->synchronize(gpu), OK);
        for (int i = 0; i < VECTORS; i++)
            for (int64_t j = 0; j < got.n; j++)
                assert_near(got.at[i][j], want.at[i][j], summed, call->name, j);
        free_vectors(gpu, &got, call->name);
        free_vectors(cpu, &want, call->name);
    }
}

static void check_rows(struct device *gpu, struct device *cpu, int64_t rows, int64_t columns)
{
    const struct rows_shape shape = {rows, columns};
    for (int c = 0; c < ROWS_CALLS; c++) check_rows_call(gpu, cpu, &rows_calls[c], &shape);
}

static void check_ranks(struct device *gpu, struct device *cpu, int64_t rows, int64_t columns)
{
    float *x = random_floats(gpu, rows * columns + 1, -1, 1, 7);
    int32_t *labels = (int32_t *)new_floats(gpu, rows);
    for (int64_t row = 0; row < rows; row++)
        labels[row] = (int32_t)(random_u64(8, (uint64_t)row) % (uint64_t)columns);
    for (int shift = 0; shift < 2; shift++)
        for (int64_t k = 1; k <= columns; k = 3 * k + 1)
            assert_int_equal(
                gpu->kernels->count_in_top(gpu, x + shift, labels, rows, columns, k, k == 1),
                cpu->kernels->count_in_top(cpu, x + shift, labels, rows, columns, k, k == 1));
    free_floats(gpu, x);
    free_floats(gpu, (float *)labels);
}

static void rows_of_any_length_are_read_whole(void **state)
{
    const int64_t wide[] = {239,  240,  241,  255,  256,  257,  511,  512, 513,
                            1000, 1001, 1024, 4095, 4096, 4097, 4100, 9001};
    struct device gpu = open_gpu(), cpu = open_cpu();
    for (int64_t columns = 1; columns <= 130; columns += LENGTH_STEP) {
        check_rows(&gpu, &cpu, 37, columns);
        check_ranks(&gpu, &cpu, 37, columns);
    }
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i += LONG_STEP) {
        check_rows(&gpu, &cpu, 3, wide[i]);
        check_ranks(&gpu, &cpu, 3, wide[i]);
    }
    close_device(&gpu);
    close_device(&cpu);
}

/* More rows than the blocks of a grid take at once, and more than one slice of a sum; left out as
 * above */
[[gnu::unused]] static void many_rows_are_walked_through(void **state)
{
    struct device gpu = open_gpu(), cpu = open_cpu();
    check_rows_call(&gpu, &cpu, &rows_calls[0], &(struct rows_shape){8192 + 5, 513});
    check_rows(&gpu, &cpu, 30003, 10);
    check_rows(&gpu, &cpu, 4096, 64);
    check_rows(&gpu, &cpu, 64, 4096);
    check_ranks(&gpu, &cpu, 9001, 16);
    close_device(&gpu);
    close_device(&cpu);
}

/* --- pooling --- */

static struct pool2d pooling(int64_t channels)
{
    return (struct pool2d){{.batch = 2,
                            .in_y = 7,
                            .in_x = 6,
                            .out_y = 4,
                            .out_x = 3,
                            .kernel_y = 3,
                            .kernel_x = 2,
                            .stride_y = 2,
                            .stride_x = 2,
                            .dilation_y = 1,
                            .dilation_x = 1,
                            .pad_top = 1,
                            .pad_bottom = 1},
                           channels};
}

static void pool(struct device *d, float *const at[VECTORS], int64_t channels)
{
    const struct pool2d shape = pooling(channels);
    d->kernels->max_pool(d, &shape, at[0], at[1]);
    d->kernels->max_pool_back(d, &shape, at[2], at[4], at[0], at[1], true);
    d->kernels->avg_pool(d, &shape, at[0], at[1]);
    d->kernels->avg_pool_back(d, &shape, at[3], at[4], false);
    assert_int_equal(d->kernels->synchronize(d), OK);
}

static void images_are_pooled_alike_wherever_they_lie(void **state)
{
    struct device gpu = open_gpu(), cpu = open_cpu();
    for (int64_t channels = 1; channels <= 12; channels++)
        for (int shift = 0; shift < SHIFTS; shift++) {
            const int64_t n = 2 * 7 * 6 * channels;
            const int shifts[VECTORS] = {shift, 0, shift, shift, 0};
            struct vectors got = new_vectors(&gpu, n, shifts);
            struct vectors want = new_vectors(&cpu, n, together);
            pool(&gpu, got.at, channels);
            pool(&cpu, want.at, channels);
            for (int i = 0; i < VECTORS; i++)
                for (int64_t j = 0; j < n; j++)
                    assert_near(got.at[i][j], want.at[i][j], summed, "pooling", j);
            free_vectors(&gpu, &got, "pooling");
            free_vectors(&cpu, &want, "pooling");
        }
    close_device(&gpu);
    close_device(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_of_any_length_lie_where_they_like),
#ifndef __SANITIZE_ADDRESS__
        cmocka_unit_test(long_vectors_give_each_thread_several_packs),
        cmocka_unit_test(many_rows_are_walked_through),
#endif
        cmocka_unit_test(sums_have_the_same_bits_wherever_the_vector_lies),
        cmocka_unit_test(rows_of_any_length_are_read_whole),
        cmocka_unit_test(images_are_pooled_alike_wherever_they_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
