/* test_bundle_read.c - whole tensors and parts of them, however they were cut when they were
 * written.
 */
#include "tests/core/train/checkpoint/bundle_made.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VALUES_MAX = 4096 };

static void assert_floats_equal_json(const float *got, const json_t *wanted)
{
    const json_t *data = json_object_get(wanted, "data");
    if (!data) {
        assert_true(got[0] == (float)json_number_value(wanted));
        return;
    }
    for (size_t i = 0; i < json_array_size(data); i++)
        assert_true(got[i] == (float)json_number_value(json_array_get(data, i)));
}

static void assert_entry_equals_json(struct bundle *bundle, const char *name, const json_t *wanted)
{
    const struct bundle_entry *entry = bundle_find(bundle, name);
    const json_t *shape = json_object_get(wanted, "shape");
    static float values[VALUES_MAX];
    int64_t integer = 0;
    assert_non_null(entry);
    assert_int_equal(entry->shape.rank, json_array_size(shape));
    for (int i = 0; i < entry->shape.rank; i++)
        assert_int_equal(entry->shape.dim[i], json_integer_value(json_array_get(shape, (size_t)i)));
    if (entry->dtype == BUNDLE_INT64) {
        assert_int_equal(bundle_read(bundle, entry, NULL, &integer, sizeof integer), OK);
        assert_int_equal(integer, json_integer_value(wanted));
        return;
    }
    const size_t bytes = (size_t)bundle_count(&entry->shape) * sizeof *values;
    assert_in_range(bytes, 1, sizeof values);
    assert_int_equal(bundle_read(bundle, entry, NULL, values, bytes), OK);
    assert_floats_equal_json(values, wanted);
}

static void assert_reads_as_expected(const char *folder, int shards)
{
    char path[FOLDER_PATH_MAX];
    snprintf(path, sizeof path, "%s/expected.json", folder);
    json_t *expected = json_load_file(path, 0, NULL);
    assert_non_null(expected);
    snprintf(path, sizeof path, "%s/model.ckpt-3", folder);
    struct bundle *bundle = opened(path);
    json_t *variables = json_object_get(expected, "variables"), *wanted;
    const char *name;
    assert_int_equal(bundle_shards(bundle), shards);
    assert_int_equal(bundle_entries(bundle), json_object_size(variables));
    json_object_foreach(variables, name, wanted) assert_entry_equals_json(bundle, name, wanted);
    assert_int_equal(bundle_verify(bundle), OK);
    assert_string_equal(bundle_prefix(bundle), path);
    bundle_close(bundle);
    json_decref(expected);
}

static void checkpoints_of_a_cluster_read_as_tensorflow_reads_them(void **state)
{
    assert_reads_as_expected(FIXTURES "/cluster_adam", 2);
    assert_reads_as_expected(FIXTURES "/cluster_ftrl", 3);
}

