/* support.c - see support.h. */
#include "tests/core/data/support.h"

#include "core/data/labels.h"
#include "core/data/convert.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PATH_BYTES_MAX = 512, FAULT_PARTS_MAX = 16 };

static char folder[PATH_BYTES_MAX];

int folder_make(void **state)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/dtrain-data-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static void in_folder(const char *name, char path[2 * PATH_BYTES_MAX])
{
    snprintf(path, 2 * PATH_BYTES_MAX, "%s/%s", folder, name);
}

int folder_remove(void **state)
{
    char path[2 * PATH_BYTES_MAX];
    DIR *list = opendir(folder);
    if (!list) return -1;
    for (struct dirent *entry; (entry = readdir(list));) {
        in_folder(entry->d_name, path);
        if (entry->d_name[0] != '.') remove(path);
    }
    closedir(list);
    return rmdir(folder);
}

const char *folder_path(void)
{
    return folder;
}

void file_write(const char *name, const void *bytes, size_t count)
{
    char path[2 * PATH_BYTES_MAX];
    in_folder(name, path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

void file_write_text(const char *name, const char *text)
{
    file_write(name, text, strlen(text));
}

size_t gzip_pack(const void *bytes, size_t count, uint8_t *packed, size_t max)
{
    z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)count};
    z.next_out = packed;
    z.avail_out = (uInt)max;
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t done = max - z.avail_out;
    deflateEnd(&z);
    return done;
}

void file_write_gzip(const char *name, const void *bytes, size_t count)
{
    size_t max = count + count / 8 + 1024;
    uint8_t *packed = malloc(max);
    assert_non_null(packed);
    file_write(name, packed, gzip_pack(bytes, count, packed, max));
    free(packed);
}

