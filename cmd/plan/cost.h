/* cost.h - how long a step takes between hosts, by what it computes and what it sends.
 *
 * Each task has a host of its own, or several share one; each host has a link of the same rate each
 * way, which what stays within a host does not pass. With W workers and the bytes u[p] of a push to
 * ps p and d[p] of its answer, of which those of dense variables may travel while the worker
 * computes (core/base/overlap.h), a step of a worker in turn takes
 *
 *     max(computing, dense bytes) + other bytes up + updates + other bytes down + round trip
 *
 * Synchronously all push at once: of a ps W * u[p] and W * d[p] pass its link, of a worker the sums
 * over all ps, and the longer one counts; a ps updates once a round. Asynchronously a worker has
 * the links for itself, and there are W such steps in a turn, or as many as the link or the updates
 * of the ps that is used most let pass. Of a host that tasks share the sums over them count, each
 * way. Nothing is known here of hosts that are unequal, of lost packets, or of cores that tasks of
 * a host share: each computes as long as it was measured.
 */
#ifndef CMD_PLAN_COST_H
#define CMD_PLAN_COST_H

#include <stdbool.h>

/* Of one worker and one ps, a step */
struct plan_bytes {
    double dense_up, dense_down, rows_up, rows_down;
};

/* Seconds; has_any: they are known */
struct plan_costs {
    bool has_any;
    double computing; /* of a worker, a step: with waiting for data, and hooks */
    double updating;  /* of one ps, if all variables were there: a push, or a round */
};

struct plan_case {
    int ps, workers;
    double batch; /* rows */
    bool is_sync, overlaps;
    double link_bytes_s, round_trip_s;
    const struct plan_bytes *bytes;   /* [ps] */
    int host_count;                   /* 0: each task has its own */
    const int *ps_host, *worker_host; /* [ps], [workers] below host_count */
    struct plan_costs costs;
};

enum plan_bound {
    BOUND_COMPUTING,
    BOUND_WORKER_LINK,
    BOUND_PS_LINK,
    BOUND_SHARED_LINK, /* of a host with both */
    BOUND_UPDATING,
    BOUND_ROUND_TRIP,
    BOUND_COUNT
};

struct plan_time {
    double step_s;               /* of a round; asynchronously of each worker */
    double examples_s;           /* of all workers */
    double parts_s[BOUND_COUNT]; /* seconds that each would take by itself */
    enum plan_bound bound;       /* the longest of these */
    int ps;                      /* index of the ps with most to send or update */
};

/* Unknown costs count as 0: then a step takes what the links need. */
struct plan_time plan_time_of(const struct plan_case *);

/* "computing" */
const char *plan_bound_name(enum plan_bound);

#endif