static void names_are_sorted_and_found_and_slices_counted(void **state)
{
    struct bundle *bundle = opened(FIXTURES "/cluster_adam/model.ckpt-3");
    for (int i = 0; i < bundle_entries(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        assert_ptr_equal(bundle_find(bundle, entry->name), entry);
        if (i > 0) assert_true(strcmp(bundle_at(bundle, i - 1)->name, entry->name) < 0);
        assert_int_equal(entry->slice_count, strncmp(entry->name, "words/", 6) == 0 ? 2 : 0);
    }
    const struct bundle_entry *words = bundle_find(bundle, "words/embedding_weights");
    const struct bundle_place place = bundle_place(bundle, words, 1);
    assert_int_equal(place.box.start[0], 6);
    assert_int_equal(place.box.length[0], 5);
    assert_int_equal(place.shard, 0);
    assert_int_equal(place.bytes, 5 * 3 * 4);
    assert_null(bundle_find(bundle, "words"));
    bundle_close(bundle);
}

/* ---- any box, however cut ---- */

enum { SIDE = 5, CUTS_MAX = 8 };

/* Element [i, j] of the test's matrices. */
static double element(int64_t i, int64_t j)
{
    return (double)(i * 100 + j);
}

static size_t fill(const struct bundle_box *box, double *ret)
{
    size_t count = 0;
    for (int64_t i = 0; i < box->length[0]; i++) {
        for (int64_t j = 0; j < box->length[1]; j++)
            ret[count++] = element(box->start[0] + i, box->start[1] + j);
    }
    return count;
}

/* A matrix [SIDE, SIDE] in the boxes given. */
static struct bundle *cut_matrix(const char *folder, const struct bundle_box *boxes, int count)
{
    static double values[CUTS_MAX][SIDE * SIDE];
    struct made made[CUTS_MAX];
    for (int i = 0; i < count; i++) {
        fill(&boxes[i], values[i]);
        made[i] = (struct made){{"m", BUNDLE_DOUBLE, {2, {SIDE, SIDE}}, &boxes[i]}, values[i]};
    }
    const char *prefix = folder_path(folder, "m");
    write_bundle(prefix, made, count);
    return opened(prefix);
}

/* Rows as they come, each once and ascending within a box. */
struct taken {
    double values[SIDE * SIDE];
    size_t row_count; /* elements of a row */
    int64_t first, rows;
};

static err take_rows(void *context, int64_t first_row, int64_t rows, const void *elements)
{
    struct taken *t = context;
    assert_int_equal(first_row, t->first + t->rows);
    memcpy(t->values + (size_t)t->rows * t->row_count, elements,
           (size_t)rows * t->row_count * sizeof *t->values);
    t->rows += rows;
    return OK;
}

static void read_box_by_rows(struct bundle *bundle, const struct bundle_box *box,
                             const double *wanted)
{
    struct taken taken = {.row_count = (size_t)box->length[1], .first = box->start[0]};
    const struct bundle_taker taker = {&taken, take_rows};
    const int64_t count = box->length[0] * box->length[1];
    assert_int_equal(bundle_read_rows(bundle, bundle_at(bundle, 0), box, &taker), OK);
    assert_int_equal(taken.rows, count ? box->length[0] : 0);
    assert_memory_equal(taken.values, wanted, (size_t)count * sizeof *wanted);
}

static void read_box(struct bundle *bundle, struct bundle_box box)
{
    double wanted[SIDE * SIDE], got[SIDE * SIDE + 1];
    const size_t count = fill(&box, wanted);
    got[count] = -1; /* nothing is written behind */
    const err e = bundle_read(bundle, bundle_at(bundle, 0), &box, got, count * sizeof *got);
    if (e) print_error("%s\n", error_text());
    assert_int_equal(e, OK);
    assert_memory_equal(got, wanted, count * sizeof *got);
    assert_true(got[count] == -1);
    read_box_by_rows(bundle, &box, wanted);
}

/* All boxes, those of no elements too. */
static void read_all_boxes(struct bundle *bundle)
{
    for (int64_t i = 0; i <= SIDE; i++) {
        for (int64_t j = 0; j <= SIDE; j++) {
            for (int64_t rows = 0; rows <= SIDE - i; rows++) {
                for (int64_t columns = 0; columns <= SIDE - j; columns++)
                    read_box(bundle, (struct bundle_box){{i, j}, {rows, columns}});
            }
        }
    }
    bundle_close(bundle);
}

static void any_box_can_be_read_from_any_cut(void **folder)
{
    static const struct {
        int count;
        struct bundle_box boxes[CUTS_MAX];
    } cuts[] = {
        {1, {{{0, 0}, {5, 5}}}},
        {3, {{{0, 0}, {2, 5}}, {{2, 0}, {2, 5}}, {{4, 0}, {1, 5}}}},
        {3, {{{4, 0}, {1, 5}}, {{0, 0}, {2, 5}}, {{2, 0}, {2, 5}}}},
        {2, {{{0, 0}, {5, 3}}, {{0, 3}, {5, 2}}}},
        {4, {{{0, 0}, {2, 3}}, {{0, 3}, {2, 2}}, {{2, 0}, {3, 3}}, {{2, 3}, {3, 2}}}},
        {5,
         {{{0, 0}, {2, 3}},
          {{0, 3}, {3, 2}},
          {{3, 2}, {2, 3}},
          {{2, 0}, {3, 2}},
          {{2, 2}, {1, 1}}}},
        {3, {{{0, 0}, {2, 5}}, {{2, 0}, {0, 5}}, {{2, 0}, {3, 5}}}},
    };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        read_all_boxes(cut_matrix(*folder, cuts[i].boxes, cuts[i].count));
}

/* Three parts as one, as two, and what was one as four. */
static void parts_of_one_number_are_read_as_parts_of_another(void **folder)
{
    const struct bundle_box three[] = {{{0, 0}, {2, 5}}, {{2, 0}, {2, 5}}, {{4, 0}, {1, 5}}};
    const struct bundle_box one = {{0, 0}, {SIDE, SIDE}};
    struct bundle *bundle = cut_matrix(*folder, three, 3);
    assert_int_equal(bundle_at(bundle, 0)->slice_count, 3);
    read_box(bundle, one);
    read_box(bundle, (struct bundle_box){{0, 0}, {3, 5}});
    read_box(bundle, (struct bundle_box){{3, 0}, {2, 5}});
    bundle_close(bundle);
    bundle = cut_matrix(*folder, &one, 1);
    assert_int_equal(bundle_at(bundle, 0)->slice_count, 0);
    for (int64_t i = 0; i < 4; i++)
        read_box(bundle, (struct bundle_box){{i, 0}, {i < 3 ? 1 : 2, 5}});
    bundle_close(bundle);
}

/* ---- four axes, larger than the reader's buffer ---- */

enum { A = 3, B = 70, C = 2, D = 400, BLOCK = A * B * C * D };

static void check_block(struct bundle *bundle, struct bundle_box box, const uint32_t *all)
{
    const struct bundle_shape shape = {
        4, {box.length[0], box.length[1], box.length[2], box.length[3]}};
    const size_t count = (size_t)bundle_count(&shape);
    int32_t *got = malloc(count * sizeof *got);
    assert_non_null(got);
    assert_int_equal(bundle_read(bundle, bundle_at(bundle, 0), &box, got, count * 4), OK);
    for (size_t i = 0; i < count; i++) {
        const int64_t d = (int64_t)i % shape.dim[3], c = (int64_t)i / shape.dim[3] % shape.dim[2];
        const int64_t ab = (int64_t)i / (shape.dim[3] * shape.dim[2]);
        const int64_t b = ab % shape.dim[1], a = ab / shape.dim[1];
        const int64_t at =
            (((box.start[0] + a) * B + box.start[1] + b) * C + box.start[2] + c) * D +
            box.start[3] + d;
        assert_true((uint32_t)got[i] == all[at]);
    }
    free(got);
}

/* Two halves along the second axis, in pieces read through the buffer and straight. */
static void boxes_of_four_axes_are_read_across_chunks(void **folder)
{
    static uint32_t all[BLOCK], half[2][BLOCK / 2];
    const struct bundle_box boxes[] = {{{0}, {A, B / 2, C, D}}, {{0, B / 2}, {A, B / 2, C, D}}};
    const size_t plane = (size_t)B / 2 * C * D;
    for (uint32_t i = 0; i < BLOCK; i++) all[i] = i * 2654435761u;
    for (size_t i = 0; i < A; i++) {
        memcpy(half[0] + i * plane, all + 2 * i * plane, plane * 4);
        memcpy(half[1] + i * plane, all + (2 * i + 1) * plane, plane * 4);
    }
    const struct bundle_shape shape = {4, {A, B, C, D}};
    const struct made made[] = {{{"block", BUNDLE_INT32, shape, &boxes[0]}, half[0]},
                                {{"block", BUNDLE_INT32, shape, &boxes[1]}, half[1]}};
    write_bundle(folder_path(*folder, "b"), made, 2);
    struct bundle *bundle = opened(folder_path(*folder, "b"));
    check_block(bundle, bundle_whole(&shape), all);
    check_block(bundle, boxes[1], all);
    check_block(bundle, (struct bundle_box){{1, 30, 0, 17}, {2, 10, 2, 383}}, all);
    check_block(bundle, (struct bundle_box){{0, 0, 1, 399}, {3, 70, 1, 1}}, all);
    check_block(bundle, (struct bundle_box){{2, 69, 0, 0}, {1, 1, 2, 400}}, all);
    assert_int_equal(bundle_verify(bundle), OK);
    bundle_close(bundle);
}

/* ---- by rows, more than one stretch ---- */

enum { LONG = 9001, WIDTH = 61, PARTS_MAX = 4, PICKED_MAX = 8 }; /* about two stretches */

/* Row i of the table is i * WIDTH, i * WIDTH + 1 ... */
struct counted {
    int64_t next, end; /* rows */
    int stretches, stop_after;
};

static err count_rows(void *context, int64_t first_row, int64_t rows, const void *elements)
{
    struct counted *c = context;
    const int32_t *values = elements;
    assert_int_equal(first_row, c->next);
    assert_in_range(rows, 1, BUNDLE_STRETCH_BYTES / (WIDTH * sizeof *values));
    for (int64_t i = 0; i < rows * WIDTH; i++) assert_true(values[i] == first_row * WIDTH + i);
    c->next += rows;
    return ++c->stretches == c->stop_after ? (fail)(ERR_NUMBER, "enough") : OK;
}

static int64_t cut(int parts, int part)
{
    return part == parts ? LONG : LONG / parts * part + part * 7;
}

static struct bundle *cut_table(const char *folder, int parts)
{
    static int32_t table[LONG * WIDTH];
    struct bundle_box boxes[PARTS_MAX];
    struct made made[PARTS_MAX];
    for (int32_t i = 0; i < LONG * WIDTH; i++) table[i] = i;
    for (int i = 0; i < parts; i++) {
        boxes[i] = (struct bundle_box){{cut(parts, i)}, {cut(parts, i + 1) - cut(parts, i), WIDTH}};
        made[i] = (struct made){{"t", BUNDLE_INT32, {2, {LONG, WIDTH}}, &boxes[i]},
                                table + cut(parts, i) * WIDTH};
    }
    write_bundle(folder_path(folder, "t"), made, parts);
    return opened(folder_path(folder, "t"));
}

static void rows_of_one_cut_are_read_in_stretches_by_another(void **folder)
{
    for (int parts = 1; parts <= PARTS_MAX; parts++) {
        struct bundle *b = cut_table(*folder, parts);
        for (int readers = 1; readers <= PARTS_MAX; readers++) {
            for (int i = 0; i < readers; i++) {
                struct counted c = {.next = cut(readers, i), .end = cut(readers, i + 1)};
                const struct bundle_box box = {{c.next}, {c.end - c.next, WIDTH}};
                const struct bundle_taker taker = {&c, count_rows};
                assert_int_equal(bundle_read_rows(b, bundle_at(b, 0), &box, &taker), OK);
                assert_int_equal(c.next, c.end);
            }
        }
        bundle_close(b);
    }
}

static void what_the_taker_refuses_ends_the_reading(void **folder)
{
    struct bundle *b = cut_table(*folder, 2);
    struct counted c = {.stop_after = 2};
    const struct bundle_taker taker = {&c, count_rows};
    assert_refused(bundle_read_rows(b, bundle_at(b, 0), NULL, &taker), ERR_NUMBER, "t: enough");
    assert_int_equal(c.stretches, 2);
    bundle_close(b);
}

static void spoil(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_equal(fputc(0x55, file), 0x55);
    assert_int_equal(fclose(file), 0);
}

/* The rows before the damage were given; that they are worthless is known at the slice's end. */
static void damage_is_found_at_the_end_of_its_slice(void **folder)
{
    struct bundle *b = cut_table(*folder, 1);
    struct counted c = {0};
    const struct bundle_taker taker = {&c, count_rows};
    const struct bundle_box first = {{0}, {LONG / 2, WIDTH}};
    spoil(folder_path(*folder, "t.data-00000-of-00001"));
    assert_refused(bundle_read_rows(b, bundle_at(b, 0), &first, &taker), ERR_INPUT,
                   "checksum differs");
    assert_int_equal(c.next, LONG / 2);
    bundle_close(b);
}

/* Found by the thread that reads ahead, told by who takes the rows. */
static void what_cannot_be_read_any_more_is_told_behind_what_came_before(void **folder)
{
    struct bundle *b = cut_table(*folder, 1);
    struct counted c = {0};
    const struct bundle_taker taker = {&c, count_rows};
    assert_int_equal(truncate(folder_path(*folder, "t.data-00000-of-00001"), LONG / 2 * WIDTH * 4),
                     0);
    assert_refused(bundle_read_rows(b, bundle_at(b, 0), NULL, &taker), ERR_INPUT, "truncated");
    assert_in_range(c.next, 1, LONG / 2);
    bundle_close(b);
}

static void a_scalar_is_one_row(void **folder)
{
    const double value = element(0, 0);
    const struct made made = {{"s", BUNDLE_DOUBLE}, &value};
    write_bundle(folder_path(*folder, "s"), &made, 1);
    struct bundle *b = opened(folder_path(*folder, "s"));
    struct taken taken = {.values = {-1}, .row_count = 1};
    const struct bundle_taker taker = {&taken, take_rows};
    assert_int_equal(bundle_read_rows(b, bundle_at(b, 0), NULL, &taker), OK);
    assert_int_equal(taken.rows, 1);
    assert_true(taken.values[0] == value);
    bundle_close(b);
}

/* ---- single rows ---- */

static void check_picked(struct bundle *b, const int64_t *rows, int64_t count)
{
    int32_t got[PICKED_MAX * WIDTH + 1];
    got[count * WIDTH] = -1;
    const err e = bundle_pick_rows(b, bundle_at(b, 0), rows, count, got);
    if (e) print_error("%s\n", error_text());
    assert_int_equal(e, OK);
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < WIDTH; k++)
            assert_int_equal(got[i * WIDTH + k], rows[i] * WIDTH + k);
    assert_int_equal(got[count * WIDTH], -1);
}

