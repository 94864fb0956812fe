/* trace.h - the timeline that all tasks record together.
 *
 * The chief plans one (PLAN) some steps ahead. Every worker records its own first steps from there
 * on, tells every ps when it begins and ends (MARK, END), and sends its spans to ps/0, which
 * forwards them. A ps records while any worker does, and sends its spans when all connected workers
 * have ended. Roles are not involved; messages of another timeline or generation are ignored.
 *
 * Clocks. Each MARK and PUSHING is answered with the ps' clock. No message arrives before it was
 * sent, so each one bounds the difference of the two clocks; a worker's bounds against ps/0 are
 * sent with its spans, the chief has bounds against every ps.
 *
 * Everything is limited: TRACE_SPANS_MAX spans per task, TRACE_HELD_BYTES_MAX bytes of workers'
 * spans queued at ps/0, TRACE_GATHERED_MAX spans at the chief, and how long the chief waits.
 */
#ifndef CORE_CLUSTER_RUNNER_TRACE_TRACE_H
#define CORE_CLUSTER_RUNNER_TRACE_TRACE_H

#include "core/base/trace.h"
#include "core/cluster/role/role.h"

enum {
    TRACE_HELD_BYTES_MAX = 8 << 20,
    TRACE_GATHERED_MAX = 1 << 20,    /* 40 MB */
    TRACE_PATIENCE_MS = 5000,        /* the chief's wait after its last step; longer if steps are */
    TRACE_COLLECT_PATIENCE_MS = 500, /* after COLLECT */
};

/* How far the other clock is ahead of mine: from low_ns to high_ns. */
struct clock_bounds {
    int64_t low_ns, high_ns;
    bool is_known;
};
/* Sent here, received there, answered there, answer received here. clock_bounds_add ignores
 * impossible times. */
struct round_trip {
    uint64_t sent_ns, heard_ns, answered_ns, back_ns;
};
void clock_bounds_add(struct clock_bounds *, const struct round_trip *);
/* How far a third clock is ahead of the first, from second against first and third against second.
 */
struct clock_bounds clock_bounds_chain(const struct clock_bounds *, const struct clock_bounds *);
struct clock_bounds clock_bounds_turn(const struct clock_bounds *); /* the inverse direction */
int64_t clock_bounds_middle_ns(const struct clock_bounds *);
uint64_t clock_bounds_error_ns(const struct clock_bounds *);

/* The body of CLOCK: all times except back_ns, which its receiver knows. */
enum { TRACE_CLOCK_NUMBERS = 3 };
void trace_clock_pack(const struct round_trip *, uint64_t ret_numbers[TRACE_CLOCK_NUMBERS]);
bool trace_clock_unpack(const struct message *, struct round_trip *ret); /* all but back_ns */

/* What a task sends: its spans, and a worker also its clock against ps/0. */
struct trace_part {
    struct span *spans;
    int count;
    uint64_t dropped;
    struct clock_bounds clock;
};
/* Upper bounds of subjects, by type. */
struct trace_limits {
    int nodes, ps_count, workers;
};
size_t trace_part_bytes(int count);
void trace_part_pack(const struct trace *, const struct clock_bounds *, void *ret_body);
/* Spans are malloc'ed, at most max of them; the others count as dropped. ERR_PROTOCOL: malformed,
 * or a subject out of range. */
err trace_part_unpack(const struct message *, const struct trace_limits *, int max,
                      struct trace_part *ret);

#endif
