/* raw: plain numbers without a header, little-endian: the features of all rows, and their labels in
 * another file.
 */
#include "core/data/formats/elements.h"

static const char *const feature_types[] = {"float32", "uint8", NULL};
static const char *const label_types[] = {"int32", "uint8", "float32", NULL};

struct raw_attributes {
    struct strings file, labels;
    struct ints shape, label_shape;
    int dtype, label_dtype; /* indices into feature_types, label_types */
    int64_t rows;
};

/* Without a header the file's size is the only check, so it must match exactly. For a packed file
 * it cannot be checked: there "rows" limits what is unpacked. */
static err find_rows(const struct input *in, const struct raw_attributes *a, struct stored_rows *e)
{
    const char *name = input_path(in);
    uint64_t row_bytes = 0;
    TRY(storage_bytes(name, 1, &e->features.shape, e->features.dtype, &row_bytes));
    e->rows = a->rows ? a->rows : (int64_t)(input_file_bytes(in) / row_bytes);
    if (!a->rows && input_is_packed(in))
        return fail(ERR_INPUT, "%s: say with \"rows\" how many rows this packed file holds", name);
    if (!a->rows && input_file_bytes(in) % row_bytes)
        return fail(ERR_INPUT, "%s: expected rows of %llu bytes, %llu bytes are no whole number",
                    name, (unsigned long long)row_bytes, (unsigned long long)input_file_bytes(in));
    return OK;
}

static err open_files(const struct raw_attributes *a, const struct format_context *context,
                      struct stored_rows *e)
{
    static const enum dtype stored[] = {INT32, UINT8, FLOAT32};
    e->features.dtype = a->dtype == 0 ? FLOAT32 : UINT8;
    e->features.what = "features";
    e->labels.dtype = stored[a->label_dtype];
    e->labels.what = "labels, as the rows of features say";
    TRY(storage_shape(&a->shape, "shape", &e->features.shape));
    TRY(storage_shape(&a->label_shape, "label_shape", &e->labels.shape));
    TRY(input_open(context, context->files[0], &e->features.input));
    TRY(find_rows(e->features.input, a, e));
    return context->without_labels ? OK : input_open(context, context->files[1], &e->labels.input);
}

static err open_raw(const void *attributes, const struct format_context *context,
                    struct dataset *ret)
{
    struct stored_rows elements = {0};
    err e = open_files(attributes, context, &elements);
    if (!e) e = elements_load(&elements, ret);
    elements_close(&elements);
    return e;
}

static err read_raw(const void *attributes, const struct format_context *context,
                    struct row_reader **ret)
{
    struct stored_rows elements = {0};
    const err e = open_files(attributes, context, &elements);
    if (!e) return elements_read(&elements, ret);
    elements_close(&elements);
    return e;
}

static const struct field fields[] = {
    FIELD_OF("file", FILES, struct raw_attributes, file, .may_differ = true,
             .help = "features of all rows, little-endian, plain or compressed: a file, a list, a "
                     "pattern, or @ and a file of names"),
    FIELD_OF("shape", INTS, struct raw_attributes, shape, .min = 1, .max = 0x1p40,
             .count_max = RANK_MAX - 1, .help = "shape of one example"),
    FIELD_OF("dtype", ENUM, struct raw_attributes, dtype, .fallback = "\"float32\"",
             .choices = feature_types, .help = "type of the stored features"),
    FIELD_OF("labels", FILES, struct raw_attributes, labels, .may_differ = true,
             .help = "labels of all rows, little-endian, plain or compressed"),
    FIELD_OF("label_shape", INTS, struct raw_attributes, label_shape, .fallback = "[]", .min = 1,
             .max = 0x1p40, .count_max = RANK_MAX - 1,
             .help = "shape of the label of one example; []: one number"),
    FIELD_OF("label_dtype", ENUM, struct raw_attributes, label_dtype, .fallback = "\"int32\"",
             .choices = label_types, .help = "type of the stored labels; uint8 becomes int32"),
    FIELD_OF("rows", INT, struct raw_attributes, rows, .fallback = "0", .max = 0x1p40,
             .help = "number of rows; 0: from the size of a plain file"),
    {0},
};

const struct format format_raw = {
    .object = {"raw", "numbers without a header", fields, sizeof(struct raw_attributes)},
    .open = open_raw,
    .read_stored = read_raw,
};
