/* Files of examples, in each format and packing: the first byte says which source reads the rest.
 * What memory holds is what a stream brings, and cells are what they are also where only they are
 * looked at.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#include "core/base/crc32c.h"
#include "core/base/log.h"
#include "core/data/labels.h"
#include "core/data/parts.h"
#include "core/data/source.h"

#define CELLS                                                                                      \
    "{'column': 'numeric', 'name': 'a'}, {'column': 'hash', 'name': 'b', 'buckets': 7},"           \
    "{'column': 'vocabulary', 'name': 'w', 'words': ['x', 'y'], 'source': 'b'},"                   \
    "{'column': 'bucketized', 'name': 'u', 'source': 'a', 'boundaries': [0, 1]},"                  \
    "{'column': 'date', 'name': 't', 'part': 'hour', 'default': 0}"
#define LISTS                                                                                      \
    "{'column': 'ids', 'name': 'i', 'rows': 50, 'max': 4, 'separator': ';'},"                      \
    "{'column': 'numeric', 'name': 'a', 'max': 3, 'separator': ';', 'default': 0},"                \
    "{'column': 'hash', 'name': 'b', 'max': 2, 'separator': ';', 'buckets': 7}"
#define EXAMPLES                                                                                   \
    "{'column': 'numeric', 'name': 'dense', 'max': 3},"                                            \
    "{'column': 'identity', 'name': 'ids', 'buckets': 2000000000000, 'max': 8},"                   \
    "{'column': 'hash', 'name': 'name', 'buckets': 1000}"
#define IMAGES                                                                                     \
    "{'column': 'image', 'name': 'i', 'size': [4, 5], 'resize': 'crop'},"                          \
    "{'column': 'image', 'name': 'g', 'source': 'i', 'size': 3, 'resize': 'stretch'}"

enum { ROWS_MAX = 1 << 16, BATCH = 3 };

/* FILE is the input, OTHER what stands behind its first "|". */
static const struct {
    const char *format, *columns;
    bool is_framed; /* the input is made to records, whose checksums hold */
} sources[] = {
    {"'csv', 'file': FILE, 'label': -1"},
    {"'csv', 'file': FILE, 'label': 0, 'header': false, 'missing': 0, 'bad_rows': 5"},
    {"'csv', 'file': FILE, 'label': 'y', 'label_type': 'word'", CELLS},
    {"'csv', 'file': FILE, 'labels': [{'name': 'l', 'cell': 'y', 'count': 2, 'separator': ';'}]",
     LISTS},
    {"'libsvm', 'file': FILE, 'features': 16"},
    {"'libsvm', 'file': FILE", "{'column': 'ids', 'name': 'features', 'rows': 1000, 'max': 4}"},
    {"'jsonl', 'file': FILE, 'label': 'y'", CELLS},
    {"'jsonl', 'file': FILE, 'label': 'y'", LISTS},
    {"'tfrecord', 'file': FILE, 'label': 'label'", EXAMPLES},
    {"'tfrecord', 'file': FILE, 'label': 'label'", EXAMPLES, true},
    {"'records', 'file': FILE, 'shape': [2, 2, 3], 'label_bytes': 2, 'label_at': 1"},
    {"'idx', 'features': FILE, 'labels': OTHER"},
    {"'raw', 'file': FILE, 'shape': [2], 'labels': OTHER"},
    {"'criteo', 'file': FILE", "{'column': 'hash', 'name': 'C1', 'buckets': 10},"
                               "{'column': 'numeric', 'name': 'I1', 'default': 0}"},
    {"'tfrecord', 'file': FILE, 'label': 'label'", IMAGES, true},
};
enum { SOURCES = sizeof sources / sizeof *sources, RECORD_HEAD = 2 };

static json_t *said(const char *source, const char *made, bool streams)
{
    char text[2048], *at = text;
    at += sprintf(at, "{\"train\": {'format': ");
    for (; *source; source++) {
        if (strncmp(source, "FILE", 4) == 0)
            at += sprintf(at, "\"memory://file\""), source += 3;
        else if (strncmp(source, "OTHER", 5) == 0)
            at += sprintf(at, "\"memory://other\""), source += 4;
        else
            *at++ = *source;
    }
    sprintf(at, ", 'stream': '%s', 'memory_mb': 1}, 'columns': [%s]}", streams ? "always" : "never",
            made ? made : "");
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    return json_loads(text, 0, NULL);
}

struct opened {
    struct arena arena;
    json_t *json;
    struct data_spec spec;
    struct format_context context;
    struct batch_source *source;
};

static err prepare_source(struct opened *o, const char *source, const char *made, bool streams)
{
    struct data_spec *spec = &o->spec;
    o->json = said(source, made, streams);
    fuzz_holds(o->json, source);
    TRY(fields_parse(&data_spec_object, o->json, "data", &o->arena, spec));
    TRY(labels_check(&spec->train, &spec->columns));
    o->context =
        (struct format_context){.directory = "/",
                                .seed = 1,
                                .columns = labels_beside(&spec->columns, &spec->train, &o->arena)};
    return OK;
}

static err open_source(struct opened *o, const char *source, const char *made, bool streams)
{
    struct data_spec *spec = &o->spec;
    TRY(prepare_source(o, source, made, streams));
    return batch_source_open(&spec->train, &o->context, &o->source);
}

static void close_source(struct opened *o)
{
    batch_source_close(o->source);
    arena_free(&o->arena);
    json_decref(o->json);
}

