/* test_memory.c - what does not fit into the memory of a device is told before the first step, with
 * a table and a batch that would fit. */
#include "tests/device/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1024, LIMIT = 3000000 };

#define DENSE "{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":100,\"activation\":\"relu\"}"
#define CONVOLUTION "{\"op\":\"conv2d\",\"filters\":2,\"kernel_size\":3},{\"op\":\"flatten\"}"

static int64_t eval_rows = 40, eval_batch; /* 0: as the training's */

static void load(const char *layers, int64_t batch, struct spec *ret)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof text,
             "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":3000},\"eval\":{\"format\":"
             "\"digits\",\"rows\":%lld},\"batch_size\":%lld,\"eval_batch_size\":%lld,\"scale\":"
             "0.0039},\"model\":[%s,{\"op\":\"dense\",\"units\":10}],\"loss\":\"softmax_cross_"
             "entropy\",\"optimizer\":{\"type\":"
             "\"adam\",\"learning_rate\":0.01},\"train\":{\"last_step\":10}}",
             (long long)eval_rows, (long long)batch, (long long)eval_batch, layers);
    rig_load_spec(text, ret);
}

static size_t reserved; /* of the device's memory, for what nobody can count beforehand */
static bool is_taken;   /* by somebody else, after it was said to be free */

static size_t all_is_free(struct device *d)
{
    return 1000 * (size_t)LIMIT;
}

/* The error's text where there is one: borrowed until the next. */
static err try_layers(const char *layers, int64_t batch, size_t limit, bool is_alone)
{
    struct spec spec;
    struct session session;
    struct device device;
    load(layers, batch, &spec);
    assert_int_equal(device_open_apart(limit, &device), OK);
    struct kernels kernels = *device.kernels;
    kernels.reserved = reserved;
    if (is_taken) kernels.available = all_is_free;
    device.kernels = &kernels;
    const struct session_options options = {.spec = &spec,
                                            .device = &device,
                                            .workers = 1,
                                            .ps_count = 1,
                                            .batches_per_push = 1,
                                            .binds_device_memory = is_alone};
    const err e = session_open(&options, &session);
    if (!e) session_close(&session);
    assert_int_equal(device_apart_in_use(&device), 0);
    device_close(&device);
    spec_free(&spec);
    return e;
}

static err try(int64_t batch, size_t limit, bool is_alone)
{
    return try_layers(DENSE, batch, limit, is_alone);
}

static int64_t batch_that_fits(void)
{
    const char *at = strstr(error_text(), "data.batch_size ");
    assert_non_null(at);
    return atoll(at + strlen("data.batch_size "));
}

static void a_batch_that_does_not_fit_is_refused_with_a_table(void **state)
{
    static const char *const rows[] = {"values",     "gradients", "slots",    "activations",
                                       "evaluation", "workspace", "reserved", "free"};
    assert_int_equal(try(2000, LIMIT, false), ERR_MEMORY);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_non_null(strstr(error_text(), rows[i]));
    assert_non_null(strstr(error_text(), "batches of 2000 examples"));
    assert_non_null(strstr(error_text(), "3.000 MB"));
}

static void the_batch_that_is_named_fits_and_the_next_one_does_not(void **state)
{
    assert_int_equal(try(2000, LIMIT, false), ERR_MEMORY);
    const int64_t fits = batch_that_fits();
    assert_in_range(fits, 1, 1999);
    assert_int_equal(try(fits, LIMIT, false), OK);
    assert_int_equal(try(fits + 1, LIMIT, false), ERR_MEMORY);
}

/* An evaluation takes as many examples at a time as training does, unless it is told how many. */
static void the_evaluation_becomes_smaller_with_the_batch(void **state)
{
    eval_rows = 3000;
    for (int64_t batch = 1000; batch <= 3000; batch += 1000) {
        assert_int_equal(try(batch, LIMIT, false), ERR_MEMORY);
        const int64_t fits = batch_that_fits();
        assert_in_range(fits, 101, 999);
        assert_int_equal(try(fits, LIMIT, false), OK);
        assert_int_equal(try(fits + 1, LIMIT, false), ERR_MEMORY);
    }
    eval_rows = 40;
}

