/* test_setup_tables.c - what the chief tells a ps of tables arrives as it was meant, and a ps
 * believes no table that cannot be. */
#include "core/cluster/description/setup.h"
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>

enum { PS = 3, WORKERS = 2, VARIABLES = 4, ROWS = 101, WIDTH = 8 };

static const uint64_t key = 0xfedcba9876543210;
static const char cut[] = "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", "
                          "\"num_shards\": 3}}}";
static const char by_turns[] = "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", "
                               "\"num_shards\": 3}, \"partition_strategy\": \"mod\"}}";
static const char one_optimizer[] = "{\"optimizer\": {\"type\": \"adam\"}}";

/* A chief's view: two tables, the first with the initializer that is named. */
struct chief {
    struct arena arena;
    struct spec spec;
    struct table_spec tables[2];
    struct variable variables[VARIABLES];
    struct setup_plan plan;
};

static void choose_initializer(struct chief *c, const struct kind *kind, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    void *attributes = arena_new(&c->arena, kind->object->size);
    if (fields_parse(kind->object, json, "", &c->arena, attributes)) fail_msg("%s", error_text());
    json_decref(json);
    static const int64_t most[2] = {77, 3};
    for (int i = 0; i < 2; i++)
        c->tables[i] =
            (struct table_spec){kind->descriptor, attributes, key + (uint64_t)i, most[i], i};
    c->tables[1].penalty = (struct regularizer){.l1 = 0.1, .l2 = 1.0 / 3};
}

static void open_chief(struct chief *c, const char *placement, const char *optimizers,
                       const struct kind *kind, const char *text)
{
    struct layout *layout;
    *c = (struct chief){.spec = {.train = {.mode = MODE_SYNC, .max_staleness = -1}}};
    c->spec.json = json_loads(optimizers, 0, NULL);
    assert_non_null(c->spec.json);
    choose_initializer(c, kind, text);
    c->variables[0] = (struct variable){"deep/table", {2, {ROWS, WIDTH}}, &c->tables[0]};
    c->variables[1] = (struct variable){"deep/kernel", {2, {5, 8}}, NULL};
    c->variables[2] = (struct variable){"wide/table", {2, {3, 1}}, &c->tables[1]};
    c->variables[3] = (struct variable){"deep/bias", {1, {8}}, NULL};
    const struct placement_spec spec = fixture_placement(placement, &c->arena);
    assert_int_equal(layout_make(&spec, c->variables, VARIABLES, PS, &c->arena, &layout), OK);
    c->plan = (struct setup_plan){.spec = &c->spec,
                                  .layout = layout,
                                  .workers = WORKERS,
                                  .last_step = 10,
                                  .generation = 1,
                                  .arrays = 3};
}

static void open_normal(struct chief *c, const char *placement, const char *optimizers)
{
    open_chief(c, placement, optimizers, kinds_find(&initializer_kinds, "truncated_normal"),
               "{\"stddev\": 0.1}");
}

static void close_chief(struct chief *c)
{
    json_decref(c->spec.json);
    arena_free(&c->arena);
}

static void receive(struct chief *c, int ps, struct setup *ret)
{
    char *text = setup_write(&c->plan, ps);
    assert_non_null(text);
    if (setup_read(text, strlen(text), &c->arena, ret)) fail_msg("%s", error_text());
    free(text);
}

/* ---- what arrives ---- */

static void check_table(const struct table_share *got, const struct slice *slice,
                        const struct table_spec *spec)
{
    assert_string_equal(got->slice.name, slice->name);
    assert_true(shape_equal(&got->slice.shape, &slice->shape));
    assert_int_equal(got->slice.axis, 0);
    assert_int_equal(got->slice.start, slice->start);
    assert_int_equal(got->slice.length, slice->length);
    assert_int_equal(got->slice.count, slice->count);
    assert_ptr_equal(got->spec.initializer, spec->initializer);
    assert_true(got->spec.key == spec->key);
    assert_int_equal(got->spec.most, spec->most);
    assert_int_equal(got->slice.part, slice->part);
    assert_int_equal(got->slice.mod, slice->mod);
    assert_int_equal(got->spec.growth != NULL, spec->growth != NULL);
    if (spec->growth) assert_memory_equal(got->spec.growth, spec->growth, sizeof *spec->growth);
    assert_memory_equal(&got->spec.penalty, &spec->penalty, sizeof spec->penalty);
}

