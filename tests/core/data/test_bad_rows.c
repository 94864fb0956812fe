/* Rows that are broken: an error, or left out up to a limit; and files that change. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/data/input.h"

static void assert_all(const char *source, int64_t rows, int column, const float *wanted)
{
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.rows, rows);
    assert_memory_equal(d.columns[column].at, wanted, (size_t)rows * sizeof *wanted);
    dataset_close(&d);
}

#define CSV(more) "{'format': 'csv', 'file': 'rows', 'label': 'y'" more "}"
#define COLUMNS ", 'columns': [{'column': 'numeric', 'name': 'x'}], 'batch_size': 1"

/* Of both ways to read a table */
static void rows_of_tables_are_left_out_up_to_the_limit(void **state)
{
    const float good[] = {1, 4};
    file_write_text("rows", "x,y\n7\n1,0\ntwo,0\n3,no\n4,1\n5,1,1\n");
    assert_all(CSV(", 'bad_rows': 4"), 2, FEATURES, good);
    assert_all(CSV(", 'bad_rows': 4") COLUMNS, 2, 1, good);
    assert_refused(CSV(", 'bad_rows': 3"), "4 rows are broken", "\"bad_rows\" is 3",
                   "rows: line 7: expected 2 cells", NULL);
    assert_refused(CSV(", 'bad_rows': 3") COLUMNS, "4 rows are broken", "rows: line 7", NULL);
    assert_refused(CSV(""), "rows: line 2: expected 2 cells", NULL);
    assert_refused(CSV("") COLUMNS, "rows: line 2: expected 2 cells", NULL);
    file_write_text("rows", "x,y\n7\n");
    assert_refused(CSV(", 'bad_rows': 9"), "no row of data", NULL);
    assert_refused(CSV(", 'bad_rows': 9") COLUMNS, "no row of data", NULL);
}

static void the_limit_is_of_all_files(void **state)
{
    file_write_text("first.csv", "x,y\n1,0\ntwo,0\n");
    file_write_text("second.csv", "x,y\nthree,0\n4,1\n");
#define BOTH(limit) "{'format': 'csv', 'file': '*.csv', 'label': 'y', 'bad_rows': " limit "}"
    assert_all(BOTH("2"), 2, FEATURES, (float[]){1, 4});
    assert_all(BOTH("2") COLUMNS, 2, 1, (float[]){1, 4});
    assert_refused(BOTH("1"), "2 rows are broken", "second.csv: line 2", NULL);
    assert_refused(BOTH("1") COLUMNS, "2 rows are broken", "second.csv: line 2", NULL);
}

static void rows_of_pairs_leave_nothing_behind(void **state)
{
    file_write_text("rows", "1 1:1\n1 2:5 9:1\n0 x\nno 1:1\n1 1:2\n");
#define SVM(more) "{'format': 'libsvm', 'file': 'rows'" more "}"
    assert_all(SVM(", 'features': 2, 'bad_rows': 3"), 2, FEATURES, (float[]){1, 0, 2, 0});
    assert_refused(SVM(", 'features': 2, 'bad_rows': 2"), "3 rows are broken", "line 4", NULL);
}

static void lines_of_json_are_left_out(void **state)
{
    file_write_text("rows", "{\"x\": 1, \"y\": 0}\n{\n{\"x\": 2}\n[]\n{\"x\": \"a\", \"y\": 0}\n"
                            "{\"x\": 4, \"y\": 1}\n");
#define JSONL(more) "{'format': 'jsonl', 'file': 'rows', 'label': 'y'" more "}" COLUMNS
    assert_all(JSONL(", 'bad_rows': 4"), 2, 1, (float[]){1, 4});
    assert_refused(JSONL(", 'bad_rows': 3"), "4 rows are broken", "line 5", NULL);
    assert_refused(JSONL(""), "rows: line 2", NULL);
}

