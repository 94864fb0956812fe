/* test_optimizer_list.c - which optimizer has which variable, and a block of several optimizers. */
#include "tests/core/train/fixture.h"

#include <string.h>

#include "core/base/random.h"

enum { FLOATS = 20016, STEPS = 3, SLICES = 5 };

static const char *const texts[] = {
    "{\"optimizer\": {\"match\": \"wide/*\", \"type\": \"ftrl\", \"learning_rate\": 0.1, "
    "\"l1\": 0.001}}",
    "{\"optimizer\": {\"match\": \"*bias\", \"type\": \"adam\"}}",
    "{\"optimizer\": {\"type\": \"adam\", \"beta1\": 0.5, \"learning_rate\": {\"type\": "
    "\"exponential_decay\", \"learning_rate\": 0.1, \"decay_steps\": 1, \"decay_rate\": 0.5}}}",
    "{\"optimizer\": {\"match\": \"none\", \"type\": \"gradient_descent\", \"learning_rate\": 1}}",
};
enum { WIDE, BIAS, REST, NONE, TEXTS };

/* As a ps has them: in no order of their offsets, with gaps between */
static const struct slice slices[SLICES] = {
    {.name = "wide/kernel", .offset = 9008, .count = 11008},
    {.name = "wide/bias", .offset = 8992, .count = 10},
    {.name = "deep/bias", .offset = 32, .count = 8},
    {.name = "deep/kernel", .offset = 48, .count = 8944},
    {.name = "logits/bias", .offset = 0, .count = 20},
};

struct world {
    struct arena arena;
    struct device device;
    struct optimizer_spec specs[TEXTS];
    struct optimizers all; /* but for the one that matches nothing */
    const struct section *sections;
    int section_count;
};

static void open_world(struct world *w)
{
    const int *found;
    *w = (struct world){.device = fixture_device()};
    for (int i = 0; i < TEXTS; i++) w->specs[i] = fixture_optimizer(texts[i], &w->arena);
    w->all = optimizers_make(w->specs, NONE, &w->arena);
    assert_int_equal(optimizers_of_slices(&w->all, slices, SLICES, &w->arena, &found), OK);
    w->section_count =
        sections_make(&w->all, slices, found, SLICES, FLOATS, &w->arena, &w->sections);
}

static void close_world(struct world *w)
{
    device_close(&w->device);
    arena_free(&w->arena);
}

static void the_first_that_matches_has_the_variable(void **state)
{
    struct world w;
    open_world(&w);
    assert_int_equal(optimizers_find(&w.all, "wide/bias", 0), WIDE);
    assert_int_equal(optimizers_find(&w.all, "deep/bias", 0), BIAS);
    assert_int_equal(optimizers_find(&w.all, "deep/kernel", 0), REST);
    const struct optimizers two = optimizers_make(w.specs, 2, &w.arena);
    assert_int_equal(optimizers_find(&two, "deep/kernel", 0), OPTIMIZER_NONE);
    close_world(&w);
}

static void powers_have_the_names_that_tensorflow_gives(void **state)
{
    static const char *const wanted[] = {"beta1_power", "beta2_power", "beta1_power_1",
                                         "beta2_power_1"};
    struct world w;
    float powers[ALL_POWERS_MAX];
    open_world(&w);
    assert_int_equal(w.all.power_count, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(w.all.power_names[i], wanted[i]);
    optimizers_powers(&w.all, powers);
    assert_true(powers[0] == 0.9f && powers[2] == 0.5f && powers[3] == 0.999f);
    assert_int_equal(w.all.slot_count, 2);
    close_world(&w);
}

static void neighbours_of_one_optimizer_are_one_section(void **state)
{
    static const struct section wanted[] = {{BIAS, 0, 48}, {REST, 0, 8992}, {WIDE, 0, FLOATS}};
    struct world w;
    open_world(&w);
    assert_int_equal(w.section_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w.sections[i].optimizer, wanted[i].optimizer);
        assert_int_equal(w.sections[i].end, wanted[i].end);
    }
    close_world(&w);
}