static void rows_are_picked_from_any_cut(void **folder)
{
    static const int64_t ends[] = {0, LONG - 1}, run[] = {7, 8, 9, 12, 13};
    for (int parts = 1; parts <= PARTS_MAX; parts++) {
        struct bundle *b = cut_table(*folder, parts);
        int64_t across[2 * PARTS_MAX], count = 0;
        for (int i = 1; i < parts; i++) {
            across[count++] = cut(parts, i) - 1;
            across[count++] = cut(parts, i);
        }
        check_picked(b, ends, 2);
        check_picked(b, run, 5);
        check_picked(b, across, count);
        check_picked(b, ends, 0);
        assert_int_equal(bundle_check(b, bundle_at(b, 0)), OK);
        bundle_close(b);
    }
}

/* Columns apart, too */
static void rows_are_picked_from_slices_that_hold_parts_of_them(void **folder)
{
    static const struct bundle_box boxes[] = {
        {{0, 0}, {2, SIDE}}, {{2, 0}, {3, 1}}, {{2, 1}, {3, SIDE - 1}}};
    static const int64_t rows[] = {1, 2, 4};
    double got[3 * SIDE];
    struct bundle *b = cut_matrix(*folder, boxes, 3);
    assert_int_equal(bundle_pick_rows(b, bundle_at(b, 0), rows, 3, got), OK);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t k = 0; k < SIDE; k++) assert_true(got[i * SIDE + k] == element(rows[i], k));
    bundle_close(b);
}

