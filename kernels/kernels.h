/* kernels.h - arithmetic on plain memory, one table of functions per device.
 *
 * Every pointer is memory of the device (on the CPU: aligned to 64 bytes unless said otherwise);
 * work is queued in order and may be unfinished until synchronize(). Matrices are row-major, images
 * NHWC [batch, y, x, channel], convolution kernels HWIO [ky, kx, in, out]. Where a gradient is
 * written, `add` chooses between overwriting and adding. Nothing is allocated outside open(),
 * allocate() and the functions that end in _open. Sums that become a loss or a norm are computed in
 * double, in an order that depends on the shapes and, on a GPU, on the alignment of rows modulo 16
 * bytes, so that the same run gives the same bits. device.h opens devices.
 *
 * kernels.def lists the kernels; this file has their arguments and the other members of the table.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device.h"

enum activation {
    ACTIVATION_LINEAR,
    ACTIVATION_RELU,
    ACTIVATION_RELU6,
    ACTIVATION_ELU,
    ACTIVATION_LEAKY_RELU,
    ACTIVATION_SIGMOID,
    ACTIVATION_TANH,
    ACTIVATION_SOFTPLUS,
    ACTIVATION_SWISH,
    ACTIVATION_GELU,
    ACTIVATION_GELU_TANH, /* the tanh approximation */
    ACTIVATION_SELU,
    ACTIVATION_SOFTSIGN,
    ACTIVATION_SQUARE,
    ACTIVATION_SQRT,
    ACTIVATION_EXP,
    ACTIVATION_LOG,
    ACTIVATION_ABS,
    ACTIVATION_COUNT
};

/* Whether its derivative needs x as well as y = f(x) */
static inline bool activation_reads_x(enum activation kind)
{
    return kind == ACTIVATION_SOFTPLUS || kind == ACTIVATION_SWISH || kind == ACTIVATION_GELU ||
           kind == ACTIVATION_GELU_TANH || kind == ACTIVATION_SQUARE || kind == ACTIVATION_LOG ||
           kind == ACTIVATION_ABS;
}

/* Format in which gradients and values are sent: float32, or 16 bits */
enum number {
    NUMBER_FLOAT32,
    NUMBER_BF16, /* 7 bits of mantissa, and the range of float32 */
    NUMBER_FP16, /* 10 bits, up to 65504 */
};

static inline size_t number_bytes(enum number number)
{
    return number == NUMBER_FLOAT32 ? sizeof(float) : sizeof(uint16_t);
}

/* c [m, n] = op(a) op(b) + (add ? c : 0); a is [m, k] or, transposed, [k, m]; b [k, n] or [n, k] */
struct gemm {
    bool transpose_a, transpose_b, add;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    /* NULL, or called on the CPU: the first `rows` rows of c are done. In one thread a large
     * product is computed in bands of rows, always the same ones, with a call after each; other
     * products call it at the end. GPUs never call it. */
    void (*made)(const void *context, int64_t rows);
    const void *context;
};

/* Geometry of a convolution or pooling window; the caller computes TensorFlow's padding */
struct window2d {
    int64_t batch;
    int64_t in_y, in_x, out_y, out_x;
    int64_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x;
    int64_t pad_top, pad_left, pad_bottom, pad_right;
};

/* Pixels of all images of a batch: of the input, and of the output */
static inline int64_t window_inputs(const struct window2d *w)
{
    return w->batch * w->in_y * w->in_x;
}

static inline int64_t window_outputs(const struct window2d *w)
{
    return w->batch * w->out_y * w->out_x;
}

struct conv2d {
    struct window2d window;
    int64_t in_channels, out_channels;
};

struct pool2d {
    struct window2d window; /* dilation 1 */
    int64_t channels;
};

/* dst[r * dst_stride + c] from src[r * src_stride + c], r < rows, c < columns */
struct strided {
    int64_t rows, columns, dst_stride, src_stride;
    float *dst;
    const float *src;
};

/* Per-row losses and the gradient of scale * (their sum), where the scale is one float in the
 * device's memory. rows x classes logits. */
