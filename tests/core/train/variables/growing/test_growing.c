/* test_growing.c - tables that grow: the same rows however they are cut, saved and restored. */
#include "tests/core/train/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/variables/aside.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/keys.h"

enum { WIDTH = 3, IDS = 300, STEPS = 60, KEY = 77, ARRAYS = 2, BATCH = 40 };

struct world {
    struct arena arena;
    struct device device;
    struct optimizer_spec spec;
    float *values;
    struct store dense;
    struct growth growth;
};

static void open_world(struct world *world, const char *optimizer, int64_t admit, int64_t evict)
{
    *world = (struct world){.device = fixture_device(), .growth = {admit, evict}};
    world->spec = fixture_optimizer(optimizer, &world->arena);
    world->values = fixture_block(&world->device, 16);
    assert_int_equal(fixture_store(&world->spec, &world->device, 16, world->values, &world->dense),
                     OK);
}

static const char *const adagrad =
    "{\"optimizer\": {\"type\": \"adagrad\", \"learning_rate\": 0.1}}";

static void close_world(struct world *world)
{
    store_close(&world->dense);
    fixture_release(&world->device, world->values);
    arena_free(&world->arena);
    device_close(&world->device);
}

/* Part of so many, as a layout cuts it */
static struct table *open_part(struct world *world, int part, int parts)
{
    const int64_t each = KEYS / parts, start = part * each;
    const struct table_description is = {
        .name = "words",
        .shape = {2, {1, WIDTH}},
        .start = start,
        .length = part == parts - 1 ? KEYS - start : each,
        .initializer = &fixture_draws,
        .key = KEY,
        .growth = &world->growth,
    };
    struct table *table;
    assert_int_equal(table_open(&is, &world->dense.updaters[0], &world->device, &table), OK);
    return table;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Keys of the ids that are drawn at a step, more often the low ones */
static int64_t draw_keys(int64_t step, int64_t ret[BATCH])
{
    int64_t count = 0;
    for (uint64_t i = 0; i < BATCH; i++) {
        const float u = random_uniform((uint64_t)step + 1, i);
        ret[i] = key_of_id((int64_t)(u * u * IDS));
    }
    qsort(ret, BATCH, sizeof *ret, by_number);
    for (int i = 0; i < BATCH; i++)
        if (!count || ret[count - 1] != ret[i]) ret[count++] = ret[i];
    return count;
}

static struct juncture juncture_of(const struct world *world, int64_t step)
{
    return (struct juncture){0.1f, world->dense.powers, step};
}

/* Of the keys those that the table has */
static void apply(const struct world *world, struct table *const *tables, int parts, int64_t step,
                  const int64_t *keys, int64_t count)
{
    float gradients[BATCH * WIDTH];
    const struct juncture now = juncture_of(world, step);
    for (int part = 0; part < parts; part++) {
        int64_t first = 0, n = 0;
        while (first < count && !table_has(tables[part], keys + first, 1)) first++;
        while (first + n < count && table_has(tables[part], keys + first + n, 1)) n++;
        for (int64_t i = 0; i < n * WIDTH; i++)
            gradients[i] = random_normal((uint64_t)keys[first + i / WIDTH],
                                         (uint64_t)(step * WIDTH + i % WIDTH));
        assert_int_equal(table_apply(tables[part], keys + first, n, gradients, NULL, &now), OK);
    }
}

static void run(const struct world *world, struct table *const *tables, int parts, int64_t first,
                int64_t end)
{
    int64_t keys[BATCH];
    for (int64_t step = first; step < end; step++) {
        const int64_t count = draw_keys(step, keys);
        apply(world, tables, parts, step, keys, count);
    }
}

/* What tables are: of every id what is read, and of every key what is saved */
struct picture {
    float read[IDS * WIDTH];
    struct key_state keys[IDS];
    int64_t key_count, row_count;
    float rows[ARRAYS][IDS * WIDTH];
};

static void see_saved(struct table *table, struct picture *p)
{
    struct growing *g = table_growing(table);
    struct saved_keys piece = {.count = 1};
    int64_t from = 0, keys, rows;
    growing_saved(g, &keys, &rows);
    while (piece.count) {
        piece.keys = p->keys + p->key_count;
        for (int i = 0; i < ARRAYS; i++) piece.rows[i] = p->rows[i] + p->row_count * WIDTH;
        assert_int_equal(growing_save_read(g, &from, 7, &piece), OK);
        p->key_count += piece.count;
        p->row_count += piece.row_count;
        keys -= piece.count;
        rows -= piece.row_count;
    }
    assert_int_equal(keys, 0);
    assert_int_equal(rows, 0);
}

static void see(struct table *const *tables, int parts, struct picture *ret)
{
    memset(ret, 0, sizeof *ret);
    for (int64_t id = 0; id < IDS; id++) {
        const int64_t key = key_of_id(id);
        for (int part = 0; part < parts; part++)
            if (table_has(tables[part], &key, 1))
                table_gather(tables[part], &key, 1, ret->read + id * WIDTH);
    }
    struct aside_room room;
    aside_room_open(&room);
    for (int part = 0; part < parts; part++) {
        aside_room_begin(&room);
        table_save_begin(tables[part], &room);
        see_saved(tables[part], ret);
        table_save_end(tables[part]);
    }
    aside_room_close(&room);
}

static void assert_same(const struct picture *a, const struct picture *b)
{
    assert_int_equal(a->key_count, b->key_count);
    assert_int_equal(a->row_count, b->row_count);
    assert_memory_equal(a, b, sizeof *a);
}

static void open_parts(struct world *world, int parts, struct table **ret)
{
    for (int i = 0; i < parts; i++) ret[i] = open_part(world, i, parts);
}

static void close_parts(struct table **tables, int parts)
{
    for (int i = 0; i < parts; i++) table_close(tables[i]);
}

static void number_of_parts_changes_no_bit(void **state)
{
    static struct picture expected, found;
    struct world world;
    struct table *tables[5];
    open_world(&world, adagrad, 3, 20);
    for (int parts = 1; parts <= 5; parts++) {
        open_parts(&world, parts, tables);
        run(&world, tables, parts, 0, STEPS);
        see(tables, parts, &found);
        if (parts == 1) expected = found;
        assert_same(&found, &expected);
        assert_true(found.row_count > 20 && found.key_count > found.row_count);
        close_parts(tables, parts);
    }
    close_world(&world);
    (void)state;
}

/* Of a number of steps, behind which all keys had been given up */
static int64_t with_a_gap(int64_t step)
{
    return step < STEPS / 2 ? step : step + 1000;
}

/* As workers do, which get rows some steps before they push gradients of them; ahead 0: not. */
static void run_ahead(const struct world *world, struct table *table, int64_t ahead)
{
    int64_t keys[BATCH];
    float rows[BATCH * WIDTH];
    for (int64_t step = 0; step < STEPS; step++) {
        if (ahead) table_gather(table, keys, draw_keys(with_a_gap(step + ahead), keys), rows);
        const int64_t count = draw_keys(with_a_gap(step), keys);
        apply(world, &table, 1, with_a_gap(step), keys, count);
    }
}

static void gathers_before_an_update_change_no_bit(void **state)
{
    static struct picture expected, found;
    struct world world;
    struct table *table;
    open_world(&world, adagrad, 2, 300);
    for (int64_t ahead = 0; ahead <= 4; ahead++) {
        open_parts(&world, 1, &table);
        run_ahead(&world, table, ahead);
        see(&table, 1, &found);
        if (ahead == 0) expected = found;
        assert_same(&found, &expected);
        close_parts(&table, 1);
    }
    close_world(&world);
    (void)state;
}

static void read_one(struct table *table, int64_t key, float ret[WIDTH])
{
    table_gather(table, &key, 1, ret);
}

static void read_made(struct table *table, int64_t key, float ret[WIDTH])
{
    table_gather_made(table, &key, 1, ret);
}

static void a_row_is_made_when_it_is_seen_often_enough(void **state)
{
    struct world world;
    const int64_t key = key_of_id(INT64_C(1) << 60);
    float before[WIDTH], initial[WIDTH], made[WIDTH], zeros[WIDTH] = {0};
    struct initial of = {.key = random_u64(KEY, (uint64_t)key), .count = WIDTH};
    assert_int_equal(fixture_draws.fill(NULL, &of, initial), OK);
    open_world(&world, adagrad, 3, 0);
    struct table *table = open_part(&world, 0, 1);
    for (int64_t step = 0; step < 2; step++) {
        read_one(table, key, before);
        assert_memory_equal(before, zeros, sizeof zeros);
        apply(&world, &table, 1, step, &key, 1);
        assert_int_equal(table_made(table), 0);
    }
    read_made(table, key, before);
    assert_memory_equal(before, zeros, sizeof zeros);
    read_one(table, key, before);
    assert_memory_equal(before, initial, sizeof initial);
    assert_int_equal(table_made(table), 0);
    apply(&world, &table, 1, 2, &key, 1);
    assert_int_equal(table_made(table), 1);
    read_one(table, key, before);
    read_made(table, key, made);
    assert_memory_equal(before, made, sizeof before);
    for (int i = 0; i < WIDTH; i++) assert_true(before[i] != initial[i]);
    table_close(table);
    close_world(&world);
    (void)state;
}

/* A gradient that was computed from zeros, as nobody knew that this step makes the row, is dropped.
 */
static void occurrences_count_as_often_as_there_are_some(void **state)
{
    static const int64_t times[] = {3, 1, 1, 7, INT64_MAX};
    static const bool makes[] = {false, false, true, false, false};
    const int64_t key = key_of_id(17), other = key_of_id(18);
    const float gradient[WIDTH] = {1, 2, 3};
    float initial[WIDTH], found[WIDTH], zeros[WIDTH] = {0};
    struct world world;
    struct initial of = {.key = random_u64(KEY, (uint64_t)key), .count = WIDTH};
    assert_int_equal(fixture_draws.fill(NULL, &of, initial), OK);
    open_world(&world, adagrad, 5, 0);
    world.growth.admit_by = SIGHTS_OCCURRENCES;
    struct table *table = open_part(&world, 0, 1);
    for (int step = 0; step < 5; step++) {
        const struct juncture now = juncture_of(&world, step);
        read_one(table, key, found);
        if (step < 2) assert_memory_equal(found, zeros, sizeof zeros);
        if (step == 2) assert_memory_equal(found, initial, sizeof initial);
        assert_int_equal(table_apply(table, &key, 1, gradient, &times[step], &now), OK);
        if (makes[step]) assert_int_equal(table_made(table), 1);
        read_made(table, key, found);
        for (int i = 0; i < WIDTH; i++)
            assert_true(step < 2 ? found[i] == 0 : gradient[i] == 0 || found[i] != initial[i]);
    }
    of.key = random_u64(KEY, (uint64_t)other);
    assert_int_equal(fixture_draws.fill(NULL, &of, initial), OK);
    const struct juncture now = juncture_of(&world, 5);
    assert_int_equal(table_apply(table, &other, 1, gradient, &times[3], &now), OK);
    assert_int_equal(table_made(table), 2); /* at once, and nobody had seen its initial value */
    read_made(table, other, found);
    assert_memory_equal(found, initial, sizeof initial);
    table_close(table);
    close_world(&world);
    (void)state;
}

static void what_is_unused_is_given_up_and_its_memory_used_again(void **state)
{
    struct world world;
    int64_t keys[10], others[10];
    float before[WIDTH], first[WIDTH], after[WIDTH];
    for (int i = 0; i < 10; i++) keys[i] = key_of_id(i), others[i] = key_of_id(100 + i);
    qsort(keys, 10, sizeof *keys, by_number);
    qsort(others, 10, sizeof *others, by_number);
    open_world(&world, adagrad, 1, 5);
    struct table *table = open_part(&world, 0, 1);
    read_one(table, keys[0], before);
    read_one(table, keys[5], first);
    apply(&world, &table, 1, 0, keys, 10);
    for (int64_t step = 1; step <= 5; step++) apply(&world, &table, 1, step, keys + 5, 5);
    assert_int_equal(table_made(table), 10);
    apply(&world, &table, 1, 6, others, 5);
    assert_int_equal(table_made(table), 10); /* five went, five came */
    apply(&world, &table, 1, 10, keys, 0);
    read_one(table, keys[5], after); /* as the next step will find it */
    assert_memory_equal(after, first, sizeof first);
    read_one(table, keys[0], after);
    assert_memory_equal(after, before, sizeof before);
    apply(&world, &table, 1, 1000, keys, 0); /* long after */
    assert_int_equal(table_made(table), 0);
    apply(&world, &table, 1, 1001, keys, 10);
    assert_int_equal(table_made(table), 10);
    table_close(table);
    close_world(&world);
    (void)state;
}

static void a_save_has_what_was_there_when_it_began(void **state)
{
    static struct picture expected, found;
    struct aside_room room;
    struct world world;
    open_world(&world, adagrad, 2, 20);
    struct table *table = open_part(&world, 0, 1);
    run(&world, &table, 1, 0, STEPS / 2);
    see(&table, 1, &expected);
    aside_room_open(&room);
    aside_room_begin(&room);
    table_save_begin(table, &room);
    run(&world, &table, 1, STEPS / 2, STEPS * 4);
    see_saved(table, &found);
    memcpy(found.read, expected.read, sizeof found.read);
    table_save_end(table);
    aside_room_close(&room);
    assert_same(&found, &expected);
    table_close(table);
    close_world(&world);
    (void)state;
}

static void restore(struct table *const *tables, int parts, const struct picture *from,
                    int64_t step)
{
    for (int part = 0; part < parts; part++) {
        struct growing *g = table_growing(tables[part]);
        int64_t row = 0, number;
        assert_int_equal(growing_restore_begin(g, step, from->key_count, from->key_count, 0), OK);
        for (int64_t i = 0; i < from->key_count; i++) {
            const bool is_here = table_has(tables[part], &from->keys[i].key, 1);
            if (is_here) assert_int_equal(growing_restore(g, &from->keys[i], &number), OK);
            for (int k = 0; is_here && from->keys[i].sights == 0 && k < ARRAYS; k++)
                memcpy(growing_place(g, k, number), from->rows[k] + row * WIDTH,
                       WIDTH * sizeof(float));
            row += from->keys[i].sights == 0;
        }
        growing_restore_end(g);
    }
}

static void go_on(struct world *world, int64_t from, int parts)
{
    static struct picture half, expected, found;
    struct table *tables[3];
    open_parts(world, 2, tables);
    run(world, tables, 2, 0, from);
    see(tables, 2, &half);
    run(world, tables, 2, from, STEPS);
    see(tables, 2, &expected);
    close_parts(tables, 2);
    open_parts(world, parts, tables);
    restore(tables, parts, &half, from);
    run(world, tables, parts, from, STEPS);
    see(tables, parts, &found);
    assert_same(&found, &expected);
    close_parts(tables, parts);
}

static void what_was_restored_goes_on_as_if_nothing_had_been(void **state)
{
    struct world world;
    open_world(&world, adagrad, 2, 4);
    for (int64_t from = 0; from <= STEPS; from++) go_on(&world, from, 1 + (int)from % 3);
    close_world(&world);
    open_world(&world, adagrad, 2, 350); /* periods of several steps */
    for (int64_t from = 0; from <= STEPS; from++) go_on(&world, from, 1 + (int)from % 3);
    close_world(&world);
    (void)state;
}

enum { TOUCHED = 6 << 20 }; /* rows: enough that their memory is touched ahead */

/* Whatever of it was touched ahead, and wherever restoring stops */
static void rows_that_were_touched_ahead_are_as_others(void **state)
{
    struct world world;
    static float values[IDS * WIDTH];
    int64_t number;
    open_world(&world, adagrad, 1, 0);
    for (int ends = 0; ends < 2; ends++) {
        struct table *table = open_part(&world, 0, 1);
        struct growing *g = table_growing(table);
        assert_int_equal(growing_restore_begin(g, 1, IDS, TOUCHED, 1 << 1), OK);
        for (int64_t i = 0; i < IDS; i++) {
            const float row[WIDTH] = {(float)i, 1, 2};
            assert_int_equal(growing_restore(g, &(struct key_state){.key = i}, &number), OK);
            assert_int_equal(number, i);
            memcpy(growing_place(g, 0, number), row, WIDTH * sizeof *row);
        }
        if (ends) growing_restore_end(g);
        for (int64_t i = 0; ends && i < IDS; i++) {
            table_gather(table, &i, 1, values);
            assert_true(values[0] == (float)i && values[1] == 1 && values[2] == 2);
        }
        assert_int_equal(growing_rows(g), IDS);
        table_close(table);
    }
    close_world(&world);
    (void)state;
}

static void what_sweeps_cannot_update_it(void **state)
{
    struct world world;
    struct table *table;
    open_world(&world, "{\"optimizer\": \"adam\"}", 1, 0);
    const struct table_description is = {.name = "words",
                                         .shape = {2, {1, WIDTH}},
                                         .length = KEYS,
                                         .initializer = &fixture_draws,
                                         .growth = &world.growth};
    assert_int_equal(table_open(&is, &world.dense.updaters[0], &world.device, &table), ERR_INPUT);
    assert_string_equal(error_text(),
                        "table words: it grows, and adam changes all rows at each step");
    close_world(&world);
    (void)state;
}

static void a_gradient_that_is_not_finite_names_the_id(void **state)
{
    struct world world;
    const int64_t key = key_of_id(123456789);
    const float gradient[WIDTH] = {1, NAN, 1};
    open_world(&world, adagrad, 1, 0);
    struct table *table = open_part(&world, 0, 1);
    const struct juncture now = juncture_of(&world, 0);
    assert_int_equal(table_apply(table, &key, 1, gradient, NULL, &now), ERR_NUMBER);
    assert_non_null(strstr(error_text(), "row 123456789"));
    assert_int_equal(table_made(table), 0);
    table_close(table);
    close_world(&world);
    (void)state;
}

static void read_all(struct table *table, float ret[IDS * WIDTH])
{
    static int64_t keys[IDS];
    static float rows[IDS * WIDTH];
    for (int64_t id = 0; id < IDS; id++) keys[id] = key_of_id(id);
    qsort(keys, IDS, sizeof *keys, by_number);
    table_gather_made(table, keys, IDS, rows);
    for (int64_t i = 0; i < IDS; i++)
        memcpy(ret + id_of_key(keys[i]) * WIDTH, rows + i * WIDTH, WIDTH * sizeof(float));
}

/* Rows that change, come and go: who lays what is told over what was has what is. A step that
 * begins no period is next, as one that does gives rows up. */
static void what_changes_is_told_once(void **state)
{
    enum { EVICT = 200, STEPS_EACH = 50, TIMES = 20 };
    static float mirror[IDS * WIDTH], now[IDS * WIDTH];
    struct world world;
    int64_t told = 0, went = 0;
    open_world(&world, adagrad, 2, EVICT);
    struct table *table = open_part(&world, 0, 1);
    memset(mirror, 0, sizeof mirror);
    table_note_changes(table, 1 << 30);
    for (int64_t i = 0; i < TIMES; i++) {
        struct table_changes changes;
        const int64_t first = i * STEPS_EACH + (i > TIMES / 2) * 2 * EVICT;
        run(&world, &table, 1, first, first + STEPS_EACH - 1);
        assert_int_equal(table_take_changes(table, &changes), OK);
        for (int64_t k = 0; k < changes.count; k++) {
            static const float none[WIDTH];
            const float *row = changes.rows + k * WIDTH;
            went += memcmp(row, none, sizeof none) == 0;
            memcpy(mirror + changes.ids[k] * WIDTH, row, sizeof none);
        }
        told += changes.count;
        table_changes_free(&changes);
        read_all(table, now);
        assert_memory_equal(mirror, now, sizeof now);
    }
    assert_true(told > 0 && went > 0);
    table_close(table);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_is_told_once),
        cmocka_unit_test(number_of_parts_changes_no_bit),
        cmocka_unit_test(gathers_before_an_update_change_no_bit),
        cmocka_unit_test(a_row_is_made_when_it_is_seen_often_enough),
        cmocka_unit_test(occurrences_count_as_often_as_there_are_some),
        cmocka_unit_test(what_is_unused_is_given_up_and_its_memory_used_again),
        cmocka_unit_test(a_save_has_what_was_there_when_it_began),
        cmocka_unit_test(what_was_restored_goes_on_as_if_nothing_had_been),
        cmocka_unit_test(rows_that_were_touched_ahead_are_as_others),
        cmocka_unit_test(what_sweeps_cannot_update_it),
        cmocka_unit_test(a_gradient_that_is_not_finite_names_the_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
