/* trace.h - how the tasks make a timeline together.
 *
 * The chief plans one (PLAN) some steps ahead. Every worker records its own first steps from there
 * on, says to every ps when it begins and ends (MARK, END), and sends its spans to ps/0, which
 * passes them on. A ps records while some worker is inside, and sends its spans when all workers
 * that are there have ended. Roles know nothing of it; what belongs to another timeline or another
 * generation is void.
 *
 * Clocks. Each MARK and PUSHING is answered with the ps' clock. No message arrives before it was
 * sent, so each one bounds how far the two clocks are apart; a worker's bounds against ps/0 travel
 * with its spans, the chief has bounds against every ps.
 *
 * Everything is limited: TRACE_SPANS_MAX spans of a task, TRACE_HELD_BYTES_MAX at ps/0 of workers'
 * spans that have not left, TRACE_GATHERED_MAX spans at the chief, and the chief's patience.
 */
#ifndef CORE_CLUSTER_RUNNER_TRACE_TRACE_H
#define CORE_CLUSTER_RUNNER_TRACE_TRACE_H

#include "core/base/trace.h"
#include "core/cluster/role/role.h"

enum {
    TRACE_HELD_BYTES_MAX = 8 << 20,
    TRACE_GATHERED_MAX = 1 << 20, /* 40 MB */
    TRACE_PATIENCE_MS = 5000,     /* of the chief after its last step; more where steps are long */
    TRACE_COLLECT_PATIENCE_MS = 500, /* after COLLECT */
};

/* How far the other clock is ahead of mine: from low_ns to high_ns. */
struct clock_bounds {
    int64_t low_ns, high_ns;
    bool is_known;
};
/* A message left here, came there, its answer left there and came here. Times that cannot be are
 * left out. */
struct round_trip {
    uint64_t sent_ns, heard_ns, answered_ns, back_ns;
};
void clock_bounds_add(struct clock_bounds *, const struct round_trip *);
/* How far the third clock is ahead of the first, by what the second is ahead of the first, and the
 * third of the second. */
struct clock_bounds clock_bounds_chain(const struct clock_bounds *, const struct clock_bounds *);
struct clock_bounds clock_bounds_turn(const struct clock_bounds *); /* seen from the other side */
int64_t clock_bounds_middle_ns(const struct clock_bounds *);
uint64_t clock_bounds_error_ns(const struct clock_bounds *);

/* The body of CLOCK: the three times that its receiver does not know. */
enum { TRACE_CLOCK_NUMBERS = 3 };
void trace_clock_pack(const struct round_trip *, uint64_t ret_numbers[TRACE_CLOCK_NUMBERS]);
bool trace_clock_unpack(const struct message *, struct round_trip *ret); /* all but back_ns */

/* What a task sends: its spans, and of a worker its clock against ps/0. */
struct trace_part {
    struct span *spans;
    int count;
    uint64_t dropped;
    struct clock_bounds clock;
};
/* How large subjects may be, by what they are. */
struct trace_limits {
    int nodes, ps_count, workers;
};
size_t trace_part_bytes(int count);
void trace_part_pack(const struct trace *, const struct clock_bounds *, void *ret_body);
/* Spans are malloc'ed, at most max of them; the others count as dropped. ERR_PROTOCOL: it is none,
 * or names what cannot be. */
err trace_part_unpack(const struct message *, const struct trace_limits *, int max,
                      struct trace_part *ret);

#endif
