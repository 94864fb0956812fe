/* lateness.h - for whom synchronous rounds wait: of each the worker whose gradient came last, and
 * how long after the last but one. Its link, or what it does, is slow; nobody else sees that, since
 * all wait for the round together.
 */
#ifndef CORE_CLUSTER_RUNNER_LATENESS_H
#define CORE_CLUSTER_RUNNER_LATENESS_H

#include <stdint.h>

#include "core/base/error.h"

struct lateness {
    int workers;
    struct late_worker *at; /* [workers] */
    int latest;             /* who has cost most lately; -1: nobody */
    double waited_s;        /* in all, for whoever was that then */
};

err lateness_open(struct lateness *, int workers);
void lateness_close(struct lateness *); /* a zeroed one is fine */
void lateness_came(struct lateness *, int worker, uint64_t now_ns);
/* A round is of these. */
void lateness_round(struct lateness *, const int *workers, int count);

#endif