/* While rows are picked from it: that is an error, and the end of nobody. */
static void rows_of_a_file_that_was_cut_are_not_picked(void **folder)
{
    static const int64_t rows[] = {0, LONG - 1};
    int32_t got[2 * WIDTH];
    struct bundle *b = cut_table(*folder, 1);
    check_picked(b, rows, 2);
    char *path = NULL;
    assert_int_equal(bundle_data_path(bundle_prefix(b), 0, 1, &path), OK);
    assert_int_equal(truncate(path, 0), 0);
    free(path);
    for (int i = 0; i < 2; i++)
        assert_refused(bundle_pick_rows(b, bundle_at(b, 0), rows, 2, got), ERR_IO, "it was cut");
    bundle_close(b);
}

static void rows_that_are_not_there_are_not_picked(void **folder)
{
    static const int64_t bad[][2] = {{-1, 0}, {0, LONG}};
    const double value = 1;
    const struct made scalar = {{"s", BUNDLE_DOUBLE}, &value};
    int32_t got[2 * WIDTH];
    struct bundle *b = cut_table(*folder, 2);
    for (int i = 0; i < 2; i++)
        assert_refused(bundle_pick_rows(b, bundle_at(b, 0), bad[i], 2, got), ERR_INPUT,
                       "t: rows that are wanted are not inside of it");
    bundle_close(b);
    write_bundle(folder_path(*folder, "s"), &scalar, 1);
    b = opened(folder_path(*folder, "s"));
    assert_refused(bundle_pick_rows(b, bundle_at(b, 0), bad[1], 1, got), ERR_INPUT, "s: rows");
    bundle_close(b);
}

