/* ps_pool.c - which worker may send a gradient now, if a ps has fewer windows for them than
 * workers.
 *
 * The header of a gradient requests a window (ps_role_announce); without one the link is not read,
 * and the peer keeps its data. A window belongs to its worker until the gradient is applied,
 * dropped or lost with its link.
 *
 * A synchronous round needs all gradients. So when windows are short, gradients that have come are
 * summed into one block, which frees their windows (FOLD). If the round takes all workers, they are
 * summed in worker order, as without FOLD, and windows are granted accordingly: one is kept free
 * for each earlier worker whose gradient is still missing. So the first of them always finds one,
 * and nobody waits forever. If ps/0 may drop gradients, one is kept for the current step. If a
 * round does not take all workers, gradients come whole: one in parts would occupy its window while
 * its worker computes.
 */
#include "core/cluster/role/ps_role_inside.h"

enum {
    WINDOWS_LEAST = 8,        /* of a pool: enough to keep a link busy while some wait for their
                                 turn */
    WINDOWS_BYTES = 64 << 20, /* a pool of small ones has more */
};

int ps_config_windows(uint64_t block_bytes, int workers)
{
    const uint64_t fit = block_bytes ? WINDOWS_BYTES / block_bytes : (uint64_t)workers;
    const uint64_t most = fit > WINDOWS_LEAST ? fit : WINDOWS_LEAST;
    return (uint64_t)workers > most ? (int)most : 0;
}

static void set_window(struct ps_role *p, struct member *m, enum window_use use)
{
    p->pool.used += (use != WINDOW_NONE) - (m->window.use != WINDOW_NONE);
    m->window.use = use;
}

void ps_pool_release(struct ps_role *p, int worker)
{
    struct member *m = &p->members[worker];
    if (m->window.use == WINDOW_HELD) set_window(p, m, WINDOW_NONE);
}

static bool keeps(const struct member *m)
{
    return (m->push.fate == PUSH_WAITS && !m->push.is_folded) || m->ahead.parts;
}

void ps_pool_heard(struct ps_role *p, int worker, const struct message *m)
{
    struct member *member = &p->members[worker];
    const bool has_come = message_has_stretch(m->type) && !range_is_empty(m->range);
    if (member->window.use == WINDOW_NONE || (member->window.use == WINDOW_COMES && !has_come))
        return;
    set_window(p, member, keeps(member) ? WINDOW_HELD : WINDOW_NONE);
}

void ps_pool_forget_link(struct ps_role *p, int worker)
{
    struct member *m = &p->members[worker];
    m->window.turn = 0;
    if (m->window.use != WINDOW_NONE) set_window(p, m, keeps(m) ? WINDOW_HELD : WINDOW_NONE);
}

/* Data that come now are discarded, but must be read. */
void ps_pool_forget(struct ps_role *p)
{
    p->round.fold_next = 0;
    for (int w = 0; w < p->options.workers; w++) ps_pool_release(p, w);
}

/* ---- whose turn it is ---- */

static bool is_waiting(const struct member *m)
{
    return m->window.turn && m->window.use == WINDOW_NONE;
}

/* Its gradient for the round is missing, and it has the values for that. A worker that rejoins
 * while workers are held for a snapshot, for which others must push, comes last. */
static bool is_missing(const struct ps_role *p, int worker)
{
    const bool is_held = p->members[worker].wants.values && ps_is_holding(p, worker);
    return !ps_is_past_round(p, worker) && !is_held;
}

static bool lacks_window(const struct ps_role *p, int worker)
{
    return p->members[worker].window.use == WINDOW_NONE && is_missing(p, worker);
}

/* The first worker whose gradient the sum lacks. A worker that returns to the round after the sum,
 * or windows, went past it is summed last. */
static int first_missing(const struct ps_role *p)
{
    int first = p->round.fold_next;
    while (first < p->options.workers && !is_missing(p, first)) first++;
    return first;
}

/* In worker order, first those that the sum needs next. Other messages of the chief must not wait
 * behind its gradient. */
static int next_in_order(const struct ps_role *p, int left)
{
    const int workers = p->options.workers, chief = ps_chief(p), first = first_missing(p);
    for (int i = 0; i < workers; i++) {
        const int w = (first + i) % workers;
        const int for_chief = i > 0 && w != chief && (chief + workers - first) % workers > i &&
                              lacks_window(p, chief);
        if (is_waiting(&p->members[w]) && left > for_chief) return w;
        if (lacks_window(p, w)) left--;
        if (left <= 0) break;
    }
    return NOBODY;
}

bool ps_brings_later(const struct ps_role *p, const struct member *m)
{
    return m->window.turn && p->phase == SERVING && ps_config_drops(&p->config) &&
           m->window.step > p->step;
}

static int next_that_came(const struct ps_role *p, int left)
{
    int next = NOBODY;
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (!is_waiting(m) || left < (ps_brings_later(p, m) && p->config.is_sync ? 2 : 1)) continue;
        if (next == NOBODY || m->window.turn < p->members[next].window.turn) next = w;
    }
    return next;
}

