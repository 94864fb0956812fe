/* runner_ps_pool.c - windows for gradients of workers without shared memory; fewer windows than
 * workers.
 *
 * The role assigns them (role/ps_pool.c); their memory is here. The link of a worker without one is
 * not read, so that its peer waits.
 */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/cluster/runner/runner_ps_inside.h"

enum {
    POOL_IDLE_MAX_MS = 10000, /* without a byte from a worker whose window others wait for */
    POOL_TICK_MAX_MS = 1000,  /* if more has passed, this task was stopped */
};

err runner_ps_pool_open(struct runner_ps *p, int count)
{
    if (p->pool.windows || !count) return OK;
    p->pool.windows = calloc((size_t)count, sizeof *p->pool.windows);
    if (!p->pool.windows) return fail(ERR_MEMORY, "no memory for %d windows", count);
    p->pool.count = count;
    for (int i = 0; i < count; i++) p->pool.windows[i].worker = NOBODY;
    return OK;
}

void runner_ps_pool_close(struct runner_ps *p)
{
    for (int i = 0; i < p->pool.count; i++) window_free(&p->pool.windows[i].window);
    free(p->pool.windows);
}

bool runner_ps_pool_serves(const struct runner_ps *p, const struct link *link)
{
    return p->pool.windows && !link_shares_memory(link);
}

const void *runner_ps_gradient(const struct runner_ps *p, int worker)
{
    const struct windows *w = &p->windows[worker];
    return w->lent ? w->lent->window.base : w->gradients.base;
}

static void take_back(struct runner_ps *p)
{
    for (int i = 0; i < p->pool.count; i++) {
        const int worker = p->pool.windows[i].worker;
        if (worker == NOBODY || ps_role_has_window(p->task.role, worker)) continue;
        p->windows[worker].lent = NULL;
        p->pool.windows[i].worker = NOBODY;
    }
}

static struct pool_window *find_free(struct runner_ps *p)
{
    for (int i = 0; i < p->pool.count; i++)
        if (p->pool.windows[i].worker == NOBODY) return &p->pool.windows[i];
    return NULL;
}

static err lend(struct runner_ps *p, int worker)
{
    struct windows *w = &p->windows[worker];
    if (w->lent) return OK;
    struct pool_window *found = find_free(p);
    if (!found) return fail(ERR_MEMORY, "no window is free");
    if (!found->window.base) TRY(window_new(runner_ps_block_bytes(p), &found->window));
    found->worker = worker;
    w->lent = found;
    w->lends = (struct holding){0};
    return OK;
}

/* Grants windows to workers that may continue, except `asked` */
static void grant(struct runner_ps *p, int asked)
{
    for (int w; (w = ps_role_grant(p->task.role)) != NOBODY;) {
        struct link *link = p->task.peers[w].link;
        if (w != asked && link) link_go_on(link);
    }
}

/* At the end gradients do not count, and are read only to get the messages after them. */
static void *place_at_end(struct runner_ps *p)
{
    struct window *any = &p->pool.windows[0].window;
    if (!any->base && window_new(runner_ps_block_bytes(p), any)) return NULL;
    return any->base;
}

void *runner_ps_pool_place(void *context, struct link *link, const struct message *m)
{
    struct connection *connection = context;
    struct runner_ps *p = connection->ps;
    const int worker = connection->worker;
    if (p->task.has_ended) return place_at_end(p);
    ps_role_announce(p->task.role, worker, m, &p->task.outbox);
    task_flush(&p->task); /* which may end the link */
    if (p->task.peers[worker].link != link) return NULL;
    grant(p, worker);
    if (!ps_role_has_window(p->task.role, worker)) return NULL;
    const err e = lend(p, worker);
    if (!e) return p->windows[worker].lent->window.base;
    log_limited(&p->logs.unserved, clock_ms(), LOG_WARNING, "worker/%d: %s", worker, error_text());
    connection_hang_up(connection);
    task_peer_lost(&p->task, worker, "there is no memory for its gradient");
    return NULL;
}

void runner_ps_pool_flushed(struct runner_ps *p)
{
    if (!p->pool.windows) return;
    take_back(p);
    grant(p, NOBODY);
}

/* ---- who holds a window and brings nothing ---- */

/* The gradient comes again, and waits for its turn. */
static bool give_up(struct runner_ps *p, int worker, const char *why)
{
    connection_hang_up(link_context(p->task.peers[worker].link));
    task_peer_lost(&p->task, worker, why);
    return true;
}

/* moved: a number that changes when bytes come or go; 0: none need to. true: the window was taken
 * from it. */
static bool watch(struct runner_ps *p, int worker, struct holding *h, uint64_t moved,
                  uint64_t passed_ms)
{
    h->idle_ms = moved && moved == h->moved ? h->idle_ms + passed_ms : 0;
    h->moved = moved;
    h->held_ms += passed_ms;
    if (h->idle_ms >= POOL_IDLE_MAX_MS)
        return give_up(p, worker, "nothing moves on its connection, and others wait for memory");
    if (h->held_ms >= p->task.options.limits.step_ms)
        return give_up(p, worker,
                       "it takes longer than --step_timeout, and others wait for memory");
    return false;
}

static void watch_worker(struct runner_ps *p, int worker, bool for_windows, bool for_copies,
                         uint64_t passed_ms)
{
    struct windows *w = &p->windows[worker];
    const struct link *link = p->task.peers[worker].link;
    const bool brings = for_windows && w->lent && ps_role_brings(p->task.role, worker);
    const uint64_t moved = link && ps_role_is_read(p->task.role, worker) ? link_progress(link) : 0;
    if (!link || (brings && watch(p, worker, &w->lends, moved, passed_ms))) return;
    if (for_copies && w->seen) watch(p, worker, &w->looks, link_queued_bytes(link), passed_ms);
}

void runner_ps_pool_tick(struct runner_ps *p, uint64_t now_ms)
{
    const uint64_t since_ms = now_ms - p->pool.ticked_ms;
    const uint64_t passed_ms = since_ms < POOL_TICK_MAX_MS ? since_ms : POOL_TICK_MAX_MS;
    p->pool.ticked_ms = now_ms;
    if (!p->pool.windows || p->task.has_ended) return;
    const bool for_windows = ps_role_waiting(p->task.role) > 0;
    const bool for_copies = runner_ps_copies_are_short(p);
    for (int w = 0; w < p->task.peer_count && (for_windows || for_copies); w++)
        watch_worker(p, w, for_windows, for_copies, passed_ms);
}