static const char *complaint(const struct world *w, const int order[], int count)
{
    struct optimizer_spec specs[TEXTS];
    struct variable variables[SLICES] = {0};
    struct arena arena = {0};
    for (int i = 0; i < count; i++) specs[i] = w->specs[order[i]];
    for (int i = 0; i < SLICES; i++) variables[i] = (struct variable){.name = slices[i].name};
    const struct optimizers list = optimizers_make(specs, count, &arena);
    const err e = optimizers_check(&list, variables, SLICES, &arena);
    arena_free(&arena);
    return e ? error_text() : "";
}

static void what_has_no_optimizer_or_no_variable_is_named(void **state)
{
    struct world w;
    open_world(&w);
    assert_string_equal(complaint(&w, (int[]){WIDE, BIAS, REST}, 3), "");
    assert_string_equal(complaint(&w, (int[]){WIDE, BIAS}, 2),
                        "optimizers: none matches the variable \"deep/kernel\" (\"match\": \"*\" "
                        "does)");
    assert_string_equal(complaint(&w, (int[]){WIDE, NONE, REST}, 3),
                        "optimizers[1].match: no variable is called \"none\"");
    assert_string_equal(complaint(&w, (int[]){REST, WIDE}, 2),
                        "optimizers[1].match: \"wide/*\" matches nothing that optimizers[0] has "
                        "not taken before it");
    close_world(&w);
}

static void what_sweeps_cannot_update_a_table_that_grows(void **state)
{
    static const struct growth growth = {1, 0};
    static const struct table_spec grows = {.growth = &growth};
    const struct variable variable = {.name = "words", .table = &grows};
    struct arena arena = {0};
    const char *const lazy[] = {"{\"optimizer\": \"lazy_adam\"}", "{\"optimizer\": \"adam\"}"};
    for (int i = 0; i < 2; i++) {
        struct optimizer_spec spec = fixture_optimizer(lazy[i], &arena);
        const struct optimizers list = optimizers_make(&spec, 1, &arena);
        assert_int_equal(optimizers_check(&list, &variable, 1, &arena), i ? ERR_INPUT : OK);
    }
    assert_non_null(strstr(error_text(), "adam changes all rows at each step, and words grows"));
    arena_free(&arena);
}

/* What is said of variables deep/kernel, deep/bias and words beside these patterns. */
static const char *complaint_of(const char *optimizer, const struct strings frozen,
                                const struct weight_decay decay)
{
    static const struct variable variables[] = {
        {.name = "deep/kernel"}, {.name = "deep/bias"}, {.name = "words"}};
    struct arena arena = {0};
    struct optimizer_spec spec = fixture_optimizer(optimizer, &arena);
    struct optimizers list = optimizers_make(&spec, 1, &arena);
    list.frozen = frozen;
    list.decay = decay;
    const err e = optimizers_check(&list, variables, 3, &arena);
    arena_free(&arena);
    return e ? error_text() : "";
}

