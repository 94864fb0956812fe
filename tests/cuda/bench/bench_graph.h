/* bench_graph.h - calls that are recorded once and started again and again, without the host
 * between them: a kernel of a few microseconds is over before the next one could be launched. */
#ifndef TESTS_CUDA_BENCH_BENCH_GRAPH_H
#define TESTS_CUDA_BENCH_BENCH_GRAPH_H

#include "tests/cuda/bench/bench.h"

struct recording; /* async.h */

/* ERR_DEVICE: what is called cannot be recorded; the device is as before. */
err recorded_open(struct bench *, const struct timed *, int calls, struct recording **ret);
/* Microseconds from the first start to the end of the last */
double recorded_us(struct bench *, const struct recording *, int starts);
void recorded_close(struct bench *, struct recording *);

#endif
