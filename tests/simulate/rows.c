/* rows.c - rows of tables, which tasks carry beside what the roles say.
 *
 * What a batch names is the batch itself, of the data where these are handed out, and all are of
 * one size, so that nobody can tell the rows of one from those of another by looking at them. An
 * evaluation wants a few such batches of its own, one after the other.
 */
#include <string.h>

#include "tests/simulate/world.h"

enum {
    NAMED_PERCENT = 70, /* of pushes: the next batch lies ready */
    BRIEF_PERCENT = 10, /* of askings: given up soon */
    ASK_US = 20000,
    EVALUATED_MAX = 3,
    AGAIN_US = 1000,          /* an evaluation that got no rows tries again */
    EVALUATED_FROM = 1000000, /* no run has so many batches */
};

static bool has_rows(const struct world *world, int ps)
{
    return world->profile.has_rows && world->profile.has_variables[ps];
}

/* NULL: it is lost with its link. */
static struct parcel *post(struct world *world, struct actor *from, int peer,
                           struct message_rows rows, uint64_t generation)
{
    const enum direction away = from->job == JOB_PS ? TO_WORKER : TO_PS;
    struct link *link = network_link(world, from, peer);
    if (!link) return NULL;
    struct parcel *parcel = network_post(world, link, away, PARCEL_MESSAGE);
    parcel->message = (struct message){
        .type = MESSAGE_ROWS,
        .job = from->job,
        .task = (uint32_t)from->index,
        .generation = generation,
        .rows = rows,
    };
    return parcel;
}

/* 1 + the batch */
static uint64_t named_by(const struct content *gradient)
{
    return gradient->data ? gradient->data : gradient->batch + 1;
}

/* ---- of a ps ---- */

/* Into the back. */
static void gather(struct world *world, struct actor *ps, int worker, uint64_t wanted)
{
    struct windows *windows = ps->windows[worker];
    if (!wanted || *ps->store == NOTHING)
        blame(world, "%s brings rows to worker/%d, which %s", actor_name(ps), worker,
              wanted ? "are not there yet" : "names none");
    windows->back = (struct row_back){wanted, *ps->store, worker};
}

static void bring(struct world *world, struct actor *ps, int worker, struct message_rows rows)
{
    struct parcel *parcel = post(world, ps, worker, rows, ps->config.generation);
    if (!parcel) return;
    parcel->rows = ps->windows[worker]->back;
    parcel->rows_source = &ps->windows[worker]->back;
}

void rows_before_values(struct world *world, struct actor *ps, int worker, const struct message *m)
{
    struct rows_told *told = &ps->told[worker];
    if (m->type != MESSAGE_VALUES || m->values.flags & VALUES_HELD || !rows_are_due(told)) return;
    if (!is_broken(world, DEFECT_ROWS_EARLY)) gather(world, ps, worker, ps->ids[worker].wanted);
    bring(world, ps, worker, (struct message_rows){.push = told->push});
}

/* The stretch lands whatever is made of it, unless memory is shared. */
static void land_front(struct world *world, struct actor *ps, int worker,
                       const struct parcel *parcel)
{
    struct windows *windows = ps->windows[worker];
    const bool is_lost =
        is_broken(world, DEFECT_ROWS_OLD) && parcel->message.rows.flags != ROWS_ASKED;
    if (!windows || world->profile.shares_memory || is_lost) return;
    struct content *front = &windows->gradient[ROWS_AT];
    *front = parcel->content;
    if (memcmp(parcel->source, front, sizeof *front) != 0) front->kind = CONTENT_TORN;
}

/* Ids cross once, and what the front says may change. */
static void keep_ids(struct world *world, struct actor *ps, int worker, uint32_t code)
{
    const struct content *front = &ps->windows[worker]->gradient[ROWS_AT];
    struct rows_ids *ids = &ps->ids[worker];
    if (!(code & ROWS_BROUGHT))
        ids->pushed = named_by(front);
    else if (!is_broken(world, DEFECT_ROWS_IDS_OLD))
        ids->pushed = ids->wanted;
    ids->wanted = front->wanted;
    if (code & ROWS_AND_NEXT && is_broken(world, DEFECT_ROWS_EARLY))
        gather(world, ps, worker, ids->wanted);
}

