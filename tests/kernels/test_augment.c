/* test_augment.c - images drawn anew: what is drawn is found again, and backward is the transpose.
 */
#include "tests/kernels/support.h"

#include <math.h>

enum { BATCH = 24, IN = 7, OUT = 5, CHANNELS = 3, PAD = 2, PLACES = IN + 2 * PAD - OUT + 1 };
enum { INPUTS = BATCH * IN * IN * CHANNELS, OUTPUTS = BATCH * OUT * OUT * CHANNELS };

static struct augment plain(const uint64_t *draw)
{
    return (struct augment){.batch = BATCH,
                            .in_y = IN,
                            .in_x = IN,
                            .out_y = OUT,
                            .out_x = OUT,
                            .channels = CHANNELS,
                            .pad = PAD,
                            .draws = true,
                            .contrast_low = 1,
                            .contrast_high = 1,
                            .key = 5,
                            .draw = draw};
}

static uint64_t *new_draw(struct device *d, uint64_t number)
{
    void *at;
    assert_int_equal(d->kernels->allocate(d, sizeof number, &at), OK);
    d->kernels->upload(d, at, &number, sizeof number);
    return at;
}

static float pixel(const float *x, int64_t image, int y, int column, int channel)
{
    if (y < 0 || y >= IN || column < 0 || column >= IN) return 0;
    return x[((image * IN + y) * IN + column) * CHANNELS + channel];
}

static bool is_cut_at(const float *x, const float *y, int64_t image, int place, bool is_flipped)
{
    const int top = place / PLACES - PAD, left = place % PLACES - PAD;
    for (int i = 0; i < OUT * OUT * CHANNELS; i++) {
        const int row = i / (OUT * CHANNELS), column = i / CHANNELS % OUT;
        const int from = left + (is_flipped ? OUT - 1 - column : column);
        if (y[image * OUT * OUT * CHANNELS + i] != pixel(x, image, top + row, from, i % CHANNELS))
            return false;
    }
    return true;
}

/* Each is one of all the parts that there are, and they differ from image to image. */
static void cut(struct device *d)
{
    uint64_t *draw = new_draw(d, 3);
    float *x = random_floats(d, INPUTS, -1, 1, 1), *y = new_floats(d, OUTPUTS);
    struct augment v = plain(draw);
    bool is_used[2 * PLACES * PLACES] = {false};
    int used = 0, flipped = 0;
    v.flips = true;
    d->kernels->augment(d, &v, y, x);
    for (int64_t image = 0; image < BATCH; image++) {
        int found = 0;
        while (found < 2 * PLACES * PLACES && !is_cut_at(x, y, image, found / 2, found % 2))
            found++;
        assert_true(found < 2 * PLACES * PLACES);
        used += !is_used[found];
        is_used[found] = true;
        flipped += found % 2;
    }
    assert_in_range(used, BATCH / 2, BATCH);
    assert_in_range(flipped, 1, BATCH - 1);

    v.draws = false; /* the middle */
    d->kernels->augment(d, &v, y, x);
    for (int64_t image = 0; image < BATCH; image++)
        assert_true(is_cut_at(x, y, image, (1 + PAD) * PLACES + 1 + PAD, false));
    free_floats(d, x);
    free_floats(d, y);
    d->kernels->release(d, draw);
}

static void images_are_cut_where_it_is_drawn(void **state)
{
    on_every_device(cut);
}

static int place_of(const float *x, const float *y, int64_t image)
{
    int place = 0;
    while (place < PLACES * PLACES && !is_cut_at(x, y, image, place, false)) place++;
    return place;
}

/* All of them, those at the four corners as often as those in the middle */
static void reach(struct device *d)
{
    enum { DRAWS = 100, EACH = DRAWS * BATCH / (PLACES * PLACES) };
    float *x = random_floats(d, INPUTS, -1, 1, 1), *y = new_floats(d, OUTPUTS);
    int counts[PLACES * PLACES + 1] = {0};
    for (uint64_t number = 0; number < DRAWS; number++) {
        uint64_t *draw = new_draw(d, number);
        const struct augment v = plain(draw);
        d->kernels->augment(d, &v, y, x);
        assert_int_equal(d->kernels->synchronize(d), OK);
        for (int64_t image = 0; image < BATCH; image++) counts[place_of(x, y, image)]++;
        d->kernels->release(d, draw);
    }
    assert_int_equal(counts[PLACES * PLACES], 0);
    for (int place = 0; place < PLACES * PLACES; place++)
        assert_in_range(counts[place], EACH / 2, EACH * 2);
    free_floats(d, x);
    free_floats(d, y);
}

