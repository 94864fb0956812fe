/* device.h - devices: which ones exist, and opening one. */
#ifndef KERNELS_DEVICE_H
#define KERNELS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct kernels;

struct device {
    const struct kernels *kernels;
    int threads; /* CPU threads that kernels may use */
    void *state;
    bool is_separate; /* its memory is not the host's: copies go by upload() and download() */
    int index;        /* of a GPU, in the driver's numbering */
    /* Floats that their producer has found finite, from a result that it waited for anyway, so that
     * an update by them need not wait for a check of its own. NULL: none */
    struct finite_floats {
        const float *at;
        int64_t count;
    } finite;
};

/* Kernel variants of the CPU, best first: "avx512", "avx2", "sse2". isa NULL: DTRAIN_CPU_KERNELS of
 * the environment, else the best one that this machine supports. ERR_INPUT: unknown variant;
 * ERR_DEVICE: this machine lacks the instructions. Sets denormals-are-zero and flush-to-zero for
 * the calling thread, and so for threads that it starts. */
err device_open_cpu(int threads, const char *isa, struct device *ret);
void device_close(struct device *);

/* A GPU as the driver describes it */
struct gpu {
    char name[96];
    char bus[24];     /* "0000:3b:00.0": its place on the PCI bus, as nvidia-smi has it */
    int major, minor; /* compute capability */
    size_t bytes, free_bytes;
    char trouble[128]; /* why it cannot be used; "": no known reason */
};
enum { GPUS_MAX = 64 };
struct gpus {
    int count;
    char driver[64];     /* "580.65.06 for CUDA 13.0" */
    char libraries[560]; /* "CUDA 13.0, cuBLAS 13.1.0 (/usr/lib/...), cuDNN 9.19.0 (...)" */
    struct gpu at[GPUS_MAX];
};

extern const bool gpus_are_built_in; /* false: all functions below fail with ERR_DEVICE */

/* The GPUs that CUDA_VISIBLE_DEVICES allows, at least one. ERR_DEVICE says why there is none:
 * "libcuda.so.1 not found", "driver too old: ...", "built without CUDA". ERR_LOST: there is a
 * suitable driver, but it cannot access its GPUs. */
err gpu_list(struct gpus *ret);
/* How many they are; the same errors. Asks only the driver and allocates nothing on any GPU;
 * gpu_list() does, to find the free memory. */
err gpu_count(int *ret);

/* Precision to which products and convolutions may round their operands. Sums, and everything else,
 * are float32. */
enum precision {
    PRECISION_FLOAT32,
    PRECISION_TF32, /* 10 bits of mantissa */
    PRECISION_BF16, /* 7 bits */
};

struct gpu_options {
    int index; /* of gpu_list() */
    enum precision precision;
    /* Every call waits until it is done, and the host can access the device's memory: slow. An
     * error then names the kernel that failed, and tests can read what it wrote. */
    bool is_watched;
    /* Uses our own kernels only, even if cuBLAS and cuDNN are installed. */
    bool is_bare;
};
/* ERR_DEVICE as for gpu_list(); ERR_INPUT: no such index. */
err device_open_gpu(const struct gpu_options *, struct device *ret);

/* Sets environment variables that OpenBLAS (its kernels on processors that it does not know) and
 * OpenMP (how threads wait) read when they are loaded. If one must change, executes the program
 * again with the same arguments; otherwise returns. Call first thing in main(). Variables that the
 * user has set stay. */
void cpu_environment_prepare(char **argv);

/* "OpenBLAS 0.3.21 SkylakeX, oneDNN 2.6.3 avx512, kernels avx512" */
const char *cpu_description(void);

#endif
