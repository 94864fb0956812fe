/* test_table.c - slices of a table have the bits of a dense variable, whatever is made when. */
#include "tests/core/train/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/random.h"
#include "core/train/variables/growing/keys.h"
#include "core/train/variables/table.h"
#include "kernels/kernels.h"

enum { ROWS = 208, WIDTH = 5, FLOATS = ROWS * WIDTH, WORKERS = 3, STEPS = 4, KEY = 77 };

static const char *const optimizers[] = {
    "{\"optimizer\": {\"type\": \"gradient_descent\", \"learning_rate\": 0.1}}",
    "{\"optimizer\": {\"type\": \"momentum\", \"learning_rate\": 0.1, \"momentum\": 0.9}}",
    "{\"optimizer\": {\"type\": \"lazy_momentum\", \"learning_rate\": 0.1, \"momentum\": 0.9}}",
    "{\"optimizer\": {\"type\": \"adagrad\", \"learning_rate\": 0.1}}",
    "{\"optimizer\": {\"type\": \"adadelta\", \"learning_rate\": 0.1}}",
    "{\"optimizer\": \"adam\"}",
    "{\"optimizer\": \"adamw\"}",
    "{\"optimizer\": \"lazy_adam\"}",
    "{\"optimizer\": {\"type\": \"rmsprop\", \"learning_rate\": 0.01, \"momentum\": 0.5}}",
    "{\"optimizer\": {\"type\": \"rmsprop\", \"learning_rate\": 0.01, \"centered\": true}}",
    "{\"optimizer\": {\"type\": \"ftrl\", \"learning_rate\": 0.1, \"l1\": 0.01}}",
    "{\"optimizer\": {\"type\": \"adagrad_da\", \"learning_rate\": 0.1, \"l1\": 0.01}}",
    "{\"optimizer\": {\"type\": \"proximal_adagrad\", \"learning_rate\": 0.1, \"l1\": 0.01}}",
    "{\"optimizer\": {\"type\": \"proximal_gradient_descent\", \"learning_rate\": 0.1}}",
};
enum { OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };
static const char *const adagrad = "{\"optimizer\": {\"type\": \"adagrad\", \"learning_rate\": 1}}";

/* A dense variable, whose updater the tables beside it have too. */
struct world {
    struct arena arena;
    struct device device;
    struct optimizer_spec spec;
    float *values;
    struct store dense;
};

static void open_world(struct world *world, const char *optimizer)
{
    *world = (struct world){.device = fixture_device()};
    world->spec = fixture_optimizer(optimizer, &world->arena);
    world->values = fixture_block(&world->device, FLOATS);
    assert_int_equal(
        fixture_store(&world->spec, &world->device, FLOATS, world->values, &world->dense), OK);
    for (int i = 0; i < FLOATS; i++) world->values[i] = random_normal(KEY, (uint64_t)i);
}

static void close_world(struct world *world)
{
    store_close(&world->dense);
    fixture_release(&world->device, world->values);
    arena_free(&world->arena);
    device_close(&world->device);
}

static struct table *open_table(struct world *world, struct shape shape, int64_t start,
                                int64_t length)
{
    const struct table_description is = {"words", shape, start, length, &fixture_draws, NULL, KEY};
    struct table *table;
    assert_int_equal(table_open(&is, &world->dense.updaters[0], &world->device, &table), OK);
    return table;
}

static struct table *open_slice(struct world *world, int64_t start, int64_t length)
{
    return open_table(world, (struct shape){2, {ROWS, WIDTH}}, start, length);
}

static struct juncture juncture_of(const struct world *world, int step)
{
    const struct updater *by = &world->dense.updaters[0];
    return (struct juncture){(float)schedule_rate(by->learning_rate, step), world->dense.powers,
                             step};
}

/* ---- what workers push at a step ---- */

static bool is_named(int step, int worker, int64_t row)
{
    return random_u64((uint64_t)(step * WORKERS + worker), (uint64_t)row) % 5 == 0;
}

struct pushed {
    int64_t rows[ROWS], count;
    float gradients[FLOATS];
};

static void push(int step, int worker, int64_t begin, int64_t end, struct pushed *ret)
{
    const uint64_t key = 1000 + (uint64_t)(step * WORKERS + worker);
    ret->count = 0;
    for (int64_t row = begin; row < end; row++) {
        if (!is_named(step, worker, row)) continue;
        for (int64_t i = 0; i < WIDTH; i++)
            ret->gradients[ret->count * WIDTH + i] =
                random_normal(key, (uint64_t)(row * WIDTH + i));
        ret->rows[ret->count++] = row;
    }
}

