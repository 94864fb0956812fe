/* digits: drawn images [28, 28, 1] of the ten digits, for examples and tests on a bare machine.
 *
 * An image is a glyph of pen strokes, bent, turned, scaled, sheared, shifted, drawn with a pen of
 * random width and strength, with noise on every pixel. It is a function of (seed, split, row)
 * alone, and of no mathematical library, so every machine draws the same bytes. Ten rows in a row
 * have ten different digits. The ranges below are such that softmax regression on 60000 rows gets
 * about 0.90 of 10000 others right, and a small convolutional network about 0.99.
 */
#include "core/base/random.h"
#include "core/data/formats/digits_strokes.h"
#include "core/data/loops.h"
#include "core/data/storage.h"

enum { CURVE_PIECES = 4 }; /* straight pieces per curve */

static const float height_min = 6.5f, height_max = 9.5f; /* half the height, pixels */
static const float aspect_min = 0.8f, aspect_max = 1.2f; /* width to height */
static const float turn_max = 0.23f;                     /* radians, either way */
static const float shear_max = 0.3f;
static const float bend_max = 0.2f;                /* of the half height, at its ends */
static const float shift_max = 1.75f;              /* pixels, either way */
static const float pen_min = 0.6f, pen_max = 1.5f; /* half the stroke's width, pixels */
static const float ink_min = 110, ink_max = 255;
static const float noise_max = 60; /* up or down; mostly less */
static const float gap_max = 5.0f; /* radius of a disc without ink, pixels */

struct digits_attributes {
    int64_t rows, seed;
    int split; /* index into splits */
};
static const char *const splits[] = {"train", "test", NULL};

/* The random numbers of one image, drawn in the order of use. */
struct draws {
    uint64_t key, next;
};

static float draw(struct draws *d, float low, float high)
{
    return low + (high - low) * random_uniform(d->key, d->next++);
}

/* Maps the plane of the glyphs to pixels. */
struct hand {
    float bend[4];          /* x += bend of y^2, x y; y += bend of x^2, x y */
    float xx, xy, yx, yy;   /* the linear part */
    float shift_x, shift_y; /* of the center */
};

/* sin and cos to 1e-6 for |angle| < 0.5: libm's may differ in the last bit between machines */
static void sine_cosine(float angle, float *sine, float *cosine)
{
    float square = angle * angle;
    *sine = angle * (1 - square / 6 * (1 - square / 20));
    *cosine = 1 - square / 2 * (1 - square / 12 * (1 - square / 30));
}

/* Changing the order of the draws would change every image. */
static struct hand draw_hand(struct draws *d)
{
    struct hand h;
    for (int i = 0; i < 4; i++) h.bend[i] = draw(d, -bend_max, bend_max);
    float height = draw(d, height_min, height_max);
    float width = height * draw(d, aspect_min, aspect_max);
    float shear = draw(d, -shear_max, shear_max), sine, cosine;
    sine_cosine(draw(d, -turn_max, turn_max), &sine, &cosine);
    h.xx = cosine * width;
    h.xy = cosine * shear * width - sine * height;
    h.yx = sine * width;
    h.yy = sine * shear * width + cosine * height;
    h.shift_x = 0.5f * (DIGIT_SIDE - 1) + draw(d, -shift_max, shift_max);
    h.shift_y = 0.5f * (DIGIT_SIDE - 1) + draw(d, -shift_max, shift_max);
    return h;
}

/* Bends in the plane of the glyph first, so that strokes that meet still meet. */
static struct point place(const struct hand *h, float x, float y)
{
    float bent_x = x + h->bend[0] * y * y + h->bend[1] * x * y;
    float bent_y = y + h->bend[2] * x * x + h->bend[3] * x * y;
    return (struct point){h->xx * bent_x + h->xy * bent_y + h->shift_x,
                          h->yx * bent_x + h->yy * bent_y + h->shift_y};
}

static struct point place_on_curve(const struct hand *h, const struct curve *c, int piece)
{
    float t = (float)piece / CURVE_PIECES, s = 1 - t;
    return place(h, s * s * c->from_x + 2 * s * t * c->control_x + t * t * c->to_x,
                 s * s * c->from_y + 2 * s * t * c->control_y + t * t * c->to_y);
}

static int clamp_row(float y)
{
    return y < 0 ? 0 : y > DIGIT_SIDE - 1 ? DIGIT_SIDE - 1 : (int)y;
}

