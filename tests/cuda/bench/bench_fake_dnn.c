/* bench_fake_dnn.c - a library in the place of cuDNN, as far as the bench calls it: it computes
 * nothing, and refuses whatever a bench that compares like with like would not ask for.
 *
 * Its search has three answers: one that failed, the default mathematics, which may be TF32, and
 * what was asked for. Forward is slow in NCHW, the other directions are in NHWC. With
 * FAKE_CUDNN_BROKEN in the environment it can be opened and not used.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, BAD_PARAMETER = 2000, NOT_SUPPORTED = 3000, VERSION = 91234 };
enum { NCHW = 0, NHWC = 1, CROSS_CORRELATION = 1 };
enum { MATH_DEFAULT = 0, MATH_TENSOR_CORES = 1, MATH_FLOAT32 = 3 };
enum { ALGORITHM_FAILED = 1, ALGORITHM_DEFAULT, ALGORITHM_ASKED, ANSWERS = ALGORITHM_ASKED };
enum { WORKSPACE_BYTES = 4096, SLOW_US = 300 };

struct shape {
    int layout;
    size_t count;
};

struct convolution {
    int math;
};

struct performance {
    int algorithm, status;
    float ms;
    size_t bytes;
    int determinism, math, reserved[3];
};

typedef int find_function(void *handle, struct shape *a_shape, const float *a,
                          struct shape *b_shape, const float *b, struct convolution *,
                          struct shape *c_shape, float *c, int wanted, int *ret_count,
                          struct performance *ret, void *workspace, size_t bytes);
typedef int run_function(void *handle, const float *alpha, struct shape *a_shape, const float *a,
                         struct shape *b_shape, const float *b, struct convolution *, int algorithm,
                         void *workspace, size_t bytes, const float *beta, struct shape *c_shape,
                         float *c);

int cudnnCreate(void **ret);
int cudnnDestroy(void *);
int cudnnSetStream(void *handle, void *stream);
size_t cudnnGetVersion(void);
int cudnnCreateTensorDescriptor(struct shape **ret);
int cudnnCreateFilterDescriptor(struct shape **ret);
int cudnnCreateConvolutionDescriptor(struct convolution **ret);
int cudnnDestroyTensorDescriptor(struct shape *);
int cudnnDestroyFilterDescriptor(struct shape *);
int cudnnDestroyConvolutionDescriptor(struct convolution *);
int cudnnSetTensor4dDescriptor(struct shape *, int layout, int type, int n, int c, int y, int x);
int cudnnSetFilter4dDescriptor(struct shape *, int type, int layout, int out, int in, int y, int x);
int cudnnSetConvolution2dDescriptor(struct convolution *, int pad_y, int pad_x, int stride_y,
                                    int stride_x, int dilation_y, int dilation_x, int mode,
                                    int type);
int cudnnSetConvolutionMathType(struct convolution *, int math);

static int give(size_t bytes, void *ret)
{
    void *memory = calloc(1, bytes);
    memcpy(ret, &memory, sizeof memory);
    return memory ? SUCCESS : NOT_SUPPORTED;
}

static int take(void *memory)
{
    free(memory);
    return SUCCESS;
}

int cudnnCreate(void **ret)
{
    return getenv("FAKE_CUDNN_BROKEN") ? NOT_SUPPORTED : give(1, ret);
}

int cudnnDestroy(void *handle)
{
    return take(handle);
}

int cudnnSetStream(void *handle, void *stream)
{
    return stream ? SUCCESS : BAD_PARAMETER;
}

size_t cudnnGetVersion(void)
{
    return VERSION;
}

int cudnnCreateTensorDescriptor(struct shape **ret)
{
    return give(sizeof **ret, ret);
}

int cudnnCreateFilterDescriptor(struct shape **ret)
{
    return give(sizeof **ret, ret);
}

int cudnnCreateConvolutionDescriptor(struct convolution **ret)
{
    return give(sizeof **ret, ret);
}

int cudnnDestroyTensorDescriptor(struct shape *shape)
{
    return take(shape);
}

int cudnnDestroyFilterDescriptor(struct shape *shape)
{
    return take(shape);
}

int cudnnDestroyConvolutionDescriptor(struct convolution *convolution)
{
    return take(convolution);
}

static int set_shape(struct shape *shape, int layout, int type, const int extents[4])
{
    if ((layout != NCHW && layout != NHWC) || type != 0) return BAD_PARAMETER;
    *shape = (struct shape){layout, 1};
    for (int i = 0; i < 4; i++) {
        if (extents[i] < 1) return BAD_PARAMETER;
        shape->count *= (size_t)extents[i];
    }
    return SUCCESS;
}

int cudnnSetTensor4dDescriptor(struct shape *shape, int layout, int type, int n, int c, int y,
                               int x)
{
    return set_shape(shape, layout, type, (int[]){n, c, y, x});
}

int cudnnSetFilter4dDescriptor(struct shape *shape, int type, int layout, int out, int in, int y,
                               int x)
{
    return set_shape(shape, layout, type, (int[]){out, in, y, x});
}

/* Mathematics are the default again, as with the real one. */
int cudnnSetConvolution2dDescriptor(struct convolution *convolution, int pad_y, int pad_x,
                                    int stride_y, int stride_x, int dilation_y, int dilation_x,
                                    int mode, int type)
{
    convolution->math = MATH_DEFAULT;
    const bool is_plain = stride_y == 1 && stride_x == 1 && dilation_y == 1 && dilation_x == 1;
    return is_plain && pad_y > 0 && pad_x == pad_y && mode == CROSS_CORRELATION && type == 0
               ? SUCCESS
               : BAD_PARAMETER;
}

