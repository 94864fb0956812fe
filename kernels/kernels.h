/* kernels.h - arithmetic on plain memory, one table of functions per device.
 *
 * Every pointer is memory of the device (on the CPU: aligned to 64 bytes unless said otherwise);
 * work is queued in order and may be unfinished until synchronize(). Matrices are row-major, images
 * NHWC [batch, y, x, channel], convolution kernels HWIO [ky, kx, in, out]. Where a gradient is
 * written, `add` chooses between overwriting and adding. Nothing is allocated outside open(),
 * allocate() and the functions that end in _open. Sums that become a loss or a norm are taken in
 * double and in an order that depends on the shapes and, on a GPU, on where rows lie to a multiple
 * of 16 bytes, so that the same run gives the same bits. device.h says how a device is opened.
 *
 * What the functions themselves are stands in kernels.def; what they take and what else a device
 * has, here.
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

/* Whether its slope needs x beside y = f(x) */
static inline bool activation_reads_x(enum activation kind)
{
    return kind == ACTIVATION_SOFTPLUS || kind == ACTIVATION_SWISH || kind == ACTIVATION_GELU ||
           kind == ACTIVATION_GELU_TANH || kind == ACTIVATION_SQUARE || kind == ACTIVATION_LOG ||
           kind == ACTIVATION_ABS;
}

/* How a number of a gradient or a value travels: as it is, or in half the bytes */
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
    /* A large product of a host comes in bands of rows of c, always the same ones, where this is
     * not NULL: each time it is told how many rows from the first one on are done. Others tell
     * nothing before the end. */
    void (*made)(const void *context, int64_t rows);
    const void *context;
};

/* One dimension pair of a window; padding as TensorFlow computes it is the caller's */
struct window2d {
    int64_t batch;
    int64_t in_y, in_x, out_y, out_x;
    int64_t kernel_y, kernel_x, stride_y, stride_x, dilation_y, dilation_x;
    int64_t pad_top, pad_left, pad_bottom, pad_right;
};

/* Positions in all images of a batch: of what a window goes over, and of what it gives */
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

/* Per-row losses and the gradient of (scale * sum of them), where the scale is one float of the
 * device. rows x classes logits. */