static struct piece make_piece(struct point from, struct point to, float reach)
{
    struct point along = {to.x - from.x, to.y - from.y};
    float top = from.y < to.y ? from.y : to.y, bottom = from.y < to.y ? to.y : from.y;
    return (struct piece){
        .from = from,
        .along = along,
        .per_square = 1 / (along.x * along.x + along.y * along.y + 1e-6f),
        .first_row = clamp_row(top - reach),
        .last_row = clamp_row(bottom + reach + 1),
    };
}

static struct pen draw_pen(struct draws *d)
{
    struct pen pen;
    pen.radius = draw(d, pen_min, pen_max);
    pen.ink = draw(d, ink_min, ink_max);
    pen.noise = draw(d, 0, noise_max);
    pen.noise_key = (uint32_t)random_u64(d->key, d->next++);
    pen.gap.x = draw(d, 0, DIGIT_SIDE - 1);
    pen.gap.y = draw(d, 0, DIGIT_SIDE - 1);
    pen.gap_radius = draw(d, 0, gap_max);
    return pen;
}

static void draw_glyph(const struct loops *loops, const struct glyph *glyph, struct draws *d,
                       uint8_t *image)
{
    float squares[DIGIT_FLOATS];
    for (int i = 0; i < DIGIT_FLOATS; i++) squares[i] = DIGIT_PIXELS;
    struct hand hand = draw_hand(d);
    struct pen pen = draw_pen(d);
    for (int i = 0; i < glyph->count; i++) {
        struct point from = place_on_curve(&hand, &glyph->curves[i], 0);
        for (int k = 1; k <= CURVE_PIECES; k++) {
            struct point to = place_on_curve(&hand, &glyph->curves[i], k);
            struct piece piece = make_piece(from, to, pen.radius + 0.5f);
            loops->approach(squares, &piece);
            from = to;
        }
    }
    loops->shade(image, squares, &pen);
}

/* Rows 10 k to 10 k + 9 are the ten digits in random order. */
static int digit_of_row(uint64_t key, int64_t row)
{
    return (int)random_permute(random_u64(key, (uint64_t)row / 10), 10, (uint64_t)row % 10);
}

/* Labels and images are drawn by separate keys. */
static void draw_rows(uint64_t key, int64_t rows, uint8_t *images, int32_t *labels)
{
    const struct loops *loops = loops_best();
    uint64_t label_key = random_key(key, "labels"), image_key = random_key(key, "images");
    for (int64_t row = 0; row < rows; row++) {
        struct draws d = {.key = random_u64(image_key, (uint64_t)row)};
        labels[row] = digit_of_row(label_key, row);
        int style = (int)draw(&d, 0, GLYPHS_PER_DIGIT);
        draw_glyph(loops, &digit_glyphs[labels[row]][style], &d, images + row * DIGIT_PIXELS);
    }
}

static err open_digits(const void *attributes, const struct format_context *context,
                       struct dataset *ret)
{
    const struct digits_attributes *a = attributes;
    struct column columns[STORED_COLUMNS] = {
        [FEATURES] = {.dtype = UINT8, .shape = {.rank = 3, .dim = {DIGIT_SIDE, DIGIT_SIDE, 1}}},
        [LABELS] = {.dtype = INT32}};
    struct dataset d = {
        .rows = a->rows,
        .columns = columns,
    };
    struct storage s = {.name = a->split == 0 ? "digits (train)" : "digits (test)"};
    uint64_t seed = context->seed + (uint64_t)a->seed;
    err e = block_new((uint64_t)a->rows * DIGIT_PIXELS, &s.features);
    if (!e) e = block_new((uint64_t)a->rows * sizeof(int32_t), &s.labels);
    if (!e) {
        draw_rows(random_key(seed, s.name), a->rows, s.features.at, s.labels.at);
        e = storage_give(&s, &d);
    }
    if (!e) *ret = d;
    storage_drop(&s);
    return e;
}

static const struct field fields[] = {
    FIELD_OF("rows", INT, struct digits_attributes, rows, .fallback = "60000", .min = 1,
             .max = 1 << 30, .help = "number of images"),
    FIELD_OF("split", ENUM, struct digits_attributes, split, .fallback = "\"train\"",
             .choices = splits, .help = "which of two disjoint sets of images"),
    FIELD_OF("seed", INT, struct digits_attributes, seed, .fallback = "0",
             .help = "added to the seed of the run"),
    {0},
};

const struct format format_digits = {
    .object = {"digits", "drawn images of the ten digits, made on the spot", fields,
               sizeof(struct digits_attributes)},
    .open = open_digits,
};
