/* digits and random: the same everywhere and always, balanced, and as hard as promised. */
#include "tests/core/data/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PIXELS = 28 * 28, CLASSES = 10 };

static uint32_t sum_of(const void *bytes, size_t count)
{
    return (uint32_t)crc32(0, bytes, (uInt)count);
}

static void digits_are_the_same_bytes_on_every_machine(void **state)
{
    struct dataset d;
    source_open_ok("{'format': 'digits', 'rows': 1000}", &d);
    const struct shape wanted = {.rank = 3, .dim = {28, 28, 1}};
    assert_true(shape_equal(&d.columns[FEATURES].shape, &wanted));
    assert_int_equal(d.columns[FEATURES].dtype, UINT8);
    assert_int_equal(sum_of(d.columns[FEATURES].at, 1000 * PIXELS), 0xa85bffff);
    assert_int_equal(sum_of(d.columns[LABELS].at, 4000), 0xc9b665bf);
    dataset_close(&d);
}

static void a_digit_depends_on_its_row_and_not_on_how_many_there_are(void **state)
{
    struct dataset few, many;
    source_open_ok("{'format': 'digits', 'rows': 33}", &few);
    source_open_ok("{'format': 'digits', 'rows': 500}", &many);
    assert_memory_equal(few.columns[FEATURES].at, many.columns[FEATURES].at, 33 * PIXELS);
    assert_memory_equal(few.columns[LABELS].at, many.columns[LABELS].at, 33 * 4);
    dataset_close(&few);
    dataset_close(&many);
}

static void splits_and_seeds_have_no_image_in_common(void **state)
{
    enum { ROWS = 200 };
    struct dataset d[3];
    source_open_ok("{'format': 'digits', 'rows': 200}", &d[0]);
    source_open_ok("{'format': 'digits', 'rows': 200, 'split': 'test'}", &d[1]);
    source_open_ok("{'format': 'digits', 'rows': 200, 'seed': 1}", &d[2]);
    for (int a = 0; a < 3 * ROWS; a++) {
        for (int b = 0; b < a; b++) {
            const uint8_t *one =
                (const uint8_t *)d[a / ROWS].columns[FEATURES].at + a % ROWS * PIXELS;
            const uint8_t *other =
                (const uint8_t *)d[b / ROWS].columns[FEATURES].at + b % ROWS * PIXELS;
            assert_true(memcmp(one, other, PIXELS) != 0);
        }
    }
    for (int i = 0; i < 3; i++) dataset_close(&d[i]);
}

static void any_ten_rows_from_a_multiple_of_ten_are_the_ten_digits(void **state)
{
    struct dataset d;
    source_open_ok("{'format': 'digits', 'rows': 1000}", &d);
    const int32_t *label = d.columns[LABELS].at;
    bool is_sorted = true;
    for (int i = 0; i < 1000; i += CLASSES) {
        int seen = 0;
        for (int k = 0; k < CLASSES; k++) {
            seen |= 1 << label[i + k];
            is_sorted = is_sorted && label[i + k] == label[k];
        }
        assert_int_equal(seen, (1 << CLASSES) - 1);
    }
    assert_false(is_sorted);
    dataset_close(&d);
}

/* Softmax regression with plain gradient descent; weights [class, pixel]. */
struct softmax {
    float weight[CLASSES][PIXELS], bias[CLASSES];
};

static void scores(const struct softmax *s, const float *x, float *ret)
{
    for (int c = 0; c < CLASSES; c++) {
        float lane[16] = {0}; /* 16 sums side by side, so that the compiler may use vectors */
        for (int i = 0; i < PIXELS; i += 16)
            for (int k = 0; k < 16; k++) lane[k] += s->weight[c][i + k] * x[i + k];
        ret[c] = s->bias[c];
        for (int k = 0; k < 16; k++) ret[c] += lane[k];
    }
}

static void learn(struct softmax *s, const struct softmax *at, const float *x, int label,
                  float rate)
{
    float score[CLASSES], top = -INFINITY, sum = 0;
    scores(at, x, score);
    for (int c = 0; c < CLASSES; c++) top = fmaxf(top, score[c]);
    for (int c = 0; c < CLASSES; c++) sum += score[c] = expf(score[c] - top);
    for (int c = 0; c < CLASSES; c++) {
        float step = rate * ((c == label) - score[c] / sum);
        for (int i = 0; i < PIXELS; i++) s->weight[c][i] += step * x[i];
        s->bias[c] += step;
    }
}

static double accuracy(const struct softmax *s, const struct dataset *d, const struct transform *t)
{
    float x[PIXELS], score[CLASSES];
    int32_t label, right = 0;
    for (int64_t row = 0; row < d->rows; row++) {
        source_read(d, t, row, 1, x, &label);
        scores(s, x, score);
        int best = 0;
        for (int c = 1; c < CLASSES; c++) best = score[c] > score[best] ? c : best;
        right += best == label;
    }
    return (double)right / (double)d->rows;
}

static void train(struct softmax *s, const struct dataset *d, const struct transform *t, int steps)
{
    enum { BATCH = 100 };
    const struct stream_options options = {
        .transform = *t, .batch = BATCH, .shuffle = true, .workers = 1, .prefetch = 2};
    struct batch_source *p;
    struct softmax *before = malloc(sizeof *before);
    assert_non_null(before);
    assert_int_equal(source_begin(d, &options, &p), OK);
    for (int step = 0; step < steps; step++) {
        struct batch b;
        assert_int_equal(p->calls->next(p, &b), OK);
        *before = *s;
        for (int i = 0; i < BATCH; i++)
            learn(s, before, batch_features(&b) + i * PIXELS,
                  ((const int32_t *)batch_labels(&b))[i], 0.5f / BATCH);
    }
    batch_source_close(p);
    free(before);
}

