/* bundle_made.c - see bundle_made.h. */
#include "tests/core/train/checkpoint/bundle_made.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void bytes_load(const char *path, struct bytes *ret)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    ret->count = fread(ret->at, 1, sizeof ret->at, file);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

void bytes_store(const char *path, const void *at, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(at, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

void assert_file_holds(const char *path, const void *wanted, size_t count)
{
    static struct bytes got;
    bytes_load(path, &got);
    assert_int_equal(got.count, count);
    assert_memory_equal(got.at, wanted, count);
}

void write_bundle(const char *prefix, const struct made *made, int count)
{
    struct bundle_writer *writer;
    assert_int_equal(bundle_create(prefix, &writer), OK);
    for (int i = 0; i < count; i++)
        assert_int_equal(bundle_add(writer, &made[i].piece, made[i].elements), OK);
    assert_int_equal(bundle_finish(writer), OK);
}

static const struct bundle_shape emb_shape = {2, {EMB_ROWS, EMB_COLUMNS}};

void write_ps_0(const char *prefix)
{
    const struct bundle_box rows = {{0, 0}, {2, EMB_COLUMNS}};
    const int64_t step = 7;
    const struct made made[] = {
        {{"emb", BUNDLE_FLOAT, emb_shape, &rows}, (float[]){1, 2, 3, 4}},
        {{"global_step", BUNDLE_INT64}, &step},
    };
    write_bundle(prefix, made, 2);
}

void write_ps_1(const char *prefix)
{
    const struct bundle_box rows = {{2, 0}, {1, EMB_COLUMNS}};
    const struct made made[] = {
        {{"bias", BUNDLE_FLOAT, {1, {1}}}, (float[]){0.5f}},
        {{"emb", BUNDLE_FLOAT, emb_shape, &rows}, (float[]){5, 6}},
    };
    write_bundle(prefix, made, 2);
}

struct path path_of(const char *folder, const char *name)
{
    struct path path;
    assert_in_range(snprintf(path.at, sizeof path.at, "%s/%s", folder, name), 1,
                    sizeof path.at - 1);
    return path;
}

void merge_shards(const char *const shards[], int count, const char *prefix)
{
    if (bundle_remove(prefix) || bundle_merge(shards, count, prefix)) fail_msg("%s", error_text());
    for (int i = 0; i < count; i++) {
        char index[FOLDER_PATH_MAX + 8];
        snprintf(index, sizeof index, "%s.index", shards[i]);
        assert_int_equal(unlink(index), 0);
    }
}

const char *write_both(const char *folder)
{
    const char *shards[] = {folder_path(folder, "part-0"), folder_path(folder, "part-1")};
    const char *prefix = folder_path(folder, "model.ckpt-7");
    write_ps_0(shards[0]);
    write_ps_1(shards[1]);
    merge_shards(shards, 2, prefix);
    return prefix;
}

struct bundle *opened(const char *prefix)
{
    struct bundle *bundle = NULL;
    const err e = bundle_open(prefix, &bundle);
    if (e) print_error("%s\n", error_text());
    assert_int_equal(e, OK);
    return bundle;
}

void assert_refused(err e, err wanted, const char *text)
{
    assert_int_equal(e, wanted);
    if (!strstr(error_text(), text)) print_error("\"%s\" lacks \"%s\"\n", error_text(), text);
    assert_non_null(strstr(error_text(), text));
}
