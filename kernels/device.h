/* device.h - what a device is, which there are, and opening one. */
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
    bool is_separate; /* its memory is not the host's: only upload() and download() cross over */
    int index;        /* of a GPU, as the driver counts them */
    /* Some that are known to be finite, so that who updates by them need not wait to hear it: who
     * has computed them hears it with the last thing that it waits for. NULL: none are */
    struct finite_floats {
        const float *at;
        int64_t count;
    } finite;
};

/* Kernel variants of the CPU, best first: "avx512", "avx2", "sse2". isa NULL: what
 * DTRAIN_CPU_KERNELS in the environment says, else the best that this machine has. ERR_INPUT: there
 * is no such word; ERR_DEVICE: this machine lacks the instructions. From now on the calling thread,
 * and those that it starts, take denormal numbers for zero. */
err device_open_cpu(int threads, const char *isa, struct device *ret);
void device_close(struct device *);

/* A GPU as the driver describes it */
struct gpu {
    char name[96];
    char bus[24];     /* "0000:3b:00.0": its place on the PCI bus, as nvidia-smi has it */
    int major, minor; /* compute capability */
    size_t bytes, free_bytes;
    char trouble[128]; /* why it cannot be used; "": nothing is known against it */
};
enum { GPUS_MAX = 64 };
struct gpus {
    int count;
    char driver[64];     /* "580.65.06 for CUDA 13.0" */
    char libraries[560]; /* "CUDA 13.0, cuBLAS 13.1.0 (/usr/lib/...), cuDNN 9.19.0 (...)" */
    struct gpu at[GPUS_MAX];
};

extern const bool gpus_are_built_in; /* false: all below says ERR_DEVICE */

/* Those that CUDA_VISIBLE_DEVICES leaves, at least one. ERR_DEVICE: "libcuda.so.1 not found",
 * "driver too old: ...", "built without CUDA": why there is none. ERR_LOST: there is a driver that
 * fits, and it cannot get at its GPUs. */
err gpu_list(struct gpus *ret);
/* The same errors, and how many: asks the driver alone, and takes nothing on any GPU, as gpu_list()
 * does to hear what is free. */
err gpu_count(int *ret);

/* What products and convolutions may make of the numbers that they multiply. Their sums, and all
 * else, are float32. */
enum precision {
    PRECISION_FLOAT32,
    PRECISION_TF32, /* 10 bits of mantissa */
    PRECISION_BF16, /* 7, which is less than TF32 keeps */
};

struct gpu_options {
    int index; /* in gpu_list */
    enum precision precision;
    /* Every call waits for its end, and the host reaches the device's memory: slow. An error names
     * the very kernel, and tests look at what it wrote. */
    bool is_watched;
    /* No library of NVIDIA's is used, even where it is there: kernels of our own do all. */
    bool is_bare;
};
/* ERR_DEVICE says why there is none; ERR_INPUT: no such index. */
err device_open_gpu(const struct gpu_options *, struct device *ret);

/* Environment that the arithmetic libraries read when they are loaded (OpenBLAS' kernel choice on
 * processors that it does not know, OpenMP's waiting). Where something must change, sets it and
 * starts the program anew with the same arguments; returns otherwise. Call first thing in main().
 * What the user has set stays. */
void cpu_environment_prepare(char **argv);

/* "OpenBLAS 0.3.21 SkylakeX, oneDNN 2.6.3 avx512, kernels avx512" */
const char *cpu_description(void);

#endif
