/* emulated.h - a GPU that is none: the kernels of kernels/cuda/ as they are, compiled for the
 * processor and run thread by thread.
 *
 * A program that links `emulated` (tests/cuda/meson.build) has it in the place of CUDA: gpu_list()
 * and device_open_gpu() find one GPU, "emulated", without cuBLAS, or as many as EMULATED_GPUS of
 * the environment says. Its memory is apart: the host that touches it while no work is done ends
 * with SIGSEGV, and so does a kernel that reads or writes behind the end of an allocation, or
 * memory of another GPU. What has not been written is NaN.
 */
#ifndef TESTS_CUDA_EMULATOR_EMULATED_H
#define TESTS_CUDA_EMULATOR_EMULATED_H

#include "kernels/kernels.h"

/* The emulated GPU, is_separate */
err device_open_emulated(struct device *ret);

/* How much memory each has (1 GiB at first), and how much is taken of all */
void emulated_set_memory(size_t bytes);
size_t emulated_memory_taken(void);

/* How much memory of the host is pinned. Bytes. */
size_t emulated_pinned(void);

/* The call of CUDA of this name, "cudaMemcpyAsync" or the like, fails from the `after`-th on (0:
 * the next) as a broken GPU does: launch failure. All calls fail after it where the error is one
 * that ruins the context, as that one does. NULL: none fails any more. */
void emulated_break(const char *call, int after);

/* By which of CUDA's errors it fails: 719, the launch failure, at first. A process that is started
 * with EMULATED_BREAK="call,after,error" in its environment has been told both, and says on stderr
 * when the GPU breaks. */
void emulated_break_by(int error);
enum { INVALID_VALUE = 1 }; /* cudaErrorInvalidValue: of one call, while the GPU goes on */

/* How often the call of this name has been made; a literal. Not of all: of those that can be
 * broken. */
int emulated_calls(const char *call);

/* What all have been given to do so far. A recording that is started counts once, and what it holds
 * by itself: kernels and copies of both together are what the GPU does. */
struct emulated_work {
    int64_t kernels, recordings; /* queued one by one */
    int64_t recorded;            /* kernels, of recordings that were started */
    int64_t up, down, within;    /* copies, those of recordings too */
    int64_t bytes_up, bytes_down;
    int64_t serial, bytes_serial; /* of those up and down: in the stream of kernels, which wait */
    int64_t waits; /* how often somebody looked for the end of what was not done, and stayed */
};
struct emulated_work emulated_work(void);

/* Each kernel, and each copy from or to the host, when it is done. It may not call the GPU; NULL:
 * nobody is told. */
struct emulated_done {
    enum { EMULATED_KERNEL, EMULATED_UP, EMULATED_DOWN } what;
    const void *host; /* of copies */
};
typedef void emulated_witness(const struct emulated_done *);
void emulated_tell(emulated_witness *);

/* Whether copies in streams of their own are done as early as events allow (so at first), or only
 * when somebody waits for them. */
void emulated_set_hasty_copies(bool);

/* Whether an event of a recording is as the last launch left it until its own turn has come, or
 * (so at first) not reached from the launch on. */
void emulated_set_late_events(bool);

/* A GPU that takes kernels and runs none. */
void emulated_set_idle(bool);

/* A GPU that hangs: what is queued is never done, and whatever CUDA itself would wait for without
 * end ends the program. */
void emulated_set_hung(bool);

/* How long the device waits for an answer, instead of GPU_WAIT_LIMIT_S */
void emulated_set_wait_limit(struct device *, int milliseconds);

/* The CUDA of its driver: 13 at first */
void emulated_set_driver(int major);

/* How many GPUs there are (1 at first, GPUS_MAX at most); 0: "no device" */
void emulated_set_gpus(int count);

#endif
