/* cpu.h - the parts of the CPU device, as they see each other. */
#ifndef KERNELS_CPU_CPU_H
#define KERNELS_CPU_CPU_H

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include "kernels/kernels.h"

enum { NARROW_PACKED_MAX = 65536 };

struct bf16; /* bf16.h */

struct cpu_state {
    struct kernels table; /* what device->kernels points to */
    float *packed;        /* [NARROW_PACKED_MAX]: scratch memory of narrow products */
    struct bf16 *bf16;    /* where products and convolutions are in bf16; NULL: in float32 */
    dnnl_engine_t engine; /* made by the first of oneDNN's primitives; NULL before */
    dnnl_stream_t stream;
    dnnl_status_t failure; /* of the first call that failed, until synchronize() tells it */
    const char *failed_call;
};

struct instruction_set {
    const char *name, *table_name;
    bool (*is_supported)(void);
    const struct kernels *kernels;
};

/* Best first; ends with name NULL. From x86.c or generic.c, whichever is built. */
extern const struct instruction_set instruction_sets[];

/* The OpenBLAS kernels that should run here where it chose current; NULL where that is right. */
const char *openblas_core_wanted(const char *current);

/* Calls body(arguments, begin, end) for parts of [0, n) that together are the whole, on up to
 * device->threads threads and in parts of about grain or more. A body must give the same results
 * wherever the cuts are. */
typedef spread_body range_body;
void spread(const struct device *, int64_t n, int64_t grain, range_body *, const void *arguments);

/* Stretches of floats shorter than two of these stay on one thread: waking another costs more. */
enum { SPREAD_GRAIN = 32768 };

/* Threads of the library calls that follow on this thread. */
void library_threads(const struct device *);

/* Uninitialised, aligned to 64 bytes, huge pages where they help; NULL if there is none. */
void *cpu_memory(size_t bytes);

/* The engine and the stream, where they are not there yet: a ps never needs them. */
err cpu_open_engine(struct cpu_state *);

void memory_fill_table(struct kernels *);

/* ERR_MEMORY where there was none, ERR_DEVICE where oneDNN failed in another way. */
err onednn_check(dnnl_status_t, const char *call);
/* Remembers how the call ended where it failed, for synchronize(). */
void cpu_note(struct device *, dnnl_status_t, const char *call);

#endif
