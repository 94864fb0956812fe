/* dataset.c - opens a source of the spec, in memory or as a stream; skip and take. */
#include "core/data/columns/column.h"
#include "core/data/dataset_check.h"
#include "core/data/follow/followed.h"
#include "core/data/parts.h"
#include "core/data/source.h"
#include "core/data/stream/stream.h"

#include <stdio.h>

static const char *const streamings[] = {
    [STREAM_LARGE] = "large", [STREAM_ALWAYS] = "always", [STREAM_NEVER] = "never", NULL};

static const struct field source_fields[] = {
    FIELD_OF("skip", INT, struct source_spec, skip, .fallback = "0", .max = 0x1p53,
             .help = "rows to skip at the beginning"),
    FIELD_OF("take", INT, struct source_spec, take, .fallback = "0", .max = 0x1p53,
             .help = "rows to use after the skipped ones; 0: all"),
    FIELD_OF(
        "bad_rows", FLOAT, struct source_spec, bad_rows, .fallback = "0", .max = BAD_ROWS_MAX,
        .help = "number of malformed rows or records to skip before one is an error; the log names "
                "the first five; below 1: a fraction of all rows, as in 0.001"),
    FIELD_OF("stream", ENUM, struct source_spec, stream, .fallback = "\"large\"",
             .choices = streamings,
             .help = "read rows from the files again in every epoch instead of keeping them in "
                     "memory: large: if the files exceed memory_mb (compressed ones count four "
                     "times); always; never"),
    FIELD_OF("memory_mb", INT, struct source_spec, memory_mb, .fallback = "1024", .min = 1,
             .max = 1 << 24, .help = "memory in MiB for the rows of a stream, per worker"),
    FIELD_OF("shuffle_rows", INT, struct source_spec, shuffle_rows, .fallback = "0", .max = 1 << 30,
             .help = "size of a stream's shuffle buffer in rows (blocks are read in random order, "
                     "too); 0: 131072, or as many as fit twice into memory_mb"),
    FIELD_OF(
        "readers", INT, struct source_spec, readers, .fallback = "0", .max = STREAM_READERS_MAX,
        .may_differ = true,
        .help = "threads that read a stream; 0: 2, or 16 for uncompressed files behind URLs, where "
                "threads mostly wait for answers"),
    FIELD_OF("follow", BOOL, struct source_spec, follow, .fallback = "false",
             .help = "data.train only: train on files matching the pattern as they appear, each "
                     "once, until training is told to stop"),
    FIELD_OF("settle_secs", FLOAT, struct source_spec, settle_secs, .fallback = "1", .max = 1e6,
             .may_differ = true,
             .help = "seconds without a change after which a followed file counts as complete"),
    FIELD_OF("silent_secs", FLOAT, struct source_spec, silent_secs, .fallback = "0", .max = 1e9,
             .may_differ = true,
             .help = "seconds to wait for the next file before the run fails; 0: no limit"),
    FIELD_OF("end_marker", STRING, struct source_spec, end_marker, .fallback = "\"_SUCCESS\"",
             .may_differ = true,
             .help = "name of the file that marks the end: once it is in the followed folder, no "
                     "more files are expected"),
    {0},
};

const struct object source_spec_object = {"source", "where examples come from", source_fields,
                                          sizeof(struct source_spec)};

