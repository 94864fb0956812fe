/* cudnn.c - a library that calls itself cuDNN: convolutions as its documentation has them, by plain
 * loops on memory of the host. It wants images and kernels in the layouts that we have, and says by
 * a status where they are not.
 *
 * FAKE_CUDNN_BROKEN is the function that fails, FAKE_CUDNN_WORKSPACE how many bytes a convolution
 * says it needs. Of what it offers only the last will do: those before it are what a careless
 * caller would take.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1001,
    BAD_PARAM = 2000,
    MISALIGNED = 2003,
    NOT_SUPPORTED = 3000,
    EXECUTION_FAILED = 5000,
};
enum { FLOAT = 0, NHWC = 1, CROSS_CORRELATION = 1, DETERMINISTIC = 1, GOOD_ALGORITHM = 1 };
enum { DEFAULT_MATH = 0, TENSOR_MATH = 1, CONVERTING_MATH = 2, FLOAT32_MATH = 3 };

/* What a direction needs beyond what its offer says; asked for by a function of its own */
enum { WORKSPACE_MORE = 24, ALIGNMENT = 16 };

struct handle {
    void *stream;
};

/* An image [batch, y, x, channel], or a kernel [out, y, x, in] */
struct array {
    int n, channels, y, x;
};

struct convolution {
    int pad_y, pad_x, stride_y, stride_x, dilation_y, dilation_x, math;
};

struct offer {
    int algorithm, status;
    float time;
    size_t memory;
    int determinism, math;
    int reserved[3];
};

static int runs, handles;
static void (*open_memory)(int gpu), (*close_memory)(void); /* NULL: it is the host's, too */

int fake_cudnn_runs(void);
int fake_cudnn_handles(void);
void fake_cudnn_reach(void (*open)(int gpu), void (*close)(void));
const char *cudnnGetErrorString(int status);
int cudnnCreate(struct handle **ret);
int cudnnDestroy(struct handle *);
int cudnnSetStream(struct handle *, void *stream);
int cudnnCreateTensorDescriptor(struct array **ret);
int cudnnDestroyTensorDescriptor(struct array *);
int cudnnSetTensor4dDescriptor(struct array *, int format, int type, int n, int channels, int y,
                               int x);
int cudnnCreateFilterDescriptor(struct array **ret);
int cudnnDestroyFilterDescriptor(struct array *);
int cudnnSetFilter4dDescriptor(struct array *, int type, int format, int n, int channels, int y,
                               int x);
int cudnnCreateConvolutionDescriptor(struct convolution **ret);
int cudnnDestroyConvolutionDescriptor(struct convolution *);
int cudnnSetConvolution2dDescriptor(struct convolution *, int pad_y, int pad_x, int stride_y,
                                    int stride_x, int dilation_y, int dilation_x, int mode,
                                    int type);
int cudnnSetConvolutionMathType(struct convolution *, int math);
int cudnnGetConvolution2dForwardOutputDim(const struct convolution *, const struct array *x,
                                          const struct array *kernel, int *ret_n, int *ret_channels,
                                          int *ret_y, int *ret_x);

typedef int offer_function(struct handle *, const struct array *left, const struct array *right,
                           const struct convolution *, const struct array *result, int most,
                           int *ret_count, struct offer *ret);
offer_function cudnnGetConvolutionForwardAlgorithm_v7;
offer_function cudnnGetConvolutionBackwardDataAlgorithm_v7;
offer_function cudnnGetConvolutionBackwardFilterAlgorithm_v7;

typedef int workspace_function(struct handle *, const struct array *left, const struct array *right,
                               const struct convolution *, const struct array *result,
                               int algorithm, size_t *ret);
workspace_function cudnnGetConvolutionForwardWorkspaceSize;
workspace_function cudnnGetConvolutionBackwardDataWorkspaceSize;
workspace_function cudnnGetConvolutionBackwardFilterWorkspaceSize;

typedef int run_function(struct handle *, const float *alpha, const struct array *left,
                         const float *left_data, const struct array *right, const float *right_data,
                         const struct convolution *, int algorithm, void *workspace,
                         size_t workspace_bytes, const float *beta, const struct array *result,
                         float *result_data);
run_function cudnnConvolutionForward;
run_function cudnnConvolutionBackwardData;
run_function cudnnConvolutionBackwardFilter;

static int is_broken(const char *function)
{
    const char *broken = getenv("FAKE_CUDNN_BROKEN");
    return broken && strcmp(broken, function) == 0;
}

/* How many convolutions it has done */
int fake_cudnn_runs(void)
{
    return runs;
}

/* How often it was opened */
int fake_cudnn_handles(void)
{
    return handles;
}

