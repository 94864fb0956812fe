/* test_optimizers.c - update rules and clipping against what TensorFlow computed. */
#include "tests/core/train/fixture.h"

#include <math.h>
#include <string.h>

#include "core/train/variables/table.h"

enum { FLOATS_MAX = 16, ROWS_MAX = 8, PATH_MAX_BYTES = 128 };

static const struct tolerance close_enough = {.relative = 1e-6, .absolute = 1e-6};

static void compare_floats(const float *got, json_t *wanted, const char *where)
{
    float expected[FLOATS_MAX];
    const int count = fixture_floats(wanted, expected, FLOATS_MAX);
    char element[PATH_MAX_BYTES + 16];
    for (int i = 0; i < count; i++) {
        snprintf(element, sizeof element, "%s[%d]", where, i);
        fixture_near(got[i], expected[i], close_enough, element);
    }
}

/* What a checkpoint calls `key`: "v" the variable, "v/Adam" a slot, else a power. */
static void compare_state(const struct store *store, const char *key, json_t *wanted,
                          const char *where)
{
    const struct optimizer *optimizer = store->updaters[0].optimizer;
    if (strcmp(key, "v") == 0) {
        compare_floats(store->values, wanted, where);
        return;
    }
    for (int i = 0; i < store->slot_count; i++) {
        if (strncmp(key, "v/", 2) != 0 || strcmp(key + 2, optimizer->slot[i].name) != 0) continue;
        compare_floats(store->slots[i], wanted, where);
        return;
    }
    for (int i = 0; i < optimizer->power_count; i++) {
        if (strcmp(key, optimizer->power[i].name) != 0) continue;
        fixture_near(store->powers[i], json_number_value(wanted), close_enough, where);
        return;
    }
    fail_msg("%s: nothing in the store is called so", where);
}

static void compare_all(const struct store *store, json_t *after, const char *type, int step)
{
    const char *key;
    json_t *wanted;
    json_object_foreach(after, key, wanted)
    {
        char where[PATH_MAX_BYTES];
        snprintf(where, sizeof where, "%s step %d %s", type, step, key);
        compare_state(store, key, wanted, where);
    }
    const int stored = 1 + store->slot_count + store->power_count;
    assert_int_equal(json_object_size(after), stored);
}

static void run_case(json_t *test, struct device *device)
{
    const char *type = json_string_value(json_object_get(test, "type"));
    struct arena arena = {0};
    json_t *json = fixture_variant("optimizer", type, json_object_get(test, "attributes"));
    const struct optimizer_spec spec = fixture_optimizer_json(json, &arena);
    float *values = fixture_block(device, FLOATS_MAX),
          *gradient = fixture_block(device, FLOATS_MAX);
    const void *const gradients[] = {gradient};
    const int count = fixture_floats(json_object_get(test, "initial"), values, FLOATS_MAX);

    struct store store;
    assert_int_equal(fixture_store(&spec, device, FLOATS_MAX, values, &store), OK);
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(test, "steps"), i, step)
    {
        fixture_floats(json_object_get(step, "gradient"), gradient, FLOATS_MAX);
        assert_int_equal(store_apply(&store, gradients, 1, 1.0f, (int64_t)i, NULL), OK);
        compare_all(&store, json_object_get(step, "after"), type, (int)i);
    }
    for (int j = count; j < FLOATS_MAX; j++) assert_true(values[j] == 0.0f); /* the gap */
    store_close(&store);
    fixture_release(device, values);
    fixture_release(device, gradient);
    arena_free(&arena);
}

/* Of IndexedSlices what a table gets: ascending ids, each once, with the sum of its rows. In memory
 * of the device. */
struct named_rows {
    int64_t ids[ROWS_MAX];
    float sums[FLOATS_MAX];
    int64_t count;
};