void rows_check_applied(struct world *world, const struct actor *ps, int worker,
                        const struct content *gradient)
{
    const uint64_t pushed = ps->ids[worker].pushed;
    if (!has_rows(world, ps->index) || pushed == named_by(gradient)) return;
    blame(world, "%s applies gradients of batch %llu of worker/%d to rows of batch %lld",
          actor_name(ps), (unsigned long long)named_by(gradient) - 1, worker,
          (long long)pushed - 1);
}

void rows_heard_by_ps(struct world *world, struct actor *ps, int worker,
                      const struct parcel *parcel)
{
    const struct message *m = &parcel->message;
    const bool is_of_this_life = ps->windows[worker] && ps_role_is_serving(ps->role) &&
                                 m->generation == ps->config.generation;
    land_front(world, ps, worker, parcel);
    switch (rows_heard(&ps->told[worker], m, is_of_this_life)) {
    case ROWS_REFUSE:
        post(world, ps, worker, (struct message_rows){ROWS_NONE, .request_id = m->rows.request_id},
             0);
        break;
    case ROWS_ANSWER:
        gather(world, ps, worker, ps->windows[worker]->gradient[ROWS_AT].wanted);
        bring(world, ps, worker,
              (struct message_rows){ROWS_ASKED, .request_id = m->rows.request_id});
        break;
    case ROWS_KEEP:
        keep_ids(world, ps, worker, m->rows.flags);
        break;
    case ROWS_WRONG:
        blame(world, "%s gets push %llu of worker/%d of rows that it has not brought",
              actor_name(ps), (unsigned long long)m->rows.push, worker);
        break;
    case ROWS_VOID:
        break;
    }
}

/* The runner breaks with a worker whose push comes without its rows. */
void rows_check_told(struct world *world, struct actor *ps, int worker, const struct message *m)
{
    struct rows_told *told = &ps->told[worker];
    if (!has_rows(world, ps->index)) return;
    if (m->type == MESSAGE_JOIN) rows_told_forget(told);
    const bool is_void = m->generation != ps->config.generation || !ps->windows[worker];
    if (m->type != MESSAGE_PUSH || is_void || rows_belong(told, m)) return;
    blame(world, "%s gets push %llu of worker/%d, and has rows of push %llu", actor_name(ps),
          (unsigned long long)m->push.push, worker, (unsigned long long)told->push);
}

/* ---- of a worker ---- */

static void send_front(struct world *world, struct actor *worker, int ps, struct message_rows rows,
                       uint64_t generation)
{
    struct parcel *parcel = post(world, worker, ps, rows, generation);
    if (!parcel) return;
    parcel->first = ROWS_AT;
    parcel->pieces = 1;
    parcel->source = &worker->views[ps].gradient[ROWS_AT];
    parcel->content = *parcel->source;
}

void rows_before_push(struct world *world, struct actor *worker, int ps, const struct message *push)
{
    if (push->type != MESSAGE_PUSH || !has_rows(world, ps)) return;
    replicas_copy_push(world, worker, ps, ROWS_AT, 1);
    struct view *view = &worker->views[ps];
    const uint32_t flags = (view->gradient[ROWS_AT].wanted ? ROWS_AND_NEXT : 0) |
                           (view->was_brought ? ROWS_BROUGHT : 0);
    send_front(world, worker, ps, (struct message_rows){flags, .push = push->push.push},
               push->generation);
}

/* Where that is known. The window may have been lost meanwhile. */
void rows_name_next(struct world *world, struct actor *worker)
{
    if (!world->profile.has_rows) return;
    const uint64_t number = worker->computed.batch + 1;
    const uint64_t batch = worker->computed.data ? worker_planned(worker, number) : number + 1;
    const uint64_t next = chance(world, NAMED_PERCENT) ? batch : 0;
    worker->named = next;
    worker->named_number = number;
    worker->is_revoked = false;
    for (int home = 0; home < world->profile.homes; home++) {
        struct view *view = &worker->views[source_of(world, worker, home)];
        struct content *window = view->gradient ? view->gradient : view->kept;
        window[ROWS_AT].wanted = next;
        view->was_brought = view->rows_of == worker->computed.batch + 1;
        view->rows_of = 0;
    }
}

