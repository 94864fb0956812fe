/* guests.c - see guests.h. */
#include "net/guests.h"

#include <assert.h>

bool guests_rest(const struct guests *guests, uint64_t now_ns)
{
    return now_ns < guests->rests_until_ns;
}

void guests_begin(struct guests *guests, uint64_t now_ns)
{
    assert(!guests->is_serving);
    guests->is_serving = true;
    guests->began_ns = now_ns;
}

bool guests_had_their_slice(const struct guests *guests, uint64_t now_ns)
{
    return !guests->is_serving || now_ns - guests->began_ns >= GUEST_SLICE_US * UINT64_C(1000);
}

void guests_end(struct guests *guests, uint64_t now_ns, bool has_members)
{
    if (!guests->is_serving) return;
    const uint64_t rest_max_ns = GUEST_REST_MAX_MS * UINT64_C(1000000);
    const uint64_t took_ns = now_ns - guests->began_ns;
    const bool is_long = took_ns > rest_max_ns / GUEST_REST;
    guests->is_serving = false;
    if (!has_members) return;
    guests->rests_until_ns = now_ns + (is_long ? rest_max_ns : took_ns * GUEST_REST);
}
