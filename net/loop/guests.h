/* guests.h - limits the share of a loop's time that is spent on peers outside the job.
 *
 * Guests are strangers, who have not greeted yet, and visitors. They are served for a slice at a
 * time; after serving them for time t the loop ignores them for GUEST_REST times t, so that all of
 * them together cost a twentieth of its time. Idle time before a turn counts as rest, up to a
 * limit: a worker is a stranger at first, and a job should not begin with waiting. Without members
 * there is no rest.
 *
 * Pure arithmetic: the caller passes the time.
 */
#ifndef NET_LOOP_GUESTS_H
#define NET_LOOP_GUESTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GUEST_REST = 19,
    GUEST_SLICE_US = 1000,    /* after this nothing more is begun */
    GUEST_CREDIT_MS = 20,     /* of service, paid for by idle time before; a greeting is 0.2 */
    GUEST_REST_MAX_MS = 1000, /* also if the process was suspended during a turn */
};

struct guests {
    bool is_serving;
    uint64_t began_ns, rests_until_ns;
};

bool guests_rest(const struct guests *, uint64_t now_ns);
void guests_begin(struct guests *, uint64_t now_ns);
bool guests_had_their_slice(const struct guests *, uint64_t now_ns); /* also true outside a turn */
/* has_members: the loop also serves members. No effect without guests_begin(). */
void guests_end(struct guests *, uint64_t now_ns, bool has_members);

#endif
