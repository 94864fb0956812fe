/* records: rows of a fixed length, the first bytes labels and the others an image, as in CIFAR-10.
 */
#include "core/data/formats/elements.h"

#include <inttypes.h>

enum { LABEL_BYTES_MAX = 64 };

struct records {
    struct strings file;
    struct ints shape;
    int64_t label_bytes, label_at, rows;
    bool channels_first;
};

/* Without a header the file's size is the only check, so it must match exactly. For a packed file
 * it cannot be checked: there "rows" limits what is unpacked. */
static err find_rows(const struct records *a, struct stored_rows *e)
{
    const struct input *in = e->features.input;
    uint64_t row_bytes;
    TRY(elements_bytes(&e->features, 1, &row_bytes));
    e->rows = a->rows ? a->rows : (int64_t)(input_file_bytes(in) / row_bytes);
    if (!a->rows && input_is_packed(in))
        return fail(ERR_INPUT, "%s: say with \"rows\" how many rows this packed file holds",
                    input_path(in));
    if (!a->rows && input_file_bytes(in) % row_bytes)
        return fail(ERR_INPUT,
                    "%s: expected records of %" PRIu64 " bytes, %" PRIu64
                    " bytes are no whole number",
                    input_path(in), row_bytes, input_file_bytes(in));
    return OK;
}

static err open_file(const struct records *a, const struct format_context *context,
                     struct stored_rows *e)
{
    e->features.dtype = UINT8;
    e->features.what = "records";
    e->features.head = (size_t)a->label_bytes;
    e->features.is_channels_first = a->channels_first;
    e->has_labels_inside = !context->without_labels;
    e->label_at = (size_t)a->label_at;
    e->labels = (struct stored_file){.dtype = INT32};
    TRY(storage_shape(&a->shape, "shape", &e->features.shape));
    if (a->channels_first && e->features.shape.rank != 3)
        return fail(ERR_INPUT, "shape: channels_first wants [y, x, channel]");
    if (a->label_at >= a->label_bytes)
        return fail(ERR_INPUT, "label_at: %" PRId64 ", but only %" PRId64 " bytes are labels",
                    a->label_at, a->label_bytes);
    TRY(input_open(context, context->files[0], &e->features.input));
    return find_rows(a, e);
}

static err open_records(const void *attributes, const struct format_context *context,
                        struct dataset *ret)
{
    struct stored_rows rows = {0};
    err e = open_file(attributes, context, &rows);
    if (!e) e = elements_load(&rows, ret);
    elements_close(&rows);
    return e;
}

static err read_records(const void *attributes, const struct format_context *context,
                        struct row_reader **ret)
{
    struct stored_rows rows = {0};
    const err e = open_file(attributes, context, &rows);
    if (!e) return elements_read(&rows, ret);
    elements_close(&rows);
    return e;
}

static const struct field fields[] = {
    FIELD_OF("file", FILES, struct records, file, .may_differ = true,
             .help =
                 "records of fixed length: a file, a list, a pattern, or @ and a file of names"),
    FIELD_OF("shape", INTS, struct records, shape, .min = 1, .max = 0x1p31,
             .count_max = RANK_MAX - 1,
             .help = "shape of the bytes behind the label, as nodes read it: [y, x, channel]"),
    FIELD_OF(
        "channels_first", BOOL, struct records, channels_first, .fallback = "true",
        .help =
            "images are stored as [channel, y, x]: all red, then all green, then all blue values"),
    FIELD_OF("label_bytes", INT, struct records, label_bytes, .fallback = "1", .min = 1,
             .max = LABEL_BYTES_MAX,
             .help = "bytes before the image: 1 of CIFAR-10, 2 of CIFAR-100"),
    FIELD_OF("label_at", INT, struct records, label_at, .fallback = "0", .max = LABEL_BYTES_MAX - 1,
             .help =
                 "index of the label among these bytes, from 0; CIFAR-100: 1 is the fine label"),
    FIELD_OF("rows", INT, struct records, rows, .fallback = "0", .max = 0x1p40,
             .help = "number of rows; 0: from the size of a plain file"),
    {0},
};

const struct format format_records = {
    .object = {"records", "bytes of a label and an image, row by row, as CIFAR-10 has them", fields,
               sizeof(struct records)},
    .open = open_records,
    .read_stored = read_records,
};
