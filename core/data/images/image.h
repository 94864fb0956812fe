/* image.h - decodes JPEG and PNG images, and resizes them to one size.
 *
 * The size in a file's header is checked before memory is allocated. A few bytes may claim the
 * largest size and many passes, so untrusted images have a limit of pixels for all of them together
 * (`left`).
 */
#ifndef CORE_DATA_IMAGES_IMAGE_H
#define CORE_DATA_IMAGES_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* Limits of one side, of pixels, and of scans of one JPEG, each of which may cost as much as
 * decoding all pixels. */
enum { PICTURE_SIDE_MAX = 1 << 15, PICTURE_PIXELS_MAX = 1 << 25, PICTURE_SCANS_MAX = 100 };
/* Of untrusted images with more pixels than this, only one is decoded at a time, since a decoder
 * may need ten bytes per pixel; other threads wait. */
enum { PICTURE_LARGE_PIXELS = 1 << 22 };

struct picture {
    int64_t y, x, channels; /* 1: grey; 3: red, green, blue */
    uint8_t *at;            /* [y][x][channels] */
    int64_t *left; /* for untrusted images: how many more pixels may be decoded, counted again in
                      each pass; NULL: no limit */
    bool is_the_large_one;
};

/* ERR_INPUT: size out of range. */
err picture_check_size(int64_t y, int64_t x);
/* Counts a pass over the picture. false: it has more pixels than `left` allows. */
bool picture_pass(const struct picture *);
/* Allocates pixels for y, x, channels. ERR_MEMORY. */
err picture_new(struct picture *);

void picture_free(struct picture *); /* in the thread that decoded it */

/* An image format. decode: the caller has set channels, and frees the picture, also after a
 * failure; NULL: the program was built without it. */
struct picture_kind {
    const char *name, *library, *package; /* package: of the system, that has the library */
    err (*decode)(const uint8_t *bytes, size_t count, struct picture *);
    const char *(*version)(void);
};
extern const struct picture_kind picture_jpeg, picture_png;

/* Detected by the first bytes; NULL: neither. */
const struct picture_kind *picture_kind_of(const uint8_t *bytes, size_t count);

/* The caller sets ret->channels to the number wanted, and ret->left. ERR_INPUT: what is wrong with
 * the image. */
err picture_decode(const uint8_t *bytes, size_t count, struct picture *ret);

/* How pictures of other sizes are fitted to y by x */
enum picture_fit {
    FIT_NONE,    /* not: other sizes are an error */
    FIT_STRETCH, /* scale each side separately */
    FIT_CROP,    /* scale both sides alike and crop to the center */
};

/* Bilinear, as TensorFlow's resize without antialias; to: [y][x][channels]. */
void picture_resize(const struct picture *, enum picture_fit, int64_t y, int64_t x, uint8_t *to);

#endif