static void every_place_is_drawn(void **state)
{
    on_every_device(reach);
}

/* With zeros around it an image may be smaller than what is cut out, here by an odd number. */
static void widen(struct device *d)
{
    enum { WIDE = IN + 3, COUNT = BATCH * WIDE * WIDE * CHANNELS };
    uint64_t *draw = new_draw(d, 3);
    float *x = random_floats(d, INPUTS, 1, 2, 1), *y = new_floats(d, COUNT);
    struct augment v = plain(draw);
    v.out_y = v.out_x = WIDE;
    for (int draws = 0; draws < 2; draws++) {
        v.draws = draws;
        d->kernels->augment(d, &v, y, x);
        assert_int_equal(d->kernels->synchronize(d), OK);
        for (int64_t image = 0; image < BATCH; image++) {
            double sum = 0, whole = 0;
            for (int i = 0; i < WIDE * WIDE * CHANNELS; i++)
                sum += y[image * WIDE * WIDE * CHANNELS + i];
            for (int i = 0; i < IN * IN * CHANNELS; i++) whole += x[image * IN * IN * CHANNELS + i];
            assert_near(sum, whole, summed, "all of the image", image);
        }
    }
    free_floats(d, x);
    free_floats(d, y);
    d->kernels->release(d, draw);
}

static void smaller_images_are_kept_whole(void **state)
{
    on_every_device(widen);
}

/* Of an image that rises by 1 from row to row and by 10 from column to column, so does a part, by
 * as many as the part's pixels are apart. */
static void fill_slopes(float *x)
{
    for (int64_t i = 0; i < INPUTS; i++)
        x[i] = (float)(i / (IN * CHANNELS) % IN) + 10 * (float)(i / CHANNELS % IN);
}

static float at_pixel(const float *y, int64_t image, int row, int column)
{
    return y[((image * OUT + row) * OUT + column) * CHANNELS];
}

static void resize(struct device *d)
{
    uint64_t *draw = new_draw(d, 3);
    float *x = new_floats(d, INPUTS), *y = new_floats(d, OUTPUTS), least = 1, most = 0;
    struct augment v = plain(draw);
    v.resizes = v.flips = true;
    v.area_low = 0.8f;
    v.area_high = 0.9f;
    v.aspect_low = 0.9f;
    v.aspect_high = 1.1f;
    fill_slopes(x);
    d->kernels->augment(d, &v, y, x);
    for (int64_t image = 0; image < BATCH; image++) {
        const float corner = at_pixel(y, image, 0, 0), down = at_pixel(y, image, 1, 0) - corner;
        const float right = (at_pixel(y, image, 0, 1) - corner) / 10, across = fabsf(right);
        const float area = down * OUT * across * OUT / (IN * IN), aspect = across / down;
        assert_true(area > 0.799f && area < 0.901f && aspect > 0.899f && aspect < 1.101f);
        for (int i = 0; i < OUT * OUT; i++) {
            const float wanted = corner + down * (float)(i / OUT) + 10 * right * (float)(i % OUT);
            assert_near(at_pixel(y, image, i / OUT, i % OUT), wanted,
                        (struct tolerance){1e-5, 1e-3}, "resized", i);
        }
        least = area < least ? area : least;
        most = area > most ? area : most;
    }
    assert_true(most - least > 0.05f);
    free_floats(d, x);
    free_floats(d, y);
    d->kernels->release(d, draw);
}

static void parts_of_a_drawn_size_are_brought_to_one(void **state)
{
    on_every_device(resize);
}

