/* csv: columns, quoting, missing values, and faults that are named by file, line and column. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE(more) "{'format': 'csv', 'file': 'table', 'label': " more "}"

static void assert_table(const char *source, int64_t rows, int64_t columns, const float *features,
                         const int32_t *labels)
{
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.rows, rows);
    assert_int_equal(d.columns[FEATURES].shape.rank, 1);
    assert_int_equal(d.columns[FEATURES].shape.dim[0], columns);
    assert_int_equal(d.columns[FEATURES].dtype, FLOAT32);
    assert_int_equal(d.columns[LABELS].shape.rank, 0);
    assert_int_equal(d.columns[LABELS].dtype, INT32);
    assert_memory_equal(d.columns[FEATURES].at, features, (size_t)(rows * columns) * sizeof(float));
    assert_memory_equal(d.columns[LABELS].at, labels, (size_t)rows * sizeof(int32_t));
    dataset_close(&d);
}

static void assert_use(const char *source, const char *use)
{
    struct dataset d;
    source_open_ok(source, &d);
    assert_string_equal(d.use, use);
    dataset_close(&d);
}

static void every_column_but_the_label_is_a_feature(void **state)
{
    file_write_text("table", "a,b,class\n1,2.5,0\n-3e2,.25,1\n");
    const float features[] = {1, 2.5f, -300, 0.25f};
    assert_table(SOURCE("'class'"), 2, 2, features, (int32_t[]){0, 1});
    assert_table(SOURCE("2"), 2, 2, features, (int32_t[]){0, 1});
    assert_table(SOURCE("-1"), 2, 2, features, (int32_t[]){0, 1});
}

/* A column that would be dropped for the word in its first cell makes another model. */
static void columns_of_words_are_left_out_by_name_only(void **state)
{
    file_write_text("table", "a,name,b,class\n1,x,2.5,0\n-3e2,y,.25,1\n");
    const float features[] = {1, 2.5f, -300, 0.25f};
    assert_refused(SOURCE("'class'"), "table: line 2", "column 1 (name)", "expected a number",
                   "\"except\"", "got \"x\"", NULL);
    assert_table(SOURCE("'class', 'except': ['name']"), 2, 2, features, (int32_t[]){0, 1});
    assert_table(SOURCE("'class', 'except': [-3]"), 2, 2, features, (int32_t[]){0, 1});
    assert_refused(SOURCE("'class', 'except': ['nam']"), "no column \"nam\"", "\"name\"", NULL);
    assert_refused(SOURCE("'class', 'except': 'name'"), "\"except\": expected a list", NULL);
    assert_refused(SOURCE("'class', 'except': ['name', 1]"), "\"except\" has column 1 twice", NULL);
    assert_refused(SOURCE("'class', 'except': ['name'], 'columns': ['a']"), "got both", NULL);
    assert_refused(SOURCE("'class', 'except': ['name', 'a', 'b']"), "no column is left", NULL);
}

static void which_columns_are_used_is_told(void **state)
{
    file_write_text("table", "id,a,b,class\n7,1,2,0\n");
    assert_use(SOURCE("'class'"), "label class; 3 features: id, a, b");
    assert_use(SOURCE("'class', 'except': ['id']"), "label class; 2 features: a, b; left out: id");
    assert_use(SOURCE("0, 'columns': ['b']"), "label id; 1 feature: b; left out: a, class");
    file_write_text("table", "7,1,2,0\n");
    assert_use(SOURCE("-1, 'header': false, 'except': [0]"),
               "label 3; 2 features: 1, 2; left out: 0");

    char text[20000] = "class", *end = text + strlen(text);
    for (int i = 0; i < 1000; i++) end += sprintf(end, ",c%d", i);
    end = stpcpy(end, "\n1");
    for (int i = 0; i < 1000; i++) end = stpcpy(end, ",0");
    file_write_text("table", text);
    struct dataset d;
    source_open_ok(SOURCE("'class', 'columns': ['c5']"), &d);
    assert_non_null(strstr(d.use, "left out: c0, c1, "));
    assert_non_null(strstr(d.use, ", ... (999 in all)"));
    dataset_close(&d);
}

