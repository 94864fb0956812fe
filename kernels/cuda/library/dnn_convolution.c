/* dnn_convolution.c - one convolution by cuDNN.
 *
 * The algorithm is chosen when it is opened, by cuDNN's heuristics and not by timing, so that every
 * run on the same GPU and cuDNN chooses the same. Running it only queues work, so that it can be
 * recorded.
 */
#include <limits.h>

#include "kernels/cuda/library/dnn.h"

enum {
    WORKSPACE_MAX = 64 << 20, /* bytes for one convolution: our own kernels compute what needs more
                               */
    OFFERS_MAX = 24,          /* more than all algorithms and math types */
    ALIGNMENT = 256,          /* of the workspace, which follows the kernel */
};

/* Algorithms that sum products of the original numbers, as bits 1 << number:
 * CUDNN_CONVOLUTION_FWD_ALGO_ IMPLICIT_GEMM, IMPLICIT_PRECOMP_GEMM and GEMM, BWD_DATA_ALGO_1 and
 * BWD_FILTER_ALGO_1. The others transform them first (Fourier, Winograd), with larger rounding
 * errors, or sum in an undefined order. */
static const unsigned summing_algorithms[DNN_DIRECTIONS] = {
    [DNN_FORWARD] = 1u << 0 | 1u << 1 | 1u << 2,
    [DNN_BACK_DATA] = 1u << 1,
    [DNN_BACK_KERNEL] = 1u << 1,
};

static const char *const call_names[DNN_DIRECTIONS] = {
    [DNN_FORWARD] = "cudnnConvolutionForward",
    [DNN_BACK_DATA] = "cudnnConvolutionBackwardData",
    [DNN_BACK_KERNEL] = "cudnnConvolutionBackwardFilter",
};

/* --- choosing --- */

/* Whether all are from `least` to INT_MAX */
static bool are_ints(const int64_t *numbers, size_t count, int64_t least)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] < least || numbers[i] > INT_MAX) return false;
    return true;
}

/* cuDNN counts in ints, and accepts tensors of fewer than 2^31 elements. In double, because the
 * products may overflow an int64_t, too. */
static bool is_countable(const struct conv2d *c)
{
    const struct window2d *w = &c->window;
    const int64_t extents[] = {w->batch,       w->in_y,       w->in_x,       w->out_y,
                               w->out_x,       w->kernel_y,   w->kernel_x,   w->stride_y,
                               w->stride_x,    w->dilation_y, w->dilation_x, c->in_channels,
                               c->out_channels};
    const int64_t pads[] = {w->pad_top, w->pad_left};
    if (!are_ints(extents, sizeof extents / sizeof *extents, 1) || !are_ints(pads, 2, 0))
        return false;
    const double ins = (double)c->in_channels, outs = (double)c->out_channels;
    return (double)w->batch * (double)w->in_y * (double)w->in_x * ins <= INT_MAX &&
           (double)w->batch * (double)w->out_y * (double)w->out_x * outs <= INT_MAX &&
           (double)w->kernel_y * (double)w->kernel_x * ins * outs <= INT_MAX;
}

/* Describes the operands, [batch, y, x, channel] and [out, ky, kx, in] */
static bool describe(const struct cuda_dnn *dnn, const struct conv2d *c, struct dnn_convolution *p)
{
    const struct window2d *w = &c->window;
    const int in = (int)c->in_channels, out = (int)c->out_channels, batch = (int)w->batch;
    return dnn->create_tensor(&p->x) == DNN_SUCCESS && dnn->create_tensor(&p->y) == DNN_SUCCESS &&
           dnn->create_kernel(&p->kernel) == DNN_SUCCESS &&
           dnn->set_tensor(p->x, DNN_NHWC, DNN_FLOAT, batch, in, (int)w->in_y, (int)w->in_x) ==
               DNN_SUCCESS &&
           dnn->set_tensor(p->y, DNN_NHWC, DNN_FLOAT, batch, out, (int)w->out_y, (int)w->out_x) ==
               DNN_SUCCESS &&
           dnn->set_kernel(p->kernel, DNN_FLOAT, DNN_NHWC, out, in, (int)w->kernel_y,
                           (int)w->kernel_x) == DNN_SUCCESS;
}