static const struct field data_fields[] = {
    FIELD_OF("train", VARIANT, struct data_spec, train, .object = &source_spec_object,
             .kinds = &format_kinds, .help = "training data"),
    FIELD_OF("eval", VARIANT, struct data_spec, eval, .fallback = "null",
             .object = &source_spec_object, .kinds = &format_kinds,
             .help = "evaluation data; null: no evaluation"),
    FIELD_OF("columns", VARIANTS, struct data_spec, columns, .fallback = "[]",
             .count_max = LISTED_COLUMNS_MAX, .object = &column_spec_object, .kinds = &column_kinds,
             .help = "feature columns of both, which nodes read by name; none: all features form "
                     "one column of numbers"),
    FIELD_OF("weight", STRING, struct data_spec, weight, .fallback = "null",
             .help = "numeric column with the weight of each example in loss and metrics, 0 or "
                     "more; null: every example weighs 1"),
    FIELD_OF("batch_size", INT, struct data_spec, batch_size, .fallback = "100", .min = 1,
             .max = BATCH_ROWS_MAX, .help = "examples per step and worker"),
    FIELD_OF("eval_batch_size", INT, struct data_spec, eval_batch_size, .fallback = "0",
             .max = BATCH_ROWS_MAX,
             .help = "examples per evaluation step; 0: chosen automatically"),
    FIELD_OF("shuffle", BOOL, struct data_spec, shuffle, .fallback = "true",
             .help = "reshuffle the training examples in every epoch, from the seed"),
    FIELD_OF("scale", FLOAT, struct data_spec, scale, .fallback = "1", .min = -1e30, .max = 1e30,
             .help = "feature = scale * stored + offset"),
    FIELD_OF("offset", FLOAT, struct data_spec, offset, .fallback = "0", .min = -1e30, .max = 1e30,
             .help = "feature = scale * stored + offset"),
    FIELD_OF("prefetch", INT, struct data_spec, prefetch, .fallback = "4", .min = 1,
             .max = PREFETCH_MAX, .help = "batches prepared ahead of training"),
    FIELD_OF("origin", STRING, struct data_spec, origin, .fallback = "null", .may_differ = true,
             .help = "where these files can be downloaded; shown if they cannot be read"),
    {0},
};

const struct object data_spec_object = {"data", "examples and how they become batches", data_fields,
                                        sizeof(struct data_spec)};

/* Asking for more rows than there are is an error, since metrics of a validation set that is
 * silently smaller cannot be compared. */
err source_narrow(const struct source_spec *source, const char *name, int64_t rows, int64_t *ret)
{
    const int64_t skip = source->skip, take = source->take, left = rows - skip;
    if (left <= 0)
        return fail(ERR_INPUT, "%s: skip %lld leaves none of the %lld rows", name, (long long)skip,
                    (long long)rows);
    if (take > left)
        return fail(ERR_INPUT, "%s: take %lld: only %lld of the %lld rows are left after skip %lld",
                    name, (long long)take, (long long)left, (long long)rows, (long long)skip);
    *ret = take ? take : left;
    return OK;
}

err source_meanings(const struct source_spec *source, const char *directory, struct arena *arena,
                    struct meanings *ret)
{
    const struct format *format = source->format.kind->descriptor;
    const struct format_context context = {.directory = directory};
    if (!format->meanings)
        return fail(ERR_INPUT, "data.train: \"%s\" is no text", format->object.name);
    return format->meanings(source->format.attributes, &context, arena, ret);
}

/* Only the pointers move: close() frees the memory by d->owned. */
static err narrow(struct dataset *d, const struct source_spec *source)
{
    const int64_t skip = source->skip - d->first_row;
    TRY(source_narrow(source, d->name, d->first_row + d->rows, &d->rows));
    for (int i = 0; i < d->column_count; i++) {
        struct column *c = &d->columns[i];
        if (c->at) c->at = (const char *)c->at + column_row_bytes(c) * (size_t)skip;
    }
    d->first_row = source->skip;
    return OK;
}

bool format_context_has_columns(const struct format_context *context)
{
    return context->columns && context->columns->count > 0;
}

err format_context_tell(const struct format_context *context, const struct column *columns,
                        int count)
{
    struct columns_wanted *wanted = context->wanted;
    if (!wanted || wanted->is_told) return OK;
    wanted->is_told = true;
    wanted->refused = wanted->check(wanted, columns, count);
    if (wanted->refused) snprintf(wanted->why, sizeof wanted->why, "%s", error_text());
    return wanted->refused;
}

