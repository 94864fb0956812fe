/* roster.h - which tasks of a cluster take part: the first so many of each job.
 *
 * Lists of hosts may name more, and a cluster that has a name has room for as many as there can be.
 * A move makes a roster of the next number: the chief has a checkpoint made at a cut, at which
 * everybody is held, and says MOVE; every task then ends, and begins again in the other roster from
 * just that checkpoint, where it has a place there. Whoever was away, or is started again, hears of
 * the latest roster with the first words of any link (greeting.h).
 */
#ifndef CORE_CLUSTER_ROLE_MOVES_ROSTER_H
#define CORE_CLUSTER_ROLE_MOVES_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

struct message;

enum job { JOB_PS, JOB_WORKER, JOB_COUNT };

struct roster {
    uint64_t moves; /* that led to it; 0: as the job began */
    int count[JOB_COUNT];
};

bool roster_is_same(const struct roster *, const struct roster *);

/* "3 workers, 4 ps" */
enum { ROSTER_TEXT_MAX = 48 };
const char *roster_text(const struct roster *, char text[ROSTER_TEXT_MAX]);

/* A body in the byte order of the wire: SCALE and MOVE. */
enum { ROSTER_NUMBERS = 1 + JOB_COUNT };
void roster_pack(const struct roster *, uint64_t ret_numbers[ROSTER_NUMBERS]);
bool roster_unpack(const struct message *, struct roster *ret); /* false: it is none */

#endif
