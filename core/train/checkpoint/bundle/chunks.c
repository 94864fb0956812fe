/* chunks.c - see chunks.h. A ring of chunks: those from `taken` to `filled` have been read and not
 * yet returned by the caller. */
#include "core/train/checkpoint/bundle/chunks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/threads/thread.h"

struct chunks {
    const struct file_reader *source;
    int64_t offset, bytes, chunk_bytes, chunk_count;
    uint8_t *ring;
    int64_t ring_chunks;
    int64_t next; /* the next chunk for the caller, who uses the one before it */

    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    int64_t filled, taken;
    bool is_over; /* no more chunks are wanted */
    err failed;
    char why[ERROR_TEXT_MAX];
};

static int64_t bytes_of(const struct chunks *c, int64_t chunk)
{
    const int64_t left = c->bytes - chunk * c->chunk_bytes;
    return left < c->chunk_bytes ? left : c->chunk_bytes;
}

static uint8_t *place_of(const struct chunks *c, int64_t chunk)
{
    return c->ring + chunk % c->ring_chunks * c->chunk_bytes;
}

static err read_chunk(struct chunks *c, int64_t chunk)
{
    const size_t bytes = (size_t)bytes_of(c, chunk);
    return file_reader_read(c->source, c->offset + chunk * c->chunk_bytes, place_of(c, chunk),
                            bytes);
}

/* ---- in the thread ---- */

static bool wait_for_room(struct chunks *c, int64_t chunk)
{
    pthread_mutex_lock(&c->lock);
    while (!c->is_over && chunk - c->taken >= c->ring_chunks)
        pthread_cond_wait(&c->changed, &c->lock);
    const bool goes_on = !c->is_over;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static void tell(struct chunks *c, err e)
{
    pthread_mutex_lock(&c->lock);
    c->failed = e;
    if (e)
        strcpy(c->why, error_text());
    else
        c->filled++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void *run(void *context)
{
    struct chunks *c = context;
    err e = OK;
    for (int64_t i = 0; !e && i < c->chunk_count && wait_for_room(c, i); i++) {
        e = read_chunk(c, i);
        tell(c, e);
    }
    return NULL;
}

/* ---- outside of it ---- */

err chunks_open(const struct file_reader *source, int64_t offset, int64_t bytes,
                int64_t chunk_bytes, struct chunks **ret)
{
    struct chunks *c = calloc(1, sizeof *c);
    if (!c) return fail(ERR_MEMORY, "%s: no memory to read it", source->path);
    c->source = source;
    c->offset = offset;
    c->bytes = bytes;
    c->chunk_bytes = chunk_bytes;
    c->chunk_count = (bytes + chunk_bytes - 1) / chunk_bytes;
    c->ring_chunks = c->chunk_count < CHUNKS_MAX ? c->chunk_count : CHUNKS_MAX;
    c->ring = malloc((size_t)(c->ring_chunks * chunk_bytes) + 1);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    if (!c->ring) {
        chunks_close(c);
        return fail(ERR_MEMORY, "%s: no memory to read it", source->path);
    }
    c->has_thread = c->chunk_count > 1 && !thread_start(&c->thread, run, c);
    *ret = c;
    return OK;
}

void chunks_close(struct chunks *c)
{
    if (!c) return;
    if (c->has_thread) {
        pthread_mutex_lock(&c->lock);
        c->is_over = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->ring);
    free(c);
}

/* Frees the caller's last chunk and waits for the next one. */
static err wait_for_chunk(struct chunks *c)
{
    pthread_mutex_lock(&c->lock);
    c->taken = c->next;
    pthread_cond_broadcast(&c->changed);
    while (c->filled <= c->next && !c->failed) pthread_cond_wait(&c->changed, &c->lock);
    const err e = c->filled <= c->next ? c->failed : OK;
    pthread_mutex_unlock(&c->lock);
    return e ? fail(e, "%s", c->why) : OK;
}

err chunks_next(struct chunks *c, const uint8_t **ret, int64_t *ret_bytes)
{
    *ret_bytes = 0;
    if (c->next == c->chunk_count) return OK;
    TRY(c->has_thread ? wait_for_chunk(c) : read_chunk(c, c->next));
    *ret = place_of(c, c->next);
    *ret_bytes = bytes_of(c, c->next++);
    return OK;
}