/* Another batch may come instead of the one that was named. */
void rows_planned(struct world *world, struct actor *worker)
{
    const bool is_void =
        worker->named && worker_planned(worker, worker->named_number) != worker->named;
    if (!is_void || is_broken(world, DEFECT_ROWS_PLANNED)) return;
    worker->is_revoked = true;
    for (int ps = 0; ps < world->profile.ps_count; ps++) worker->views[ps].rows_of = 0;
    world->counters.revoked++;
}

bool rows_have_come(const struct world *world, const struct actor *worker, uint64_t came)
{
    for (int home = 0; home < world->profile.homes; home++)
        if (has_rows(world, home) && worker->views[source_of(world, worker, home)].rows_of != came)
            return false;
    return true;
}

static void give_up(struct world *world, struct actor *worker, enum action_type work)
{
    const struct action begun = worker->works[work];
    actor_work(world, worker, &begun, 0);
}

static bool ask(struct world *world, struct actor *worker, int ps)
{
    struct view *view = &worker->views[ps];
    struct content *front = &view->gradient[ROWS_AT];
    const uint64_t number = rows_ask(&view->asked);
    if (!worker->links[ps] || !view->gradient) return false;
    view->rows_of = 0;
    front->wanted = worker->wanted;
    if (front->kind == CONTENT_GRADIENT) front->kind = CONTENT_NONE;
    send_front(world, worker, ps, (struct message_rows){ROWS_ASKED, .request_id = number},
               worker_role_generation(worker->role));
    return true;
}

/* All are asked at once; the work continues when they have answered, and fails where they do not.
 */
void rows_ask_all(struct world *world, struct actor *worker, const struct action *work,
                  uint64_t wanted)
{
    const uint64_t delay_us = world->profile.delay_us;
    const bool is_brief = chance(world, BRIEF_PERCENT);
    bool can_ask = true;
    world->counters.asked++;
    worker->wanted = wanted;
    actor_work(world, worker, work, is_brief ? 1 + delay_us : ASK_US + 8 * delay_us);
    for (int home = 0; home < world->profile.homes && can_ask; home++)
        can_ask = !has_rows(world, home) || ask(world, worker, source_of(world, worker, home));
    if (!can_ask) give_up(world, worker, work->type);
}

static void check_age(struct world *world, struct actor *worker, int ps, const struct node *rows)
{
    const struct node *dense = node_of(world, worker->seen[home_of(world, ps)]);
    if (rows->hash == dense->hash) return;
    /* others have gone on, and not by what was late alone: nothing must come of the step */
    if (world->profile.config.is_sync && rows->step != dense->step)
        worker->computed.is_mixed = true;
    else if (rows->updates < dense->updates)
        blame(world, "%s computes from rows of ps/%d that are %d updates older than its values",
              actor_name(worker), ps, dense->updates - rows->updates);
}

/* Those in the backs are of these ids, and go with the values. */
static void check(struct world *world, struct actor *worker, int ps)
{
    const struct row_back *back = worker->views[ps].back;
    if (back->wanted != worker->wanted || back->worker != worker->index || back->node == NOTHING) {
        blame(world, "%s takes rows of batch %lld of worker/%d from ps/%d for its batch %lld",
              actor_name(worker), (long long)back->wanted - 1, back->worker, ps,
              (long long)worker->wanted - 1);
        return;
    }
    const struct node *node = node_of(world, back->node);
    if (node->ps != home_of(world, ps) || node->generation != worker_role_generation(worker->role))
        blame(world, "%s takes rows of generation %04llx from ps/%d", actor_name(worker),
              (unsigned long long)node->generation & 0xffff, ps);
    else if (worker->wanted < EVALUATED_FROM)
        check_age(world, worker, ps, node);
}

