/* What a ps answers to visitors who ask for tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "core/train/variables/growing/keys.h"
#include "core/train/variables/table.h"
#include "kernels/device.h"
#include "tests/core/cluster/visit/visited.h"

#include <cmocka.h> /* after error.h: it has a macro named fail */

/* [100000, 2], of which rows 10 .. 12 and 40 .. 41 are here: each is its number, and minus that. */
struct with_tables {
    struct ps ps;
    struct device device;
    struct slice slices[2];
    struct shard_table tables[2];
};

static void open_tables(struct with_tables *w)
{
    static const int64_t starts[] = {10, 40}, lengths[] = {3, 2};
    const struct updater by = {.optimizer =
                                   kinds_find(&optimizer_kinds, "gradient_descent")->descriptor};
    empty_ps(&w->ps);
    assert_int_equal(device_open_cpu(1, NULL, &w->device), OK);
    for (int i = 0; i < 2; i++) {
        w->slices[i] = (struct slice){"t", {2, {100000, 2}}, 0, starts[i], lengths[i]};
        const struct table_description description = {
            .name = "t",
            .shape = w->slices[i].shape,
            .start = starts[i],
            .length = lengths[i],
            .initializer = kinds_find(&initializer_kinds, "zeros")->descriptor,
        };
        struct table **table = &w->tables[i].rows;
        w->tables[i].slice = &w->slices[i];
        assert_int_equal(table_open(&description, &by, &w->device, table), OK);
        for (int64_t row = starts[i]; row < starts[i] + lengths[i]; row++)
            table_write(*table, 0, row, 1, (const float[]){(float)row, (float)-row});
    }
    const struct visit_view view = {
        .values = w->ps.values, .has_values = true, .tables = w->tables, .table_count = 2};
    visits_show(w->ps.visits, &view);
}

static void close_tables(struct with_tables *w)
{
    close_ps(&w->ps);
    for (int i = 0; i < 2; i++) table_close(w->tables[i].rows);
    device_close(&w->device);
}

static void a_table_is_read_by_rows(void **state)
{
    struct with_tables w = {0};
    open_tables(&w);
    assert_asked(&w.ps, "{\"do\": \"list\"}",
                 "{\"variables\":[{\"name\":\"global_step\",\"kind\":\"step\",\"shape\":[]},"
                 "{\"name\":\"t\",\"kind\":\"table\",\"shape\":[100000,2]}]}");
    assert_asked(&w.ps, "{\"do\": \"get\", \"name\": \"t\", \"index\": [41]}",
                 "{\"kind\":\"table\",\"shape\":[100000,2],\"axis\":0,\"parts\":[{\"start\":41,"
                 "\"length\":1,\"values\":[41.0,-41.0]}],\"first_row\":41,\"rows\":1}");
    assert_asked(&w.ps, "{\"do\": \"get\", \"name\": \"t\", \"index\": [11], \"rows\": 30}",
                 "{\"kind\":\"table\",\"shape\":[100000,2],\"axis\":0,\"parts\":[{\"start\":11,"
                 "\"length\":2,\"values\":[11.0,-11.0,12.0,-12.0]},{\"start\":40,\"length\":1,"
                 "\"values\":[40.0,-40.0]}],\"first_row\":11,\"rows\":30}");
    assert_asked(&w.ps, "{\"do\": \"get\", \"name\": \"t\", \"index\": [5], \"rows\": 5}",
                 "{\"kind\":\"table\",\"shape\":[100000,2],\"axis\":0,\"parts\":[],"
                 "\"first_row\":5,\"rows\":5}");
    close_tables(&w);
}