static void step_table(const struct world *world, struct table *table, int64_t begin, int64_t end,
                       int step)
{
    static struct pushed pushed[WORKERS];
    static int64_t rows[WORKERS * ROWS];
    static float sums[WORKERS * FLOATS];
    struct row_gradients of[WORKERS];
    for (int w = 0; w < WORKERS; w++) {
        push(step, w, begin, end, &pushed[w]);
        of[w] = (struct row_gradients){pushed[w].rows, pushed[w].gradients, pushed[w].count};
    }
    const int64_t count = table_sum(of, WORKERS, WIDTH, 1.0f / WORKERS, rows, sums);
    const struct juncture now = juncture_of(world, step);
    assert_true(table_has(table, rows, count));
    assert_int_equal(table_apply(table, rows, count, sums, NULL, &now), OK);
}

/* The same of all rows at once; without a sweep, those that nobody names stay. */
static void step_dense(struct world *world, int step)
{
    static float gradients[WORKERS][FLOATS], before[1 + SLOTS_MAX][FLOATS];
    static struct pushed pushed;
    const void *at[WORKERS];
    bool is_touched[ROWS] = {false};
    memset(gradients, 0, sizeof gradients);
    for (int w = 0; w < WORKERS; w++) {
        push(step, w, 0, ROWS, &pushed);
        at[w] = gradients[w];
        for (int64_t i = 0; i < pushed.count; i++) {
            is_touched[pushed.rows[i]] = true;
            memcpy(gradients[w] + pushed.rows[i] * WIDTH, pushed.gradients + i * WIDTH,
                   WIDTH * sizeof(float));
        }
    }
    for (int k = 0; k <= world->dense.slot_count; k++)
        memcpy(before[k], store_array(&world->dense, k), sizeof before[k]);
    assert_int_equal(store_apply(&world->dense, at, WORKERS, 1.0f / WORKERS, step, NULL), OK);
    for (int64_t row = 0; row < ROWS && !world->dense.updaters[0].optimizer->sweeps; row++)
        for (int k = 0; k <= world->dense.slot_count && !is_touched[row]; k++)
            memcpy(store_array(&world->dense, k) + row * WIDTH, before[k] + row * WIDTH,
                   WIDTH * sizeof(float));
}

static void expect_dense(const struct world *world, const struct table *table, int64_t begin,
                         int64_t end)
{
    float got[FLOATS];
    for (int k = 0; k <= world->dense.slot_count; k++) {
        table_read(table, k, begin, end - begin, got);
        assert_memory_equal(got, store_array(&world->dense, k) + begin * WIDTH,
                            (size_t)((end - begin) * WIDTH) * sizeof(float));
    }
}

/* ---- */

static const int64_t cuts[][5] = {
    {0, ROWS, ROWS, ROWS, ROWS}, {0, 1, 103, ROWS, ROWS}, {0, 64, 64, 128, ROWS}};

static void any_cut_has_the_bits_of_a_dense_variable(void **state)
{
    for (int i = 0; i < OPTIMIZERS * 3; i++) {
        const int64_t *cut = cuts[i % 3];
        struct world world;
        struct table *tables[4];
        open_world(&world, optimizers[i / 3]);
        for (int k = 0; k < 4; k++) tables[k] = open_slice(&world, cut[k], cut[k + 1] - cut[k]);
        for (int step = 0; step < STEPS; step++) {
            for (int k = 0; k < 4; k++) step_table(&world, tables[k], cut[k], cut[k + 1], step);
            step_dense(&world, step);
            for (int k = 0; k < 4; k++) expect_dense(&world, tables[k], cut[k], cut[k + 1]);
        }
        for (int k = 0; k < 4; k++) table_close(tables[k]);
        close_world(&world);
    }
}

