/* png.c - PNG, by libpng: see image.h. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "core/data/images/image.h"

/* Text chunks may unpack to a thousand times their size, so none is read: libpng's limit 1 means
 * none. */
enum { CHUNK_BYTES_MAX = 1 << 20, CHUNKS_KEPT = 1, WHY_BYTES = 128 };
/* Weights of grey, as in JPEG; blue has the rest. */
static const double RED = 0.299, GREEN = 0.587;

struct png_reading {
    png_structp png;
    png_infop info;
    const uint8_t *at;
    size_t left;
    uint8_t **rows;
    char why[WHY_BYTES];
};

static _Noreturn void leave(png_structp png, png_const_charp why)
{
    struct png_reading *r = png_get_error_ptr(png);
    snprintf(r->why, sizeof r->why, "%s", why);
    longjmp(png_jmpbuf(png), 1);
}

static void hear(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void take(png_structp png, png_bytep to, size_t count)
{
    struct png_reading *r = png_get_io_ptr(png);
    if (count > r->left) png_error(png, "the file ends too early");
    memcpy(to, r->at, count);
    r->at += count;
    r->left -= count;
}

/* Requests 8 bits per channel without transparency */
static void ask_for_channels(struct png_reading *r, int64_t channels)
{
    const int color = png_get_color_type(r->png, r->info);
    if (png_get_bit_depth(r->png, r->info) == 16) png_set_strip_16(r->png);
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
    if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(r->png);
    png_set_strip_alpha(r->png);
    if (channels == 3 && !(color & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(r->png);
    if (channels == 1 && (color & PNG_COLOR_MASK_COLOR))
        png_set_rgb_to_gray(r->png, PNG_ERROR_ACTION_NONE, RED, GREEN);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
}

static err read_head(struct png_reading *r, struct picture *p)
{
    png_read_info(r->png, r->info);
    p->y = png_get_image_height(r->png, r->info);
    p->x = png_get_image_width(r->png, r->info);
    TRY(picture_check_size(p->y, p->x));
    ask_for_channels(r, p->channels);
    if (png_get_rowbytes(r->png, r->info) != (size_t)(p->x * p->channels))
        return fail(ERR_INPUT, "its pixels are of no kind that is read");
    TRY(picture_new(p));
    r->rows = malloc((size_t)p->y * sizeof *r->rows);
    if (!r->rows) return fail(ERR_MEMORY, "no memory for the rows of an image");
    for (int64_t i = 0; i < p->y; i++) r->rows[i] = p->at + i * p->x * p->channels;
    return OK;
}

/* The library may longjmp to here: variables that change are in r and p. */
static err read_all(struct png_reading *r, struct picture *p)
{
    if (setjmp(png_jmpbuf(r->png))) return fail(ERR_INPUT, "%s", r->why);
    png_set_read_fn(r->png, r, take);
    png_set_user_limits(r->png, PICTURE_SIDE_MAX, PICTURE_SIDE_MAX);
    png_set_chunk_malloc_max(r->png, CHUNK_BYTES_MAX);
    png_set_chunk_cache_max(r->png, CHUNKS_KEPT);
    TRY(read_head(r, p));
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    return OK;
}

static err decode(const uint8_t *bytes, size_t count, struct picture *p)
{
    struct png_reading r = {.at = bytes, .left = count};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, leave, hear);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    const err e = r.info ? read_all(&r, p) : fail(ERR_MEMORY, "no memory to read it");
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.rows);
    return e;
}

static const char *version(void)
{
    return png_get_libpng_ver(NULL);
}

const struct picture_kind picture_png = {"PNG", "libpng", "libpng-dev", decode, version};
