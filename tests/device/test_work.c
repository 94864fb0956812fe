/* test_work.c - what a step asks of a GPU: kernels, recordings, copies, bytes, and how often the
 * host waits. On the emulated one, which counts; copies are as late as they may be, so that every
 * wait for one is seen.
 *
 * A number that grows is a step that has become slower on every machine; one that falls is to be
 * written here.
 */
#include "tests/cuda/emulator/emulated.h"
#include "tests/device/scenes.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 3, STEPS = 4 }; /* the second of the first is recorded */

enum { LOOKS_MAX = 1 << 30 }; /* minutes */

/* A batch that does not lie ready goes up another way: what is counted must not depend on how fast
 * the reader's thread is. Two: this step's, unless it was sent ahead, and the next one's. */
static void await_batches(struct session *s)
{
    struct batch_source *data = s->data.train;
    int looks = 0;
    while (data->calls->ready(data) >= 0 && data->calls->ready(data) < 2 && looks++ < LOOKS_MAX)
        (void)sched_yield();
    assert_true(looks < LOOKS_MAX);
}

static struct emulated_work difference(const struct emulated_work *end,
                                       const struct emulated_work *begin)
{
    return (struct emulated_work){
        end->kernels - begin->kernels,   end->recordings - begin->recordings,
        end->recorded - begin->recorded, end->up - begin->up,
        end->down - begin->down,         end->within - begin->within,
        end->bytes_up - begin->bytes_up, end->bytes_down - begin->bytes_down,
        end->serial - begin->serial,     end->bytes_serial - begin->bytes_serial,
        end->waits - begin->waits,
    };
}

static const struct counted {
    const char *name;
    size_t place;
} counted[] = {
#define COUNTED(name)                                                                              \
    {                                                                                              \
#name, offsetof(struct emulated_work, name)                                                \
    }
    COUNTED(kernels), COUNTED(recordings),   COUNTED(recorded), COUNTED(up),
    COUNTED(down),    COUNTED(within),       COUNTED(bytes_up), COUNTED(bytes_down),
    COUNTED(serial),  COUNTED(bytes_serial), COUNTED(waits),
#undef COUNTED
};

static int64_t of(const struct emulated_work *work, const struct counted *what)
{
    return *(const int64_t *)((const char *)work + what->place);
}

/* Of one step; steps are alike once they are recorded. */
static void assert_step(const char *name, const struct emulated_work *all,
                        const struct emulated_work *wanted)
{
    int wrong = 0;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        const int64_t got = of(all, &counted[i]), expected = of(wanted, &counted[i]) * STEPS;
        if (got == expected) continue;
        wrong++;
        fprintf(stderr, "%s: %s: %" PRId64 " in %d steps, wanted %" PRId64 "\n", name,
                counted[i].name, got, STEPS, expected);
    }
    assert_int_equal(wrong, 0);
}

static void step_in_cluster(struct rig *r, int64_t step, struct tape *tape)
{
    for (int w = 0; w < r->workers; w++) await_batches(&r->session[w]);
    rig_step(r, step, tape);
}

/* A worker of a cluster, whose values go up and gradients come down */
static void check(const char *name, const struct scene *scene, const struct emulated_work *wanted)
{
    static struct rig r;
    struct tape tape = {0};
    emulated_set_hasty_copies(false);
    rig_open(&r, scene, ON_GPU);
    for (int step = 0; step < WARM_UP; step++) step_in_cluster(&r, step, &tape);
    const struct emulated_work begin = emulated_work();
    for (int step = WARM_UP; step < WARM_UP + STEPS; step++) step_in_cluster(&r, step, &tape);
    const struct emulated_work end = emulated_work();
    rig_close(&r);
    tape_free(&tape);
    const struct emulated_work all = difference(&end, &begin);
    assert_step(name, &all, wanted);
}

/* A process that trains alone: values and slots are the device's, where they are updated. */
struct alone {
    struct spec spec;
    struct device device;
    struct session session;
    struct store store;
    float *values, *gradients;
};

static float *floats_of(struct device *d, int64_t floats)
{
    void *memory;
    if (d->kernels->allocate(d, (size_t)floats * sizeof(float), &memory))
        fail_msg("%s", error_text());
    return memory;
}

static void open_alone(struct alone *a, const char *spec)
{
    rig_load_spec(spec, &a->spec);
    if (device_open_emulated(&a->device)) fail_msg("%s", error_text());
    const struct session_options options = {.spec = &a->spec,
                                            .device = &a->device,
                                            .workers = 1,
                                            .ps_count = 1,
                                            .batches_per_push = 1,
                                            .binds_device_memory = true};
    if (session_open(&options, &a->session)) fail_msg("%s", error_text());
    const int64_t floats = a->session.layout->block_floats[0];
    a->values = floats_of(&a->device, floats);
    a->gradients = floats_of(&a->device, floats);
    if (store_open(&a->spec.optimizers, NULL, 0, &a->device, floats, a->values, &a->store))
        fail_msg("%s", error_text());
    session_bind(&a->session, 0, a->values, a->gradients);
}

