/* test_setup.c - what the chief tells a ps arrives as it was meant, and a ps believes nothing that
 * does not fit into its memory. */
#include "core/cluster/description/setup.h"
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>

enum { PS = 3, WORKERS = 2, POWERS = 2, TEXT_MAX = 160 };

static const struct variable variables[] = {
    {"second/kernel", {2, {5, 8}}},
    {"second/bias", {1, {8}}},
    {"first/kernel", {3, {7, 2, 3}}},
    {"scale", {0}},
};
enum { VARIABLES = sizeof variables / sizeof *variables };

static const struct ledger ledger[WORKERS] = {{9, 8, 7}, {1000000000000000, 4, 4}};
static const float powers[POWERS] = {0.81f, 0.998001f};

/* A chief's view: all but the scalar are cut into two parts along their first axis. */
struct chief {
    struct arena arena;
    struct spec spec;
    struct setup_plan plan;
};

static const char partitioned[] = "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", "
                                  "\"num_shards\": 2, \"axis\": 0}}}";

static void open_chief(struct chief *c, const char *placement, int ps_count)
{
    struct layout *layout;
    *c = (struct chief){
        .spec = {.train = {.mode = MODE_SYNC,
                           .replicas_to_aggregate = 5,
                           .max_staleness = -1,
                           .absence.min_workers = 2,
                           .absence.worker_timeout_ms = 1500}},
    };
    c->spec.json =
        json_loads("{\"optimizer\": {\"type\": \"adam\", \"learning_rate\": 0.5}}", 0, NULL);
    assert_non_null(c->spec.json);
    const struct placement_spec spec = fixture_placement(placement, &c->arena);
    assert_int_equal(layout_make(&spec, variables, VARIABLES, ps_count, &c->arena, &layout), OK);
    c->plan = (struct setup_plan){
        .spec = &c->spec,
        .layout = layout,
        .workers = WORKERS,
        .wire = NUMBER_FP16,
        .wire_values = NUMBER_BF16,
        .last_step = 2000,
        .generation = 0xfedcba9876543210,
        .step = 300,
        .arrays = 3,
        .directory = "/a/run",
        .restore = "/a/run/model.ckpt-300",
        .from = {.snapshot = 0x8000000000000003, .set_in = 0x8000000000000005},
        .token = 0x8000000000000001,
        .resizes = 2,
        .powers = powers,
        .power_count = POWERS,
        .ledger = ledger,
    };
}

static void close_chief(struct chief *c)
{
    json_decref(c->spec.json);
    arena_free(&c->arena);
}

/* Strings of the setup lie in the chief's arena. */
static err send(struct chief *c, int ps, struct setup *ret)
{
    char *text = setup_write(&c->plan, ps);
    assert_non_null(text);
    err e = setup_read(text, strlen(text), &c->arena, ret);
    free(text);
    return e;
}

static void receive(struct chief *c, int ps, struct setup *ret)
{
    if (send(c, ps, ret)) fail_msg("%s", error_text());
}

/* ---- what arrives ---- */

static void check_slices(struct chief *c, const struct setup *s)
{
    const struct slice *wanted;
    assert_int_equal(s->slice_count, setup_slices(c->plan.layout, s->ps, &c->arena, &wanted));
    for (int i = 0; i < s->slice_count; i++) {
        const struct slice *a = &s->slices[i], *b = &wanted[i];
        assert_string_equal(a->name, b->name);
        assert_true(shape_equal(&a->shape, &b->shape));
        assert_int_equal(a->axis, b->axis);
        assert_int_equal(a->start, b->start);
        assert_int_equal(a->length, b->length);
        assert_int_equal(a->offset, b->offset);
        assert_int_equal(a->count, b->count);
    }
}

static void every_ps_gets_its_slices_and_no_other(void **state)
{
    struct chief c;
    int slices = 0;
    open_chief(&c, partitioned, PS);
    for (int ps = 0; ps < PS; ps++) {
        struct setup s;
        receive(&c, ps, &s);
        assert_int_equal(s.ps, ps);
        assert_int_equal(s.part.homes, PS);
        assert_int_equal(s.floats, c.plan.layout->block_floats[ps]);
        check_slices(&c, &s);
        slices += s.slice_count;
    }
    assert_int_equal(slices, c.plan.layout->slice_count);
    close_chief(&c);
}

