/* elements.h - the formulas for one element, shared by the devices. Those of optimizers: rule.h.
 *
 * A kernel is a loop over one of these. They do not depend on the element's position within a call,
 * so a range gives the same bits whether it is computed in one piece or in several.
 */
#ifndef KERNELS_ELEMENTS_H
#define KERNELS_ELEMENTS_H

#include "kernels/kernels.h"
#include "kernels/mathf.h"

/* Always inlined: the kind of an activation must be a constant in the compiled loop. Other
 * languages than C define it before. */
#ifndef ELEMENT
#define ELEMENT static inline __attribute__((always_inline))
#endif

ELEMENT float element_gelu_tanh_inner(float x)
{
    return mathf_tanh(0.797884561f * (x + 0.044715f * x * x * x)); /* sqrt(2 / pi) */
}

/* f(x). Comparisons are written so that NaN passes through. */
ELEMENT float element_activate(enum activation kind, float alpha, float x)
{
    switch (kind) {
    case ACTIVATION_RELU:
        return x < 0.0f ? 0.0f : x;
    case ACTIVATION_RELU6:
        return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
    case ACTIVATION_ELU:
        return x > 0.0f ? x : mathf_expm1_negative(x);
    case ACTIVATION_LEAKY_RELU:
        return x > 0.0f ? x : alpha * x;
    case ACTIVATION_SIGMOID:
        return mathf_sigmoid(x);
    case ACTIVATION_TANH:
        return mathf_tanh(x);
    case ACTIVATION_SOFTPLUS:
        return mathf_softplus(x);
    case ACTIVATION_SWISH:
        return x * mathf_sigmoid(x);
    case ACTIVATION_GELU:
        return 0.5f * x * (1.0f + mathf_erf(x * 0.707106781f));
    case ACTIVATION_GELU_TANH:
        return 0.5f * x * (1.0f + element_gelu_tanh_inner(x));
    case ACTIVATION_SELU:
        return 1.05070099f * (x > 0.0f ? x : 1.67326324f * mathf_expm1_negative(x));
    case ACTIVATION_SOFTSIGN:
        return x / (1.0f + mathf_abs(x));
    case ACTIVATION_SQUARE:
        return x * x;
    case ACTIVATION_SQRT:
        return sqrtf(x);
    case ACTIVATION_EXP:
        return mathf_exp(x);
    case ACTIVATION_LOG:
        return mathf_log(x);
    case ACTIVATION_ABS:
        return mathf_abs(x);
    default:
        return x;
    }
}

ELEMENT float element_gelu_slope(float x)
{
    float density = 0.398942280f * mathf_exp(-0.5f * x * x); /* 1 / sqrt(2 pi) */
    return 0.5f * (1.0f + mathf_erf(x * 0.707106781f)) + x * density;
}

ELEMENT float element_gelu_tanh_slope(float x)
{
    float t = element_gelu_tanh_inner(x);
    float inner_slope = 0.797884561f * (1.0f + 0.134145f * x * x);
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner_slope;
}

/* f'(x), from y = f(x) where that is enough */
ELEMENT float element_slope(enum activation kind, float alpha, float y, float x)
{
    switch (kind) {
    case ACTIVATION_RELU:
        return y > 0.0f ? 1.0f : 0.0f;
    case ACTIVATION_RELU6:
        return y > 0.0f && y < 6.0f ? 1.0f : 0.0f;
    case ACTIVATION_ELU:
        return y > 0.0f ? 1.0f : y + 1.0f;
    case ACTIVATION_LEAKY_RELU:
        return y > 0.0f ? 1.0f : alpha;
    case ACTIVATION_SIGMOID:
        return y * (1.0f - y);
    case ACTIVATION_TANH:
        return 1.0f - y * y;
    case ACTIVATION_SOFTPLUS:
        return mathf_sigmoid(x);
    case ACTIVATION_SWISH: {
        float s = mathf_sigmoid(x);
        return s + y * (1.0f - s);
    }
    case ACTIVATION_GELU:
        return element_gelu_slope(x);
    case ACTIVATION_GELU_TANH:
        return element_gelu_tanh_slope(x);
    case ACTIVATION_SELU: /* 1.758: the product of the two constants */
        return y < 0.0f ? y + 1.75809934f : 1.05070099f;
    case ACTIVATION_SOFTSIGN:
        return (1.0f - mathf_abs(y)) * (1.0f - mathf_abs(y));
    case ACTIVATION_SQUARE:
        return 2.0f * x;
    case ACTIVATION_SQRT:
        return 0.5f / y;
    case ACTIVATION_EXP:
        return y;
    case ACTIVATION_LOG:
        return 1.0f / x;
    case ACTIVATION_ABS:
        return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
    default:
        return 1.0f;
    }
}