size_t fixture_load(const char *name, void *to, size_t max)
{
    char path[2 * PATH_BYTES_MAX];
    snprintf(path, sizeof path, FIXTURES "/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t bytes = fread(to, 1, max, file);
    fclose(file);
    assert_in_range(bytes, 1, max - 1);
    return bytes;
}

/* What is said of data by {"train": json}. */
static err parse_source(const char *json, struct arena *arena, json_t **root, struct data_spec *ret)
{
    char *text;
    assert_true(asprintf(&text, "{\"train\": %s}", json) > 0);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    *root = json_loads(text, 0, NULL);
    free(text);
    assert_non_null(*root);
    return fields_parse(&data_spec_object, *root, "data", arena, ret);
}

static err open_source(const char *json, struct format_context context, struct dataset *ret)
{
    struct arena arena = {0};
    struct data_spec spec;
    json_t *root;
    err e = parse_source(json, &arena, &root, &spec);
    context.directory = folder;
    context.seed = 1;
    if (!e) e = labels_check(&spec.train, &spec.columns);
    if (!e) context.columns = labels_beside(&spec.columns, &spec.train, &arena);
    if (!e) e = dataset_open(&spec.train, &context, ret);
    arena_free(&arena);
    json_decref(root);
    return e;
}

err source_open_batches(const char *json, const char *index_folder, struct opened_source *ret)
{
    *ret = (struct opened_source){0};
    struct data_spec *spec = &ret->spec;
    TRY(parse_source(json, &ret->arena, &ret->root, spec));
    const struct format_context context = {
        .directory = folder,
        .seed = 1,
        .wants_all_cells = true,
        .columns = labels_beside(&spec->columns, &spec->train, &ret->arena),
        .index_folder = index_folder};
    return batch_source_open(&ret->spec.train, &context, &ret->source);
}

void source_open_batches_ok(const char *json, const char *index_folder, struct opened_source *ret)
{
    const err e = source_open_batches(json, index_folder, ret);
    if (e) print_error("%s\n%s\n", json, error_text());
    assert_int_equal(e, OK);
}

void source_close_batches(struct opened_source *o)
{
    batch_source_close(o->source);
    arena_free(&o->arena);
    json_decref(o->root);
    *o = (struct opened_source){0};
}

err source_open(const char *json, struct dataset *ret)
{
    return open_source(json, (struct format_context){0}, ret);
}

err source_open_to_predict(const char *json, struct dataset *ret)
{
    return open_source(json, (struct format_context){.without_labels = true}, ret);
}

err source_open_to_train(const char *json, struct dataset *ret)
{
    return open_source(json, (struct format_context){.wants_all_cells = true}, ret);
}

void source_open_ok(const char *json, struct dataset *ret)
{
    err e = source_open(json, ret);
    if (e) print_error("%s\n%s\n", json, error_text());
    assert_int_equal(e, OK);
}

void source_said(const char *source, char *text, size_t max)
{
    struct dataset d;
    char path[4096];
    snprintf(path, sizeof path, "%s/said", folder_path());
    const int kept = dup(STDERR_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    dup2(file, STDERR_FILENO);
    source_open_ok(source, &d);
    dup2(kept, STDERR_FILENO);
    const ssize_t bytes = pread(file, text, max - 1, 0);
    text[bytes > 0 ? bytes : 0] = '\0';
    dataset_close(&d);
    close(kept);
    close(file);
}

void assert_refused(const char *json, ...)
{
    struct dataset d = {0};
    err e = source_open(json, &d);
    if (!e) {
        dataset_close(&d);
        print_error("not refused: %s\n", json);
    }
    assert_int_equal(e, ERR_INPUT);
    va_list parts;
    va_start(parts, json);
    for (int i = 0; i < FAULT_PARTS_MAX; i++) {
        const char *part = va_arg(parts, const char *);
        if (!part) break;
        if (!strstr(error_text(), part)) print_error("\"%s\" not in: %s\n", part, error_text());
        assert_non_null(strstr(error_text(), part));
    }
    va_end(parts);
}

struct dataset counted_dataset(struct counted *c, enum dtype dtype, int64_t rows)
{
    assert_true(rows <= COUNTED_ROWS_MAX);
    for (int64_t i = 0; i < rows * COUNTED_WIDTH; i++) {
        int64_t value = i / COUNTED_WIDTH + i % COUNTED_WIDTH;
        c->floats[i] = (float)value;
        c->bytes[i] = (uint8_t)value;
    }
    for (int64_t i = 0; i < rows; i++) c->labels[i] = (int32_t)i;
    c->columns[FEATURES] =
        (struct column){.name = FEATURES_NAME,
                        .dtype = dtype,
                        .shape = {.rank = 1, .dim = {COUNTED_WIDTH}},
                        .at = dtype == UINT8 ? (const void *)c->bytes : c->floats};
    c->columns[LABELS] = (struct column){.name = LABELS_NAME, .dtype = INT32, .at = c->labels};
    return (struct dataset){
        .rows = rows,
        .columns = c->columns,
        .column_count = STORED_COLUMNS,
        .name = "counted",
        .label_name = "the labels",
    };
}

err source_begin(const struct dataset *d, const struct stream_options *options,
                 struct batch_source **ret)
{
    struct dataset borrowed = *d;
    struct batch_source *source;
    borrowed.close = NULL;
    assert_int_equal(batch_source_of(&borrowed, (struct rows_from){0}, &source), OK);
    const err e = source->calls->begin(source, options);
    if (e)
        batch_source_close(source);
    else
        *ret = source;
    return e;
}

void source_read(const struct dataset *d, const struct transform *t, int64_t first, int64_t rows,
                 float *features, void *labels)
{
    struct conversion conversions[COLUMNS_MAX];
    void *const to[COLUMNS_MAX] = {[FEATURES] = features, [LABELS] = labels};
    conversions_of(t, d, conversions);
    for (int i = 0; i < d->column_count; i++)
        convert(&conversions[i], &d->columns[i], first, rows, to[i]);
}

static const void *column_of(const struct batch *b, const char *name)
{
    const int column = column_find(b->columns, b->column_count, name);
    assert_true(column >= 0);
    return b->columns[column].at;
}

const float *batch_features(const struct batch *b)
{
    return column_of(b, FEATURES_NAME);
}

const void *batch_labels(const struct batch *b)
{
    return column_of(b, LABELS_NAME);
}

/* ---- streams ---- */

static struct batch next_of(struct opened_source *o)
{
    struct batch batch;
    assert_int_equal(o->source->calls->next(o->source, &batch), OK);
    return batch;
}

static void assert_batches_alike(struct opened_source *a, struct opened_source *b)
{
    for (;;) { /* ends: both do */
        const struct batch x = next_of(a), y = next_of(b);
        assert_int_equal(x.rows, y.rows);
        assert_int_equal(x.column_count, y.column_count);
        if (x.rows == 0) return;
        for (int i = 0; i < x.column_count; i++) {
            const size_t bytes = column_row_bytes(&x.columns[i]) * (size_t)x.rows;
            assert_string_equal(x.columns[i].name, y.columns[i].name);
            assert_memory_equal(x.columns[i].at, y.columns[i].at, bytes);
        }
    }
}

void assert_stream_is_memory(const char *of_memory, const char *of_stream)
{
    const struct stream_options options = {
        .transform = {.scale = 1, .labels = {{.dtype = FLOAT32, .loss = "loss"}}, .label_count = 1},
        .batch = 64,
        .is_once = true,
        .workers = 1,
        .prefetch = 1,
    };
    struct opened_source memory, stream;
    source_open_batches_ok(of_memory, NULL, &memory);
    source_open_batches_ok(of_stream, NULL, &stream);
    assert_int_equal(memory.source->calls->begin(memory.source, &options), OK);
    assert_int_equal(stream.source->calls->begin(stream.source, &options), OK);
    assert_int_equal(memory.source->rows, stream.source->rows);
    assert_non_null(strstr(stream.source->use, "a stream of"));
    assert_null(strstr(memory.source->use, "stream"));
    assert_batches_alike(&memory, &stream);
    source_close_batches(&memory);
    source_close_batches(&stream);
}