struct cross_entropy {
    int64_t rows, classes;
    const float *logits;
    const int32_t
        *labels; /* softmax: [rows], each below classes (checked when read); negative: no label */
    const float *targets;       /* sigmoid: [rows, classes] */
    const float *class_weights; /* softmax: [classes], or NULL for 1 */
    float label_smoothing;
    const float *scale; /* of the gradient: usually 1/rows */
    float *losses;      /* [rows]; softmax: weighted; sigmoid: summed over classes */
    float *gradient;    /* [rows, classes], overwritten; NULL: losses only */
};

/* Elementwise losses on predictions and targets, n = rows * columns */
struct regression {
    int64_t rows, columns;
    const float *predictions, *targets;
    float delta; /* of huber; of weighted_cross_entropy its pos_weight, of log_loss its epsilon */
    const float *scale;
    float *losses;   /* [rows], summed over columns */
    float *gradient; /* overwritten; NULL: losses only */
};

/* How an optimizer updates one element; rule.h says how its formula is written. */
struct rule {
    const char *name; /* "update_adam" */
    int index;        /* among all rules */
    int forms;        /* 1 or 2 */
    int slots[2];     /* of each form */
};

enum { SLOTS_MAX = 3, CONSTANTS_BYTES_MAX = 64 };

/* A range of a block; every slot has the layout of the values */
struct update {
    const struct rule *rule;
    const void *constants; /* in host memory: the rule's own struct NAME_constants */
    float *value;
    const float *gradient;
    float *slot[SLOTS_MAX];
    int form;    /* of the rule */
    float decay; /* applied first: value -= decay * value */
};

/* An optimizer on some rows of a table. With `sweeps` it updates all rows; the gradient of rows not
 * in ids is zero. */
struct row_update {
    const struct rule *rule;
    const void *constants; /* in host memory, as above */
    float *value;          /* [rows, width], and so are the slots */
    float *slot[SLOTS_MAX];
    const int64_t *ids;    /* [count], ascending, each once: start .. start + rows - 1 */
    const float *gradient; /* [count, width] */
    int64_t count, width;
    int64_t start, rows; /* the range of the table's rows that value holds */
    bool sweeps;
    int form;    /* of the rule */
    float decay; /* as above, for each updated row */
};

/* The term that is summed: x, |x|, x^2, or 1 where x is not finite and 0 where it is */
enum summed_term { SUM_PLAIN, SUM_ABS, SUM_SQUARE, SUM_NOT_FINITE };

/* A vector of n floats, and the term that is summed */
struct summed {
    const float *x;
    int64_t n;
    enum summed_term term;
};

/* y (+)= x / (1 - rate) where random_uniform(random_u64(key, *draw), first + index) >= rate, else
 * 0. The same key and draw give the same mask, so the backward pass is the same call on dy; a part
 * of x with its `first` gets the same mask as within the whole. */
struct dropout {
    float *y;
    const float *x;
    float rate;
    uint64_t key;
    const uint64_t *draw; /* in device memory, so that every replay of a recorded step uses a new
                           * draw */
    bool add;
    int64_t first; /* index of x[0] in the whole tensor */
};

/* Random augmentation: each image is padded with zeros, cropped, perhaps mirrored, and its
 * brightness and contrast changed; a crop of another size than the output is resized bilinearly.
 * The random numbers depend only on key, draw and the image's row. */
struct augment {
    int64_t batch, in_y, in_x, out_y, out_x, channels;
    int64_t pad;  /* pixels of zeros on every side */
    bool draws;   /* false: an unchanged center crop */
    bool resizes; /* crops have a random share of the area, and a random aspect ratio: */
    float area_low, area_high;
    float aspect_low, aspect_high;     /* x / y */
    bool flips;                        /* mirrors one half of the images, left to right */
    float brightness;                  /* the added offset is from -brightness to brightness */
    float contrast_low, contrast_high; /* factors of the distance from a channel's mean */
    uint64_t key;
    const uint64_t *draw; /* in device memory, as for dropout */
    int64_t first;        /* index of the first image among all rows */
};

