/* rig.c - see rig.h. */
#include "tests/device/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* ---- tapes ---- */

void tape_add(struct tape *tape, const void *what, size_t bytes)
{
    if (tape->bytes + bytes > tape->room) {
        tape->room = 2 * (tape->bytes + bytes);
        tape->at = realloc(tape->at, tape->room);
        assert_non_null(tape->at);
    }
    memcpy(tape->at + tape->bytes, what, bytes);
    tape->bytes += bytes;
}

void tape_free(struct tape *tape)
{
    free(tape->at);
    *tape = (struct tape){0};
}

void assert_same_tape(const struct tape *a, const struct tape *b)
{
    assert_true(a->bytes > 0);
    assert_int_equal(a->bytes, b->bytes);
    for (size_t i = 0; i < a->bytes; i++)
        if (a->at[i] != b->at[i]) fail_msg("the tapes part at byte %zu of %zu", i, a->bytes);
}

/* ---- life ---- */

void rig_load_spec(const char *text, struct spec *ret)
{
    char path[] = "/tmp/device-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    const struct spec_options options = {.path = path, .seed = -1};
    if (spec_load(&options, ret)) fail_msg("%s", error_text());
    unlink(path);
}

float *rig_block(int64_t floats)
{
    const size_t bytes = ((size_t)floats * sizeof(float) + PAGE) / PAGE * PAGE;
    float *block = aligned_alloc(PAGE, bytes);
    assert_non_null(block);
    memset(block, 0, bytes);
    return block;
}

static err open_at(enum place place, const struct spec *spec, struct device *ret)
{
    switch (place) {
    case APART:
        return device_open_apart(SIZE_MAX, ret);
    case ON_GPU:
    case IN_TURN:
        return device_open_gpu(&(struct gpu_options){.precision = (enum precision)spec->precision,
                                                     .is_bare = getenv("GPU_BARE") != NULL},
                               ret);
    case ON_CPU:
        break;
    }
    return device_open_cpu(1, NULL, ret);
}

static void open_device(struct rig *r, enum place place)
{
    err e = open_at(place, &r->spec, &r->device);
    if (!e) e = device_open_cpu(1, NULL, &r->host);
    if (e) fail_msg("%s", error_text());
    if (place != IN_TURN) return;
    r->in_turn = *r->device.kernels;
    r->in_turn.async = NULL;
    r->device.kernels = &r->in_turn;
}

/* ---- what is handed on ---- */

static bool await(void *context, int ps, struct range range)
{
    return true;
}

static bool takes(void *context)
{
    return true;
}

static size_t bytes_of(const struct rig *r, int64_t numbers)
{
    return (size_t)numbers * number_bytes((enum number)r->spec.train.wire);
}

static void leave(void *context, int ps, struct range range)
{
    struct handed *h = context;
    struct rig *r = h->rig;
    if (r->meanwhile) r->meanwhile(r, h->worker, ps);
    const char *window = (const char *)r->gradients[ps][h->worker];
    if (range.begin == 0) h->numbers[ps] = 0; /* of a step that failed */
    assert_int_equal(range.begin, h->numbers[ps]);
    h->at[ps] = realloc(h->at[ps], bytes_of(r, range.end));
    assert_non_null(h->at[ps]);
    memcpy(h->at[ps] + bytes_of(r, range.begin), window + bytes_of(r, range.begin),
           bytes_of(r, range_count(range)));
    h->numbers[ps] = range.end;
    h->times++;
}

void rig_check_handed(const struct rig *r, int worker)
{
    const struct handed *h = &r->handed[worker];
    for (int ps = 0; ps < r->ps_count; ps++)
        if (h->numbers[ps])
            assert_memory_equal(h->at[ps], r->gradients[ps][worker], bytes_of(r, h->numbers[ps]));
}

/* Of a step that ends well it is all or nothing. */
static void end_handed(struct rig *r, int worker)
{
    struct handed *h = &r->handed[worker];
    rig_check_handed(r, worker);
    for (int ps = 0; ps < r->ps_count; ps++) {
        if (h->numbers[ps])
            assert_int_equal(h->numbers[ps], r->session[worker].layout->moved_floats[ps]);
        h->numbers[ps] = 0;
    }
}

static const struct exchange *open_exchange(struct rig *r, int worker)
{
    struct handed *h = &r->handed[worker];
    *h = (struct handed){.rig = r, .worker = worker};
    h->to = (struct exchange){await, leave, await, takes, h};
    return r->device.is_separate ? &h->to : NULL;
}

