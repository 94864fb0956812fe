/* dnn.h - the part of cuDNN that is used, with constants and prototypes of its headers, which need
 * not be installed. Its handles and descriptors are plain pointers here, its enums ints.
 *
 * A convolution has three directions; cuDNN's functions for them have the same signature with
 * different operands:
 *
 *                  left      right     result
 *     forward      x         kernel    y
 *     back data    kernel    dy        dx
 *     back kernel  x         dy        dkernel
 *
 * Images are [batch, y, x, channel] as everywhere, but kernels [out, ky, kx, in]: the transpose of
 * ours as a matrix whose columns are the output channels.
 */
#ifndef KERNELS_CUDA_LIBRARY_DNN_H
#define KERNELS_CUDA_LIBRARY_DNN_H

#include "kernels/cuda/cuda.h"

/* Constants of cuDNN's headers, stable within a major version */
enum {
    DNN_SUCCESS = 0,           /* CUDNN_STATUS_SUCCESS */
    DNN_FLOAT = 0,             /* CUDNN_DATA_FLOAT */
    DNN_NHWC = 1,              /* CUDNN_TENSOR_NHWC */
    DNN_CROSS_CORRELATION = 1, /* CUDNN_CROSS_CORRELATION: kernels are not mirrored */
    DNN_DETERMINISTIC = 1,     /* CUDNN_DETERMINISTIC */
    DNN_DEFAULT_MATH = 0,      /* CUDNN_DEFAULT_MATH: TF32 where the GPU has it */
    DNN_TENSOR_MATH = 1,       /* CUDNN_TENSOR_OP_MATH: the same, for float32 */
    DNN_FLOAT32_MATH = 3,      /* CUDNN_FMA_MATH */
};

enum dnn_direction { DNN_FORWARD, DNN_BACK_DATA, DNN_BACK_KERNEL, DNN_DIRECTIONS };

/* cudnnConvolutionFwdAlgoPerf_t and its two backward variants: an algorithm that cuDNN offers */
struct dnn_offer {
    int algorithm, status;
    float time_ms; /* not measured: offers are sorted by expected speed */
    size_t workspace_bytes;
    int determinism, math;
    int reserved[3];
};

/* cuDNN's functions for one direction; left, right, result: descriptors of the operands in the
 * table above */
struct dnn_calls {
    /* at most `most` offers, by heuristics, without running anything */
    int (*offer)(void *handle, const void *left, const void *right, const void *convolution,
                 const void *result, int most, int *ret_count, struct dnn_offer *ret);
    int (*workspace)(void *handle, const void *left, const void *right, const void *convolution,
                     const void *result, int algorithm, size_t *ret_bytes);
    /* result = alpha * convolution + beta * result */
    int (*run)(void *handle, const float *alpha, const void *left, const float *left_data,
               const void *right, const float *right_data, const void *convolution, int algorithm,
               void *workspace, size_t workspace_bytes, const float *beta, const void *result,
               float *result_data);
};

enum { DNN_NOTES_MAX = 1024 };

/* cuDNN with a handle on the device's stream */
struct cuda_dnn {
    struct cuda_library library;
    void *handle;                                   /* NULL: not opened */
    bool is_asked;                                  /* the first use opened it, or failed to */
    char notes[DNN_NOTES_MAX], told[DNN_NOTES_MAX]; /* messages for the user: new ones, and the last
                                                       one returned */
    bool is_exact; /* multiplies in float32 only, otherwise in TF32 */
    const char *(*status_text)(int status);
    int (*create)(void **ret), (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t);
    int (*create_tensor)(void **ret), (*destroy_tensor)(void *);
    int (*set_tensor)(void *, int format, int type, int batch, int channels, int y, int x);
    int (*create_kernel)(void **ret), (*destroy_kernel)(void *);
    int (*set_kernel)(void *, int type, int format, int out, int in, int y, int x);
    int (*create_convolution)(void **ret), (*destroy_convolution)(void *);
    int (*set_convolution)(void *, int pad_y, int pad_x, int stride_y, int stride_x, int dilation_y,
                           int dilation_x, int mode, int compute_type);
    int (*set_math)(void *convolution, int math);
    int (*result_extents)(const void *convolution, const void *x, const void *kernel,
                          int *ret_batch, int *ret_channels, int *ret_y, int *ret_x);
    struct dnn_calls calls[DNN_DIRECTIONS];
};

/* Adds a line to the message of device_note(). */
void dnn_note(struct cuda_dnn *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The directions of one convolution that cuDNN computes, and how. All zero: none. */
struct dnn_convolution {
    void *x, *kernel, *y; /* descriptors */
    struct dnn_choice {
        void *convolution; /* descriptor; NULL: not by cuDNN */
        int algorithm;
        size_t workspace_bytes;
    } choices[DNN_DIRECTIONS];
    int64_t kernel_rows, out_channels; /* of our kernel as a matrix */
    int64_t x_floats, y_floats;
    float *kernel_data; /* transposed, in device memory, followed by the workspace */
};

/* Asks cuDNN for algorithms for this shape, and chooses one per direction; directions that it
 * cannot compute, or not as required, are left out. Does not allocate device memory. */
void dnn_convolution_choose(struct device *, const struct conv2d *, struct dnn_convolution *ret);

/* Bytes that dnn_convolution_open() allocates; 0: cuDNN computes nothing. */
size_t dnn_convolution_bytes(const struct dnn_convolution *);
/* Runs each chosen direction once, as far as memory allows: one that fails is no longer computed by
 * cuDNN, which is noted. */
err dnn_convolution_open(struct device *, struct dnn_convolution *);
void dnn_convolution_close(struct device *, struct dnn_convolution *);

/* Only for chosen directions. They only queue work. */
void dnn_forward(struct device *, const struct dnn_convolution *, float *y, const float *x,
                 const float *kernel);
void dnn_back_data(struct device *, const struct dnn_convolution *, float *dx, const float *dy,
                   const float *kernel, bool add);
void dnn_back_kernel(struct device *, const struct dnn_convolution *, float *dkernel,
                     const float *dy, const float *x, bool add);

#endif
