/* ps_turns.c - the turns of asynchronous training (turns.h): a ps notes them, or replays given
 * ones, to get bit-identical values.
 *
 * Replay, at each number of updates: first all workers are answered that were answered there, with
 * values and with rows; then the push of this turn is applied. Pushes that come early wait. A
 * worker gets a ticket for each of its turns, with the recorded batch.
 */
#include <stdio.h>
#include <string.h>

#include "core/cluster/role/ps_role_inside.h"
#include "core/cluster/role/verdict.h"

/* ---- noting ---- */

void ps_note_turn(struct ps_role *p, enum turn_kind kind, int worker, const struct message *push,
                  struct outbox *out)
{
    const struct member_turn *turn = &p->members[worker].turn;
    if (!p->options.notes_turns || p->config.is_sync) return;
    const struct turn noted = {
        .kind = kind,
        .worker = worker,
        .values = push ? push->push.updates : turn->values,
        .batch = p->options.task == 0 ? ps_next_batch(p, worker) : 0,
    };
    outbox_add_turn(out, (struct action_turn){noted, p->counters.applied});
}

/* A worker may pass on the verdict of another ps: the text begins with the name of the task that
 * failed. */
static int origin_of(const struct ps_role *p, const char *text, int from)
{
    char name[TASK_NAME_MAX];
    for (int w = 0; w < p->options.workers && from != NOBODY; w++) {
        const size_t length = strlen(task_name(JOB_WORKER, w, name));
        if (strncmp(text, name, length) == 0 && text[length] == ':') return w;
    }
    return from;
}

void ps_note_turns_end(struct ps_role *p, int code, const char *text, int from, struct outbox *out)
{
    if (!p->options.notes_turns || p->config.is_sync || p->phase != SERVING) return;
    for (int w = 0; w < p->options.workers; w++)
        if (p->members[w].turn.is_open) ps_note_turn(p, TURN_OPEN, w, NULL, out);
    const struct turn end = {.kind = TURN_END,
                             .worker = code,
                             .batch = (uint64_t)(origin_of(p, text, from) - NOBODY + 1)};
    outbox_add_turn(out, (struct action_turn){end, p->counters.applied});
}

void ps_open_turn(struct ps_role *p, int worker)
{
    struct member_turn *turn = &p->members[worker].turn;
    turn->is_open = true;
    turn->values = p->counters.applied;
}

/* ---- given ones ---- */

bool ps_has_turns(const struct ps_role *p)
{
    return p->options.turns.at && !p->config.is_sync;
}

/* Whether the turn has a place in the order: dropped pushes never came to other ps, and open ones
 * nowhere. */
static bool is_in_order(const struct ps_role *p, const struct turn *turn)
{
    return turn->kind == TURN_TAKEN || turn->kind == TURN_BAD ||
           (turn->kind == TURN_DROPPED && p->options.task == 0);
}

static const struct turn *next_in_order(struct ps_role *p)
{
    const struct turns *turns = &p->options.turns;
    while (p->turns.next < turns->count && !is_in_order(p, &turns->at[p->turns.next]))
        p->turns.next++;
    return p->turns.next < turns->count ? &turns->at[p->turns.next] : NULL;
}

/* The worker's first turn from this one on; NULL: none. */
static const struct turn *first_of(const struct ps_role *p, const struct turn *from, int worker)
{
    const struct turn *end = p->options.turns.at + p->options.turns.count;
    while (from < end && from->worker != worker) from++;
    return from < end ? from : NULL;
}

/* The worker's next turn; NULL: none, or not a replay. */
static const struct turn *next_of(struct ps_role *p, int worker)
{
    if (!ps_has_turns(p)) return NULL;
    const struct turns *turns = &p->options.turns;
    int64_t *next = &p->members[worker].turn.next;
    const struct turn *turn = first_of(p, turns->at + *next, worker);
    *next = turn ? turn - turns->at : turns->count;
    return turn;
}

uint64_t ps_turns_last_step(const struct ps_role *p)
{
    uint64_t last = p->step;
    for (int64_t i = 0; i < p->options.turns.count; i++)
        last += p->options.turns.at[i].kind == TURN_TAKEN;
    return last;
}

bool ps_has_turn(struct ps_role *p, int worker)
{
    return next_of(p, worker);
}

bool ps_turns_are_left(struct ps_role *p)
{
    return ps_has_turns(p) && next_in_order(p);
}

void ps_turn_batches(struct ps_role *p, int worker, uint64_t ret[2])
{
    const struct turn *turn = next_of(p, worker),
                      *behind = turn ? first_of(p, turn + 1, worker) : NULL;
    ret[0] = turn ? turn->batch : 0;
    ret[1] = behind ? behind->batch : 0;
}