/* cuDNN pads both ends alike. More padding at the end than needed does no harm, as long as no
 * window begins there: so cuDNN's size of the result must be the wanted one, which is checked for
 * impossible shapes, too. */
static bool describe_windows(const struct cuda_dnn *dnn, const struct window2d *w,
                             const struct dnn_convolution *p, void *convolution)
{
    int batch, channels, y, x;
    return dnn->set_convolution(convolution, (int)w->pad_top, (int)w->pad_left, (int)w->stride_y,
                                (int)w->stride_x, (int)w->dilation_y, (int)w->dilation_x,
                                DNN_CROSS_CORRELATION, DNN_FLOAT) == DNN_SUCCESS &&
           dnn->result_extents(convolution, p->x, p->kernel, &batch, &channels, &y, &x) ==
               DNN_SUCCESS &&
           batch == w->batch && channels == p->out_channels && y == w->out_y && x == w->out_x;
}

/* The operands and the result of a direction */
struct operands {
    const void *left, *right, *result;
};

static struct operands operands_of(const struct dnn_convolution *p, enum dnn_direction direction)
{
    switch (direction) {
    case DNN_BACK_DATA:
        return (struct operands){p->kernel, p->y, p->x};
    case DNN_BACK_KERNEL:
        return (struct operands){p->x, p->y, p->kernel};
    default:
        return (struct operands){p->x, p->kernel, p->y};
    }
}

/* Whether an offer is deterministic, in float32 if required, and within the memory limit */
static bool is_acceptable(const struct cuda_dnn *dnn, enum dnn_direction direction,
                          const struct dnn_offer *offer)
{
    const bool has_math = offer->math == DNN_DEFAULT_MATH || offer->math == DNN_FLOAT32_MATH ||
                          (offer->math == DNN_TENSOR_MATH && !dnn->is_exact);
    return offer->status == DNN_SUCCESS && offer->determinism == DNN_DETERMINISTIC && has_math &&
           offer->algorithm >= 0 && offer->algorithm < 32 &&
           (summing_algorithms[direction] >> offer->algorithm & 1) != 0;
}

/* The descriptor demands float32 if required, whatever the offer says. */
static bool take_offer(const struct cuda_dnn *dnn, enum dnn_direction direction,
                       const struct operands *o, const struct dnn_offer *offer,
                       struct dnn_choice *choice)
{
    const int math = dnn->is_exact ? DNN_FLOAT32_MATH : offer->math;
    choice->algorithm = offer->algorithm;
    return is_acceptable(dnn, direction, offer) &&
           dnn->set_math(choice->convolution, math) == DNN_SUCCESS &&
           dnn->calls[direction].workspace(dnn->handle, o->left, o->right, choice->convolution,
                                           o->result, choice->algorithm,
                                           &choice->workspace_bytes) == DNN_SUCCESS &&
           choice->workspace_bytes <= WORKSPACE_MAX;
}

/* The first acceptable offer: they are sorted by expected speed */
static bool choose(const struct cuda_dnn *dnn, const struct dnn_convolution *p,
                   enum dnn_direction direction, struct dnn_choice *choice)
{
    const struct operands o = operands_of(p, direction);
    struct dnn_offer offers[OFFERS_MAX];
    int count = 0;
    if (dnn->set_math(choice->convolution, dnn->is_exact ? DNN_FLOAT32_MATH : DNN_DEFAULT_MATH) !=
            DNN_SUCCESS ||
        dnn->calls[direction].offer(dnn->handle, o.left, o.right, choice->convolution, o.result,
                                    OFFERS_MAX, &count, offers) != DNN_SUCCESS)
        return false;
    for (int i = 0; i < count && i < OFFERS_MAX; i++)
        if (take_offer(dnn, direction, &o, &offers[i], choice)) return true;
    return false;
}

