/* guests.c - see guests.h. */
#include "net/loop/guests.h"

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

/* The idle time that counts as rest begins here: at the end of the last rest, but at most the
 * credit before this turn. */
static uint64_t credit_since_ns(const struct guests *guests)
{
    const uint64_t credit_ns = GUEST_CREDIT_MS * UINT64_C(1000000) * GUEST_REST;
    const uint64_t first_ns = guests->began_ns > credit_ns ? guests->began_ns - credit_ns : 0;
    return guests->rests_until_ns > first_ns ? guests->rests_until_ns : first_ns;
}

void guests_end(struct guests *guests, uint64_t now_ns, bool has_members)
{
    if (!guests->is_serving) return;
    const uint64_t last_ns = now_ns + GUEST_REST_MAX_MS * UINT64_C(1000000);
    const uint64_t took_ns = now_ns - guests->began_ns;
    guests->is_serving = false;
    if (!has_members) return;
    const uint64_t until_ns = credit_since_ns(guests) + took_ns * (1 + GUEST_REST);
    guests->rests_until_ns = until_ns < last_ns ? until_ns : last_ns;
}
