/* ps_snapshots.c - values on their way to workers that share no memory, fewer than workers.
 *
 * Who is answered while the values do not change is sent the same snapshot. It is given back when
 * the link has taken all of it. Whoever finds none is answered when one is free, with the values as
 * they are then.
 */
#include <stdlib.h>

#include "core/cluster/task/ps_inside.h"

static bool are_wanted(const struct ps_task *p)
{
    return p->pool && p->share && !p->share->setup.config.takes_all;
}

err ps_snapshots_open(struct ps_task *p)
{
    p->current = NULL;
    for (int w = 0; w < p->task.peer_count; w++) ps_snapshots_forget(p, w);
    if (!are_wanted(p) || p->snapshots) return OK;
    p->snapshots = calloc((size_t)p->pool_count, sizeof *p->snapshots);
    return p->snapshots ? OK : fail(ERR_MEMORY, "no memory for %d snapshots", p->pool_count);
}

void ps_snapshots_close(struct ps_task *p)
{
    for (int i = 0; p->snapshots && i < p->pool_count; i++) window_free(&p->snapshots[i].window);
    free(p->snapshots);
}

bool ps_snapshots_serve(const struct ps_task *p, const struct link *link)
{
    return p->snapshots && are_wanted(p) && ps_pool_serves(p, link);
}

void ps_snapshots_outdate(struct ps_task *p)
{
    p->current = NULL;
}

static void give_back(struct ps_task *p, int worker)
{
    struct windows *w = &p->windows[worker];
    if (w->seen) w->seen->users--;
    w->seen = NULL;
}

void ps_snapshots_forget(struct ps_task *p, int worker)
{
    give_back(p, worker);
    p->windows[worker].turn = 0;
}

static struct snapshot *find_free(struct ps_task *p)
{
    for (int i = 0; i < p->pool_count; i++) {
        struct snapshot *s = &p->snapshots[i];
        if (s->users || s == p->current) continue;
        if (s->window.base || !window_new(ps_shown_bytes(p), &s->window)) return s;
    }
    return NULL;
}

/* What another worker waits for longer is its own. */
void *ps_snapshots_begin(struct ps_task *p, int worker)
{
    const struct link *link = p->task.peers[worker].link;
    if (!link || !ps_snapshots_serve(p, link) || ps_snapshots_are_short(p)) return NULL;
    p->current = find_free(p);
    return p->current ? p->current->window.base : NULL;
}

static bool take_current(struct ps_task *p)
{
    if (p->current) return true;
    p->current = find_free(p);
    if (p->current) store_show(&p->store, p->current->window.base);
    return p->current;
}

static const void *lend(struct ps_task *p, int worker)
{
    struct windows *w = &p->windows[worker];
    give_back(p, worker); /* it asks anew, and nothing comes of what is still on its way */
    if (!take_current(p)) return NULL;
    struct snapshot *s = w->seen = p->current;
    s->users++;
    w->looks = (struct holding){0};
    return s->window.base;
}

const void *ps_snapshots_lend(struct ps_task *p, int worker, const struct message *values)
{
    struct windows *w = &p->windows[worker];
    const void *base = p->current || !ps_snapshots_are_short(p) ? lend(p, worker) : NULL;
    w->turn = base ? 0 : ++p->turns;
    w->waits = *values;
    return base;
}

bool ps_snapshots_are_short(const struct ps_task *p)
{
    for (int w = 0; p->snapshots && w < p->task.peer_count; w++)
        if (p->windows[w].turn) return true;
    return false;
}

static int next_waiting(const struct ps_task *p)
{
    int next = NOBODY;
    for (int w = 0; w < p->task.peer_count; w++) {
        const uint64_t turn = p->windows[w].turn;
        if (turn && (next == NOBODY || turn < p->windows[next].turn)) next = w;
    }
    return next;
}

/* Of values that are newer than those which it was to be sent. */
static bool send_waiting(struct ps_task *p, int worker)
{
    struct windows *w = &p->windows[worker];
    if (!take_current(p)) return false;
    w->turn = 0;
    w->waits.step = ps_role_step(p->task.role);
    w->waits.version = ps_role_counters(p->task.role).applied;
    if (p->task.peers[worker].link && ps_task_values_send(&p->task, worker, &w->waits))
        log_line(LOG_DEBUG, "%s", error_text());
    return !w->turn;
}

void ps_snapshots_pump(struct ps_task *p)
{
    if (!p->snapshots || p->task.has_ended) return;
    for (int w = 0; w < p->task.peer_count; w++) {
        const struct link *link = p->task.peers[w].link;
        if (!link)
            ps_snapshots_forget(p, w);
        else if (p->windows[w].seen && link_is_idle(link))
            give_back(p, w);
    }
    for (int w; (w = next_waiting(p)) != NOBODY && send_waiting(p, w);) continue;
}