/* The vectors of each example; their pairs are (1, 0), (2, 0), (2, 1), (3, 0) ... All are in one x
 * [batch, vectors, width], or each is in its own [batch, width]. */
enum { INTERACTION_SOURCES_MAX = 64 };
struct interaction {
    int64_t batch, vectors, width;
    int sources; /* 1, or as many as vectors */
    const float *x[INTERACTION_SOURCES_MAX];
    /* Per source; NULL: not wanted. Two may be the same memory, with `add` set for the second. */
    float *dx[INTERACTION_SOURCES_MAX];
    bool add[INTERACTION_SOURCES_MAX];
};

static inline int64_t interaction_pairs(const struct interaction *v)
{
    return v->vectors * (v->vectors - 1) / 2;
}

/* How the rows of an example's ids are combined: the sum of row * weight, divided by 1, by the sum
 * of the weights, or by the square root of the sum of their squares. MEAN and SQRTN ignore ids with
 * weights <= 0 (TensorFlow's embedding_column). */
enum combiner { COMBINER_SUM, COMBINER_MEAN, COMBINER_SQRTN };
struct combine {
    int64_t batch, places; /* ids per example */
    int64_t rows, width;   /* of the table */
    enum combiner combiner;
    const int64_t *ids;   /* [batch, places]; ids that are not a row of the table are ignored */
    const float *weights; /* [batch, places]; NULL: all 1 */
};

/* A matrix in which each block of `block` rows has its own ids for the columns; negative ids mean
 * no id. In a square block a row's own column (the diagonal) can be left unchanged. */
struct same_ids {
    int64_t rows, columns, block;
    int64_t step; /* row stride of y, in floats */
    bool spares_own;
    float value;
    const int64_t *row_ids, *column_ids; /* [rows], [rows / block, columns] */
    float *y;
};

/* normal = (x - mean) / sqrt(variance + epsilon), per row of x; y = normal * gamma + beta. Backward
 * reads dy, normal and inverse (1 / standard deviation), and makes dx. */
struct layer_norm {
    int64_t rows, columns;
    float epsilon;
    const float *x, *gamma, *beta; /* [rows, columns]; [columns] */
    float *y, *normal, *inverse;   /* [rows, columns]; [rows] */
    const float *dy;
    float *dx;
    bool add;
};

/* Batch normalization, per channel of x [rows, channels]: moments: its mean and variance; sums: of
 * dy, and of dy (x - mean); back: dx (+)= dy scale + (x - mean) slope + offset. */
enum { BATCH_NORM_PARTS = 16, BATCH_NORM_ALIGN = 16 };
struct batch_norm {
    int64_t rows, channels;
    const float *x;
    float *mean, *variance; /* [channels], here and below */
    double *partial;        /* [batch_norm_partials()] scratch */
    const float *dy;
    float *sum, *product;
    const float *scale, *slope, *offset;
    float *dx;
    bool add;
};

static inline int64_t batch_norm_partials(int64_t channels)
{
    const int64_t chunks = (channels + BATCH_NORM_ALIGN - 1) / BATCH_NORM_ALIGN;
    return 2 * BATCH_NORM_PARTS * chunks * BATCH_NORM_ALIGN;
}

/* softmax(q k' scale) v for each head of each example: q [batch, queries, heads, width], k and v
 * [batch, keys, heads, width]. Causal: a query sees the keys up to its own position; mask [batch,
 * keys]: only those where it is not 0. A query that sees no key gets 0. Backward reads y and the
 * log_sums [batch, heads, queries] that forward wrote; the part for keys also reads the deltas that
 * the part for queries wrote. */
enum { ATTENTION_WIDTH_MAX = 256 };
struct attention {
    int64_t batch, heads, queries, keys, width;
    float scale;
    bool is_causal;
    const float *q, *k, *v, *mask; /* mask: or NULL */
    float *y, *log_sums, *deltas;
    const float *dy;
    float *dq, *dk, *dv; /* NULL: not wanted. k and v may be the same tensor; then the second
                          * gradient adds. */
    bool add_q, add_k, add_v;
};