/* Each direction has its own descriptor, because that includes the math type. */
static void choose_direction(const struct cuda_dnn *dnn, const struct window2d *w,
                             struct dnn_convolution *p, enum dnn_direction direction)
{
    struct dnn_choice choice = {0};
    if (dnn->create_convolution(&choice.convolution) != DNN_SUCCESS) return;
    if (describe_windows(dnn, w, p, choice.convolution) && choose(dnn, p, direction, &choice))
        p->choices[direction] = choice;
    else
        (void)dnn->destroy_convolution(choice.convolution);
}

void dnn_convolution_choose(struct device *d, const struct conv2d *shape,
                            struct dnn_convolution *ret)
{
    const struct window2d *w = &shape->window;
    *ret = (struct dnn_convolution){0};
    const struct cuda_dnn *dnn = cuda_dnn_use(d);
    if (!dnn || !is_countable(shape)) return;
    cuda_select(d);
    ret->kernel_rows = w->kernel_y * w->kernel_x * shape->in_channels;
    ret->out_channels = shape->out_channels;
    ret->x_floats = w->batch * w->in_y * w->in_x * shape->in_channels;
    ret->y_floats = w->batch * w->out_y * w->out_x * shape->out_channels;
    if (!describe(dnn, shape, ret)) return;
    for (int i = 0; i < DNN_DIRECTIONS; i++) choose_direction(dnn, w, ret, (enum dnn_direction)i);
}

/* --- memory --- */