static void a_name_that_two_columns_have_is_refused_where_it_is_asked_for(void **state)
{
    file_write_text("table", "a,b,a,class\n1,2,3,0\n");
    assert_refused(SOURCE("'class', 'columns': ['a']"), "columns 0 and 2 are both called \"a\"",
                   "index", NULL);
    assert_refused(SOURCE("'a'"), "columns 0 and 2", NULL);
    assert_refused(SOURCE("'class', 'except': ['a']"), "columns 0 and 2", NULL);
    assert_table(SOURCE("'class'"), 1, 3, (float[]){1, 2, 3}, (int32_t[]){0});
    assert_table(SOURCE("'class', 'columns': [2, 'b']"), 1, 2, (float[]){3, 2}, (int32_t[]){0});
    assert_refused(SOURCE("'class', 'columns': ['b', 1]"), "\"columns\" has column 1 twice", NULL);
}

static void listed_columns_come_in_the_order_of_the_list(void **state)
{
    file_write_text("table", "a,b,c,class\n1,2,3,0\n4,5,6,1\n");
    const float features[] = {3, 1, 6, 4};
    assert_table(SOURCE("'class', 'columns': ['c', 'a']"), 2, 2, features, (int32_t[]){0, 1});
    assert_table(SOURCE("'class', 'columns': [2, -4]"), 2, 2, features, (int32_t[]){0, 1});
}

static void without_a_header_columns_are_counted(void **state)
{
    file_write_text("table", "1,2,0\n4,5,1\n");
    assert_table(SOURCE("2, 'header': false"), 2, 2, (float[]){1, 2, 4, 5}, (int32_t[]){0, 1});
    assert_refused(SOURCE("2"), "line 1", "names of the columns", "header", NULL);
    assert_refused(SOURCE("'x', 'header': false"), "\"x\"", "without a header", NULL);
}

static void quotes_blanks_line_ends_and_marks_are_read_as_people_write_them(void **state)
{
    file_write_text(
        "table", "\xef\xbb\xbf\"a \"\"x\"\", b\" ,\" class\"\r\n\r\n \" 1\t\" ,\t0\r\n\n2,\"1 \"");
    const char *source = SOURCE("'class', 'columns': ['a \\\"x\\\", b']");
    assert_table(source, 2, 1, (float[]){1, 2}, (int32_t[]){0, 1});
}

static void a_quoted_cell_may_hold_line_ends_and_lines_are_counted_on(void **state)
{
    file_write_text("table", "a,note,class\n1,\"two\nlines\",0\nx,\"\",1\n");
    assert_refused(SOURCE("'class', 'except': ['note']"), "table: line 4", "column 0 (a)",
                   "a number", "\"x\"", NULL);
}

static void a_quote_within_a_cell_is_text(void **state)
{
    file_write_text("table", "age,item,class\n1,5\" screen,1\n2,6\" screen,0\n3,phone,1\n");
    assert_table(SOURCE("'class', 'except': ['item']"), 3, 1, (float[]){1, 2, 3},
                 (int32_t[]){1, 0, 1});
    file_write_text("table", "age,item,class\n1,a\"b,1\n2, \"x,\"\"\ny\" ,0\n");
    assert_table(SOURCE("'class', 'except': ['item']"), 2, 1, (float[]){1, 2}, (int32_t[]){1, 0});
}

static void other_delimiters_and_gzip_work(void **state)
{
    const char text[] = "a\tclass\n1\t0\n2\t1\n";
    file_write_gzip("table", text, sizeof text - 1);
    assert_table(SOURCE("'class', 'delimiter': '\\t'"), 2, 1, (float[]){1, 2}, (int32_t[]){0, 1});
    assert_table(SOURCE("'class', 'delimiter': '\\\\t'"), 2, 1, (float[]){1, 2},
                 (int32_t[]){0, 1}); /* as a shell passes it on */
    assert_refused(SOURCE("'class', 'delimiter': ', '"), "delimiter", NULL);
    assert_refused(SOURCE("'class', 'delimiter': ''"), "delimiter", NULL);
    assert_refused(SOURCE("['a', 'class']"), "got a list; \"labels\" of the source", NULL);
}

