/* lateness.h - finds the worker for which synchronous rounds wait: in each round the one whose
 * gradient came last, and how long after the last but one. The worker or its link is slow; the step
 * times of others do not show that, since all wait for the round. */
#ifndef CORE_CLUSTER_RUNNER_LATENESS_H
#define CORE_CLUSTER_RUNNER_LATENESS_H

#include <stdint.h>

#include "core/base/error.h"

struct lateness {
    int workers;
    struct late_worker *at; /* [workers] */
    int latest;             /* the one that has cost most recently; -1: none */
    double waited_s;        /* total of such waits, for whichever worker was `latest` */
};

err lateness_open(struct lateness *, int workers);
void lateness_close(struct lateness *); /* a zeroed one is fine */
void lateness_came(struct lateness *, int worker, uint64_t now_ns);
/* A round has ended with the gradients of these workers. */
void lateness_round(struct lateness *, const int *workers, int count);

#endif
