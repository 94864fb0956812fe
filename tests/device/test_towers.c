/* test_towers.c - several towers compute of a batch what one replica computes of all of it, on
 * CPUs, on devices of their own, and mixed; and the same to the bit every time.
 *
 * Called with "gpus", on GPUs 0 and 1 alone, where there are two: real ones or emulated.
 *
 * Values stay as they are, so that a step depends on nothing but its batch and the draws of
 * dropout. Sums are taken in another order, so numbers are near, not equal.
 */
#include "tests/device/rig.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "tests/device/apart.h"

enum { STEPS = 4, MOST = 4, PUSHED_MOST = 512, SKIPPED = 77 };

enum where { HERE, AWAY, GPU_0, GPU_1 };

/* Everything that a batch as a whole has a say in: dropout, a regularizer, and how the optimizer
 * clips */
#define DENSE(optimizer)                                                                           \
    "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":70},\"batch_size\":24,\"scale\":"        \
    "0.0039},\"model\":[{\"op\":\"conv2d\",\"filters\":3,\"kernel_size\":3},{\"op\":\"flatten\"}," \
    "{\"op\":\"dense\",\"units\":16,\"activation\":\"relu\",\"kernel_regularizer\":{\"l2\":0.01}}" \
    ","                                                                                            \
    "{\"op\":\"dropout\",\"rate\":0.5},{\"op\":\"dense\",\"units\":10}],"                          \
    "\"loss\":\"softmax_cross_entropy\",\"metrics\":[\"accuracy\"],\"optimizer\":" optimizer       \
    ",\"train\":{\"last_step\":100}}"
static const char dense[] = DENSE("\"adam\"");
static const char clipped[] =
    DENSE("{\"type\":\"adam\",\"clip\":{\"type\":\"global_norm\",\"norm\":0.5}}");

/* Rows of unlike weights, some of none, and tables of rows, of which two columns share one */
static const char clicks[] =
    "{\"data\":{\"train\":{\"format\":\"clicks\",\"rows\":200,\"buckets\":40},\"batch_size\":24,"
    "\"weight\":\"w\",\"columns\":[{\"column\":\"identity\",\"name\":\"c1\",\"buckets\":40},"
    "{\"column\":\"identity\",\"name\":\"c2\",\"buckets\":40},{\"column\":\"numeric\",\"name\":"
    "\"w\",\"source\":\"c3\"}]},\"model\":[{\"op\":\"embedding\",\"name\":\"a\",\"inputs\":"
    "[\"c1\"],\"dimension\":3},{\"op\":\"embedding\",\"name\":\"b\",\"inputs\":[\"c2\"],"
    "\"dimension\":3,\"table\":\"a\"},{\"op\":\"linear\",\"name\":\"wide\",\"inputs\":[\"c1\","
    "\"c2\"]},{\"op\":\"concat\",\"inputs\":[\"a\",\"b\",\"wide\"]},{\"op\":\"dense\",\"units\":1}"
    "],\"loss\":\"sigmoid_cross_entropy\",\"metrics\":[\"accuracy\",\"auc\"],"
    "\"optimizer\":{\"type\":\"gradient_descent\",\"learning_rate\":0.1},\"train\":{\"last_step\":"
    "100}}";

struct work {
    const char *spec;
    int batches_per_push;
    int towers;                 /* 0: one replica */
    enum where where[MOST + 1]; /* the session's device, then those of towers */
};

struct world {
    struct spec spec;
    struct device devices[MOST + 1], *at[MOST];
    struct session session;
    void *window;
    float *values, *gradients;
};

/* What came of the steps */
struct record {
    double losses[STEPS], accuracies[STEPS];
    int64_t floats;
    float *gradients; /* [STEPS, floats] of dense variables */
    /* What is pushed of rows: the front names rows of the next batch, too, where that lies ready.
     */
    int64_t ids[STEPS][PUSHED_MOST], id_count[STEPS];
    float rows[STEPS][PUSHED_MOST];
    int64_t number_count[STEPS];
};

/* Freed with the arena */
static struct area_counts counts_of(const struct world *w, size_t bytes, struct arena *arena)
{
    const struct rows_link *link = &w->session.rows.links[0];
    struct area_counts counts;
    area_counts_open(&link->area, arena, &counts);
    assert_int_equal(area_read_counts(&link->area, w->window, bytes, true, &counts), OK);
    return counts;
}

