/* memory.c - the emulated GPU's memory: each allocation ends where a page ends, before one that
 * nobody may touch, and is itself for nobody while no work is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/cuda/emulator/emulated.h"
#include "tests/cuda/emulator/streams.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(from, bytes) (void)(from)
#define __asan_unpoison_memory_region(from, bytes) (void)(from)
#endif

enum {
    PIECES_MAX = 4096,
    PINNED_MAX = 256,
    PAGE = 4096,
    ALIGNMENT = 64,
    UNWRITTEN = 0xff,
    END_BYTES = 256 << 10,
};

struct piece {
    char *pages; /* NULL: free */
    size_t page_bytes, bytes;
    char *memory;
    bool is_managed; /* the host and every GPU reach it */
    int gpu;
};

static struct piece pieces[PIECES_MAX];
static int piece_count; /* those behind are all free */
static size_t taken[GPUS_MAX], all = 1 << 30;
static int open_gpu = -1; /* -1: none is */

void emulated_set_memory(size_t bytes)
{
    all = bytes;
}

size_t emulated_memory_taken(void)
{
    size_t bytes = 0;
    for (int i = 0; i < GPUS_MAX; i++) bytes += taken[i];
    return bytes;
}

/* Of a large piece both ends alone: the system takes time for every page, each time. */
static void protect_piece(const struct piece *piece, int protection)
{
    const bool is_large = piece->page_bytes > 2 * END_BYTES;
    const size_t bytes = is_large ? END_BYTES : piece->page_bytes;
    (void)mprotect(piece->pages, bytes, protection);
    if (is_large) (void)mprotect(piece->pages + piece->page_bytes - bytes, bytes, protection);
}

static void protect(int gpu, int protection)
{
    for (int i = 0; i < piece_count; i++)
        if (pieces[i].pages && !pieces[i].is_managed && pieces[i].gpu == gpu)
            protect_piece(&pieces[i], protection);
}

void emulated_memory_open(int gpu)
{
    protect(gpu, PROT_READ | PROT_WRITE);
    open_gpu = gpu;
}

void emulated_memory_close(void)
{
    protect(open_gpu, PROT_NONE);
    open_gpu = -1;
}

static size_t rounded(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static struct piece *free_piece(void)
{
    int i = 0;
    while (i < piece_count && pieces[i].pages) i++;
    if (i == PIECES_MAX) return NULL;
    if (i == piece_count) piece_count++;
    return &pieces[i];
}

static cudaError_t take(void **ret, size_t bytes, bool is_managed)
{
    struct piece *piece = free_piece();
    const size_t whole = rounded(bytes, ALIGNMENT);
    const int gpu = emulated_gpu();
    if (!piece || bytes > all || (!is_managed && taken[gpu] > all - bytes))
        return cudaErrorMemoryAllocation;
    const size_t page_bytes = rounded(whole, PAGE);
    char *pages =
        mmap(NULL, page_bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return cudaErrorMemoryAllocation;
    (void)mprotect(pages + page_bytes, PAGE, PROT_NONE);
    *piece = (struct piece){pages, page_bytes, bytes, pages + page_bytes - whole, is_managed, gpu};
    memset(pages, UNWRITTEN, page_bytes);
    __asan_poison_memory_region(pages, page_bytes);
    __asan_unpoison_memory_region(piece->memory, bytes);
    if (!is_managed) protect_piece(piece, PROT_NONE);
    if (!is_managed) taken[gpu] += bytes;
    *ret = piece->memory;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
    EMULATED_TURN;
    cudaError_t status = streams_forbid_in_capture();
    if (!status) status = emulated_status("cudaMalloc");
    return status ? status : take(ret, bytes, false);
}

cudaError_t cudaMallocManaged(void **ret, size_t bytes, unsigned flags)
{
    EMULATED_TURN;
    cudaError_t status = streams_forbid_in_capture();
    if (!status) status = emulated_status("cudaMallocManaged");
    return status ? status : take(ret, bytes, true);
}

/* What stands between the end of the allocation and the end of the page is still as it was. */
static void check_end(const struct piece *piece)
{
    const char *end = piece->memory + piece->bytes;
    const size_t left = (size_t)(piece->pages + piece->page_bytes - end);
    __asan_unpoison_memory_region(piece->pages, piece->page_bytes);
    for (size_t i = 0; i < left; i++)
        if ((unsigned char)end[i] != UNWRITTEN) {
            fprintf(stderr, "emulated GPU: %zu bytes were written beyond their end\n",
                    piece->bytes);
            abort();
        }
}

static cudaError_t give_back(void *memory)
{
    streams_finish_all();
    int i = 0;
    while (i < piece_count && (!pieces[i].pages || pieces[i].memory != memory)) i++;
    if (i == piece_count) return cudaErrorInvalidValue;
    struct piece *piece = &pieces[i];
    (void)mprotect(piece->pages, piece->page_bytes, PROT_READ | PROT_WRITE);
    check_end(piece);
    (void)munmap(piece->pages, piece->page_bytes + PAGE);
    if (!piece->is_managed) taken[piece->gpu] -= piece->bytes;
    *piece = (struct piece){0};
    return emulated_ruin();
}

cudaError_t cudaFree(void *memory)
{
    EMULATED_TURN;
    if (!memory) return cudaSuccess;
    if (streams_forbid_in_capture()) return cudaErrorStreamCaptureUnsupported;
    return give_back(memory);
}

/* Says nothing where it fails. */
cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_all)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaMemGetInfo");
    if (status) return status;
    const size_t here = taken[emulated_gpu()];
    *ret_free = here < all ? all - here : 0;
    *ret_all = all;
    return cudaSuccess;
}

