/* image: the cell is a JPEG or PNG file, which is decoded to pixels, or is raw pixels. */
#include "core/data/images/image.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/columns/column.h"

enum { SIDE_MAX = 4096 };

struct attributes {
    struct column_source source;
    struct ints size;
    int64_t channels;
    int resize; /* enum picture_fit */
    bool raw;
};

static const char *const fits[] = {
    [FIT_NONE] = "none", [FIT_STRETCH] = "stretch", [FIT_CROP] = "crop", NULL};

static const struct field fields[] = {
    FIELD_OF("source", STRING, struct column_source, cell, .fallback = "null",
             .help = "the cell it reads; null: the cell of the same name"),
    FIELD_OF("size", INTS, struct attributes, size, .min = 1, .max = SIDE_MAX, .count_min = 1,
             .count_max = 2,
             .help = "size that nodes read, [y, x] or one number for both: the column has the "
                     "shape [y, x, channels], with values from 0 to 255"),
    FIELD_OF("channels", INT, struct attributes, channels, .fallback = "3", .min = 1, .max = 3,
             .help = "3: red, green, blue; 1: grey"),
    FIELD_OF(
        "resize", ENUM, struct attributes, resize, .fallback = "\"none\"", .choices = fits,
        .help = "how images of other sizes are resized, bilinearly: stretch: to exactly this size; "
                "crop: keeping proportions, then the middle is cut out; none: they are an error"),
    FIELD_OF("raw", BOOL, struct attributes, raw, .fallback = "false",
             .help = "the cell has the bytes of the pixels themselves, [y, x, channel], as "
                     "tf.io.decode_raw reads them; otherwise it is a JPEG or PNG file"),
    {0},
};

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    (void)context;
    if (a->channels == 2) return fail(ERR_INPUT, "channels: expected 1 or 3, got 2");
    if (a->raw && a->resize != FIT_NONE)
        return fail(ERR_INPUT, "resize: of raw pixels nothing says another size");
    m->made.dtype = UINT8;
    m->made.shape = (struct shape){3, {a->size.at[0], a->size.at[a->size.count - 1], a->channels}};
    return OK;
}

/* The cell's text, or the first of its words with the blanks that it has in the file */
static struct cell_word bytes_of(const struct cell *cell)
{
    if (cell->text) return (struct cell_word){cell->text, cell->length};
    return cell->words && cell->count > 0 ? cell->words[0] : (struct cell_word){0};
}

static err copy_raw(struct cell_word bytes, const struct shape *shape, void *to)
{
    const size_t expected = (size_t)shape_count(shape);
    if (bytes.length != expected)
        return fail(ERR_INPUT,
                    "expected %zu bytes for [%" PRId64 ", %" PRId64 ", %" PRId64 "], "
                    "got %zu",
                    expected, shape->dim[0], shape->dim[1], shape->dim[2], bytes.length);
    memcpy(to, bytes.text, expected);
    return OK;
}

static err place(const struct picture *p, int fit, const struct shape *shape, void *to)
{
    const int64_t y = shape->dim[0], x = shape->dim[1];
    if (p->y == y && p->x == x) {
        memcpy(to, p->at, (size_t)shape_count(shape));
        return OK;
    }
    if (fit == FIT_NONE)
        return fail(ERR_INPUT,
                    "expected an image of %" PRId64 " x %" PRId64 " pixels, got %" PRId64
                    " x %" PRId64 " (\"resize\" says what becomes of other sizes)",
                    y, x, p->y, p->x);
    picture_resize(p, fit, y, x, to);
    return OK;
}

static err make(struct column_maker *m, const struct cell *cells, void *to)
{
    const struct attributes *a = m->attributes;
    const struct cell_word bytes = bytes_of(&cells[m->cell]);
    struct picture picture = {.channels = a->channels, .left = m->pixels_left};
    if (bytes.length == 0) return fail(ERR_INPUT, "expected an image, got none");
    if (a->raw) return copy_raw(bytes, &m->made.shape, to);
    TRY(picture_decode((const uint8_t *)bytes.text, bytes.length, &picture));
    const err e = place(&picture, a->resize, &m->made.shape, to);
    picture_free(&picture);
    return e;
}

const struct column_kind column_image = {
    .object = {"image", "pixels of JPEG or PNG files, or of bytes", fields,
               sizeof(struct attributes)},
    .open = open,
    .make = make,
};