/* The first table grows, and the plan is of that. */
static void let_grow(struct chief *c)
{
    static const struct growth growth = {3, 100000};
    struct layout *layout;
    const struct placement_spec spec = fixture_placement(cut, &c->arena);
    c->tables[0].growth = &growth;
    c->variables[0].shape.dim[0] = 1;
    assert_int_equal(layout_make(&spec, c->variables, VARIABLES, PS, &c->arena, &layout), OK);
    c->plan.layout = layout;
}

static void check_slices(struct chief *c)
{
    int tables = 0, slices = 0;
    const struct layout *layout = c->plan.layout;
    for (int ps = 0; ps < PS; ps++) {
        struct setup s;
        receive(c, ps, &s);
        int next = 0;
        for (int i = layout->slice_count; i < layout->all_count; i++) {
            const struct slice *slice = &layout->slices[i];
            if (slice->ps == ps)
                check_table(&s.tables[next++], slice, layout->variables[slice->variable].table);
        }
        assert_int_equal(s.table_count, next);
        tables += s.table_count;
        slices += s.slice_count;
    }
    assert_int_equal(tables, layout->all_count - layout->slice_count);
    assert_int_equal(slices, layout->slice_count);
}

static void every_ps_gets_its_slices_of_tables(void **state)
{
    struct chief c;
    open_normal(&c, cut, one_optimizer);
    check_slices(&c);
    let_grow(&c);
    check_slices(&c);
    close_chief(&c);
    open_normal(&c, by_turns, one_optimizer);
    check_slices(&c);
    close_chief(&c);
}

/* Whatever numbers it has: a row made by a ps is that of the whole variable. */
static void check_initializer(const struct kind *kind, const char *text)
{
    struct chief c;
    struct setup s;
    open_chief(&c, "{\"placement\": {\"pins\": [{\"match\": \"*\", \"ps\": 0}]}}", one_optimizer,
               kind, text);
    receive(&c, 0, &s);
    assert_int_equal(s.table_count, 2);
    float wanted[ROWS * WIDTH], got[ROWS * WIDTH];
    const struct table_spec *told = &c.tables[0], *read = &s.tables[0].spec;
    struct initial all = {.shape = &c.variables[0].shape, .key = key, .count = ROWS * WIDTH};
    const err e = told->initializer->fill(told->initializer_attributes, &all, wanted);
    all.key = read->key;
    assert_int_equal(read->initializer->fill(read->initializer_attributes, &all, got), e);
    if (!e) assert_memory_equal(got, wanted, sizeof got);
    close_chief(&c);
}

static void initial_values_arrive_to_the_bit(void **state)
{
    static const struct {
        const char *kind, *text;
    } numbers[] = {
        {"truncated_normal", "{\"stddev\": 0.35355339059327373, \"mean\": 1e-7}"},
        {"random_uniform", "{\"minval\": -0.1, \"maxval\": 0.3333333333333333}"},
        {"constant", "{\"value\": 0.1}"},
        {"variance_scaling",
         "{\"scale\": 0.7, \"mode\": \"fan_avg\", \"distribution\": \"uniform\"}"},
    };
    const struct kind *kind;
    for (int i = 0; (kind = initializer_kinds.at(i)); i++)
        if (strcmp(kind->object->name, "constant") != 0) check_initializer(kind, "{}");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        check_initializer(kinds_find(&initializer_kinds, numbers[i].kind), numbers[i].text);
}

