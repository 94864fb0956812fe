/* device.h - which device a command computes on: --device, else the spec's "device". */
#ifndef CMD_DEVICE_H
#define CMD_DEVICE_H

#include "core/train/session/device_choice.h"
#include "core/train/spec/spec.h"
#include "kernels/kernels.h"

struct device_request {
    const char *flag;        /* --device; NULL: as the spec says */
    const char *tower;       /* the tower's entry in the spec's list; NULL: not for a tower */
    const struct spec *spec; /* NULL: there is none */
    int local_index;         /* of this task among those of its host that compute */
    int threads;             /* of a CPU */
    const char *cpu_kernels; /* NULL: the best */
};

/* text: the result, "GPU 0 (cuda NVIDIA H100 80GB HBM3, cuBLAS 13.1.0; 78.4 GB free)", or why it is
 * not a GPU unless the CPU was chosen ("no GPU: libcuda.so.1 not found"), or "". */
enum { DEVICE_TEXT_MAX = 512 };
struct device_answer {
    char text[DEVICE_TEXT_MAX];
    bool is_gpu, is_broken; /* broken: there is a GPU, but it does not work */
    char precision[160];    /* CPU: how it treats the spec's "precision"; "": float32 */
};

/* Parses --device. ERR_INPUT: unknown value. */
err device_flag_parse(const char *flag, struct device_choice *ret);

/* ERR_DEVICE "no GPU: ...": one is required, none was found. ERR_INPUT: unknown value or GPU. */
err device_request_open(const struct device_request *, struct device *ret,
                        struct device_answer *ret_answer);

/* The same errors without opening the device, for launchers. */
err device_request_check(const struct device_request *);

#endif
