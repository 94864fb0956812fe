/* test_session.c - a session whose stream of batches is moved computes what an undisturbed one
 * does, and takes the rows of tables that these batches name.
 *
 * Values stay as they are, so a loss depends on nothing but the batch and the draws of dropout.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/train/session/session.h"
#include "tests/core/train/fixture.h"

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

static void write_file(const char *text, char *path)
{
    const size_t length = strlen(text);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    close(fd);
}

static void read_spec(const char *text, struct spec *ret)
{
    char path[] = "/tmp/session-XXXXXX";
    write_file(text, path);
    const struct spec_options options = {.path = path, .seed = -1};
    if (spec_load(&options, ret)) fail_msg("%s", error_text());
    unlink(path);
}

static void load_spec(const char *data, struct spec *ret)
{
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"data\":%s,\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":"
             "16,\"activation\":\"relu\"},{\"op\":\"dropout\",\"rate\":0.5},{\"op\":"
             "\"dense\",\"units\":10}],\"loss\":\"softmax_cross_entropy\","
             "\"optimizer\":\"adam\",\"train\":{\"last_step\":100}}",
             data);
    read_spec(text, ret);
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
    assert_int_equal(f->session.fed.batches, batch);
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
    struct batch_source *data = f.session.data.train;
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

/* ---- rows of a table ---- */

enum { IDS = 40, OF_BATCH = 4, BATCHES = IDS / OF_BATCH };

struct table_fixture {
    struct fixture f;
    struct row_source source;
    struct arena arena;
    struct area_counts counts;
    void *window;
    int askings;
};

static struct rows_link *link_of(struct table_fixture *t)
{
    return &t->f.session.rows.links[0];
}

/* As a ps does it: each row is its id. */
static void answer_rows(struct table_fixture *t, size_t bytes)
{
    const struct row_area *area = &link_of(t)->area;
    assert_int_equal(area_read_counts(area, t->window, bytes, true, &t->counts), OK);
    const int64_t *ids = area_wanted_ids(area, &t->counts, t->window);
    for (int64_t i = 0; i < t->counts.wanted_rows; i++)
        area_rows(area, t->window)[i] = (float)ids[i];
}

static err ask_rows(void *context, const size_t bytes[], bool trains)
{
    struct table_fixture *t = context;
    t->askings++;
    answer_rows(t, bytes[0]);
    return OK;
}

static void load_table_spec(bool is_shuffled, char *path, struct spec *ret)
{
    char text[TEXT_MAX], rows[TEXT_MAX] = "id,y\n";
    for (int i = 0; i < IDS; i++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "%d,0\n", i);
    write_file(rows, path);
    snprintf(text, sizeof text,
             "{\"data\":{\"train\":{\"format\":\"csv\",\"file\":\"%s\",\"label\":\"y\","
             "\"label_type\":\"number\"},\"columns\":[{\"column\":\"identity\",\"name\":\"id\","
             "\"buckets\":%d}],\"batch_size\":%d,\"shuffle\":%s},\"model\":[{\"op\":\"embedding\","
             "\"name\":\"t\",\"inputs\":[\"id\"],\"dimension\":1},{\"op\":\"dense\",\"units\":1,"
             "\"kernel_initializer\":{\"type\":\"ones\"}}],"
             "\"loss\":{\"op\":\"huber\",\"delta\":1},"
             "\"optimizer\":\"adam\",\"train\":{\"last_step\":100}}",
             path, IDS, OF_BATCH, is_shuffled ? "true" : "false");
    read_spec(text, ret);
}