/* The formula of a fold for one element */
ELEMENT float element_fold(enum fold_of of, const struct fold *f, float a, float b, float c)
{
    switch (of) {
    case FOLD_ADD:
        return a + b;
    case FOLD_SUBTRACT:
        return a - b;
    case FOLD_MULTIPLY:
        return a * b;
    case FOLD_DIVIDE:
        return a / b;
    case FOLD_MAXIMUM:
        return a < b ? b : a;
    case FOLD_MINIMUM:
        return a > b ? b : a;
    case FOLD_EXP:
        return mathf_exp(a);
    case FOLD_LOG:
        return mathf_log(a);
    case FOLD_EXP_TIMES:
        return mathf_exp(a) * b;
    case FOLD_EQUAL:
        return a == b ? 1.0f : 0.0f;
    case FOLD_IF_EQUAL:
        return a == b ? c : 0.0f;
    case FOLD_IF_NOT_LESS:
        return a >= b ? c : 0.0f;
    case FOLD_IF_MORE:
        return a > b ? c : 0.0f;
    case FOLD_DIVIDE_SLOPE:
        return -(c / b) * (a / b);
    case FOLD_CLIP:
        return a < f->low ? f->low : a > f->high ? f->high : a;
    case FOLD_IF_WITHIN:
        return a >= f->low && a <= f->high ? c : 0.0f;
    case FOLD_INVERSE_ROOT:
        return 1.0f / sqrtf(a < f->low ? f->low : a);
    case FOLD_PRODUCT_BELOW:
        return a < f->high ? a * b : 0.0f;
    case FOLD_PRELU:
        return a > 0.0f ? a : a * b;
    case FOLD_PRELU_BACK:
        return a > 0.0f ? c : c * b;
    case FOLD_PRELU_SLOPE:
        return a > 0.0f ? 0.0f : c * a;
    case FOLD_MULTIPLY_ADD:
        return a * b + c;
    case FOLD_DISTANCE:
        return (a - b) * (a - b);
    case FOLD_BEYOND:
        return (a - b) * c;
    case FOLD_SUM_ROOT:
        return 1.0f / sqrtf(a + f->low);
    case FOLD_DICE:
        return a * (c + b * (1.0f - c));
    case FOLD_DICE_SLOPE:
        return a * (1.0f - b) * c;
    case FOLD_IF_ABOVE:
        return b > f->high ? a : f->low;
    case FOLD_DIVIDE_OR_0:
        return b == 0.0f ? 0.0f : a / b;
    default:
        return a;
    }
}

ELEMENT float element_by_example(const struct by_example *of, int64_t example)
{
    return of->at ? of->at[example * of->step] : 1.0f;
}

/* Shared by all units of an example. The cells below load all alternatives before they choose: a
 * load needed by only one of them would prevent vectorisation. */
struct cell_example {
    int64_t at;
    bool is_there;
    float attended; /* 1 - attention */
};

ELEMENT struct cell_example element_lstm_example(const struct lstm_cell *v, int64_t example)
{
    return (struct cell_example){example, element_by_example(&v->mask, example) > 0.0f, 1.0f};
}

ELEMENT struct cell_example element_gru_example(const struct gru_cell *v, int64_t example)
{
    return (struct cell_example){example, element_by_example(&v->mask, example) > 0.0f,
                                 v->attention.at ? 1.0f - element_by_example(&v->attention, example)
                                                 : 1.0f};
}

