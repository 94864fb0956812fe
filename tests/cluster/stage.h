/* stage.h - a cluster of roles in one process, without any I/O.
 *
 * Roles act on a virtual clock; their messages wait in one queue per direction of each pair, and a
 * seed decides whose is delivered next, so that every order that a network could make can be tried
 * and repeated. Values are not computed: the stage records what each ps was asked to apply.
 */
#ifndef TESTS_CLUSTER_STAGE_H
#define TESTS_CLUSTER_STAGE_H

#include "core/cluster/ps_role.h"
#include "core/cluster/worker_role.h"

enum { STAGE_PS_MAX = 4, STAGE_WORKERS_MAX = 8, STAGE_APPLIED_MAX = 4096 };

struct stage_options {
    int ps_count, workers;
    struct ps_config config;
    uint32_t gradients_per_push;
    bool drops_gradients;
    uint64_t seed;
    uint64_t block_bytes[STAGE_PS_MAX]; /* 0: a ps without variables */
};

struct applied { /* one update of one ps */
    uint64_t step;
    uint32_t gradients;
    int workers[STAGE_WORKERS_MAX], worker_count;
    uint64_t sequences[STAGE_WORKERS_MAX]; /* of the pushes in it */
};

struct actor { /* one task */
    struct role *role;
    struct outbox outbox;
    bool is_alive, has_ended, is_computing;
    int code;
    char text[ACTION_TEXT_MAX];
    struct applied *applied; /* ps: what was applied, in order */
    int applied_count;
    uint64_t
        pushed[STAGE_WORKERS_MAX]; /* ps: sequence of the push that lies in a worker's window */
    int computed, evaluated;       /* worker */
};

struct parcel;
struct stage {
    struct stage_options options;
    struct actor ps[STAGE_PS_MAX], workers[STAGE_WORKERS_MAX];
    struct parcel
        *first[STAGE_PS_MAX][STAGE_WORKERS_MAX][2]; /* queues: [0] to the worker, [1] to the ps */
    uint64_t now_ms, draws;
    int deliveries;
};

void stage_open(struct stage *, const struct stage_options *);
void stage_close(struct stage *);

/* Greets everybody with everybody, in an order drawn from the seed. */
void stage_greet(struct stage *);

/* One event drawn from the seed: a delivery, or a worker that is done computing. false: nothing is
 * left to happen. */
bool stage_step(struct stage *);
int stage_run(struct stage *, int events_max); /* returns the events that happened */

void stage_pass_time(struct stage *, uint64_t ms);  /* ticks for everybody */
void stage_kill_worker(struct stage *, int worker); /* its links break */
void stage_kill_ps(struct stage *, int ps);
void stage_send_to_ps(struct stage *, int ps, int worker,
                      const struct message *); /* a forged one */

#endif