/* ---- the host's memory ---- */

static struct range {
    const char *from;
    size_t bytes;
    bool is_registered; /* by whole pages */
    bool is_written;    /* the GPU may write there */
} pinned[PINNED_MAX];

static struct range *pinned_at(const void *from)
{
    int i = 0;
    while (i < PINNED_MAX && pinned[i].from != from) i++;
    return i < PINNED_MAX ? &pinned[i] : NULL;
}

size_t emulated_pinned(void)
{
    size_t bytes = 0;
    for (int i = 0; i < PINNED_MAX; i++) bytes += pinned[i].from ? pinned[i].bytes : 0;
    return bytes;
}

static cudaError_t pin(struct range range)
{
    struct range *free_range = pinned_at(NULL);
    if (!range.from || !free_range) return cudaErrorMemoryAllocation;
    *free_range = range;
    return cudaSuccess;
}

static uintptr_t page_of(const char *at)
{
    return (uintptr_t)at / PAGE;
}

static bool shares_page(const struct range *r, const char *from, size_t bytes)
{
    return r->from && r->is_registered && page_of(from) <= page_of(r->from + r->bytes - 1) &&
           page_of(r->from) <= page_of(from + bytes - 1);
}

static bool is_taken(const char *from, size_t bytes)
{
    bool is = false;
    for (int i = 0; i < PINNED_MAX; i++) is |= shares_page(&pinned[i], from, bytes);
    return is;
}

/* Whether the process has all of it mapped so; mappings come in order of their addresses. */
static bool is_mapped(const char *from, size_t bytes, bool is_written)
{
    uintptr_t at = (uintptr_t)from;
    unsigned long begin, end;
    char mode[5], line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) return true;
    while (at < (uintptr_t)from + bytes && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, mode) != 3 || end <= at) continue;
        if (begin > at || mode[0] != 'r' || (is_written && mode[1] != 'w')) break;
        at = end;
    }
    fclose(maps);
    return at >= (uintptr_t)from + bytes;
}

static _Noreturn void give_up(const char *why, size_t bytes)
{
    fprintf(stderr, "emulated GPU: %zu bytes of the host %s\n", bytes, why);
    abort();
}

void emulated_memory_check_pinned(const void *from, size_t bytes, bool is_written)
{
    const char *at = from;
    for (int i = 0; i < PINNED_MAX; i++)
        if (pinned[i].from && at >= pinned[i].from &&
            at + bytes <= pinned[i].from + pinned[i].bytes && (pinned[i].is_written || !is_written))
            return;
    give_up(is_written ? "are copied to that are not pinned" : "are copied that are not pinned",
            bytes);
}

cudaError_t cudaHostAlloc(void **ret, size_t bytes, unsigned flags)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaHostAlloc");
    if (status) return status;
    *ret = aligned_alloc(ALIGNMENT, rounded(bytes, ALIGNMENT));
    return pin((struct range){*ret, bytes, .is_written = true});
}

/* CUDA promises nobody that it waits. */
static void check_idle(const struct range *range)
{
    if (streams_use(range->from, range->bytes)) give_up("go while they are copied", range->bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    EMULATED_TURN;
    struct range *range = pinned_at(memory);
    if (!range) return cudaErrorInvalidValue;
    check_idle(range);
    *range = (struct range){0};
    free(memory);
    return emulated_ruin();
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    EMULATED_TURN;
    const bool is_written = flags != cudaHostRegisterReadOnly;
    const cudaError_t status = emulated_status("cudaHostRegister");
    if (status) return status;
    if (!is_mapped(memory, bytes, is_written)) return cudaErrorInvalidValue;
    if (is_taken(memory, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
    return pin((struct range){memory, bytes, true, is_written});
}

cudaError_t cudaHostUnregister(void *memory)
{
    EMULATED_TURN;
    struct range *range = pinned_at(memory);
    if (!range) return cudaErrorHostMemoryNotRegistered;
    check_idle(range);
    if (!is_mapped(range->from, range->bytes, range->is_written))
        give_up("are gone that are still pinned", range->bytes);
    *range = (struct range){0};
    return emulated_status("cudaHostUnregister");
}
