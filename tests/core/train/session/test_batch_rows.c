/* test_batch_rows.c - batches with places instead of ids, and the rows that windows bring and take.
 */
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/session/rows.h"
#include "core/train/variables/mod.h"

enum { TABLES = 2, PS = 3, BATCH = 4, LARGE = 40, PLACES = 2, WIDE = 3 };

/* Columns of ids [batch, 2] and [batch, 1], and one of numbers, which lies between them. */
enum { FIRST, NUMBERS, SECOND, COLUMNS };
static const int64_t table_rows[TABLES] = {50, 9}, table_width[TABLES] = {WIDE, 1};

static float value_of(int table, int64_t row, int64_t k)
{
    return (float)(table * 10000 + row * 10 + k);
}

/* A graph of so many rows, without nodes: what rows.h looks at. */
struct model {
    struct graph graph;
    struct tensor tensors[COLUMNS];
    struct param params[TABLES], *list[TABLES];
    struct graph_input inputs[COLUMNS];
};

struct world {
    struct arena arena;
    struct device device;
    struct layout *layout;
    struct model train, eval;
    struct rows rows;
    struct row_source source;
    void *windows[PS];
    int64_t ids[LARGE * PLACES], more_ids[LARGE];
    float numbers[LARGE];
    struct column columns[COLUMNS];
    int askings, answered; /* times; rows */
    bool is_refused, is_open;
};

static struct tensor column_tensor(enum dtype dtype, int64_t batch, int64_t places)
{
    return (struct tensor){.dtype = dtype, .shape = {2, {batch, places}}};
}

static void open_param(struct model *m, struct arena *arena, int i, int column, int64_t named)
{
    struct param *p = m->list[i] = &m->params[i];
    const int64_t held = named < table_rows[i] ? named : table_rows[i];
    const size_t floats = (size_t)(held * table_width[i]);
    *p = (struct param){.name = i ? "b" : "a",
                        .shape = {2, {table_rows[i], table_width[i]}},
                        .ids = &m->tensors[column],
                        .held = held,
                        .value = arena_array(arena, floats, sizeof(float)),
                        .gradient = arena_array(arena, floats, sizeof(float))};
}

static void open_model(struct model *m, struct arena *arena, int64_t batch)
{
    *m = (struct model){.graph = {.batch = batch,
                                  .input_count = COLUMNS,
                                  .column_count = COLUMNS,
                                  .param_count = TABLES}};
    m->graph.inputs = m->inputs;
    m->tensors[FIRST] = column_tensor(INT64, batch, PLACES);
    m->tensors[NUMBERS] = column_tensor(FLOAT32, batch, 1);
    m->tensors[SECOND] = column_tensor(INT64, batch, 1);
    for (int i = 0; i < COLUMNS; i++)
        m->graph.inputs[i] = (struct graph_input){&m->tensors[i], i, i, i, true, NULL};
    open_param(m, arena, 0, FIRST, batch * PLACES);
    open_param(m, arena, 1, SECOND, batch);
    m->graph.params = m->list;
}

/* ---- a ps, or all of them ---- */

/* The values of rows that a front names, to its back, as a ps does it. */
static void answer(struct world *w, int ps, const struct area_counts *counts)
{
    const struct rows_link *link = &w->rows.links[ps];
    const int64_t *ids = area_wanted_ids(&link->area, counts, w->windows[ps]);
    float *to = area_rows(&link->area, w->windows[ps]);
    for (int i = 0; i < link->area.count; i++)
        for (int64_t j = 0; j < counts->wanted[i]; j++, ids++) {
            const struct area_slice *slice = &link->area.slices[i];
            assert_in_range(*ids, slice->start, slice->start + slice->length - 1);
            if (j > 0) assert_true(ids[-1] < ids[0]);
            const struct slice *of = link->parts[i].slice;
            for (int64_t k = 0; k < slice->width; k++)
                *to++ = value_of(link->parts[i].param,
                                 mod_id_of_row(of->shape.dim[0], of->mod, *ids), k);
            w->answered++;
        }
}

