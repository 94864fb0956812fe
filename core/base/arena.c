/* arena.c - blocks of memory, handed out from the front of the newest. */
#include "core/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_BLOCK_BYTES = 16 << 10 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;                      /* bytes of memory[] */
    _Alignas(ARENA_ALIGN) uint8_t memory[]; /* zeroed when the block is made */
};

/* A peer can make an arena keep short texts only, so this is not worth an error in every caller. */
_Noreturn static void out_of_memory(size_t bytes)
{
    fprintf(stderr, "out of memory: %zu bytes for a description\n", bytes);
    exit(EXIT_FAILURE);
}

static struct arena_block *add_block(struct arena *arena, size_t bytes)
{
    size_t size = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
    struct arena_block *block = calloc(1, sizeof *block + size);
    if (!block) out_of_memory(size);
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *arena_new(struct arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - ARENA_BLOCK_BYTES) out_of_memory(bytes);
    size_t wanted = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (wanted == 0) wanted = ARENA_ALIGN; /* so that every result is a distinct address */

    struct arena_block *block = arena->blocks;
    if (!block || block->size - block->used < wanted) block = add_block(arena, wanted);
    void *result = block->memory + block->used;
    block->used += wanted;
    return result;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) out_of_memory(SIZE_MAX);
    return arena_new(arena, bytes);
}

char *arena_string(struct arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(arena_new(arena, bytes), text, bytes);
}

const char **arena_strings(struct arena *arena, const char *const *texts, int count)
{
    const char **copies = arena_array(arena, (size_t)count, sizeof *copies);
    for (int i = 0; i < count; i++) copies[i] = arena_string(arena, texts[i]);
    return copies;
}

char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    size_t bytes = length < 0 ? 1 : (size_t)length + 1;
    char *text = arena_new(arena, bytes);
    if (length >= 0) vsnprintf(text, bytes, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}

void arena_free(struct arena *arena)
{
    struct arena_block *block = arena->blocks;
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
}