static void every_table_has_its_optimizer(void **state)
{
    struct chief c;
    struct setup s;
    open_normal(&c, "{\"placement\": {\"pins\": [{\"match\": \"*\", \"ps\": 1}]}}",
                "{\"optimizers\": [{\"match\": \"wide/*\", \"type\": \"ftrl\", \"learning_rate\": "
                "0.1}, {\"match\": \"*\", "
                "\"type\": \"adagrad\", \"learning_rate\": 0.1}]}");
    receive(&c, 1, &s);
    assert_string_equal(s.tables[0].slice.name, "deep/table");
    assert_int_equal(s.tables[0].optimizer, 1);
    assert_string_equal(s.tables[1].slice.name, "wide/table");
    assert_int_equal(s.tables[1].optimizer, 0);
    close_chief(&c);
}

static void a_ps_of_tables_only_is_not_empty(void **state)
{
    struct chief c;
    struct setup s;
    open_normal(&c,
                "{\"placement\": {\"pins\": [{\"match\": \"*/table\", \"ps\": 2}, {\"match\": "
                "\"*\", \"ps\": 0}]}}",
                one_optimizer);
    receive(&c, 2, &s);
    assert_true(s.config.block_floats > 0);
    assert_int_equal(s.slice_count, 0);
    assert_int_equal(s.table_count, 2);
    receive(&c, 0, &s);
    assert_int_equal(s.table_count, 0);
    receive(&c, 1, &s);
    assert_int_equal(s.config.block_floats, 0);
    close_chief(&c);
}

/* ---- what is refused ---- */

/* The setup of ps 0 with one member of its first table changed; value NULL: taken away. */
struct change {
    const char *member, *value, *words;
};

static void refuse(struct chief *c, const struct change *change)
{
    struct setup s;
    char *text = setup_write(&c->plan, 0);
    json_t *json = json_loads(text, 0, NULL);
    json_t *table = json_array_get(json_object_get(json, "tables"), 0);
    free(text);
    assert_non_null(json_object_get(table, change->member));
    if (change->value)
        json_object_set_new(table, change->member,
                            json_loads(change->value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(table, change->member);
    text = json_dumps(json, JSON_COMPACT);
    const err e = setup_read(text, strlen(text), &c->arena, &s);
    if (!e) fail_msg("accepted: %s", text);
    assert_int_equal(e, ERR_PROTOCOL);
    if (!strstr(error_text(), change->words))
        fail_msg("\"%s\" lacks \"%s\"", error_text(), change->words);
    free(text);
    json_decref(json);
}

static void a_table_that_cannot_be_is_refused(void **state)
{
    static const struct change changes[] = {
        {"start", "101", "outside its variable"},
        {"start", "-1", "tables[0].start"},
        {"length", "102", "outside its variable"},
        {"length", "0", "outside its variable"},
        {"length", "1099511627776", "outside its variable"},
        {"count", "1", "outside its variable"},
        {"count", "1099511627776", "outside its variable"},
        {"axis", "1", "outside its variable"},
        {"axis", "6", "tables[0].axis"},
        {"shape", "[101]", "outside its variable"},
        {"shape", "[101, 4, 2]", "is no table"},
        {"shape", "[0, 8]", "at least 1"},
        {"shape", "[1099511627776, 8]", "more than 2^40"},
        {"shape", "[1, 1, 1, 1, 1, 1, 1]", "rank 7"},
        {"most", "0", "tables[0].most"},
        {"most", "-1", "tables[0].most"},
        {"most", "67108865", "tables[0].most"},
        {"most", "102", "is no table"},
        {"key", "7", "tables[0].key"},
        {"key", NULL, "key"},
        {"name", NULL, "name"},
        {"most", NULL, "most"},
        {"initializer", NULL, "initializer"},
        {"initializer", "null", "initializer"},
        {"initializer", "{\"type\": \"none\"}", "initializer"},
        {"initializer", "{\"type\": \"truncated_normal\", \"stddev\": \"a\"}", "stddev"},
    };
    struct chief c;
    open_normal(&c, cut, one_optimizer);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) refuse(&c, &changes[i]);
    close_chief(&c);
}

static void a_part_by_turns_that_cannot_be_is_refused(void **state)
{
    static const struct change changes[] = {
        {"mod", "-1", "tables[0].mod"}, {"mod", "65537", "tables[0].mod"},
        {"mod", "102", "is no table"},  {"mod", "2", "is no table"},
        {"part", "3", "is no table"},   {"part", "1", "is no table"},
        {"start", "1", "is no table"},  {"mod", NULL, "mod"},
    };
    struct chief c;
    open_normal(&c, by_turns, one_optimizer);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) refuse(&c, &changes[i]);
    close_chief(&c);
}