static err ask(void *context, const size_t bytes[], bool trains)
{
    struct world *w = context;
    w->askings++;
    if (w->is_refused) return ERR_PEER;
    for (int ps = 0; ps < PS; ps++) {
        struct area_counts counts;
        const struct row_area *area = &w->rows.links[ps].area;
        if (!bytes[ps]) continue;
        area_counts_open(area, &w->arena, &counts);
        assert_int_equal(area_read_counts(area, w->windows[ps], bytes[ps], true, &counts), OK);
        assert_int_equal(counts.pushed_rows, 0);
        assert_true(counts.wanted_rows > 0);
        answer(w, ps, &counts);
    }
    return OK;
}

static err settle(void *context)
{
    const struct world *w = context;
    return w->is_open ? ERR_PEER : OK;
}

/* ---- life ---- */

static void make_layout(struct world *w, const char *placement)
{
    const struct placement_spec spec = fixture_placement(placement, &w->arena);
    struct table_spec *tables = arena_array(&w->arena, TABLES, sizeof *tables);
    struct variable *variables = arena_array(&w->arena, TABLES, sizeof *variables);
    for (int i = 0; i < TABLES; i++) {
        tables[i].most = w->train.params[i].held;
        tables[i].column = i;
        variables[i] =
            (struct variable){w->train.params[i].name, w->train.params[i].shape, &tables[i]};
    }
    assert_int_equal(layout_make(&spec, variables, TABLES, PS, &w->arena, &w->layout), OK);
}

static void bind_windows(struct world *w)
{
    for (int ps = 0; ps < PS; ps++) {
        const size_t bytes = rows_window_bytes(&w->rows, ps);
        if (!bytes) continue;
        w->windows[ps] =
            aligned_alloc(AREA_ALIGN, (bytes + AREA_ALIGN - 1) / AREA_ALIGN * AREA_ALIGN);
        assert_non_null(w->windows[ps]);
        memset(w->windows[ps], 0xee, bytes);
        rows_bind(&w->rows, ps, w->windows[ps], false);
    }
}

static void open_world(struct world *w, const char *placement)
{
    *w = (struct world){.device = fixture_device(), .source = {ask, w, settle}};
    w->columns[FIRST] =
        (struct column){"first", INT64, {1, {PLACES}}, w->ids, .buckets = table_rows[0]};
    w->columns[NUMBERS] = (struct column){"numbers", FLOAT32, {1, {1}}, w->numbers};
    w->columns[SECOND] =
        (struct column){"second", INT64, {1, {1}}, w->more_ids, .buckets = table_rows[1]};
    open_model(&w->train, &w->arena, BATCH);
    open_model(&w->eval, &w->arena, LARGE);
    make_layout(w, placement);
    assert_int_equal(
        rows_open(&w->train.graph, w->layout, &w->device, &w->source, &w->arena, &w->rows), OK);
    for (int i = 0; i < 2; i++)
        prepared_open(&w->rows, &w->train.graph, w->columns, COLUMNS, &w->arena,
                      &w->rows.batches[i]);
    bind_windows(w);
}

static void close_world(struct world *w)
{
    for (int ps = 0; ps < PS; ps++) free(w->windows[ps]);
    device_close(&w->device);
    arena_free(&w->arena);
}

/* Ids that come more than once, and some that are none */
static void draw_batch(struct world *w, uint64_t index, int64_t rows, struct batch *ret)
{
    for (int64_t i = 0; i < rows * PLACES; i++) {
        const uint64_t drawn = random_u64(index, (uint64_t)i);
        w->ids[i] = drawn % 7 == 0 ? -1 : (int64_t)(drawn % (uint64_t)table_rows[0]);
    }
    for (int64_t i = 0; i < rows; i++) {
        w->more_ids[i] = (int64_t)(random_u64(index + 99, (uint64_t)i) % (uint64_t)table_rows[1]);
        w->numbers[i] = (float)i + (float)index;
    }
    *ret = (struct batch){rows, w->columns, COLUMNS, index, 0};
}

static void prepare(struct world *w, struct prepared *p, const struct graph *graph, uint64_t index,
                    int64_t rows)
{
    struct batch batch;
    draw_batch(w, index, rows, &batch);
    prepared_make(p, graph, &batch, 0);
}

