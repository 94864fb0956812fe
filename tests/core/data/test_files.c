/* Sources of several files: how they are named, rows of all of them, and faults by file. */
#include "tests/core/data/support.h"

#include <stdio.h>
#include <string.h>

#include "core/data/parts.h"

#define CSV(file) "{'format': 'csv', 'file': " file ", 'label': 'y'}"

static void write_three(void)
{
    file_write_text("a-2.csv", "x,y\n3,1\n");
    file_write_text("a-1.csv", "x,y\n1,0\n2,0");
    file_write_text("b.csv", "x,y\n4,1\n5,0\n6,1\n");
}

static void assert_features(const char *source, const float *features, int64_t rows)
{
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.rows, rows);
    assert_memory_equal(d.columns[FEATURES].at, features, (size_t)rows * sizeof(float));
    dataset_close(&d);
}

static void files_are_one_a_list_a_pattern_or_names_in_a_file(void **state)
{
    const float all[] = {1, 2, 3, 4, 5, 6};
    write_three();
    assert_features(CSV("'b.csv'"), all + 3, 3);
    assert_features(CSV("['b.csv']"), all + 3, 3);
    assert_features(CSV("['a-1.csv', 'a-2.csv', 'b.csv']"), all, 6);
    assert_features(CSV("['a-?.csv', 'b*']"), all, 6);
    assert_features(CSV("'*.csv'"), all, 6);
    assert_features(CSV("'[a]-*'"), all, 3);
    file_write_text("names.txt", "# all\n\na-1.csv\r\n x-2*\nb.csv  ");
    assert_refused(CSV("'@names.txt'"), "names.txt: line 4", "no file fits \"x-2*\"", NULL);
    file_write_text("names.txt", "\xef\xbb\xbf# all\n\na-1.csv\r\n\t a-2*\nb.csv  ");
    assert_features(CSV("'@names.txt'"), all, 6);
    assert_features(CSV("['b.csv', '@names.txt']"), (float[]){4, 5, 6, 1, 2, 3, 4, 5, 6}, 9);
}

/* Also where the folder has letters that mean something in patterns */
static void a_name_that_looks_like_a_pattern_is_a_name(void **state)
{
    file_write_text("c[1].csv", "x,y\n7,0\n");
    file_write_text("c1.csv", "x,y\n8,0\n");
    assert_features(CSV("'c[1].csv'"), (float[]){7}, 1);
    assert_features(CSV("'c[1-9].csv'"), (float[]){8}, 1);
    assert_features(CSV("'c*'"), (float[]){8, 7}, 2);
    char path[1024];
    snprintf(path, sizeof path, CSV("'%s/c?.csv'"), folder_path());
    assert_features(path, (float[]){8}, 1);
}

