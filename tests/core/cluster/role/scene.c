/* scene.c - see scene.h. */
#include "tests/core/cluster/role/scene.h"

#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/worker_role.h"

void close_scene(struct scene *s)
{
    s->peers == JOB_PS ? worker_role_free(s->role) : ps_role_free(s->role);
    outbox_free(&s->out);
}

void say(struct scene *s, int peer, const struct message *m)
{
    outbox_empty(&s->out);
    s->role->ops->message(s->role, s->peers, peer, m, &s->out);
}

void meet(struct scene *s, int peer)
{
    meet_life(s, peer, 1);
}

void meet_life(struct scene *s, int peer, uint64_t incarnation)
{
    outbox_empty(&s->out);
    s->role->ops->peer_up(s->role, s->peers, peer, incarnation, &s->out);
}

void lose(struct scene *s, int peer)
{
    outbox_empty(&s->out);
    s->role->ops->peer_lost(s->role, s->peers, peer, "it died", &s->out);
}

int find(const struct scene *s, enum action_type type)
{
    for (int i = 0; i < s->out.count; i++)
        if (s->out.at[i].type == type) return i;
    return -1;
}

int find_sent(const struct scene *s, int peer, enum message_type type)
{
    for (int i = 0; i < s->out.count; i++) {
        const struct action *a = &s->out.at[i];
        if (a->type == ACTION_SEND && a->send.peer == peer && a->send.message.type == type)
            return i;
    }
    return -1;
}

const struct message *sent(const struct scene *s, int peer, enum message_type type)
{
    const int at = find_sent(s, peer, type);
    return at < 0 ? NULL : &s->out.at[at].send.message;
}