/* Bytes of the transposed kernel, or its gradient, up to the start of the workspace */
static size_t kernel_bytes(const struct dnn_convolution *p)
{
    const size_t bytes = (size_t)(p->kernel_rows * p->out_channels) * sizeof(float);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* All directions share the memory: they do not overlap in time. */
size_t dnn_convolution_bytes(const struct dnn_convolution *p)
{
    bool is_used = false;
    size_t workspace = 0;
    for (int i = 0; i < DNN_DIRECTIONS; i++) {
        const struct dnn_choice *choice = &p->choices[i];
        is_used |= choice->convolution != NULL;
        if (choice->workspace_bytes > workspace) workspace = choice->workspace_bytes;
    }
    return is_used ? kernel_bytes(p) + workspace : 0;
}

void dnn_convolution_close(struct device *d, struct dnn_convolution *p)
{
    const struct cuda_state *state = d->state;
    const struct cuda_dnn *dnn = state->dnn;
    if (p->kernel_data) d->kernels->release(d, p->kernel_data);
    for (int i = 0; i < DNN_DIRECTIONS; i++)
        if (p->choices[i].convolution) (void)dnn->destroy_convolution(p->choices[i].convolution);
    if (p->kernel) (void)dnn->destroy_kernel(p->kernel);
    if (p->y) (void)dnn->destroy_tensor(p->y);
    if (p->x) (void)dnn->destroy_tensor(p->x);
    *p = (struct dnn_convolution){0};
}

/* --- running --- */

/* The device memory of a direction's operands */
struct data {
    const float *left, *right;
    float *result;
    bool add;
};

/* Returns cuDNN's status. It reads alpha and beta from the host before it returns. */
static int call(struct device *d, const struct dnn_convolution *p, enum dnn_direction direction,
                const struct data *data)
{
    const struct cuda_state *state = d->state;
    const struct cuda_dnn *dnn = state->dnn;
    const struct dnn_choice *choice = &p->choices[direction];
    const struct operands o = operands_of(p, direction);
    const float one = 1.0f, kept = data->add ? 1.0f : 0.0f;
    void *workspace = choice->workspace_bytes ? (char *)p->kernel_data + kernel_bytes(p) : NULL;
    const int status = dnn->calls[direction].run(
        dnn->handle, &one, o.left, data->left, o.right, data->right, choice->convolution,
        choice->algorithm, workspace, choice->workspace_bytes, &kept, o.result, data->result);
    /* The library has its own runtime, so CUDA's last error would be another call's. */
    cuda_launched(d, call_names[direction], cudaSuccess);
    return status;
}

static void run(struct device *d, const struct dnn_convolution *p, enum dnn_direction direction,
                const struct data *data)
{
    const struct cuda_state *state = d->state;
    if (!cuda_may_queue(d)) return;
    const int status = call(d, p, direction, data);
    if (status == DNN_SUCCESS) return;
    cuda_await_cause(d);
    cuda_remember(d, ERR_DEVICE, call_names[direction], state->dnn->status_text(status));
}

/* --- opening --- */

static void give_up(struct dnn_convolution *p, struct cuda_dnn *dnn, enum dnn_direction direction,
                    int status)
{
    struct dnn_choice *choice = &p->choices[direction];
    dnn_note(dnn, "own kernels instead of %s, algorithm %d: %s", call_names[direction],
             choice->algorithm, dnn->status_text(status));
    (void)dnn->destroy_convolution(choice->convolution);
    *choice = (struct dnn_choice){0};
}

/* Runs on zeros, or arbitrary data: only the status matters. Heuristics may offer algorithms that
 * fail, on a GPU that they do not know, or if a part of cuDNN is missing. */
static void try_directions(struct device *d, struct dnn_convolution *p, float *x, float *y)
{
    const struct cuda_state *state = d->state;
    const struct data data[DNN_DIRECTIONS] = {
        [DNN_FORWARD] = {x, p->kernel_data, y, false},
        [DNN_BACK_DATA] = {p->kernel_data, y, x, false},
        [DNN_BACK_KERNEL] = {x, y, p->kernel_data, false},
    };
    for (int i = 0; i < DNN_DIRECTIONS; i++) {
        if (!p->choices[i].convolution || !cuda_may_queue(d)) continue;
        const int status = call(d, p, (enum dnn_direction)i, &data[i]);
        if (status != DNN_SUCCESS) give_up(p, state->dnn, (enum dnn_direction)i, status);
    }
}

/* If there is no memory for images besides the plan's, the choices are taken untested: the choice
 * must not depend on free memory. */
static err try_all(struct device *d, struct dnn_convolution *p)
{
    void *x = NULL, *y = NULL;
    if (!d->kernels->allocate(d, (size_t)p->x_floats * sizeof(float), &x) &&
        !d->kernels->allocate(d, (size_t)p->y_floats * sizeof(float), &y))
        try_directions(d, p, x, y);
    const err e = d->kernels->synchronize(d);
    d->kernels->release(d, x);
    d->kernels->release(d, y);
    return e;
}

err dnn_convolution_open(struct device *d, struct dnn_convolution *p)
{
    void *memory;
    const size_t bytes = dnn_convolution_bytes(p);
    if (bytes == 0) return OK;
    TRY(d->kernels->allocate(d, bytes, &memory));
    p->kernel_data = memory;
    TRY(try_all(d, p));
    if (dnn_convolution_bytes(p) > 0) return OK;
    d->kernels->release(d, p->kernel_data); /* cuDNN computes nothing any more */
    p->kernel_data = NULL;
    return OK;
}

/* --- computing --- */

/* Copies our kernel, [ky, kx, in, out], to cuDNN's layout; each time, because training changes it
 */
static void take_kernel(struct device *d, const struct dnn_convolution *p, const float *kernel)
{
    cuda_transpose(d, &(struct transposition){.to = p->kernel_data,
                                              .from = kernel,
                                              .rows = p->kernel_rows,
                                              .columns = p->out_channels});
}

void dnn_forward(struct device *d, const struct dnn_convolution *p, float *y, const float *x,
                 const float *kernel)
{
    take_kernel(d, p, kernel);
    run(d, p, DNN_FORWARD, &(struct data){.left = x, .right = p->kernel_data, .result = y});
}

void dnn_back_data(struct device *d, const struct dnn_convolution *p, float *dx, const float *dy,
                   const float *kernel, bool add)
{
    take_kernel(d, p, kernel);
    run(d, p, DNN_BACK_DATA, &(struct data){p->kernel_data, dy, dx, add});
}

void dnn_back_kernel(struct device *d, const struct dnn_convolution *p, float *dkernel,
                     const float *dy, const float *x, bool add)
{
    run(d, p, DNN_BACK_KERNEL, &(struct data){.left = x, .right = dy, .result = p->kernel_data});
    cuda_transpose(d, &(struct transposition){.to = dkernel,
                                              .from = p->kernel_data,
                                              .rows = p->out_channels,
                                              .columns = p->kernel_rows,
                                              .add = add});
}