static void what_is_not_found_is_named(void **state)
{
    write_three();
    assert_refused(CSV("[]"), "a file, or a list of files", NULL);
    assert_refused(CSV("7"), "a file, or a list of files", "got 7", NULL);
    assert_refused(CSV("['b.csv', 7]"), "file[1]", "a string", NULL);
    assert_refused(CSV("'no*'"), "\"file\"", "no file fits \"no*\" (relative paths begin at /",
                   "--data_dir", NULL);
    assert_refused(CSV("['b.csv', 'none.csv']"), "none.csv", "No such file", NULL);
    assert_refused(CSV("'@none.txt'"), "none.txt", "No such file", NULL);
    file_write_text("names.txt", "b.csv\nnone.csv\n");
    assert_refused(CSV("'@names.txt'"), "names.txt: line 2: none.csv: No such file",
                   "relative paths begin at", NULL);
    file_write_text("names.txt", "\n");
    assert_refused(CSV("'@names.txt'"), "names.txt: it names no file", NULL);
    char line[5000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    file_write_text("names.txt", line);
    assert_refused(CSV("'@names.txt'"), "names.txt: line 1: a name of more than", NULL);
}

static void faults_name_the_file_that_has_them(void **state)
{
    struct dataset d;
    write_three();
    file_write_text("bad.csv", "x,y\n4,1\nfive,0\n");
    assert_refused(CSV("['b.csv', 'bad.csv']"), "bad.csv: line 3", "five", NULL);
    file_write_text("bad.csv", "x,z,y\n4,1,1\n");
    assert_refused(CSV("['b.csv', 'bad.csv']"), "bad.csv: expected features float32 [1]", "[2]",
                   NULL);
    file_write_text("bad.csv", "z,y\n4,1\n");
    assert_refused(CSV("['b.csv', 'bad.csv']"),
                   "bad.csv: its features are z; those of the model are x", NULL);
    file_write_text("bad.csv", "x,y\n4,1\n5,7\n");
    source_open_ok(CSV("['a-*.csv', 'bad.csv', 'b.csv']"), &d);
    assert_non_null(strstr(d.name, "a-1.csv and 3 more"));
    const struct transform t = {
        .scale = 1,
        .labels = {{.dtype = INT32, .rule = LABELS_CLASSES, .classes = 2, .loss = "a loss"}},
        .label_count = 1};
    assert_int_equal(transform_check(&t, &d), ERR_INPUT);
    assert_non_null(strstr(error_text(), "bad.csv: row 2: label 7"));
    dataset_close(&d);
}

static void assert_pairs(const char *source, const float *features, int64_t rows)
{
    struct dataset d;
    source_open_ok(source, &d);
    assert_int_equal(d.rows, rows);
    assert_memory_equal(d.columns[FEATURES].at, features, 2 * (size_t)rows * sizeof(float));
    dataset_close(&d);
}

/* Files of one source may have their columns in any order, in memory and as a stream. */
static void features_are_found_by_name(void **state)
{
#define ORDERS(stream)                                                                             \
    "{'format': 'csv', 'file': ['ab.csv', 'ba.csv', 'yba.csv'], 'label': 'y', 'stream': '" stream  \
    "'}"
    file_write_text("ab.csv", "a,b,y\n1,2,0\n");
    file_write_text("ba.csv", "b,a,y\n4,3,1\n");
    file_write_text("yba.csv", "y,b,a\n0,6,5\n");
    assert_pairs(CSV("['ab.csv', 'ba.csv', 'yba.csv']"), (float[]){1, 2, 3, 4, 5, 6}, 3);
    assert_stream_is_memory(ORDERS("never"), ORDERS("always"));
    assert_pairs(CSV("['ba.csv', 'ab.csv']"), (float[]){4, 3, 2, 1}, 2);
    assert_pairs("{'format': 'csv', 'file': ['ab.csv', 'ba.csv'], 'label': 'y', 'columns': "
                 "['b', 'a']}",
                 (float[]){2, 1, 4, 3}, 2);
    file_write_text("bc.csv", "b,c,y\n4,3,1\n");
    assert_refused(CSV("['ab.csv', 'bc.csv']"), "bc.csv", "b, c", "a, b", "--changed_features",
                   NULL);
}

static void skip_and_take_count_rows_of_all_files(void **state)
{
    write_three();
    assert_features("{'format': 'csv', 'file': '*-*.csv', 'label': 'y', 'skip': 1, 'take': 2}",
                    (float[]){2, 3}, 2);
    assert_features("{'format': 'csv', 'file': ['a-1.csv', 'a-2.csv', 'b.csv'], 'label': 'y', "
                    "'skip': 2}",
                    (float[]){3, 4, 5, 6}, 4);
}

/* A fault behind them is none. */
static void what_take_leaves_out_is_not_read(void **state)
{
    struct dataset d;
    write_three();
    file_write_text("c.csv", "x,y\n7,1\nbad,1\n");
#define TAKE(take)                                                                                 \
    "{'format': 'csv', 'file': ['b.csv', 'c.csv'], 'label': 'y', 'skip': 1, 'take': " take "}"
#define NUMERIC ", 'columns': [{'column': 'numeric', 'name': 'x'}], 'batch_size': 1"
    source_open_ok(TAKE("3"), &d);
    assert_int_equal(d.rows, 3);
    assert_memory_equal(d.columns[FEATURES].at, ((float[]){5, 6, 7}), 12);
    dataset_close(&d);
    source_open_ok(TAKE("3") NUMERIC, &d);
    assert_int_equal(d.rows, 3);
    assert_memory_equal(d.columns[1].at, ((float[]){5, 6, 7}), 12);
    dataset_close(&d);
    assert_refused(TAKE("4"), "c.csv: line 3", NULL);
    assert_refused(TAKE("4") NUMERIC, "c.csv: line 3", NULL);
}

/* A frame of one block as it is, or of one byte that is repeated. */
static size_t zstd_frame(uint8_t *to, int is_repeated, const void *text, size_t bytes)
{
    static const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 0x58}; /* a window of 2 MiB */
    const uint32_t block = 1 | (uint32_t)is_repeated << 1 | (uint32_t)bytes << 3;
    const size_t stored = is_repeated ? 1 : bytes;
    memcpy(to, head, sizeof head);
    for (int i = 0; i < 3; i++) to[sizeof head + (size_t)i] = (uint8_t)(block >> 8 * i);
    memcpy(to + sizeof head + 3, text, stored);
    return sizeof head + 3 + stored;
}