ELEMENT void element_lstm(const struct lstm_cell *v, struct cell_example e, int64_t k)
{
    float *gates = v->gates + e.at * 4 * v->units + k;
    const int64_t at = e.at * v->units + k;
    const float c_before = v->c_before[at], h_before = v->h_before[at];
    const float i = mathf_sigmoid(gates[0]), j = mathf_tanh(gates[v->units]);
    const float f = mathf_sigmoid(gates[2 * v->units] + v->forget_bias);
    const float o = mathf_sigmoid(gates[3 * v->units]);
    const float c = f * c_before + i * j, h = o * mathf_tanh(c);
    gates[0] = i;
    gates[v->units] = j;
    gates[2 * v->units] = f;
    gates[3 * v->units] = o;
    v->c[at] = e.is_there ? c : c_before;
    v->h[at] = e.is_there ? h : h_before;
}

ELEMENT void element_lstm_back(const struct lstm_cell *v, struct cell_example e, int64_t k)
{
    float *gates = v->gates + e.at * 4 * v->units + k;
    const int64_t at = e.at * v->units + k;
    const float i = gates[0], j = gates[v->units], f = gates[2 * v->units];
    const float o = gates[3 * v->units], c = mathf_tanh(v->c[at]), c_before = v->c_before[at];
    const float dh_after = v->dh[at], dc_after = v->dc[at];
    const float dh = dh_after + (v->dy ? v->dy[e.at * v->dy_step + k] : 0.0f);
    const float dc = dc_after + dh * o * (1.0f - c * c);
    const float di = dc * j * i * (1.0f - i), dj = dc * i * (1.0f - j * j);
    const float df = dc * c_before * f * (1.0f - f), dout = dh * c * o * (1.0f - o);
    gates[0] = e.is_there ? di : 0.0f;
    gates[v->units] = e.is_there ? dj : 0.0f;
    gates[2 * v->units] = e.is_there ? df : 0.0f;
    gates[3 * v->units] = e.is_there ? dout : 0.0f;
    v->dc[at] = e.is_there ? dc * f : dc_after;
    v->dh[at] = e.is_there ? 0.0f : dh_after;
}

ELEMENT void element_gru_gates(const struct gru_cell *v, struct cell_example e, int64_t k)
{
    float *gates = v->gates + e.at * 2 * v->units + k;
    const int64_t at = e.at * v->units + k;
    const float reset = mathf_sigmoid(gates[0]), update = mathf_sigmoid(gates[v->units]);
    gates[0] = reset;
    gates[v->units] = update;
    v->reset[at] = reset * v->before[at];
}

ELEMENT void element_gru(const struct gru_cell *v, struct cell_example e, int64_t k)
{
    const int64_t at = e.at * v->units + k;
    const float u = v->gates[e.at * 2 * v->units + v->units + k] * e.attended;
    const float c = mathf_tanh(v->candidate[at]), before = v->before[at];
    const float after = u * before + (1.0f - u) * c;
    v->candidate[at] = c;
    v->after[at] = e.is_there ? after : before;
}

ELEMENT void element_gru_back(const struct gru_cell *v, struct cell_example e, int64_t k)
{
    float *gates = v->gates + e.at * 2 * v->units + k;
    const int64_t at = e.at * v->units + k;
    const float raw = gates[v->units], u = raw * e.attended;
    const float c = v->candidate[at], before = v->before[at], dh_after = v->dh[at];
    const float dh = dh_after + (v->dy ? v->dy[e.at * v->dy_step + k] : 0.0f);
    const float du = e.is_there ? dh * (before - c) : 0.0f;
    const float dc = dh * (1.0f - u) * (1.0f - c * c);
    gates[v->units] = du * e.attended * raw * (1.0f - raw);
    v->candidate[at] = e.is_there ? dc : 0.0f;
    v->dh[at] = e.is_there ? dh * u : dh_after;
    if (v->dattention) v->dattention[at] = -du * raw;
}

ELEMENT void element_gru_gates_back(const struct gru_cell *v, struct cell_example e, int64_t k)
{
    float *gates = v->gates + e.at * 2 * v->units + k;
    const int64_t at = e.at * v->units + k;
    const float r = gates[0], dreset = v->dreset[at];
    gates[0] = dreset * v->before[at] * r * (1.0f - r);
    v->dh[at] += dreset * r;
}