static void what_the_chief_decided_arrives(void **state)
{
    struct chief c;
    struct setup s;
    open_chief(&c, partitioned, PS);
    receive(&c, 1, &s);
    assert_int_equal(s.config.generation, c.plan.generation);
    assert_int_equal(s.config.step, 300);
    assert_int_equal(s.config.last_step, 2000);
    assert_true(s.config.is_sync && s.config.takes_all && s.config.block_floats);
    assert_int_equal(s.config.replicas_to_aggregate, 5);
    assert_int_equal(s.config.max_staleness, -1);
    assert_int_equal(s.config.min_workers, 2);
    assert_int_equal(s.config.worker_timeout_ms, 1500);
    assert_int_equal(s.config.arrays, 3);
    assert_int_equal(s.workers, WORKERS);
    assert_int_equal(s.wire, NUMBER_FP16);
    assert_int_equal(s.wire_values, NUMBER_BF16);
    assert_string_equal(s.optimizers.at[0].optimizer.kind->object->name, "adam");
    assert_true(s.mark.token == c.plan.token);
    assert_true(s.mark.resizes == (int64_t)c.plan.resizes);
    assert_string_equal(s.directory, "/a/run");
    assert_string_equal(s.restore, "/a/run/model.ckpt-300");
    assert_true(s.from.snapshot == c.plan.from.snapshot);
    assert_true(s.from.set_in == c.plan.from.set_in);
    close_chief(&c);
}

/* What a ps may keep from one generation to the next */
static void it_shows_whether_what_a_ps_holds_lies_there_as_before(void **state)
{
    struct chief c;
    struct setup before, later, other;
    open_chief(&c, partitioned, PS);
    receive(&c, 1, &before);
    c.plan.generation++;
    c.plan.step = c.plan.last_step = 400;
    c.plan.rates.factor = 0.5;
    c.plan.restore = "/a/run/model.ckpt-400";
    c.plan.ledger = NULL;
    receive(&c, 1, &later);
    assert_string_equal(before.part.layout, later.part.layout);
    receive(&c, 2, &other);
    assert_string_not_equal(before.part.layout, other.part.layout);
    json_object_set_new(json_object_get(c.spec.json, "optimizer"), "type", json_string("adagrad"));
    c.plan.power_count = 0;
    receive(&c, 1, &other);
    assert_string_not_equal(before.part.layout, other.part.layout);
    close_chief(&c);
}

static void ledgers_and_powers_arrive_bit_for_bit(void **state)
{
    struct chief c;
    struct setup s;
    open_chief(&c, partitioned, PS);
    receive(&c, 0, &s);
    assert_memory_equal(s.config.ledger, ledger, sizeof ledger);
    assert_int_equal(s.power_count, POWERS);
    assert_memory_equal(s.powers, powers, sizeof powers);
    close_chief(&c);
}

static void a_run_that_begins_anew_has_nothing_of_an_old_one(void **state)
{
    struct chief c;
    struct setup s;
    open_chief(&c, partitioned, PS);
    c.plan.directory = c.plan.restore = NULL;
    c.plan.powers = NULL;
    c.plan.ledger = NULL;
    receive(&c, 2, &s);
    assert_null(s.directory);
    assert_null(s.restore);
    assert_null(s.config.ledger);
    assert_int_equal(s.power_count, 0);
    close_chief(&c);
}

static void a_ps_without_variables_is_empty(void **state)
{
    struct chief c;
    struct setup s;
    open_chief(&c, "{\"placement\": {}}", VARIABLES + 2);
    receive(&c, VARIABLES + 1, &s);
    assert_int_equal(s.config.block_floats, 0);
    assert_int_equal(s.slice_count, 0);
    assert_false(s.owns_powers);
    close_chief(&c);
}

static bool has_first_part(const struct setup *s, const char *name)
{
    for (int i = 0; i < s->slice_count; i++)
        if (strcmp(s->slices[i].name, name) == 0 && s->slices[i].start == 0) return true;
    return false;
}

static void the_ps_of_the_smallest_name_owns_the_powers(void **state)
{
    struct chief c;
    open_chief(&c, partitioned, PS);
    for (int ps = 0; ps < PS; ps++) {
        struct setup s;
        receive(&c, ps, &s);
        assert_int_equal(s.owns_powers, has_first_part(&s, "first/kernel"));
    }
    close_chief(&c);
}

