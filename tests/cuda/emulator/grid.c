/* grid.c - see grid.h.
 *
 * A fibre runs threads from beginning to end for as long as none of them waits. One that waits
 * keeps its fibre, and another goes on with the threads that have not begun. When all have begun,
 * whole warps and blocks that wait are let go. So kernels that never wait need one fibre and no
 * change between fibres.
 */
#include "tests/cuda/emulator/grid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* AddressSanitizer wants to know which stack is in use. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(keep, stack, bytes) (void)(keep)
#define __sanitizer_finish_switch_fiber(kept, stack, bytes) (void)(kept)
#endif

enum { STACK_BYTES = 64 << 10, STAGGERS = 32, STAGGER_BYTES = 576, JUMP_WORDS = 5 };

/* A stack and where it was left */
struct context {
    void *jump[JUMP_WORDS]; /* as __builtin_setjmp leaves it */
    const void *stack;
    size_t stack_bytes;
    ucontext_t first;
    bool is_begun;
    void *sanitizer; /* AddressSanitizer's own, while it does not run */
};

enum state { NOT_BEGUN, GOING, WAITS_FOR_WARP, WAITS_FOR_BLOCK, ENDED };

struct thread {
    enum state state;
    int fibre; /* while it waits */
    unsigned exchanges;
    /* of this exchange and of the last, which a neighbour may not have read */
    _Alignas(16) char given[2][GRID_GIVEN_MAX];
};

static struct {
    struct context main, fibre[GRID_THREADS_MAX];
    int idle[GRID_THREADS_MAX], idle_count, fibre_count; /* fibres without a thread; of all */
    int current;                                         /* fibre */
    struct thread thread[GRID_THREADS_MAX];
    unsigned count, begun, ended; /* threads of the block */
    unsigned runs;
    bool is_backwards;
    grid_body *body;
    const void *arguments;
} block = {.main.is_begun = true};

struct grid_place grid_now;

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "emulated GPU: block %u, %u of %u threads ended: %s\n", grid_now.block.x,
            block.ended, block.count, why);
    abort();
}

/* Not inlined: the jump must not lead into the function that makes it. */
static __attribute__((noinline)) void leap(struct context *to)
{
    if (to->is_begun) __builtin_longjmp(to->jump, 1);
    to->is_begun = true;
    setcontext(&to->first);
    give_up("setcontext failed");
}

static __attribute__((noinline)) void change(struct context *from, struct context *to)
{
    __sanitizer_start_switch_fiber(&from->sanitizer, to->stack, to->stack_bytes);
    if (__builtin_setjmp(from->jump) == 0) leap(to);
    __sanitizer_finish_switch_fiber(from->sanitizer, NULL, NULL);
}

static unsigned turned(unsigned i, unsigned count)
{
    return block.is_backwards ? count - 1 - i : i;
}

static void run_thread(unsigned index)
{
    struct thread *t = &block.thread[index];
    *t = (struct thread){.state = GOING, .fibre = block.current};
    grid_now.thread.x = index;
    block.body(block.arguments);
    t->state = ENDED;
    block.ended++;
}

/* The life of a fibre, which no block outlives and no fibre ends */
static void live(void)
{
    __sanitizer_finish_switch_fiber(NULL, &block.main.stack, &block.main.stack_bytes);
    for (;;) {
        while (block.begun < block.count) run_thread(turned(block.begun++, block.count));
        block.idle[block.idle_count++] = block.current;
        change(&block.fibre[block.current], &block.main);
    }
}

static struct context *new_fibre(void)
{
    struct context *fibre = &block.fibre[block.fibre_count];
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || getcontext(&fibre->first) != 0) give_up("no stack for a thread");
    fibre->stack = stack;
    /* not all at the same place of a page, or they would crowd each other out of the cache */
    fibre->stack_bytes = STACK_BYTES - (size_t)(block.fibre_count % STAGGERS) * STAGGER_BYTES;
    fibre->first.uc_stack.ss_sp = stack;
    fibre->first.uc_stack.ss_size = fibre->stack_bytes;
    makecontext(&fibre->first, live, 0);
    return fibre;
}