/* Offset of iteration i of loops in a tensor with these strides */
ELEMENT int64_t element_place(const struct fold_loops *loops, const int64_t *step, int64_t i)
{
    int64_t at = 0;
    for (int k = loops->count - 1; k >= 0; k--) {
        at += i % loops->n[k] * step[k];
        i /= loops->n[k];
    }
    return at;
}

/* The same numbers as core/base/random.h, which kernels may not include; a test compares the two.
 */
ELEMENT uint64_t element_random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

ELEMENT uint64_t element_random_u64(uint64_t key, uint64_t index)
{
    return element_random_mix(element_random_mix(index * 0x9e3779b97f4a7c15u + key) + key);
}

ELEMENT float element_random_uniform(uint64_t key, uint64_t index)
{
    return (float)(int32_t)(element_random_u64(key, index) >> 40) * 0x1p-24f;
}

/* The random parameters for an image, and where one channel of it is */
struct augmented {
    float top, left; /* in the image without padding: may be negative */
    float step_y, step_x;
    bool is_flipped;
    float more, factor;
};

ELEMENT int64_t element_whole(float uniform, int64_t n)
{
    const int64_t at = (int64_t)(uniform * (float)n);
    return at < n ? at : n - 1;
}

ELEMENT float element_within(float uniform, float low, float high)
{
    return low + uniform * (high - low);
}

/* A crop of random area and aspect ratio, limited by the image */
ELEMENT void element_draw_part(const struct augment *v, uint64_t row, struct augmented *a)
{
    const uint64_t key = element_random_u64(~v->key, *v->draw);
    const float high = (float)v->in_y, wide = (float)v->in_x;
    const float share =
        element_within(element_random_uniform(key, 4 * row), v->area_low, v->area_high);
    const float aspect =
        element_within(element_random_uniform(key, 4 * row + 1), v->aspect_low, v->aspect_high);
    float part_y = sqrtf(share * high * wide / aspect);
    float part_x = part_y * aspect;
    part_y = part_y < high ? part_y : high;
    part_x = part_x < wide ? part_x : wide;
    a->step_y = part_y / (float)v->out_y;
    a->step_x = part_x / (float)v->out_x;
    /* of the first pixel of the result, whose center is half a step inside the crop's edge */
    a->top = element_random_uniform(key, 4 * row + 2) * (high - part_y) + (a->step_y - 1) / 2;
    a->left = element_random_uniform(key, 4 * row + 3) * (wide - part_x) + (a->step_x - 1) / 2;
}

ELEMENT struct augmented element_augmented(const struct augment *v, int64_t image)
{
    const int64_t top = (v->in_y - v->out_y) / 2, left = (v->in_x - v->out_x) / 2;
    struct augmented a = {(float)top, (float)left, 1.0f, 1.0f, false, 0.0f, 1.0f};
    if (!v->draws) return a;
    const uint64_t key = element_random_u64(v->key, *v->draw);
    const uint64_t row = 5 * (uint64_t)(v->first + image);
    const int64_t high = v->in_y + 2 * v->pad - v->out_y, wide = v->in_x + 2 * v->pad - v->out_x;
    a.top = (float)(element_whole(element_random_uniform(key, row), high + 1) - v->pad);
    a.left = (float)(element_whole(element_random_uniform(key, row + 1), wide + 1) - v->pad);
    if (v->resizes) element_draw_part(v, (uint64_t)(v->first + image), &a);
    a.is_flipped = v->flips && element_random_uniform(key, row + 2) < 0.5f;
    a.more = (2.0f * element_random_uniform(key, row + 3) - 1.0f) * v->brightness;
    a.factor = v->contrast_low +
               element_random_uniform(key, row + 4) * (v->contrast_high - v->contrast_low);
    return a;
}

/* The two pixels in one direction between which to interpolate, and their weights: 0 for padding.
 */
struct augment_between {
    int64_t at[2];
    float counts[2];
};

