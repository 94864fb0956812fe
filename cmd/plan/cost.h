/* cost.h - estimates how long a step takes between hosts, from what it computes and sends.
 *
 * Each task has a host of its own, or several share one. Each host has a link of the same rate in
 * each direction; traffic within a host does not use it. With W workers, u[p] bytes of a push to ps
 * p and d[p] of its answer, of which those of dense variables may travel while the worker computes
 * (core/base/overlap.h), a worker's step takes
 *
 *     max(computing, dense bytes) + other bytes up + updates + other bytes down + round trip
 *
 * Synchronously all push at once: W * u[p] and W * d[p] pass the link of a ps, the sums over all ps
 * that of a worker, and the longer time counts; a ps updates once per round. Asynchronously a
 * worker has the links to itself; W such steps are done in that time, or as many as the link or the
 * updates of the busiest ps allow. On a shared host the sums over its tasks count, per direction.
 * Not modelled: unequal hosts, lost packets, and cores that tasks of a host share (each computes as
 * long as was measured).
 */
#ifndef CMD_PLAN_COST_H
#define CMD_PLAN_COST_H

#include <stdbool.h>

/* Per step, between one worker and one ps */
struct plan_bytes {
    double dense_up, dense_down, rows_up, rows_down;
};

/* Seconds; has_any false: unknown */
struct plan_costs {
    bool has_any;
    double computing; /* of a worker, per step; with hooks and waiting for data */
    double updating;  /* per push, or per round, if one ps had all variables */
};

struct plan_case {
    int ps, workers;
    double batch; /* rows */
    bool is_sync, overlaps;
    double link_bytes_s, round_trip_s;
    const struct plan_bytes *bytes;   /* [ps] */
    int host_count;                   /* 0: each task has its own host */
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
    double step_s;               /* of a round; if asynchronous, of each worker */
    double examples_s;           /* of all workers */
    double parts_s[BOUND_COUNT]; /* seconds that each part takes by itself */
    enum plan_bound bound;       /* the longest of these */
    int ps;                      /* index of the ps with most to send or update */
};

/* Unknown costs count as 0: then a step takes only what the links need. */
struct plan_time plan_time_of(const struct plan_case *);

/* "computing" */
const char *plan_bound_name(enum plan_bound);

#endif