static void a_growing_table_that_cannot_be_is_refused(void **state)
{
    static const struct change changes[] = {
        {"start", "9223372036854775807", "outside its variable"},
        {"start", "6148914691236517206", "outside its variable"},
        {"length", "9223372036854775807", "outside its variable"},
        {"length", "1000000", "is no table"},
        {"length", "0", "outside its variable"},
        {"count", "9", "outside its variable"},
        {"shape", "[2, 8]", "outside its variable"},
        {"part", "-1", "tables[0].part"},
        {"part", "65536", "tables[0].part"},
        {"growth", "{\"admit_after\": 0, \"evict_after_steps\": 1}", "admit_after"},
        {"growth", "{\"admit_after\": 1, \"evict_after_steps\": -1}", "evict_after_steps"},
        {"growth", NULL, "outside its variable"},
    };
    struct chief c;
    open_normal(&c, cut, one_optimizer);
    let_grow(&c);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) refuse(&c, &changes[i]);
    close_chief(&c);
}

static void a_table_that_no_optimizer_matches_is_refused(void **state)
{
    static const struct change change = {"name", "\"other/table\"", "has no optimizer"};
    struct chief c;
    open_normal(
        &c, cut,
        "{\"optimizers\": [{\"match\": \"deep/*\", \"type\": \"ftrl\", \"learning_rate\": 0.1}, "
        "{\"match\": \"wide/*\", \"type\": \"adagrad\", \"learning_rate\": 0.1}]}");
    refuse(&c, &change);
    close_chief(&c);
}

/* Of tables alone: what is dense the chief reads. */
static void where_rows_stand_in_another_run_goes_to_the_ps(void **state)
{
    static const struct row_run runs[] = {{0, 3, 2}, {5, 0, 1}};
    static const struct row_map maps[] = {
        {"deep/kernel", 9, runs, 1}, {"wide/table", 4, runs, 2}, {"deep/table", 7, runs, 1}};
    static const struct warm_start warm = {.rows = maps, .row_count = 3};
    struct chief c;
    struct setup s;
    open_normal(&c, cut, one_optimizer);
    c.plan.warm_from = "/old/model.ckpt-3";
    c.plan.warm = &warm;
    receive(&c, 0, &s);
    assert_int_equal(s.warm.how.row_count, 2);
    assert_string_equal(s.warm.how.rows[0].variable, "wide/table");
    assert_int_equal(s.warm.how.rows[0].rows, 4);
    assert_int_equal(s.warm.how.rows[0].run_count, 2);
    assert_memory_equal(s.warm.how.rows[0].runs, runs, sizeof runs);
    assert_string_equal(s.warm.how.rows[1].variable, "deep/table");
    assert_int_equal(s.warm.how.rows[1].run_count, 1);
    close_chief(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ps_gets_its_slices_of_tables),
        cmocka_unit_test(initial_values_arrive_to_the_bit),
        cmocka_unit_test(every_table_has_its_optimizer),
        cmocka_unit_test(a_ps_of_tables_only_is_not_empty),
        cmocka_unit_test(a_table_that_cannot_be_is_refused),
        cmocka_unit_test(a_part_by_turns_that_cannot_be_is_refused),
        cmocka_unit_test(a_growing_table_that_cannot_be_is_refused),
        cmocka_unit_test(a_table_that_no_optimizer_matches_is_refused),
        cmocka_unit_test(where_rows_stand_in_another_run_goes_to_the_ps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