static void name_rows(json_t *step, int64_t width, struct named_rows *ret)
{
    float ids[ROWS_MAX], values[FLOATS_MAX];
    const int count = fixture_floats(json_object_get(step, "indices"), ids, ROWS_MAX);
    fixture_floats(json_object_get(step, "values"), values, FLOATS_MAX);
    *ret = (struct named_rows){.count = 0};
    for (int64_t id = 0; id < ROWS_MAX; id++) {
        bool is_named = false;
        for (int i = 0; i < count; i++) {
            if (id != (int64_t)ids[i]) continue;
            for (int64_t k = 0; k < width; k++)
                ret->sums[ret->count * width + k] += values[i * width + k];
            is_named = true;
        }
        if (is_named) ret->ids[ret->count++] = id;
    }
}

/* table: NULL, or where the same is done */
static void apply_rows(struct store *store, const struct named_rows *named, struct shape shape,
                       int64_t step, struct table *table)
{
    struct updater *by = &store->updaters[0];
    _Alignas(max_align_t) unsigned char constants[CONSTANTS_BYTES_MAX];
    const struct juncture now = {(float)schedule_rate(by->learning_rate, step), store->powers,
                                 step};
    by->optimizer->derive(by->attributes, &now, constants);
    struct row_update u = {.rule = by->optimizer->rule,
                           .constants = constants,
                           .value = store->values,
                           .ids = named->ids,
                           .gradient = named->sums,
                           .count = named->count,
                           .width = shape.dim[1],
                           .rows = shape.dim[0],
                           .sweeps = by->optimizer->sweeps,
                           .form = by->form};
    for (int i = 0; i < store->slot_count; i++) u.slot[i] = store->slots[i];
    store->device->kernels->update_rows(store->device, &u);
    if (table)
        assert_int_equal(table_apply(table, named->ids, named->count, named->sums, NULL, &now), OK);
    for (int i = 0; i < by->optimizer->power_count; i++)
        store->powers[i] *= by->optimizer->power[i].factor(by->attributes);
}

static struct table *open_table(struct store *store, struct shape shape)
{
    const struct kind *zeros = kinds_find(&initializer_kinds, "zeros");
    const struct table_description is = {
        .name = "v", .shape = shape, .length = shape.dim[0], .initializer = zeros->descriptor};
    struct table *table = NULL;
    if (store->device->is_separate) return NULL;
    assert_int_equal(table_open(&is, &store->updaters[0], store->device, &table), OK);
    table_write(table, 0, 0, shape.dim[0], store->values);
    return table;
}

static void expect_same_rows(const struct table *table, const struct store *store,
                             struct shape shape)
{
    float got[FLOATS_MAX];
    for (int i = 0; i <= store->slot_count && table; i++) {
        table_read(table, i, 0, shape.dim[0], got);
        assert_memory_equal(got, store_array(store, i),
                            (size_t)shape_count(&shape) * sizeof(float));
    }
}

static void run_sparse_case(json_t *test, struct device *device)
{
    const char *type = json_string_value(json_object_get(test, "type"));
    struct arena arena = {0};
    json_t *json = fixture_variant("optimizer", type, json_object_get(test, "attributes"));
    const struct optimizer_spec spec = fixture_optimizer_json(json, &arena);
    json_t *initial = json_object_get(test, "initial");
    const int64_t rows = json_integer_value(json_array_get(json_object_get(initial, "shape"), 0));
    float *values = fixture_block(device, FLOATS_MAX);
    struct named_rows *named =
        (struct named_rows *)fixture_block(device, sizeof *named / sizeof(float));
    const struct shape shape = {2, {rows, fixture_floats(initial, values, FLOATS_MAX) / rows}};
    struct store store;
    assert_int_equal(fixture_store(&spec, device, FLOATS_MAX, values, &store), OK);
    struct table *table = open_table(&store, shape);
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(test, "steps"), i, step)
    {
        name_rows(step, shape.dim[1], named);
        apply_rows(&store, named, shape, (int64_t)i, table);
        expect_same_rows(table, &store, shape);
        compare_all(&store, json_object_get(step, "after"), type, (int)i);
    }
    table_close(table);
    store_close(&store);
    fixture_release(device, values);
    fixture_release(device, (float *)named);
    arena_free(&arena);
}

