/* test_saves.c - a checkpoint reads tables as they were, while updates go over all of their rows,
 * in little memory. */
#include "tests/core/train/fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/variables/aside.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/keys.h"
#include "core/train/variables/table.h"

enum {
    ROWS = 3000,
    WIDTH = 5,
    ARRAYS = 2,
    BATCH = 200,
    STEPS = 60,
    STRETCH = 7,
    LIMIT = 20000, /* bytes: about a hundred rows */
    TABLES = 2,
    ALL = ROWS * WIDTH,
};

/* A fixed table, and one that grows: keys are those of the ids below ROWS. */
struct world {
    struct arena arena;
    struct device device;
    struct optimizer_spec spec;
    float *block;
    struct store dense;
    struct table *tables[TABLES];
    int64_t keys[ROWS];
    struct aside_room room;
    atomic_bool is_updated; /* no update comes any more */
};

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct table *open_table(struct world *w, const struct growth *growth)
{
    const struct table_description is = {.name = "words",
                                         .shape = {2, {growth ? 1 : ROWS, WIDTH}},
                                         .length = growth ? KEYS : ROWS,
                                         .initializer = &fixture_draws,
                                         .key = 77,
                                         .growth = growth};
    struct table *table;
    assert_int_equal(table_open(&is, &w->dense.updaters[0], &w->device, &table), OK);
    return table;
}

static void open_world(struct world *w)
{
    static const struct growth growth = {.admit_after = 2, .evict_after_steps = 20};
    *w = (struct world){.device = fixture_device()};
    w->spec = fixture_optimizer("{\"optimizer\": {\"type\": \"adagrad\", \"learning_rate\": 1}}",
                                &w->arena);
    w->block = fixture_block(&w->device, WIDTH);
    assert_int_equal(fixture_store(&w->spec, &w->device, WIDTH, w->block, &w->dense), OK);
    w->tables[0] = open_table(w, NULL);
    w->tables[1] = open_table(w, &growth);
    for (int64_t id = 0; id < ROWS; id++) w->keys[id] = key_of_id(id);
    qsort(w->keys, ROWS, sizeof *w->keys, ascending);
    aside_room_open(&w->room);
}

static void close_world(struct world *w)
{
    for (int i = 0; i < TABLES; i++) table_close(w->tables[i]);
    aside_room_close(&w->room);
    store_close(&w->dense);
    fixture_release(&w->device, w->block);
    arena_free(&w->arena);
    device_close(&w->device);
}

/* Rows from all over both tables */
static void update(struct world *w, int64_t step)
{
    const struct juncture now = {0.1f, w->dense.powers, step};
    int64_t rows[BATCH], keys[BATCH];
    float gradients[BATCH * WIDTH];
    for (int i = 0; i < BATCH; i++) {
        const int64_t at = i * (ROWS / BATCH) +
                           (int64_t)(random_u64((uint64_t)step, (uint64_t)i) % (ROWS / BATCH));
        rows[i] = at;
        keys[i] = w->keys[at];
    }
    for (int i = 0; i < BATCH * WIDTH; i++)
        gradients[i] = random_normal((uint64_t)(step + 1000), (uint64_t)i);
    assert_int_equal(table_apply(w->tables[0], rows, BATCH, gradients, NULL, &now), OK);
    assert_int_equal(table_apply(w->tables[1], keys, BATCH, gradients, NULL, &now), OK);
}

static void update_all(struct world *w, int64_t first)
{
    for (int64_t step = first; step < first + STEPS; step++) update(w, step);
}

/* What a checkpoint has of both tables */
struct saved {
    float fixed[ARRAYS][ALL], grown[ARRAYS][ALL];
    struct key_state keys[ROWS];
    int64_t key_count, row_count;
};

static void begin(struct world *w)
{
    aside_room_begin(&w->room);
    for (int i = 0; i < TABLES; i++) table_save_begin(w->tables[i], &w->room);
    w->room.limit = LIMIT;
}

static void end(struct world *w)
{
    for (int i = 0; i < TABLES; i++) table_save_end(w->tables[i]);
}

/* As slow as can be: reads when an update waits for it, or when there are no more. */
static void await_need(struct world *w)
{
    for (bool is_needed = false; !is_needed && !w->is_updated; sched_yield()) {
        pthread_mutex_lock(&w->room.lock);
        is_needed = w->room.awaited >= 0;
        pthread_mutex_unlock(&w->room.lock);
    }
}

