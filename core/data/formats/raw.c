/* raw: plain numbers without a header, little-endian: the features of all rows, and their labels in
 * another file.
 */
#include "core/data/input.h"

static const char *const feature_types[] = {"float32", "uint8", NULL};
static const char *const label_types[] = {"int32", "uint8", "float32", NULL};

struct raw_attributes {
    struct strings file, labels;
    struct ints shape, label_shape;
    int dtype, label_dtype; /* indices into feature_types, label_types */
    int64_t rows;
};

/* Without a header the size of the file is the only check there is, so it must fit exactly. Of a
 * packed file it says nothing: there "rows" bounds what is unpacked. */
static err read_features(struct input *in, const struct raw_attributes *a, struct dataset *d,
                         struct storage *s)
{
    uint64_t row_bytes = 0, bytes = 0;
    struct column *c = &d->columns[FEATURES];
    TRY(storage_shape(&a->shape, "shape", &c->shape));
    c->dtype = a->dtype == 0 ? FLOAT32 : UINT8;
    TRY(storage_bytes(s->name, 1, &c->shape, c->dtype, &row_bytes));
    d->rows = a->rows ? a->rows : (int64_t)(input_file_bytes(in) / row_bytes);
    if (!a->rows && input_is_packed(in))
        return fail(ERR_INPUT, "%s: say with \"rows\" how many rows this packed file holds",
                    s->name);
    if (!a->rows && input_file_bytes(in) % row_bytes)
        return fail(ERR_INPUT, "%s: expected rows of %llu bytes, %llu bytes are no whole number",
                    s->name, (unsigned long long)row_bytes,
                    (unsigned long long)input_file_bytes(in));
    TRY(storage_bytes(s->name, d->rows, &c->shape, c->dtype, &bytes));
    return input_block(in, bytes, "features", &s->features);
}

/* int32 and float32 stay as they are; bytes are widened to int32. */
static err read_labels(struct input *in, const struct raw_attributes *a, struct dataset *d,
                       struct storage *s)
{
    static const enum dtype stored[] = {INT32, UINT8, FLOAT32};
    enum dtype dtype = stored[a->label_dtype];
    struct block labels = {0};
    uint64_t bytes = 0;
    struct column *c = &d->columns[LABELS];
    TRY(storage_shape(&a->label_shape, "label_shape", &c->shape));
    TRY(storage_bytes(s->name, d->rows, &c->shape, dtype, &bytes));
    TRY(input_block(in, bytes, "labels, as the rows of features say", &labels));
    if (dtype == UINT8) TRY(storage_widen_labels(&labels, &labels));
    c->dtype = dtype == UINT8 ? INT32 : dtype;
    s->labels = labels;
    return OK;
}

static err open_raw(const void *attributes, const struct format_context *context,
                    struct dataset *ret)
{
    const struct raw_attributes *a = attributes;
    struct input *features = NULL, *labels = NULL;
    struct storage s = {0};
    struct dataset d = {0};
    err e = input_open(context, context->files[0], &features);
    if (!e) s.name = input_path(features);
    if (!e) e = read_features(features, a, &d, &s);
    if (!e && !context->without_labels) e = input_open(context, context->files[1], &labels);
    if (!e && labels) s.label_name = input_path(labels);
    if (!e && labels) e = read_labels(labels, a, &d, &s);
    if (!e) e = storage_give(&s, &d);
    if (!e) *ret = d;
    storage_drop(&s);
    input_close(features);
    input_close(labels);
    return e;
}

static const struct field fields[] = {
    {.name = "file",
     .type = FIELD_FILES,
     .offset = offsetof(struct raw_attributes, file),
     .may_differ = true,
     .help = "the features of all rows, little-endian, plain or packed: a file, a list, a pattern, "
             "@ and a file of names"},
    {.name = "shape",
     .type = FIELD_INTS,
     .offset = offsetof(struct raw_attributes, shape),
     .min = 1,
     .max = 0x1p40,
     .count_max = RANK_MAX - 1,
     .help = "shape of one example"},
    {.name = "dtype",
     .type = FIELD_ENUM,
     .offset = offsetof(struct raw_attributes, dtype),
     .fallback = "\"float32\"",
     .choices = feature_types,
     .help = "type of the stored features"},
    {.name = "labels",
     .type = FIELD_FILES,
     .offset = offsetof(struct raw_attributes, labels),
     .may_differ = true,
     .help = "the labels of all rows, little-endian, plain or packed"},
    {.name = "label_shape",
     .type = FIELD_INTS,
     .offset = offsetof(struct raw_attributes, label_shape),
     .fallback = "[]",
     .min = 1,
     .max = 0x1p40,
     .count_max = RANK_MAX - 1,
     .help = "shape of the label of one example; []: one number"},
    {.name = "label_dtype",
     .type = FIELD_ENUM,
     .offset = offsetof(struct raw_attributes, label_dtype),
     .fallback = "\"int32\"",
     .choices = label_types,
     .help = "type of the stored labels; uint8 becomes int32"},
    {.name = "rows",
     .type = FIELD_INT,
     .offset = offsetof(struct raw_attributes, rows),
     .fallback = "0",
     .max = 0x1p40,
     .help = "number of rows; 0: from the size of a plain file"},
    {0},
};

const struct format format_raw = {
    .object = {"raw", "numbers without a header", fields, sizeof(struct raw_attributes)},
    .open = open_raw,
};
