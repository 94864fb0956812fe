/* events.c - what is to happen, earliest first: a binary heap. */
#include <assert.h>
#include <stdlib.h>

#include "tests/simulate/world.h"

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void swap(struct event *a, struct event *b)
{
    const struct event kept = *a;
    *a = *b;
    *b = kept;
}

/* The place of one that was taken gets another one, which may belong below it. */
static void sink(struct events *events, int i)
{
    for (;;) {
        int least = i, left = 2 * i + 1, right = left + 1;
        if (left < events->count && is_before(&events->at[left], &events->at[least])) least = left;
        if (right < events->count && is_before(&events->at[right], &events->at[least]))
            least = right;
        if (least == i) return;
        swap(&events->at[i], &events->at[least]);
        i = least;
    }
}

/* Which may belong above it. */
static int rise(struct events *events, int i)
{
    for (int parent; i && is_before(&events->at[i], &events->at[parent = (i - 1) / 2]); i = parent)
        swap(&events->at[i], &events->at[parent]);
    return i;
}

struct event *events_add(struct events *events, const struct event *event)
{
    if (events->count == events->capacity) {
        events->capacity = events->capacity ? 2 * events->capacity : 256;
        events->at = realloc(events->at, (size_t)events->capacity * sizeof *events->at);
        assert(events->at);
    }
    int last = events->count++;
    events->at[last] = *event;
    events->at[last].order = events->added++;
    return &events->at[rise(events, last)];
}

struct event events_take(struct events *events, int i)
{
    assert(i < events->count);
    const struct event taken = events->at[i];
    events->at[i] = events->at[--events->count];
    if (i < events->count) sink(events, rise(events, i));
    return taken;
}