ELEMENT struct augment_between element_between(float place, int64_t n, bool has_zeros)
{
    const float last = (float)(n - 1);
    if (!has_zeros) place = place < 0.0f ? 0.0f : place > last ? last : place;
    const bool is_inside = place >= 0.0f && place <= last;
    const int64_t first = is_inside ? (int64_t)place : 0;
    const float share = is_inside ? place - (float)first : 0.0f;
    const struct augment_between b = {{first, first + 1 < n ? first + 1 : first},
                                      {is_inside ? 1.0f - share : 0.0f, share}};
    return b;
}

ELEMENT void element_augment_from(const struct augment *v, const struct augmented *a, int64_t pixel,
                                  struct augment_between *rows, struct augment_between *columns)
{
    const int64_t y = pixel / v->out_x, x = pixel % v->out_x;
    const int64_t from_x = a->is_flipped ? v->out_x - 1 - x : x;
    *rows = element_between(a->top + (float)y * a->step_y, v->in_y, !v->resizes);
    *columns = element_between(a->left + (float)from_x * a->step_x, v->in_x, !v->resizes);
}

/* One channel of an image: plane = image * channels + channel */
ELEMENT void element_augment(const struct augment *v, float *y, const float *x, int64_t plane)
{
    const int64_t image = plane / v->channels, channel = plane % v->channels;
    const int64_t pixels = v->out_y * v->out_x;
    const struct augmented a = element_augmented(v, image);
    const float *from = x + image * v->in_y * v->in_x * v->channels + channel;
    float *to = y + image * pixels * v->channels + channel;
    double sum = 0;
    for (int64_t i = 0; i < pixels; i++) {
        struct augment_between rows, columns;
        element_augment_from(v, &a, i, &rows, &columns);
        float value = 0.0f;
        for (int k = 0; k < 4; k++) {
            const float counts = rows.counts[k / 2] * columns.counts[k % 2];
            const int64_t at = rows.at[k / 2] * v->in_x + columns.at[k % 2];
            if (counts > 0.0f) value += counts * from[at * v->channels];
        }
        value += a.more;
        to[i * v->channels] = value;
        sum += value;
    }
    if (a.factor == 1.0f) return;
    const float mean = (float)(sum / (double)pixels);
    for (int64_t i = 0; i < pixels; i++)
        to[i * v->channels] = (to[i * v->channels] - mean) * a.factor + mean;
}

ELEMENT void element_augment_back(const struct augment *v, float *dx, const float *dy, bool add,
                                  int64_t plane)
{
    const int64_t image = plane / v->channels, channel = plane % v->channels;
    const int64_t pixels = v->out_y * v->out_x, inputs = v->in_y * v->in_x;
    const struct augmented a = element_augmented(v, image);
    const float *from = dy + image * pixels * v->channels + channel;
    float *to = dx + image * inputs * v->channels + channel;
    double sum = 0;
    for (int64_t i = 0; i < inputs && !add; i++) to[i * v->channels] = 0.0f;
    for (int64_t i = 0; i < pixels; i++) sum += from[i * v->channels];
    const float share = (float)(sum / (double)pixels) * (1.0f - a.factor);
    for (int64_t i = 0; i < pixels; i++) {
        struct augment_between rows, columns;
        element_augment_from(v, &a, i, &rows, &columns);
        const float gradient = from[i * v->channels] * a.factor + share;
        for (int k = 0; k < 4; k++) {
            const float counts = rows.counts[k / 2] * columns.counts[k % 2];
            const int64_t at = rows.at[k / 2] * v->in_x + columns.at[k % 2];
            if (counts > 0.0f) to[at * v->channels] += counts * gradient;
        }
    }
}