static void a_row_is_made_when_it_is_touched_and_that_shows_nowhere(void **state)
{
    static const int64_t some[] = {3, 4, 64, 100, ROWS - 1};
    struct world world;
    float rows[5 * WIDTH];
    open_world(&world, adagrad);
    struct table *table = open_slice(&world, 2, ROWS - 2);
    expect_dense(&world, table, 2, ROWS);
    assert_int_equal(table_made(table), 0);
    for (int again = 0; again < 2; again++) {
        table_gather(table, some, 5, rows);
        for (int i = 0; i < 5; i++)
            assert_memory_equal(rows + i * WIDTH, world.values + some[i] * WIDTH,
                                WIDTH * sizeof(float));
        assert_int_equal(table_made(table), 5);
        assert_int_equal(table_bytes(table), 5 * WIDTH * 2 * sizeof(float));
        expect_dense(&world, table, 2, ROWS);
    }
    table_close(table);
    close_world(&world);
}

/* Part 1 of 3: rows 70 .. 138 are ids 1, 4, 7, ... */
static void initial_values_are_those_of_ids_that_go_by_turns(void **state)
{
    enum { START = 70, LENGTH = 69 };
    struct world world;
    struct table *table;
    float rows[2 * WIDTH], all[LENGTH * WIDTH];
    open_world(&world, adagrad);
    const struct table_description is = {.name = "words",
                                         .shape = {2, {ROWS, WIDTH}},
                                         .start = START,
                                         .length = LENGTH,
                                         .initializer = &fixture_draws,
                                         .key = KEY,
                                         .mod = 3};
    assert_int_equal(table_open(&is, &world.dense.updaters[0], &world.device, &table), OK);
    table_gather(table, (const int64_t[]){START + 2, START + LENGTH - 1}, 2, rows);
    assert_memory_equal(rows, world.values + 7 * WIDTH, WIDTH * sizeof(float));
    assert_memory_equal(rows + WIDTH, world.values + 205 * WIDTH, WIDTH * sizeof(float));
    table_read(table, 0, START, LENGTH, all);
    for (int i = 0; i < LENGTH; i++) {
        assert_int_equal(table_id(table, START + i), 3 * i + 1);
        assert_memory_equal(all + i * WIDTH, world.values + (3 * i + 1) * WIDTH,
                            WIDTH * sizeof(float));
    }
    table_close(table);
    close_world(&world);
}

/* Who had the slice, and lays what is told over it, has it again. */
static void expect_told(struct table *table, int64_t begin, int64_t end, float *mirror)
{
    struct table_changes changes;
    float now[FLOATS];
    assert_int_equal(table_take_changes(table, &changes), OK);
    for (int64_t i = 0; i < changes.count; i++)
        memcpy(mirror + (changes.ids[i] - begin) * WIDTH, changes.rows + i * WIDTH,
               WIDTH * sizeof(float));
    table_read(table, 0, begin, end - begin, now);
    assert_memory_equal(mirror, now, (size_t)((end - begin) * WIDTH) * sizeof(float));
    table_changes_free(&changes);
}

static void what_changes_is_told_once(void **state)
{
    enum { BEGIN = 3, END = ROWS - 5, ROW_BYTES = WIDTH * sizeof(float) + sizeof(int64_t) };
    for (int i = 0; i < OPTIMIZERS; i++) {
        struct world world;
        struct table_changes changes;
        float mirror[FLOATS];
        open_world(&world, optimizers[i]);
        struct table *table = open_slice(&world, BEGIN, END - BEGIN);
        assert_int_equal(table_take_changes(table, &changes), ERR_INPUT); /* nobody has asked */
        step_table(&world, table, BEGIN, END, 0);
        table_read(table, 0, BEGIN, END - BEGIN, mirror);
        table_note_changes(table, ROWS * ROW_BYTES);
        expect_told(table, BEGIN, END, mirror);
        for (int step = 1; step < STEPS; step++) {
            for (int more = 0; more < step; more++) step_table(&world, table, BEGIN, END, step);
            expect_told(table, BEGIN, END, mirror);
        }
        assert_int_equal(table_take_changes(table, &changes), OK);
        assert_int_equal(changes.count, 0);
        table_changes_free(&changes);
        table_note_changes(table, 7 * ROW_BYTES);
        step_table(&world, table, BEGIN, END, 1);
        assert_int_equal(table_take_changes(table, &changes), ERR_INPUT);
        assert_non_null(strstr(error_text(), "more rows have changed"));
        table_close(table);
        close_world(&world);
    }
}

