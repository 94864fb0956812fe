/* membership.h - which tasks of a cluster take part: the first so many of each job.
 *
 * Lists of hosts may name more, and a cluster that has a name has room for as many as there can be.
 * A resize makes a membership of the next number: the chief has a checkpoint made at a snapshot, at
 * which everybody is held, and says RESIZE; every task then ends, and begins again in the other
 * membership from just that checkpoint, where it has a place there. Whoever was away, or is started
 * again, hears of the latest membership with the first words of any link (greeting.h).
 */
#ifndef CORE_CLUSTER_ROLE_MEMBERSHIP_H
#define CORE_CLUSTER_ROLE_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

struct message;

enum job { JOB_PS, JOB_WORKER, JOB_COUNT };

struct membership {
    uint64_t resizes; /* that led to it; 0: as the job began */
    int count[JOB_COUNT];
};

bool membership_is_same(const struct membership *, const struct membership *);

/* "3 workers, 4 ps" */
enum { MEMBERSHIP_TEXT_MAX = 48 };
const char *membership_text(const struct membership *, char text[MEMBERSHIP_TEXT_MAX]);

/* A body in the byte order of the wire: SCALE and RESIZE. */
enum { MEMBERSHIP_NUMBERS = 1 + JOB_COUNT };
void membership_pack(const struct membership *, uint64_t ret_numbers[MEMBERSHIP_NUMBERS]);
bool membership_unpack(const struct message *, struct membership *ret); /* false: it is none */

#endif