/* Each place of the batch leads to the row of its id; the batch is drawn anew. */
static void check_values(struct world *w, const struct model *m, const struct prepared *p)
{
    struct batch batch;
    draw_batch(w, p->batch.index, p->batch.rows, &batch);
    for (int t = 0; t < TABLES; t++) {
        const int column = t ? SECOND : FIRST;
        const int64_t *ids = t ? w->more_ids : w->ids, *places = p->batch.columns[column].at;
        for (int64_t i = 0; i < p->batch.rows * column_width(&w->columns[column]); i++) {
            assert_int_equal(places[i] < 0, ids[i] < 0);
            for (int64_t k = 0; ids[i] >= 0 && k < table_width[t]; k++)
                assert_true(m->params[t].value[places[i] * table_width[t] + k] ==
                            value_of(t, ids[i], k));
        }
    }
}

static const char *const placements[] = {
    "{\"placement\": {}}",
    "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 3}}}",
    "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 7}}}",
    "{\"placement\": {\"pins\": [{\"match\": \"*\", \"ps\": 1}]}}",
    "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 3}, "
    "\"partition_strategy\": \"mod\"}}",
    "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"num_shards\": 7}, "
    "\"partition_strategy\": \"mod\"}}",
};
enum { PLACEMENTS = sizeof placements / sizeof *placements };

/* ---- tests ---- */

static void a_prepared_batch_outlives_the_one_that_it_was_made_of(void **state)
{
    struct world w;
    open_world(&w, placements[0]);
    struct prepared *p = &w.rows.batches[0];
    assert_false(p->is_there);
    prepare(&w, p, &w.train.graph, 3, BATCH);
    assert_true(p->is_there);
    assert_int_equal(p->batch.rows, BATCH);
    assert_int_equal(p->batch.index, 3);
    memset(w.numbers, 0, sizeof w.numbers);
    memset(w.ids, 0, sizeof w.ids);
    const float *numbers = p->batch.columns[NUMBERS].at;
    for (int i = 0; i < BATCH; i++) assert_true(numbers[i] == (float)(i + 3));
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, p), OK);
    check_values(&w, &w.train, p);
    close_world(&w);
}

static void rows_that_did_not_come_are_asked_for(void **state)
{
    for (int i = 0; i < PLACEMENTS; i++) {
        struct world w;
        open_world(&w, placements[i]);
        struct prepared *p = &w.rows.batches[0];
        for (int rows = BATCH; rows > 0; rows--) { /* the last batch may have fewer */
            prepare(&w, p, &w.train.graph, (uint64_t)rows, rows);
            assert_int_equal(rows_fetch(&w.rows, &w.train.graph, p), OK);
            assert_int_equal(w.askings, BATCH - rows + 1);
            check_values(&w, &w.train, p);
        }
        close_world(&w);
    }
}

/* Windows are made for batches that train; an evaluation's may be larger. */
static void more_rows_than_a_window_holds_come_in_pieces(void **state)
{
    for (int i = 0; i < PLACEMENTS; i++) {
        struct world w;
        struct prepared p;
        open_world(&w, placements[i]);
        prepared_open(&w.rows, &w.eval.graph, w.columns, COLUMNS, &w.arena, &p);
        prepare(&w, &p, &w.eval.graph, 1, LARGE);
        assert_int_equal(rows_fetch(&w.rows, &w.eval.graph, &p), OK);
        assert_int_equal(w.answered, p.lookups[FIRST].count + p.lookups[SECOND].count);
        check_values(&w, &w.eval, &p);
        if (i == 0) assert_true(w.askings > 1);
        close_world(&w);
    }
}

static void a_batch_that_names_nothing_asks_for_nothing(void **state)
{
    struct world w;
    struct batch batch;
    open_world(&w, placements[1]);
    draw_batch(&w, 1, BATCH, &batch);
    for (int i = 0; i < BATCH * PLACES; i++) w.ids[i] = -1;
    for (int i = 0; i < BATCH; i++) w.more_ids[i] = -1;
    prepared_make(&w.rows.batches[0], &w.train.graph, &batch, 0);
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[0]), OK);
    assert_int_equal(w.askings, 0);
    close_world(&w);
}

/* Somebody may read there still, and a link may send from there. */
static void a_front_stays_as_it_is_while_an_asking_is_open(void **state)
{
    struct world w;
    open_world(&w, placements[1]);
    struct prepared *p = &w.rows.batches[0];
    prepare(&w, p, &w.train.graph, 1, BATCH);
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, p), OK);
    const size_t bytes = rows_window_bytes(&w.rows, 0);
    void *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, w.windows[0], bytes);
    prepare(&w, p, &w.train.graph, 2, BATCH - 1);
    w.is_open = true;
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, p), ERR_PEER);
    assert_int_equal(w.askings, 1);
    assert_memory_equal(w.windows[0], before, bytes);
    w.is_open = false;
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, p), OK);
    check_values(&w, &w.train, p);
    free(before);
    close_world(&w);
}