static void every_case_of_tensorflow_is_met(bool is_sparse)
{
    struct device device = fixture_device();
    json_t *fixture = fixture_load("optimizers.json");
    size_t i;
    json_t *test;
    int run = 0;
    json_array_foreach(json_object_get(fixture, "cases"), i, test)
    {
        const char *type = json_string_value(json_object_get(test, "type"));
        if (!kinds_find(&optimizer_kinds, type)) fail_msg("no optimizer \"%s\"", type);
        if (json_is_true(json_object_get(test, "sparse")) != is_sparse) continue;
        if (is_sparse)
            run_sparse_case(test, &device);
        else
            run_case(test, &device);
        run++;
    }
    assert_int_equal(run, 16);
    json_decref(fixture);
    device_close(&device);
}

static void every_dense_case_of_tensorflow_is_met(void **state)
{
    every_case_of_tensorflow_is_met(false);
}

static void every_sparse_case_of_tensorflow_is_met(void **state)
{
    every_case_of_tensorflow_is_met(true);
}

static void every_optimizer_says_how_it_is_saved(void **state)
{
    const struct kind *kind;
    for (int i = 0; (kind = optimizer_kinds.at(i)); i++) {
        const struct optimizer *optimizer = kind->descriptor;
        assert_ptr_equal(kind->object, &optimizer->object);
        assert_non_null(optimizer->derive);
        const struct rule *rule = optimizer->rule;
        for (int j = 0; j < rule->slots[rule->forms - 1]; j++)
            assert_non_null(optimizer->slot[j].name);
        for (int j = 0; j < optimizer->power_count; j++) assert_non_null(optimizer->power[j].name);
    }
}

static void adam_by_its_bare_name_has_the_defaults_of_tensorflow(void **state)
{
    struct device device = fixture_device();
    struct arena arena = {0};
    const struct optimizer_spec spec = fixture_optimizer("{\"optimizer\": \"adam\"}", &arena);
    float *values = fixture_block(&device, FLOATS_MAX);
    float *gradient = fixture_block(&device, FLOATS_MAX);
    const void *gradients[] = {gradient};
    values[0] = 1.0f;
    gradient[0] = 0.5f;
    struct store store;
    assert_int_equal(fixture_store(&spec, &device, FLOATS_MAX, values, &store), OK);
    assert_true(store.powers[0] == 0.9f && store.powers[1] == 0.999f);
    assert_int_equal(store_apply(&store, gradients, 1, 1.0f, 0, NULL), OK);
    fixture_near(values[0], 1.0 - 0.001, close_enough, "one step of the learning rate");
    store_close(&store);
    fixture_release(&device, values);
    fixture_release(&device, gradient);
    arena_free(&arena);
    device_close(&device);
}

/* Computed in double, in Python: per step and weight w -= rate * decay * w, then Adam's step. */
static void adamw_decays_the_weights_beside_the_step_of_adam(void **state)
{
    const float steps[3][2] = {{0.1f, -0.2f}, {0.3f, 0.0f}, {-0.2f, 0.4f}};
    const double wanted[3][2] = {
        {0.899003162, -1.89800158}, {0.806326965, -1.82909881}, {0.779730476, -1.86127292}};
    const double m[2] = {0.0151, 0.0238}, v[2] = {0.00013989001, 0.00019992004};
    struct device device = fixture_device();
    struct arena arena = {0};
    const struct optimizer_spec spec = fixture_optimizer(
        "{\"optimizer\": {\"type\": \"adamw\", \"learning_rate\": 0.1, \"weight_decay\": 0.01}}",
        &arena);
    float *values = fixture_block(&device, FLOATS_MAX);
    float *gradient = fixture_block(&device, FLOATS_MAX);
    const void *gradients[] = {gradient};
    values[0] = 1.0f, values[1] = -2.0f;
    struct store store;
    assert_int_equal(fixture_store(&spec, &device, FLOATS_MAX, values, &store), OK);
    for (int step = 0; step < 3; step++) {
        memcpy(gradient, steps[step], sizeof steps[step]);
        assert_int_equal(store_apply(&store, gradients, 1, 1.0f, step, NULL), OK);
        for (int i = 0; i < 2; i++) fixture_near(values[i], wanted[step][i], close_enough, "adamw");
    }
    for (int i = 0; i < 2; i++) {
        fixture_near(store.slots[0][i], m[i], close_enough, "m");
        fixture_near(store.slots[1][i], v[i], close_enough, "v");
    }
    store_close(&store);
    fixture_release(&device, values);
    fixture_release(&device, gradient);
    arena_free(&arena);
    device_close(&device);
}

