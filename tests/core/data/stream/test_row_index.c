/* Indexes of rows that are kept in files: used as long as they are whole, and made again. */
#include "tests/core/data/support.h"

#include "core/data/stream/row_index.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 40000, INDEX_BYTES_MAX = 4096, NAME_BYTES_MAX = 512 };

static const char source[] =
    "{'format': 'csv', 'file': 'kept.csv', 'label': 'y', 'stream': 'always'}, "
    "'columns': [{'column': 'numeric', 'name': 'x'}]";

static void write_rows(void)
{
    char *text = malloc((size_t)ROWS * 16 + 16);
    size_t used = (size_t)sprintf(text, "x,y\n");
    for (int i = 0; i < ROWS; i++) used += (size_t)sprintf(text + used, "%d,%d\n", i, i % 7);
    file_write("kept.csv", text, used);
    free(text);
}

/* The one that is kept; "": none */
static void find_index(char name[NAME_BYTES_MAX])
{
    DIR *list = opendir(folder_path());
    assert_non_null(list);
    *name = '\0';
    for (struct dirent *entry; (entry = readdir(list));)
        if (strncmp(entry->d_name, "rows-", 5) == 0) strcpy(name, entry->d_name);
    closedir(list);
}

/* All rows of an epoch, in the order in which they come */
static void read_rows(float *rows)
{
    struct opened_source o;
    const struct stream_options options = {
        .transform = {.scale = 1, .labels = {{.dtype = INT32}}, .label_count = 1},
        .batch = 100,
        .shuffle = true,
        .workers = 1,
        .prefetch = 1,
    };
    source_open_batches_ok(source, folder_path(), &o);
    assert_int_equal(o.source->calls->begin(o.source, &options), OK);
    for (int i = 0; i < ROWS / 100; i++) {
        struct batch b;
        assert_int_equal(o.source->calls->next(o.source, &b), OK);
        memcpy(rows + 100 * i, b.columns[1].at, 100 * sizeof *rows);
    }
    source_close_batches(&o);
}

static bool loads(const char *name)
{
    struct row_index x = {0};
    struct row_reader reader = {.name = "kept.csv"};
    const struct format_context context = {.directory = folder_path()};
    const uint64_t key = strtoull(name + strlen("rows-"), NULL, 16);
    assert_int_equal(input_open(&context, "kept.csv", &reader.input), OK);
    const bool is_loaded = row_index_load(folder_path(), key, &reader, &x);
    if (is_loaded) assert_true(x.rows == ROWS && x.count > 1);
    input_close(reader.input);
    row_index_free(&x);
    return is_loaded;
}

static size_t load_index(const char *name, uint8_t *bytes)
{
    char path[2 * NAME_BYTES_MAX];
    snprintf(path, sizeof path, "%s/%s", folder_path(), name);
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, INDEX_BYTES_MAX, file);
    fclose(file);
    assert_in_range(count, 1, INDEX_BYTES_MAX - 1);
    return count;
}

static void broken_indexes_are_made_again(void **state)
{
    static float first[ROWS], again[ROWS];
    uint8_t bytes[INDEX_BYTES_MAX], changed[INDEX_BYTES_MAX];
    char name[NAME_BYTES_MAX];
    write_rows();
    read_rows(first);
    find_index(name);
    assert_true(*name && loads(name));
    const size_t count = load_index(name, bytes);
    for (size_t i = 0; i < count; i++) {
        memcpy(changed, bytes, count);
        changed[i] ^= (uint8_t)(1 << i % 8);
        file_write(name, changed, count);
        assert_false(loads(name));
        file_write(name, bytes, i);
        assert_false(loads(name));
    }
    read_rows(again);
    assert_memory_equal(first, again, sizeof first);
    assert_true(loads(name));
}

static void an_index_of_another_state_is_none(void **state)
{
    char name[NAME_BYTES_MAX];
    find_index(name);
    assert_true(*name && loads(name));
    file_write_text("kept.csv", "x,y\n1,1\n");
    assert_false(loads(name));
}

static void path_of(const char *name, char path[2 * NAME_BYTES_MAX])
{
    snprintf(path, 2 * NAME_BYTES_MAX, "%s/%s", folder_path(), name);
}

static struct stat state_of(const char *name)
{
    char path[2 * NAME_BYTES_MAX];
    struct stat state;
    path_of(name, path);
    assert_int_equal(stat(path, &state), 0);
    return state;
}

static void set_time(const char *name, struct timespec changed)
{
    char path[2 * NAME_BYTES_MAX];
    path_of(name, path);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){changed, changed}, 0), 0);
}

/* Of its size, and with its time of change set back: in its place, and written over it. */
static void a_file_that_looks_the_same_is_another(void **state)
{
    char name[NAME_BYTES_MAX], fresh[2 * NAME_BYTES_MAX], kept[2 * NAME_BYTES_MAX];
    float rows[ROWS];
    write_rows();
    read_rows(rows);
    find_index(name);
    assert_true(*name && loads(name));
    const struct stat before = state_of("kept.csv");
    struct stat after;
    do { /* until the system's clock has a tick behind it */
        write_rows();
        set_time("kept.csv", before.st_mtim);
        after = state_of("kept.csv");
    } while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    assert_true(after.st_ino == before.st_ino && after.st_size == before.st_size);
    assert_false(loads(name));
    read_rows(rows);
    assert_true(loads(name));
    path_of("kept.csv", kept);
    path_of("fresh.csv", fresh);
    assert_int_equal(rename(kept, fresh), 0);
    write_rows();
    set_time("kept.csv", before.st_mtim);
    assert_false(loads(name));
}

/* Without a folder, or where it is not there, it is made for the task alone. */
static void an_index_need_not_be_kept(void **state)
{
    struct opened_source o;
    write_rows();
    source_open_batches_ok(source, NULL, &o);
    assert_int_equal(o.source->rows, ROWS);
    source_close_batches(&o);
    source_open_batches_ok(source, "/nowhere/at/all", &o);
    assert_int_equal(o.source->rows, ROWS);
    source_close_batches(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_indexes_are_made_again),
        cmocka_unit_test(an_index_of_another_state_is_none),
        cmocka_unit_test(a_file_that_looks_the_same_is_another),
        cmocka_unit_test(an_index_need_not_be_kept),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
