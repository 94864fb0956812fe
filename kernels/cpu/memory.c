/* memory.c - memory of the CPU device. Work is done synchronously, so there is nothing to wait for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cpu/cpu.h"

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

/* Blocks of at least a huge page are aligned to one: large matrices then need far fewer TLB
 * entries. */
void *cpu_memory(size_t bytes)
{
    void *memory;
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : LINE;
    if (bytes > PTRDIFF_MAX || posix_memalign(&memory, align, bytes ? bytes : LINE)) return NULL;
    if (align == HUGE_PAGE) (void)madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

/* Returns whole huge pages to the system instead: they read as zero when next used. Writing zeros
 * would touch them now, while others wait, and then once more. */
static void clear(char *memory, size_t bytes)
{
    const size_t whole = bytes & ~((size_t)HUGE_PAGE - 1);
    const size_t given = whole && !madvise(memory, whole, MADV_DONTNEED) ? whole : 0;
    memset(memory + given, 0, bytes - given);
}

static err allocate(struct device *d, size_t bytes, void **ret)
{
    void *memory = cpu_memory(bytes);
    if (!memory) return fail(ERR_MEMORY, "no memory for %zu bytes of tensors", bytes);
    clear(memory, bytes);
    *ret = memory;
    return OK;
}

/* The system overcommits memory; only using it would tell. */
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

err onednn_check(dnnl_status_t status, const char *call)
{
    if (status == dnnl_success) return OK;
    if (status == dnnl_out_of_memory)
        return fail(ERR_MEMORY,
                    "no memory for oneDNN (%s): a smaller batch, fewer threads or a higher limit "
                    "on memory would mend it",
                    call);
    return fail(ERR_DEVICE, "%s failed (oneDNN %d)", call, (int)status);
}

/* Reports, once, a failure inside a call that cannot return one (oneDNN). */
static err synchronize(struct device *d)
{
    struct cpu_state *state = d->state;
    const dnnl_status_t failure = state->failure;
    state->failure = dnnl_success;
    return onednn_check(failure, state->failed_call);
}

void cpu_note(struct device *d, dnnl_status_t status, const char *call)
{
    struct cpu_state *state = d->state;
    if (status == dnnl_success || state->failure != dnnl_success) return;
    state->failure = status;
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
