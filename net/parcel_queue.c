/* parcel_queue.c - a circular array of parcels. */
#include "net/parcel_queue.h"

#include "net/transport.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_START = 16 };

struct parcel *parcel_queue_at(struct parcel_queue *queue, size_t index)
{
    assert(index < queue->count);
    return &queue->at[(queue->first + index) % queue->capacity];
}

static err grow(struct parcel_queue *queue)
{
    const size_t capacity = queue->capacity ? 2 * queue->capacity : QUEUE_START;
    struct parcel *at = calloc(capacity, sizeof *at);
    if (!at) return fail(ERR_MEMORY, "no memory for a queue of %zu messages", capacity);
    for (size_t i = 0; i < queue->count; i++) at[i] = *parcel_queue_at(queue, i);
    free(queue->at);
    queue->at = at;
    queue->first = 0;
    queue->capacity = capacity;
    return OK;
}

static err check_limits(const struct parcel_queue *queue, const struct parcel *parcel)
{
    if (queue->count >= LINK_QUEUE_MAX)
        return fail(ERR_PEER, "does not read what it is sent: %zu messages wait, the limit is %d",
                    queue->count, LINK_QUEUE_MAX);
    if (parcel->is_body && parcel->payload_bytes > MESSAGE_BODY_MAX - queue->body_bytes)
        return fail(ERR_PEER, "does not read what it is sent: %zu bytes wait, the limit is %d",
                    queue->body_bytes + parcel->payload_bytes, MESSAGE_BODY_MAX);
    return OK;
}

/* A parcel of which bytes have been sent cannot be overtaken. */
static bool overtakes(const struct parcel *parcel, const struct parcel *before)
{
    return before->yields && !before->sent && parcel->urgency > before->urgency;
}

static void place(struct parcel_queue *queue, const struct parcel *parcel)
{
    size_t at = queue->count++;
    for (; at > 0 && overtakes(parcel, parcel_queue_at(queue, at - 1)); at--)
        *parcel_queue_at(queue, at) = *parcel_queue_at(queue, at - 1);
    *parcel_queue_at(queue, at) = *parcel;
}

err parcel_queue_add(struct parcel_queue *queue, const struct parcel *parcel)
{
    TRY(check_limits(queue, parcel));
    if (queue->count == queue->capacity) TRY(grow(queue));
    struct parcel copy = *parcel;
    if (parcel->is_body) {
        void *body = malloc(parcel->payload_bytes);
        if (!body) return fail(ERR_MEMORY, "no memory for %zu bytes", parcel->payload_bytes);
        copy.payload = memcpy(body, parcel->payload, parcel->payload_bytes);
        queue->body_bytes += parcel->payload_bytes;
    }
    place(queue, &copy);
    return OK;
}

struct parcel parcel_queue_take(struct parcel_queue *queue)
{
    const struct parcel oldest = *parcel_queue_at(queue, 0);
    if (oldest.is_body) queue->body_bytes -= oldest.payload_bytes;
    queue->first = (queue->first + 1) % queue->capacity;
    queue->count--;
    return oldest;
}

void parcel_free(struct parcel *parcel)
{
    if (parcel->is_body) free((void *)parcel->payload);
}

void parcel_queue_pop(struct parcel_queue *queue)
{
    struct parcel oldest = parcel_queue_take(queue);
    parcel_free(&oldest);
}

void parcel_queue_free(struct parcel_queue *queue)
{
    while (queue->count > 0) parcel_queue_pop(queue);
    free(queue->at);
    *queue = (struct parcel_queue){0};
}

size_t parcel_queue_bytes(const struct parcel_queue *queue, bool with_stretches)
{
    size_t bytes = 0;
    for (size_t i = 0; i < queue->count; i++) {
        const struct parcel *parcel = &queue->at[(queue->first + i) % queue->capacity];
        const bool travels = parcel->is_body || with_stretches;
        bytes += parcel_bytes(parcel) - parcel->sent - (travels ? 0 : parcel->payload_bytes);
    }
    return bytes;
}

size_t parcel_bytes(const struct parcel *parcel)
{
    return sizeof parcel->header + parcel->payload_bytes;
}
