/* runner_ps_count.c - the counters of a ps, and its reports to the chief. */
#include <stdlib.h>

#include "core/cluster/runner/counting.h"
#include "core/cluster/runner/runner_ps_inside.h"

static void count_coverage(const struct runner_ps *p, struct counters *c)
{
    const struct coverage *coverage = ps_role_coverage(p->task.role);
    if (!coverage || p->task.index) return;
    c->at[COUNTER_ROWS_APPLIED] = (double)coverage->total;
    c->at[COUNTER_ROWS_TWICE] = (double)coverage->twice;
    c->at[COUNTER_ROWS_LOST] = (double)coverage->lost;
    c->at[COUNTER_ROWS_LATE] = (double)coverage->late;
    c->at[COUNTER_EPOCH] = (double)coverage->first;
}

static int count_visitors(const struct runner_ps *p)
{
    int count = 0;
    for (const struct connection *l = p->listening.connections; l; l = l->next)
        count += l->visitor != NOBODY_KNOWN;
    return count;
}

/* ps/0 has no follower (core/base/replicas.h). */
static int follows(const struct runner_ps *p)
{
    if (!p->share) return 0;
    const int home = p->share->setup.part.home;
    return home == p->task.index ? 0 : home;
}

bool runner_ps_count(struct task *t, struct counters *c)
{
    const struct runner_ps *p = (const struct runner_ps *)t;
    const struct ps_counters counted = ps_role_counters(t->role);
    const struct tables_size tables = runner_ps_tables_size(p);
    const int arrays = p->has_store ? 1 + p->store.slot_count : 0;
    c->at[COUNTER_STEP] = (double)ps_role_step(t->role);
    c->at[COUNTER_TERM] = (double)ps_role_term(t->role);
    c->at[COUNTER_FOLLOWS] = follows(p);
    c->at[COUNTER_UPDATES] = (double)counted.applied;
    c->at[COUNTER_DROPPED_STALE] = (double)counted.dropped_stale;
    c->at[COUNTER_DROPPED_REPEATED] = (double)counted.dropped_repeated;
    c->at[COUNTER_EVICTIONS] = (double)counted.evicted;
    c->at[COUNTER_VISITORS] = count_visitors(p);
    c->at[COUNTER_DENSE_BYTES] = (double)arrays * (double)p->store.floats * (double)sizeof(float);
    c->at[COUNTER_TABLE_BYTES] = (double)tables.bytes;
    c->at[COUNTER_TABLE_ROWS] = (double)tables.rows;
    c->at[COUNTER_LATE] = p->lateness.waited_s;
    c->at[COUNTER_LATEST] = p->lateness.latest < 0 ? 0 : p->lateness.latest;
    c->at[COUNTER_SHARD_FAILURES] = (double)p->saving.failed;
    count_coverage(p, c);
    return ps_role_is_serving(t->role);
}

/* Only recent reports of workers are passed on. */
static bool is_passed_on(const struct runner_ps *p, const struct task_status *status, int chief,
                         uint64_t now_ms)
{
    const struct task *t = &p->task;
    if (status->is_ps) return status->index == t->index;
    return t->index == 0 && status->index != chief && status->index < t->peer_count &&
           now_ms - status->heard_ms <= COUNTING_FRESH_MS;
}

void runner_ps_tell_counted(struct runner_ps *p, int worker, uint64_t now_ms)
{
    struct task *t = &p->task;
    int count;
    if (worker != ps_role_chief(t->role) || !ps_role_is_serving(t->role)) return;
    if (p->turns.is_replay) return; /* a replay waits for rows: nothing may come between */
    struct task_status *all = board_copy(t->counting.board, false, &count);
    for (int i = 0; i < count && all; i++)
        if (is_passed_on(p, &all[i], worker, now_ms))
            counting_tell(t, worker, !all[i].is_ps, all[i].index, &all[i]);
    free(all);
}