static void of_a_table_no_more_than_rows_is_to_be_had(void **state)
{
    static const char *const rows[][2] = {
        {"{\"do\": \"get\", \"name\": \"t\"}",
         "t is a table of 100000 x 2 numbers: get up to 32768 rows, as in t[7] or t[7:9]; they are "
         "not changed from outside"},
        {"{\"do\": \"get\", \"name\": \"t\", \"index\": [1], \"rows\": 32769}",
         "t is a table of 100000 x 2 numbers: get up to 32768 rows, as in t[7] or t[7:9]; they are "
         "not changed from outside"},
        {"{\"do\": \"get\", \"name\": \"t\", \"index\": [-1]}", "t has rows from 0 to 99999"},
        {"{\"do\": \"get\", \"name\": \"t\", \"index\": [99999], \"rows\": 2}",
         "t has rows from 0 to 99999"},
        {"{\"do\": \"get\", \"name\": \"t\", \"index\": [3, 0]}",
         "t is a table: one index is that of a row"},
        {"{\"do\": \"set\", \"name\": \"t\", \"index\": [11], \"value\": 1}",
         "t is a table, whose rows are not changed from outside"},
        {"{\"do\": \"add\", \"name\": \"t\", \"value\": 1}",
         "t is a table, whose rows are not changed from outside"},
        {"{\"do\": \"get\", \"name\": \"t\", \"rows\": 2}",
         "the request: rows: expected how many from one index on"},
        {"{\"do\": \"get\", \"name\": \"t\", \"index\": [1], \"rows\": -2}",
         "the request: rows: expected how many from one index on"},
        {"{\"do\": \"get\", \"name\": \"global_step\", \"index\": [0], \"rows\": 1}",
         "global_step is no table, of which there are ranges of rows"},
    };
    struct with_tables w = {0};
    open_tables(&w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_error(&w.ps, rows[i][0], rows[i][1], 2);
    close_tables(&w);
}

/* Two parts of a table that grows; ids 0 .. IDS - 1 have rows: minus the id, twice. */
enum { IDS = 40 };

static void open_growing(struct with_tables *w)
{
    static const struct growth growth = {.admit_after = 1};
    const struct updater by = {.optimizer =
                                   kinds_find(&optimizer_kinds, "gradient_descent")->descriptor};
    const int64_t half = KEYS / 2;
    empty_ps(&w->ps);
    assert_int_equal(device_open_cpu(1, NULL, &w->device), OK);
    for (int i = 0; i < 2; i++) {
        w->slices[i] = (struct slice){"g", {2, {1, 2}}, 0, i * half, i ? KEYS - half : half};
        const struct table_description description = {
            .name = "g",
            .shape = w->slices[i].shape,
            .start = w->slices[i].start,
            .length = w->slices[i].length,
            .initializer = kinds_find(&initializer_kinds, "zeros")->descriptor,
            .growth = &growth,
        };
        w->tables[i].slice = &w->slices[i];
        assert_int_equal(table_open(&description, &by, &w->device, &w->tables[i].rows), OK);
    }
    for (int64_t id = 0; id < IDS; id++) {
        const int64_t key = key_of_id(id);
        const struct juncture now = {.rate = 1};
        assert_int_equal(table_apply(w->tables[key >= half].rows, &key, 1,
                                     (const float[]){(float)id, (float)id}, NULL, &now),
                         OK);
    }
    const struct visit_view view = {
        .values = w->ps.values, .has_values = true, .tables = w->tables, .table_count = 2};
    visits_show(w->ps.visits, &view);
}

static void a_table_that_grows_is_read_by_ids(void **state)
{
    struct with_tables w = {0};
    char ask[128], answer[256];
    int in_part[2] = {0};
    open_growing(&w);
    assert_asked(&w.ps, "{\"do\": \"list\"}",
                 "{\"variables\":[{\"name\":\"global_step\",\"kind\":\"step\",\"shape\":[]},"
                 "{\"name\":\"g\",\"kind\":\"table\",\"shape\":[1,2],\"grows\":true}]}");
    for (int id = 0; id <= IDS; id++) {
        const double value = id < IDS ? -id : 0; /* the last one has no row */
        snprintf(ask, sizeof ask, "{\"do\": \"get\", \"name\": \"g\", \"index\": [%d]}", id);
        snprintf(answer, sizeof answer,
                 "{\"kind\":\"table\",\"shape\":[1,2],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":1,\"values\":[%.1f,%.1f]}],\"first_row\":0,\"rows\":1}",
                 value, value);
        assert_asked(&w.ps, ask, answer);
        in_part[key_of_id(id) >= KEYS / 2]++;
    }
    assert_true(in_part[0] && in_part[1]);
    assert_int_equal(table_made(w.tables[0].rows) + table_made(w.tables[1].rows), IDS);
    close_tables(&w);
}

static void of_a_table_that_grows_nothing_else_is_to_be_had(void **state)
{
    static const char *const rows[][2] = {
        {"{\"do\": \"get\", \"name\": \"g\"}",
         "g is a table that grows: get up to 32768 rows by their ids, as in g[7] or g[7:9]; they "
         "are not changed from outside"},
        {"{\"do\": \"get\", \"name\": \"g\", \"index\": [0], \"rows\": 32769}",
         "g is a table that grows: get up to 32768 rows by their ids, as in g[7] or g[7:9]; they "
         "are not changed from outside"},
        {"{\"do\": \"get\", \"name\": \"g\", \"index\": [-1]}",
         "g has rows from 0 to 9223372036854775806"},
        {"{\"do\": \"get\", \"name\": \"g\", \"index\": [9223372036854775806], \"rows\": 2}",
         "g has rows from 0 to 9223372036854775806"},
        {"{\"do\": \"get\", \"name\": \"g\", \"index\": [1, 2]}",
         "g is a table: one index is that of a row"},
        {"{\"do\": \"set\", \"name\": \"g\", \"index\": [0], \"value\": 1}",
         "g is a table, whose rows are not changed from outside"},
    };
    struct with_tables w = {0};
    open_growing(&w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_error(&w.ps, rows[i][0], rows[i][1], 2);
    close_tables(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_read_by_rows),
        cmocka_unit_test(of_a_table_no_more_than_rows_is_to_be_had),
        cmocka_unit_test(a_table_that_grows_is_read_by_ids),
        cmocka_unit_test(of_a_table_that_grows_nothing_else_is_to_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
