/* runner_ps_copies.c - copies of values being sent to workers without shared memory; fewer copies
 * than workers.
 *
 * Workers that are answered while the values do not change share a copy. It is given back when the
 * link has taken all of it. If none is free, a worker is answered when one is, with the values of
 * then.
 */
#include <stdlib.h>

#include "core/cluster/runner/runner_ps_inside.h"

static bool are_wanted(const struct runner_ps *p)
{
    return p->pool.windows && p->share && !p->share->setup.config.takes_all;
}

err runner_ps_copies_open(struct runner_ps *p)
{
    p->copies.current = NULL;
    for (int w = 0; w < p->task.peer_count; w++) runner_ps_copies_forget(p, w);
    if (!are_wanted(p) || p->copies.all) return OK;
    p->copies.all = calloc((size_t)p->pool.count, sizeof *p->copies.all);
    return p->copies.all ? OK : fail(ERR_MEMORY, "no memory for %d copies", p->pool.count);
}

void runner_ps_copies_close(struct runner_ps *p)
{
    for (int i = 0; p->copies.all && i < p->pool.count; i++) window_free(&p->copies.all[i].window);
    free(p->copies.all);
}

bool runner_ps_copies_serve(const struct runner_ps *p, const struct link *link)
{
    return p->copies.all && are_wanted(p) && runner_ps_pool_serves(p, link);
}

void runner_ps_copies_outdate(struct runner_ps *p)
{
    p->copies.current = NULL;
}

static void give_back(struct runner_ps *p, int worker)
{
    struct windows *w = &p->windows[worker];
    if (w->seen) w->seen->users--;
    w->seen = NULL;
}

void runner_ps_copies_forget(struct runner_ps *p, int worker)
{
    give_back(p, worker);
    p->windows[worker].turn = 0;
}

static struct value_copy *find_free(struct runner_ps *p)
{
    for (int i = 0; i < p->pool.count; i++) {
        struct value_copy *s = &p->copies.all[i];
        if (s->users || s == p->copies.current) continue;
        if (s->window.base || !window_new(runner_ps_shown_bytes(p), &s->window)) return s;
    }
    return NULL;
}

/* Workers that have waited longer come first. */
void *runner_ps_copies_begin(struct runner_ps *p, int worker)
{
    const struct link *link = p->task.peers[worker].link;
    if (!link || !runner_ps_copies_serve(p, link) || runner_ps_copies_are_short(p)) return NULL;
    p->copies.current = find_free(p);
    return p->copies.current ? p->copies.current->window.base : NULL;
}

static bool take_current(struct runner_ps *p)
{
    if (p->copies.current) return true;
    p->copies.current = find_free(p);
    if (p->copies.current) store_show(&p->store, p->copies.current->window.base);
    return p->copies.current;
}

static const void *lend(struct runner_ps *p, int worker)
{
    struct windows *w = &p->windows[worker];
    give_back(p, worker); /* it asks again: data still being sent to it is void */
    if (!take_current(p)) return NULL;
    struct value_copy *s = w->seen = p->copies.current;
    s->users++;
    w->looks = (struct holding){0};
    return s->window.base;
}

const void *runner_ps_copies_lend(struct runner_ps *p, int worker, const struct message *values)
{
    struct windows *w = &p->windows[worker];
    const void *base = p->copies.current || !runner_ps_copies_are_short(p) ? lend(p, worker) : NULL;
    w->turn = base ? 0 : ++p->copies.turns;
    w->waits = *values;
    return base;
}

bool runner_ps_copies_are_short(const struct runner_ps *p)
{
    for (int w = 0; p->copies.all && w < p->task.peer_count; w++)
        if (p->windows[w].turn) return true;
    return false;
}

static int next_waiting(const struct runner_ps *p)
{
    int next = NOBODY;
    for (int w = 0; w < p->task.peer_count; w++) {
        const uint64_t turn = p->windows[w].turn;
        if (turn && (next == NOBODY || turn < p->windows[next].turn)) next = w;
    }
    return next;
}

/* Answers a waiting worker, with newer values than it was to get. */
static bool send_waiting(struct runner_ps *p, int worker)
{
    struct windows *w = &p->windows[worker];
    if (!take_current(p)) return false;
    w->turn = 0;
    w->waits.values.step = ps_role_step(p->task.role);
    w->waits.values.updates = ps_role_counters(p->task.role).applied;
    if (p->task.peers[worker].link && runner_ps_values_send(&p->task, worker, &w->waits))
        log_line(LOG_DEBUG, "%s", error_text());
    return !w->turn;
}

void runner_ps_copies_pump(struct runner_ps *p)
{
    if (!p->copies.all || p->task.has_ended) return;
    for (int w = 0; w < p->task.peer_count; w++) {
        const struct link *link = p->task.peers[w].link;
        if (!link)
            runner_ps_copies_forget(p, w);
        else if (p->windows[w].seen && link_is_idle(link))
            give_back(p, w);
    }
    for (int w; (w = next_waiting(p)) != NOBODY && send_waiting(p, w);) continue;
}