bool ps_turn_is_answered_now(struct ps_role *p, int worker)
{
    const struct turn *turn = next_of(p, worker);
    return !turn || turn->values == TURN_NOTHING || turn->values == p->counters.applied;
}

/* Its next turn whose values are recorded; NULL: none. ret_is_open: it was answered with these. */
static const struct turn *next_sure_of(struct ps_role *p, int worker, bool *ret_is_open)
{
    const struct turn *turn = next_of(p, worker);
    *ret_is_open = p->members[worker].turn.is_open;
    while (turn && turn->values == TURN_NOTHING) {
        *ret_is_open = false;
        turn = first_of(p, turn + 1, worker);
    }
    return turn;
}

static bool lacks_answer(struct ps_role *p, int worker)
{
    bool is_open;
    const struct turn *turn = next_sure_of(p, worker, &is_open);
    if (!turn) return false;
    return (turn->values == p->counters.applied && !is_open) ||
           (turn->rows == p->counters.applied && !(is_open && p->members[worker].turn.has_rows));
}

/* All workers to be answered at this number of updates have been, other than worker `pushes`. */
static bool all_are_answered(struct ps_role *p, int pushes)
{
    for (int w = 0; w < p->options.workers; w++)
        if (w != pushes && lacks_answer(p, w)) return false;
    return true;
}

static void pass(struct ps_role *p, int worker)
{
    struct member_turn *m = &p->members[worker].turn;
    m->next++;
    m->is_open = m->has_rows = false;
}

bool ps_turn_defers(struct ps_role *p, int worker, const struct message *push)
{
    if (!ps_has_turns(p)) return false;
    struct member_turn *m = &p->members[worker].turn;
    const struct turn *turn = next_in_order(p);
    if (turn && turn->worker == worker && all_are_answered(p, worker)) {
        p->turns.next++;
        pass(p, worker);
        return false;
    }
    m->late_push = *push;
    snprintf(m->what, sizeof m->what, "%.*s", (int)push->body_bytes,
             push->body ? (const char *)push->body : "");
    m->late_push.body = m->what;
    m->late_push.body_bytes = (uint32_t)strlen(m->what);
    return true;
}

void ps_turn_joins(struct ps_role *p, int worker)
{
    struct member_turn *m = &p->members[worker].turn;
    const struct turn *turn = next_of(p, worker);
    const bool was_dropped = turn && turn->kind == TURN_DROPPED && p->options.task != 0;
    if (was_dropped && m->is_open) pass(p, worker);
    m->is_open = m->has_rows = false;
}

/* The replay has diverged: a worker should be answered with values that this ps has already
 * updated. */
static bool has_strayed(struct ps_role *p, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    for (int w = 0; w < p->options.workers; w++) {
        bool is_open;
        const struct turn *turn = next_sure_of(p, w, &is_open);
        if (!turn || is_open || turn->values >= p->counters.applied) continue;
        snprintf(text, sizeof text,
                 "the run has left its record: worker/%d is to compute from the values of %llu "
                 "updates, and there are %llu",
                 w, (unsigned long long)turn->values, (unsigned long long)p->counters.applied);
        ps_end(p, EXIT_FAILED, text, NOBODY, out);
        return true;
    }
    return false;
}

void ps_take_turns(struct ps_role *p, struct outbox *out)
{
    if (!ps_has_turns(p) || p->phase != SERVING || has_strayed(p, out)) return;
    for (int i = 0; i <= p->options.workers && p->phase == SERVING; i++) {
        const struct turn *turn = next_in_order(p);
        if (!turn || !all_are_answered(p, turn->worker)) return;
        struct member_turn *m = &p->members[turn->worker].turn;
        const struct message push = m->late_push;
        if (!push.type) return;
        m->late_push = (struct message){0};
        ps_push(p, turn->worker, &push, out);
    }
}

/* ---- rows ---- */

bool ps_role_rows_are_due(struct role *role, int worker)
{
    struct ps_role *p = (struct ps_role *)role;
    const struct turn *turn = next_of(p, worker);
    return !turn || turn->rows == TURN_NOTHING || turn->rows <= p->counters.applied;
}

bool ps_role_rows_go_with_values(struct role *role, int worker)
{
    struct ps_role *p = (struct ps_role *)role;
    const struct turn *turn = next_of(p, worker);
    return !turn || turn->rows == TURN_NOTHING || !turn->asks_rows;
}

void ps_role_gave_rows(struct role *role, int worker, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    p->members[worker].turn.has_rows = true;
    ps_take_turns(p, out);
}