static void rows_that_are_not_here_are_found(void **state)
{
    static const struct {
        int64_t rows[3];
        int count;
        bool has;
    } cases[] = {{{10, 11, 19}, 3, true},  {{0}, 0, true},
                 {{9, 10, 11}, 3, false},  {{10, 11, 20}, 3, false},
                 {{12, 12, 13}, 3, false}, {{13, 12, 14}, 3, false},
                 {{-1}, 1, false},         {{INT64_MAX}, 1, false},
                 {{INT64_MIN}, 1, false},  {{12, INT64_MAX, INT64_MIN}, 3, false}};
    struct world world;
    open_world(&world, adagrad);
    struct table *table = open_slice(&world, 10, 10), *empty = open_slice(&world, ROWS, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(table_has(table, cases[i].rows, cases[i].count), cases[i].has);
    assert_true(table_has(empty, NULL, 0));
    assert_false(table_has(empty, (const int64_t[]){ROWS}, 1));
    table_close(table);
    table_close(empty);
    close_world(&world);
}

static void a_gradient_that_is_not_finite_leaves_no_trace(void **state)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    static const int64_t rows[] = {1, 70, 71};
    for (int i = 0; i < 3; i++) {
        struct world world;
        float gradients[3 * WIDTH] = {1, 1, 1};
        open_world(&world, "{\"optimizer\": \"adam\"}");
        struct table *table = open_slice(&world, 0, ROWS);
        const struct juncture now = juncture_of(&world, 0);
        gradients[i * WIDTH + i] = bad[i];
        assert_int_equal(table_apply(table, rows, 3, gradients, NULL, &now), ERR_NUMBER);
        const char *const named[] = {"table words", "row 1 ", "row 70 ", "row 71 "};
        assert_non_null(strstr(error_text(), named[0]));
        assert_non_null(strstr(error_text(), named[1 + i]));
        assert_int_equal(table_made(table), 0);
        expect_dense(&world, table, 0, ROWS);
        table_close(table);
        close_world(&world);
    }
}

/* Somebody who shares the memory has written zeros there since it was looked at. */
static bool look_then_mend(struct device *device, const float *x, int64_t n)
{
    (void)device;
    memset((float *)x, 0, (size_t)n * sizeof *x);
    return false;
}

/* Behind the gradients nothing can be read. */
static void who_is_to_blame_is_looked_for_among_the_gradients_alone(void **state)
{
    static const int64_t rows[] = {1, 70, 71};
    const size_t page = 4096;
    struct world world;
    open_world(&world, adagrad);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    float *gradients = (float *)(pages + page) - 3 * WIDTH;
    struct kernels kernels = *world.device.kernels;
    const struct kernels *honest = world.device.kernels;
    kernels.all_finite = look_then_mend;
    world.device.kernels = &kernels;
    struct table *table = open_slice(&world, 0, ROWS);
    const struct juncture now = juncture_of(&world, 0);
    assert_int_equal(table_apply(table, rows, 3, gradients, NULL, &now), ERR_NUMBER);
    table_close(table);
    world.device.kernels = honest;
    munmap(pages, 2 * page);
    close_world(&world);
}

/* Values before slots, or the other way about */
static void what_is_written_is_read(void **state)
{
    for (int order = 0; order < 2; order++) {
        struct world world;
        open_world(&world, "{\"optimizer\": {\"type\": \"ftrl\", \"learning_rate\": 0.1}}");
        struct table *table = open_slice(&world, 0, ROWS);
        for (int k = 0; k <= world.dense.slot_count; k++) {
            const int array = order ? world.dense.slot_count - k : k;
            float *floats = store_array(&world.dense, array) + 60 * WIDTH;
            for (int i = 0; i < 70 * WIDTH; i++)
                floats[i] = random_uniform((uint64_t)array, (uint64_t)i);
            table_write(table, array, 60, 50, floats);
            table_write(table, array, 110, 20, floats + 50 * WIDTH);
            expect_dense(&world, table, 0, ROWS);
            assert_int_equal(table_made(table), 70);
        }
        table_close(table);
        close_world(&world);
    }
}

