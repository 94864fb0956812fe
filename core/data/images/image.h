/* image.h - images as files have them, JPEG or PNG, and as rows of pixels of one size.
 *
 * What a file says of its size is looked at before memory is taken for it. A few bytes may say the
 * largest, and as many passes: where a stranger sends them, all together have this many pixels.
 */
#ifndef CORE_DATA_IMAGES_IMAGE_H
#define CORE_DATA_IMAGES_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* Of a side, of both together, and of the passes over one JPEG, each of which may cost as much as
 * all of its pixels. */
enum { PICTURE_SIDE_MAX = 1 << 15, PICTURE_PIXELS_MAX = 1 << 25, PICTURE_SCANS_MAX = 100 };
/* Of a stranger's that have more only one is in memory at a time, where a reader may have ten bytes
 * for each pixel; who wants another one waits. */
enum { PICTURE_LARGE_PIXELS = 1 << 22 };

struct picture {
    int64_t y, x, channels; /* 1: grey; 3: red, green, blue */
    uint8_t *at;            /* [y][x][channels] */
    int64_t *left; /* of a stranger's: pixels that may be decoded yet, those of each pass anew */
    bool is_the_large_one;
};

/* ERR_INPUT: not of a size that is read. */
err picture_check_size(int64_t y, int64_t x);
/* A pass over all of it. false: it has more pixels than are left. */
bool picture_pass(const struct picture *);
/* Pixels for a picture whose numbers are set. ERR_MEMORY. */
err picture_new(struct picture *);

void picture_free(struct picture *); /* by its owner, in the thread that had it decoded */

/* A kind of files. decode: channels are set; pixels are the caller's, also after a failure. NULL:
 * the program was built without it. */
struct picture_kind {
    const char *name, *library, *package; /* the package: where the library can be had */
    err (*decode)(const uint8_t *bytes, size_t count, struct picture *);
    const char *(*version)(void);
};
extern const struct picture_kind picture_jpeg, picture_png;

/* By its first bytes; NULL: neither. */
const struct picture_kind *picture_kind_of(const uint8_t *bytes, size_t count);

/* ret->channels says how many are wanted, ret->left of how many pixels it may be. ERR_INPUT: what
 * is wrong with it. */
err picture_decode(const uint8_t *bytes, size_t count, struct picture *ret);

/* How pictures of other sizes become one of y and x */
enum picture_fit {
    FIT_NONE,    /* they do not */
    FIT_STRETCH, /* by each side's own factor */
    FIT_CROP,    /* by one factor, at which the middle of it has that size */
};

/* Bilinear, as TensorFlow's resize without antialias; to: [y][x][channels]. */
void picture_resize(const struct picture *, enum picture_fit, int64_t y, int64_t x, uint8_t *to);

#endif