/* How memory of the GPU's own is opened, and closed again */
void fake_cudnn_reach(void (*open)(int gpu), void (*close)(void))
{
    open_memory = open;
    close_memory = close;
}

const char *cudnnGetErrorString(int status)
{
    switch (status) {
    case SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
        return "CUDNN_STATUS_BAD_PARAM";
    }
}

static int make(size_t bytes, void *ret_pointer)
{
    void *memory = calloc(1, bytes);
    memcpy(ret_pointer, &memory, sizeof memory);
    return memory ? SUCCESS : NOT_INITIALIZED;
}

static int unmake(void *memory)
{
    free(memory);
    return SUCCESS;
}

int cudnnCreate(struct handle **ret)
{
    handles++;
    return is_broken("create") ? NOT_INITIALIZED : make(sizeof **ret, ret);
}

int cudnnDestroy(struct handle *handle)
{
    return unmake(handle);
}

int cudnnSetStream(struct handle *handle, void *stream)
{
    handle->stream = stream;
    return SUCCESS;
}

int cudnnCreateTensorDescriptor(struct array **ret)
{
    return is_broken("tensor") ? NOT_INITIALIZED : make(sizeof **ret, ret);
}

int cudnnDestroyTensorDescriptor(struct array *array)
{
    return unmake(array);
}

int cudnnCreateFilterDescriptor(struct array **ret)
{
    return is_broken("filter") ? NOT_INITIALIZED : make(sizeof **ret, ret);
}

int cudnnDestroyFilterDescriptor(struct array *array)
{
    return unmake(array);
}

int cudnnCreateConvolutionDescriptor(struct convolution **ret)
{
    return is_broken("convolution") ? NOT_INITIALIZED : make(sizeof **ret, ret);
}

int cudnnDestroyConvolutionDescriptor(struct convolution *convolution)
{
    return unmake(convolution);
}

int cudnnSetTensor4dDescriptor(struct array *array, int format, int type, int n, int channels,
                               int y, int x)
{
    if (format != NHWC || type != FLOAT || n < 1 || channels < 1 || y < 1 || x < 1)
        return BAD_PARAM;
    *array = (struct array){n, channels, y, x};
    return SUCCESS;
}

int cudnnSetFilter4dDescriptor(struct array *array, int type, int format, int n, int channels,
                               int y, int x)
{
    return cudnnSetTensor4dDescriptor(array, format, type, n, channels, y, x);
}

int cudnnSetConvolution2dDescriptor(struct convolution *c, int pad_y, int pad_x, int stride_y,
                                    int stride_x, int dilation_y, int dilation_x, int mode,
                                    int type)
{
    if (pad_y < 0 || pad_x < 0 || stride_y < 1 || stride_x < 1 || dilation_y < 1 || dilation_x < 1)
        return BAD_PARAM;
    if (mode != CROSS_CORRELATION || type != FLOAT) return BAD_PARAM;
    *c = (struct convolution){pad_y,      pad_x,      stride_y,    stride_x,
                              dilation_y, dilation_x, DEFAULT_MATH};
    return SUCCESS;
}

int cudnnSetConvolutionMathType(struct convolution *c, int math)
{
    if (math != DEFAULT_MATH && math != TENSOR_MATH && math != FLOAT32_MATH) return BAD_PARAM;
    c->math = math;
    return SUCCESS;
}

int cudnnGetConvolution2dForwardOutputDim(const struct convolution *c, const struct array *x,
                                          const struct array *kernel, int *ret_n, int *ret_channels,
                                          int *ret_y, int *ret_x)
{
    const int room_y = x->y + 2 * c->pad_y - ((kernel->y - 1) * c->dilation_y + 1);
    const int room_x = x->x + 2 * c->pad_x - ((kernel->x - 1) * c->dilation_x + 1);
    if (room_y < 0 || room_x < 0 || x->channels != kernel->channels) return BAD_PARAM;
    *ret_n = x->n;
    *ret_channels = kernel->n;
    *ret_y = room_y / c->stride_y + 1;
    *ret_x = room_x / c->stride_x + 1;
    return SUCCESS;
}

/* --- what it offers --- */

static size_t workspace_bytes(void)
{
    const char *bytes = getenv("FAKE_CUDNN_WORKSPACE");
    return bytes ? (size_t)atoll(bytes) : 1000;
}

/* Winograd, one that failed, sums by whoever comes first, half precision, and the one to take,
 * which tensor cores do where the descriptor lets them. Who takes another is told when it runs. */