static void sums_are_those_of_the_workers_in_their_order(void **state)
{
    const int64_t rows[3][3] = {{1, 5, 9}, {5, 8}, {0, 5, 9}};
    const float gradients[3][3] = {{1, 0x1p24f, 3}, {1, 7}, {9, -0x1p24f, 4}};
    const struct row_gradients of[] = {{rows[0], gradients[0], 3},
                                       {NULL, NULL, 0},
                                       {rows[1], gradients[1], 2},
                                       {rows[2], gradients[2], 3}};
    const int64_t want_rows[] = {0, 1, 5, 8, 9};
    const float want[] = {4.5f, 0.5f, 0, 3.5f, 3.5f}; /* (2^24 + 1) - 2^24 is 0 */
    int64_t ret_rows[8];
    float sums[8];
    assert_int_equal(table_sum(of, 4, 1, 0.5f, ret_rows, sums), 5);
    assert_memory_equal(ret_rows, want_rows, sizeof want_rows);
    for (int i = 0; i < 5; i++) assert_true(sums[i] == want[i]);
    assert_int_equal(table_sum(of, 0, 1, 1, ret_rows, sums), 0);
    assert_int_equal(table_sum(of + 1, 1, 1, 1, ret_rows, sums), 0);
}

static void times_are_those_of_all_workers(void **state)
{
    const int64_t rows[3][3] = {{1, 5, 9}, {5, 8}, {0, 5, 9}};
    const int64_t times[3][3] = {{1, 7, 2}, {INT64_MAX, 3}, {4, -5, 0}};
    struct row_gradients of[3];
    int64_t found[8];
    for (int w = 0; w < 3; w++)
        of[w] = (struct row_gradients){.rows = rows[w], .count = w == 1 ? 2 : 3, .times = times[w]};
    const int64_t want[] = {4, 1, 7 + (int64_t)SIGHTS_MAX + 1, 3, 2 + 1};
    table_sum_times(of, 3, found);
    assert_memory_equal(found, want, sizeof want);
}

/* Many rows, so that threads share them and pages become huge ones. */
static void threads_and_pages_change_no_bit(void **state)
{
    enum { MANY = 40000, WIDE = 64 };
    struct world world;
    int64_t *rows = malloc(MANY * sizeof *rows);
    float *got[2];
    open_world(&world, adagrad);
    for (int64_t i = 0; i < MANY; i++) rows[i] = i + i / 2;
    for (int k = 0; k < 2; k++) {
        struct device device = world.device;
        device.threads = 1 + 2 * k;
        const struct table_description is = {
            "words", {2, {2 * MANY, WIDE}}, 0, 2 * MANY, &fixture_draws, NULL, KEY};
        struct table *table;
        const struct juncture now = juncture_of(&world, 0);
        got[k] = malloc((size_t)MANY * WIDE * sizeof(float));
        assert_int_equal(table_open(&is, &world.dense.updaters[0], &device, &table), OK);
        for (int step = 0; step < 8; step++) {
            table_gather(table, rows, MANY, got[k]);
            assert_int_equal(table_apply(table, rows, MANY, got[k], NULL, &now), OK);
        }
        assert_int_equal(table_made(table), MANY);
        table_close(table);
    }
    assert_memory_equal(got[0], got[1], (size_t)MANY * WIDE * sizeof(float));
    free(got[0]);
    free(got[1]);
    free(rows);
    close_world(&world);
}

/* Memory is taken by rows that are made, not by those that could be. */
static void a_table_may_be_larger_than_the_memory(void **state)
{
    const int64_t last = (INT64_C(1) << 31) - 1, rows[] = {0, 12345678, last};
    struct world world;
    float got[3 * 16], gradients[3 * 16], want[16], again[16];
    open_world(&world, adagrad);
    struct table *table = open_table(&world, (struct shape){2, {last + 1, 16}}, 0, last + 1);
    const struct juncture now = juncture_of(&world, 0);
    table_gather(table, rows, 3, got);
    for (int i = 0; i < 48; i++) gradients[i] = 1;
    assert_int_equal(table_apply(table, rows, 3, gradients, NULL, &now), OK);
    assert_int_equal(table_made(table), 3);
    for (int i = 0; i < 16; i++) want[i] = random_normal(KEY, (uint64_t)(last * 16 + i));
    assert_memory_equal(got + 32, want, sizeof want);
    table_read(table, 0, last, 1, again);
    for (int i = 0; i < 16; i++) assert_true(again[i] < want[i]);
    table_close(table);
    close_world(&world);
}

static bool has_no_room;
static size_t room_bytes = SIZE_MAX; /* of one mapping */
void *__real_mmap64(void *, size_t, int, int, int, off_t);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    return has_no_room || bytes > room_bytes
               ? MAP_FAILED
               : __real_mmap64(at, bytes, protection, flags, file, offset);
}

