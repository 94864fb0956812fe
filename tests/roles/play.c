/* play.c - see play.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "tests/roles/play.h"

#include <cmocka.h> /* last: it has a macro named fail */

struct stage_options async_options(int ps, int workers, uint64_t last_step, uint64_t seed)
{
    struct stage_options o = {
        .ps_count = ps,
        .workers = workers,
        .config = {.last_step = last_step,
                   .replicas_to_aggregate = 1,
                   .max_staleness = -1,
                   .worker_timeout_ms = WORKER_TIMEOUT_MS,
                   .min_workers = 1},
        .gradients_per_push = 1,
        .seed = seed,
    };
    for (int i = 0; i < ps; i++) o.block_bytes[i] = 64;
    return o;
}

struct stage_options sync_options(int ps, int workers, uint64_t last_step, uint64_t seed)
{
    struct stage_options o = async_options(ps, workers, last_step, seed);
    o.config.is_sync = o.config.takes_all = true;
    o.config.replicas_to_aggregate = (uint32_t)workers;
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
    settle(s);
}

void run_until_computing(struct stage *s, int worker)
{
    while (!s->workers[worker].is_computing) assert_true(stage_step(s));
}

void run_until_adopted(struct stage *s, int worker)
{
    while (!s->workers[worker].adopted) assert_true(stage_step(s));
}

void run_until_applied(struct stage *s, int count)
{
    while (s->ps[0].applied_count < count) assert_true(stage_step(s));
}

static void ended(const struct actor *actor, int code)
{
    if (!actor->is_alive) return;
    assert_true(actor->has_ended);
    assert_int_equal(actor->code, code);
}

void everybody_ended(const struct stage *s, int code)
{
    for (int i = 0; i < s->options.ps_count; i++) ended(&s->ps[i], code);
    for (int i = 0; i < s->options.workers; i++) ended(&s->workers[i], code);
}

void nobody_ended(const struct stage *s)
{
    for (int i = 0; i < s->options.ps_count; i++) assert_false(s->ps[i].has_ended);
    for (int i = 0; i < s->options.workers; i++) assert_false(s->workers[i].has_ended);
}

void nothing_twice(const struct actor *ps)
{
    uint64_t newest[STAGE_WORKERS_MAX] = {0};
    for (int i = 0; i < ps->applied_count; i++)
        for (int k = 0; k < ps->applied[i].worker_count; k++) {
            int worker = ps->applied[i].workers[k];
            assert_true(ps->applied[i].sequences[k] > newest[worker]);
            newest[worker] = ps->applied[i].sequences[k];
        }
}

/* The order may differ in asynchronous mode, so sums of sequences are compared, worker by worker:
 * with nothing twice, and all in order, equal counts and sums are equal pushes. */
static void count_pushes(const struct actor *ps, uint64_t count[], uint64_t sum[])
{
    for (int i = 0; i < ps->applied_count; i++)
        for (int k = 0; k < ps->applied[i].worker_count; k++) {
            count[ps->applied[i].workers[k]]++;
            sum[ps->applied[i].workers[k]] += ps->applied[i].sequences[k];
        }
}

void all_ps_applied(const struct stage *s, int count)
{
    uint64_t wanted[2][STAGE_WORKERS_MAX] = {0};
    count_pushes(&s->ps[0], wanted[0], wanted[1]);
    for (int i = 0; i < s->options.ps_count; i++) {
        uint64_t got[2][STAGE_WORKERS_MAX] = {0};
        if (!s->options.block_bytes[i]) continue;
        assert_int_equal(s->ps[i].applied_count, count);
        nothing_twice(&s->ps[i]);
        count_pushes(&s->ps[i], got[0], got[1]);
        assert_memory_equal(got, wanted, sizeof got);
    }
}

void all_rounds_are_whole(const struct stage *s, int rounds)
{
    for (int i = 0; i < s->options.ps_count; i++) {
        assert_int_equal(s->ps[i].applied_count, rounds);
        for (int r = 0; r < rounds; r++) {
            const struct applied *a = &s->ps[i].applied[r];
            assert_int_equal(a->step, r);
            assert_int_equal(a->gradients, s->options.config.replicas_to_aggregate);
            assert_int_equal(a->worker_count, s->options.workers);
            for (int w = 0; w < s->options.workers; w++) {
                assert_int_equal(a->workers[w], w);
                assert_int_equal(a->sequences[w], r + 1);
            }
        }
    }
}