static void enter(int fibre)
{
    block.current = fibre;
    change(&block.main, &block.fibre[fibre]);
}

static void begin_threads(void)
{
    if (block.idle_count == 0) {
        (void)new_fibre();
        block.idle[block.idle_count++] = block.fibre_count++;
    }
    enter(block.idle[--block.idle_count]);
}

/* Lets a warp go that waits as a whole. */
static void release_warp(unsigned first)
{
    unsigned waiting = 0;
    for (unsigned i = first; i < first + GRID_WARP && i < block.count; i++)
        waiting += block.thread[i].state == WAITS_FOR_WARP;
    if (waiting < GRID_WARP) return;
    for (unsigned i = first; i < first + GRID_WARP; i++) block.thread[i].state = GOING;
}

/* Threads that have ended are not waited for. */
static void release_block(void)
{
    unsigned waiting = 0;
    for (unsigned i = 0; i < block.count; i++) waiting += block.thread[i].state == WAITS_FOR_BLOCK;
    if (waiting == 0 || waiting + block.ended < block.count) return;
    for (unsigned i = 0; i < block.count; i++)
        if (block.thread[i].state == WAITS_FOR_BLOCK) block.thread[i].state = GOING;
}

/* Runs all that may go on until they wait again or end; whether there were any. */
static bool go_on(void)
{
    bool any = false;
    for (unsigned i = 0; i < block.count; i++) {
        const unsigned index = turned(i, block.count);
        if (block.thread[index].state != GOING) continue;
        any = true;
        grid_now.thread.x = index;
        enter(block.thread[index].fibre);
    }
    return any;
}

static void run_block(void)
{
    block.begun = block.ended = 0;
    while (block.begun < block.count) begin_threads();
    while (block.ended < block.count) {
        for (unsigned i = 0; i < block.count; i += GRID_WARP) release_warp(i);
        release_block();
        if (!go_on()) give_up("the others wait for some that never come");
    }
}

void grid_run(const struct grid *grid, grid_body *body, const void *arguments)
{
    const unsigned blocks = grid->blocks_x * grid->blocks_y;
    block.is_backwards = block.runs++ % 2;
    block.count = grid->threads;
    block.body = body;
    block.arguments = arguments;
    grid_now.blocks = (struct grid_index){grid->blocks_x, grid->blocks_y, 1};
    grid_now.threads = (struct grid_index){grid->threads, 1, 1};
    for (unsigned i = 0; i < blocks; i++) {
        const unsigned index = turned(i, blocks);
        grid_now.block = (struct grid_index){index % grid->blocks_x, index / grid->blocks_x, 0};
        run_block();
    }
}

static void wait_as(enum state state)
{
    const unsigned index = grid_now.thread.x;
    const int fibre = block.current;
    block.thread[index].state = state;
    block.thread[index].fibre = fibre;
    change(&block.fibre[fibre], &block.main);
}

void grid_wait_for_block(void)
{
    wait_as(WAITS_FOR_BLOCK);
}

void grid_wait_for_warp(void)
{
    wait_as(WAITS_FOR_WARP);
}

void grid_give(const void *own, unsigned bytes)
{
    struct thread *t = &block.thread[grid_now.thread.x];
    if (bytes > GRID_GIVEN_MAX) give_up("too much is given at once");
    memcpy(t->given[t->exchanges++ % 2], own, bytes);
    grid_wait_for_warp();
}

const void *grid_given(unsigned lane)
{
    const struct thread *t = &block.thread[grid_now.thread.x];
    const unsigned first = grid_now.thread.x / GRID_WARP * GRID_WARP;
    return block.thread[first + lane % GRID_WARP].given[(t->exchanges - 1) % 2];
}
