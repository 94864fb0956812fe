/* test_session.c - a session whose stream of batches is moved computes what an undisturbed one
 * does.
 *
 * Values stay as they are, so a loss depends on nothing but the batch and the draws of dropout.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/train/session/session.h"
#include "tests/train/fixture.h"

enum { STEPS = 12, TEXT_MAX = 1024 };

/* Shuffled bytes of images come through the reader's thread, floats in stored order without. */
static const char threaded[] = "{\"train\":{\"format\":\"digits\",\"rows\":70},\"batch_size\":8,"
                               "\"scale\":0.0039}";
static const char direct[] = "{\"train\":{\"format\":\"random\",\"rows\":70,\"shape\":[9]},"
                             "\"batch_size\":8,\"shuffle\":false}";

struct fixture {
    struct spec spec;
    struct device device;
    struct session session;
    float *values, *gradients;
};

static void load_spec(const char *data, struct spec *ret)
{
    char text[TEXT_MAX], path[] = "/tmp/session-XXXXXX";
    int length =
        snprintf(text, sizeof text,
                 "{\"data\":%s,\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":"
                 "16,\"activation\":\"relu\"},{\"op\":\"dropout\",\"rate\":0.5},{\"op\":"
                 "\"dense\",\"units\":10}],\"loss\":\"softmax_cross_entropy\","
                 "\"optimizer\":\"adam\",\"train\":{\"last_step\":100}}",
                 data);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, (size_t)length), length);
    close(fd);
    const struct spec_options options = {.path = path, .seed = -1};
    if (spec_load(&options, ret)) fail_msg("%s", error_text());
    unlink(path);
}

static float *block(struct fixture *f)
{
    void *memory;
    size_t bytes = (size_t)f->session.layout->block_floats[0] * sizeof(float);
    assert_int_equal(f->device.kernels->allocate(&f->device, bytes, &memory), OK);
    return memory;
}

/* Worker 1 of 3, so that its share of the stream is not the stream. */
static void open_fixture(struct fixture *f, const char *data, int batches_per_push)
{
    load_spec(data, &f->spec);
    f->device = fixture_device();
    const struct session_options options = {&f->spec, &f->device, 1, 3, 1, batches_per_push};
    if (session_open(&options, &f->session)) fail_msg("%s", error_text());
    f->values = block(f);
    f->gradients = block(f);
    session_bind(&f->session, 0, f->values, f->gradients);
    assert_int_equal(session_initial_values(&f->session, 0, f->values), OK);
}

static void close_fixture(struct fixture *f)
{
    f->device.kernels->release(&f->device, f->values);
    f->device.kernels->release(&f->device, f->gradients);
    session_close(&f->session);
    device_close(&f->device);
    spec_free(&f->spec);
}

static double step(struct fixture *f)
{
    double loss;
    if (session_step(&f->session, &loss)) fail_msg("%s", error_text());
    return loss;
}

static void record(const char *data, int batches_per_push, double ret_losses[STEPS])
{
    static struct fixture f;
    open_fixture(&f, data, batches_per_push);
    for (int i = 0; i < STEPS; i++) ret_losses[i] = step(&f);
    close_fixture(&f);
}

static void seek(struct fixture *f, uint64_t batch)
{
    if (session_seek(&f->session, batch)) fail_msg("%s", error_text());
    assert_int_equal(f->session.batches, batch);
}

static void assert_same(struct fixture *f, const double losses[], int first, int last)
{
    for (int i = first; i <= last; i++) {
        double loss = step(f);
        assert_memory_equal(&loss, &losses[i], sizeof loss);
    }
}

static void check_seeks(const char *data, int batches_per_push)
{
    static struct fixture f;
    double losses[STEPS];
    const uint64_t batches = (uint64_t)batches_per_push;
    record(data, batches_per_push, losses);
    assert_true(losses[0] != losses[1]);
    open_fixture(&f, data, batches_per_push);
    seek(&f, 7 * batches);
    assert_same(&f, losses, 7, 8);
    seek(&f, 2 * batches);
    assert_same(&f, losses, 2, 4);
    seek(&f, 5 * batches);
    assert_same(&f, losses, 5, 6);
    seek(&f, 10 * batches);
    assert_same(&f, losses, 10, 11);
    seek(&f, 0);
    assert_same(&f, losses, 0, STEPS - 1);
    close_fixture(&f);
}

static void a_sought_session_takes_the_batches_and_draws_of_an_undisturbed_one(void **state)
{
    check_seeks(threaded, 1);
    check_seeks(direct, 1);
}

static void several_batches_of_one_push_are_sought_as_batches(void **state)
{
    check_seeks(threaded, 2);
}

static void seeking_to_where_it_stands_keeps_the_stream(void **state)
{
    static struct fixture f;
    open_fixture(&f, threaded, 1);
    step(&f);
    struct batch_source *data = f.session.train_data;
    while (data->calls->ready(data) < f.spec.data.prefetch) sched_yield();
    seek(&f, 1);
    assert_int_equal(data->calls->ready(data), f.spec.data.prefetch);
    close_fixture(&f);
}

static void a_batch_beyond_the_stream_is_refused_and_the_session_goes_on(void **state)
{
    static struct fixture f;
    double losses[STEPS];
    record(threaded, 1, losses);
    open_fixture(&f, threaded, 1);
    step(&f);
    assert_int_equal(session_seek(&f.session, UINT64_MAX / 2), ERR_INPUT);
    assert_non_null(strstr(error_text(), "beyond the stream"));
    assert_same(&f, losses, 1, 3);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sought_session_takes_the_batches_and_draws_of_an_undisturbed_one),
        cmocka_unit_test(several_batches_of_one_push_are_sought_as_batches),
        cmocka_unit_test(seeking_to_where_it_stands_keeps_the_stream),
        cmocka_unit_test(a_batch_beyond_the_stream_is_refused_and_the_session_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
