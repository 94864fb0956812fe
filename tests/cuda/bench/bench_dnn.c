/* bench_dnn.c - cuDNN, opened as it is found and called by numbers of its header, which the build
 * does not need. Its search tries every algorithm on the real sizes; both orders of the axes of
 * images are tried, since some algorithms exist for one alone, and the faster counts.
 *
 * Whatever cuDNN refuses is left out of the comparison: the bench goes on.
 */
#include "tests/cuda/bench/bench_dnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,               /* CUDNN_STATUS_SUCCESS */
    DATA_FLOAT = 0,            /* CUDNN_DATA_FLOAT */
    CROSS_CORRELATION = 1,     /* CUDNN_CROSS_CORRELATION */
    MATH_TENSOR_CORES = 1,     /* CUDNN_TENSOR_OP_MATH */
    MATH_FLOAT32 = 3,          /* CUDNN_FMA_MATH: no TF32 */
    ALGORITHMS_MAX = 16,       /* twice what any direction has */
    WORKSPACE_BYTES = 1 << 29, /* more than any size here asks for but for FFTs */
};

static const struct layout {
    const char *name;
    int number; /* CUDNN_TENSOR_... */
} layouts[] = {{"NHWC", 1}, {"NCHW", 0}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t: the three are laid out alike. */
struct performance {
    int algorithm, status;
    float ms;
    size_t bytes;
    int determinism, math, reserved[3];
};

/* The three directions are called alike too: two operands, the convolution, a result. */
typedef int find_function(void *handle, void *a_shape, const void *a, void *b_shape, const void *b,
                          void *convolution, void *c_shape, void *c, int wanted, int *ret_count,
                          struct performance *ret, void *workspace, size_t workspace_bytes);
typedef int run_function(void *handle, const void *alpha, void *a_shape, const void *a,
                         void *b_shape, const void *b, void *convolution, int algorithm,
                         void *workspace, size_t workspace_bytes, const void *beta, void *c_shape,
                         void *c);

enum role { IMAGE, KERNEL, RESULT, ROLES };
static const struct {
    const char *find, *run;
    enum role a, b, c;
} calls[DIRECTIONS] = {
    [FORWARD] = {"cudnnFindConvolutionForwardAlgorithmEx", "cudnnConvolutionForward", IMAGE, KERNEL,
                 RESULT},
    [BACK_DATA] = {"cudnnFindConvolutionBackwardDataAlgorithmEx", "cudnnConvolutionBackwardData",
                   KERNEL, RESULT, IMAGE},
    [BACK_KERNEL] = {"cudnnFindConvolutionBackwardFilterAlgorithmEx",
                     "cudnnConvolutionBackwardFilter", IMAGE, RESULT, KERNEL},
};

struct bare_dnn {
    void *library, *handle, *workspace;
    size_t version;
    void *shapes[ROLES], *convolution; /* descriptors, filled anew for every convolution */
    find_function *find[DIRECTIONS];
    run_function *run[DIRECTIONS];
    int (*create)(void **handle), (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t);
    size_t (*get_version)(void);
    int (*create_tensor)(void **), (*create_filter)(void **), (*create_convolution)(void **);
    int (*destroy_tensor)(void *), (*destroy_filter)(void *), (*destroy_convolution)(void *);
    int (*set_tensor)(void *, int layout, int type, int n, int c, int y, int x);
    int (*set_filter)(void *, int type, int layout, int out, int in, int y, int x);
    int (*set_convolution)(void *, int pad_y, int pad_x, int stride_y, int stride_x, int dilation_y,
                           int dilation_x, int mode, int type);
    int (*set_math)(void *, int math);
};

/* The one that dtrain finds, or that BENCH_CUDNN names */
static void *open_library(void)
{
    struct cuda_library found;
    const char *named = getenv("BENCH_CUDNN");
    if (named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    return cuda_dnn_find(&found) ? NULL : dlopen(found.path, RTLD_NOW | RTLD_LOCAL);
}

static bool look_up(struct bare_dnn *dnn)
{
    const struct {
        const char *name;
        void *pointer;
    } functions[] = {
        {"cudnnCreate", &dnn->create},
        {"cudnnDestroy", &dnn->destroy},
        {"cudnnSetStream", &dnn->set_stream},
        {"cudnnGetVersion", &dnn->get_version},
        {"cudnnCreateTensorDescriptor", &dnn->create_tensor},
        {"cudnnCreateFilterDescriptor", &dnn->create_filter},
        {"cudnnCreateConvolutionDescriptor", &dnn->create_convolution},
        {"cudnnDestroyTensorDescriptor", &dnn->destroy_tensor},
        {"cudnnDestroyFilterDescriptor", &dnn->destroy_filter},
        {"cudnnDestroyConvolutionDescriptor", &dnn->destroy_convolution},
        {"cudnnSetTensor4dDescriptor", &dnn->set_tensor},
        {"cudnnSetFilter4dDescriptor", &dnn->set_filter},
        {"cudnnSetConvolution2dDescriptor", &dnn->set_convolution},
        {"cudnnSetConvolutionMathType", &dnn->set_math},
        {calls[FORWARD].find, &dnn->find[FORWARD]},
        {calls[FORWARD].run, &dnn->run[FORWARD]},
        {calls[BACK_DATA].find, &dnn->find[BACK_DATA]},
        {calls[BACK_DATA].run, &dnn->run[BACK_DATA]},
        {calls[BACK_KERNEL].find, &dnn->find[BACK_KERNEL]},
        {calls[BACK_KERNEL].run, &dnn->run[BACK_KERNEL]},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(dnn->library, functions[i].name);
        if (!found) return false;
        memcpy(functions[i].pointer, &found, sizeof found);
    }
    return true;
}

static err set_up(struct bench *b, struct bare_dnn *dnn)
{
    dnn->library = open_library();
    if (!dnn->library) return fail(ERR_DEVICE, "cuDNN was not found");
    if (!look_up(dnn)) return fail(ERR_DEVICE, "cuDNN lacks a function");
    dnn->version = dnn->get_version();
    if (dnn->create(&dnn->handle) != SUCCESS ||
        dnn->set_stream(dnn->handle, b->state->stream) != SUCCESS ||
        dnn->create_tensor(&dnn->shapes[IMAGE]) != SUCCESS ||
        dnn->create_filter(&dnn->shapes[KERNEL]) != SUCCESS ||
        dnn->create_tensor(&dnn->shapes[RESULT]) != SUCCESS ||
        dnn->create_convolution(&dnn->convolution) != SUCCESS)
        return fail(ERR_DEVICE, "cuDNN %zu cannot be used here", dnn->version);
    return b->d.kernels->allocate(&b->d, (size_t)bench_scaled(b, WORKSPACE_BYTES), &dnn->workspace);
}

err bare_dnn_open(struct bench *b, struct bare_dnn **ret)
{
    struct bare_dnn *dnn = calloc(1, sizeof *dnn);
    if (!dnn) return fail(ERR_MEMORY, "no memory for cuDNN");
    const err e = set_up(b, dnn);
    if (e) {
        bare_dnn_close(b, dnn);
        return e;
    }
    *ret = dnn;
    return OK;
}

/* Takes a half-made one. */
void bare_dnn_close(struct bench *b, struct bare_dnn *dnn)
{
    if (dnn->shapes[IMAGE]) (void)dnn->destroy_tensor(dnn->shapes[IMAGE]);
    if (dnn->shapes[KERNEL]) (void)dnn->destroy_filter(dnn->shapes[KERNEL]);
    if (dnn->shapes[RESULT]) (void)dnn->destroy_tensor(dnn->shapes[RESULT]);
    if (dnn->convolution) (void)dnn->destroy_convolution(dnn->convolution);
    if (dnn->handle) (void)dnn->destroy(dnn->handle);
    if (dnn->workspace) b->d.kernels->release(&b->d, dnn->workspace);
    if (dnn->library) (void)dlclose(dnn->library);
    free(dnn);
}

size_t bare_dnn_version(const struct bare_dnn *dnn)
{
    return dnn->version;
}

/* Padding of these convolutions is the same on both sides, as cuDNN's alone can be. */
static bool describe(struct bare_dnn *dnn, const struct conv2d *c, int layout, int math)
{
    const struct window2d *w = &c->window;
    const int batch = (int)w->batch, in = (int)c->in_channels, out = (int)c->out_channels;
    return dnn->set_tensor(dnn->shapes[IMAGE], layout, DATA_FLOAT, batch, in, (int)w->in_y,
                           (int)w->in_x) == SUCCESS &&
           dnn->set_tensor(dnn->shapes[RESULT], layout, DATA_FLOAT, batch, out, (int)w->out_y,
                           (int)w->out_x) == SUCCESS &&
           dnn->set_filter(dnn->shapes[KERNEL], DATA_FLOAT, layout, out, in, (int)w->kernel_y,
                           (int)w->kernel_x) == SUCCESS &&
           dnn->set_convolution(dnn->convolution, (int)w->pad_top, (int)w->pad_left,
                                (int)w->stride_y, (int)w->stride_x, (int)w->dilation_y,
                                (int)w->dilation_x, CROSS_CORRELATION, DATA_FLOAT) == SUCCESS &&
           dnn->set_math(dnn->convolution, math) == SUCCESS;
}

/* One convolution as it is called; operands by their roles, each in floats */
struct bare_call {
    struct bare_dnn *dnn;
    enum direction direction;
    struct performance how;
    int64_t floats[ROLES];
};

/* Inputs are never written, so the result goes to memory of its own whatever its role. */
static float *operand(struct bench *b, const struct bare_call *c, enum role role, int call)
{
    float *const inputs[ROLES] = {[IMAGE] = b->x, [KERNEL] = b->y, [RESULT] = b->z};
    const bool is_written = role == calls[c->direction].c;
    return bench_part(b, is_written ? b->out : inputs[role], c->floats[role], call);
}

static void run(struct bench *b, const void *arguments, int call)
{
    const struct bare_call *c = arguments;
    struct bare_dnn *dnn = c->dnn;
    const enum role first = calls[c->direction].a, second = calls[c->direction].b,
                    result = calls[c->direction].c;
    const float one = 1, none = 0;
    if (dnn->run[c->direction](dnn->handle, &one, dnn->shapes[first], operand(b, c, first, call),
                               dnn->shapes[second], operand(b, c, second, call), dnn->convolution,
                               c->how.algorithm, dnn->workspace, c->how.bytes, &none,
                               dnn->shapes[result], operand(b, c, result, call)) != SUCCESS)
        cuda_refuse(&b->d, calls[c->direction].run);
}

/* The search tries what is asked for and the default, which may be TF32: that is not compared with
 * float32. The first that remains is the fastest. */
static bool search(struct bench *b, struct bare_call *c, int math)
{
    struct bare_dnn *dnn = c->dnn;
    struct performance found[ALGORITHMS_MAX] = {0};
    int count = 0;
    const enum role first = calls[c->direction].a, second = calls[c->direction].b,
                    result = calls[c->direction].c;
    if (dnn->find[c->direction](dnn->handle, dnn->shapes[first], operand(b, c, first, 0),
                                dnn->shapes[second], operand(b, c, second, 0), dnn->convolution,
                                dnn->shapes[result], operand(b, c, result, 0), ALGORITHMS_MAX,
                                &count, found, dnn->workspace,
                                (size_t)bench_scaled(b, WORKSPACE_BYTES)) != SUCCESS)
        return false;
    for (int i = 0; i < count && i < ALGORITHMS_MAX; i++) {
        if (found[i].status != SUCCESS) continue;
        if (math == MATH_FLOAT32 && found[i].math != math) continue;
        c->how = found[i];
        return dnn->set_math(dnn->convolution, found[i].math) == SUCCESS;
    }
    return false;
}

struct bare_best bare_dnn_best(struct bench *b, const struct conv2d *conv, enum direction direction)
{
    const struct window2d *w = &conv->window;
    const int math = b->precision == PRECISION_FLOAT32 ? MATH_FLOAT32 : MATH_TENSOR_CORES;
    struct bare_call c = {
        .dnn = b->dnn,
        .direction = direction,
        .floats = {[IMAGE] = w->batch * w->in_y * w->in_x * conv->in_channels,
                   [KERNEL] = w->kernel_y * w->kernel_x * conv->in_channels * conv->out_channels,
                   [RESULT] = w->batch * w->out_y * w->out_x * conv->out_channels}};
    struct bare_best best = {0};
    for (int i = 0; i < LAYOUTS; i++) {
        if (!describe(b->dnn, conv, layouts[i].number, math) || !search(b, &c, math)) continue;
        const double us = bench_us(b, &(struct timed){run, &c, false});
        if (best.us > 0 && best.us <= us) continue;
        best = (struct bare_best){.us = us, .algorithm = c.how.algorithm};
        snprintf(best.layout, sizeof best.layout, "%s", layouts[i].name);
    }
    return best;
}