static void a_check_finds_damage(void **folder)
{
    struct bundle *b = cut_table(*folder, 2);
    spoil(folder_path(*folder, "t.data-00000-of-00001"));
    assert_refused(bundle_check(b, bundle_at(b, 0)), ERR_INPUT, "checksum differs");
    bundle_close(b);
}

/* ---- what is asked wrongly ---- */

static err take_nothing(void *, int64_t, int64_t, const void *)
{
    fail_msg("rows of what cannot be read");
    return OK;
}
static const struct bundle_taker no_taker = {NULL, take_nothing};

static void what_is_not_there_is_refused(void **folder)
{
    struct bundle *bundle = opened(write_both(*folder));
    const struct bundle_entry *emb = bundle_find(bundle, "emb");
    float values[EMB_ROWS * EMB_COLUMNS + 1];
    const struct bundle_box outside = {{2, 0}, {2, EMB_COLUMNS}}, before = {{-1, 0}, {1, 1}};
    const struct bundle_box far = {{INT64_MAX, 0}, {1, 1}};
    assert_refused(bundle_read(bundle, emb, &outside, values, 16), ERR_INPUT, "emb: the part");
    assert_refused(bundle_read(bundle, emb, &before, values, 4), ERR_INPUT, "emb: the part");
    assert_refused(bundle_read(bundle, emb, &far, values, 4), ERR_INPUT, "emb: the part");
    assert_refused(bundle_read(bundle, emb, NULL, values, sizeof values), ERR_INPUT, "emb: 6 elem");
    assert_refused(bundle_read(bundle, emb, NULL, values, 23), ERR_INPUT, "emb: 6 elements");
    assert_refused(bundle_read_rows(bundle, emb, &outside, &no_taker), ERR_INPUT, "emb: the part");
    bundle_close(bundle);
}

