/* stage.h - the simulated cluster (tests/simulate/world.h), driven by hand.
 *
 * Nothing happens by itself: a script says who meets whom, who is lost and when time passes, and a
 * seed decides which of the messages and works that are under way comes next, so that every order
 * that a network could make can be tried and repeated. Both ends of a link hear of its end at once.
 * What must never happen is looked for after every event, as for the seeds of the simulator; it
 * ends the test. STAGE_TRACE=SEED in the environment prints the event log of that seed.
 */
#ifndef TESTS_CORE_CLUSTER_ROLE_STAGE_H
#define TESTS_CORE_CLUSTER_ROLE_STAGE_H

#include "tests/simulate/world.h"

enum {
    STAGE_ARRAYS = 2,      /* of a block: values and one slot */
    STAGE_LIMIT_MS = 3000, /* of every wait but these */
    STAGE_SAVE_LIMIT_MS = 500,
    STAGE_RESTART_LIMIT_MS = 5000,
    STAGE_STOP_LIMIT_MS = 500,
    STAGE_END_LIMIT_MS = 10000,
};

struct stage_options {
    struct profile profile; /* what the spec says, and who has variables; the stage adds the rest */
    uint64_t seed;
};

struct stage {
    struct world world;
    struct actor *ps, *workers; /* of the world */
    bool hangs[ACTORS_MAX];
};

void stage_open(struct stage *, const struct stage_options *);
void stage_close(struct stage *);

uint64_t stage_draw(struct stage *, uint64_t below);

/* Greets everybody with everybody, in an order drawn from the seed. */
void stage_greet(struct stage *);

/* One event drawn from the seed: a delivery, or a task that is done with what it does. false:
 * nothing is left to happen. */
bool stage_step(struct stage *);
int stage_run(struct stage *, int events_max); /* returns the events that happened */

void stage_pass_time(struct stage *, uint64_t ms); /* ticks for everybody */

/* The link breaks, what is on its way is lost; both ends hear of it. */
void stage_cut(struct stage *, int ps, int worker);
void stage_connect(struct stage *, int ps, int worker); /* a new link, where there is none */

void stage_kill(struct stage *, struct actor *);
void stage_restart(struct stage *, struct actor *); /* another life, linked to all that live */

/* What it computes and writes is not done until it continues; it hears all the same. */
void stage_hang(struct stage *, const struct actor *);
void stage_go_on(struct stage *, const struct actor *);

/* What is told to a role from outside; its actions are carried out. */
void stage_leave(struct stage *, struct actor *, int code, const char *why);
void stage_depart(struct stage *, struct actor *); /* alone, on SIGTERM */
void stage_save(struct stage *);
/* ps/0 is asked for so many workers more. NULL, or why nothing comes of it. */
const char *stage_scale(struct stage *, int more);
void stage_fail_step(struct stage *, int worker, err why, const char *text);
void stage_flush(struct stage *); /* whatever was asked of roles directly */

void stage_send_to_ps(struct stage *, int ps, int worker,
                      const struct message *); /* a forged one */

/* By somebody instead of that peer, at once. */
void stage_lie(struct stage *, struct actor *, int peer, const struct message *);

struct applied_update {
    uint64_t step; /* before it */
    uint32_t gradients;
    int workers[WORKERS_MAX], worker_count;
    uint64_t sequences[WORKERS_MAX]; /* of the pushes in it */
};
int stage_updates(const struct stage *, int ps); /* in what it holds: 0 while that is nothing */
struct applied_update stage_update(const struct stage *, int ps, int index);

int stage_published(const struct stage *, int index); /* the checkpoint; NOTHING: not so many */

#endif