/* Where the record's own bytes are broken the next one is found; where its length is, none is. */
static void records_are_left_out(void **state)
{
    static uint8_t file[8192];
    const size_t bytes = fixture_load("examples.tfrecord", file, sizeof file);
#define RECORDS(more)                                                                              \
    "{'format': 'tfrecord', 'file': 'rows', 'label': 'label'" more                                 \
    "}, 'columns': [{'column': 'numeric', 'name': 'dense', 'max': 3}], 'batch_size': 1"
    struct dataset d;
    file[20]++;
    file_write("rows", file, bytes);
    assert_refused(RECORDS(""), "record 1 at byte 0", "checksum of its bytes", NULL);
    source_open_ok(RECORDS(", 'bad_rows': 1"), &d);
    assert_int_equal(d.rows, 19);
    dataset_close(&d);
    file[0]++;
    file_write("rows", file, bytes);
    assert_refused(RECORDS(", 'bad_rows': 9"), "checksum of its length", NULL);
}

/* The writer was killed: what there is of the last row is a broken one. */
static void a_last_row_that_is_cut_is_left_out(void **state)
{
    static uint8_t file[8192];
    const size_t bytes = fixture_load("examples.tfrecord", file, sizeof file);
    struct dataset d;
    for (size_t cut = 1; cut < 30; cut += 7) {
        file_write("rows", file, bytes - cut);
        assert_refused(RECORDS(""), "rows", "record 20", NULL);
        source_open_ok(RECORDS(", 'bad_rows': 1"), &d);
        assert_int_equal(d.rows, 19);
        dataset_close(&d);
        assert_stream_is_memory(RECORDS(", 'bad_rows': 1, 'stream': 'never'"),
                                RECORDS(", 'bad_rows': 1, 'stream': 'always'"));
    }
    file_write("rows", file, 7);
    assert_refused(RECORDS(", 'bad_rows': 1, 'names': ['dense']"), "no row of data", NULL);
    file_write_text("rows", "x,y\n1,0\n4,1\n\"5");
    assert_refused(CSV(""), "rows: line 4: a quote is opened and the file ends", NULL);
    assert_all(CSV(", 'bad_rows': 1"), 2, FEATURES, (float[]){1, 4});
    assert_stream_is_memory(CSV(", 'bad_rows': 1, 'stream': 'never'") COLUMNS,
                            CSV(", 'bad_rows': 1, 'stream': 'always'") COLUMNS);
    file_write_text("rows", "x,y\n1,0\n\"4,1\n5,0");
    assert_refused(CSV(", 'bad_rows': 1"), "rows: line 3: a quote is opened", NULL);
    file_write_text("rows", "x,y\n\"1");
    assert_refused(CSV(", 'bad_rows': 1"), "no row of data", NULL);
}

/* In a list, the file of a broken row alone is one without rows. */
static void a_broken_only_row_of_a_file_is_left_out(void **state)
{
    static const char *const broken[] = {"x,y\nno,0\n", "x,y\n7\n", "x,y\n\"1"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        file_write_text("first.csv", broken[i]);
        file_write_text("second.csv", "x,y\n1,0\n4,1\n");
        assert_all(BOTH("1"), 2, FEATURES, (float[]){1, 4});
        assert_all(BOTH("1") COLUMNS, 2, 1, (float[]){1, 4});
        assert_stream_is_memory(BOTH("1, 'stream': 'never'") COLUMNS,
                                BOTH("1, 'stream': 'always'") COLUMNS);
    }
    file_write_text("first.csv", "x,y\n7,1\n");
    file_write_text("second.csv", "x,y\n1,0\n4,1\n");
}

static void a_share_is_of_all_rows(void **state)
{
    const float good[] = {1, 4};
    file_write_text("rows", "x,y\n7\n1,0\n4,1\n");
    assert_all(CSV(", 'bad_rows': 0.34"), 2, FEATURES, good);
    assert_all(CSV(", 'bad_rows': 0.34") COLUMNS, 2, 1, good);
    assert_refused(CSV(", 'bad_rows': 0.33"), "1 of 3 rows are broken", "share", "0.33", NULL);
    assert_refused(CSV(", 'bad_rows': 0.33, 'stream': 'always'") COLUMNS, "1 of 3 rows", NULL);
    assert_stream_is_memory(CSV(", 'bad_rows': 0.34, 'stream': 'never'") COLUMNS,
                            CSV(", 'bad_rows': 0.34, 'stream': 'always'") COLUMNS);
    assert_refused(CSV(", 'bad_rows': 1.5"), "a number of rows, or a share below 1", "1.5", NULL);
}

