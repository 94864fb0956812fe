/* runner_ps_turns.c - a ps records its turns, or replays a record (record.h). */
#include <inttypes.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/runner/runner_ps_inside.h"

err runner_ps_turns_open(struct runner_ps *p, const struct task_options *o,
                         struct ps_options *ret_role)
{
    const int ps = o->cluster->task, workers = o->cluster->hosts[JOB_WORKER].count;
    struct ps_turns *t = &p->turns;
    if (o->record) TRY(record_open(o->record, ps, &t->record));
    ret_role->notes_turns = o->record;
    if (!o->replay) return OK;
    TRY(replay_read(o->replay, ps, o->replay_to, &t->replay));
    const struct record_section *s = &t->replay.section;
    if (s->ps_count != o->cluster->hosts[JOB_PS].count || s->workers != workers)
        return fail(ERR_INPUT, "%s is a record of %d ps and %d workers", o->replay, s->ps_count,
                    s->workers);
    t->is_replay = true;
    ret_role->turns = t->replay.turns;
    return OK;
}

static double rate_factor_of(const struct ps_config *c)
{
    return c->rate_factor > 0 ? c->rate_factor : 1;
}

/* A learning rate by `dtrain set` is stored in the folder of checkpoints, not in the spec. */
static err check_rate(const struct runner_ps *p)
{
    const double was = p->turns.replay.section.rate_factor;
    const double is = rate_factor_of(&p->share->setup.config);
    if (memcmp(&was, &is, sizeof is) == 0) return OK;
    return fail(ERR_INPUT,
                "the record began with learning rates times %g, this run begins with them times "
                "%g: put into --out the settings.json that lay beside the checkpoint which the "
                "record begins with (dtrain set keeps there what it changed), or none where there "
                "was none",
                was, is);
}

/* With max_staleness a worker pushes to other ps only after ps/0 has accepted the gradient, with
 * values that may be newer. In a replay that can deadlock: ps/0 waits for the newer values, these
 * for other workers, and those for the gradient. */
static bool is_bound(const struct runner_ps *p)
{
    return p->share->setup.config.max_staleness >= 0 &&
           p->task.options.cluster->hosts[JOB_PS].count > 1;
}

#define BOUND_WHY "with train.max_staleness a run is done again only where it has one ps"

/* Checks that the generation is the recorded one. */
err runner_ps_turns_check(const struct runner_ps *p)
{
    const struct ps_turns *t = &p->turns;
    const struct ps_config *c = &p->share->setup.config;
    const uint64_t spec = p->agreed.data.spec;
    if (!t->is_replay) return OK;
    if (c->is_sync)
        return fail(ERR_INPUT, "synchronous training has the same bits in any case: nothing is to "
                               "be replayed");
    if (is_bound(p)) return fail(ERR_INPUT, BOUND_WHY);
    if (t->replay.section.spec && spec && spec != t->replay.section.spec)
        return fail(ERR_INPUT,
                    "the record is of another spec (%016" PRIx64 ", this one is %016" PRIx64
                    "): give the same --set, --seed and --data_dir as the run had",
                    t->replay.section.spec, spec);
    if (t->replay.section.step != c->step)
        return fail(ERR_INPUT, "the record begins at step %" PRIu64 ", this run at step %" PRIu64,
                    t->replay.section.step, c->step);
    return check_rate(p);
}

void runner_ps_turns_begin(struct runner_ps *p)
{
    const struct ps_config *c = &p->share->setup.config;
    if (!p->turns.record) return;
    if (c->is_sync) {
        log_line(LOG_INFO, "nothing is recorded: synchronous training has the same bits in any "
                           "case");
        return;
    }
    if (is_bound(p)) {
        log_line(LOG_WARNING, "nothing is recorded: " BOUND_WHY);
        return;
    }
    const struct record_section section = {
        .ps = p->task.index,
        .ps_count = p->task.options.cluster->hosts[JOB_PS].count,
        .workers = p->task.peer_count,
        .generation = c->generation,
        .step = c->step,
        .spec = p->agreed.data.spec,
        .rate_factor = rate_factor_of(c),
    };
    record_begin(p->turns.record, &section);
}

void runner_ps_turn(struct runner_ps *p, const struct action_turn *a)
{
    struct turn turn = a->turn;
    turn.rows = TURN_NOTHING;
    if (!p->turns.record || is_bound(p)) return;
    if (turn.kind != TURN_END && turn.kind != TURN_BREAK) {
        struct rows_read *read = &p->windows[turn.worker].named.read;
        if (read->is_any) turn.rows = read->at;
        turn.asks_rows = read->is_asked;
        *read = (struct rows_read){0};
    }
    record_add(p->turns.record, &turn, a->applied);
    if (turn.kind == TURN_END) record_flush(p->turns.record);
}

/* A training batch reads its rows at once: the last ones read belong to the push. */
void runner_ps_turns_note_rows(struct runner_ps *p, int worker, bool is_any, bool is_asked)
{
    struct rows_read *read = &p->windows[worker].named.read;
    *read = (struct rows_read){is_any, is_asked, ps_role_counters(p->task.role).applied};
}

/* The rows it has read belong to a push that ps/0 has dropped, unless that push was lost on the way
 * here and comes again. */
void runner_ps_turns_joins(struct runner_ps *p, int worker, const struct message *join)
{
    if (join->join.push <= ps_role_received(p->task.role, worker))
        p->windows[worker].named.read = (struct rows_read){0};
}

void runner_ps_turns_tick(struct runner_ps *p)
{
    if (p->turns.record) record_flush(p->turns.record);
}

void runner_ps_turns_close(struct runner_ps *p)
{
    record_close(p->turns.record);
    replay_free(&p->turns.replay);
}
