/* unpacker.c - see unpacker.h. */
#include "core/data/packing/unpacker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/threads/thread.h"

enum { PACKED_BUFFER_BYTES = 64 << 10, BLOCKS = 4, BLOCK_BYTES = UNPACKED_AHEAD_BYTES / BLOCKS };

struct block_of_bytes {
    size_t bytes; /* fewer than BLOCK_BYTES: it is the last, or an error follows */
    uint8_t *at;
};

/* What is above `lock` belongs to the thread, or without one to the reader. */
struct unpacker {
    const struct packing *packing;
    struct unpacking *unpacking;
    struct packed_bytes packed;
    bool is_at_end;                        /* at the end of the last packed member */
    uint64_t packed_count, unpacked_count; /* bytes consumed and made */
    uint8_t buffer[PACKED_BUFFER_BYTES];

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t made_more, freed_more;
    struct block_of_bytes blocks[BLOCKS];
    uint64_t made, freed; /* blocks */
    bool is_stopping;
    bool has_ended; /* no blocks follow those made */
    err failure;    /* likewise, because of this error */
    char failed[ERROR_TEXT_MAX];

    size_t used; /* bytes used of the first block that is not free */
    pthread_t thread;
    bool has_thread;
};

/* ---- unpacking ---- */

/* Reads more packed bytes, if any are left. */
static err refill(struct unpacker *u)
{
    size_t got = 0;
    if (u->unpacking->in_bytes > 0) return OK;
    TRY(u->packed.some(u->packed.from, u->buffer, sizeof u->buffer, &got));
    u->packed_count += got;
    u->unpacking->in = u->buffer;
    u->unpacking->in_bytes = got;
    return OK;
}

/* why: the library's message if data is corrupt; else "" */
static err unpack_failed(const struct unpacker *u, const char *what, const char *why)
{
    return fail(ERR_INPUT, "%s: %s data is %s%s%s at byte %llu of the file (%llu unpacked)",
                u->packed.name, u->packing->name, what, why, *why ? "," : "",
                (unsigned long long)(u->packed_count - u->unpacking->in_bytes),
                (unsigned long long)u->unpacked_count);
}

/* After a member another may follow. After the last packed byte there may still be output. */
static err turn(struct unpacker *u)
{
    TRY(refill(u));
    const bool has_all = u->unpacking->in_bytes == 0;
    const size_t room = u->unpacking->out_bytes;
    const enum unpacked unpacked = u->packing->turn(u->unpacking);
    const bool is_stuck = has_all && u->unpacking->out_bytes == room;
    u->unpacked_count += room - u->unpacking->out_bytes;
    if (unpacked == UNPACKED_NO_MEMORY)
        return fail(ERR_MEMORY, "%s: no memory to unpack", u->packed.name);
    if (unpacked == UNPACKED_CORRUPT) return unpack_failed(u, "corrupt: ", u->unpacking->why);
    if (unpacked == UNPACKED_PART && is_stuck) return unpack_failed(u, "cut off", "");
    if (unpacked == UNPACKED_PART) return OK;
    TRY(refill(u));
    u->is_at_end = u->unpacking->in_bytes == 0;
    if (!u->is_at_end && !u->packing->again(u->unpacking)) return unpack_failed(u, "corrupt", "");
    return OK;
}

/* On an error the block has what was unpacked before. */
static err fill(struct unpacker *u, struct block_of_bytes *block)
{
    err e = OK;
    u->unpacking->out = block->at;
    u->unpacking->out_bytes = BLOCK_BYTES;
    while (!e && u->unpacking->out_bytes > 0 && !u->is_at_end) e = turn(u);
    block->bytes = BLOCK_BYTES - u->unpacking->out_bytes;
    return e;
}

/* ---- ahead ---- */

/* The caller holds the lock, which is released meanwhile. */
static void make_block(struct unpacker *u)
{
    struct block_of_bytes *block = &u->blocks[u->made % BLOCKS];
    pthread_mutex_unlock(&u->lock);
    const err e = fill(u, block);
    pthread_mutex_lock(&u->lock);
    if (e) snprintf(u->failed, sizeof u->failed, "%s", error_text());
    u->failure = e;
    u->has_ended = u->is_at_end;
    u->made++;
    pthread_cond_signal(&u->made_more);
}

static bool has_more(const struct unpacker *u)
{
    return !u->failure && !u->has_ended;
}

