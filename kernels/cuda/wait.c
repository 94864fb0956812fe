/* wait.c - waits for the GPU, with a time limit: a GPU that hangs reports nothing.
 *
 * CUDA's own waits have no limit, and keep a CPU core busy. Here the queue is polled, at first
 * without pauses, because most waits are short, then with pauses in proportion to the time waited,
 * so that they add little to it. Once the limit was reached nothing waits for that GPU again:
 * further waits fail at once with the same error.
 */
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "kernels/cuda/cuda.h"

enum {
    LOOK_NS = 200000, /* polls this long without pauses: about a step of a small model */
    PAUSE_SHARE = 64,
    PAUSE_MIN_NS = 10000,
    PAUSE_MAX_NS = 1000000,
    PAUSE_LATE_NS = 1000, /* timer slack: a pause may be this much longer; the system's default is
                             50 us */
    SECOND_NS = 1000000000,
    MILLISECOND_NS = 1000000,
};

struct awaited_stream {
    cudaStream_t stream;
    cudaEvent_t event; /* NULL: all work queued in the stream */
};

static const char *call_of(const struct awaited_stream *a)
{
    return a->event ? "cudaEventQuery" : "cudaStreamQuery";
}

/* Unfinished work is no failure, and must not be reported by another call as one. */
static cudaError_t look(const struct awaited_stream *a)
{
    const cudaError_t status = a->event ? cudaEventQuery(a->event) : cudaStreamQuery(a->stream);
    if (status == cudaErrorNotReady) (void)cudaGetLastError();
    return status;
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void pause_after(int64_t waited_ns)
{
    if (waited_ns < LOOK_NS) {
        (void)sched_yield();
        return;
    }
    const int64_t share_ns = waited_ns / PAUSE_SHARE;
    struct timespec pause = {.tv_nsec = share_ns};
    if (share_ns < PAUSE_MIN_NS) pause.tv_nsec = PAUSE_MIN_NS;
    if (share_ns > PAUSE_MAX_NS) pause.tv_nsec = PAUSE_MAX_NS;
    (void)nanosleep(&pause, NULL); /* a signal may end it early */
}

static void give_up(struct device *d)
{
    struct cuda_state *state = d->state;
    char why[64];
    snprintf(why, sizeof why, "no answer for %g s", (double)state->wait_limit_ms / 1000);
    state->is_silent = true;
    cuda_remember(d, ERR_LOST, NULL, why);
}

static bool await(struct device *d, const struct awaited_stream *a)
{
    const struct cuda_state *state = d->state;
    const int64_t begin_ns = now_ns(), limit_ns = (int64_t)state->wait_limit_ms * MILLISECOND_NS;
    cudaError_t status = state->is_silent ? cudaErrorNotReady : look(a);
    while (status == cudaErrorNotReady) {
        const int64_t waited_ns = now_ns() - begin_ns;
        if (state->is_silent || waited_ns > limit_ns) {
            give_up(d);
            return false;
        }
        pause_after(waited_ns);
        status = look(a);
    }
    return cuda_check(d, status, call_of(a));
}

bool cuda_await_stream(struct device *d, cudaStream_t stream)
{
    return await(d, &(struct awaited_stream){.stream = stream});
}

bool cuda_await_event(struct device *d, cudaEvent_t event)
{
    return await(d, &(struct awaited_stream){.event = event});
}

void cuda_await_cause(struct device *d)
{
    const struct cuda_state *state = d->state;
    const cudaError_t status = cudaStreamQuery(state->stream);
    (void)cudaGetLastError();
    if (status != cudaErrorStreamCaptureUnsupported && status != cudaErrorStreamCaptureInvalidated)
        (void)cuda_await_stream(d, state->stream);
}

void cuda_wait_init(struct cuda_state *state)
{
    state->wait_limit_ms = GPU_WAIT_LIMIT_S * 1000;
    (void)prctl(PR_SET_TIMERSLACK, PAUSE_LATE_NS, 0, 0,
                0); /* for this thread; otherwise waits end late */
}
