/* loops.h - the arithmetic of core/data on every pixel and every value.
 *
 * loops.c is compiled once per instruction set; each copy is one table. All of them make the same
 * bits, since none contracts to fused multiply-add (see meson.build).
 */
#ifndef CORE_DATA_LOOPS_H
#define CORE_DATA_LOOPS_H

#include <stdint.h>

enum {
    DIGIT_SIDE = 28,  /* pixels */
    DIGIT_PITCH = 32, /* floats of a row of distances: whole vectors */
    DIGIT_FLOATS = DIGIT_SIDE * DIGIT_PITCH,
    DIGIT_PIXELS = DIGIT_SIDE * DIGIT_SIDE,
};

struct point { /* in pixels, from the middle of the first one */
    float x, y;
};

/* A straight piece of stroke and the rows of pixels that the pen can reach from it. */
struct piece {
    struct point from, along; /* along: to - from */
    float per_square;         /* 1 / |along|^2 */
    int first_row, last_row;
};

struct pen {
    float radius, ink; /* pixels, brightness */
    uint32_t noise_key;
    float noise;      /* brightness, in either direction */
    struct point gap; /* middle of the disc where the pen gave no ink */
    float gap_radius;
};

struct loops {
    /* y = scale * x + offset; of floats, in double */
    void (*scale_bytes)(float *y, const uint8_t *x, float scale, float offset, int64_t n);
    void (*scale_floats)(float *y, const float *x, double scale, double offset, int64_t n);
    /* uniform in [0, 1), 24 bits; n at most 2^32 - 1 */
    void (*fill_uniform)(float *y, uint32_t key, uint32_t n);
    /* Lowers squares [y, x], the squared distances to the nearest piece, to those to this one. */
    void (*approach)(float squares[DIGIT_FLOATS], const struct piece *);
    /* From distances to pixels: full ink inside the pen, falling over one pixel at its edge. */
    void (*shade)(uint8_t image[DIGIT_PIXELS], const float squares[DIGIT_FLOATS],
                  const struct pen *);
};

const struct loops *loops_best(void); /* for this machine */

#endif
