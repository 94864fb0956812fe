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

static int most_used(const struct plan_case *c)
{
    int most = 0;
    for (int ps = 1; ps < c->ps; ps++)
        if (moved(&c->bytes[ps]) > moved(&c->bytes[most])) most = ps;
    return most;
}

/* ---- hosts ---- */

struct planned_host {
    int workers;
    bool has_ps;
    struct plan_bytes own; /* of one worker, to and from the ps here */
};

/* If each task has its own host: one per ps, and one for a worker, as all are alike. */
static int host_count(const struct plan_case *c)
{
    return c->host_count ? c->host_count : c->ps + 1;
}

static void add(struct plan_bytes *to, const struct plan_bytes *more)
{
    to->dense_up += more->dense_up;
    to->dense_down += more->dense_down;
    to->rows_up += more->rows_up;
    to->rows_down += more->rows_down;
}

static struct plan_bytes sum(const struct plan_case *c)
{
    struct plan_bytes all = {0};
    for (int ps = 0; ps < c->ps; ps++) add(&all, &c->bytes[ps]);
    return all;
}

static struct planned_host host_at(const struct plan_case *c, int at)
{
    struct planned_host h = {.workers = !c->host_count && at == c->ps};
    for (int ps = 0; ps < c->ps; ps++) {
        if ((c->host_count ? c->ps_host[ps] : ps) != at) continue;
        add(&h.own, &c->bytes[ps]);
        h.has_ps = true;
    }
    for (int i = 0; i < c->workers && c->host_count; i++) h.workers += c->worker_host[i] == at;
    return h;
}

/* Bytes over a host's link when `workers` take a step, of which `here` are on the host: theirs to
 * and from ps elsewhere, and the others' to and from the ps here */
struct passing {
    struct plan_bytes of_workers, of_ps;
};

static struct passing passing_at(const struct plan_bytes *all, const struct planned_host *h,
                                 int here, int workers)
{
    const struct plan_bytes *own = &h->own;
    const int others = workers - here;
    return (struct passing){
        {here * (all->dense_up - own->dense_up), here * (all->dense_down - own->dense_down),
         here * (all->rows_up - own->rows_up), here * (all->rows_down - own->rows_down)},
        {others * own->dense_up, others * own->dense_down, others * own->rows_up,
         others * own->rows_down}};
}

/* The link's busier direction: pushes leave the host of a worker, and arrive at that of a ps. */
static double both_ways(double workers_up, double workers_down, double ps_up, double ps_down)
{
    return larger(workers_up + ps_down, workers_down + ps_up);
}

static double passing_bytes(const struct passing *p)
{
    return both_ways(up(&p->of_workers), down(&p->of_workers), up(&p->of_ps), down(&p->of_ps));
}

/* The bytes of a step that pass the links which it waits for: those that may travel while it
 * computes, and those of what is done in turn */
struct waited {
    double beside, up, down;
};

static void wait_for(const struct plan_case *c, const struct passing *p, struct waited *ret)
{
    const struct plan_bytes *w = &p->of_workers, *s = &p->of_ps;
    const double dense = both_ways(w->dense_up, w->dense_down, s->dense_up, s->dense_down);
    ret->beside = larger(ret->beside, c->overlaps ? dense : 0);
    ret->up = larger(ret->up, c->overlaps ? larger(w->rows_up, s->rows_up) : larger(up(w), up(s)));
    ret->down = larger(ret->down,
                       c->overlaps ? larger(w->rows_down, s->rows_down) : larger(down(w), down(s)));
}

/* A step of all workers if synchronous, else of one, on the host where most bytes pass. */
static struct waited waited_for(const struct plan_case *c, const struct plan_bytes *all)
{
    struct waited ret = {0};
    for (int i = 0; i < host_count(c); i++) {
        const struct planned_host h = host_at(c, i);
        if (!c->is_sync && !h.workers) continue;
        const struct passing p =
            passing_at(all, &h, c->is_sync ? h.workers : 1, c->is_sync ? c->workers : 1);
        wait_for(c, &p, &ret);
    }
    return ret;
}

/* Seconds of a worker's step whose parts follow each other */
static double in_turn(const struct plan_case *c, const struct waited *w, double updating)
{
    const double passes = w->beside + w->up + w->down;
    return larger(c->costs.computing, w->beside / c->link_bytes_s) +
           (w->up + w->down) / c->link_bytes_s + updating + (passes > 0 ? c->round_trip_s : 0);
}

static void fill_links(const struct plan_case *c, const struct plan_bytes *all,
                       double parts_s[BOUND_COUNT])
{
    for (int i = 0; i < host_count(c); i++) {
        const struct planned_host h = host_at(c, i);
        const enum plan_bound bound = h.has_ps && h.workers ? BOUND_SHARED_LINK
                                      : h.has_ps            ? BOUND_PS_LINK
                                                            : BOUND_WORKER_LINK;
        const struct passing p = passing_at(all, &h, h.workers, c->workers);
        parts_s[bound] = larger(parts_s[bound], passing_bytes(&p) / c->link_bytes_s);
    }
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
    const struct plan_bytes all = sum(c);
    struct plan_time t = {.ps = most_used(c)};
    const double bytes = moved(&all), share = bytes > 0 ? moved(&c->bytes[t.ps]) / bytes : 1,
                 updating = c->costs.updating * share;
    const struct waited waited = waited_for(c, &all);
    fill_links(c, &all, t.parts_s);
    t.parts_s[BOUND_COMPUTING] = c->costs.computing;
    t.parts_s[BOUND_UPDATING] = c->is_sync ? updating : c->workers * updating;
    t.parts_s[BOUND_ROUND_TRIP] = c->round_trip_s;
    t.bound = longest(t.parts_s);
    t.step_s = in_turn(c, &waited, updating);
    for (int i = BOUND_WORKER_LINK; i <= BOUND_UPDATING && !c->is_sync; i++)
        t.step_s = larger(t.step_s, t.parts_s[i]);
    t.examples_s = t.step_s > 0 ? (double)c->workers * c->batch / t.step_s : 0;
    return t;
}

const char *plan_bound_name(enum plan_bound bound)
{
    static const char *const names[BOUND_COUNT] = {
        "computing",        "the links of workers",
        "the link of a ps", "the link of ps and workers",
        "updates on a ps",  "the round trip between hosts",
    };
    return names[bound];
}
