/* apart.c - see apart.h: memory, and the wall. */
#include "tests/device/apart_inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ALIGNMENT = 4096 }; /* blocks begin at pages, with a page that is nobody's between them */
static const size_t RESERVED = (size_t)2 << 30;

static struct apart *state_of(const struct device *d)
{
    return d->state;
}

struct device *apart_enter(struct device *d, const char *kernel)
{
    struct apart *a = state_of(d);
    a->kernel = kernel;
    a->traffic.kernels++;
    assert_int_equal(mprotect(a->memory, a->taken, PROT_READ | PROT_WRITE), 0);
    return &a->inner;
}

void apart_leave(struct device *d)
{
    struct apart *a = state_of(d);
    assert_int_equal(mprotect(a->memory, a->taken, PROT_NONE), 0);
    a->kernel = NULL;
}

/* NULL: nobody's, or the page between two blocks. */
static const struct block *block_of(const struct apart *a, const char *p)
{
    for (int i = 0; i < BLOCKS_MAX; i++)
        if (a->blocks[i].base && p >= a->blocks[i].base &&
            p < a->blocks[i].base + a->blocks[i].bytes)
            return &a->blocks[i];
    return NULL;
}

void apart_has(struct device *d, const void *at, size_t bytes)
{
    struct apart *a = state_of(d);
    const char *p = at;
    if (bytes == 0) return;
    const struct block *block = block_of(a, p);
    if (!block)
        fail_msg("%s, %s %s: %p is no memory of the device", a->kernel, a->what ? a->what : "",
                 a->name ? a->name : "", at);
    if (p + bytes > block->base + block->bytes)
        fail_msg("%s: %zu bytes are %zu too many", a->kernel, bytes,
                 (size_t)(p + bytes - block->base) - block->bytes);
}

void apart_is_host(struct device *d, const void *p, size_t bytes)
{
    const struct apart *a = state_of(d);
    const char *at = p;
    if (bytes && at + bytes > a->memory && at < a->memory + RESERVED)
        fail_msg("%s: %p is memory of the device, not of the host", a->kernel, p);
}

/* ---- memory ---- */

static struct block *free_block(struct apart *a)
{
    for (int i = 0; i < BLOCKS_MAX; i++)
        if (!a->blocks[i].base) return &a->blocks[i];
    return NULL;
}

/* Fresh pages are zero, which is what is promised of new memory. */
static err allocate(struct device *d, size_t bytes, void **ret)
{
    struct apart *a = state_of(d);
    struct block *block = free_block(a);
    const size_t whole = (bytes / ALIGNMENT + 2) * ALIGNMENT;
    assert_non_null(block);
    if (a->limit - a->in_use < bytes || RESERVED - a->taken < whole)
        return (fail)(ERR_MEMORY, "no memory for %zu bytes", bytes);
    *block = (struct block){a->memory + a->taken, bytes};
    a->taken += whole;
    a->in_use += bytes;
    *ret = block->base;
    return OK;
}

/* What was released may be taken again: other addresses, the same amount. */
static size_t available(struct device *d)
{
    const struct apart *a = state_of(d);
    return a->limit == SIZE_MAX ? SIZE_MAX : a->limit - a->in_use;
}

/* A second release of the same block is a defect as well. */
static void release(struct device *d, void *memory)
{
    struct apart *a = state_of(d);
    for (int i = 0; i < BLOCKS_MAX; i++) {
        if (!memory || a->blocks[i].base != memory) continue;
        a->in_use -= a->blocks[i].bytes;
        (void)madvise(a->blocks[i].base, a->blocks[i].bytes, MADV_DONTNEED);
        a->blocks[i] = (struct block){0};
        return;
    }
    fail_msg("release: %p was not allocated by the device, or is released already", memory);
}

static void upload(struct device *d, void *device_memory, const void *host, size_t bytes)
{
    struct device *inner = apart_enter(d, "upload");
    apart_has(d, device_memory, bytes);
    apart_is_host(d, host, bytes);
    inner->kernels->upload(inner, device_memory, host, bytes);
    state_of(d)->traffic.uploaded += (int64_t)bytes;
    apart_leave(d);
}

static void download(struct device *d, void *host, const void *device_memory, size_t bytes)
{
    struct device *inner = apart_enter(d, "download");
    apart_has(d, device_memory, bytes);
    apart_is_host(d, host, bytes);
    inner->kernels->download(inner, host, device_memory, bytes);
    state_of(d)->traffic.downloaded += (int64_t)bytes;
    apart_leave(d);
}

static void mark(struct device *d, const char *what, const char *name)
{
    struct apart *a = state_of(d);
    a->what = what;
    a->name = name;
}

static err synchronize(struct device *d)
{
    struct device *inner = apart_enter(d, "synchronize");
    const err e = inner->kernels->synchronize(inner);
    apart_leave(d);
    return e;
}

/* One part, as devices that are no CPU do it; the loop itself is the host's. */
static void spread(struct device *d, int64_t n, int64_t grain, spread_body *body,
                   const void *arguments)
{
    body(arguments, 0, n);
}

static void close_apart(struct device *d)
{
    struct apart *a = state_of(d);
    for (int i = 0; i < PINS_MAX; i++) assert_null(a->pins[i].base);
    device_close(&a->inner);
    (void)munmap(a->memory, RESERVED);
    free(a);
    *d = (struct device){0};
}

static void fill_memory(struct kernels *table)
{
    table->name = "apart";
    table->allocate = allocate;
    table->available = available;
    table->release = release;
    table->upload = upload;
    table->download = download;
    table->synchronize = synchronize;
    table->mark = mark;
    table->spread = spread;
    table->close = close_apart;
}

/* A kernel without a wrapper would see memory that it cannot touch. */
static void check_table(const struct kernels *table)
{
    enum { NUMBER = offsetof(struct kernels, reserved) / sizeof(void *) }; /* no pointer */
    void *const *pointers = (void *const *)table;
    for (size_t i = 0; i < sizeof *table / sizeof *pointers; i++)
        if (i != NUMBER) assert_non_null(pointers[i]);
}

err device_open_apart(size_t limit, struct device *ret)
{
    struct apart *a = calloc(1, sizeof *a);
    if (!a) return (fail)(ERR_MEMORY, "no memory for a device");
    TRY(device_open_cpu(1, NULL, &a->inner));
    a->limit = limit;
    a->memory = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(a->memory != MAP_FAILED);
    fill_memory(&a->table);
    apart_fill_walls(&a->table);
    apart_fill_async(&a->table);
    check_table(&a->table);
    *ret = (struct device){.kernels = &a->table, .threads = 1, .state = a, .is_separate = true};
    return OK;
}

size_t device_apart_in_use(const struct device *d)
{
    return state_of(d)->in_use;
}

struct traffic device_apart_traffic(const struct device *d)
{
    return state_of(d)->traffic;
}