/* Also where one is cut by the end of what was read at once, or half of one stands in a cell. */
static void a_delimiter_may_have_several_characters(void **state)
{
    const float features[] = {1, 2, 3, 4};
    struct dataset d;
    file_write_text("table", "a::b::class\n1:: 2 ::0\r\n3::4::1");
    assert_table(SOURCE("'class', 'delimiter': '::'"), 2, 2, features, (int32_t[]){0, 1});
    file_write_text("table", "a||b||class\n1||\"2\"||0\n\n3||4||1\n");
    assert_table(SOURCE("'class', 'delimiter': '||'"), 2, 2, features, (int32_t[]){0, 1});
    file_write_text("table", "1::x:y::0\n1::\"p::q\nr\"::1\n1:::z::0\n");
    source_open_ok(
        "{'format': 'csv', 'file': 'table', 'delimiter': '::', 'header': false, 'names': "
        "['n', 'w', 'y'], 'label': 'y'}, 'columns': [{'column': 'vocabulary', 'name': "
        "'w', 'words': ['x:y', 'p::q\\nr', ':z']}], 'batch_size': 1",
        &d);
    assert_memory_equal(d.columns[1].at, ((int64_t[]){0, 1, 2}), 24);
    dataset_close(&d);
    char *text = malloc(1 << 22), *to = text;
    for (int i = 0; i < 300000; i++) to += sprintf(to, "%d::%d::%d\n", i % 1000, i % 77, i & 1);
    file_write_text("table", text);
    free(text);
    source_open_ok(SOURCE("2, 'header': false, 'delimiter': '::'"), &d);
    assert_int_equal(d.rows, 300000);
    for (int i = 0; i < 300000; i++) {
        const float *row = (const float *)d.columns[FEATURES].at + 2 * (int64_t)i;
        assert_true(row[0] == (float)(i % 1000) && row[1] == (float)(i % 77));
    }
    dataset_close(&d);
    file_write_text("table", "a::b\n1::0\n");
    assert_refused(SOURCE("'b'"), "\"delimiter\" another", NULL);
    assert_refused(SOURCE("'b', 'delimiter': ''"), "expected 1 to 8 characters", NULL);
    assert_refused(SOURCE("'b', 'delimiter': ':\\n'"), "expected 1 to 8 characters", NULL);
}

static void numbers_are_read_to_the_last_bit(void **state)
{
    static const char *const texts[] = {
        "0.1", "-0.0", "123456789012345",        "3.4028235e38", "1e-45", "00001.50", "+7",
        "5.",  ".5E1", "0.30000000000000004441",
    };
    char text[1024] = "class";
    for (int i = 0; i < 10; i++) strcat(text, ",x");
    strcat(text, "\n1");
    for (int i = 0; i < 10; i++) strcat(strcat(text, ","), texts[i]);
    file_write_text("table", text);
    float features[10];
    for (int i = 0; i < 10; i++) features[i] = (float)strtod(texts[i], NULL);
    assert_table(SOURCE("0"), 1, 10, features, (int32_t[]){1});
}

static void missing_values_are_replaced_or_refused(void **state)
{
    file_write_text("table", "a,b,class\n1,,0\n?,5,1\nNA, nan ,2\n");
    assert_table(SOURCE("'class', 'missing': -1.5"), 3, 2,
                 (float[]){1, -1.5f, -1.5f, 5, -1.5f, -1.5f}, (int32_t[]){0, 1, 2});
    assert_table(SOURCE("'class', 'missing': 0"), 3, 2, (float[]){1, 0, 0, 5, 0, 0},
                 (int32_t[]){0, 1, 2});
    assert_refused(SOURCE("'class'"), "line 2", "column 1 (b)", "missing", NULL);
    assert_refused(SOURCE("'class', 'missing': 'x'"), "\"missing\"", NULL);
    file_write_text("table", "a,class\n1,\n");
    assert_refused(SOURCE("'class', 'missing': 0"), "line 2", "column 1 (class)", NULL);
}

static void labels_are_classes_or_numbers(void **state)
{
    file_write_text("table", "a,y\n1,0.5\n2,-3\n");
    assert_refused(SOURCE("'y'"), "line 2", "column 1 (y)", "whole number", "0.5", NULL);
    struct dataset d;
    source_open_ok(SOURCE("'y', 'label_type': 'number'"), &d);
    assert_int_equal(d.columns[LABELS].dtype, FLOAT32);
    assert_memory_equal(d.columns[LABELS].at, ((float[]){0.5f, -3}), 8);
    dataset_close(&d);
    file_write_text("table", "a,y\n1,3000000000\n");
    assert_refused(SOURCE("'y'"), "line 2", "whole number", NULL);
}

