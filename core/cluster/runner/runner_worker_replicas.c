/* runner_worker_replicas.c - ps that follow others (core/base/replicas.h), as a worker pushes to
 * them and, where one is done without, reads the other one.
 *
 * The session knows the ps of its layout alone, each by its windows. What is pushed to a follower
 * is copied into its window as it leaves.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/replicas.h"
#include "core/cluster/runner/runner_worker_inside.h"

static int homes_of(const struct runner_worker *w)
{
    return w->session.layout->ps_count;
}

static int follower_of(const struct runner_worker *w, int ps)
{
    return replicas_other(homes_of(w), w->session.layout->all_ps, ps);
}

int runner_worker_source(const struct runner_worker *w, int ps)
{
    return replicas_have(w->incoming.stand_in.now, ps) ? follower_of(w, ps) : ps;
}

int runner_worker_bound(const struct runner_worker *w, int ps)
{
    const int home = layout_home(w->session.layout, ps);
    return runner_worker_source(w, home) == ps ? home : NOBODY;
}

bool runner_worker_reads(const struct runner_worker *w, int ps)
{
    return runner_worker_bound(w, ps) != NOBODY;
}

void runner_worker_bind(struct runner_worker *w, int ps)
{
    const struct ps_windows *from = &w->incoming.windows[runner_worker_source(w, ps)];
    if (!from->gradients) {
        session_unbind(&w->session, ps);
        return;
    }
    session_bind(&w->session, ps, from->values, from->gradients);
    runner_worker_rows_bind(w, ps, from->rows, from->is_apart);
}

/* Its rows, where they are still to come, are nobody's. */
static void part_from(struct runner_worker *w, int ps)
{
    struct link *const link = w->task.peers[runner_worker_source(w, ps)].link;
    if (link) link_unpatch(link);
    free(w->kept[ps]); /* of a step that is over */
    w->kept[ps] = NULL;
    runner_worker_rows_drop(w, ps);
}

static void change(struct runner_worker *w, uint64_t gone)
{
    const uint64_t changed = gone ^ w->incoming.stand_in.now;
    if (!changed) return;
    runner_worker_forget_speculation(w);
    for (int ps = 0; ps < homes_of(w); ps++)
        if (replicas_have(changed, ps)) part_from(w, ps);
    w->incoming.stand_in.now = gone;
    for (int ps = 0; ps < homes_of(w); ps++)
        if (replicas_have(changed, ps)) runner_worker_bind(w, ps);
}

/* A step that is being computed goes on with what it has. */
void runner_worker_stand_in(struct runner_worker *w, uint64_t gone)
{
    w->incoming.stand_in.next = gone;
    change(w, w->incoming.stand_in.now & gone);
}

void runner_worker_turn_to(struct runner_worker *w)
{
    change(w, w->incoming.stand_in.next);
}

void runner_worker_copy_push(struct runner_worker *w, int ps, const struct message *m)
{
    const int home = layout_home(w->session.layout, ps);
    char *to = (char *)w->incoming.windows[ps].gradients;
    const char *from = (const char *)w->session.replica.gradients[home];
    if (!from) from = (const char *)w->kept[home];
    if (home == ps || !to || !from || to == from) return;
    memcpy(to + m->offset, from + m->offset, m->length);
}