static void *make_blocks(void *context)
{
    struct unpacker *u = context;
    pthread_mutex_lock(&u->lock);
    while (!u->is_stopping && has_more(u)) {
        if (u->made - u->freed < BLOCKS)
            make_block(u);
        else
            pthread_cond_wait(&u->freed_more, &u->lock);
    }
    pthread_mutex_unlock(&u->lock);
    return NULL;
}

/* The caller holds the lock. Small files need no thread; without one each block is made when
 * needed. */
static void await_block(struct unpacker *u)
{
    if (!u->has_thread && u->made > 0 && u->packed.may_be_ahead)
        u->has_thread = thread_start(&u->thread, make_blocks, u) == OK;
    if (!u->has_thread) make_block(u);
    while (u->made == u->freed) pthread_cond_wait(&u->made_more, &u->lock);
}

static size_t take(struct unpacker *u, void *to, size_t max)
{
    const struct block_of_bytes *block = &u->blocks[u->freed % BLOCKS];
    const size_t left = block->bytes - u->used, bytes = left < max ? left : max;
    pthread_mutex_unlock(&u->lock); /* the block is not freed meanwhile */
    memcpy(to, block->at + u->used, bytes);
    pthread_mutex_lock(&u->lock);
    u->used += bytes;
    if (u->used < block->bytes) return bytes;
    u->used = 0;
    u->freed++;
    pthread_cond_signal(&u->freed_more);
    return bytes;
}

static err some(struct unpacker *u, void *to, size_t max, size_t *ret_bytes)
{
    *ret_bytes = 0;
    while (*ret_bytes == 0 &&
           (u->made > u->freed || has_more(u))) { /* loops, as a block may be empty */
        if (u->made == u->freed) await_block(u);
        *ret_bytes = take(u, to, max);
    }
    return *ret_bytes || !u->failure ? OK : fail(u->failure, "%s", u->failed);
}

err unpacker_some(struct unpacker *u, void *to, size_t max, size_t *ret_bytes)
{
    pthread_mutex_lock(&u->lock);
    const err e = some(u, to, max, ret_bytes);
    pthread_mutex_unlock(&u->lock);
    return e;
}

void unpacker_pause(struct unpacker *u)
{
    pthread_mutex_lock(&u->lock);
    u->is_stopping = true;
    pthread_cond_signal(&u->freed_more);
    pthread_mutex_unlock(&u->lock);
    if (u->has_thread) pthread_join(u->thread, NULL);
    u->has_thread = u->is_stopping = false;
}

err unpacker_again(struct unpacker *u)
{
    u->made = u->freed = 0;
    u->used = 0;
    u->failure = OK;
    u->is_at_end = u->has_ended = false;
    u->packed_count = u->unpacked_count = 0;
    u->unpacking->in_bytes = 0;
    return u->packing->again(u->unpacking) ? OK : unpack_failed(u, "corrupt", "");
}

/* ---- life ---- */

static err no_memory(const struct unpacker *u)
{
    return fail(ERR_MEMORY, "%s: no memory to unpack %s", u->packed.name, u->packing->name);
}

static err make(struct unpacker *u)
{
    u->unpacking = u->packing->open();
    if (!u->unpacking) return no_memory(u);
    for (int i = 0; i < BLOCKS; i++) {
        u->blocks[i].at = malloc(BLOCK_BYTES);
        if (!u->blocks[i].at) return no_memory(u);
    }
    return OK;
}

err unpacker_open(const struct packing *packing, const struct packed_bytes *packed,
                  struct unpacker **ret)
{
    if (!packing->open)
        return fail(ERR_INPUT,
                    "%s: packed by %s, which this dtrain is built without: unpack it, pack it by "
                    "gzip, or build with lib%s-dev",
                    packed->name, packing->name, packing->name);
    struct unpacker *u = calloc(1, sizeof *u);
    if (!u) return fail(ERR_MEMORY, "%s: no memory to unpack %s", packed->name, packing->name);
    u->packing = packing;
    u->packed = *packed;
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->made_more, NULL);
    pthread_cond_init(&u->freed_more, NULL);
    const err e = make(u);
    if (e)
        unpacker_close(u);
    else
        *ret = u;
    return e;
}

void unpacker_close(struct unpacker *u)
{
    if (!u) return;
    unpacker_pause(u);
    for (int i = 0; i < BLOCKS; i++) free(u->blocks[i].at);
    u->packing->close(u->unpacking);
    pthread_cond_destroy(&u->made_more);
    pthread_cond_destroy(&u->freed_more);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

uint64_t unpacker_ratio_max(const struct unpacker *u)
{
    return u->packing->ratio_max;
}