static int offer(const char *direction, const struct convolution *c, int most, int *ret_count,
                 struct offer *ret)
{
    const int math = c->math == FLOAT32_MATH ? FLOAT32_MATH : TENSOR_MATH;
    const struct offer offers[] = {
        {6, SUCCESS, 0, 0, DETERMINISTIC, math, {0}},
        {0, NOT_SUPPORTED, 0, 0, DETERMINISTIC, math, {0}},
        {2, SUCCESS, 0, 0, 0, math, {0}},
        {0, SUCCESS, 0, 0, DETERMINISTIC, CONVERTING_MATH, {0}},
        {GOOD_ALGORITHM, SUCCESS, 0, workspace_bytes(), DETERMINISTIC, math, {0}},
    };
    enum { OFFERS = sizeof offers / sizeof *offers };
    if (is_broken(direction)) return NOT_SUPPORTED;
    *ret_count = most < OFFERS ? most : OFFERS;
    memcpy(ret, offers, (size_t)*ret_count * sizeof *offers);
    return SUCCESS;
}

int cudnnGetConvolutionForwardAlgorithm_v7(struct handle *handle, const struct array *x,
                                           const struct array *kernel, const struct convolution *c,
                                           const struct array *y, int most, int *ret_count,
                                           struct offer *ret)
{
    return offer("forward offer", c, most, ret_count, ret);
}

int cudnnGetConvolutionBackwardDataAlgorithm_v7(struct handle *handle, const struct array *kernel,
                                                const struct array *dy, const struct convolution *c,
                                                const struct array *dx, int most, int *ret_count,
                                                struct offer *ret)
{
    return offer("back data offer", c, most, ret_count, ret);
}

int cudnnGetConvolutionBackwardFilterAlgorithm_v7(struct handle *handle, const struct array *x,
                                                  const struct array *dy,
                                                  const struct convolution *c,
                                                  const struct array *dkernel, int most,
                                                  int *ret_count, struct offer *ret)
{
    return offer("back kernel offer", c, most, ret_count, ret);
}

static int needed(size_t *ret)
{
    *ret = workspace_bytes() + WORKSPACE_MORE;
    return is_broken("workspace") ? BAD_PARAM : SUCCESS;
}

int cudnnGetConvolutionForwardWorkspaceSize(struct handle *handle, const struct array *x,
                                            const struct array *kernel, const struct convolution *c,
                                            const struct array *y, int algorithm, size_t *ret)
{
    return needed(ret);
}

int cudnnGetConvolutionBackwardDataWorkspaceSize(struct handle *handle, const struct array *kernel,
                                                 const struct array *dy,
                                                 const struct convolution *c,
                                                 const struct array *dx, int algorithm, size_t *ret)
{
    return needed(ret);
}

int cudnnGetConvolutionBackwardFilterWorkspaceSize(struct handle *handle, const struct array *x,
                                                   const struct array *dy,
                                                   const struct convolution *c,
                                                   const struct array *dkernel, int algorithm,
                                                   size_t *ret)
{
    return needed(ret);
}

/* --- what it computes --- */

/* One convolution: what is read and what is written of x, kernel and y */
struct job {
    const struct convolution *c;
    const struct array *x, *kernel, *y;
    const float *left, *right;
    float *result;
    double *sums; /* of the result */
    void (*add)(struct job *, size_t x, size_t kernel, size_t y);
};