static void read_fixed(struct world *w, struct saved *ret)
{
    for (int64_t at = 0; at < ROWS; at += STRETCH) {
        float *const to[] = {ret->fixed[0] + at * WIDTH, ret->fixed[1] + at * WIDTH};
        await_need(w);
        assert_int_equal(
            table_save_read(w->tables[0], at, ROWS - at < STRETCH ? ROWS - at : STRETCH, to), OK);
    }
    table_save_over(w->tables[0]);
}

static void read_growing(struct world *w, struct saved *ret)
{
    struct growing *g = table_growing(w->tables[1]);
    struct saved_keys piece = {.count = 1};
    int64_t from = 0, keys, rows;
    while (piece.count) {
        piece.keys = ret->keys + ret->key_count;
        for (int i = 0; i < ARRAYS; i++) piece.rows[i] = ret->grown[i] + ret->row_count * WIDTH;
        await_need(w);
        assert_int_equal(growing_save_read(g, &from, STRETCH, &piece), OK);
        ret->key_count += piece.count;
        ret->row_count += piece.row_count;
    }
    growing_saved(g, &keys, &rows);
    assert_int_equal(ret->key_count, keys);
    assert_int_equal(ret->row_count, rows);
    table_save_over(w->tables[1]);
}

struct reader {
    struct world *world;
    struct saved *ret;
};

static void *read_both(void *context)
{
    const struct reader *r = context;
    memset(r->ret, 0, sizeof *r->ret);
    read_fixed(r->world, r->ret);
    read_growing(r->world, r->ret);
    return NULL;
}

static void a_slow_save_has_the_rows_of_its_beginning_in_little_memory(void **state)
{
    static struct saved wanted, got;
    static struct world w;
    pthread_t thread;
    open_world(&w);
    update_all(&w, 0);
    w.is_updated = true;
    begin(&w);
    read_both(&(struct reader){&w, &wanted});
    end(&w);
    assert_int_equal(w.room.most, 0);
    assert_true(wanted.row_count > ROWS / 4 && wanted.key_count > wanted.row_count);
    w.is_updated = false;
    begin(&w);
    assert_int_equal(pthread_create(&thread, NULL, read_both, &(struct reader){&w, &got}), 0);
    update_all(&w, STEPS);
    w.is_updated = true;
    pthread_join(thread, NULL);
    end(&w);
    assert_memory_equal(&got, &wanted, sizeof got);
    assert_true(w.room.most <= LIMIT && w.room.most > LIMIT / 2);
    assert_int_equal(w.room.used, 0);
    close_world(&w);
    (void)state;
}

static void *give_up(void *context)
{
    struct world *w = context;
    await_need(w);
    for (int i = 0; i < TABLES; i++) table_save_over(w->tables[i]);
    return NULL;
}

static void updates_do_not_wait_for_a_reader_that_has_given_up(void **state)
{
    static struct world w;
    pthread_t thread;
    open_world(&w);
    begin(&w);
    assert_int_equal(pthread_create(&thread, NULL, give_up, &w), 0);
    update_all(&w, 0);
    w.is_updated = true;
    pthread_join(thread, NULL);
    assert_int_equal(w.room.used, 0);
    end(&w);
    close_world(&w);
    (void)state;
}

static void a_save_that_nobody_reads_is_lost_and_the_tables_go_on(void **state)
{
    static struct saved got;
    static struct world w;
    float *const to[] = {got.fixed[0], got.fixed[1]};
    struct saved_keys piece = {.keys = got.keys, .rows = {got.grown[0], got.grown[1]}};
    int64_t from = 0;
    open_world(&w);
    begin(&w);
    w.room.still_ms = 1;
    update_all(&w, 0);
    assert_int_equal(table_save_read(w.tables[0], 0, STRETCH, to), ERR_MEMORY);
    assert_string_equal(error_text(), "table words: nothing of it was written for too long");
    assert_int_equal(growing_save_read(table_growing(w.tables[1]), &from, STRETCH, &piece),
                     ERR_MEMORY);
    end(&w);
    assert_int_equal(w.room.used, 0);
    close_world(&w);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_save_has_the_rows_of_its_beginning_in_little_memory),
        cmocka_unit_test(updates_do_not_wait_for_a_reader_that_has_given_up),
        cmocka_unit_test(a_save_that_nobody_reads_is_lost_and_the_tables_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