/* Clipping */

struct clip_case {
    float a[FLOATS_MAX], b[FLOATS_MAX];
    float wanted[FLOATS_MAX];
    float *gradients[2];
    int64_t sizes[2];
    int count;
    double norm;
};

static struct clip clip_of(const char *json)
{
    struct arena arena = {0};
    char text[256];
    snprintf(text, sizeof text, "{\"optimizer\": {\"type\": \"adam\", \"clip\": %s}}", json);
    const struct optimizer_spec spec = fixture_optimizer(text, &arena);
    assert_int_equal(optimizer_check(&spec, "optimizer"), OK);
    const struct clip clip = optimizer_clip(&spec);
    arena_free(&arena);
    return clip;
}

static json_t *find_op(json_t *fixture, const char *op)
{
    size_t i;
    json_t *test;
    json_array_foreach(json_object_get(fixture, "cases"), i, test)
    {
        if (strcmp(json_string_value(json_object_get(test, "op")), op) == 0) return test;
    }
    fail_msg("ops.json has no %s", op);
    return NULL;
}

/* By way of the device's memory. */
static void clip_on_device(const struct clip *clip, float *const gradients[], const int64_t sizes[],
                           int count, double *ret_norm)
{
    struct device device = fixture_device();
    float *blocks[2];
    for (int i = 0; i < count; i++) {
        blocks[i] = fixture_block(&device, FLOATS_MAX);
        memcpy(blocks[i], gradients[i], (size_t)sizes[i] * sizeof(float));
    }
    clip_gradients(clip, &device, blocks, sizes, count, ret_norm);
    for (int i = 0; i < count; i++) {
        memcpy(gradients[i], blocks[i], (size_t)sizes[i] * sizeof(float));
        fixture_release(&device, blocks[i]);
    }
    device_close(&device);
}

/* Runs the case and compares; what follows the clipped numbers in the output is the norm. */
static void run_clip(const char *op, const char *rule, struct clip_case *c)
{
    json_t *fixture = fixture_load("ops.json");
    json_t *test = find_op(fixture, op), *inputs = json_object_get(test, "inputs");
    const double limit =
        json_number_value(json_object_get(json_object_get(test, "attributes"), "clip_norm"));
    const char *key;
    json_t *input;
    json_object_foreach(inputs, key, input)
    {
        c->gradients[c->count] = c->count ? c->b : c->a;
        c->sizes[c->count] = fixture_floats(input, c->gradients[c->count], FLOATS_MAX);
        c->count++;
    }
    fixture_floats(json_object_get(test, "output"), c->wanted, FLOATS_MAX);

    char text[128];
    snprintf(text, sizeof text, "{\"type\": \"%s\", \"norm\": %.17g}", rule, limit);
    const struct clip clip = clip_of(text);
    clip_on_device(&clip, c->gradients, c->sizes, c->count, &c->norm);
    json_decref(fixture);

    const float *wanted = c->wanted;
    for (int i = 0; i < c->count; i++) {
        for (int64_t j = 0; j < c->sizes[i]; j++) {
            fixture_near(c->gradients[i][j], *wanted++, close_enough, op);
        }
    }
}