/* One number per example, `step` floats apart; NULL: 1 for all */
struct by_example {
    const float *at;
    int64_t step;
};

/* One step of an LSTM (BasicLSTMCell). gates [batch, 4 units]: the pre-activations of i, j, f, o,
 * replaced by their activations, and in backward by the gradients of the pre-activations. Where the
 * mask is 0 the state does not change. */
struct lstm_cell {
    int64_t batch, units;
    float forget_bias;
    struct by_example mask;
    float *gates;
    const float *c_before, *h_before; /* [batch, units] */
    float *c, *h;
    /* Backward. dh: in, the gradient of h from later steps, to which dy is added; out, of h_before
     * except through the gates. dc: in, of c; out, of c_before. */
    const float *dy; /* [batch, units], rows dy_step apart; NULL: none */
    int64_t dy_step;
    float *dh, *dc;
};

/* One step of a GRU (GRUCell). gates [batch, 2 units]: pre-activations of reset and update.
 * candidate [batch, units]: pre-activation of the new values, whose share is scaled down by the
 * attention (AUGRU). reset [batch, units]: the state times the reset gate. */
struct gru_cell {
    int64_t batch, units;
    struct by_example mask, attention; /* attention.at NULL: 0 */
    float *gates, *candidate, *reset;
    const float *before; /* [batch, units] */
    float *after;
    const float *dy;
    int64_t dy_step;
    float *dh, *dreset;
    float *dattention; /* [batch, units], for the caller to sum; NULL: not wanted */
};

/* The formula that a fold applies to each element: up to three inputs. c is the incoming gradient
 * in backward passes. */
enum fold_of {
    FOLD_A,
    FOLD_ADD,           /* a + b */
    FOLD_SUBTRACT,      /* a - b */
    FOLD_MULTIPLY,      /* a b */
    FOLD_DIVIDE,        /* a / b */
    FOLD_MAXIMUM,       /* a, where it is not less than b, else b */
    FOLD_MINIMUM,       /* a, where it is not more than b, else b */
    FOLD_EXP,           /* e^a */
    FOLD_LOG,           /* log a */
    FOLD_EXP_TIMES,     /* e^a b */
    FOLD_EQUAL,         /* 1 where a = b, else 0 */
    FOLD_IF_EQUAL,      /* c where a = b, else 0 */
    FOLD_IF_NOT_LESS,   /* c where a >= b, else 0 */
    FOLD_IF_MORE,       /* c where a > b, else 0 */
    FOLD_DIVIDE_SLOPE,  /* -c a / b^2 */
    FOLD_CLIP,          /* a within low .. high */
    FOLD_IF_WITHIN,     /* c where low <= a <= high, else 0 */
    FOLD_INVERSE_ROOT,  /* 1 / sqrt(a), of `low` where a is less */
    FOLD_PRODUCT_BELOW, /* a b where a < high, else 0 */
    FOLD_PRELU,         /* a above 0, else a b */
    FOLD_PRELU_BACK,    /* c where a is above 0, else c b */
    FOLD_PRELU_SLOPE,   /* 0 where a is above 0, else c a */
    FOLD_MULTIPLY_ADD,  /* a b + c */
    FOLD_DISTANCE,      /* (a - b)^2 */
    FOLD_BEYOND,        /* (a - b) c */
    FOLD_SUM_ROOT,      /* 1 / sqrt(a + low) */
    FOLD_DICE,          /* a (c + b (1 - c)) */
    FOLD_DICE_SLOPE,    /* a (1 - b) c */
    FOLD_IF_ABOVE,      /* a where b > high, else low */
    FOLD_DIVIDE_OR_0,   /* a / b, 0 where b is 0 */
    FOLD_COUNT
};

/* Nested loops, outermost first: iterations, and the stride of each tensor in floats. */
enum { FOLD_LOOPS_MAX = 12 };
struct fold_loops {
    int count;
    int64_t n[FOLD_LOOPS_MAX];
    int64_t y[FOLD_LOOPS_MAX], a[FOLD_LOOPS_MAX], b[FOLD_LOOPS_MAX], c[FOLD_LOOPS_MAX];
};

