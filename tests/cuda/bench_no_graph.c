/* bench_no_graph.c - where the GPU is emulated, nothing can be recorded. */
#include "tests/cuda/bench_graph.h"

err recorded_open(struct bench *b, const struct timed *timed, int calls, struct recorded **ret)
{
    return fail(ERR_DEVICE, "the emulated GPU records nothing");
}

double recorded_us(struct bench *b, struct recorded *r, int starts)
{
    bench_give_up();
}

void recorded_close(struct recorded *r)
{
    bench_give_up();
}