static void what_is_no_gzip_any_more_is_called_corrupt(void **state)
{
    uint8_t packed[256];
    char text[512] = "x,y\n1,0\n";
    for (int i = 0; i < 60; i++) sprintf(text + strlen(text), "%d,1\n", i);
    const size_t bytes = gzip_pack(text, strlen(text), packed, sizeof packed);
    packed[10] |= 6; /* a kind of block that there is not */
    file_write("bad.gz", packed, bytes);
    assert_refused(CSV("'bad.gz'"), "bad.gz: gzip data is corrupt: invalid block type, at byte",
                   NULL);
}

#ifdef HAS_ZSTD
/* Frames are one after the other, some to be passed over; told by content. */
static void what_zstd_packed_is_read(void **state)
{
    static const char passed[] = "\x50\x2a\x4d\x18\x03\0\0\0"
                                 "abc";
    const char text[] = "x,y\n1,0\n";
    uint8_t packed[256];
    memcpy(packed, passed, sizeof passed - 1);
    size_t bytes = sizeof passed - 1;
    bytes += zstd_frame(packed + bytes, 0, text, sizeof text - 1);
    bytes += zstd_frame(packed + bytes, 0, "2,1\n", 4);
    file_write("b.csv", packed, bytes);
    assert_features(CSV("'b.csv'"), (float[]){1, 2}, 2);
    file_write("cut.csv", packed, bytes - 2);
    assert_refused(CSV("'cut.csv'"), "cut.csv: zstd data is cut off", NULL);
    packed[bytes - 5] |= 6; /* a kind of block that there is not */
    file_write("bad.csv", packed, bytes);
    assert_refused(CSV("'bad.csv'"), "bad.csv: zstd data is ", NULL);
}

/* More comes out of a few bytes than is asked for at once; nothing is left over at the end. */
static void what_unpacks_to_much_is_whole(void **state)
{
    enum { LINES = 100000 };
    uint8_t packed[64];
    struct dataset d;
    size_t bytes = zstd_frame(packed, 0, "x,y\n1,0\n", 8);
    bytes += zstd_frame(packed + bytes, 1, "\n", LINES);
    file_write("b.csv", packed, bytes);
    source_open_ok(CSV("'b.csv'"), &d);
    assert_int_equal(d.rows, 1);
    dataset_close(&d);
}
#else
static void what_zstd_packed_is_read(void **state)
{
    uint8_t packed[64];
    file_write("b.csv", packed, zstd_frame(packed, 0, "x,y\n", 4));
    assert_refused(CSV("'b.csv'"), "b.csv: packed by zstd", "built without", "libzstd-dev", NULL);
}
#endif

