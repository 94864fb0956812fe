/* play.c - see play.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "core/cluster/role/verdict.h"
#include "tests/core/cluster/role/play.h"

#include <cmocka.h> /* last: it has a macro named fail */

struct stage_options async_options(int ps, int workers, uint64_t last_step, uint64_t seed)
{
    struct stage_options o = {.seed = seed};
    o.profile = (struct profile){
        .ps_count = ps,
        .workers = workers,
        .config = {.last_step = last_step,
                   .replicas_to_aggregate = 1,
                   .max_staleness = -1,
                   .worker_timeout_ms = WORKER_TIMEOUT_MS,
                   .min_workers = 1},
    };
    for (int i = 0; i < ps; i++) o.profile.has_variables[i] = true;
    for (int i = 0; i < workers; i++) o.profile.gradients_per_push[i] = 1;
    return o;
}

struct stage_options sync_options(int ps, int workers, uint64_t last_step, uint64_t seed)
{
    struct stage_options o = async_options(ps, workers, last_step, seed);
    o.profile.config.is_sync = o.profile.config.takes_all = true;
    o.profile.config.replicas_to_aggregate = (uint32_t)workers;
    return o;
}

void begin(struct stage *s, const struct stage_options *o)
{
    stage_open(s, o);
    stage_greet(s);
}

void settle(struct stage *s)
{
    assert_true(stage_run(s, EVENTS_MAX) < EVENTS_MAX);
}

void play(struct stage *s, const struct stage_options *o)
{
    begin(s, o);
    end_with(s, EXIT_DONE);
}

void run_until_computing(struct stage *s, int worker)
{
    while (!actor_is_at(&s->workers[worker], ACTION_COMPUTE)) assert_true(stage_step(s));
}

void run_until_adopted(struct stage *s, int worker)
{
    while (!s->workers[worker].adopted) assert_true(stage_step(s));
}

void run_until_applied(struct stage *s, int count)
{
    while (stage_updates(s, 0) < count) assert_true(stage_step(s));
}

void cut_somewhere(struct stage *s, uint64_t within_events)
{
    int ps = (int)stage_draw(s, (uint64_t)s->world.profile.ps_count);
    int worker = (int)stage_draw(s, (uint64_t)s->world.profile.workers);
    stage_run(s, (int)stage_draw(s, within_events));
    stage_cut(s, ps, worker);
    stage_run(s, (int)stage_draw(s, 6));
    stage_connect(s, ps, worker);
}

void end_with(struct stage *s, int code)
{
    settle(s);
    for (int i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &s->world.actors[i];
        if (!actor->is_alive) continue;
        assert_true(actor->has_ended);
        assert_int_equal(actor->code, code);
    }
}

void nobody_ended(const struct stage *s)
{
    for (int i = 0; i < ACTORS_MAX; i++) assert_false(s->world.actors[i].has_ended);
}

void nothing_twice(const struct stage *s, int ps)
{
    uint64_t newest[WORKERS_MAX] = {0};
    for (int i = 0; i < stage_updates(s, ps); i++) {
        const struct applied_update a = stage_update(s, ps, i);
        for (int k = 0; k < a.worker_count; k++) {
            assert_true(a.sequences[k] > newest[a.workers[k]]);
            newest[a.workers[k]] = a.sequences[k];
        }
    }
}

/* The order may differ in asynchronous mode, so sums of sequences are compared, worker by worker:
 * with nothing twice, and all in order, equal counts and sums are equal pushes. */
static void count_pushes(const struct stage *s, int ps, uint64_t count[], uint64_t sum[])
{
    for (int i = 0; i < stage_updates(s, ps); i++) {
        const struct applied_update a = stage_update(s, ps, i);
        for (int k = 0; k < a.worker_count; k++) {
            count[a.workers[k]]++;
            sum[a.workers[k]] += a.sequences[k];
        }
    }
}

void all_ps_applied(const struct stage *s, int count)
{
    uint64_t wanted[2][WORKERS_MAX] = {0};
    count_pushes(s, 0, wanted[0], wanted[1]);
    for (int i = 0; i < s->world.profile.ps_count; i++) {
        uint64_t got[2][WORKERS_MAX] = {0};
        if (!s->world.profile.has_variables[i]) continue;
        assert_int_equal(stage_updates(s, i), count);
        nothing_twice(s, i);
        count_pushes(s, i, got[0], got[1]);
        assert_memory_equal(got, wanted, sizeof got);
    }
}

void all_rounds_are_whole(const struct stage *s, int rounds)
{
    const struct profile *p = &s->world.profile;
    for (int i = 0; i < p->ps_count; i++) {
        assert_int_equal(stage_updates(s, i), rounds);
        for (int r = 0; r < rounds; r++) {
            const struct applied_update a = stage_update(s, i, r);
            assert_int_equal(a.step, r);
            assert_int_equal(a.gradients, p->config.replicas_to_aggregate);
            assert_int_equal(a.worker_count, p->workers);
            for (int w = 0; w < p->workers; w++) {
                assert_int_equal(a.workers[w], w);
                assert_int_equal(a.sequences[w], r + 1);
            }
        }
    }
}