#define NAMES(...)                                                                                 \
    (struct strings)                                                                               \
    {                                                                                              \
        (const char *[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)      \
    }

static void patterns_of_what_stays_and_what_decays_name_variables(void **state)
{
    const char *const adam = "{\"optimizer\": \"adam\"}", *const adamw =
                                                              "{\"optimizer\": \"adamw\"}";
    const struct strings none = {0};
    const struct weight_decay all = {0.1, NAMES("*"), none};
    assert_string_equal(complaint_of(adam, NAMES("deep/*"), all), "");
    assert_string_equal(
        complaint_of(adam, NAMES("deep/*", "word"), all),
        "train.freeze[1]: no variable is called \"word\" (did you mean \"words\"?)");
    assert_string_equal(complaint_of(adam, NAMES("*"), all),
                        "train.freeze: there is no variable left to train");
    assert_string_equal(
        complaint_of(adam, none, (struct weight_decay){0.1, NAMES("*"), NAMES("bias")}),
        "train.weight_decay.except[0]: no variable is called \"bias\" (did you mean "
        "\"deep/bias\"?)");
    assert_string_equal(complaint_of(adamw, none, all),
                        "train.weight_decay: deep/kernel is updated by adamw, which has a "
                        "weight_decay of its own, of all its variables: say adam");
    assert_string_equal(complaint_of(adamw, NAMES("deep/*"),
                                     (struct weight_decay){0.1, NAMES("*"), NAMES("words")}),
                        "");
}

/* Slices of the variables of weight_decay.json, with one that is frozen between them */
enum { KERNEL, FROZEN, BIAS_PART, PARTS, BLOCK = 80 };
static const struct slice decaying[PARTS] = {{.name = "hidden/kernel", .offset = 0, .count = 21},
                                             {.name = "frozen", .offset = 32, .count = 20},
                                             {.name = "hidden/bias", .offset = 64, .count = 5}};

static void take_numbers(json_t *of, const char *member, float *block)
{
    static const int parts[] = {KERNEL, BIAS_PART};
    for (int i = 0; i < 2; i++) {
        const struct slice *slice = &decaying[parts[i]];
        json_t *numbers = json_object_get(of, slice->name);
        if (member) numbers = json_object_get(numbers, member);
        for (int64_t k = 0; k < slice->count; k++)
            block[slice->offset + k] = (float)json_number_value(json_array_get(numbers, (size_t)k));
    }
}

static void decay_one(json_t *test, struct arena *arena)
{
    struct device device = fixture_device();
    json_t *of = json_pack("{sO}", "optimizer", json_object_get(test, "optimizer")), *told;
    struct optimizer_spec spec = fixture_optimizer_json(of, arena);
    struct optimizers list = optimizers_make(&spec, 1, arena);
    float *values = fixture_block(&device, BLOCK), *gradient = fixture_block(&device, BLOCK),
          wanted[BLOCK] = {0};
    const struct section *sections;
    const int *found;
    struct store store;
    size_t step;
    list.frozen = NAMES("frozen");
    list.decay = (struct weight_decay){json_number_value(json_object_get(test, "decay")),
                                       NAMES("*"), NAMES("*bias")};
    assert_int_equal(optimizers_of_slices(&list, decaying, PARTS, arena, &found), OK);
    assert_int_equal(found[FROZEN], OPTIMIZER_NONE);
    const int count = sections_make(&list, decaying, found, PARTS, BLOCK, arena, &sections);
    assert_int_equal(count, PARTS);
    for (int i = 0; i < BLOCK; i++) values[i] = wanted[i] = gradient[i] = 0.5f;
    take_numbers(json_object_get(test, "first"), NULL, values);
    assert_int_equal(store_open(&list, sections, count, &device, BLOCK, values, &store), OK);
    json_array_foreach(json_object_get(test, "steps"), step, told)
    {
        take_numbers(told, "gradient", gradient);
        take_numbers(told, "value", wanted);
        assert_int_equal(
            store_apply(&store, (const void *const[]){gradient}, 1, 1.0f, (int64_t)step, NULL), OK);
        for (int i = 0; i < PARTS; i++)
            for (int64_t k = decaying[i].offset; k < decaying[i].offset + decaying[i].count; k++)
                fixture_near(values[k], wanted[k], (struct tolerance){2e-6, 2e-6},
                             decaying[i].name);
    }
    store_close(&store);
    fixture_release(&device, values);
    fixture_release(&device, gradient);
    device_close(&device);
}

static void weights_decay_as_in_tensorflow_and_what_is_frozen_stays(void **state)
{
    json_t *fixture = fixture_load("weight_decay.json"), *test;
    struct arena arena = {0};
    size_t i;
    json_array_foreach(json_object_get(fixture, "cases"), i, test) decay_one(test, &arena);
    assert_int_equal(i, 5);
    json_decref(fixture);
    arena_free(&arena);
}

/* Whatever decays: nothing frozen does. */
static void what_is_frozen_lies_behind_what_is_moved(void **state)
{
    static const struct slice three[] = {
        {.name = "logits/kernel", .offset = 0, .count = 20},
        {.name = "hidden/bias", .offset = 32, .count = 4},
        {.name = "hidden/kernel", .offset = 48, .count = 16},
    };
    struct arena arena = {0};
    json_t *of = json_pack("{s{sssf}}", "optimizer", "type", "adam", "learning_rate", 0.01);
    struct optimizer_spec spec = fixture_optimizer_json(of, &arena);
    struct optimizers list = optimizers_make(&spec, 1, &arena);
    list.decay = (struct weight_decay){0.01, NAMES("*"), NAMES("*bias")};
    for (int first = 0; first < 2; first++) { /* of those that are frozen */
        const struct section *sections;
        const int *found;
        list.frozen = first ? NAMES("hidden/*") : NAMES("*");
        assert_int_equal(optimizers_of_slices(&list, three, 3, &arena, &found), OK);
        const int count = sections_make(&list, three, found, 3, 64, &arena, &sections);
        assert_int_equal(count, 1 + first);
        assert_int_equal(sections_moved(sections, count, 64), first ? 32 : LAYOUT_ALIGN);
    }
    arena_free(&arena);
}

/* What is frozen has none, and is shown as it is. */
static void follow_one(json_t *test, double rate, struct arena *arena)
{
    struct device device = fixture_device();
    json_t *of = json_pack("{s{sssf}}", "optimizer", "type", "adam", "learning_rate", rate), *told;
    struct optimizer_spec spec = fixture_optimizer_json(of, arena);
    struct optimizers list = optimizers_make(&spec, 1, arena);
    float *values = fixture_block(&device, BLOCK), *gradient = fixture_block(&device, BLOCK),
          *shown = fixture_block(&device, BLOCK), wanted[BLOCK] = {0};
    const struct section *sections;
    const int *found;
    struct store store;
    size_t step;
    list.frozen = NAMES("frozen");
    optimizers_keep_average(
        &list, &(struct average_spec){json_number_value(json_object_get(test, "decay")),
                                      json_is_true(json_object_get(test, "num_updates"))});
    assert_int_equal(list.slot_count, 3);
    assert_int_equal(optimizers_of_slices(&list, decaying, PARTS, arena, &found), OK);
    const int count = sections_make(&list, decaying, found, PARTS, BLOCK, arena, &sections);
    for (int i = 0; i < BLOCK; i++) values[i] = wanted[i] = 0.5f;
    take_numbers(json_object_get(test, "first"), NULL, values);
    assert_int_equal(store_open(&list, sections, count, &device, BLOCK, values, &store), OK);
    store_begin_averages(&store);
    store_show_averages(&store, shown);
    assert_memory_equal(shown, values, BLOCK * sizeof *shown);
    json_array_foreach(json_object_get(test, "steps"), step, told)
    {
        take_numbers(told, "gradient", gradient);
        take_numbers(told, "average", wanted);
        assert_int_equal(
            store_apply(&store, (const void *const[]){gradient}, 1, 1.0f, (int64_t)step, NULL), OK);
        store_show_averages(&store, shown);
        for (int i = 0; i < PARTS; i++)
            for (int64_t k = decaying[i].offset; k < decaying[i].offset + decaying[i].count; k++)
                fixture_near(shown[k], wanted[k], (struct tolerance){2e-6, 2e-6}, decaying[i].name);
    }
    store_close(&store);
    fixture_release(&device, values);
    fixture_release(&device, gradient);
    fixture_release(&device, shown);
    device_close(&device);
}

static void averages_follow_as_in_tensorflow(void **state)
{
    json_t *fixture = fixture_load("averages.json"), *test;
    const double rate = json_number_value(json_object_get(fixture, "rate"));
    struct arena arena = {0};
    size_t i;
    json_array_foreach(json_object_get(fixture, "cases"), i, test) follow_one(test, rate, &arena);
    assert_int_equal(i, 3);
    json_decref(fixture);
    arena_free(&arena);
}

static float *random_floats(struct world *w, uint64_t key)
{
    float *at = fixture_block(&w->device, FLOATS);
    for (int i = 0; i < FLOATS; i++) at[i] = random_normal(key, (uint64_t)i);
    return at;
}

/* Each section as a block of its own optimizer */
static void update_apart(struct world *w, float *values, float *const gradients[2], float *slots[2])
{
    int64_t begin = 0;
    for (int i = 0; i < w->section_count; i++) {
        struct store store;
        const int64_t floats = w->sections[i].end - begin;
        const struct optimizer_spec *spec = &w->specs[w->sections[i].optimizer];
        assert_int_equal(fixture_store(spec, &w->device, floats, values + begin, &store), OK);
        for (int step = 0; step < STEPS; step++)
            assert_int_equal(
                store_apply(&store,
                            (const void *const[]){gradients[0] + begin, gradients[1] + begin}, 2,
                            0.5f, step, NULL),
                OK);
        for (int k = 0; k < store.slot_count; k++)
            memcpy(slots[k] + begin, store.slots[k], (size_t)floats * sizeof(float));
        store_close(&store);
        begin = w->sections[i].end;
    }
}

/* Stretches that end within sections go ahead; some of them are taken back. */
static void update_in_parts(struct store *store, float *const gradients[2])
{
    static const struct range ranges[] = {{9008, 17008}, {0, 16},      {48, 64},
                                          {16, 48},      {8208, 9008}, {64, 8208}};
    const void *const both[] = {gradients[0], gradients[1]};
    const void *const wrong[] = {gradients[1], gradients[1]};
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 4; i++)
            assert_int_equal(store_advance(store, wrong, 2, 0.5f, step, ranges[i], NULL), OK);
        store_take_back(store, NULL);
        for (int i = 0; i < 6; i++)
            assert_int_equal(store_advance(store, both, 2, 0.5f, step, ranges[i], NULL), OK);
        assert_int_equal(store_apply(store, both, 2, 0.5f, step, NULL), OK);
    }
}