static err open_columns(const struct source_spec *source, const struct format_context *context,
                        struct dataset *ret)
{
    const struct format *format = source->format.kind->descriptor;
    struct row_reader *reader = NULL;
    if (!format->read)
        return fail(ERR_INPUT, "its rows have no cells for data.columns to be made of");
    if (parts_are_files(format)) return parts_open_columns(source, context, false, ret);
    TRY(format->read(source->format.attributes, context, &reader));
    return columns_open(reader, context, ret);
}

static err open_stored(const struct source_spec *source, const struct format_context *context,
                       struct dataset *ret)
{
    const struct format *format = source->format.kind->descriptor;
    if (format->open)
        return parts_are_files(format) ? parts_open(source, context, ret)
                                       : format->open(source->format.attributes, context, ret);
    if (format->read_stored) return parts_open_columns(source, context, true, ret);
    return fail(ERR_INPUT, "data.columns says what its cells become, and has none");
}

/* Name of a source without rows, which is one file of several */
static const char *name_of(const struct format_context *context)
{
    return context->only_file ? context->only_file : "the file";
}

err dataset_open(const struct source_spec *source, const struct format_context *context,
                 struct dataset *ret)
{
    const struct format *format = source->format.kind->descriptor;
    struct dataset d = {0};
    struct bad_rows bad_rows;
    struct format_context own = *context;
    own.bad_rows = &bad_rows;
    const bool has_columns = format_context_has_columns(context);
    err e = bad_rows_begin(source->bad_rows, &bad_rows);
    if (!e) e = has_columns ? open_columns(source, &own, &d) : open_stored(source, &own, &d);
    if (!e) e = bad_rows_end(&bad_rows, d.name ? d.name : name_of(context), d.rows);
    d.left_out = bad_rows.left_out;
    if (e) dataset_close(&d);
    if (e) return fail_prefix(e, "%s data", format->object.name);
    const bool is_empty = d.rows == 0 && context->has_other_parts;
    if (!is_empty) e = narrow(&d, source);
    if (!e && !is_empty && parts_are_files(format) && !has_columns) e = dataset_check_features(&d);
    if (context->without_labels) d.columns[LABELS].at = NULL;
    if (e)
        dataset_close(&d);
    else
        *ret = d;
    return e;
}

void dataset_close(struct dataset *d)
{
    if (d->close) d->close(d);
    parts_free(d->parts);
    left_out_free(&d->left_out);
    *d = (struct dataset){0};
}

/* ---- as batches ---- */

static err open_stream(const struct source_spec *spec, const struct format_context *context,
                       struct batch_source **ret)
{
    struct dataset d;
    struct row_stream *stream = NULL;
    const err e = stream_open(spec, context, &stream);
    if (e) return fail_prefix(e, "%s data", spec->format.kind->object->name);
    stream_describe(stream, &d);
    return batch_source_of(&d, (struct rows_from){.stream = stream}, ret);
}

static err open_followed(const struct source_spec *spec, const struct format_context *context,
                         struct batch_source **ret)
{
    struct dataset d;
    struct followed *followed = NULL;
    TRY(followed_open(spec, context, &followed));
    followed_describe(followed, &d);
    return batch_source_of(&d, (struct rows_from){.followed = followed}, ret);
}

err batch_source_open(const struct source_spec *spec, const struct format_context *context,
                      struct batch_source **ret)
{
    struct dataset d;
    bool is_stream;
    if (spec->follow) return open_followed(spec, context, ret);
    TRY(stream_is_wanted(spec, context, &is_stream));
    if (is_stream) return open_stream(spec, context, ret);
    TRY(dataset_open(spec, context, &d));
    return batch_source_of(&d, (struct rows_from){0}, ret);
}

void batch_source_close(struct batch_source *source)
{
    if (source) source->calls->close(source);
}

const struct column *batch_source_column(const struct batch_source *source, const char *name)
{
    const int column = column_find(source->columns, source->column_count, name);
    return column < 0 ? NULL : &source->columns[column];
}
