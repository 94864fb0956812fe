/* test_shared_tables.c - a step by the rows that a batch names, where columns share a table, has
 * the gradients to the bit that a graph with whole tables has of the same batch.
 */
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/graph/plan.h"
#include "core/train/session/session.h"

enum { PS = 3, BATCH = 32, STEPS = 3, BUCKETS = 500, WIDTH = 3, PARAMS_MOST = 8 };

/* c1 and c2 share a table, and name others of their own. */
static const char text[] =
    "{\"data\": {\"train\": {\"format\": \"clicks\", \"rows\": 200, \"buckets\": 500}, "
    "\"batch_size\": 32, \"columns\": [{\"column\": \"identity\", \"name\": \"c1\", "
    "\"buckets\": 500}, {\"column\": \"identity\", \"name\": \"c2\", \"buckets\": 500}]}, "
    "\"model\": [{\"op\": \"embedding\", \"name\": \"a\", \"inputs\": [\"c1\"], \"dimension\": 3}, "
    "{\"op\": \"linear\", \"name\": \"wide\", \"inputs\": [\"c1\", \"c2\"]}, "
    "{\"op\": \"embedding\", \"name\": \"b\", \"inputs\": [\"c2\"], \"dimension\": 3, "
    "\"table\": \"a\"}, {\"op\": \"embedding\", \"name\": \"c\", \"inputs\": [\"c1\"], "
    "\"dimension\": 3, \"table\": \"a\", \"combiner\": \"sum\"}, "
    "{\"op\": \"concat\", \"inputs\": [\"a\", \"b\", \"c\", \"wide\"]}, "
    "{\"op\": \"dense\", \"units\": 1}], \"loss\": \"sigmoid_cross_entropy\", "
    "\"optimizer\": {\"type\": \"gradient_descent\", \"learning_rate\": 0.1}, "
    "\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 3}}, "
    "\"train\": {\"last_step\": 100}}";

struct world {
    struct spec spec;
    struct device device;
    struct session session, beside; /* the second one brings the same batches, with ids */
    struct arena arena;
    void *windows[PS];
    float *values[PS], *gradients[PS];
    struct graph *whole; /* beside it, with all rows */
    struct plan *plan;
    float sums[PARAMS_MOST][BUCKETS * WIDTH]; /* of each table, as they are pushed */
    bool is_pushed[PARAMS_MOST][BUCKETS];
};

static float value_of(const char *name, int64_t at)
{
    return 0.3f * random_normal(random_key(5, name), (uint64_t)at);
}

/* ---- all ps ---- */

static const struct area_counts *counts_of(struct world *w, int ps, size_t bytes)
{
    struct area_counts *counts = arena_new(&w->arena, sizeof *counts);
    const struct row_area *area = &w->session.rows.links[ps].area;
    area_counts_open(area, &w->arena, counts);
    assert_int_equal(area_read_counts(area, w->windows[ps], bytes, true, counts), OK);
    return counts;
}

static err ask(void *context, const size_t bytes[], bool trains)
{
    struct world *w = context;
    for (int ps = 0; ps < PS; ps++) {
        const struct rows_link *link = &w->session.rows.links[ps];
        if (!bytes[ps]) continue;
        const struct area_counts *counts = counts_of(w, ps, bytes[ps]);
        const int64_t *ids = area_wanted_ids(&link->area, counts, w->windows[ps]);
        float *to = area_rows(&link->area, w->windows[ps]);
        for (int i = 0; i < link->area.count; i++)
            for (int64_t j = 0; j < counts->wanted[i]; j++, ids++)
                for (int64_t k = 0, width = link->area.slices[i].width; k < width; k++)
                    *to++ = value_of(w->session.graph->params[link->parts[i].param]->name,
                                     *ids * width + k);
    }
    return OK;
}

static void take_pushed(struct world *w, int ps)
{
    const struct rows_link *link = &w->session.rows.links[ps];
    const struct area_counts *counts = counts_of(w, ps, link->front);
    const int64_t *ids = area_pushed_ids(&link->area, counts, w->windows[ps]);
    const float *from = area_gradients(&link->area, counts, w->windows[ps]);
    for (int i = 0; i < link->area.count; i++)
        for (int64_t j = 0; j < counts->pushed[i]; j++, ids++) {
            const int param = link->parts[i].param;
            const int64_t width = link->area.slices[i].width;
            assert_false(w->is_pushed[param][*ids]); /* a row travels once */
            w->is_pushed[param][*ids] = true;
            memcpy(&w->sums[param][*ids * width], from, (size_t)width * sizeof *from);
            from += width;
        }
}

/* ---- life ---- */