static void a_tensor_with_a_slice_missing_is_read_only_where_it_is_held(void **folder)
{
    const char *prefix = folder_path(*folder, "half");
    float values[4];
    write_ps_0(prefix);
    struct bundle *bundle = opened(prefix);
    const struct bundle_entry *emb = bundle_find(bundle, "emb");
    const struct bundle_box there = {{0, 0}, {2, 2}};
    assert_int_equal(bundle_read(bundle, emb, &there, values, sizeof values), OK);
    assert_true(values[3] == 4);
    assert_refused(bundle_read(bundle, emb, NULL, values, 24), ERR_INPUT,
                   "emb: its slices hold 4 of 6 elements");
    assert_refused(bundle_read_rows(bundle, emb, NULL, &no_taker), ERR_INPUT,
                   "emb: its slices hold 4 of 6 elements");
    bundle_close(bundle);
}

static void every_type_and_an_empty_tensor_come_back(void **folder)
{
    const double d[] = {1.5, -2};
    const int32_t i[] = {-7, 8, 9};
    const uint8_t u[] = {0, 255};
    const struct made made[] = {
        {{"d", BUNDLE_DOUBLE, {1, {2}}}, d},
        {{"empty", BUNDLE_FLOAT, {2, {3, 0}}}, d},
        {{"i", BUNDLE_INT32, {1, {3}}}, i},
        {{"u", BUNDLE_UINT8, {1, {2}}}, u},
    };
    double got_d[2];
    int32_t got_i[3];
    uint8_t got_u[2];
    write_bundle(folder_path(*folder, "t"), made, 4);
    struct bundle *b = opened(folder_path(*folder, "t"));
    assert_int_equal(bundle_read(b, bundle_find(b, "d"), NULL, got_d, sizeof d), OK);
    assert_int_equal(bundle_read(b, bundle_find(b, "i"), NULL, got_i, sizeof i), OK);
    assert_int_equal(bundle_read(b, bundle_find(b, "u"), NULL, got_u, sizeof u), OK);
    assert_int_equal(bundle_read(b, bundle_find(b, "empty"), NULL, got_u, 0), OK);
    assert_memory_equal(got_d, d, sizeof d);
    assert_memory_equal(got_i, i, sizeof i);
    assert_memory_equal(got_u, u, sizeof u);
    assert_int_equal(bundle_verify(b), OK);
    bundle_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_of_a_cluster_read_as_tensorflow_reads_them),
        cmocka_unit_test(names_are_sorted_and_found_and_slices_counted),
        IN_FOLDER(any_box_can_be_read_from_any_cut),
        IN_FOLDER(parts_of_one_number_are_read_as_parts_of_another),
        IN_FOLDER(boxes_of_four_axes_are_read_across_chunks),
        IN_FOLDER(rows_of_one_cut_are_read_in_stretches_by_another),
        IN_FOLDER(what_the_taker_refuses_ends_the_reading),
        IN_FOLDER(damage_is_found_at_the_end_of_its_slice),
        IN_FOLDER(what_cannot_be_read_any_more_is_told_behind_what_came_before),
        IN_FOLDER(a_scalar_is_one_row),
        IN_FOLDER(rows_are_picked_from_any_cut),
        IN_FOLDER(rows_are_picked_from_slices_that_hold_parts_of_them),
        IN_FOLDER(rows_of_a_file_that_was_cut_are_not_picked),
        IN_FOLDER(rows_that_are_not_there_are_not_picked),
        IN_FOLDER(a_check_finds_damage),
        IN_FOLDER(what_is_not_there_is_refused),
        IN_FOLDER(a_tensor_with_a_slice_missing_is_read_only_where_it_is_held),
        IN_FOLDER(every_type_and_an_empty_tensor_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