/* As the multiplier sees it: tensor cores round to 10 bits of mantissa, ties away from zero. */
static double operand(const struct job *job, float number)
{
    uint32_t bits;
    if (job->c->math == FLOAT32_MATH) return number;
    memcpy(&bits, &number, sizeof bits);
    if ((bits & 0x7f800000) != 0x7f800000) bits = (bits + 0x1000) & 0xffffe000;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static void add_to_y(struct job *job, size_t x, size_t kernel, size_t y)
{
    job->sums[y] += operand(job, job->left[x]) * operand(job, job->right[kernel]);
}

static void add_to_x(struct job *job, size_t x, size_t kernel, size_t y)
{
    job->sums[x] += operand(job, job->left[kernel]) * operand(job, job->right[y]);
}

static void add_to_kernel(struct job *job, size_t x, size_t kernel, size_t y)
{
    job->sums[kernel] += operand(job, job->left[x]) * operand(job, job->right[y]);
}

static size_t count_of(const struct array *a)
{
    return (size_t)a->n * (size_t)a->y * (size_t)a->x * (size_t)a->channels;
}

static size_t place(const struct array *a, int n, int y, int x)
{
    return (((size_t)n * (size_t)a->y + (size_t)y) * (size_t)a->x + (size_t)x) *
           (size_t)a->channels;
}

/* All products of one output pixel and one cell of the kernel that meet in an input pixel */
static void meet(struct job *job, const int *at, int cell_y, int cell_x)
{
    const struct convolution *c = job->c;
    const int in_y = at[1] * c->stride_y - c->pad_y + cell_y * c->dilation_y;
    const int in_x = at[2] * c->stride_x - c->pad_x + cell_x * c->dilation_x;
    if (in_y < 0 || in_y >= job->x->y || in_x < 0 || in_x >= job->x->x) return;
    for (int out = 0; out < job->kernel->n; out++)
        for (int in = 0; in < job->kernel->channels; in++)
            job->add(job, place(job->x, at[0], in_y, in_x) + (size_t)in,
                     place(job->kernel, out, cell_y, cell_x) + (size_t)in,
                     place(job->y, at[0], at[1], at[2]) + (size_t)out);
}

static void sum_up(struct job *job)
{
    int at[3]; /* image, y, x of the output */
    for (at[0] = 0; at[0] < job->y->n; at[0]++)
        for (at[1] = 0; at[1] < job->y->y; at[1]++)
            for (at[2] = 0; at[2] < job->y->x; at[2]++)
                for (int y = 0; y < job->kernel->y; y++)
                    for (int x = 0; x < job->kernel->x; x++) meet(job, at, y, x);
}

static int is_consistent(const struct job *job)
{
    int n, channels, y, x;
    return cudnnGetConvolution2dForwardOutputDim(job->c, job->x, job->kernel, &n, &channels, &y,
                                                 &x) == SUCCESS &&
           n == job->y->n && channels == job->y->channels && y == job->y->y && x == job->y->x;
}

static int is_aligned(const struct job *job)
{
    return (uintptr_t)job->left % ALIGNMENT == 0 && (uintptr_t)job->right % ALIGNMENT == 0 &&
           (uintptr_t)job->result % ALIGNMENT == 0;
}

/* What a call is given besides its operands; result: of which there are so many */
struct call {
    struct handle *handle;
    const float *alpha, *beta;
    int algorithm;
    void *workspace;
    size_t workspace_bytes, results;
};

/* What is multiplied by beta 0 is not read, and the workspace is written all over. */
static int run(struct job *job, const char *name, const struct call *call)
{
    const size_t wanted = workspace_bytes() + WORKSPACE_MORE;
    if (is_broken("run") || is_broken(name)) return EXECUTION_FAILED;
    if (!call->handle->stream) return NOT_INITIALIZED;
    if (!is_consistent(job) || call->algorithm != GOOD_ALGORITHM || *call->alpha != 1)
        return BAD_PARAM;
    if (call->workspace_bytes < wanted || !call->workspace) return BAD_PARAM;
    if (!is_aligned(job)) return MISALIGNED;
    job->sums = calloc(call->results, sizeof *job->sums);
    if (!job->sums) return EXECUTION_FAILED;
    if (open_memory) open_memory(0);
    memset(call->workspace, 0xff, call->workspace_bytes);
    sum_up(job);
    for (size_t i = 0; i < call->results; i++) {
        const double kept = *call->beta == 0 ? 0 : (double)*call->beta * job->result[i];
        job->result[i] = (float)(job->sums[i] + kept);
    }
    if (close_memory) close_memory();
    free(job->sums);
    runs++;
    return SUCCESS;
}

int cudnnConvolutionForward(struct handle *handle, const float *alpha, const struct array *x,
                            const float *x_data, const struct array *kernel,
                            const float *kernel_data, const struct convolution *c, int algorithm,
                            void *workspace, size_t bytes, const float *beta, const struct array *y,
                            float *y_data)
{
    struct job job = {c, x, kernel, y, x_data, kernel_data, y_data, NULL, add_to_y};
    return run(&job, "forward",
               &(struct call){handle, alpha, beta, algorithm, workspace, bytes, count_of(y)});
}

int cudnnConvolutionBackwardData(struct handle *handle, const float *alpha,
                                 const struct array *kernel, const float *kernel_data,
                                 const struct array *dy, const float *dy_data,
                                 const struct convolution *c, int algorithm, void *workspace,
                                 size_t bytes, const float *beta, const struct array *dx,
                                 float *dx_data)
{
    struct job job = {c, dx, kernel, dy, kernel_data, dy_data, dx_data, NULL, add_to_x};
    return run(&job, "back data",
               &(struct call){handle, alpha, beta, algorithm, workspace, bytes, count_of(dx)});
}

int cudnnConvolutionBackwardFilter(struct handle *handle, const float *alpha, const struct array *x,
                                   const float *x_data, const struct array *dy,
                                   const float *dy_data, const struct convolution *c, int algorithm,
                                   void *workspace, size_t bytes, const float *beta,
                                   const struct array *dkernel, float *dkernel_data)
{
    struct job job = {c, x, dkernel, dy, x_data, dy_data, dkernel_data, NULL, add_to_kernel};
    return run(&job, "back kernel",
               &(struct call){handle, alpha, beta, algorithm, workspace, bytes, count_of(dkernel)});
}