/* Those of the second half alone are what they are among all; another draw is another. */
static void repeat(struct device *d)
{
    uint64_t *draw = new_draw(d, 3), *other = new_draw(d, 4);
    float *x = random_floats(d, INPUTS, -1, 1, 1), *y = new_floats(d, OUTPUTS);
    float *half = new_floats(d, OUTPUTS);
    struct augment v = plain(draw);
    v.brightness = 0.5f;
    v.contrast_low = 0.2f;
    v.contrast_high = 1.8f;
    d->kernels->augment(d, &v, y, x);
    v.batch = v.first = BATCH / 2;
    d->kernels->augment(d, &v, half, x + INPUTS / 2);
    assert_same_bits(half, y + OUTPUTS / 2, OUTPUTS / 2, "the second half");
    v.draw = other;
    d->kernels->augment(d, &v, half, x + INPUTS / 2);
    assert_true(half[0] != y[OUTPUTS / 2]);
    free_floats(d, x);
    free_floats(d, y);
    free_floats(d, half);
    d->kernels->release(d, draw);
    d->kernels->release(d, other);
}

static void what_is_drawn_depends_on_the_row_alone(void **state)
{
    on_every_device(repeat);
}

/* Means stay but for what is added; distances from them are within the factors. */
static void colour(struct device *d)
{
    uint64_t *draw = new_draw(d, 3);
    float *x = random_floats(d, INPUTS, -1, 1, 1), *plainly = new_floats(d, OUTPUTS);
    float *y = new_floats(d, OUTPUTS);
    struct augment v = plain(draw);
    d->kernels->augment(d, &v, plainly, x);
    v.brightness = 0.5f;
    v.contrast_low = 0.2f;
    v.contrast_high = 1.8f;
    d->kernels->augment(d, &v, y, x);
    for (int64_t plane = 0; plane < BATCH * CHANNELS; plane++) {
        const int64_t at = plane / CHANNELS * OUT * OUT * CHANNELS + plane % CHANNELS;
        double before = 0, after = 0;
        for (int i = 0; i < OUT * OUT; i++) {
            before += plainly[at + i * CHANNELS] / (OUT * OUT);
            after += y[at + i * CHANNELS] / (OUT * OUT);
        }
        assert_true(fabs(after - before) <= 0.5001);
        const double factor = (y[at] - after) / (plainly[at] - before);
        assert_true(factor > 0.199 && factor < 1.801);
        for (int i = 0; i < OUT * OUT; i++)
            assert_near(y[at + i * CHANNELS],
                        after + factor * (plainly[at + i * CHANNELS] - before),
                        (struct tolerance){1e-3, 1e-3}, "colour", i);
    }
    free_floats(d, x);
    free_floats(d, y);
    free_floats(d, plainly);
    d->kernels->release(d, draw);
}

static void brightness_and_contrast_are_those_of_a_channel(void **state)
{
    on_every_device(colour);
}

static double product(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void turn_back_one(struct device *d, bool resizes)
{
    uint64_t *draw = new_draw(d, 3);
    float *x = random_floats(d, INPUTS, -1, 1, 1), *y = new_floats(d, OUTPUTS);
    float *dy = random_floats(d, OUTPUTS, -1, 1, 2), *dx = random_floats(d, INPUTS, -1, 1, 3);
    float *before = copy_floats(d, dx, INPUTS);
    struct augment v = plain(draw);
    v.flips = true;
    v.contrast_low = 0.2f;
    v.contrast_high = 1.8f;
    v.resizes = resizes;
    v.area_low = 0.05f;
    v.area_high = v.aspect_low = 1;
    v.aspect_high = 2;
    d->kernels->augment(d, &v, y, x);
    for (int add = 1; add >= 0; add--) {
        d->kernels->augment_back(d, &v, dx, dy, add);
        const double more = add ? product(before, x, INPUTS) : 0;
        assert_near(product(dx, x, INPUTS), product(dy, y, OUTPUTS) + more,
                    (struct tolerance){1e-5, 1e-3}, "augment_back", add);
    }
    free_floats(d, x);
    free_floats(d, y);
    free_floats(d, dx);
    free_floats(d, dy);
    free_floats(d, before);
    d->kernels->release(d, draw);
}

static void turn_back(struct device *d)
{
    turn_back_one(d, false);
    turn_back_one(d, true);
}

static void backward_is_the_transpose(void **state)
{
    on_every_device(turn_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_cut_where_it_is_drawn),
        cmocka_unit_test(every_place_is_drawn),
        cmocka_unit_test(smaller_images_are_kept_whole),
        cmocka_unit_test(parts_of_a_drawn_size_are_brought_to_one),
        cmocka_unit_test(what_is_drawn_depends_on_the_row_alone),
        cmocka_unit_test(brightness_and_contrast_are_those_of_a_channel),
        cmocka_unit_test(backward_is_the_transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