/* For each element of the kept loops: y (+)= scale * (the sum, or the maximum, over the folded
 * loops). Strides of 0 broadcast; without folded loops it is elementwise. y may be the same memory
 * as an operand with the same strides. */
struct fold {
    enum fold_of of;
    bool is_max, add;
    float scale, low, high;
    struct fold_loops kept, folded; /* steps of y in `folded` are 0 */
    float *y;
    const float *a, *b, *c; /* b, c: NULL where the formula has no such input */
};

/* Adds a loop over n elements inside the loops so far: to `folded` if the stride of y is 0, else to
 * `kept`. Merges it with the loop before it where their strides allow. */
static inline void fold_axis(struct fold *f, int64_t n, int64_t y, int64_t a, int64_t b, int64_t c)
{
    struct fold_loops *l = y == 0 ? &f->folded : &f->kept;
    const int last = l->count - 1;
    if (n == 1) return;
    const bool is_same = last >= 0 && l->y[last] == n * y && l->a[last] == n * a &&
                         l->b[last] == n * b && l->c[last] == n * c;
    const int k = is_same ? last : l->count++;
    l->n[k] = is_same ? l->n[k] * n : n;
    l->y[k] = y;
    l->a[k] = a;
    l->b[k] = b;
    l->c[k] = c;
}

/* Iterations of all loops together */
static inline int64_t fold_places(const struct fold_loops *loops)
{
    int64_t places = 1;
    for (int i = 0; i < loops->count; i++) places *= loops->n[i];
    return places;
}

/* Floats from the first to the last element of a tensor with these strides */
static inline int64_t fold_reach(const struct fold_loops *loops, const int64_t *step)
{
    int64_t reach = 0;
    for (int i = 0; i < loops->count; i++) reach += (loops->n[i] - 1) * step[i];
    return reach;
}

static inline bool fold_is_empty(const struct fold *f)
{
    return fold_places(&f->kept) == 0;
}

typedef void spread_body(const void *arguments, int64_t begin, int64_t end);

struct async;
struct conv2d_plan; /* prepared convolution: the library's primitives and reordered weights */

struct kernels {
    const char *name; /* "cpu avx512", "cuda" */

    /* memory */
    err (*allocate)(struct device *, size_t bytes, void **ret); /* zeroed, aligned to 64 */
    size_t (*available)(struct device *); /* bytes that could be allocated; SIZE_MAX: unknown */
    void (*release)(struct device *, void *);
    void (*upload)(struct device *, void *device_memory, const void *host, size_t bytes);
    void (*download)(struct device *, void *host, const void *device_memory,
                     size_t bytes);      /* synchronizes first */
    err (*synchronize)(struct device *); /* returns the first error of the queued work */

    /* Names the work queued from now on, for error messages: "forward of node", "dense". Both
     * strings must stay valid until the next mark; NULL: no name. The function is NULL on devices
     * whose calls fail at once or never. */
    void (*mark)(struct device *, const char *what, const char *name);

    /* The kernels; kernels.def says what each computes */
#define KERNEL(returns, name, ...) returns (*name)(struct device *, __VA_ARGS__);
#include "kernels/kernels.def"

    /* Calls body(arguments, begin, end) for parts of [0, n) of at least `grain` elements, in
     * several threads on CPU devices, in one call on others. For host loops whose parts do not
     * write each other's memory. */
    void (*spread)(struct device *, int64_t n, int64_t grain, spread_body *, const void *arguments);

    void (*close)(struct device *);

    /* Bytes of the available memory that the driver and libraries may still take while they work,
     * an estimate */
    size_t reserved;

    const struct async *async; /* async.h; NULL: everything goes through the one queue */
};

/* The sum of one vector; synchronizes. */
static inline double kernels_sum(struct device *d, const float *x, int64_t n)
{
    const struct summed one = {x, n, SUM_PLAIN};
    double sum;
    d->kernels->sums(d, &one, 1, &sum);
    return sum;
}

#endif