/* What is no row at all is not left out: a line that does not end, a quote that is not closed. */
static void what_swallows_other_rows_is_an_error_always(void **state)
{
    const size_t bytes = 10 << 20;
    char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, '1', bytes);
    memcpy(text, "x,y\n", 4);
    file_write("rows", text, bytes);
    assert_refused(CSV(", 'bad_rows': 9"), "rows: line 2: longer than 1048576 bytes", NULL);
    text[4] = '"';
    file_write("rows", text, bytes);
    assert_refused(CSV(", 'bad_rows': 9"), "line 2", "a quote was opened and not closed", NULL);
    free(text);
}

static void a_byte_of_zero_is_no_number(void **state)
{
    file_write("rows", "x,y\n1\0002,0\n3,1\n", 14);
    assert_refused(CSV(""), "rows: line 2: has a NUL byte", NULL);
    assert_all(CSV(", 'bad_rows': 1"), 1, FEATURES, (float[]){3});
}

static void a_file_that_becomes_shorter_is_named(void **state)
{
    const struct format_context context = {.directory = folder_path()};
    struct input *in;
    char path[1024], bytes[16];
    size_t got;
    file_write("rows", "0123456789", 10);
    snprintf(path, sizeof path, "%s/rows", folder_path());
    assert_int_equal(input_open(&context, "rows", &in), OK);
    assert_int_equal(input_some(in, bytes, 4, &got), OK);
    assert_int_equal(truncate(path, 6), 0);
    assert_int_equal(input_some(in, bytes, 16, &got), OK);
    assert_int_equal(got, 2);
    assert_int_equal(input_some(in, bytes, 16, &got), ERR_INPUT);
    assert_non_null(strstr(error_text(), "rows: had 10 bytes when it was opened and ends after 6"));
    input_close(in);
}

/* ---- each format, and each place of a broken row in a list of files ---- */

struct form {
    const char *source;                /* of the spec, less files */
    const char *column;                /* made of it */
    const char *head, *sound, *broken; /* sound: # is the number of the row */
};
#define NUMERIC(name) "{'column': 'numeric', 'name': '" name "'}"
static const struct form forms[] = {
    {"'format': 'csv', 'label': 'y'", NUMERIC("x"), "x,y\n", "#,0\n", "7\n"},
    {"'format': 'csv', 'label': 'y'", NUMERIC("x"), "x,y\n", "#,0\n", "two,0\n"},
    {"'format': 'csv', 'label': 'y', 'delimiter': '\\t'", NUMERIC("x"), "x\ty\n", "#\t0\n",
     "7\t\n"},
    {"'format': 'csv', 'label': -1, 'header': false", NUMERIC("0"), "", "#,0\n", "1,2,0\n"},
    {"'format': 'csv', 'label': -1, 'header': false", NUMERIC("0"), "", "#,0\n", "7\n"},
    {"'format': 'csv', 'label': 'y', 'header': false, 'names': ['x', 'y']", NUMERIC("x"), "",
     "#,0\n", "7\n"},
    {"'format': 'jsonl', 'label': 'y'", NUMERIC("x"), "", "{\"x\": #, \"y\": 0}\n", "{\"x\": \n"},
    {"'format': 'jsonl', 'label': 'y'", NUMERIC("x"), "", "{\"x\": #, \"y\": 0}\n", "[7]\n"},
    {"'format': 'slots', 'label': 'label'", NUMERIC("x"), "", "0 x:#\n", "0 x:\n"},
    {"'format': 'libsvm'", "{'column': 'ids', 'name': 'x', 'source': 'features'}", "", "0 #:1\n",
     "0 x\n"},
};

enum { SHARDS = 3, OF_SHARD = 3, PLACES = 4 };
static const char *const places[PLACES] = {"first", "last", "middle", "only"};

static void add_row(char *text, const char *sound, int number)
{
    for (char *to = text + strlen(text); *sound; sound++, *to = '\0')
        if (*sound == '#')
            *to++ = (char)('0' + number);
        else
            *to++ = *sound;
}

