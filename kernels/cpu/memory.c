/* memory.c - memory of the CPU device. Work is done at once, so there is nothing to wait for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cpu/cpu.h"

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

/* Blocks of whole huge pages begin at one: a large matrix costs far fewer address translations. */
void *cpu_memory(size_t bytes)
{
    void *memory;
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE;
    if (bytes > PTRDIFF_MAX || posix_memalign(&memory, align, bytes ? bytes : LINE)) return NULL;
    if (align == HUGE_PAGE) (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

static err allocate(struct device *d, size_t bytes, void **ret)
{
    void *memory = cpu_memory(bytes);
    if (!memory) return fail(ERR_MEMORY, "no memory for %zu bytes of tensors", bytes);
    memset(memory, 0, bytes);
    *ret = memory;
    return OK;
}

/* The system hands out memory that it may not have; only its use would tell. */
static size_t available(struct device *d)
{
    return SIZE_MAX;
}

static void release(struct device *d, void *memory)
{
    free(memory);
}

static void upload(struct device *d, void *device_memory, const void *host, size_t bytes)
{
    if (bytes) memcpy(device_memory, host, bytes);
}

static void download(struct device *d, void *host, const void *device_memory, size_t bytes)
{
    if (bytes) memcpy(host, device_memory, bytes);
}

/* A failure inside a call that cannot return one (an execution by oneDNN) is told here, once. */
static err synchronize(struct device *d)
{
    struct cpu_state *state = d->state;
    err failure = state->failure;
    if (!failure) return OK;
    state->failure = OK;
    return fail(failure, "%s failed", state->failed_call);
}

void cpu_failed(struct device *d, const char *call)
{
    struct cpu_state *state = d->state;
    if (state->failure) return;
    state->failure = ERR_DEVICE;
    state->failed_call = call;
}

void memory_fill_table(struct kernels *table)
{
    table->allocate = allocate;
    table->available = available;
    table->release = release;
    table->upload = upload;
    table->download = download;
    table->synchronize = synchronize;
}