static void the_mode_says_what_a_ps_may_drop(void **state)
{
    static const struct {
        int mode, replicas, staleness;
        bool takes_all, drops;
    } cases[] = {
        {MODE_SYNC, 0, -1, true, false}, {MODE_SYNC, WORKERS, -1, true, false},
        {MODE_SYNC, 1, -1, false, true}, {MODE_ASYNC, 0, -1, false, false},
        {MODE_ASYNC, 0, 0, false, true}, {MODE_ASYNC, 0, 4, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct chief c;
        struct setup s;
        open_chief(&c, partitioned, PS);
        c.spec.train.mode = cases[i].mode;
        c.spec.train.replicas_to_aggregate = cases[i].replicas;
        c.spec.train.max_staleness = cases[i].staleness;
        receive(&c, 0, &s);
        assert_int_equal(s.config.is_sync, cases[i].mode == MODE_SYNC);
        assert_int_equal(s.config.takes_all, cases[i].takes_all);
        assert_int_equal(s.config.max_staleness, cases[i].staleness);
        assert_int_equal(setup_drops_gradients(&c.spec, WORKERS), cases[i].drops);
        close_chief(&c);
    }
}

static void workers_share_out_the_gradients_of_a_step(void **state)
{
    struct chief c;
    open_chief(&c, partitioned, PS);
    assert_int_equal(setup_gradients_per_push(&c.spec, WORKERS, 0), 3);
    assert_int_equal(setup_gradients_per_push(&c.spec, WORKERS, 1), 2);
    assert_int_equal(setup_gradients_per_push(&c.spec, 8, 7), 1); /* three of them are backup */
    c.spec.train.mode = MODE_ASYNC;
    assert_int_equal(setup_gradients_per_push(&c.spec, WORKERS, 0), 1);
    close_chief(&c);
}

/* ---- what is refused ---- */

static void refuse_text(struct chief *c, const char *text, const char *words)
{
    struct setup s;
    err e = setup_read(text, text ? strlen(text) : 0, &c->arena, &s);
    if (!e) fail_msg("accepted: %s", text);
    assert_int_equal(e, ERR_PROTOCOL);
    if (!strstr(error_text(), words)) fail_msg("\"%s\" lacks \"%s\"", error_text(), words);
}

/* The setup of ps 0 with one member changed: of its first slice where `of_slice`. */
struct change {
    bool of_slice;
    const char *member, *value, *words;
};

static void refuse(struct chief *c, const struct change *change)
{
    char *text = setup_write(&c->plan, 0);
    json_t *json = json_loads(text, 0, NULL), *at = json;
    json_t *value = json_loads(change->value, JSON_DECODE_ANY, NULL);
    free(text);
    if (change->of_slice) at = json_array_get(json_object_get(json, "slices"), 0);
    assert_non_null(value);
    assert_non_null(json_object_get(at, change->member));
    json_object_set_new(at, change->member, value);
    text = json_dumps(json, JSON_COMPACT);
    refuse_text(c, text, change->words);
    free(text);
    json_decref(json);
}

static void refuse_all(const struct change *changes, size_t count)
{
    struct chief c;
    open_chief(&c, partitioned, PS);
    for (size_t i = 0; i < count; i++) refuse(&c, &changes[i]);
    close_chief(&c);
}

static void a_slice_that_lies_outside_is_refused(void **state)
{
    static const struct change changes[] = {
        {true, "offset", "1000", "outside the block"},
        {true, "offset", "-16", "slices[0].offset"},
        {true, "offset", "1099511627776", "outside the block"},
        {true, "count", "1000", "outside its variable"},
        {true, "count", "1", "outside its variable"},
        {true, "start", "7", "outside its variable"},
        {true, "start", "-1", "slices[0].start"},
        {true, "length", "1099511627776", "outside its variable"},
        {true, "length", "0", "outside its variable"},
        {true, "axis", "5", "outside its variable"},
        {true, "axis", "6", "slices[0].axis"},
        {true, "shape", "[]", "outside its variable"},
        {true, "shape", "[0, 2, 3]", "at least 1"},
        {true, "shape", "[1099511627776, 1099511627776]", "more than 2^40"},
        {true, "shape", "[1, 1, 1, 1, 1, 1, 1]", "rank 7"},
        {false, "floats", "0", "outside the block"},
    };
    refuse_all(changes, sizeof changes / sizeof *changes);
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
    static const struct change changes[] = {
        {false, "floats", "17", "a block of 17 floats"},
        {false, "floats", "1e300", "floats"},
        {false, "home", "3", "ps 3 of 3"},
        {false, "ps_count", "0", "ps_count"},
        {false, "workers", "0", "workers"},
        {false, "workers", "1000000000", "workers"},
        {false, "arrays", "0", "arrays"},
        {false, "arrays", "6", "arrays"},
        {false, "last_step", "-1", "last_step"},
        {false, "replicas_to_aggregate", "0", "replicas_to_aggregate"},
        {false, "max_staleness", "-2", "max_staleness"},
        {false, "worker_timeout_secs", "1e300", "worker_timeout_secs"},
        {false, "ledger", "[1, 2, 3]", "a ledger of 3 numbers"},
        {false, "ledger", "[1, 2, 3, 4, 5, -6]", "ledger"},
        {false, "powers", "[0.1, 0.2, 0.3]", "3 powers"},
        {false, "generation", "7", "generation"},
        {false, "slices", "{}", "slices"},
        {false, "optimizers", "[{\"type\": \"none\"}]", "optimizer"},
        {false, "optimizers", "[]", "optimizers"},
        {false, "optimizers", "[{\"type\": \"adam\", \"match\": \"another\"}]", "none matches"},
    };
    refuse_all(changes, sizeof changes / sizeof *changes);
}

/* A set of them is a number (core/base/replicas.h). */
static void more_ps_than_a_set_has_are_not_held_twice(void **state)
{
    struct chief c;
    open_chief(&c, partitioned, PS);
    char *text = setup_write(&c.plan, 0);
    json_t *json = json_loads(text, 0, NULL);
    free(text);
    json_object_update_new(json, json_pack("{sb si}", "is_held_twice", 1, "ps_count", 40));
    text = json_dumps(json, JSON_COMPACT);
    refuse_text(&c, text, "40 ps that others follow");
    free(text);
    json_decref(json);
    close_chief(&c);
}

/* Whatever is in the list of what a chief tells is looked at. */
static void a_fact_of_another_type_is_refused_by_its_name(void **state)
{
    static const char *const facts[] = {
#define FACT(name, ...) #name,
#include "core/cluster/description/setup.def"
    };
    struct chief c;
    open_chief(&c, partitioned, PS);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        char *text = setup_write(&c.plan, 0);
        json_t *json = json_loads(text, 0, NULL);
        free(text);
        json_object_set_new(json, facts[i], json_pack("{si}", "no", 1));
        text = json_dumps(json, JSON_COMPACT);
        refuse_text(&c, text, facts[i]);
        free(text);
        json_decref(json);
    }
    close_chief(&c);
}