/* Once through; *ret of all bytes that came. */
static err read_all(struct batch_source *s, uint64_t *ret)
{
    struct stream_options options = {
        .batch = BATCH, .is_once = true, .is_stored = true, .workers = 1, .prefetch = 1};
    struct batch batch;
    uint64_t sum = 0;
    if (s->rows > ROWS_MAX) return fail(ERR_INPUT, "more rows than are read here");
    TRY(s->calls->begin(s, &options));
    for (int64_t rows = 0;; rows += batch.rows) {
        TRY(s->calls->next(s, &batch));
        if (batch.rows == 0) break;
        fuzz_holds(rows + batch.rows <= s->rows, "no more rows than are said");
        for (int i = 0; i < batch.column_count; i++) {
            const struct column *c = &batch.columns[i];
            const size_t bytes = (size_t)shape_count(&c->shape) * dtype_size(c->dtype);
            for (size_t k = 0; c->at && k < bytes * (size_t)batch.rows; k++)
                sum = sum * 31 + ((const uint8_t *)c->at)[k];
        }
    }
    *ret = sum;
    return OK;
}

static err read_source(const char *source, const char *made, bool streams, uint64_t *ret)
{
    struct opened o = {0};
    err e = open_source(&o, source, made, streams);
    if (!e) e = read_all(o.source, ret);
    fuzz_went_well(e);
    close_source(&o);
    return e;
}

static bool has_same(const struct cell *cell, const void *at, const void *other, size_t bytes)
{
    return (at != NULL) == (other != NULL) &&
           (!at || !memcmp(at, other, bytes * (size_t)cell->count));
}

static bool is_same_cell(const struct cell *a, const struct cell *b)
{
    if (a->is_absent != b->is_absent || a->length != b->length || a->count != b->count)
        return false;
    if ((a->text != NULL) != (b->text != NULL) || (a->words != NULL) != (b->words != NULL))
        return false;
    for (int64_t i = 0; a->words && i < a->count; i++)
        if (a->words[i].length != b->words[i].length ||
            memcmp(a->words[i].text, b->words[i].text, a->words[i].length))
            return false;
    return (!a->text || !memcmp(a->text, b->text, a->length)) &&
           has_same(a, a->ids, b->ids, sizeof *a->ids) &&
           has_same(a, a->numbers, b->numbers, sizeof *a->numbers);
}

/* A row that is sound when all of its cells are looked at is sound when one is. */
static void compare_rows(struct row_reader *all, struct row_reader *one, int cell)
{
    struct row row, alone;
    bool found = true, other_found = true;
    while (found) {
        const err e = all->calls->next(all, &row, &found);
        if (e && !all->is_row_broken) return;
        const err other = one->calls->next(one, &alone, &other_found);
        if (e || !found) continue;
        fuzz_holds(!other && other_found, "a cell is there where only it is looked at");
        fuzz_holds(is_same_cell(&row.cells[cell], &alone.cells[cell]), "it is the same cell");
    }
}

/* Any of the cells, looked at alone */
static void read_narrowly(const char *source, const char *made, int which)
{
    struct opened o = {0};
    struct data_parts *parts = NULL;
    struct row_reader *all = NULL, *one = NULL;
    err e = prepare_source(&o, source, made, false);
    o.context.without_labels = true;
    if (!e) e = parts_find(&o.spec.train, &o.context, &parts);
    if (!e) e = parts_read(parts, &o.spec.train, &o.context, 0, false, &all);
    if (!e && all) e = parts_read(parts, &o.spec.train, &o.context, 0, false, &one);
    const int cell = one && one->cell_count ? which % one->cell_count : 0;
    const bool narrows = one && one->cell_count && one->calls->narrow;
    if (narrows && !one->calls->narrow(one, &cell, 1)) compare_rows(all, one, cell);
    if (all) all->calls->close(all);
    if (one) one->calls->close(one);
    parts_free(parts);
    close_source(&o);
}

/* A record of each stretch, whose length stands before it. */
static void frame(struct view input, struct buffer *ret)
{
    while (view_bytes(input) > RECORD_HEAD) {
        const size_t low = fuzz_byte(&input), length = low + 256u * fuzz_byte(&input);
        const struct view record = fuzz_bytes(&input, length);
        const uint64_t bytes = htole64(view_bytes(record));
        buffer_put(ret, &bytes, sizeof bytes);
        buffer_fixed32(ret, crc32c_mask(crc32c(&bytes, sizeof bytes)));
        buffer_put(ret, record.at, view_bytes(record));
        buffer_fixed32(ret, crc32c_mask(crc32c(record.at, view_bytes(record))));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    struct buffer framed = {0};
    const int which = fuzz_byte(&input) % SOURCES;
    const bool has_other = strstr(sources[which].format, "OTHER") && view_bytes(input);
    const uint8_t *bar = has_other ? memchr(input.at, '|', view_bytes(input)) : NULL;
    uint64_t here = 0, there = 0;
    log_set_level(LOG_ERROR);
    const struct view first = {input.at, bar ? bar : input.end},
                      rest = {bar ? bar + 1 : input.end, input.end};
    if (sources[which].is_framed) frame(input, &framed);
    memory_file("file", sources[which].is_framed ? buffer_view(&framed) : first);
    memory_file("other", rest);
    const err memory = read_source(sources[which].format, sources[which].columns, false, &here);
    const err stream = read_source(sources[which].format, sources[which].columns, true, &there);
    if (!memory && !stream) fuzz_holds(here == there, "a stream has the rows of memory");
    if (sources[which].columns)
        read_narrowly(sources[which].format, sources[which].columns, (int)view_bytes(input));
    memory_clear();
    buffer_drop(&framed);
    return 0;
}