static void load_spec(struct spec *ret)
{
    char path[] = "/tmp/shared-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    const struct spec_options options = {.path = path, .seed = -1};
    if (spec_load(&options, ret)) fail_msg("%s", error_text());
    unlink(path);
}

static void *block(struct world *w, size_t bytes)
{
    void *memory;
    assert_int_equal(w->device.kernels->allocate(&w->device, bytes + 1, &memory), OK);
    return memory;
}

static void bind(struct world *w)
{
    for (int ps = 0; ps < PS; ps++) {
        const size_t bytes = (size_t)w->session.layout->block_floats[ps] * sizeof(float);
        w->values[ps] = block(w, bytes);
        w->gradients[ps] = block(w, bytes);
        w->windows[ps] = block(w, rows_window_bytes(&w->session.rows, ps));
        session_bind(&w->session, ps, w->values[ps], w->gradients[ps]);
        session_bind_rows(&w->session, ps, w->windows[ps], false);
        assert_int_equal(session_initial_values(&w->session, ps, w->values[ps]), OK);
    }
}

/* Dense variables are the session's own; tables have all rows. */
static void open_whole(struct world *w)
{
    const struct graph_options options = {.columns = w->session.data.train->columns,
                                          .column_count = w->session.data.train->column_count,
                                          .batch = BATCH,
                                          .training = true};
    assert_int_equal(graph_make(&w->spec.model, &options, &w->arena, &w->whole), OK);
    assert_int_equal(w->whole->param_count, w->session.graph->param_count);
    replica_gather_values(&w->session.replica);
    for (int i = 0; i < w->whole->param_count; i++) {
        struct param *param = w->whole->params[i], *own = w->session.graph->params[i];
        const int64_t floats = shape_count(&param->shape);
        param->value = arena_array(&w->arena, (size_t)floats, sizeof(float));
        param->gradient = arena_array(&w->arena, (size_t)floats, sizeof(float));
        for (int64_t k = 0; k < floats; k++)
            param->value[k] = own->held ? value_of(param->name, k) : own->value[k];
    }
    assert_int_equal(plan_open(w->whole, &w->device, &w->plan), OK);
}

static void open_world(struct world *w)
{
    static struct row_source source;
    *w = (struct world){.device = fixture_device()};
    load_spec(&w->spec);
    source = (struct row_source){ask, w};
    const struct session_options options = {.spec = &w->spec,
                                            .device = &w->device,
                                            .workers = 1,
                                            .ps_count = PS,
                                            .batches_per_push = 1,
                                            .rows_from = &source};
    if (session_open(&options, &w->session)) fail_msg("%s", error_text());
    if (session_open(&options, &w->beside)) fail_msg("%s", error_text());
    bind(w);
    open_whole(w);
}

static void close_world(struct world *w)
{
    plan_close(w->plan);
    session_close(&w->session);
    session_close(&w->beside);
    for (int ps = 0; ps < PS; ps++) {
        w->device.kernels->release(&w->device, w->values[ps]);
        w->device.kernels->release(&w->device, w->gradients[ps]);
        w->device.kernels->release(&w->device, w->windows[ps]);
    }
    arena_free(&w->arena);
    device_close(&w->device);
    spec_free(&w->spec);
}

/* ---- tests ---- */

static void step_whole(struct world *w)
{
    struct batch batch;
    assert_int_equal(w->beside.data.train->calls->next(w->beside.data.train, &batch), OK);
    plan_forward(w->plan, &batch, 0);
    plan_backward(w->plan, false, NULL, NULL);
}

static void check_tables(const struct world *w)
{
    for (int i = 0; i < w->whole->param_count; i++) {
        const struct param *param = w->whole->params[i];
        if (!w->session.graph->params[i]->held) continue;
        assert_memory_equal(w->sums[i], param->gradient,
                            (size_t)shape_count(&param->shape) * sizeof(float));
    }
}

static void a_step_has_the_gradients_of_whole_tables(void **state)
{
    static struct world w;
    open_world(&w);
    const struct param *shared = w.session.graph->params[0];
    assert_string_equal(shared->name, "a/embedding_weights");
    assert_int_equal(shared->held, 3 * BATCH);
    for (int i = 0; i < STEPS; i++) {
        double loss;
        step_whole(&w);
        if (session_step(&w.session, &loss)) fail_msg("%s", error_text());
        assert_true(loss == plan_loss(w.plan, BATCH, NULL, NULL));
        memset(w.sums, 0, sizeof w.sums);
        memset(w.is_pushed, 0, sizeof w.is_pushed);
        assert_int_equal(session_hand_over(&w.session), OK);
        for (int ps = 0; ps < PS; ps++) take_pushed(&w, ps);
        check_tables(&w);
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_the_gradients_of_whole_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