static void rows_that_do_not_come_end_the_pass(void **state)
{
    struct world w;
    open_world(&w, placements[1]);
    prepare(&w, &w.rows.batches[0], &w.train.graph, 1, BATCH);
    w.is_refused = true;
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[0]), ERR_PEER);
    w.is_refused = false;
    rows_bind(&w.rows, 0, NULL, false);
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[0]), ERR_PEER);
    rows_bind(&w.rows, 0, w.windows[0], false);
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[0]), OK);
    check_values(&w, &w.train, &w.rows.batches[0]);
    close_world(&w);
}

/* Gradients of batch 1 lie in the fronts, by table and row; ids of batch 2 behind them. */
static void check_pushed(struct world *w, const struct prepared *p, const float seen[])
{
    int64_t rows = 0;
    for (int ps = 0; ps < PS; ps++) {
        const struct rows_link *link = &w->rows.links[ps];
        struct area_counts counts;
        if (!link->area.count) continue;
        area_counts_open(&link->area, &w->arena, &counts);
        assert_int_equal(area_read_counts(&link->area, w->windows[ps], link->front, true, &counts),
                         OK);
        const int64_t *ids = area_pushed_ids(&link->area, &counts, w->windows[ps]);
        const float *from = area_gradients(&link->area, &counts, w->windows[ps]);
        for (int i = 0; i < link->area.count; i++)
            for (int64_t j = 0; j < counts.pushed[i]; j++, ids++, rows++) {
                const int t = link->parts[i].param;
                const int64_t place = lookup_place(&p->lookups[t ? SECOND : FIRST], *ids);
                for (int64_t k = 0; k < table_width[t]; k++)
                    assert_true(*from++ == seen[t] + (float)(place * table_width[t] + k));
            }
    }
    assert_int_equal(rows, p->lookups[FIRST].count + p->lookups[SECOND].count);
}

static void fill_gradients(struct world *w, const float seen[])
{
    for (int t = 0; t < TABLES; t++)
        for (int64_t i = 0; i < w->train.params[t].held * table_width[t]; i++)
            w->train.params[t].gradient[i] = seen[t] + (float)i;
}

static void gradients_go_with_the_ids_of_the_next_batch(void **state)
{
    static const float seen[TABLES] = {100, 5000};
    for (int i = 0; i < PLACEMENTS; i++) {
        struct world w;
        open_world(&w, placements[i]);
        struct prepared *now = &w.rows.batches[0], *next = &w.rows.batches[1];
        prepare(&w, now, &w.train.graph, 1, BATCH);
        prepare(&w, next, &w.train.graph, 2, BATCH);
        fill_gradients(&w, seen);
        rows_put(&w.rows);
        assert_true(w.rows.names_next);
        assert_int_equal(w.rows.current, 1);
        assert_false(now->is_there);
        check_pushed(&w, now, seen);
        close_world(&w);
    }
}

/* As they do with the values that answer a push. */
static void bring_rows(struct world *w, uint64_t batch)
{
    for (int ps = 0; ps < PS; ps++) {
        const struct rows_link *link = &w->rows.links[ps];
        struct area_counts counts;
        if (!link->area.count) continue;
        area_counts_open(&link->area, &w->arena, &counts);
        assert_int_equal(area_read_counts(&link->area, w->windows[ps], link->front, true, &counts),
                         OK);
        answer(w, ps, &counts);
        rows_came(&w->rows, ps, batch);
    }
}

static void rows_that_came_with_values_are_not_asked_for(void **state)
{
    for (int i = 0; i < PLACEMENTS; i++) {
        struct world w;
        open_world(&w, placements[i]);
        prepare(&w, &w.rows.batches[0], &w.train.graph, 1, BATCH);
        prepare(&w, &w.rows.batches[1], &w.train.graph, 2, BATCH);
        rows_revoke(&w.rows); /* what was named before, and not what is named now */
        rows_put(&w.rows);
        bring_rows(&w, 2);
        assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[1]), OK);
        assert_int_equal(w.askings, 0);
        check_values(&w, &w.train, &w.rows.batches[1]);
        close_world(&w);
    }
}

