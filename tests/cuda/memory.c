/* memory.c - the emulated GPU's memory: each allocation ends where a page ends, before one that
 * nobody may touch, and is itself for nobody while no work is done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/cuda/emulated.h"
#include "tests/cuda/emulation.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(from, bytes) (void)(from)
#define __asan_unpoison_memory_region(from, bytes) (void)(from)
#endif

enum { PIECES_MAX = 4096, PAGE = 4096, ALIGNMENT = 64, UNWRITTEN = 0xff, END_BYTES = 256 << 10 };

struct piece {
    char *pages; /* NULL: free */
    size_t page_bytes, bytes;
    char *memory;
    bool is_managed; /* of the host too */
};

static struct piece pieces[PIECES_MAX];
static int piece_count; /* those behind are all free */
static size_t taken, all = 1 << 30;
static bool is_open;

void emulated_set_memory(size_t bytes)
{
    all = bytes;
}

size_t emulated_memory_taken(void)
{
    return taken;
}

/* Of a large piece both ends alone: the system takes time for every page, each time. */
static void protect_piece(const struct piece *piece, int protection)
{
    const bool is_large = piece->page_bytes > 2 * END_BYTES;
    const size_t bytes = is_large ? END_BYTES : piece->page_bytes;
    (void)mprotect(piece->pages, bytes, protection);
    if (is_large) (void)mprotect(piece->pages + piece->page_bytes - bytes, bytes, protection);
}

static void protect(int protection)
{
    for (int i = 0; i < piece_count; i++)
        if (pieces[i].pages && !pieces[i].is_managed) protect_piece(&pieces[i], protection);
    is_open = protection != PROT_NONE;
}

void emulated_memory_open(void)
{
    if (!is_open) protect(PROT_READ | PROT_WRITE);
}

void emulated_memory_close(void)
{
    if (is_open) protect(PROT_NONE);
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
    if (bytes > all || taken > all - bytes || !piece) return cudaErrorMemoryAllocation;
    const size_t page_bytes = rounded(whole, PAGE);
    char *pages =
        mmap(NULL, page_bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return cudaErrorMemoryAllocation;
    (void)mprotect(pages + page_bytes, PAGE, PROT_NONE);
    *piece = (struct piece){pages, page_bytes, bytes, pages + page_bytes - whole, is_managed};
    memset(pages, UNWRITTEN, page_bytes);
    __asan_poison_memory_region(pages, page_bytes);
    __asan_unpoison_memory_region(piece->memory, bytes);
    if (!is_managed && !is_open) protect_piece(piece, PROT_NONE);
    taken += bytes;
    *ret = piece->memory;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
    const cudaError_t status = emulated_status("cudaMalloc");
    return status ? status : take(ret, bytes, false);
}

cudaError_t cudaMallocManaged(void **ret, size_t bytes, unsigned flags)
{
    const cudaError_t status = emulated_status("cudaMallocManaged");
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

cudaError_t cudaFree(void *memory)
{
    emulated_finish();
    if (!memory) return cudaSuccess;
    int i = 0;
    while (i < piece_count && (!pieces[i].pages || pieces[i].memory != memory)) i++;
    if (i == piece_count) return cudaErrorInvalidValue;
    struct piece *piece = &pieces[i];
    (void)mprotect(piece->pages, piece->page_bytes, PROT_READ | PROT_WRITE);
    check_end(piece);
    (void)munmap(piece->pages, piece->page_bytes + PAGE);
    taken -= piece->bytes;
    *piece = (struct piece){0};
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_all)
{
    *ret_free = taken < all ? all - taken : 0;
    *ret_all = all;
    return emulated_status("cudaMemGetInfo");
}

cudaError_t cudaHostAlloc(void **ret, size_t bytes, unsigned flags)
{
    *ret = aligned_alloc(ALIGNMENT, rounded(bytes, ALIGNMENT));
    return *ret ? emulated_status("cudaHostAlloc") : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    emulated_finish();
    free(memory);
    return cudaSuccess;
}
