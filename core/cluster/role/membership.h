/* membership.h - which tasks of a cluster take part: the first `count` of each job.
 *
 * Lists of hosts may name more, and a cluster with a coordinator has room for the maximum. A resize
 * makes the next membership: the chief has a checkpoint made at a snapshot, with all workers held,
 * and sends RESIZE; every task then ends, and starts again in the new membership from that
 * checkpoint, if it takes part there. A task that was away, or is restarted, learns the latest
 * membership from the greeting of any link (greeting.h).
 */
#ifndef CORE_CLUSTER_ROLE_MEMBERSHIP_H
#define CORE_CLUSTER_ROLE_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

struct message;

enum job { JOB_PS, JOB_WORKER, JOB_COUNT };

struct membership {
    uint64_t resizes; /* so far; 0: as the job began */
    int count[JOB_COUNT];
};

bool membership_is_same(const struct membership *, const struct membership *);

/* "3 workers, 4 ps" */
enum { MEMBERSHIP_TEXT_MAX = 48 };
const char *membership_text(const struct membership *, char text[MEMBERSHIP_TEXT_MAX]);

/* To and from the body of SCALE and RESIZE, in the byte order of the wire. */
enum { MEMBERSHIP_NUMBERS = 1 + JOB_COUNT };
void membership_pack(const struct membership *, uint64_t ret_numbers[MEMBERSHIP_NUMBERS]);
bool membership_unpack(const struct message *, struct membership *ret); /* false: not valid */

#endif