static void what_is_no_setup_is_refused(void **state)
{
    struct chief c;
    open_chief(&c, partitioned, PS);
    refuse_text(&c, NULL, "not JSON");
    refuse_text(&c, "", "not JSON");
    refuse_text(&c, "\xff{", "not JSON");
    refuse_text(&c, "[1, 2]", "SETUP");
    refuse_text(&c, "{}", "SETUP");
    char *text = setup_write(&c.plan, 0);
    assert_non_null(text);
    text[strlen(text) / 2] = '\0';
    refuse_text(&c, text, "not JSON");
    free(text);
    close_chief(&c);
}

/* ---- without memory ---- */

static int allocations_left;

static void *allocate_some(size_t bytes)
{
    return allocations_left-- > 0 ? malloc(bytes) : NULL;
}

static char *write_with(const struct chief *c, int allocations)
{
    allocations_left = allocations;
    json_set_alloc_funcs(allocate_some, free);
    char *text = setup_write(&c->plan, 0);
    json_set_alloc_funcs(malloc, free);
    return text;
}

static void a_setup_that_memory_does_not_reach_for_is_none(void **state)
{
    struct chief c;
    open_chief(&c, partitioned, PS);
    char *whole = setup_write(&c.plan, 0), *text = NULL;
    int allocations = 0;
    for (; !text && allocations < 1 << 20; allocations++) text = write_with(&c, allocations);
    assert_true(allocations > 100);
    assert_non_null(text);
    assert_string_equal(text, whole);
    free(text);
    free(whole);
    close_chief(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ps_gets_its_slices_and_no_other),
        cmocka_unit_test(what_the_chief_decided_arrives),
        cmocka_unit_test(ledgers_and_powers_arrive_bit_for_bit),
        cmocka_unit_test(a_run_that_begins_anew_has_nothing_of_an_old_one),
        cmocka_unit_test(it_shows_whether_what_a_ps_holds_lies_there_as_before),
        cmocka_unit_test(a_ps_without_variables_is_empty),
        cmocka_unit_test(the_ps_of_the_smallest_name_owns_the_powers),
        cmocka_unit_test(the_mode_says_what_a_ps_may_drop),
        cmocka_unit_test(workers_share_out_the_gradients_of_a_step),
        cmocka_unit_test(a_slice_that_lies_outside_is_refused),
        cmocka_unit_test(numbers_that_do_not_fit_are_refused),
        cmocka_unit_test(more_ps_than_a_set_has_are_not_held_twice),
        cmocka_unit_test(a_fact_of_another_type_is_refused_by_its_name),
        cmocka_unit_test(what_is_no_setup_is_refused),
        cmocka_unit_test(a_setup_that_memory_does_not_reach_for_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
