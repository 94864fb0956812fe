/* loops.h - loops of core/data over pixels and values.
 *
 * loops.c is compiled once per instruction set; each copy has one table. All give bitwise equal
 * results, since none uses fused multiply-add (see meson.build).
 */
#ifndef CORE_DATA_LOOPS_H
#define CORE_DATA_LOOPS_H

#include <stdint.h>

enum {
    DIGIT_SIDE = 28,  /* pixels */
    DIGIT_PITCH = 32, /* floats per row of distances, for whole vectors */
    DIGIT_FLOATS = DIGIT_SIDE * DIGIT_PITCH,
    DIGIT_PIXELS = DIGIT_SIDE * DIGIT_SIDE,
};

struct point { /* in pixels, from the center of the first one */
    float x, y;
};

/* A straight piece of a stroke and the rows of pixels within the pen's reach. */
struct piece {
    struct point from, along; /* along: to - from */
    float per_square;         /* 1 / |along|^2 */
    int first_row, last_row;
};

struct pen {
    float radius, ink; /* pixels, brightness */
    uint32_t noise_key;
    float noise;      /* brightness, at most, up or down */
    struct point gap; /* center of a disc without ink */
    float gap_radius;
};

struct loops {
    /* y = scale * x + offset; scale_floats computes in double */
    void (*scale_bytes)(float *y, const uint8_t *x, float scale, float offset, int64_t n);
    void (*scale_floats)(float *y, const float *x, double scale, double offset, int64_t n);
    /* uniform in [0, 1), 24 bits; n at most 2^32 - 1 */
    void (*fill_uniform)(float *y, uint32_t key, uint32_t n);
    /* squares [y, x]: squared distances to the nearest piece, updated with this one. */
    void (*approach)(float squares[DIGIT_FLOATS], const struct piece *);
    /* Distances to pixels: full ink within the pen's radius, fading over one pixel at its edge. */
    void (*shade)(uint8_t image[DIGIT_PIXELS], const float squares[DIGIT_FLOATS],
                  const struct pen *);
};

const struct loops *loops_best(void); /* the best for this CPU */

#endif