/* raw and idx have a second file, of labels. */
static void files_of_labels_go_with_files_of_features(void **state)
{
    struct dataset d;
    file_write("x0", (uint8_t[]){1, 2, 3, 4}, 4);
    file_write("x1", (uint8_t[]){5, 6}, 2);
    file_write("y0", (uint8_t[]){0, 1}, 2);
    file_write("y1", (uint8_t[]){7}, 1);
#define RAW(labels)                                                                                \
    "{'format': 'raw', 'file': 'x?', 'labels': " labels ", 'shape': [2], 'dtype': 'uint8', "       \
    "'label_dtype': 'uint8'}"
    source_open_ok(RAW("'y?'"), &d);
    assert_int_equal(d.rows, 3);
    assert_memory_equal(d.columns[FEATURES].at, ((uint8_t[]){1, 2, 3, 4, 5, 6}), 6);
    assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){0, 1, 7}), 12);
    dataset_close(&d);
    assert_refused(RAW("'y0'"), "\"labels\": expected 2 files, as \"file\" has, got 1", NULL);
    assert_refused(RAW("['y1', 'y0']"), "y1", "labels", NULL);
    assert_int_equal(source_open_to_predict(RAW("'none'"), &d), OK);
    assert_int_equal(d.rows, 3);
    assert_null(d.columns[LABELS].at);
    dataset_close(&d);
}

#define WITH_COLUMNS(files)                                                                        \
    CSV(files) ", 'columns': [{'column': 'numeric', 'name': 'x'}], 'batch_size': 1"

static void columns_are_made_of_the_cells_of_all_files(void **state)
{
    struct dataset d;
    write_three();
    source_open_ok(WITH_COLUMNS("['b.csv', 'a-1.csv']"), &d);
    assert_int_equal(d.rows, 5);
    assert_memory_equal(d.columns[1].at, ((float[]){4, 5, 6, 1, 2}), 20);
    assert_memory_equal(d.columns[LABELS].at, ((int32_t[]){1, 0, 1, 0, 0}), 20);
    assert_non_null(strstr(d.name, "b.csv and 1 more"));
    dataset_close(&d);
    file_write_text("bad.csv", "x,y\n4,1\nfive,0\n");
    assert_refused(WITH_COLUMNS("['b.csv', 'bad.csv']"), "bad.csv: line 3: column \"x\"", "five",
                   NULL);
    file_write_text("turned.csv", "y,x\n1,7\n"); /* by their names */
    source_open_ok(WITH_COLUMNS("['b.csv', 'turned.csv']"), &d);
    assert_int_equal(d.rows, 4);
    assert_true(((float *)d.columns[1].at)[3] == 7);
    assert_int_equal(((int32_t *)d.columns[LABELS].at)[3], 1);
    dataset_close(&d);
    file_write_text("bad.csv", "x,y,z\n4,1,1\n");
    assert_refused(WITH_COLUMNS("['b.csv', 'bad.csv']"), "bad.csv: expected 2 cells", "got 3",
                   NULL);
    assert_refused(WITH_COLUMNS("['b.csv', 'none.csv']"), "none.csv: No such file", NULL);
}