int ps_role_grant(struct role *role)
{
    struct ps_role *p = (struct ps_role *)role;
    const int left = p->pool.count - p->pool.used;
    const bool in_order = p->phase == SERVING && p->config.is_sync && p->config.takes_all;
    const int next = in_order ? next_in_order(p, left) : next_that_came(p, left);
    if (next == NOBODY) return NOBODY;
    if (in_order) p->round.fold_next = first_missing(p);
    p->members[next].window.turn = 0;
    set_window(p, &p->members[next], WINDOW_COMES);
    return next;
}

static uint64_t step_of_gradient(const struct message *m)
{
    return m->type == MESSAGE_PUSH ? m->push.step : m->type == MESSAGE_PART ? m->part.step : 0;
}

/* A gradient for a later round shows that its worker is past this one. */
void ps_role_announce(struct role *role, int worker, const struct message *m, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    struct member *member = &p->members[worker];
    if (member->window.use != WINDOW_NONE) {
        set_window(p, member, WINDOW_COMES);
        return;
    }
    if (!member->window.turn) member->window.turn = ++p->pool.turns;
    member->window.step = step_of_gradient(m);
    p->round.applying_count = 0;
    if (ps_brings_later(p, member)) ps_apply_ready_rounds(p, out);
}

bool ps_role_has_window(const struct role *role, int worker)
{
    return ((const struct ps_role *)role)->members[worker].window.use != WINDOW_NONE;
}

bool ps_role_brings(const struct role *role, int worker)
{
    const struct member *m = &((const struct ps_role *)role)->members[worker];
    return m->window.use == WINDOW_COMES ||
           (m->window.use == WINDOW_HELD && m->push.fate != PUSH_WAITS);
}

bool ps_role_is_read(const struct role *role, int worker)
{
    return ((const struct ps_role *)role)->members[worker].window.use == WINDOW_COMES;
}

int ps_role_waiting(const struct role *role)
{
    const struct ps_role *p = (const struct ps_role *)role;
    int count = 0;
    for (int w = 0; w < p->options.workers; w++) count += is_waiting(&p->members[w]);
    return count;
}

/* ---- sums ---- */

static bool may_fold(const struct ps_role *p, int worker, int end)
{
    return ps_is_in_round(p, worker) && !p->members[worker].push.is_folded &&
           (!p->config.takes_all || worker < end);
}

void ps_fold(struct ps_role *p, struct outbox *out)
{
    int count = 0, *workers = p->round.applying + p->round.applying_count;
    if (p->pool.used * 2 < p->pool.count || !p->pool.count) return;
    const int end = first_missing(p);
    for (int w = 0; w < p->options.workers; w++)
        if (may_fold(p, w, end)) workers[count++] = w;
    if (!count) return;
    p->round.fold_next = end;
    p->round.applying_count += count;
    outbox_add_fold(out, (struct action_fold){workers, count, p->step});
    for (int i = 0; i < count; i++) {
        p->members[workers[i]].push.is_folded = true;
        ps_pool_release(p, workers[i]);
    }
}

void ps_begin_sum(struct ps_role *p)
{
    p->round.fold_next = 0;
}

/* The worker whose window must be free when the sum begins again; the number of workers: one is
 * free already. */
static int last_to_yield(const struct ps_role *p, int worker)
{
    int w = p->options.workers;
    if (p->pool.used < p->pool.count) return w;
    for (w--; w >= 0; w--)
        if (w != worker && p->members[w].window.use != WINDOW_NONE &&
            member_is_here(&p->members[w]))
            return w;
    return NOBODY;
}

static void ask_again(struct ps_role *p, int worker, struct outbox *out)
{
    outbox_log(out, "worker/%d is asked for its gradient of step %llu again", worker,
               (unsigned long long)p->step + 1);
    outbox_add_hang_up(out, (struct action_hang_up){worker});
    ps_forget_link(p, worker, out);
}

/* A single gradient cannot be subtracted from the sum: all others in it must come again, too. If no
 * window is free, the last worker that has one gives it up for them. */
bool ps_unfold(struct ps_role *p, int worker, struct outbox *out)
{
    const int last = last_to_yield(p, worker);
    if (last == NOBODY) return false;
    for (int w = 0; w < p->options.workers; w++)
        if (p->members[w].push.is_folded && !member_is_here(&p->members[w])) return false;
    outbox_add_unfold(out, (struct action_unfold){p->step});
    p->round.fold_next = 0;
    for (int w = 0; w < p->options.workers; w++) {
        struct member *m = &p->members[w];
        const bool comes_again = m->push.is_folded || w == last;
        if (!comes_again) continue;
        m->push.is_folded = false;
        if (m->push.fate == PUSH_WAITS) {
            member_set_push(m, PUSH_TAKEN);
            m->ledger = m->push.before;
        }
        if (w != worker) ask_again(p, w, out);
    }
    return true;
}