static void names_stand_for_a_header_or_replace_it(void **state)
{
    file_write_text("table", "1,2,0\n4,5,1\n");
    assert_table(SOURCE("'y', 'header': false, 'names': ['a', 'b', 'y'], 'columns': ['b']"), 2, 1,
                 (float[]){2, 5}, (int32_t[]){0, 1});
    assert_refused(SOURCE("'y', 'header': false, 'names': ['a', 'y']"), "line 1",
                   "expected 2 cells", "got 3", NULL);
    assert_refused(SOURCE("'z', 'header': false, 'names': ['a', 'b', 'y']"), "no column \"z\"",
                   NULL);
    file_write_text("table", "|1x3 Cross validator\n1,2,0\n");
    assert_table(SOURCE("'y', 'names': ['a', 'b', 'y']"), 1, 2, (float[]){1, 2}, (int32_t[]){0});
}

static void one_word_may_be_the_positive_label(void **state)
{
    file_write_text("table", "a,y\n1, >50K\n2,<=50K\n3,\">50K\"\n4,>50K.\n");
    assert_table(SOURCE("'y', 'positive': '>50K'"), 4, 1, (float[]){1, 2, 3, 4},
                 (int32_t[]){1, 0, 1, 0});
    file_write_text("table", "a,y\n1,\n");
    assert_refused(SOURCE("'y', 'positive': '>50K'"), "line 2", "column 1 (y)", "expected a label",
                   NULL);
}

static void what_is_not_a_number_is_refused(void **state)
{
    static const char *const bad[] = {"x",   "1x",   "0x10", "1e999", "inf", "-infinity",
                                      "1 2", "1..2", "--1",  "-",     ".",   "e5",
                                      "1e",  "1,5",  "\x01", "1\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64] = "a,class\n1,0\n\"";
        file_write_text("table", strcat(strcat(text, bad[i]), "\",1\n"));
        assert_refused(SOURCE("'class'"), "table: line 3", "column 0 (a)", "expected a number",
                       NULL);
    }
    file_write("table", "a,class\n1,0\n2\0,1\n", 17);
    assert_refused(SOURCE("'class'"), "line 3", "has a NUL byte", NULL);
}

static void rows_of_another_width_are_refused(void **state)
{
    file_write_text("table", "a,b,class\n1,2,0\n1,0\n");
    assert_refused(SOURCE("'class'"), "line 3", "expected 3 cells", "got 2", NULL);
    file_write_text("table", "a,b,class\n1,0\n");
    assert_refused(SOURCE("'class'"), "line 2", "expected 3 cells", "got 2", NULL);
    file_write_text("table", "a,b,class\n1,2,0,4\n");
    assert_refused(SOURCE("'class'"), "line 2", "expected 3 cells", "got 4", NULL);
}

static void columns_that_do_not_exist_are_refused(void **state)
{
    file_write_text("table", "age,height,class\n1,2,0\n");
    assert_refused(SOURCE("'clas'"), "no column \"clas\"", "\"class\"", NULL);
    assert_refused(SOURCE("3"), "column 3", "expected -3 to 2", NULL);
    assert_refused(SOURCE("-4"), "column -4", NULL);
    assert_refused(SOURCE("1.5"), "the name or the index", NULL);
    assert_refused(SOURCE("'class', 'columns': ['age', 'weight']"), "no column \"weight\"", NULL);
    assert_refused(SOURCE("'class', 'columns': ['class']"), "the label's column", NULL);
    assert_refused(SOURCE("'class', 'columns': []"), "columns", NULL);
    assert_refused(SOURCE("'class', 'columns': 'age'"), "expected a list", NULL);
    assert_refused(SOURCE("'class', 'columns': 7"), "expected a list", NULL);
}

static void a_table_without_rows_or_numbers_is_refused(void **state)
{
    file_write_text("table", "a,class\n\n\r\n");
    assert_refused(SOURCE("'class'"), "no row of data", NULL);
    file_write_text("table", "\n");
    assert_refused(SOURCE("'class'"), "no row of data", NULL);
    file_write_text("table", "class\n0\n");
    assert_refused(SOURCE("'class'"), "no column is left", NULL);
    file_write_text("table", "");
    assert_refused(SOURCE("'class'"), "empty", NULL);
}

