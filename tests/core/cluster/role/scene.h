/* scene.h - one role and what its peers say, word by word. Every word empties the outbox first:
 * what is found in it is the answer. */
#ifndef TESTS_CORE_CLUSTER_ROLE_SCENE_H
#define TESTS_CORE_CLUSTER_ROLE_SCENE_H

#include "core/cluster/role/role.h"

struct scene {
    struct role *role;
    enum job peers;
    uint64_t now_ms;
    struct outbox out;
};
void close_scene(struct scene *);

void say(struct scene *, int peer, const struct message *);
void meet(struct scene *, int peer); /* in its first life */
void meet_life(struct scene *, int peer, uint64_t incarnation);
void lose(struct scene *, int peer);

/* Where the first action of that type stands in the answer; -1: there is none. */
int find(const struct scene *, enum action_type);
/* Where the first such message to that peer does; and the message. (test_replicas.c, where it is
 * said again at each tick, looks for the last one.) */
int find_sent(const struct scene *, int peer, enum message_type);
const struct message *sent(const struct scene *, int peer, enum message_type); /* or NULL */

#endif