static void an_evaluation_that_does_not_fit_by_itself_is_named(void **state)
{
    eval_rows = eval_batch = 3000;
    assert_int_equal(try(50, LIMIT, false), ERR_MEMORY);
    assert_non_null(strstr(error_text(), "a smaller data.eval_batch_size may fit"));
    eval_batch = 50;
    assert_int_equal(try(50, LIMIT, false), OK);
    eval_rows = 40;
    eval_batch = 0;
}

static double row(const char *name)
{
    const char *at = strstr(error_text(), name);
    assert_non_null(at);
    return atof(at + strlen(name));
}

/* The device apart takes 4 bytes for each of the 26 x 26 pixels that a convolution makes, in
 * training and in the evaluation of 40 examples. */
static void what_convolutions_take_for_themselves_counts(void **state)
{
    assert_int_equal(try(2000, LIMIT, false), ERR_MEMORY);
    assert_true(row("workspace") == 0);
    assert_int_equal(try_layers(CONVOLUTION, 2000, LIMIT, false), ERR_MEMORY);
    const double megabytes = (2000 + 40) * 26 * 26 * 4 / 1e6;
    assert_true(row("workspace") > megabytes - 0.001 && row("workspace") < megabytes + 0.001);
    const int64_t fits = batch_that_fits();
    assert_in_range(fits, 1, 1999);
    assert_int_equal(try_layers(CONVOLUTION, fits, LIMIT, false), OK);
    assert_int_equal(try_layers(CONVOLUTION, fits + 1, LIMIT, false), ERR_MEMORY);
}

/* Values twice and two slots more. */
static void variables_that_live_on_the_device_count(void **state)
{
    assert_int_equal(try(2000, LIMIT, false), ERR_MEMORY);
    const int64_t beside = batch_that_fits();
    assert_int_equal(try(2000, LIMIT, true), ERR_MEMORY);
    const double megabytes = (785 * 100 + 101 * 10) * 4 / 1e6; /* where updates sum gradients */
    assert_true(row("workspace") > megabytes - 0.001 && row("workspace") < megabytes + 0.001);
    assert_true(batch_that_fits() < beside);
}

/* As much smaller as if the device had that much less. */
static void what_the_driver_and_its_libraries_may_take_is_left_to_them(void **state)
{
    assert_int_equal(try(2000, LIMIT, false), ERR_MEMORY);
    assert_true(row("reserved") == 0);
    assert_int_equal(try(2000, LIMIT - 1000000, false), ERR_MEMORY);
    const int64_t of_less = batch_that_fits();
    reserved = 1000000;
    assert_int_equal(try(2000, LIMIT, false), ERR_MEMORY);
    assert_int_equal(batch_that_fits(), of_less);
    assert_true(row("reserved") == 1.0 && row("free") == 3.0);
    assert_int_equal(try(of_less, LIMIT, false), OK);
    assert_int_equal(try(of_less + 1, LIMIT, false), ERR_MEMORY);
    reserved = 0;
}

static void a_model_that_does_not_fit_at_all_is_told_so(void **state)
{
    assert_int_equal(try(2000, 100000, false), ERR_MEMORY);
    assert_non_null(strstr(error_text(), "no data.batch_size would fit"));
}

static void what_was_free_and_is_taken_by_then_is_told_with_the_table(void **state)
{
    is_taken = true;
    assert_int_equal(try(2000, LIMIT, false), ERR_MEMORY);
    assert_true(row("free") == 3000.0);
    assert_non_null(strstr(error_text(), "; a smaller data.batch_size may fit"));
    is_taken = false;
}

static void a_device_that_does_not_say_what_is_free_is_not_asked(void **state)
{
    assert_int_equal(try(2000, SIZE_MAX, false), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_that_does_not_fit_is_refused_with_a_table),
        cmocka_unit_test(the_batch_that_is_named_fits_and_the_next_one_does_not),
        cmocka_unit_test(the_evaluation_becomes_smaller_with_the_batch),
        cmocka_unit_test(an_evaluation_that_does_not_fit_by_itself_is_named),
        cmocka_unit_test(what_convolutions_take_for_themselves_counts),
        cmocka_unit_test(variables_that_live_on_the_device_count),
        cmocka_unit_test(what_the_driver_and_its_libraries_may_take_is_left_to_them),
        cmocka_unit_test(a_model_that_does_not_fit_at_all_is_told_so),
        cmocka_unit_test(what_was_free_and_is_taken_by_then_is_told_with_the_table),
        cmocka_unit_test(a_device_that_does_not_say_what_is_free_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