static err refuse(const void *attributes, const struct initial *of, float *ret_values)
{
    return (fail)(ERR_INPUT, "not so");
}

static void what_cannot_be_a_table_is_said(void **state)
{
    static const struct initializer refuses = {.object = {"refuses"}, .fill = refuse};
    const struct initializer whole = {{"whole"}, true, fixture_draws.fill};
    struct world world;
    struct table *table;
    open_world(&world, adagrad);
    const struct updater *by = &world.dense.updaters[0];
    struct table_description is = {"words", {2, {ROWS, WIDTH}}, 0, ROWS, &refuses};
    assert_int_equal(table_open(&is, by, &world.device, &table), ERR_INPUT);
    assert_string_equal(error_text(), "table words: not so");
    is.initializer = &whole;
    assert_int_equal(table_open(&is, by, &world.device, &table), ERR_INPUT);
    assert_string_equal(error_text(), "table words: whole makes all rows at once");
    is.initializer = &fixture_draws;
    has_no_room = true;
    assert_int_equal(table_open(&is, by, &world.device, &table), ERR_MEMORY);
    has_no_room = false;
    assert_string_equal(error_text(), "table words: no room for 208 rows of 5 numbers, 2 times");
    close_world(&world);
}

enum { ROOM_BYTES = 4 << 20, ROOM_MAX = ROOM_BYTES / (WIDTH * sizeof(float)) /* rows */ };

/* Which row is the last depends on the host's memory: halves of what it holds are tried. */
static struct table *open_small(struct world *world, const struct growth *growth)
{
    const struct table_description is = {.name = "words",
                                         .shape = {2, {1, WIDTH}},
                                         .length = KEYS,
                                         .initializer = &fixture_draws,
                                         .key = KEY,
                                         .growth = growth};
    struct table *table;
    room_bytes = ROOM_BYTES;
    assert_int_equal(table_open(&is, &world->dense.updaters[0], &world->device, &table), OK);
    room_bytes = SIZE_MAX;
    return table;
}

static void a_table_that_is_full_says_so_and_keeps_its_rows(void **state)
{
    static const struct growth growth = {.admit_after = 1};
    static const float gradient[WIDTH] = {1, 1, 1, 1, 1};
    float before[WIDTH], after[WIDTH];
    struct world world;
    open_world(&world, adagrad);
    struct table *table = open_small(&world, &growth);
    const struct juncture now = juncture_of(&world, 0);
    int64_t key = 0, rows = 0;
    err e = OK;
    for (int64_t i = 0; i <= ROOM_MAX && !e; i++) {
        key = (int64_t)((uint64_t)i * 0x9e3779b97f4a7c15 % (uint64_t)KEYS); /* as hashes come */
        e = table_apply(table, &key, 1, gradient, NULL, &now);
        rows += !e;
    }
    assert_int_equal(e, ERR_MEMORY);
    assert_in_range(rows, ROOM_MAX / 4, ROOM_MAX);
    assert_non_null(strstr(error_text(), "table words: all "));
    assert_non_null(strstr(error_text(), " rows that this ps has room for are taken: more ps"));
    key = 0;
    table_gather(table, &key, 1, before);
    assert_int_equal(table_apply(table, &key, 1, gradient, NULL, &now), OK);
    table_gather(table, &key, 1, after);
    assert_true(after[0] < before[0]);
    assert_int_equal(table_made(table), rows);
    table_close(table);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_has_the_bits_of_a_dense_variable),
        cmocka_unit_test(a_row_is_made_when_it_is_touched_and_that_shows_nowhere),
        cmocka_unit_test(initial_values_are_those_of_ids_that_go_by_turns),
        cmocka_unit_test(what_changes_is_told_once),
        cmocka_unit_test(rows_that_are_not_here_are_found),
        cmocka_unit_test(a_gradient_that_is_not_finite_leaves_no_trace),
        cmocka_unit_test(who_is_to_blame_is_looked_for_among_the_gradients_alone),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(sums_are_those_of_the_workers_in_their_order),
        cmocka_unit_test(times_are_those_of_all_workers),
        cmocka_unit_test(threads_and_pages_change_no_bit),
        cmocka_unit_test(a_table_may_be_larger_than_the_memory),
        cmocka_unit_test(what_cannot_be_a_table_is_said),
        cmocka_unit_test(a_table_that_is_full_says_so_and_keeps_its_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