/* Comparisons leave NaN as it is. */
ELEMENT float element_clamp(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

/* Rounds to bfloat16. Finite numbers stay finite; comparing bits compares magnitudes. */
ELEMENT uint16_t element_to_bf16(float x)
{
    const uint32_t bits = mathf_bits(x), size = bits & 0x7fffffff;
    const uint32_t even = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    if (size >= 0x7f800000) return (uint16_t)(bits >> 16 | (size > 0x7f800000 ? 0x40 : 0));
    return (uint16_t)(size >= 0x7f7f8000 ? (even & 0x8000) | 0x7f7f : even);
}

ELEMENT float element_from_bf16(uint16_t x)
{
    return mathf_from_bits((uint32_t)x << 16);
}

/* Below 2^-14 fp16 has steps of 2^-24, like a float between 1/2 and 1. */
ELEMENT uint16_t element_to_fp16(float x)
{
    const uint32_t bits = mathf_bits(x), size = bits & 0x7fffffff;
    const uint32_t normal = (size - 0x38000000 + 0xfff + ((size >> 13) & 1)) >> 13;
    const uint32_t small = mathf_bits(mathf_from_bits(size) + 0.5f) - 0x3f000000;
    uint32_t half = size < 0x38800000 ? small : normal;
    if (size >= 0x477ff000) half = 0x7bff; /* would round to infinity */
    if (size >= 0x7f800000) half = size > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16_t)((bits >> 16 & 0x8000) | half);
}

ELEMENT float element_from_fp16(uint16_t x)
{
    const uint32_t size = x & 0x7fff, shifted = size << 13;
    const float small = (float)(int32_t)size * 0x1p-24f;
    const float large = mathf_from_bits(shifted + (size < 0x7c00 ? 112u << 23 : 224u << 23));
    const float value = size < 0x400 ? small : large;
    return mathf_from_bits(mathf_bits(value) | (uint32_t)(x & 0x8000) << 16);
}

ELEMENT uint16_t element_round(enum number as, float x)
{
    return as == NUMBER_BF16 ? element_to_bf16(x) : element_to_fp16(x);
}

ELEMENT float element_widen(enum number as, uint16_t x)
{
    return as == NUMBER_BF16 ? element_from_bf16(x) : element_from_fp16(x);
}

ELEMENT uint16_t element_round_off(enum number as, float x, float *error)
{
    const float sum = x + *error;
    const uint16_t rounded = element_round(as, sum);
    const bool is_finite = (mathf_bits(sum) & 0x7f800000) != 0x7f800000;
    *error = is_finite ? sum - element_widen(as, rounded) : 0.0f;
    return rounded;
}

/* Index of the first of these ascending ids that is at least `id`; count: none */
ELEMENT int64_t element_row(const int64_t *ids, int64_t count, int64_t id)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What regularization adds to the gradient of a weight */
ELEMENT float element_regularize(float w, float l1, float l2)
{
    float sign = w > 0.0f ? 1.0f : w < 0.0f ? -1.0f : 0.0f;
    return l1 * sign + l2 * w;
}

/* Losses of a prediction and a target, and their slopes */
enum pair_kind { PAIR_SIGMOID, PAIR_WEIGHTED, PAIR_LOG, PAIR_SQUARED, PAIR_HUBER };

/* Matrices of pairs: losses are summed over the columns of a row. */
struct pairs {
    int64_t columns;
    const float *x, *targets; /* [rows, columns] */
    float delta, smoothing;   /* delta: of regression; smoothing: of sigmoid */
    const float *scale;       /* of the gradient */
    float *losses, *gradient; /* [rows]; [rows, columns] or NULL */
};

ELEMENT struct pairs pairs_of_classes(const struct cross_entropy *c)
{
    struct pairs p = {c->classes,         c->logits, c->targets, 0,
                      c->label_smoothing, c->scale,  c->losses,  c->gradient};
    return p;
}

ELEMENT struct pairs pairs_of_regression(const struct regression *r)
{
    struct pairs p = {r->columns, r->predictions, r->targets, r->delta,
                      0,          r->scale,       r->losses,  r->gradient};
    return p;
}

ELEMENT float element_sigmoid_loss(const struct pairs *p, float x, float target, float *ret_slope)
{
    float t = target * (1.0f - p->smoothing) + 0.5f * p->smoothing;
    float e = mathf_exp(-mathf_abs(x));
    *ret_slope = (x < 0.0f ? e : 1.0f) / (1.0f + e) - t;
    return (x < 0.0f ? 0.0f : x) - x * t + mathf_log1p(e);
}