static void step_alone(struct alone *a, int64_t step)
{
    double loss;
    const void *gradients = a->gradients;
    await_batches(&a->session);
    if (session_step(&a->session, &loss) || session_hand_over(&a->session) ||
        store_apply(&a->store, &gradients, 1, 1, step, NULL))
        fail_msg("%s", error_text());
}

static void close_alone(struct alone *a)
{
    session_close(&a->session);
    store_close(&a->store);
    a->device.kernels->release(&a->device, a->values);
    a->device.kernels->release(&a->device, a->gradients);
    device_close(&a->device);
    spec_free(&a->spec);
}

static void check_alone(const char *name, const char *spec, const struct emulated_work *wanted)
{
    static struct alone a;
    emulated_set_hasty_copies(false);
    open_alone(&a, spec);
    for (int step = 0; step < WARM_UP; step++) step_alone(&a, step);
    const struct emulated_work begin = emulated_work();
    for (int step = WARM_UP; step < WARM_UP + STEPS; step++) step_alone(&a, step);
    const struct emulated_work end = emulated_work(), all = difference(&end, &begin);
    close_alone(&a);
    assert_step(name, &all, wanted);
}

static void a_step_alone_does_no_more_than_it_must(void **state)
{
    check_alone("mlp alone", scene_mlp_momentum.spec,
                &(struct emulated_work){.kernels = 4,
                                        .recordings = 1,
                                        .recorded = 18,
                                        .up = 1,
                                        .down = 1,
                                        .within = 3,
                                        .bytes_up = 62860,
                                        .bytes_down = 16,
                                        .serial = 1,
                                        .bytes_serial = 16,
                                        .waits = 2});
}

/* Whose loss is finite, since all logits are 0, and whose gradient is not: of features that are as
 * large as they may be times what classes weigh */
#define HUGE_CLASSES "1e9,1e9,1e9,1e9,1e9,1e9,1e9,1e9,1e9,1e9"
#define AT_THE_LIMIT                                                                               \
    "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":230},\"batch_size\":20,\"scale\":1e30}," \
    "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":10,\"kernel_initializer\":"       \
    "\"zeros\"}],\"loss\":{\"op\":\"softmax_cross_entropy\",\"class_weights\":[" HUGE_CLASSES      \
    "]},\"optimizer\":\"adam\",\"train\":{\"last_step\":100}}"

/* It is known with the loss, and the update looks again at what it is to refuse. */
static void a_gradient_that_is_not_finite_updates_nothing(void **state)
{
    static struct alone a;
    double loss;
    open_alone(&a, AT_THE_LIMIT);
    const int64_t floats = a.session.layout->block_floats[0];
    const void *gradients = a.gradients;
    float *values = rig_block(floats);
    await_batches(&a.session);
    if (session_step(&a.session, &loss) || session_hand_over(&a.session))
        fail_msg("%s", error_text());
    assert_true(isfinite(loss));
    assert_int_equal(store_apply(&a.store, &gradients, 1, 1, 0, NULL), ERR_NUMBER);
    assert_string_equal(error_text(), "a gradient is not finite");
    a.device.kernels->download(&a.device, values, a.values, (size_t)floats * sizeof(float));
    for (int64_t i = 0; i < floats; i++) assert_true(values[i] == 0);
    free(values);
    close_alone(&a);
}

/* One of the waits is for what is handed on first. Of what crosses only sums and a count wait for
 * kernels, and kernels for them. */
static void a_worker_of_a_cluster_does_no_more_in_a_step_than_it_must(void **state)
{
    const struct scene mlp = {scene_mlp_momentum.spec, 1, 2, 1};
    check("mlp", &mlp,
          &(struct emulated_work){.kernels = 4,
                                  .recordings = 1,
                                  .recorded = 18,
                                  .up = 5,
                                  .down = 5,
                                  .within = 3,
                                  .bytes_up = 399308,
                                  .bytes_down = 336472,
                                  .serial = 3,
                                  .bytes_serial = 24,
                                  .waits = 5});
}

/* ---- tables, and towers ---- */

#define IDS(name) "{\"column\":\"identity\",\"name\":\"" name "\",\"buckets\":40}"
#define TABLE(name, ids)                                                                           \
    "{\"op\":\"embedding\",\"name\":\"" name "\",\"inputs\":[\"" ids "\"],\"dimension\":4},"