struct cross_entropy {
    int64_t rows, classes;
    const float *logits;
    const int32_t
        *labels; /* softmax: [rows], each below classes (checked when read); negative: none */
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

/* How an optimizer changes one element; rule.h says where its formula stands. */
struct rule {
    const char *name; /* "update_adam" */
    int index;        /* among all rules */
    int forms;        /* 1 or 2 */
    int slots[2];     /* of each form */
};

enum { SLOTS_MAX = 3, CONSTANTS_BYTES_MAX = 64 };

/* A stretch of a block, every slot of which has the layout of the values */
struct update {
    const struct rule *rule;
    const void *constants; /* of the host: the rule's own struct NAME_constants */
    float *value;
    const float *gradient;
    float *slot[SLOTS_MAX];
    int form;    /* of the rule */
    float decay; /* before it, value -= decay * value */
};

/* An optimizer on some rows of a table. Where it sweeps, on all of them: those that are not named
 * have a gradient of zero. */
struct row_update {
    const struct rule *rule;
    const void *constants; /* of the host, as above */
    float *value;          /* [rows, width], and so are the slots */
    float *slot[SLOTS_MAX];
    const int64_t *ids;    /* [count], ascending, each once: start .. start + rows - 1 */
    const float *gradient; /* [count, width] */
    int64_t count, width;
    int64_t start, rows; /* those of the table that are here */
    bool sweeps;
    int form;    /* of the rule */
    float decay; /* as above, of each row that is updated */
};

/* What a sum is of: x, |x|, x^2, or 1 where x is not finite and 0 where it is */
enum summed_term { SUM_PLAIN, SUM_ABS, SUM_SQUARE, SUM_NOT_FINITE };

/* A vector of n floats, and what is summed of it */
struct summed {
    const float *x;
    int64_t n;
    enum summed_term term;
};

/* y (+)= x / (1 - rate) where random_uniform(random_u64(key, *draw), first + index) >= rate, else
 * 0. The same key and draw give the same mask, so the backward pass is the same call on dy, and
 * parts of x that say where they begin get the same as all of it at once. */
struct dropout {
    float *y;
    const float *x;
    float rate;
    uint64_t key;
    const uint64_t *draw; /* of the device: a step that is recorded draws anew in every replay */
    bool add;
    int64_t first; /* element, of all */
};

/* Images with zeros around them, of each of which a part is cut out, mirrored or not, made brighter
 * and richer in contrast, as it is drawn; a part of another size is brought to that of the result,
 * bilinearly. What is drawn depends on key, draw and the image's row alone. */
struct augment {
    int64_t batch, in_y, in_x, out_y, out_x, channels;
    int64_t pad;  /* zeros on every side */
    bool draws;   /* false: the middle, as it is */
    bool resizes; /* parts have a drawn share of the area, and proportions: */
    float area_low, area_high;
    float aspect_low, aspect_high;     /* x / y */
    bool flips;                        /* one half of them, left to right */
    float brightness;                  /* what is added is from -brightness to brightness */
    float contrast_low, contrast_high; /* factors of the distance from a channel's mean */
    uint64_t key;
    const uint64_t *draw; /* of the device, as of dropout */
    int64_t first;        /* row, of all */
};

/* Vectors of each example, whose pairs are (1, 0), (2, 0), (2, 1), (3, 0) ... They lie in one x
 * [batch, vectors, width], or each in its own [batch, width]. */
enum { INTERACTION_SOURCES_MAX = 64 };
struct interaction {
    int64_t batch, vectors, width;
    int sources; /* 1, or as many as vectors */
    const float *x[INTERACTION_SOURCES_MAX];
    /* Of each source; NULL: not wanted. Two may be one, the second of which adds. */
    float *dx[INTERACTION_SOURCES_MAX];
    bool add[INTERACTION_SOURCES_MAX];
};

static inline int64_t interaction_pairs(const struct interaction *v)
{
    return v->vectors * (v->vectors - 1) / 2;
}

/* How the rows of an example's ids become one: each times its weight, and the sum of them divided
 * by nothing, by the sum of the weights, by the root of the sum of their squares. Where it is
 * divided, weights that are not above 0 leave their ids out (TensorFlow's embedding_column). */
enum combiner { COMBINER_SUM, COMBINER_MEAN, COMBINER_SQRTN };
struct combine {
    int64_t batch, places; /* of ids, in each example */
    int64_t rows, width;   /* of the table */
    enum combiner combiner;
    const int64_t *ids;   /* [batch, places]; those that are no row of the table are none */
    const float *weights; /* [batch, places]; NULL: all 1 */
};

/* A matrix of which each `block` rows have ids of their own for its columns; ids below 0 are none.
 * Of a square block the row's own column can be left as it is. */
struct same_ids {
    int64_t rows, columns, block;
    int64_t step; /* of y, from a row to the next */
    bool spares_own;
    float value;
    const int64_t *row_ids, *column_ids; /* [rows], [rows / block, columns] */
    float *y;
};

/* Rows of x, each less its mean, over the root of its variance + epsilon: what is normal; y is that
 * times gamma, plus beta. Backward reads dy, what is normal and the inverse deviations, and makes
 * dx. */
struct layer_norm {
    int64_t rows, columns;
    float epsilon;
    const float *x, *gamma, *beta; /* [rows, columns]; [columns] */
    float *y, *normal, *inverse;   /* [rows, columns]; [rows] */
    const float *dy;
    float *dx;
    bool add;
};

/* Each channel of x [rows, channels] by itself, as batch_normalization has it: its mean and its
 * variance; what dy sums up to, and what dy (x - mean) does; dx (+)= dy scale + (x - mean) slope +
 * offset. */
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

/* softmax(q k' scale) v of each head of each example: q [batch, queries, heads, width], k and v
 * [batch, keys, heads, width]. Causal: of the keys up to the query's own place; mask [batch, keys]:
 * of those that are not 0. A query that sees no key gets 0. Backward reads y and what forward has
 * left in log_sums [batch, heads, queries], and the keys' part also the deltas of the queries'. */
enum { ATTENTION_WIDTH_MAX = 256 };
struct attention {
    int64_t batch, heads, queries, keys, width;
    float scale;
    bool is_causal;
    const float *q, *k, *v, *mask; /* mask: or NULL */
    float *y, *log_sums, *deltas;
    const float *dy;
    float *dq, *dk, *dv; /* NULL: not wanted. k and v may be one, which then adds. */
    bool add_q, add_k, add_v;
};

/* A number for each example, which lie so far apart; NULL: 1 for all */
struct by_example {
    const float *at;
    int64_t step;
};

/* One step of an LSTM (BasicLSTMCell). gates [batch, 4 units]: the sums of i, j, f, o, which become
 * what the activations make of them, and backward the gradients of the sums. Where the mask is 0
 * all stays as it was before. */
struct lstm_cell {
    int64_t batch, units;
    float forget_bias;
    struct by_example mask;
    float *gates;
    const float *c_before, *h_before; /* [batch, units] */
    float *c, *h;
    /* Backward: dh, of h without dy, becomes that of h_before without what gates make of it, and dc
     * that of c_before. */
    const float *dy; /* [batch, units], rows dy_step apart; NULL: none */
    int64_t dy_step;
    float *dh, *dc;
};

/* One step of a GRU (GRUCell): gates [batch, 2 units] are the sums of reset and update, candidate
 * [batch, units] those of the new values, of which update takes less as the attention is more
 * (AUGRU); reset [batch, units] is the state times the reset gate. */
struct gru_cell {
    int64_t batch, units;
    struct by_example mask, attention; /* attention.at NULL: 0 */
    float *gates, *candidate, *reset;
    const float *before; /* [batch, units] */
    float *after;
    const float *dy;
    int64_t dy_step;
    float *dh, *dreset;
    float *dattention; /* [batch, units], to be summed; NULL: not wanted */
};

/* What a fold takes of each place: a formula of up to three numbers. c is a gradient where there
 * is one. */
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

/* Loops, the outermost first: how often, and by how many floats each tensor goes on. */
enum { FOLD_LOOPS_MAX = 12 };
struct fold_loops {
    int count;
    int64_t n[FOLD_LOOPS_MAX];
    int64_t y[FOLD_LOOPS_MAX], a[FOLD_LOOPS_MAX], b[FOLD_LOOPS_MAX], c[FOLD_LOOPS_MAX];
};

/* y (+)= scale times the sum, or the largest, over the folded loops, in each place of the kept
 * ones. Steps of 0 broadcast; without folded loops it is f itself. y may be an operand that goes
 * through the same places. */
struct fold {
    enum fold_of of;
    bool is_max, add;
    float scale, low, high;
    struct fold_loops kept, folded; /* steps of y in `folded` are 0 */
    float *y;
    const float *a, *b, *c; /* b, c: NULL where the formula has none */
};

/* The loop over an axis of n, inside those that are there: kept, or where y stays, folded. Where
 * one loop goes on as the other began, the two are one. */
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

/* Places of loops */
static inline int64_t fold_places(const struct fold_loops *loops)
{
    int64_t places = 1;
    for (int i = 0; i < loops->count; i++) places *= loops->n[i];
    return places;
}

/* Floats from the first place to the last one of a tensor that goes on by `step` */
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
                     size_t bytes);      /* synchronizes */
    err (*synchronize)(struct device *); /* returns the first error of the queued work */

    /* What is queued from now on, for the text of a failure: "forward of node", "dense". Both are
     * the caller's until the next mark; NULL: nothing in particular. NULL where a failure comes
     * out of the very call that has it, or nobody would be told. */
    void (*mark)(struct device *, const char *what, const char *name);

    /* The kernels: kernels.def has them row by row, with what each computes */
#define KERNEL(returns, name, ...) returns (*name)(struct device *, __VA_ARGS__);
#include "kernels/kernels.def"

    /* body(arguments, begin, end) over parts of [0, n) of at least `grain`, in several threads
     * where the device has them; for host loops whose parts do not touch each other's memory (CPU
     * devices only: elsewhere one part) */
    void (*spread)(struct device *, int64_t n, int64_t grain, spread_body *, const void *arguments);

    void (*close)(struct device *);

    /* Of what is available, what the device's driver and libraries may take while they work and
     * nobody can say beforehand: bytes */
    size_t reserved;

    const struct async *async; /* async.h; NULL: everything goes through the one queue */
};

/* Of one vector; it waits. */
static inline double kernels_sum(struct device *d, const float *x, int64_t n)
{
    const struct summed one = {x, n, SUM_PLAIN};
    double sum;
    d->kernels->sums(d, &one, 1, &sum);
    return sum;
}

#endif