/* One ps has all rows. */
static err ask(void *context, const size_t bytes[], bool trains)
{
    struct world *w = context;
    const struct rows_link *link = &w->session.rows.links[0];
    struct arena arena = {0};
    const struct area_counts counts = counts_of(w, bytes[0], &arena);
    const int64_t *ids = area_wanted_ids(&link->area, &counts, w->window);
    float *to = area_rows(&link->area, w->window);
    for (int i = 0; i < link->area.count; i++)
        for (int64_t j = 0; j < counts.wanted[i]; j++, ids++)
            for (int64_t k = 0, width = link->area.slices[i].width; k < width; k++)
                *to++ = 0.3f * random_normal((uint64_t)i, (uint64_t)(*ids * width + k));
    arena_free(&arena);
    return OK;
}

static void open_device(enum where where, struct device *ret)
{
    const struct gpu_options gpu = {.index = (int)where - GPU_0};
    const err e = where == HERE   ? device_open_cpu(1, NULL, ret)
                  : where == AWAY ? device_open_apart(SIZE_MAX, ret)
                                  : device_open_gpu(&gpu, ret);
    if (e) fail_msg("%s", error_text());
}

static void open_world(struct world *w, const struct work *work)
{
    static struct row_source source;
    *w = (struct world){0};
    rig_load_spec(work->spec, &w->spec);
    for (int i = 0; i <= work->towers; i++) open_device(work->where[i], &w->devices[i]);
    for (int i = 0; i < work->towers; i++) w->at[i] = &w->devices[i + 1];
    /* as in a run: the first tower on another device than a CPU has the session's */
    if (work->where[0] != HERE) w->at[0] = &w->devices[0];
    source = (struct row_source){ask, w};
    const struct session_options options = {.spec = &w->spec,
                                            .device = &w->devices[0],
                                            .towers = {w->at, work->towers},
                                            .workers = 1,
                                            .ps_count = 1,
                                            .batches_per_push = work->batches_per_push,
                                            .rows_from = &source};
    if (session_open(&options, &w->session)) fail_msg("%s", error_text());
    const int64_t floats = w->session.layout->block_floats[0];
    w->values = rig_block(floats);
    w->gradients = rig_block(floats);
    w->window = calloc(1, rows_window_bytes(&w->session.rows, 0) + 1);
    assert_non_null(w->window);
    session_bind(&w->session, 0, w->values, w->gradients);
    session_bind_rows(&w->session, 0, w->window, false);
    assert_int_equal(session_initial_values(&w->session, 0, w->values), OK);
}

static void close_world(struct world *w, const struct work *work)
{
    session_close(&w->session);
    for (int i = 0; i <= work->towers; i++) {
        if (work->where[i] == AWAY) assert_int_equal(device_apart_in_use(&w->devices[i]), 0);
        device_close(&w->devices[i]);
    }
    free(w->values);
    free(w->gradients);
    free(w->window);
    spec_free(&w->spec);
}

static void record_rows(struct world *w, struct record *r, int step)
{
    const struct rows_link *link = w->session.rows.links;
    struct arena arena = {0};
    if (!rows_are_used(&w->session.rows)) return;
    const struct area_counts counts = counts_of(w, link->front, &arena);
    for (int i = 0; i < link->area.count; i++) {
        r->id_count[step] += counts.pushed[i];
        r->number_count[step] += counts.pushed[i] * link->area.slices[i].width;
    }
    assert_in_range(r->number_count[step], 1, PUSHED_MOST);
    memcpy(r->ids[step], area_pushed_ids(&link->area, &counts, w->window),
           (size_t)r->id_count[step] * sizeof(int64_t));
    memcpy(r->rows[step], area_gradients(&link->area, &counts, w->window),
           (size_t)r->number_count[step] * sizeof(float));
    arena_free(&arena);
}

static void record_step(struct world *w, struct record *r, int step)
{
    struct session *s = &w->session;
    if (session_step(s, &r->losses[step])) fail_msg("%s", error_text());
    r->accuracies[step] = session_metric(s, 0);
    if (session_hand_over(s)) fail_msg("%s", error_text());
    memcpy(r->gradients + step * r->floats, w->gradients, (size_t)r->floats * sizeof(float));
    record_rows(w, r, step);
}

static struct record record(const struct work *work)
{
    static struct world w;
    open_world(&w, work);
    struct record r = {.floats = w.session.layout->block_floats[0]};
    r.gradients = calloc((size_t)(STEPS * r.floats), sizeof *r.gradients);
    assert_non_null(r.gradients);
    for (int i = 0; i < STEPS; i++) record_step(&w, &r, i);
    close_world(&w, work);
    return r;
}

static void assert_near(double got, double wanted, const char *what)
{
    if (!(got - wanted < 2e-5 && wanted - got < 2e-5))
        fail_msg("%s: %.9g instead of %.9g", what, got, wanted);
}