int cudnnSetConvolutionMathType(struct convolution *convolution, int math)
{
    convolution->math = math;
    return math == MATH_DEFAULT || math == MATH_TENSOR_CORES || math == MATH_FLOAT32
               ? SUCCESS
               : BAD_PARAMETER;
}

static int find(void *handle, struct shape *a_shape, const float *a, struct shape *b_shape,
                const float *b, struct convolution *convolution, struct shape *c_shape, float *c,
                int wanted, int *ret_count, struct performance *ret, void *workspace, size_t bytes)
{
    if (wanted < ANSWERS || bytes < WORKSPACE_BYTES || !workspace || c == a || c == b)
        return BAD_PARAMETER;
    ret[0] = (struct performance){
        .algorithm = ALGORITHM_FAILED, .status = NOT_SUPPORTED, .math = convolution->math};
    ret[1] = (struct performance){
        .algorithm = ALGORITHM_DEFAULT, .ms = 0.1f, .bytes = WORKSPACE_BYTES, .math = MATH_DEFAULT};
    ret[2] = (struct performance){.algorithm = ALGORITHM_ASKED,
                                  .ms = 0.2f,
                                  .bytes = WORKSPACE_BYTES,
                                  .math = convolution->math};
    *ret_count = ANSWERS;
    return SUCCESS;
}

/* Runs what the search has given, with the mathematics and the memory that it named. */
static int run(const struct convolution *convolution, int algorithm, size_t bytes,
               const struct shape *to, float *c)
{
    const bool is_float32 = convolution->math == MATH_FLOAT32;
    if (algorithm != (is_float32 ? ALGORITHM_ASKED : ALGORITHM_DEFAULT)) return BAD_PARAMETER;
    if (!is_float32 && convolution->math != MATH_DEFAULT) return BAD_PARAMETER;
    if (bytes != WORKSPACE_BYTES) return BAD_PARAMETER;
    memset(c, 0, to->count * sizeof *c);
    return SUCCESS;
}

static int run_forward(void *handle, const float *alpha, struct shape *a_shape, const float *a,
                       struct shape *b_shape, const float *b, struct convolution *convolution,
                       int algorithm, void *workspace, size_t bytes, const float *beta,
                       struct shape *c_shape, float *c)
{
    if (c_shape->layout == NCHW) usleep(SLOW_US);
    return run(convolution, algorithm, bytes, c_shape, c);
}

static int run_back(void *handle, const float *alpha, struct shape *a_shape, const float *a,
                    struct shape *b_shape, const float *b, struct convolution *convolution,
                    int algorithm, void *workspace, size_t bytes, const float *beta,
                    struct shape *c_shape, float *c)
{
    if (c_shape->layout == NHWC) usleep(SLOW_US);
    return run(convolution, algorithm, bytes, c_shape, c);
}

find_function cudnnFindConvolutionForwardAlgorithmEx __attribute__((alias("find")));
find_function cudnnFindConvolutionBackwardDataAlgorithmEx __attribute__((alias("find")));
find_function cudnnFindConvolutionBackwardFilterAlgorithmEx __attribute__((alias("find")));
run_function cudnnConvolutionForward __attribute__((alias("run_forward")));
run_function cudnnConvolutionBackwardData __attribute__((alias("run_back")));
run_function cudnnConvolutionBackwardFilter __attribute__((alias("run_back")));
