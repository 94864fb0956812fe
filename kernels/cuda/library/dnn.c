/* dnn.c - cuDNN, opened and called with constants of its headers, which the build does not need.
 *
 * Uses its legacy functions, which version 9 has deprecated but still has: we need single
 * convolutions, for which the newer graph API would need many more calls.
 */
#include <stddef.h>
#include <stdlib.h>

#include "kernels/cuda/library/dnn.h"

/* cuDNN loads these on demand, and ends the program if one is missing. */
static const char *const parts[] = {"cudnn_graph",
                                    "cudnn_ops",
                                    "cudnn_cnn",
                                    "cudnn_heuristic",
                                    "cudnn_engines_precompiled",
                                    "cudnn_engines_runtime_compiled",
                                    NULL};

/* Compilers for some of its kernels, from CUDA's toolkit: the second needs the first. */
static const char *const compilers[] = {"nvrtc-builtins", "nvrtc", NULL};

/* Older ones are split differently, and support no GPU after Hopper. */
static const int majors[] = {9, 0};

static const struct library_kind kind = {"cudnn", "cudnnGetProperty", parts, majors, false};

/* Its functions, and their members of struct cuda_dnn */
#define GOES(member) offsetof(struct cuda_dnn, member)
static const struct function {
    const char *name;
    size_t place;
} functions[] = {
    {"cudnnGetErrorString", GOES(status_text)},
    {"cudnnCreate", GOES(create)},
    {"cudnnDestroy", GOES(destroy)},
    {"cudnnSetStream", GOES(set_stream)},
    {"cudnnCreateTensorDescriptor", GOES(create_tensor)},
    {"cudnnDestroyTensorDescriptor", GOES(destroy_tensor)},
    {"cudnnSetTensor4dDescriptor", GOES(set_tensor)},
    {"cudnnCreateFilterDescriptor", GOES(create_kernel)},
    {"cudnnDestroyFilterDescriptor", GOES(destroy_kernel)},
    {"cudnnSetFilter4dDescriptor", GOES(set_kernel)},
    {"cudnnCreateConvolutionDescriptor", GOES(create_convolution)},
    {"cudnnDestroyConvolutionDescriptor", GOES(destroy_convolution)},
    {"cudnnSetConvolution2dDescriptor", GOES(set_convolution)},
    {"cudnnSetConvolutionMathType", GOES(set_math)},
    {"cudnnGetConvolution2dForwardOutputDim", GOES(result_extents)},
    {"cudnnGetConvolutionForwardAlgorithm_v7", GOES(calls[DNN_FORWARD].offer)},
    {"cudnnGetConvolutionForwardWorkspaceSize", GOES(calls[DNN_FORWARD].workspace)},
    {"cudnnConvolutionForward", GOES(calls[DNN_FORWARD].run)},
    {"cudnnGetConvolutionBackwardDataAlgorithm_v7", GOES(calls[DNN_BACK_DATA].offer)},
    {"cudnnGetConvolutionBackwardDataWorkspaceSize", GOES(calls[DNN_BACK_DATA].workspace)},
    {"cudnnConvolutionBackwardData", GOES(calls[DNN_BACK_DATA].run)},
    {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", GOES(calls[DNN_BACK_KERNEL].offer)},
    {"cudnnGetConvolutionBackwardFilterWorkspaceSize", GOES(calls[DNN_BACK_KERNEL].workspace)},
    {"cudnnConvolutionBackwardFilter", GOES(calls[DNN_BACK_KERNEL].run)},
};
#undef GOES
enum { FUNCTIONS = sizeof functions / sizeof *functions };

err cuda_dnn_find(struct cuda_library *ret)
{
    return cuda_library_find(&kind, ret);
}

/* The error names the missing function, because a future cuDNN may lack some. */
static err find_functions(struct cuda_dnn *dnn)
{
    for (int i = 0; i < FUNCTIONS; i++)
        if (!cuda_library_function(&dnn->library, functions[i].name,
                                   (char *)dnn + functions[i].place))
            return fail(ERR_DEVICE, "%s lacks %s", dnn->library.path, functions[i].name);
    return OK;
}

static err demand(const struct cuda_dnn *dnn, int status, const char *call)
{
    return status == DNN_SUCCESS ? OK : fail(ERR_DEVICE, "%s: %s", call, dnn->status_text(status));
}

/* The handle allocates memory on the calling thread's current GPU. */
static err set_up(struct cuda_dnn *dnn, cudaStream_t stream)
{
    TRY(cuda_dnn_find(&dnn->library));
    TRY(find_functions(dnn));
    for (int i = 0; compilers[i]; i++) cuda_library_open_beside(&dnn->library, compilers[i]);
    TRY(demand(dnn, dnn->create(&dnn->handle), "cudnnCreate"));
    return demand(dnn, dnn->set_stream(dnn->handle, stream), "cudnnSetStream");
}

/* With bf16 its results would be bf16, too, and where it may convert float32 it uses half
 * precision, which overflows. */
err cuda_dnn_open(struct device *d, enum precision precision)
{
    struct cuda_state *state = d->state;
    if (precision == PRECISION_BF16)
        return fail(ERR_DEVICE, "cuDNN does not sum products of bf16 in float32");
    struct cuda_dnn *dnn = calloc(1, sizeof *dnn);
    if (!dnn) return fail(ERR_MEMORY, "no memory for cuDNN");
    state->dnn = dnn;
    dnn->is_exact = precision == PRECISION_FLOAT32;
    return OK;
}

static void ask(struct device *d, struct cuda_dnn *dnn)
{
    const struct cuda_state *state = d->state;
    char version[LIBRARY_VERSION_MAX];
    cuda_select(d);
    if (set_up(dnn, state->stream)) {
        dnn_note(dnn, "own convolutions: %s", error_text());
        if (dnn->handle) (void)dnn->destroy(dnn->handle);
        dnn->handle = NULL;
        return;
    }
    cuda_library_version(&dnn->library, "cuDNN", version);
    dnn_note(dnn, "convolutions by %s (%s)", version, dnn->library.path);
}

struct cuda_dnn *cuda_dnn_use(struct device *d)
{
    const struct cuda_state *state = d->state;
    struct cuda_dnn *dnn = state->dnn;
    if (!dnn) return NULL;
    if (!dnn->is_asked) ask(d, dnn);
    dnn->is_asked = true;
    return dnn->handle ? dnn : NULL;
}

void cuda_dnn_close(struct cuda_state *state)
{
    struct cuda_dnn *dnn = state->dnn;
    if (dnn && dnn->handle) (void)dnn->destroy(dnn->handle);
    free(dnn);
    state->dnn = NULL;
}