static void softmax_regression_learns_most_digits_but_not_all(void **state)
{
    const struct transform t = {
        .scale = 1 / 255.0f,
        .labels = {{.dtype = INT32, .rule = LABELS_CLASSES, .classes = CLASSES}},
        .label_count = 1};
    struct dataset learned, other;
    struct softmax *s = calloc(1, sizeof *s);
    assert_non_null(s);
    source_open_ok("{'format': 'digits', 'rows': 20000}", &learned);
    source_open_ok("{'format': 'digits', 'rows': 2000, 'split': 'test'}", &other);
    assert_true(accuracy(s, &other, &t) < 0.2);
    train(s, &learned, &t, 400);
    double reached = accuracy(s, &other, &t);
    print_message("accuracy after 400 steps: %.4f\n", reached);
    assert_true(reached > 0.82 && reached < 0.93);
    dataset_close(&learned);
    dataset_close(&other);
    free(s);
}

static void random_features_are_uniform_and_labels_cover_the_classes(void **state)
{
    struct dataset d;
    source_open_ok("{'format': 'random', 'rows': 30000, 'shape': [10, 7], 'classes': 3}", &d);
    const float *x = d.columns[FEATURES].at;
    const int32_t *label = d.columns[LABELS].at;
    int bins[16] = {0}, classes[3] = {0};
    double sum = 0, pairs = 0;
    int64_t count = d.rows * 70;
    for (int64_t i = 0; i < count; i++) {
        assert_true(x[i] >= 0 && x[i] < 1);
        bins[(int)(x[i] * 16)]++;
        sum += x[i];
        pairs += i > 0 ? (x[i] - 0.5) * (x[i - 1] - 0.5) : 0;
    }
    for (int i = 0; i < d.rows; i++) classes[label[i]]++;
    assert_true(fabs(sum / (double)count - 0.5) < 0.001);
    assert_true(fabs(pairs / (double)count) < 0.001); /* neighbours are independent */
    for (int i = 0; i < 16; i++) assert_true(abs(bins[i] - (int)count / 16) < 2500);
    for (int i = 0; i < 3; i++) assert_true(abs(classes[i] - 10000) < 500);
    dataset_close(&d);
}

static void random_depends_on_the_seed_alone(void **state)
{
    struct dataset one, same, other;
    source_open_ok("{'format': 'random', 'rows': 50, 'shape': 9}", &one);
    source_open_ok("{'format': 'random', 'rows': 50, 'shape': 9}", &same);
    source_open_ok("{'format': 'random', 'rows': 50, 'shape': 9, 'seed': 1}", &other);
    assert_memory_equal(one.columns[FEATURES].at, same.columns[FEATURES].at, 50 * 9 * 4);
    assert_memory_equal(one.columns[LABELS].at, same.columns[LABELS].at, 50 * 4);
    assert_memory_not_equal(one.columns[FEATURES].at, other.columns[FEATURES].at, 50 * 9 * 4);
    assert_memory_not_equal(one.columns[LABELS].at, other.columns[LABELS].at, 50 * 4);
    dataset_close(&one);
    dataset_close(&same);
    dataset_close(&other);
}

static void random_labels_may_be_numbers(void **state)
{
    struct dataset d;
    source_open_ok("{'format': 'random', 'rows': 100, 'shape': 1, 'label_type': 'number'}", &d);
    assert_int_equal(d.columns[LABELS].dtype, FLOAT32);
    const float *label = d.columns[LABELS].at;
    for (int i = 0; i < 100; i++) assert_true(label[i] >= 0 && label[i] < 1);
    assert_true(label[0] != label[1]);
    dataset_close(&d);
}

static void generators_refuse_what_cannot_be(void **state)
{
    struct dataset d = {0};
    assert_refused("{'format': 'digits', 'rows': 0}", "rows", NULL);
    assert_refused("{'format': 'digits', 'split': 'valid'}", "split", NULL);
    assert_refused("{'format': 'random', 'rows': -1, 'shape': [3]}", "rows", NULL);
    assert_refused("{'format': 'random', 'rows': 1, 'shape': [0]}", "shape", NULL);
    assert_refused("{'format': 'random', 'rows': 1, 'shape': [3], 'classes': 0}", "classes", NULL);
    assert_refused("{'format': 'random', 'rows': 1099511627776, 'shape': [1099511627776]}",
                   "more than memory", NULL);
    assert_int_equal(
        source_open("{'format': 'random', 'rows': 1099511627776, 'shape': [1048576]}", &d),
        ERR_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_the_same_bytes_on_every_machine),
        cmocka_unit_test(a_digit_depends_on_its_row_and_not_on_how_many_there_are),
        cmocka_unit_test(splits_and_seeds_have_no_image_in_common),
        cmocka_unit_test(any_ten_rows_from_a_multiple_of_ten_are_the_ten_digits),
        cmocka_unit_test(softmax_regression_learns_most_digits_but_not_all),
        cmocka_unit_test(random_features_are_uniform_and_labels_cover_the_classes),
        cmocka_unit_test(random_depends_on_the_seed_alone),
        cmocka_unit_test(random_labels_may_be_numbers),
        cmocka_unit_test(generators_refuse_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