static void rows_of_another_batch_or_of_none_that_is_known_are_asked_for(void **state)
{
    struct world w;
    open_world(&w, placements[1]);
    for (int way = 0; way < 5; way++) {
        w.rows.current = 0;
        prepare(&w, &w.rows.batches[0], &w.train.graph, 1, BATCH);
        prepare(&w, &w.rows.batches[1], &w.train.graph, 2, BATCH);
        rows_put(&w.rows);
        if (way == 3) rows_revoke(&w.rows); /* it was another one that was named */
        bring_rows(&w, way == 0 ? 3 : 2);
        if (way == 4) rows_revoke(&w.rows);
        if (way == 1) rows_forget(&w.rows, PS - 1);
        if (way == 2) rows_bind(&w.rows, 0, w.windows[0], false);
        assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[1]), OK);
        assert_int_equal(w.askings, way + 1);
        check_values(&w, &w.train, &w.rows.batches[1]);
    }
    close_world(&w);
}

/* It takes the windows' place for its own rows, and these are gone. */
static void an_evaluation_between_a_push_and_the_next_batch_is_not_mixed_up_with_it(void **state)
{
    struct world w;
    struct prepared p;
    open_world(&w, placements[1]);
    prepared_open(&w.rows, &w.eval.graph, w.columns, COLUMNS, &w.arena, &p);
    prepare(&w, &w.rows.batches[0], &w.train.graph, 1, BATCH);
    prepare(&w, &w.rows.batches[1], &w.train.graph, 2, BATCH);
    rows_put(&w.rows);
    bring_rows(&w, 2);
    prepare(&w, &p, &w.eval.graph, 2, LARGE);
    assert_int_equal(rows_fetch(&w.rows, &w.eval.graph, &p), OK);
    check_values(&w, &w.eval, &p);
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[1]), OK);
    check_values(&w, &w.train, &w.rows.batches[1]);
    close_world(&w);
}

static bool is_of_brought_rows(const struct world *w)
{
    int count = 0, links = 0;
    for (int ps = 0; ps < PS; ps++) {
        const struct rows_link *link = &w->rows.links[ps];
        if (!link->area.count) continue;
        const size_t bytes = area_front_bytes(&link->area, &link->counts, !link->was_brought);
        assert_int_equal(rows_push_bytes(link), bytes);
        count += link->was_brought;
        links++;
    }
    assert_true(count == 0 || count == links);
    return count > 0;
}

/* way 0: nothing comes between; 1: the rows were asked for; 2: windows are new, and what was put in
 * the old ones goes with all ids */
static void ids_of_rows_that_came_with_values_are_not_pushed(void **state)
{
    for (int way = 0; way < 3; way++) {
        struct world w;
        open_world(&w, placements[1]);
        prepare(&w, &w.rows.batches[0], &w.train.graph, 1, BATCH);
        prepare(&w, &w.rows.batches[1], &w.train.graph, 2, BATCH);
        rows_put(&w.rows);
        assert_false(is_of_brought_rows(&w));
        bring_rows(&w, way == 1 ? 3 : 2);
        assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[1]), OK);
        rows_put(&w.rows);
        for (int ps = 0; ps < PS && way == 2; ps++) rows_bind(&w.rows, ps, w.windows[ps], false);
        assert_int_equal(is_of_brought_rows(&w), way == 0);
        close_world(&w);
    }
}

/* Of what a ps hears of a window that it does not see */
static void copy_apart(struct world *w)
{
    for (int ps = 0; ps < PS; ps++) {
        struct rows_link *link = &w->rows.links[ps];
        if (!link->area.count) continue;
        void *front = arena_new(&w->arena, link->front);
        rows_copy_front(&w->rows, ps, front);
        memcpy(w->windows[ps], front, link->front);
    }
}

/* As a link does with what comes. */
static void land_apart(struct world *w)
{
    for (int ps = 0; ps < PS; ps++)
        for (int i = 0; i < w->rows.links[ps].patch_count; i++) {
            const struct area_patch *patch = &w->rows.links[ps].patches[i];
            char *from = (char *)w->windows[ps] + patch->offset;
            if (patch->offset < w->rows.links[ps].area.front) continue;
            memcpy(patch->at, from, patch->bytes);
            memset(from, 0xee, patch->bytes);
        }
}

