/* bench.h - what the parts of the kernels' bench share: memory, the clock, and the report.
 *
 * A part calls bench_us() on what it measures and on what it is measured against, and report() with
 * both. Inputs are random and never written; what is written goes to `out`.
 */
#ifndef TESTS_CUDA_BENCH_BENCH_H
#define TESTS_CUDA_BENCH_BENCH_H

#include <jansson.h>

#include "kernels/cuda/cuda.h"

struct bare_dnn;

struct bench {
    struct device d;
    struct cuda_state *state; /* of d */
    struct cuda_blas
        blas; /* what products are held against: the device's own, or beside a bare one */
    enum precision precision;
    bool is_bare;     /* kernels of our own do all */
    int64_t scale;    /* by which sizes are divided: 1 for figures */
    int64_t capacity; /* floats in each of the five */
    int64_t floats;   /* of which vectors and rows take so many */
    float *x, *y, *z; /* in [-1, 1) */
    float *positive;  /* in [0, 1): slots of optimizers, changed by them */
    float *out;
    int32_t *labels;      /* [floats], each 0 */
    struct bare_dnn *dnn; /* NULL: not found */
    char device[DEVICE_NAME_MAX];
    json_t *figures;          /* what was reported */
    double copy_bytes_per_us; /* of a copy within the GPU, once it was measured; 0 before */
};

/* Queues one call of what is measured; call counts up, for parts of memory that no cache has. */
typedef void bench_body(struct bench *, const void *arguments, int call);

struct timed {
    bench_body *body;
    const void *arguments;
    bool waits; /* for its own end, so that it cannot be recorded */
};

/* "float32", "tf32", "bf16" */
const char *bench_precision(const struct bench *);

/* Size divided by the scale, at least one */
int64_t bench_scaled(const struct bench *, int64_t size);

/* The stretch of so many floats that is this call's: the next one along, from the front again at
 * the end. */
float *bench_part(const struct bench *, float *memory, int64_t floats, int call);

/* Microseconds of one call: the median of samples of many. */
double bench_us(struct bench *, const struct timed *);

/* Ends the program with the last error. */
_Noreturn void bench_give_up(void);
/* Ends the program if a kernel has failed. */
void bench_wait(struct bench *);

struct figure {
    const char *group, *name;
    double us;
    const char *unit; /* of amount / us * 1e-6: "TFLOP/s", or times 1e-3: "GB/s" */
    double amount;    /* operations, or bytes */
    const char *peer; /* "cuBLAS"; what it is held against */
    double peer_us;   /* for the same amount; 0: there is none to compare with */
    double goal;      /* peer_us / us at least; 0: none */
};
void bench_report(struct bench *, const struct figure *);

/* The parts */
void bench_products(struct bench *);
void bench_convolutions(struct bench *);
void bench_streams(struct bench *);
void bench_rows(struct bench *);
void bench_machine(struct bench *);

#endif
