/* guests.h - how much of a loop's time goes to those who do not belong to the job.
 *
 * Guests are strangers who have not said who they are yet, and visitors. They are served for a
 * slice at a time, and after what took t they rest for GUEST_REST times t, so that any number of
 * them costs a twentieth of the loop's time. A rest may have gone by beforehand: a worker that
 * comes is a stranger at first, and a job does not begin with waiting. Where nobody but guests is
 * there they need no rest.
 *
 * Only arithmetic: time is given.
 */
#ifndef NET_LOOP_GUESTS_H
#define NET_LOOP_GUESTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GUEST_REST = 19,
    GUEST_SLICE_US = 1000, /* then nothing more is begun */
    GUEST_CREDIT_MS = 20,  /* of service that a rest beforehand is good for; 0.2 are a greeting */
    GUEST_REST_MAX_MS = 1000, /* also for a process that was stopped while it served them */
};

struct guests {
    bool is_serving;
    uint64_t began_ns, rests_until_ns;
};

bool guests_rest(const struct guests *, uint64_t now_ns);
void guests_begin(struct guests *, uint64_t now_ns);
bool guests_had_their_slice(const struct guests *, uint64_t now_ns); /* or are not served at all */
/* has_members: somebody else waits for the loop's time. Without a begin nothing happens. */
void guests_end(struct guests *, uint64_t now_ns, bool has_members);

#endif