static void the_global_norm_is_clipped_as_tensorflow_does(void **state)
{
    struct clip_case c = {.count = 0};
    run_clip("clip_by_global_norm", "global_norm", &c);
    assert_int_equal(c.count, 2);
    fixture_near(c.norm, c.wanted[c.sizes[0] + c.sizes[1]], close_enough, "norm");
}

static void each_norm_is_clipped_as_tensorflow_does(void **state)
{
    struct clip_case c = {.count = 0};
    run_clip("clip_by_norm", "norm", &c);
    assert_int_equal(c.count, 1);
    assert_true(c.norm == 0.0);
}

struct pair {
    float a[FLOATS_MAX], b[FLOATS_MAX];
};

static double clip_pair(const char *rule, struct pair *pair)
{
    const struct clip clip = clip_of(rule);
    float *gradients[] = {pair->a, pair->b};
    const int64_t sizes[] = {2, 1};
    double norm;
    clip_on_device(&clip, gradients, sizes, 2, &norm);
    return norm;
}

static void gradients_within_the_limit_keep_their_bits(void **state)
{
    struct pair pair = {.a = {0.1f, -0.7f}, .b = {0.3f}};
    const struct pair before = pair;
    const double norm = clip_pair("{\"type\": \"global_norm\", \"norm\": 0.9}", &pair);
    fixture_near(norm, sqrt(0.59), close_enough, "norm");
    assert_memory_equal(&pair, &before, sizeof pair);
    clip_pair("{\"type\": \"norm\", \"norm\": 0.9}", &pair);
    assert_memory_equal(&pair, &before, sizeof pair);
    clip_pair("null", &pair);
    assert_memory_equal(&pair, &before, sizeof pair);
}

static void each_norm_counts_one_variable_only(void **state)
{
    struct pair pair = {.a = {3.0f, -4.0f}, .b = {0.5f}};
    clip_pair("{\"type\": \"norm\", \"norm\": 1.0}", &pair);
    fixture_near(pair.a[0], 0.6, close_enough, "a[0]");
    fixture_near(pair.a[1], -0.8, close_enough, "a[1]");
    assert_true(pair.b[0] == 0.5f);
}

static void values_are_clipped_one_by_one(void **state)
{
    struct pair pair = {.a = {3.0f, -4.0f}, .b = {0.5f}};
    const double norm = clip_pair("{\"type\": \"value\", \"min\": -1, \"max\": 2}", &pair);
    assert_true(norm == 0.0);
    assert_true(pair.a[0] == 2.0f && pair.a[1] == -1.0f && pair.b[0] == 0.5f);
}

static void an_infinite_norm_makes_every_gradient_nan(void **state)
{
    struct pair pair = {.a = {3.0f, INFINITY}, .b = {0.5f}};
    clip_pair("{\"type\": \"global_norm\", \"norm\": 1.0}", &pair);
    assert_true(isnan(pair.a[0]) && isnan(pair.a[1]) && isnan(pair.b[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dense_case_of_tensorflow_is_met),
        cmocka_unit_test(every_sparse_case_of_tensorflow_is_met),
        cmocka_unit_test(every_optimizer_says_how_it_is_saved),
        cmocka_unit_test(adam_by_its_bare_name_has_the_defaults_of_tensorflow),
        cmocka_unit_test(adamw_decays_the_weights_beside_the_step_of_adam),
        cmocka_unit_test(the_global_norm_is_clipped_as_tensorflow_does),
        cmocka_unit_test(each_norm_is_clipped_as_tensorflow_does),
        cmocka_unit_test(gradients_within_the_limit_keep_their_bits),
        cmocka_unit_test(each_norm_counts_one_variable_only),
        cmocka_unit_test(values_are_clipped_one_by_one),
        cmocka_unit_test(an_infinite_norm_makes_every_gradient_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
