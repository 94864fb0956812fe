/* jpeg.c - JPEG, by libjpeg: see image.h. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "core/data/images/image.h"

enum { INKS = 4 };

struct jpeg_reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    char why[JMSG_LENGTH_MAX];
    uint8_t *inks; /* a row of cyan, magenta, yellow, black; NULL: not CMYK */
    const struct picture *picture;
    int scans; /* begun so far */
};

static _Noreturn void leave(j_common_ptr jpeg)
{
    struct jpeg_reading *r = jpeg->client_data;
    jpeg->err->format_message(jpeg, r->why);
    longjmp(r->out, 1);
}

/* Treats as errors the warnings after which pixels are invented. */
static void hear(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                      code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC))
        leave(jpeg);
}

static void look_at_progress(j_common_ptr jpeg)
{
    struct jpeg_reading *r = jpeg->client_data;
    const bool is_next = r->jpeg.input_scan_number > r->scans;
    if (!is_next) return;
    r->scans = r->jpeg.input_scan_number;
    if (r->scans > PICTURE_SCANS_MAX)
        snprintf(r->why, sizeof r->why, "more than %d scans", PICTURE_SCANS_MAX);
    else if (r->scans > 1 && !picture_pass(r->picture))
        snprintf(r->why, sizeof r->why, "%d scans, for which no pixels are left", r->scans);
    else
        return;
    longjmp(r->out, 1);
}

/* CMYK values written by Adobe are inverted. */
static void mix_inks(const uint8_t *inks, int64_t x, int is_inverted, uint8_t *to)
{
    for (int64_t i = 0; i < x; i++, inks += INKS)
        for (int c = 0; c < INKS - 1; c++) {
            const int ink = is_inverted ? inks[c] : 255 - inks[c];
            const int black = is_inverted ? inks[INKS - 1] : 255 - inks[INKS - 1];
            *to++ = (uint8_t)(ink * black / 255);
        }
}

static err read_head(struct jpeg_reading *r, struct picture *p)
{
    jpeg_read_header(&r->jpeg, TRUE);
    if (r->jpeg.arith_code)
        return fail(ERR_INPUT, "its numbers are packed by arithmetic coding, which is not read; "
                               "jpegtran writes the same image without");
    TRY(picture_check_size(r->jpeg.image_height, r->jpeg.image_width));
    p->y = r->jpeg.image_height;
    p->x = r->jpeg.image_width;
    const int has_inks = r->jpeg.num_components == INKS;
    if (has_inks && p->channels == 1)
        return fail(ERR_INPUT, "an image of four inks has no one channel that is grey");
    r->jpeg.out_color_space = has_inks ? JCS_CMYK : p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (has_inks) r->inks = malloc((size_t)p->x * INKS);
    if (has_inks && !r->inks) return fail(ERR_MEMORY, "no memory for a row of an image");
    return picture_new(p);
}

static err read_pixels(struct jpeg_reading *r, struct picture *p)
{
    jpeg_start_decompress(&r->jpeg);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        uint8_t *row = p->at + (int64_t)r->jpeg.output_scanline * p->x * p->channels;
        JSAMPROW to = r->inks ? r->inks : row;
        jpeg_read_scanlines(&r->jpeg, &to, 1);
        if (r->inks) mix_inks(r->inks, p->x, r->jpeg.saw_Adobe_marker, row);
    }
    jpeg_finish_decompress(&r->jpeg);
    return OK;
}

/* The library may longjmp to here: variables that change are in r and p. */
static err read_all(struct jpeg_reading *r, const uint8_t *bytes, size_t count, struct picture *p)
{
    if (setjmp(r->out)) return fail(ERR_INPUT, "%s", r->why);
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.progress = &r->progress;
    jpeg_mem_src(&r->jpeg, bytes, count);
    r->picture = p;
    TRY(read_head(r, p));
    return read_pixels(r, p);
}

static err decode(const uint8_t *bytes, size_t count, struct picture *p)
{
    struct jpeg_reading r = {.progress = {.progress_monitor = look_at_progress}};
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.jpeg.client_data = &r;
    r.errors.error_exit = leave;
    r.errors.emit_message = hear;
    const err e = read_all(&r, bytes, count, p);
    jpeg_destroy_decompress(&r.jpeg);
    free(r.inks);
    return e;
}

static const char *version(void)
{
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#ifdef LIBJPEG_TURBO_VERSION
    return TEXT(LIBJPEG_TURBO_VERSION);
#else
    return TEXT(JPEG_LIB_VERSION);
#endif
}

const struct picture_kind picture_jpeg = {"JPEG", "libjpeg", "libjpeg62-turbo-dev", decode,
                                          version};
