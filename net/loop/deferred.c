/* deferred.c - see deferred.h. */
#include "net/loop/deferred.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool deferred_has_room(const struct deferred *a, size_t body_bytes)
{
    return a->count < DEFERRED_MAX && body_bytes <= DEFERRED_BYTES_MAX - a->bytes;
}

static err make_room(struct deferred *a)
{
    if (a->count < a->capacity) return OK;
    const int capacity = a->capacity ? 2 * a->capacity : 4;
    struct message *at = realloc(a->at, (size_t)capacity * sizeof *at);
    if (!at) return fail(ERR_MEMORY, "no memory for %d messages", capacity);
    a->at = at;
    a->capacity = capacity;
    return OK;
}

err deferred_add(struct deferred *a, const struct message *m)
{
    void *body = NULL;
    assert(deferred_has_room(a, m->body_bytes));
    TRY(make_room(a));
    if (m->body_bytes > 0 && !(body = malloc(m->body_bytes)))
        return fail(ERR_MEMORY, "no memory for a body of %u bytes", m->body_bytes);
    if (body) memcpy(body, m->body, m->body_bytes);
    a->at[a->count] = *m;
    a->at[a->count++].body = body;
    a->bytes += m->body_bytes;
    return OK;
}

void deferred_free(struct deferred *a)
{
    for (int i = 0; i < a->count; i++) free((void *)a->at[i].body);
    free(a->at);
    *a = (struct deferred){0};
}