static void assert_like(const struct record *got, const struct record *wanted)
{
    assert_int_equal(got->floats, wanted->floats);
    for (int i = 0; i < STEPS; i++) {
        assert_near(got->losses[i], wanted->losses[i], "loss");
        assert_near(got->accuracies[i], wanted->accuracies[i], "accuracy");
    }
    for (int64_t i = 0; i < STEPS * got->floats; i++)
        assert_near(got->gradients[i], wanted->gradients[i], "gradient");
    assert_memory_equal(got->ids, wanted->ids, sizeof got->ids);
    for (int i = 0; i < STEPS; i++)
        for (int64_t k = 0; k < got->number_count[i]; k++)
            assert_near(got->rows[i][k], wanted->rows[i][k], "gradient of a row");
}

static void assert_equal_bits(const struct record *got, const struct record *wanted)
{
    assert_memory_equal(got->losses, wanted->losses, sizeof got->losses);
    assert_memory_equal(got->gradients, wanted->gradients,
                        (size_t)(STEPS * got->floats) * sizeof(float));
    assert_memory_equal(got->rows, wanted->rows, sizeof got->rows);
}

static void check(const struct work *work)
{
    const struct work alone = {.spec = work->spec, .batches_per_push = work->batches_per_push};
    struct record wanted = record(&alone), got = record(work), again = record(work);
    assert_true(wanted.losses[0] != wanted.losses[1]);
    assert_like(&got, &wanted);
    assert_equal_bits(&again, &got);
    free(wanted.gradients);
    free(got.gradients);
    free(again.gradients);
}

static void cpu_towers_compute_what_one_replica_does(void **state)
{
    for (int towers = 2; towers <= MOST; towers++) {
        check(&(struct work){dense, 1, towers});
        check(&(struct work){clipped, 1, towers});
        check(&(struct work){clicks, 1, towers});
    }
}

static void several_batches_of_a_push_are_summed(void **state)
{
    check(&(struct work){dense, 3, 2});
    check(&(struct work){clipped, 3, 2});
}

static void towers_on_devices_of_their_own(void **state)
{
    check(&(struct work){dense, 1, 2, {AWAY, AWAY, AWAY}});
    check(&(struct work){clicks, 1, 3, {AWAY, AWAY, AWAY, AWAY}});
    check(&(struct work){dense, 2, 2, {AWAY, AWAY, AWAY}});
}

static void a_tower_on_another_device_beside_one_of_the_cpu(void **state)
{
    check(&(struct work){dense, 1, 2, {HERE, HERE, AWAY}});
    check(&(struct work){clicks, 1, 3, {AWAY, AWAY, HERE, AWAY}});
}

static void towers_on_two_gpus(void **state)
{
    check(&(struct work){dense, 1, 2, {GPU_0, GPU_0, GPU_1}});
    check(&(struct work){clicks, 1, 2, {GPU_0, GPU_0, GPU_1}});
    check(&(struct work){clipped, 2, 2, {GPU_0, GPU_0, GPU_1}});
}

static void towers_on_two_gpus_and_a_cpu(void **state)
{
    check(&(struct work){dense, 1, 3, {GPU_0, HERE, GPU_0, GPU_1}});
    check(&(struct work){dense, 1, 2, {HERE, HERE, GPU_1}});
}

static void a_batch_that_cannot_be_cut_is_refused(void **state)
{
    struct spec spec;
    struct device device;
    struct session session;
    rig_load_spec(dense, &spec);
    open_device(HERE, &device);
    struct device *at[] = {&device, &device, &device, &device, &device};
    const struct session_options options = {.spec = &spec,
                                            .device = &device,
                                            .towers = {at, 5},
                                            .workers = 1,
                                            .ps_count = 1,
                                            .batches_per_push = 1};
    assert_int_equal(session_open(&options, &session), ERR_INPUT);
    assert_non_null(strstr(error_text(), "5 towers cannot share batches of 24 examples evenly"));
    device_close(&device);
    spec_free(&spec);
}

static int run_on_gpus(void)
{
    struct gpus gpus;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(towers_on_two_gpus),
        cmocka_unit_test(towers_on_two_gpus_and_a_cpu),
    };
    if (gpu_list(&gpus) || gpus.count < 2) return SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int count, char **words)
{
    if (count > 1) return run_on_gpus();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_towers_compute_what_one_replica_does),
        cmocka_unit_test(several_batches_of_a_push_are_summed),
        cmocka_unit_test(towers_on_devices_of_their_own),
        cmocka_unit_test(a_tower_on_another_device_beside_one_of_the_cpu),
        cmocka_unit_test(a_batch_that_cannot_be_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