static const char five_tables[] =
    "{\"data\":{\"train\":{\"format\":\"clicks\",\"rows\":2000,\"buckets\":40},\"batch_size\":20,"
    "\"columns\":[" IDS("c1") "," IDS("c2") "," IDS("c3") "," IDS("c4") "," IDS(
        "c5") "]},\"model\":[" TABLE("a", "c1") TABLE("b", "c2") TABLE("c", "c3") TABLE("d", "c4")
        TABLE("e", "c5") "{\"op\":\"concat\",\"inputs\":[\"a\",\"b\",\"c\",\"d\",\"e\"]},{\"op\":"
                         "\"dense\",\"units\":1}],"
                         "\"loss\":\"sigmoid_cross_entropy\",\"optimizer\":\"adam\",\"train\":{"
                         "\"last_step\":100}}";

/* A worker of one ps, on the first GPU or with a tower on each of two */
struct worker {
    struct spec spec;
    struct device devices[2], *towers[2];
    struct session session;
    float *values, *gradients;
    void *window; /* of rows */
};

/* All rows are zero. */
static err ask(void *context, const size_t bytes[], bool trains)
{
    return OK;
}

static void open_worker(struct worker *w, const char *spec, int towers)
{
    static const struct row_source zeros = {.ask = ask};
    *w = (struct worker){.towers = {&w->devices[0], &w->devices[1]}};
    rig_load_spec(spec, &w->spec);
    emulated_set_gpus(2);
    for (int i = 0; i < 2; i++)
        if (device_open_gpu(&(struct gpu_options){.index = i}, &w->devices[i]))
            fail_msg("%s", error_text());
    const struct session_options options = {.spec = &w->spec,
                                            .device = &w->devices[0],
                                            .towers = {w->towers, towers},
                                            .workers = 1,
                                            .ps_count = 1,
                                            .batches_per_push = 1,
                                            .rows_from = &zeros};
    if (session_open(&options, &w->session)) fail_msg("%s", error_text());
    w->values = rig_block(w->session.layout->block_floats[0]);
    w->gradients = rig_block(w->session.layout->block_floats[0]);
    w->window = rig_block((int64_t)(rows_window_bytes(&w->session.rows, 0) / sizeof(float)) + 16);
    session_bind(&w->session, 0, w->values, w->gradients);
    session_bind_rows(&w->session, 0, w->window, false);
    assert_int_equal(session_initial_values(&w->session, 0, w->values), OK);
}

static void close_worker(struct worker *w)
{
    session_close(&w->session);
    for (int i = 0; i < 2; i++) device_close(&w->devices[i]);
    assert_int_equal(emulated_pinned(), 0);
    free(w->values);
    free(w->gradients);
    free(w->window);
    spec_free(&w->spec);
}

static int64_t waits_of_steps(const char *spec, int towers)
{
    static struct worker w;
    double loss;
    int64_t before = 0;
    open_worker(&w, spec, towers);
    for (int step = 0; step < WARM_UP + STEPS; step++) {
        if (step == WARM_UP) before = emulated_work().waits;
        await_batches(&w.session);
        if (session_step(&w.session, &loss) || session_hand_over(&w.session))
            fail_msg("%s", error_text());
    }
    const int64_t waits = emulated_work().waits - before;
    close_worker(&w);
    return waits;
}

/* For the loss, behind which gradients and the next batch have crossed. */
static void a_worker_waits_once_in_a_step(void **state)
{
    emulated_set_hasty_copies(true);
    assert_int_equal(waits_of_steps(scene_mlp_momentum.spec, 0), STEPS);
}

/* For the loss, for the gradients of all tables at once, and for columns of the batch, which follow
 * each other through two stagings. */
static void rows_of_all_tables_are_waited_for_once(void **state)
{
    emulated_set_hasty_copies(true);
    assert_int_equal(waits_of_steps(five_tables, 0), STEPS * 8);
}

/* Values, and the gradients of the tower on another GPU; a session without towers has pinned a
 * batch, which is less. */
static void what_towers_exchange_is_pinned(void **state)
{
    static struct worker w;
    size_t pinned[3], bytes = 0;
    for (int towers = 0; towers <= 2; towers += 2) {
        open_worker(&w, scene_mlp_momentum.spec, towers);
        pinned[towers] = emulated_pinned();
        bytes = (size_t)w.session.layout->block_floats[0] * sizeof(float);
        close_worker(&w);
    }
    assert_true(pinned[2] > pinned[0] + bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_alone_does_no_more_than_it_must),
        cmocka_unit_test(a_gradient_that_is_not_finite_updates_nothing),
        cmocka_unit_test(a_worker_of_a_cluster_does_no_more_in_a_step_than_it_must),
        cmocka_unit_test(a_worker_waits_once_in_a_step),
        cmocka_unit_test(rows_of_all_tables_are_waited_for_once),
        cmocka_unit_test(what_towers_exchange_is_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