/* All workers of the run share the device, as on a host with one GPU. */
static void open_session(struct rig *r, int worker)
{
    const struct session_options options = {
        .spec = &r->spec,
        .device = &r->device,
        .worker = worker,
        .workers = r->workers,
        .ps_count = r->ps_count,
        .batches_per_push = r->scene->batches_per_push,
        .exchange = open_exchange(r, worker),
        .number = (enum number)r->spec.train.wire,
        .value_number = (enum number)r->spec.train.wire_values,
    };
    if (session_open(&options, &r->session[worker])) fail_msg("%s", error_text());
}

/* A ps has a block of values and one of gradients for each worker, in the host's memory. */
static void open_ps(struct rig *r, int ps)
{
    const int64_t floats = r->session[0].layout->block_floats[ps];
    r->values[ps] = rig_block(floats);
    if (store_open(&r->spec.optimizers, NULL, 0, &r->host, floats, r->values[ps], &r->store[ps]))
        fail_msg("%s", error_text());
    r->store[ps].number = (enum number)r->spec.train.wire;
    r->store[ps].shown = (enum number)r->spec.train.wire_values;
    if (session_initial_values(&r->session[0], ps, r->values[ps])) fail_msg("%s", error_text());
    if (r->store[ps].shown != NUMBER_FLOAT32) {
        r->shown[ps] = rig_block(floats);
        store_show(&r->store[ps], r->shown[ps]);
    }
    for (int w = 0; w < r->workers; w++) {
        r->gradients[ps][w] = rig_block(floats);
        session_bind(&r->session[w], ps, r->shown[ps] ? r->shown[ps] : r->values[ps],
                     r->gradients[ps][w]);
    }
}

void rig_open(struct rig *r, const struct scene *scene, enum place place)
{
    *r = (struct rig){
        .scene = scene, .place = place, .workers = scene->workers, .ps_count = scene->ps_count};
    rig_load_spec(scene->spec, &r->spec);
    open_device(r, place);
    for (int w = 0; w < r->workers; w++) open_session(r, w);
    for (int ps = 0; ps < r->ps_count; ps++) open_ps(r, ps);
}

void rig_close(struct rig *r)
{
    for (int w = 0; w < r->workers; w++) {
        session_close(&r->session[w]);
        for (int ps = 0; ps < r->ps_count; ps++) free(r->handed[w].at[ps]);
    }
    for (int ps = 0; ps < r->ps_count; ps++) {
        store_close(&r->store[ps]);
        free(r->values[ps]);
        free(r->shown[ps]);
        for (int w = 0; w < r->workers; w++) free(r->gradients[ps][w]);
    }
    if (r->place == APART) assert_int_equal(device_apart_in_use(&r->device), 0);
    device_close(&r->device);
    device_close(&r->host);
    spec_free(&r->spec);
}

/* ---- steps ---- */

static void step_worker(struct rig *r, int worker, struct tape *tape)
{
    struct session *s = &r->session[worker];
    double loss;
    if (session_step(s, &loss) || session_hand_over(s)) fail_msg("%s", error_text());
    end_handed(r, worker);
    tape_add(tape, &loss, sizeof loss);
    tape_add(tape, &s->clip.norm, sizeof s->clip.norm);
    for (int i = 0; i < s->graph->metric_count; i++) {
        const double metric = session_metric(s, i);
        tape_add(tape, &metric, sizeof metric);
    }
}

void rig_step(struct rig *r, int64_t step, struct tape *tape)
{
    for (int w = 0; w < r->workers; w++) step_worker(r, w, tape);
    for (int ps = 0; ps < r->ps_count; ps++) {
        const size_t bytes = (size_t)r->store[ps].floats * sizeof(float);
        for (int w = 0; w < r->workers; w++) tape_add(tape, r->gradients[ps][w], bytes);
        assert_int_equal(store_apply(&r->store[ps], (const void *const *)r->gradients[ps],
                                     r->workers,
                                     1.0f / (float)(r->workers * r->scene->batches_per_push), step,
                                     r->shown[ps]),
                         OK);
        tape_add(tape, r->values[ps], bytes);
    }
}

static err take(void *context, const struct predictions *p)
{
    const struct predicted *head = &p->heads[0];
    tape_add(context, head->at, (size_t)(p->rows * head->columns) * sizeof(float));
    return OK;
}

void rig_evaluate(struct rig *r, struct tape *tape)
{
    struct session *s = &r->session[0];
    struct evaluation e;
    if (session_evaluate(s, &e)) fail_msg("%s", error_text());
    tape_add(tape, &e.rows, sizeof e.rows);
    tape_add(tape, &e.loss, sizeof e.loss);
    tape_add(tape, e.metrics, (size_t)s->graph->metric_count * sizeof *e.metrics);
    if (session_predict(s, &(struct prediction_taker){take, tape})) fail_msg("%s", error_text());
}
