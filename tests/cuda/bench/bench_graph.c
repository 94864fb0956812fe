/* bench_graph.c - see bench_graph.h. */
#include "tests/cuda/bench/bench_graph.h"

#include "core/base/clock.h"
#include "kernels/async.h"

err recorded_open(struct bench *b, const struct timed *timed, int calls, struct recording **ret)
{
    const struct async *async = b->d.kernels->async;
    if (!async) return fail(ERR_DEVICE, "this GPU records nothing");
    TRY(async->record(&b->d));
    for (int i = 0; i < calls; i++) timed->body(b, timed->arguments, i);
    return async->record_end(&b->d, ret);
}

double recorded_us(struct bench *b, const struct recording *r, int starts)
{
    const uint64_t begin_ns = clock_ns();
    for (int i = 0; i < starts; i++) b->d.kernels->async->replay(&b->d, r);
    bench_wait(b);
    return (double)(clock_ns() - begin_ns) / 1e3;
}

void recorded_close(struct bench *b, struct recording *r)
{
    b->d.kernels->async->recording_close(&b->d, r);
}