void rows_take(struct world *world, struct actor *worker, uint64_t wanted)
{
    worker->wanted = wanted;
    for (int home = 0; home < world->profile.homes && !world->blame[0]; home++)
        if (has_rows(world, home)) check(world, worker, source_of(world, worker, home));
    worker->wanted = 0;
}

static bool all_answered(const struct world *world, const struct actor *worker, bool *ret_refused)
{
    *ret_refused = false;
    for (int home = 0; home < world->profile.homes; home++) {
        const struct rows_asked *asked = &worker->views[source_of(world, worker, home)].asked;
        if (!has_rows(world, home)) continue;
        if (!asked->is_answered) return false;
        *ret_refused |= asked->is_refused;
    }
    return true;
}

static void go_on(struct world *world, struct actor *worker)
{
    bool is_refused;
    const enum action_type work =
        actor_is_at(worker, ACTION_COMPUTE) ? ACTION_COMPUTE : ACTION_EVALUATE;
    if (!worker->wanted || !all_answered(world, worker, &is_refused)) return;
    if (is_refused) {
        give_up(world, worker, work);
        return;
    }
    const uint64_t came = worker->wanted;
    rows_take(world, worker, came);
    if (work == ACTION_COMPUTE)
        worker_computes(world, worker);
    else
        rows_evaluate(world, worker, &worker->works[ACTION_EVALUATE], came + 1);
}

void rows_heard_by_worker(struct world *world, struct actor *worker, int ps,
                          const struct parcel *parcel)
{
    struct view *view = &worker->views[ps];
    struct message m = parcel->message;
    if (parcel->rows_source && !world->profile.shares_memory && view->own) {
        view->own->back = parcel->rows;
        if (memcmp(parcel->rows_source, &parcel->rows, sizeof parcel->rows) != 0)
            view->own->back.node = NOTHING; /* torn */
    }
    if (is_broken(world, DEFECT_ROWS_ANSWER_OLD) && m.rows.flags == ROWS_ASKED)
        m.rows.request_id = view->asked.number;
    if (is_read(world, worker, ps)) rows_arrived(&view->asked, &m, true);
    go_on(world, worker);
}

void rows_hear_values(struct world *world, struct actor *worker, int ps)
{
    struct view *view = &worker->views[ps];
    if (!is_read(world, worker, ps)) return;
    uint64_t came = rows_with_values(&view->asked);
    if (worker->is_revoked) came = 0;
    if (came || !is_broken(world, DEFECT_ROWS_STAY)) view->rows_of = came;
    world->counters.named += came != 0;
}

/* ---- evaluation ---- */

/* wanted 0: from the first batch on */
void rows_evaluate(struct world *world, struct actor *worker, const struct action *work,
                   uint64_t wanted)
{
    const struct action evaluate = *work;
    if (wanted == 0) wanted = EVALUATED_FROM;
    if (world->profile.has_rows && wanted < EVALUATED_FROM + EVALUATED_MAX)
        rows_ask_all(world, worker, &evaluate, wanted);
    else
        actor_work(world, worker, &evaluate, world->profile.write_us);
}

/* What lies in front of the rows is heard first. */
void rows_evaluate_later(struct world *world, struct actor *worker, const struct action *work)
{
    worker->evaluates = *work;
    actor_add(world, worker, EVENT_EVALUATE, AGAIN_US);
}

static bool has_all_windows(const struct world *world, const struct actor *worker)
{
    for (int home = 0; home < world->profile.homes; home++)
        if (has_rows(world, home) && !worker->views[source_of(world, worker, home)].gradient)
            return false;
    return true;
}

void rows_evaluate_again(struct world *world, struct actor *worker)
{
    if (!worker_role_is_evaluating(worker->role)) return;
    replicas_turn_to(world, worker);
    if (has_all_windows(world, worker))
        rows_evaluate(world, worker, &worker->evaluates, 0);
    else
        rows_evaluate_later(world, worker, &worker->evaluates);
}