static void open_table(struct table_fixture *t, bool is_shuffled)
{
    struct fixture *f = &t->f;
    char path[] = "/tmp/session-XXXXXX";
    *t = (struct table_fixture){.source = {ask_rows, t}};
    load_table_spec(is_shuffled, path, &f->spec);
    f->device = fixture_device();
    const struct session_options options = {
        &f->spec, &f->device, 0, 1, 1, 1, .is_handed_out = true, .rows_from = &t->source};
    if (session_open(&options, &f->session)) fail_msg("%s", error_text());
    unlink(path);
    f->values = block(f);
    f->gradients = block(f);
    session_bind(&f->session, 0, f->values, f->gradients);
    assert_int_equal(session_initial_values(&f->session, 0, f->values), OK);
    const size_t bytes = rows_window_bytes(&f->session.rows, 0);
    t->window = aligned_alloc(AREA_ALIGN, (bytes + AREA_ALIGN - 1) / AREA_ALIGN * AREA_ALIGN);
    assert_non_null(t->window);
    area_counts_open(&link_of(t)->area, &t->arena, &t->counts);
    session_bind_rows(&f->session, 0, t->window, false);
}

static void close_table(struct table_fixture *t)
{
    close_fixture(&t->f);
    arena_free(&t->arena);
    free(t->window);
}

/* Its push leaves, and names the rows of the next batch. */
static double step_and_name(struct table_fixture *t)
{
    struct batch_source *data = t->f.session.data.train;
    const double loss = step(&t->f);
    while (data->calls->ready(data) == 0) sched_yield();
    assert_int_equal(session_hand_over(&t->f.session), OK);
    assert_true(t->f.session.rows.names_next);
    return loss;
}

/* They come with the values that answer that push. */
static void bring_named(struct table_fixture *t)
{
    answer_rows(t, link_of(t)->front);
    rows_came(&t->f.session.rows, 0, t->f.session.fed.batches);
}

static void plan(struct table_fixture *t, uint64_t first, uint64_t begin, uint64_t end)
{
    const uint64_t range[2] = {begin, end};
    if (session_plan_batches(&t->f.session, first, range, 1)) fail_msg("%s", error_text());
}

static void assert_next(struct table_fixture *t, double wanted, bool asks)
{
    t->askings = 0;
    const double loss = step_and_name(t);
    assert_memory_equal(&loss, &wanted, sizeof loss);
    assert_int_equal(t->askings, asks);
}

static void check_rows(bool is_shuffled)
{
    static struct table_fixture t;
    double losses[BATCHES];
    open_table(&t, is_shuffled);
    plan(&t, 0, 0, BATCHES + 1);
    for (int i = 0; i < BATCHES; i++) losses[i] = step_and_name(&t);
    close_table(&t);
    assert_true(losses[1] != losses[5]);
    open_table(&t, is_shuffled);
    plan(&t, 0, 0, 4);
    assert_next(&t, losses[0], true);
    bring_named(&t);
    plan(&t, 1, 5, 9); /* instead of the batch whose rows are there */
    assert_next(&t, losses[5], true);
    bring_named(&t);
    assert_next(&t, losses[6], false);
    plan(&t, 3, 0, 4); /* of the one whose rows are to come */
    bring_named(&t);
    assert_next(&t, losses[0], true);
    plan(&t, 4, 1, 3); /* as it was */
    bring_named(&t);
    assert_next(&t, losses[1], false);
    bring_named(&t);
    seek(&t.f, 4);
    plan(&t, 4, 7, 10); /* nothing is taken since it was moved */
    seek(&t.f, 5);
    assert_next(&t, losses[8], true);
    close_table(&t);
}

static void rows_of_tables_are_those_of_the_batch_that_comes(void **state)
{
    check_rows(false);
    check_rows(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sought_session_takes_the_batches_and_draws_of_an_undisturbed_one),
        cmocka_unit_test(several_batches_of_one_push_are_sought_as_batches),
        cmocka_unit_test(seeking_to_where_it_stands_keeps_the_stream),
        cmocka_unit_test(a_batch_beyond_the_stream_is_refused_and_the_session_goes_on),
        cmocka_unit_test(rows_of_tables_are_those_of_the_batch_that_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
