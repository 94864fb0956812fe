/* image.c - see image.h. */
#include "core/data/images/image.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

err picture_check_size(int64_t y, int64_t x)
{
    if (y >= 1 && x >= 1 && y <= PICTURE_SIDE_MAX && x <= PICTURE_SIDE_MAX &&
        y * x <= PICTURE_PIXELS_MAX)
        return OK;
    return fail(ERR_INPUT,
                "%" PRId64 " x %" PRId64 " pixels: a side has 1 to %d, and both together %d at "
                "most",
                y, x, PICTURE_SIDE_MAX, PICTURE_PIXELS_MAX);
}

static pthread_mutex_t large = PTHREAD_MUTEX_INITIALIZER;

bool picture_pass(const struct picture *p)
{
    if (!p->left) return true;
    const bool may_be = p->y * p->x <= *p->left;
    if (may_be) *p->left -= p->y * p->x;
    return may_be;
}

static err check_left(const struct picture *p)
{
    if (picture_pass(p)) return OK;
    return fail(ERR_INPUT, "%" PRId64 " x %" PRId64 " pixels, where %" PRId64 " are left", p->y,
                p->x, *p->left);
}

err picture_new(struct picture *p)
{
    TRY(check_left(p));
    p->is_the_large_one = p->left && p->y * p->x > PICTURE_LARGE_PIXELS;
    if (p->is_the_large_one) pthread_mutex_lock(&large);
    p->at = malloc((size_t)(p->y * p->x * p->channels));
    return p->at ? OK
                 : fail(ERR_MEMORY, "no memory for an image of %" PRId64 " x %" PRId64 " pixels",
                        p->y, p->x);
}

void picture_free(struct picture *p)
{
    free(p->at);
    p->at = NULL;
    if (p->is_the_large_one) pthread_mutex_unlock(&large);
    p->is_the_large_one = false;
}

const struct picture_kind *picture_kind_of(const uint8_t *bytes, size_t count)
{
    static const uint8_t jpeg[] = {0xff, 0xd8, 0xff}, png[] = {0x89, 'P', 'N', 'G', '\r', '\n'};
    if (count >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0) return &picture_jpeg;
    if (count >= sizeof png && memcmp(bytes, png, sizeof png) == 0) return &picture_png;
    return NULL;
}

err picture_decode(const uint8_t *bytes, size_t count, struct picture *ret)
{
    const struct picture_kind *kind = picture_kind_of(bytes, count);
    if (!kind)
        return fail(ERR_INPUT,
                    "expected a JPEG or PNG file, got %zu bytes of something else (\"raw\": true "
                    "reads pixels that are not packed)",
                    count);
    if (!kind->decode)
        return fail(ERR_INPUT, "a %s file: this dtrain was built without %s (Debian's %s)",
                    kind->name, kind->library, kind->package);
    struct picture p = {.channels = ret->channels, .left = ret->left};
    const err e = kind->decode(bytes, count, &p);
    if (e) {
        picture_free(&p);
        return fail_prefix(e, "%s", kind->name);
    }
    *ret = p;
    return OK;
}

/* ---- sizes ---- */

/* In one direction: the center of output pixel i is at begin + step * i of the picture */
struct sampling {
    double step, begin;
    int64_t end; /* how many pixels the picture has */
};

static struct sampling sampling_of(int64_t from, int64_t to, double step)
{
    return (struct sampling){step, ((double)from - (double)to * step + step - 1) / 2, from};
}

/* The two neighbouring pixels, and the weight of the second */
struct between {
    int64_t first, second;
    float share;
};

static struct between between_at(const struct sampling *s, int64_t i)
{
    const double last = (double)(s->end - 1);
    double at = s->begin + s->step * (double)i;
    if (at < 0) at = 0;
    if (at > last) at = last;
    const int64_t first = (int64_t)at;
    const int64_t second = first + 1 < s->end ? first + 1 : first;
    return (struct between){first, second, (float)(at - (double)first)};
}

static float mix(float a, float b, float share)
{
    return a + (b - a) * share;
}

static void resize_row(const struct picture *p, const struct sampling *xs, struct between rows,
                       int64_t count, uint8_t *to)
{
    const int64_t channels = p->channels, row = p->x * channels;
    const uint8_t *upper = p->at + rows.first * row, *lower = p->at + rows.second * row;
    for (int64_t i = 0; i < count; i++) {
        const struct between x = between_at(xs, i);
        const int64_t a = x.first * channels, b = x.second * channels;
        for (int64_t c = 0; c < channels; c++) {
            const float above = mix(upper[a + c], upper[b + c], x.share);
            const float below = mix(lower[a + c], lower[b + c], x.share);
            *to++ = (uint8_t)(mix(above, below, rows.share) + 0.5f);
        }
    }
}

void picture_resize(const struct picture *p, enum picture_fit fit, int64_t y, int64_t x,
                    uint8_t *to)
{
    double step_y = (double)p->y / (double)y, step_x = (double)p->x / (double)x;
    if (fit == FIT_CROP) step_y = step_x = step_y < step_x ? step_y : step_x;
    const struct sampling ys = sampling_of(p->y, y, step_y), xs = sampling_of(p->x, x, step_x);
    for (int64_t i = 0; i < y; i++)
        resize_row(p, &xs, between_at(&ys, i), x, to + i * x * p->channels);
}
