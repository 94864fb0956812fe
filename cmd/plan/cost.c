/* cost.c - see cost.h. */
#include "cmd/plan/cost.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double up(const struct plan_bytes *b)
{
    return b->dense_up + b->rows_up;
}

static double down(const struct plan_bytes *b)
{
    return b->dense_down + b->rows_down;
}

static double moved(const struct plan_bytes *b)
{
    return up(b) + down(b);
}

static struct plan_bytes sum(const struct plan_case *c)
{
    struct plan_bytes all = {0};
    for (int ps = 0; ps < c->ps; ps++) {
        all.dense_up += c->bytes[ps].dense_up;
        all.dense_down += c->bytes[ps].dense_down;
        all.rows_up += c->bytes[ps].rows_up;
        all.rows_down += c->bytes[ps].rows_down;
    }
    return all;
}

static int most_used(const struct plan_case *c)
{
    int most = 0;
    for (int ps = 1; ps < c->ps; ps++)
        if (moved(&c->bytes[ps]) > moved(&c->bytes[most])) most = ps;
    return most;
}

/* The bytes of a step that pass the link which it waits for: of the worker, or of the ps whose link
 * `pushes` workers share. */
static struct plan_bytes waited_for(const struct plan_bytes *worker, const struct plan_bytes *ps,
                                    int pushes)
{
    return (struct plan_bytes){
        .dense_up = larger(worker->dense_up, pushes * ps->dense_up),
        .dense_down = larger(worker->dense_down, pushes * ps->dense_down),
        .rows_up = larger(worker->rows_up, pushes * ps->rows_up),
        .rows_down = larger(worker->rows_down, pushes * ps->rows_down),
    };
}

/* Of one worker that waits for `pushes` at a ps */
static double in_turn(const struct plan_case *c, const struct plan_bytes *bytes, double updating)
{
    const double dense_s =
        c->overlaps ? larger(bytes->dense_up, bytes->dense_down) / c->link_bytes_s : 0;
    const double rest =
        bytes->rows_up + bytes->rows_down + (c->overlaps ? 0 : bytes->dense_up + bytes->dense_down);
    return larger(c->costs.computing, dense_s) + rest / c->link_bytes_s + updating +
           c->round_trip_s;
}

static enum plan_bound longest(const double parts_s[BOUND_COUNT])
{
    enum plan_bound bound = BOUND_COMPUTING;
    for (int i = 1; i < BOUND_COUNT; i++)
        if (parts_s[i] > parts_s[bound]) bound = (enum plan_bound)i;
    return bound;
}

struct plan_time plan_time_of(const struct plan_case *c)
{
    const struct plan_bytes worker = sum(c);
    struct plan_time t = {.ps = most_used(c)};
    const struct plan_bytes *ps = &c->bytes[t.ps];
    const double all = moved(&worker), share = all > 0 ? moved(ps) / all : 1,
                 updating = c->costs.updating * share;
    const struct plan_bytes waited = waited_for(&worker, ps, c->is_sync ? c->workers : 1);
    t.parts_s[BOUND_COMPUTING] = c->costs.computing;
    t.parts_s[BOUND_WORKER_LINK] = larger(up(&worker), down(&worker)) / c->link_bytes_s;
    t.parts_s[BOUND_PS_LINK] = c->workers * larger(up(ps), down(ps)) / c->link_bytes_s;
    t.parts_s[BOUND_UPDATING] = c->is_sync ? updating : c->workers * updating;
    t.parts_s[BOUND_ROUND_TRIP] = c->round_trip_s;
    t.bound = longest(t.parts_s);
    t.step_s = in_turn(c, &waited, updating);
    if (!c->is_sync)
        t.step_s = larger(t.step_s, larger(t.parts_s[BOUND_PS_LINK], t.parts_s[BOUND_UPDATING]));
    t.examples_s = t.step_s > 0 ? (double)c->workers * c->batch / t.step_s : 0;
    return t;
}

const char *plan_bound_name(enum plan_bound bound)
{
    static const char *const names[BOUND_COUNT] = {
        "computing",       "the links of workers",         "the link of a ps",
        "updates on a ps", "the round trip between hosts",
    };
    return names[bound];
}