static void a_block_of_several_is_updated_as_blocks_of_one_each(void **state)
{
    const size_t bytes = FLOATS * sizeof(float);
    struct world w;
    open_world(&w);
    float *gradients[2] = {random_floats(&w, 1), random_floats(&w, 2)};
    float *slots[2] = {fixture_block(&w.device, FLOATS), fixture_block(&w.device, FLOATS)};
    float *apart = random_floats(&w, 3);
    update_apart(&w, apart, gradients, slots);
    for (int in_parts = 0; in_parts < 2; in_parts++) {
        float *values = random_floats(&w, 3), *snapshot = fixture_block(&w.device, FLOATS);
        struct store store;
        assert_int_equal(
            store_open(&w.all, w.sections, w.section_count, &w.device, FLOATS, values, &store), OK);
        if (in_parts) update_in_parts(&store, gradients);
        for (int step = 0; step < STEPS && !in_parts; step++)
            assert_int_equal(store_apply(&store, (const void *const[]){gradients[0], gradients[1]},
                                         2, 0.5f, step, snapshot),
                             OK);
        assert_memory_equal(values, apart, bytes);
        if (!in_parts) assert_memory_equal(snapshot, apart, bytes);
        for (int k = 0; k < 2; k++) assert_memory_equal(store.slots[k], slots[k], bytes);
        store_close(&store);
        fixture_release(&w.device, values);
        fixture_release(&w.device, snapshot);
    }
    for (int k = 0; k < 2; k++) {
        fixture_release(&w.device, gradients[k]);
        fixture_release(&w.device, slots[k]);
    }
    fixture_release(&w.device, apart);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_matches_has_the_variable),
        cmocka_unit_test(powers_have_the_names_that_tensorflow_gives),
        cmocka_unit_test(neighbours_of_one_optimizer_are_one_section),
        cmocka_unit_test(what_has_no_optimizer_or_no_variable_is_named),
        cmocka_unit_test(what_sweeps_cannot_update_a_table_that_grows),
        cmocka_unit_test(patterns_of_what_stays_and_what_decays_name_variables),
        cmocka_unit_test(weights_decay_as_in_tensorflow_and_what_is_frozen_stays),
        cmocka_unit_test(what_is_frozen_lies_behind_what_is_moved),
        cmocka_unit_test(averages_follow_as_in_tensorflow),
        cmocka_unit_test(a_block_of_several_is_updated_as_blocks_of_one_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
