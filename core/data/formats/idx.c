/* idx: the format of MNIST: a header (0, 0, type, rank; each dimension as a big-endian 32-bit
 * number), then the elements, big-endian, nothing behind them. Plain or packed.
 *
 * Features of three dimensions [rows, y, x] are images of one channel and become [y, x, 1] per
 * example, so that a convolution takes them as they are.
 */
#include "core/data/input.h"

#include <stdlib.h>

struct idx_attributes {
    struct strings features, labels;
};

/* [rows, ...] as the file has it. */
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

/* Of one example: without the dimension of the rows. */
static struct shape example_shape(const struct header *h)
{
    struct shape shape = {.rank = h->rank - 1};
    for (int i = 1; i < h->rank; i++) shape.dim[i - 1] = h->dim[i];
    return shape;
}

/* The format is big-endian, memory is not. */
static void swap_words(struct block *b)
{
    uint32_t *word = b->at;
    for (size_t i = 0; i < b->bytes / 4; i++) word[i] = __builtin_bswap32(word[i]);
}

/* The size is known from the header before memory is asked for, and checked against the file by
 * input_block. */
static err read_elements(struct input *in, const struct header *h, struct shape *ret_shape,
                         struct block *ret)
{
    uint64_t bytes = 0;
    struct shape shape = example_shape(h);
    err e = shape_check(&shape);
    if (e) return fail_prefix(e, "%s", input_path(in));
    TRY(storage_bytes(input_path(in), h->dim[0], &shape, h->dtype, &bytes));
    TRY(input_block(in, bytes, "elements as the idx header says", ret));
    if (h->dtype != UINT8) swap_words(ret);
    *ret_shape = shape;
    return OK;
}

static err read_features(struct input *in, struct dataset *d, struct storage *s)
{
    struct header h = {0};
    TRY(read_header(in, &h));
    if (h.dtype == INT32)
        return fail(ERR_INPUT, "%s: offset 2: features must be uint8 or float32, not int32",
                    input_path(in));
    struct shape *shape = &d->columns[FEATURES].shape;
    TRY(read_elements(in, &h, shape, &s->features));
    /* one channel, so that conv2d and flatten both take it */
    if (h.rank == 3) shape->dim[shape->rank++] = 1;
    d->rows = h.dim[0];
    d->columns[FEATURES].dtype = h.dtype;
    return OK;
}

static err read_labels(struct input *in, struct dataset *d, struct storage *s)
{
    struct header h = {0};
    TRY(read_header(in, &h));
    if (h.dim[0] != d->rows)
        return fail(ERR_INPUT, "%s: offset 4: expected %lld labels, one per row of %s, got %lld",
                    input_path(in), (long long)d->rows, s->name, (long long)h.dim[0]);
    struct block stored = {0};
    TRY(read_elements(in, &h, &d->columns[LABELS].shape, &stored));
    if (h.dtype == UINT8) TRY(storage_widen_labels(&stored, &stored));
    s->labels = stored;
    d->columns[LABELS].dtype = h.dtype == UINT8 ? INT32 : h.dtype;
    return OK;
}

/* The block of features moves to the dataset with storage_give; on failure storage_drop has it. */
static err open_idx(const void *attributes, const struct format_context *context,
                    struct dataset *ret)
{
    struct input *features = NULL, *labels = NULL;
    struct storage s = {0};
    struct dataset d = {0};
    err e = input_open(context, context->files[0], &features);
    if (!e) s.name = input_path(features);
    if (!e) e = read_features(features, &d, &s);
    if (!e && !context->without_labels) e = input_open(context, context->files[1], &labels);
    if (!e && labels) s.label_name = input_path(labels);
    if (!e && labels) e = read_labels(labels, &d, &s);
    if (!e) e = storage_give(&s, &d);
    if (!e) *ret = d;
    storage_drop(&s);
    input_close(features);
    input_close(labels);
    return e;
}

static const struct field fields[] = {
    {.name = "features",
     .type = FIELD_FILES,
     .offset = offsetof(struct idx_attributes, features),
     .may_differ = true,
     .help = "idx files of uint8 or float32, plain or packed: a file, a list, a pattern, @ and a "
             "file of "
             "names; [rows, y, x] become images [y, x, 1]"},
    {.name = "labels",
     .type = FIELD_FILES,
     .offset = offsetof(struct idx_attributes, labels),
     .may_differ = true,
     .help = "idx file with one label per row: uint8, int32 or float32"},
    {0},
};

const struct format format_idx = {
    .object = {"idx", "idx files as of MNIST, plain or packed", fields,
               sizeof(struct idx_attributes)},
    .open = open_idx,
};
