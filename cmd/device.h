/* device.h - which device a command computes on: --device, else the spec's "device". */
#ifndef CMD_DEVICE_H
#define CMD_DEVICE_H

#include "core/train/session/device_choice.h"
#include "core/train/spec/spec.h"
#include "kernels/kernels.h"

struct device_request {
    const char *flag;        /* --device; NULL: as the spec says */
    const char *tower;       /* instead of the spec's "device"; NULL: it is no tower's own */
    const struct spec *spec; /* NULL: there is none */
    int local_index;         /* of this task among those of its host that compute */
    int threads;             /* of a CPU */
    const char *cpu_kernels; /* NULL: the best */
};

/* What came of it, for a person: "GPU 0 (cuda NVIDIA H100 80GB HBM3, cuBLAS 13.1.0; 78.4 GB free)",
 * or why it is no GPU where none was excluded ("no GPU: libcuda.so.1 not found"), or "". */
enum { DEVICE_TEXT_MAX = 512 };
struct device_answer {
    char text[DEVICE_TEXT_MAX];
    bool is_gpu, is_broken; /* broken: there is a GPU, but it does not work */
    char precision[160];    /* of a CPU: what it makes of the spec's "precision"; "": of float32 */
};

/* Of --device. ERR_INPUT: no such word. */
err device_flag_parse(const char *flag, struct device_choice *ret);

/* ERR_DEVICE "no GPU: ...": one must be there and none is. ERR_INPUT: no such word, no such GPU. */
err device_request_open(const struct device_request *, struct device *ret,
                        struct device_answer *ret_answer);

/* The same errors, and nothing is opened: for who starts others. */
err device_request_check(const struct device_request *);

#endif
