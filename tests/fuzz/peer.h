/* peer.h - a hostile peer, for targets that run tasks: links within the process, over which it says
 * whatever the input has it say, in the header's own bytes and in the windows that it shares.
 */
#ifndef TESTS_FUZZ_PEER_H
#define TESTS_FUZZ_PEER_H

#include "core/cluster/role/membership.h"
#include "net/link.h"
#include "tests/fuzz/fuzz.h"

/* What the others have said to it last: what would be right, for an input to be near it. */
struct peer_heard {
    uint64_t generation, push, step, updates, number;
};

struct peer_link {
    struct link *link; /* NULL: none */
    struct peer_heard heard;
    bool may_end; /* it has said what ends a job, or may: whoever belongs to the job may do so */
};

/* A task that somebody has taken the place of, as it greets. */
struct peer_place {
    enum job job;
    int task;
    const char *ps_hosts, *worker_hosts; /* "\"a\",\"b\"" */
};

/* Numbers and bodies from the input: mostly what would be right, else at or beyond an end of it. */
void peer_say(struct peer_link *, const struct peer_place *, struct view *input);
/* What lies in memory that both ends see changes. */
void peer_scribble(struct peer_link *, struct view *input);
void peer_note(struct peer_link *, const struct message *); /* it has come */
/* As it is: none of the checks that keep a task from saying what is wrong. */
void peer_send(struct peer_link *, const struct message *);
/* As whoever has this place. */
void peer_greet(struct peer_link *, const struct peer_place *, enum message_type);

/* Time is the target's own: it stands still but for what is added here. The target is linked with
 * --wrap=clock_ns and --wrap=clock_ms. */
void peer_pass(uint64_t ms);

#endif