static void lines_and_cells_have_limits(void **state)
{
    size_t bytes = 3 << 20;
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, '1', bytes);
    text[bytes] = '\0';
    file_write_text("table", text);
    assert_refused(SOURCE("0, 'header': false"), "line 1", "longer than 1048576 bytes", NULL);
    memcpy(text, "a,class\n\"", 9);
    file_write_text("table", text);
    assert_refused(SOURCE("'class'"), "line 2", "quote", NULL);
    memset(text, ',', 70000);
    memcpy(text + 70000, "\n", 2);
    file_write_text("table", text);
    assert_refused(SOURCE("0"), "line 1", "more than 65536 cells", NULL);
    free(text);
    file_write_text("table", "a,class\n\"1,0\n");
    assert_refused(SOURCE("'class'"), "line 2", "quote is opened and the file ends", NULL);
}

static void a_table_longer_than_the_buffer_is_read_to_its_end(void **state)
{
    enum { ROWS = 250000 };
    char *text = malloc(ROWS * 16), *at = text;
    assert_non_null(text);
    for (int i = 0; i < ROWS; i++) at += sprintf(at, "%d,%d\n", i, i % 10);
    file_write("table", text, (size_t)(at - text));
    file_write_gzip("packed", text, (size_t)(at - text));
    free(text);
    for (int packed = 0; packed < 2; packed++) {
        struct dataset d;
        source_open_ok(packed ? "{'format': 'csv', 'file': 'packed', 'label': 1, 'header': false}"
                              : SOURCE("1, 'header': false"),
                       &d);
        assert_int_equal(d.rows, ROWS);
        for (int i = 0; i < ROWS; i++) {
            assert_true(((const float *)d.columns[FEATURES].at)[i] == (float)i);
            assert_int_equal(((const int32_t *)d.columns[LABELS].at)[i], i % 10);
        }
        dataset_close(&d);
    }
}

static void no_cut_and_no_flipped_byte_crashes(void **state)
{
    char text[] = "\"a\"\"\",b,class\r\n1.5,\"2\",0\r\n-3e4,\" 4 \",1\r\n";
    static const char telling[] = "\n\r\t\",. -+9ex?\x01\x80\xff"; /* and the NUL at its end */
    for (size_t length = 1; length < sizeof text; length++) {
        struct dataset d = {0};
        file_write("table", text, length);
        err e = source_open(SOURCE("'class'"), &d);
        assert_true(e == OK || e == ERR_INPUT);
        dataset_close(&d);
    }
    for (size_t i = 0; i < sizeof text - 1; i++) {
        for (size_t b = 0; b < sizeof telling; b++) {
            char kept = text[i];
            struct dataset d = {0};
            text[i] = telling[b];
            file_write("table", text, sizeof text - 1);
            text[i] = kept;
            err e = source_open(SOURCE("'class'"), &d);
            assert_true(e == OK || e == ERR_INPUT);
            dataset_close(&d);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_but_the_label_is_a_feature),
        cmocka_unit_test(columns_of_words_are_left_out_by_name_only),
        cmocka_unit_test(which_columns_are_used_is_told),
        cmocka_unit_test(a_name_that_two_columns_have_is_refused_where_it_is_asked_for),
        cmocka_unit_test(listed_columns_come_in_the_order_of_the_list),
        cmocka_unit_test(without_a_header_columns_are_counted),
        cmocka_unit_test(quotes_blanks_line_ends_and_marks_are_read_as_people_write_them),
        cmocka_unit_test(a_quoted_cell_may_hold_line_ends_and_lines_are_counted_on),
        cmocka_unit_test(a_quote_within_a_cell_is_text),
        cmocka_unit_test(other_delimiters_and_gzip_work),
        cmocka_unit_test(a_delimiter_may_have_several_characters),
        cmocka_unit_test(numbers_are_read_to_the_last_bit),
        cmocka_unit_test(missing_values_are_replaced_or_refused),
        cmocka_unit_test(labels_are_classes_or_numbers),
        cmocka_unit_test(names_stand_for_a_header_or_replace_it),
        cmocka_unit_test(one_word_may_be_the_positive_label),
        cmocka_unit_test(what_is_not_a_number_is_refused),
        cmocka_unit_test(rows_of_another_width_are_refused),
        cmocka_unit_test(columns_that_do_not_exist_are_refused),
        cmocka_unit_test(a_table_without_rows_or_numbers_is_refused),
        cmocka_unit_test(lines_and_cells_have_limits),
        cmocka_unit_test(a_table_longer_than_the_buffer_is_read_to_its_end),
        cmocka_unit_test(no_cut_and_no_flipped_byte_crashes),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