/* For a logit, in a form that does not overflow; delta: weight of a positive target */
ELEMENT float element_weighted_loss(const struct pairs *p, float x, float target, float *ret_slope)
{
    float weight = 1.0f + (p->delta - 1.0f) * target, e = mathf_exp(-mathf_abs(x));
    *ret_slope = 1.0f - target - weight * (x < 0.0f ? 1.0f : e) / (1.0f + e);
    return (1.0f - target) * x + weight * (mathf_log1p(e) + (x < 0.0f ? -x : 0.0f));
}

/* For a probability; delta: epsilon that keeps the logarithms finite */
ELEMENT float element_log_loss(const struct pairs *p, float x, float target, float *ret_slope)
{
    float yes = x + p->delta, no = 1.0f - x + p->delta;
    *ret_slope = (1.0f - target) / no - target / yes;
    return -target * mathf_log(yes) - (1.0f - target) * mathf_log(no);
}

ELEMENT float element_squared_loss(float x, float target, float *ret_slope)
{
    float difference = x - target;
    *ret_slope = 2.0f * difference;
    return difference * difference;
}

ELEMENT float element_huber_loss(const struct pairs *p, float x, float target, float *ret_slope)
{
    float difference = x - target, size = mathf_abs(difference);
    bool is_near = size <= p->delta;
    *ret_slope = is_near ? difference : mathf_copy_sign(p->delta, difference);
    return is_near ? 0.5f * difference * difference : p->delta * (size - 0.5f * p->delta);
}

ELEMENT float element_pair_loss(enum pair_kind kind, const struct pairs *p, float x, float target,
                                float *ret_slope)
{
    if (kind == PAIR_SIGMOID) return element_sigmoid_loss(p, x, target, ret_slope);
    if (kind == PAIR_WEIGHTED) return element_weighted_loss(p, x, target, ret_slope);
    if (kind == PAIR_LOG) return element_log_loss(p, x, target, ret_slope);
    if (kind == PAIR_SQUARED) return element_squared_loss(x, target, ret_slope);
    return element_huber_loss(p, x, target, ret_slope);
}

/* Index of the source that has vector i, and the example's offset in it */
ELEMENT int element_source(const struct interaction *v, int64_t i)
{
    return v->sources == 1 ? 0 : (int)i;
}

ELEMENT int64_t element_vector(const struct interaction *v, int64_t example, int64_t i)
{
    return (v->sources == 1 ? example * v->vectors + i : example) * v->width;
}

/* Index of a pair of vectors among an example's pairs */
ELEMENT int64_t element_pair(int64_t i, int64_t j)
{
    return i > j ? i * (i - 1) / 2 + j : j * (j - 1) / 2 + i;
}

/* The weight of the id at this place of a batch, and whether it counts (element_is_row) */
ELEMENT float element_weight(const struct combine *c, int64_t place)
{
    return c->weights ? c->weights[place] : 1.0f;
}

/* Whether to set the element in this row and column */
ELEMENT bool element_is_same(const struct same_ids *s, int64_t row, int64_t column)
{
    const int64_t block = row / s->block, id = s->column_ids[block * s->columns + column];
    if (s->spares_own && column == row - block * s->block) return false;
    return id < 0 || id == s->row_ids[row];
}

ELEMENT bool element_is_row(const struct combine *c, int64_t place)
{
    if (c->ids[place] < 0 || c->ids[place] >= c->rows) return false;
    return c->combiner == COMBINER_SUM || !(element_weight(c, place) <= 0.0f);
}

/* The factor on the weighted sum of an example's rows */
ELEMENT float element_share(const struct combine *c, int64_t example)
{
    float sum = 0;
    if (c->combiner == COMBINER_SUM) return 1.0f;
    for (int64_t i = 0; i < c->places; i++) {
        const int64_t place = example * c->places + i;
        float weight = element_is_row(c, place) ? element_weight(c, place) : 0.0f;
        sum += c->combiner == COMBINER_MEAN ? weight : weight * weight;
    }
    if (sum == 0.0f) return 0.0f;
    return 1.0f / (c->combiner == COMBINER_MEAN ? sum : sqrtf(sum));
}

#endif
