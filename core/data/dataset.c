/* dataset.c - a source of the spec as a dataset: opening, skip and take, checks, plain reading. */
#include "core/data/convert.h"
#include "core/data/data.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

static const struct field source_fields[] = {
    {.name = "skip",
     .type = FIELD_INT,
     .offset = offsetof(struct source_spec, skip),
     .fallback = "0",
     .max = 0x1p53,
     .help = "rows left out at the beginning"},
    {.name = "take",
     .type = FIELD_INT,
     .offset = offsetof(struct source_spec, take),
     .fallback = "0",
     .max = 0x1p53,
     .help = "rows used after the skipped ones; 0: all that are left"},
    {0},
};

const struct object source_spec_object = {"source", "where examples come from", source_fields,
                                          sizeof(struct source_spec)};

static const struct field data_fields[] = {
    {.name = "train",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct data_spec, train),
     .object = &source_spec_object,
     .kinds = &format_kinds,
     .help = "examples to learn from"},
    {.name = "eval",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct data_spec, eval),
     .fallback = "null",
     .object = &source_spec_object,
     .kinds = &format_kinds,
     .help = "examples to measure with; null: no evaluation"},
    {.name = "batch_size",
     .type = FIELD_INT,
     .offset = offsetof(struct data_spec, batch_size),
     .fallback = "100",
     .min = 1,
     .max = BATCH_ROWS_MAX,
     .help = "examples per step and worker"},
    {.name = "eval_batch_size",
     .type = FIELD_INT,
     .offset = offsetof(struct data_spec, eval_batch_size),
     .fallback = "0",
     .max = BATCH_ROWS_MAX,
     .help = "examples per evaluation step; 0: a size that suits"},
    {.name = "shuffle",
     .type = FIELD_BOOL,
     .offset = offsetof(struct data_spec, shuffle),
     .fallback = "true",
     .help = "a new order of the training examples in every epoch, drawn from the seed"},
    {.name = "scale",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct data_spec, scale),
     .fallback = "1",
     .min = -1e30,
     .max = 1e30,
     .help = "feature = scale * stored + offset"},
    {.name = "offset",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct data_spec, offset),
     .fallback = "0",
     .min = -1e30,
     .max = 1e30,
     .help = "feature = scale * stored + offset"},
    {.name = "prefetch",
     .type = FIELD_INT,
     .offset = offsetof(struct data_spec, prefetch),
     .fallback = "4",
     .min = 1,
     .max = PREFETCH_MAX,
     .help = "batches kept ready ahead of training"},
    {0},
};

const struct object data_spec_object = {"data", "examples and how they become batches", data_fields,
                                        sizeof(struct data_spec)};

/* Leaves the rows skip .. skip + take - 1. The memory stays whole: close() knows it by d->owned. A
 * split that cannot be had is refused rather than cut short, since a validation set that is
 * silently smaller than asked for gives figures that nobody can compare. */
static err narrow(struct dataset *d, int64_t skip, int64_t take)
{
    int64_t left = d->rows - skip;
    if (left <= 0)
        return fail(ERR_INPUT, "%s: skip %lld leaves none of the %lld rows", d->name,
                    (long long)skip, (long long)d->rows);
    if (take > left)
        return fail(ERR_INPUT, "%s: take %lld: only %lld of the %lld rows are left after skip %lld",
                    d->name, (long long)take, (long long)left, (long long)d->rows, (long long)skip);
    d->features = (const char *)d->features + convert_feature_bytes(d) * (size_t)skip;
    if (d->labels) d->labels = (const char *)d->labels + 4 * convert_label_count(d) * skip;
    d->rows = take ? take : left;
    return OK;
}

err dataset_open(const struct source_spec *source, const struct format_context *context,
                 struct dataset *ret)
{
    const struct format *format = source->format.kind->descriptor;
    struct dataset d = {0};
    err e = format->open(source->format.attributes, context, &d);
    if (e) return fail_prefix(e, "%s data", format->object.name);
    e = narrow(&d, source->skip, source->take);
    if (e)
        dataset_close(&d);
    else
        *ret = d;
    return e;
}

void dataset_close(struct dataset *d)
{
    if (d->close) d->close(d);
    *d = (struct dataset){0};
}

/* A double holds every int32 and every float, so one check serves both types. */
static double label_at(const struct dataset *d, int64_t i)
{
    return d->label_dtype == INT32 ? ((const int32_t *)d->labels)[i]
                                   : (double)((const float *)d->labels)[i];
}

/* What is wrong with a label, or NULL. */
static const char *label_fault(const struct transform *t, double label)
{
    if (!isfinite(label)) return "is not a number";
    if (t->label_dtype == INT32 && label != floor(label)) return "is not a whole number";
    if (t->label_dtype == INT32 && fabs(label) > INT32_MAX) return "is beyond 32 bits";
    if (t->classes > 0 && (label < 0 || label >= (double)t->classes)) return "is out of range";
    return NULL;
}

/* One pass over all labels when a run starts: a bad one would otherwise be an index outside the
 * logits somewhere in the middle of an epoch. */
static err check_values(const struct transform *t, const struct dataset *d)
{
    int64_t of_row = convert_label_count(d);
    for (int64_t i = 0; i < d->rows * of_row; i++) {
        const char *fault = label_fault(t, label_at(d, i));
        if (!fault) continue;
        char range[64] = "";
        if (t->classes > 0)
            snprintf(range, sizeof range, "; expected 0 to %lld", (long long)t->classes - 1);
        return fail(ERR_INPUT, "%s: row %lld (from 0): label %.9g %s%s", d->name,
                    (long long)(i / of_row), label_at(d, i), fault, range);
    }
    return OK;
}

/* One number per example may be written [] or [1]: files know the first, losses the second. */
static bool label_shape_fits(const struct shape *have, const struct shape *wanted)
{
    return shape_equal(have, wanted) || (shape_count(have) == 1 && shape_count(wanted) == 1);
}

err transform_check(const struct transform *t, const struct dataset *d,
                    const struct shape *wanted_label)
{
    if (t->label_dtype == UINT8)
        return fail(ERR_INPUT, "%s: labels are int32 or float32, not uint8", d->name);
    if (!label_shape_fits(&d->label_shape, wanted_label)) {
        char have[SHAPE_TEXT_MAX], wanted[SHAPE_TEXT_MAX];
        return fail(ERR_INPUT, "%s: labels have shape %s per example, the loss wants %s", d->name,
                    shape_text(&d->label_shape, have), shape_text(wanted_label, wanted));
    }
    return check_values(t, d);
}

void dataset_read(const struct dataset *d, const struct transform *t, int64_t first, int64_t rows,
                  float *features, void *labels)
{
    assert(first >= 0 && rows >= 0 && first + rows <= d->rows);
    convert_features(d, t, first, rows, features);
    if (labels) convert_labels(d, t, first, rows, labels);
}