/* Of every format, in every place, in memory and as a stream: they add nothing. */
static void files_without_rows_add_none(void **state)
{
    static const char *const places[] = {"'none', 'a', 'b'", "'a', 'none', 'b'", "'a', 'b', 'none'",
                                         "'none', 'none', 'a', 'none', 'b'"};
    static const struct {
        const char *a, *b, *none[3], *source;
    } formats[] = {
        {"x,y\n1,0\n", "x,y\n2,1\n", {"", "x,y\n", "\n\n"}, "'format': 'csv', 'label': 'y'"},
        {"1,0\n",
         "2,1\n",
         {"", "\n"},
         "'format': 'csv', 'names': ['x', 'y'], 'header': false, "
         "'label': 'y'"},
        {"{\"x\": 1, \"y\": 0}",
         "{\"x\": 2, \"y\": 1}",
         {"", " \n"},
         "'format': 'jsonl', 'label': 'y'"},
    };
    static const char *const streams[] = {"never", "always"};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        file_write_text("a", formats[f].a);
        file_write_text("b", formats[f].b);
        for (size_t i = 0; i < 4 * 3 * 2 * 2; i++) {
            char of_memory[512], of_stream[512];
            const char *none = formats[f].none[i / 4 % 3], *place = places[i % 4];
            const bool is_packed = i / 24, has_columns = f == 2 || i / 12 % 2;
            const char *columns =
                ", 'columns': [{'column': 'numeric', 'name': 'x'}], 'batch_size': 1";
            const char *const form = "{%s, 'file': [%s], 'stream': '%s'}%s";
            if (!none) continue;
            if (is_packed)
                file_write_gzip("none", none, strlen(none));
            else
                file_write_text("none", none);
            snprintf(of_memory, sizeof of_memory, form, formats[f].source, place, streams[0],
                     has_columns ? columns : "");
            snprintf(of_stream, sizeof of_stream, form, formats[f].source, place, streams[1],
                     has_columns ? columns : "");
            assert_stream_is_memory(of_memory, of_stream);
            struct dataset d;
            source_open_ok(of_memory, &d);
            assert_int_equal(d.rows, 2);
            assert_string_equal(dataset_row_part(&d, 1).name + strlen(folder_path()), "/b");
            assert_int_equal(dataset_row_part(&d, 1).row, 0);
            dataset_close(&d);
        }
    }
}

/* Wherever they stand, the last one too, and whether or not they are opened; once. */
static void how_many_files_have_no_row_is_said(void **state)
{
    static const char *const none[] = {"", "\n\n", "\xef\xbb\xbf", "  ", "y,x\n"};
    static const char *const formats[] = {"csv", "jsonl"};
    char name[16], files[64], source[512], expected[128], said[4096];
    file_write_text("csv", "y,x\n1,2\n");
    file_write_text("jsonl", "{\"y\": 1, \"x\": 2}\n");
    for (size_t i = 0; i < 4 * 3 * 2 * 2 + 3 * 2; i++) { /* a header has csv alone */
        const int is_first = i % 3 != 1, is_last = i % 3 != 0;
        const char *format = formats[i / 24 % 2];
        snprintf(name, sizeof name, "none-%zu", i);
        snprintf(files, sizeof files, "%s%s%s'%s'%s%s%s", is_first ? "'" : "", is_first ? name : "",
                 is_first ? "', " : "", format, is_last ? ", '" : "", is_last ? name : "",
                 is_last ? "'" : "");
        file_write_text(name, none[i < 48 ? i / 6 % 4 : 4]);
        snprintf(source, sizeof source,
                 "{'format': '%s', 'file': [%s], 'label': 'y', 'stream': '%s'}, "
                 "'columns': [{'column': 'numeric', 'name': 'x'}], 'batch_size': 1",
                 format, files, i / 3 % 2 ? "always" : "never");
        snprintf(expected, sizeof expected,
                 "%d of %d files have no row of data: ", is_first + is_last,
                 is_first + is_last + 1);
        source_said(source, said, sizeof said);
        const char *at = strstr(said, expected);
        assert_non_null(at);
        assert_non_null(strstr(at, name));
        source_said(source, said, sizeof said);
        assert_null(strstr(said, "no row"));
    }
}

static void all_files_without_rows_are_a_mistake(void **state)
{
    file_write_text("a", "x,y\n");
    file_write_text("b", "");
    assert_refused(CSV("['a', 'b']"), "a and 1 more: no file has a row of data", NULL);
    assert_refused(WITH_COLUMNS("['b', 'a']"), "b and 1 more: no file has a row of data", NULL);
    assert_refused("{'format': 'csv', 'file': ['a', 'b'], 'label': 'y', 'stream': 'always'}, "
                   "'columns': [{'column': 'numeric', 'name': 'x'}], 'batch_size': 1",
                   "no file has a row", NULL);
    assert_refused(CSV("'b'"), "b: the file is empty", NULL);
    assert_refused(CSV("'a'"), "a: the file has no row of data", NULL);
}

