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

struct event *events_add(struct events *events, const struct event *event)
{
    if (events->count == events->capacity) {
        events->capacity = events->capacity ? 2 * events->capacity : 256;
        events->at = realloc(events->at, (size_t)events->capacity * sizeof *events->at);
        assert(events->at);
    }
    int i = events->count++;
    events->at[i] = *event;
    events->at[i].order = events->added++;
    for (int parent; i && is_before(&events->at[i], &events->at[parent = (i - 1) / 2]); i = parent)
        swap(&events->at[i], &events->at[parent]);
    return &events->at[i];
}

bool events_take(struct events *events, struct event *ret)
{
    if (!events->count) return false;
    *ret = events->at[0];
    events->at[0] = events->at[--events->count];
    for (int i = 0;;) {
        int least = i, left = 2 * i + 1, right = left + 1;
        if (left < events->count && is_before(&events->at[left], &events->at[least])) least = left;
        if (right < events->count && is_before(&events->at[right], &events->at[least]))
            least = right;
        if (least == i) return true;
        swap(&events->at[i], &events->at[least]);
        i = least;
    }
}
