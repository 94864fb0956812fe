/* digits_strokes.h - the ten digits as pen strokes.
 *
 * A digit has one or two glyphs. Coordinates: x to the right, about -0.6 to 0.6; y down, about -1
 * to 1.
 */
#ifndef CORE_DATA_FORMATS_DIGITS_STROKES_H
#define CORE_DATA_FORMATS_DIGITS_STROKES_H

enum { CURVES_MAX = 8, GLYPHS_PER_DIGIT = 2 };

/* A quadratic Bezier curve; straight if the control point lies on the line. */
struct curve {
    float from_x, from_y, control_x, control_y, to_x, to_y;
};

struct glyph {
    int count;
    struct curve curves[CURVES_MAX];
};

extern const struct glyph digit_glyphs[10][GLYPHS_PER_DIGIT];

#endif