static void bytes_without_rows_are_passed_over_in_formats_without_text(void **state)
{
    struct dataset d;
    file_write("x0", "", 0);
    file_write("x1", (uint8_t[]){5, 6}, 2);
    file_write("y0", "", 0);
    file_write("y1", (uint8_t[]){7}, 1);
    source_open_ok(RAW("'y?'"), &d);
    assert_int_equal(d.rows, 1);
    dataset_close(&d);
}

static void what_is_packed_by_others_is_named(void **state)
{
    static const struct {
        const char *head, *named;
        size_t bytes;
    } files[] = {
        {"BZh91AY&SY", "packed by bzip2", 10},
        {"\xfd"
         "7zXZ\0\0\4",
         "packed by xz", 8},
        {"PK\3\4\x14\0", "a zip archive", 6},
        {"PAR1\x15", "a Parquet file", 5},
        {"\xff\xfex\0,\0", "text in UTF-16", 6},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        file_write("b.csv", files[i].head, files[i].bytes);
        assert_refused(CSV("'b.csv'"), "b.csv: is ", files[i].named, "not read here", NULL);
        assert_refused("{'format': 'tfrecord', 'file': 'b.csv', 'label': 'y'}, 'columns': "
                       "[{'column': 'numeric', 'name': 'x'}], 'batch_size': 1",
                       files[i].named, NULL);
        assert_refused("{'format': 'libsvm', 'file': 'b.csv', 'features': 2}", files[i].named,
                       NULL);
        file_write_text("words.csv", "x,y\ncat,0\n");
        assert_refused("{'format': 'csv', 'file': 'words.csv', 'label': 'y'}, 'columns': "
                       "[{'column': 'vocabulary', 'name': 'x', 'file': 'b.csv'}], 'batch_size': 1",
                       files[i].named, NULL);
    }
    file_write("b.csv", "x\0,\0y\0\n\0", 8); /* without a mark in front */
    assert_refused(CSV("'b.csv'"), "b.csv: is text in UTF-16", "not read here", NULL);
}

/* What other programs leave beside data: markers, checksums, what is not whole yet */
static void a_pattern_passes_hidden_names_over(void **state)
{
    write_three();
    file_write_text("_SUCCESS", "");
    file_write_text("._b.csv", "x");
    file_write_text("_temporary.csv", "x");
    assert_features(CSV("'*'"), (float[]){1, 2, 3, 4, 5, 6}, 6);
    assert_refused(CSV("'?S*'"), "no file fits", "begin with . or _", NULL);
    file_write_text("_c.csv", "x,y\n7,0\n");
    assert_features(CSV("'_c*'"), (float[]){7}, 1);
    assert_features(CSV("'_c.csv'"), (float[]){7}, 1);
    char path[1200];
    snprintf(path, sizeof path, "%s/._b.csv", folder_path());
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_without_rows_add_none, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(how_many_files_have_no_row_is_said, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(all_files_without_rows_are_a_mistake, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(bytes_without_rows_are_passed_over_in_formats_without_text,
                                        folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(what_is_packed_by_others_is_named, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(a_pattern_passes_hidden_names_over, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(files_are_one_a_list_a_pattern_or_names_in_a_file,
                                        folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(a_name_that_looks_like_a_pattern_is_a_name, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(what_is_not_found_is_named, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(faults_name_the_file_that_has_them, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(features_are_found_by_name, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(skip_and_take_count_rows_of_all_files, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(what_take_leaves_out_is_not_read, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(what_zstd_packed_is_read, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(what_is_no_gzip_any_more_is_called_corrupt, folder_make,
                                        folder_remove),
#ifdef HAS_ZSTD
        cmocka_unit_test_setup_teardown(what_unpacks_to_much_is_whole, folder_make, folder_remove),
#endif
        cmocka_unit_test_setup_teardown(files_of_labels_go_with_files_of_features, folder_make,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(columns_are_made_of_the_cells_of_all_files, folder_make,
                                        folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
