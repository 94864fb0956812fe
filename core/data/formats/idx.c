/* idx: the format of MNIST: a header (0, 0, type, rank; each dimension as a big-endian 32-bit
 * number), then the elements, big-endian, and nothing else. Plain or packed.
 *
 * Features of three dimensions [rows, y, x] are images of one channel and become [y, x, 1] per
 * example, as convolutions need.
 */
#include "core/data/formats/elements.h"

struct idx_attributes {
    struct strings features, labels;
};

/* Shape [rows, ...] in the file. */
struct header {
    enum dtype dtype;
    int rank;
    int64_t dim[RANK_MAX + 1];
};

static const struct {
    uint8_t code;
    enum dtype dtype;
} types[] = {{0x08, UINT8}, {0x0c, INT32}, {0x0d, FLOAT32}};
enum { TYPES = sizeof types / sizeof types[0] };

static err read_type(struct input *in, const uint8_t magic[4], struct header *h)
{
    if (magic[0] || magic[1])
        return fail(ERR_INPUT,
                    "%s: offset 0: expected an idx file (two zero bytes, type, rank), got "
                    "%02x %02x %02x %02x",
                    input_path(in), magic[0], magic[1], magic[2], magic[3]);
    int i = 0;
    while (i < TYPES && types[i].code != magic[2]) i++;
    if (i == TYPES)
        return fail(ERR_INPUT,
                    "%s: offset 2: expected type 08 (uint8), 0c (int32) or 0d (float32), got %02x",
                    input_path(in), magic[2]);
    if (magic[3] < 1 || magic[3] > RANK_MAX)
        return fail(ERR_INPUT, "%s: offset 3: expected 1 to %d dimensions, got %d", input_path(in),
                    (int)RANK_MAX, magic[3]);
    h->dtype = types[i].dtype;
    h->rank = magic[3];
    return OK;
}

static err read_header(struct input *in, struct header *h)
{
    uint8_t bytes[4];
    TRY(input_exact(in, bytes, 4, "idx header"));
    TRY(read_type(in, bytes, h));
    for (int i = 0; i < h->rank; i++) {
        TRY(input_exact(in, bytes, 4, "idx dimension"));
        h->dim[i] = (int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
        if (h->dim[i] == 0)
            return fail(ERR_INPUT, "%s: offset %d: dimension %d is 0: the file has no elements",
                        input_path(in), 4 + 4 * i, i);
    }
    return OK;
}

/* Shape of one example, without the dimension of rows. */
static struct shape example_shape(const struct header *h)
{
    struct shape shape = {.rank = h->rank - 1};
    for (int i = 1; i < h->rank; i++) shape.dim[i - 1] = h->dim[i];
    return shape;
}

/* Checks the size in the header against the file before memory is allocated. */
static err open_file(const struct format_context *context, const char *path, struct header *h,
                     struct stored_file *ret)
{
    uint64_t bytes;
    TRY(input_open(context, path, &ret->input));
    TRY(read_header(ret->input, h));
    ret->shape = example_shape(h);
    ret->dtype = h->dtype;
    ret->is_big_endian = true;
    ret->what = "elements as the idx header says";
    const err e = shape_check(&ret->shape);
    if (e) return fail_prefix(e, "%s", input_path(ret->input));
    TRY(storage_bytes(input_path(ret->input), h->dim[0], &ret->shape, ret->dtype, &bytes));
    return input_announce(ret->input, bytes, ret->what);
}

static err open_features(const struct format_context *context, struct stored_rows *e)
{
    struct header h = {0};
    TRY(open_file(context, context->files[0], &h, &e->features));
    if (h.dtype == INT32)
        return fail(ERR_INPUT, "%s: offset 2: features must be uint8 or float32, not int32",
                    input_path(e->features.input));
    /* one channel, so that both conv2d and flatten accept it */
    if (h.rank == 3) e->features.shape.dim[e->features.shape.rank++] = 1;
    e->rows = h.dim[0];
    return OK;
}

static err open_labels(const struct format_context *context, struct stored_rows *e)
{
    struct header h = {0};
    TRY(open_file(context, context->files[1], &h, &e->labels));
    if (h.dim[0] == e->rows) return OK;
    return fail(ERR_INPUT, "%s: offset 4: expected %lld labels, one per row of %s, got %lld",
                input_path(e->labels.input), (long long)e->rows, input_path(e->features.input),
                (long long)h.dim[0]);
}

static err open_files(const struct format_context *context, struct stored_rows *e)
{
    TRY(open_features(context, e));
    return context->without_labels ? OK : open_labels(context, e);
}

static err open_idx(const void *attributes, const struct format_context *context,
                    struct dataset *ret)
{
    struct stored_rows elements = {0};
    err e = open_files(context, &elements);
    if (!e) e = elements_load(&elements, ret);
    elements_close(&elements);
    (void)attributes;
    return e;
}

static err read_idx(const void *attributes, const struct format_context *context,
                    struct row_reader **ret)
{
    struct stored_rows elements = {0};
    const err e = open_files(context, &elements);
    (void)attributes;
    if (!e) return elements_read(&elements, ret);
    elements_close(&elements);
    return e;
}

static const struct field fields[] = {
    FIELD_OF("features", FILES, struct idx_attributes, features, .may_differ = true,
             .help = "idx files of uint8 or float32, plain or compressed: a file, a list, a "
                     "pattern, or @ and a file of names; [rows, y, x] become images [y, x, 1]"),
    FIELD_OF("labels", FILES, struct idx_attributes, labels, .may_differ = true,
             .help = "idx file with one label per row: uint8, int32 or float32"),
    {0},
};

const struct format format_idx = {
    .object = {"idx", "idx files as of MNIST, plain or packed", fields,
               sizeof(struct idx_attributes)},
    .open = open_idx,
    .read_stored = read_idx,
};