static void a_window_that_nobody_else_sees_has_counts_alone(void **state)
{
    static const float seen[TABLES] = {100, 5000};
    for (int i = 0; i < PLACEMENTS; i++) {
        struct world w;
        open_world(&w, placements[i]);
        for (int ps = 0; ps < PS; ps++) rows_bind(&w.rows, ps, w.windows[ps], true);
        prepare(&w, &w.rows.batches[0], &w.train.graph, 1, BATCH);
        prepare(&w, &w.rows.batches[1], &w.train.graph, 2, BATCH);
        fill_gradients(&w, seen);
        rows_put(&w.rows);
        copy_apart(&w);
        check_pushed(&w, &w.rows.batches[0], seen);
        bring_rows(&w, 2);
        land_apart(&w);
        assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[1]), OK);
        assert_int_equal(w.askings, 0);
        check_values(&w, &w.train, &w.rows.batches[1]);
        close_world(&w);
    }
}

/* Another life of the window has all of what is pushed, and gets all of the answer. */
static void a_window_that_is_bound_again_has_no_patches(void **state)
{
    struct world w;
    open_world(&w, placements[1]);
    for (int ps = 0; ps < PS; ps++) rows_bind(&w.rows, ps, w.windows[ps], true);
    prepare(&w, &w.rows.batches[0], &w.train.graph, 1, BATCH);
    prepare(&w, &w.rows.batches[1], &w.train.graph, 2, BATCH);
    rows_put(&w.rows);
    copy_apart(&w);
    for (int ps = 0; ps < PS; ps++) rows_bind(&w.rows, ps, w.windows[ps], true);
    bring_rows(&w, 2);
    assert_int_equal(rows_fetch(&w.rows, &w.train.graph, &w.rows.batches[1]), OK);
    assert_int_equal(w.askings, 0);
    check_values(&w, &w.train, &w.rows.batches[1]);
    close_world(&w);
}

static void a_push_without_a_next_batch_names_none(void **state)
{
    struct world w;
    open_world(&w, placements[1]);
    prepare(&w, &w.rows.batches[0], &w.train.graph, 1, BATCH);
    rows_put(&w.rows);
    assert_false(w.rows.names_next);
    for (int ps = 0; ps < PS; ps++) assert_int_equal(w.rows.links[ps].counts.wanted_rows, 0);
    close_world(&w);
}

static void without_tables_nothing_is_used(void **state)
{
    struct arena arena = {0};
    struct device device = fixture_device();
    const struct placement_spec spec = fixture_placement(placements[0], &arena);
    const struct variable dense = {"kernel", {2, {3, 4}}, NULL};
    const struct graph graph = {0};
    struct layout *layout;
    struct rows rows;
    assert_int_equal(layout_make(&spec, &dense, 1, PS, &arena, &layout), OK);
    assert_int_equal(rows_open(&graph, layout, &device, NULL, &arena, &rows), OK);
    assert_false(rows_are_used(&rows));
    assert_int_equal(rows_window_bytes(&rows, 0), 0);
    rows_bind(&rows, 0, NULL, false);
    rows_came(&rows, 0, 1);
    rows_forget(&rows, 0);
    device_close(&device);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prepared_batch_outlives_the_one_that_it_was_made_of),
        cmocka_unit_test(rows_that_did_not_come_are_asked_for),
        cmocka_unit_test(more_rows_than_a_window_holds_come_in_pieces),
        cmocka_unit_test(a_batch_that_names_nothing_asks_for_nothing),
        cmocka_unit_test(a_front_stays_as_it_is_while_an_asking_is_open),
        cmocka_unit_test(rows_that_do_not_come_end_the_pass),
        cmocka_unit_test(gradients_go_with_the_ids_of_the_next_batch),
        cmocka_unit_test(rows_that_came_with_values_are_not_asked_for),
        cmocka_unit_test(rows_of_another_batch_or_of_none_that_is_known_are_asked_for),
        cmocka_unit_test(an_evaluation_between_a_push_and_the_next_batch_is_not_mixed_up_with_it),
        cmocka_unit_test(ids_of_rows_that_came_with_values_are_not_pushed),
        cmocka_unit_test(a_window_that_nobody_else_sees_has_counts_alone),
        cmocka_unit_test(a_window_that_is_bound_again_has_no_patches),
        cmocka_unit_test(a_push_without_a_next_batch_names_none),
        cmocka_unit_test(without_tables_nothing_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
