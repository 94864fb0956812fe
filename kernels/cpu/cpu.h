/* cpu.h - shared by the files of the CPU device. */
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
    struct bf16 *bf16;    /* if products and convolutions are in bf16; NULL: in float32 */
    dnnl_engine_t engine; /* created for the first oneDNN primitive; NULL before */
    dnnl_stream_t stream;
    dnnl_status_t failure; /* of the first failed call, until synchronize() returns it */
    const char *failed_call;
};

struct instruction_set {
    const char *name, *table_name;
    bool (*is_supported)(void);
    const struct kernels *kernels;
};

/* Best first; ends with name NULL. From x86.c or generic.c, whichever is built. */
extern const struct instruction_set instruction_sets[];

/* The OpenBLAS kernels to use on this processor instead of `current`, its own choice; NULL: that is
 * right. */
const char *openblas_core_wanted(const char *current);

/* Calls body(arguments, begin, end) for parts that cover [0, n), on up to device->threads threads,
 * each of about `grain` or more. The results of a body must not depend on where parts begin and
 * end. */
typedef spread_body range_body;
void spread(const struct device *, int64_t n, int64_t grain, range_body *, const void *arguments);

/* Ranges shorter than twice this many floats stay on one thread: waking another one costs more. */
enum { SPREAD_GRAIN = 32768 };

/* Sets the number of threads of the following library calls on this thread. */
void library_threads(const struct device *);

/* Uninitialised, aligned to 64 bytes, in huge pages where they help; NULL: out of memory. */
void *cpu_memory(size_t bytes);

/* Creates the engine and the stream if they do not exist yet: a ps never needs them. */
err cpu_open_engine(struct cpu_state *);

void memory_fill_table(struct kernels *);

/* ERR_MEMORY: out of memory; ERR_DEVICE: another failure of oneDNN. */
err onednn_check(dnnl_status_t, const char *call);
/* Remembers a failed call for synchronize(). */
void cpu_note(struct device *, dnnl_status_t, const char *call);

#endif