/* Row by row; of the shard that has broken rows these stand there, or they are all of it. */
static int write_shard(const struct form *form, int shard, int broken, int place)
{
    char name[32], text[512];
    const bool is_only = broken == shard && place == 3;
    int sound = 0;
    snprintf(name, sizeof name, "shard-%d", shard);
    strcpy(text, form->head);
    for (int i = 0; i < OF_SHARD; i++) {
        const int at = place == 0 ? 0 : place == 1 ? OF_SHARD - 1 : 1;
        if (is_only || (broken == shard && i == at)) strcat(text, form->broken);
        if (is_only) continue;
        add_row(text, form->sound, 1 + shard * OF_SHARD + i);
        sound++;
    }
    file_write_text(name, text);
    return sound;
}

static void assert_left_out(const struct form *form, int broken, int place)
{
    char memory[512], stream[512];
    int rows = 0;
    struct dataset d;
    for (int i = 0; i < SHARDS; i++) rows += write_shard(form, i, broken, place);
    const char *const layout = "{%s, 'file': 'shard-*', 'bad_rows': 3, 'stream': '%s'}, 'columns': "
                               "[%s], 'batch_size': 1";
    snprintf(memory, sizeof memory, layout, form->source, "never", form->column);
    snprintf(stream, sizeof stream, layout, form->source, "always", form->column);
    const bool is_open = source_open(memory, &d) == OK;
    const bool fits = is_open && d.rows == rows && d.left_out.count == (place == 3 ? OF_SHARD : 1);
    if (!fits)
        print_error("%s: %s of shard %d: %s\n", form->source, places[place], broken,
                    is_open ? "other rows" : error_text());
    assert_true(fits);
    dataset_close(&d);
    assert_stream_is_memory(memory, stream);
}

static void a_broken_row_stands_anywhere_in_any_format(void **state)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int broken = 0; broken < SHARDS; broken++)
            for (int place = 0; place < PLACES; place++)
                if (!(place == 3 && broken == 0 && strstr(forms[i].source, "header': false") &&
                      !strstr(forms[i].source, "names")))
                    assert_left_out(&forms[i], broken, place);
}

/* Files of broken rows alone say nothing of their cells. */
static void files_without_a_sound_row_are_none(void **state)
{
    file_write_text("none-0", "{\n");
    file_write_text("none-1", "[]\n{\n");
#define NONE(files, more) "{'format': 'jsonl', 'file': " files ", 'label': 'y'" more "}" COLUMNS
    assert_refused(NONE("'none-1'", ", 'bad_rows': 3"), "none-1: the file has no row of data",
                   NULL);
    assert_refused(NONE("'none-1'", ", 'bad_rows': 3, 'stream': 'always'"),
                   "none-1: the file has no row of data", NULL);
    assert_refused(NONE("'none-*'", ", 'bad_rows': 3"), "no file has a row of data", NULL);
    assert_refused(NONE("'none-*'", ", 'bad_rows': 3, 'stream': 'always'"), "no file has a row",
                   NULL);
    assert_refused(NONE("'none-*'", ", 'bad_rows': 2"), "3 rows are broken", NULL);
    assert_refused(NONE("'none-1'", ""), "none-1: line 1", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_tables_are_left_out_up_to_the_limit),
        cmocka_unit_test(the_limit_is_of_all_files),
        cmocka_unit_test(rows_of_pairs_leave_nothing_behind),
        cmocka_unit_test(lines_of_json_are_left_out),
        cmocka_unit_test(records_are_left_out),
        cmocka_unit_test(a_last_row_that_is_cut_is_left_out),
        cmocka_unit_test(a_broken_only_row_of_a_file_is_left_out),
        cmocka_unit_test(a_share_is_of_all_rows),
        cmocka_unit_test(what_swallows_other_rows_is_an_error_always),
        cmocka_unit_test(a_byte_of_zero_is_no_number),
        cmocka_unit_test(a_file_that_becomes_shorter_is_named),
        cmocka_unit_test(a_broken_row_stands_anywhere_in_any_format),
        cmocka_unit_test(files_without_a_sound_row_are_none),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
