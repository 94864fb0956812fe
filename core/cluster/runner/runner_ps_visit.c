/* runner_ps_visit.c - visitors of a ps: their links, and what they are shown of its memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/board.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/runner_ps_inside.h"
#include "core/cluster/role/verdict.h"

static struct connection *connection_of(const struct runner_ps *p, int visitor)
{
    for (struct connection *l = p->listening.connections; l; l = l->next)
        if (l->visitor == visitor) return l;
    return NULL;
}

/* A link that fails closes by itself, and is heard of later. */
static void send(const struct connection *connection, const struct message *m)
{
    if (link_send(connection->link, m)) log_line(LOG_DEBUG, "%s", error_text());
}

static void on_answer(void *context, int visitor, const struct message *answer)
{
    const struct runner_ps *p = context;
    const struct connection *connection = connection_of(p, visitor);
    struct message m = *answer;
    m.job = JOB_PS;
    m.task = (uint32_t)p->task.index;
    if (connection) send(connection, &m);
}

/* "hidden/kernel[3][4]" */
static void name_changed(const struct ask *ask, char *ret, size_t size)
{
    const struct selection *selection = &ask->change.selection;
    size_t used = (size_t)snprintf(ret, size, "%s", ask->name);
    for (int i = 0; i < selection->index_count && used < size; i++)
        used += (size_t)snprintf(ret + used, size - used, "[%lld]", (long long)selection->index[i]);
}

enum { CHANGES_TOLD = 20 /* in LOG_LIMITED_MS */ };

/* Whoever reaches a ps may do this, and who looks for the reason later finds it here. */
static void on_changed(void *context, int visitor, const struct ask *ask, const struct shape *shape,
                       double first)
{
    enum { TEXT_MAX = 512 };
    struct runner_ps *p = context;
    const struct connection *connection = connection_of(p, visitor);
    const char *who = connection ? link_peer_name(connection->link) : "who has gone", *how = "set";
    char text[TEXT_MAX], name[VISIT_NAME_MAX + 64], what[64];
    p->saving.as_of = 0;
    name_changed(ask, name, sizeof name);
    if (ask->verb == VERB_ADD) how = "added to";
    if (shape->rank)
        snprintf(what, sizeof what, "%lld numbers", (long long)shape_count(shape));
    else
        snprintf(what, sizeof what, "%.9g", first);
    snprintf(text, sizeof text, "a visitor (%s) %s %s: %s", who, how, name, what);
    log_budgeted(&p->logs.changes, CHANGES_TOLD, clock_ms(), LOG_INFO, text);
}

static const char *on_scale(void *context, const int count[JOB_COUNT])
{
    struct runner_ps *p = context;
    return ps_role_scale(p->task.role, count, &p->task.outbox);
}

static json_t *on_status(void *context, uint64_t from)
{
    const struct runner_ps *p = context;
    return board_json(p->task.counting.board, p->task.index != 0, from, VISIT_TASKS_MAX,
                      clock_ms());
}

static const char *send_request(struct runner_ps *p, int worker,
                                const struct message_request *request, const char *body)
{
    struct link *link = p->task.peers[worker].link;
    const struct message m = {.type = MESSAGE_REQUEST,
                              .job = JOB_PS,
                              .request = *request,
                              .body = body,
                              .body_bytes = body ? (uint32_t)strlen(body) : 0};
    if (!link_has_room(link, m.body_bytes)) return "that worker is busy: try again";
    if (link_send(link, &m)) log_line(LOG_DEBUG, "%s", error_text());
    return NULL;
}

/* A worker that waits for the job to begin has a log, too. */
static const char *ask_worker_of(struct runner_ps *p, int worker,
                                 const struct message_request *request, const char *body)
{
    struct task *t = &p->task;
    if (worker >= t->peer_count) return "there is no such worker: dtrain status lists them";
    if (!ps_role_is_serving(t->role) && request->what != REQUEST_LOG)
        return "the job does not take steps yet: try again later";
    if (!t->peers[worker].is_up || !t->peers[worker].link)
        return "that worker is not here: it has left, or is not connected";
    return send_request(p, worker, request, body);
}

static const char *ask_worker(struct runner_ps *p, int worker,
                              const struct message_request *request)
{
    return ask_worker_of(p, worker, request, NULL);
}

/* Who wants it goes with it. */
static const char *ask_setting(struct runner_ps *p, const struct ask *ask, const char *who)
{
    json_t *json = ask->name[0]
                       ? json_pack("{ss ss ss}", "key", ask->name, "value", ask->value, "by", who)
                       : json_object();
    char *body = json ? json_dumps(json, JSON_COMPACT) : NULL;
    const struct message_request request = {.what = REQUEST_SETTING, .request_id = ask->request_id};
    const char *why = body ? ask_worker_of(p, ask->worker, &request, body) : "no memory to ask";
    if (!why && ask->name[0])
        log_limited(&p->task.lines.requests, clock_ms(), LOG_INFO,
                    "a visitor (%s) asks to set %s to %s", who, ask->name, ask->value);
    free(body);
    json_decref(json);
    return why;
}

/* The same, of what changes the job; the worker is not told who asked. */
static const char *ask_logged(struct runner_ps *p, const char *who, int worker,
                              const struct message_request *request)
{
    const char *wanted = request->what == REQUEST_SAVE      ? "to save a checkpoint"
                         : request->what == REQUEST_PROFILE ? "to record a timeline"
                                                            : "to leave";
    const char *refused = ask_worker(p, worker, request);
    char text[256];
    if (refused) return refused;
    snprintf(text, sizeof text, "a visitor (%.128s) asks worker/%d %s", who, worker, wanted);
    log_budgeted(&p->logs.changes, CHANGES_TOLD, clock_ms(), LOG_INFO, text);
    return NULL;
}

/* As a signal to this ps would. */
static const char *stop(struct runner_ps *p, int worker, const char *who)
{
    struct task *t = &p->task;
    char why[ACTION_TEXT_MAX];
    if (t->has_ended) return "the job ends already";
    if (worker != NO_WORKER && !ps_role_cannot_begin_without(t->role, worker)) return NULL;
    snprintf(why, sizeof why, "stopped by a visitor (%s)", who);
    t->role->ops->leave(t->role, EXIT_TERMINATED, why, false, &t->outbox);
    return NULL;
}

/* That is all that a worker can say to those who do not take it, or that never greeted. */
static const char *note_absent(struct runner_ps *p, const struct ask *ask)
{
    struct task *t = &p->task;
    if (ask->worker >= t->peer_count) return "there is no such worker";
    ps_role_note_absent(t->role, ask->worker, ask->why, &t->outbox);
    return NULL;
}

static int on_chief(void *context)
{
    const struct runner_ps *p = context;
    return ps_role_chief(p->task.role);
}

static const char *on_request(void *context, int visitor, const struct ask *ask)
{
    struct runner_ps *p = context;
    const struct connection *connection = connection_of(p, visitor);
    const char *who = connection ? link_peer_name(connection->link) : "who has gone";
    if (ask->verb == VERB_ABSENT) return note_absent(p, ask);
    if (ask->verb == VERB_STOP) return stop(p, ask->worker, who);
    if (p->task.index != 0) return "ps/0 is to be asked for that";
    switch (ask->verb) {
    case VERB_SAVE:
        return ask_logged(p, who, ask->worker, &(struct message_request){.what = REQUEST_SAVE});
    case VERB_LOG:
        return ask_worker(
            p, ask->worker,
            &(struct message_request){REQUEST_LOG, ask->request_id, ask->from, ask->last});
    case VERB_SETTING:
        return ask_setting(p, ask, who);
    case VERB_PROFILE:
        return ask_logged(p, who, ask->worker,
                          &(struct message_request){.what = REQUEST_PROFILE,
                                                    .request_id = ask->request_id,
                                                    .number = (uint64_t)ask->steps});
    default:
        return ask_logged(p, who, ask->worker, &(struct message_request){.what = REQUEST_LEAVE});
    }
}

static uint64_t on_waits(void *context, char *ret_text, size_t size)
{
    const struct runner_ps *p = context;
    char text[ACTION_TEXT_MAX];
    const uint64_t limit_ms = ps_role_awaits_chief(p->task.role, text);
    if (limit_ms) snprintf(ret_text, size, "%s", text);
    return limit_ms;
}

/* The chief waits for all ps, and then for the checkpoint. */
static uint64_t setting_limit_ms(const struct wait_limits *limits)
{
    const uint64_t twice = 2 * limits->save_ms;
    return twice > limits->step_ms ? twice : limits->step_ms;
}

err runner_ps_visit_open(struct runner_ps *p)
{
    const bool is_first = p->task.options.cluster->task == 0;
    const struct visits_options options = {
        .has_step = is_first,
        .scale = is_first ? on_scale : NULL,
        .change_limit_ms = p->task.options.limits.step_ms,
        .setting_limit_ms = setting_limit_ms(&p->task.options.limits),
        .answer = on_answer,
        .changed = on_changed,
        .status = on_status,
        .chief = on_chief,
        .request = on_request,
        .waits = on_waits,
        .context = p,
    };
    return visits_open(&options, &p->visiting.visits);
}

static void send_verdict(const struct connection *connection)
{
    const struct task *t = &connection->ps->task;
    const struct message m = {
        .type = MESSAGE_VERDICT,
        .verdict.exit_code = (uint32_t)t->code,
        .job = JOB_PS,
        .task = (uint32_t)t->index,
        .body = t->text,
        .body_bytes = (uint32_t)strlen(t->text),
    };
    send(connection, &m);
}

/* Places are for those who have something to ask. */
static void make_room(struct runner_ps *p, uint64_t now_ms)
{
    const int silent = visits_silent(p->visiting.visits, now_ms);
    if (silent < 0) return;
    const err e =
        fail(ERR_PEER, "all %d places of visitors are taken, and this one said nothing for %d s",
             VISITORS_MAX, VISIT_SPARED_MS / 1000);
    connection_refuse(connection_of(p, silent), e);
}

err runner_ps_visit_greet(struct connection *connection)
{
    struct runner_ps *p = connection->ps;
    const uint64_t now_ms = clock_ms();
    const bool may_change = link_right(connection->link) >= RIGHT_TO_CHANGE;
    TRY(greeting_check_right(connection->link, RIGHT_TO_LOOK));
    int visitor = visits_enter(p->visiting.visits, may_change, now_ms);
    if (visitor < 0) {
        make_room(p, now_ms);
        visitor = visits_enter(p->visiting.visits, may_change, now_ms);
    }
    if (visitor < 0) return fail(ERR_PEER, "%d visitors are here already", VISITORS_MAX);
    const struct greeter me = greeter_of(&p->task);
    err e = greeting_send(&me, connection->link, MESSAGE_WELCOME, NULL);
    if (e) {
        visits_leave(p->visiting.visits, visitor);
        return e;
    }
    connection_become_visitor(connection, visitor);
    log_line(LOG_DEBUG, "a visitor is here (%s)", link_peer_name(connection->link));
    if (p->task.has_ended && !task_has_resized(&p->task)) send_verdict(connection);
    return OK;
}

bool runner_ps_visit_message(struct connection *connection, const struct message *m)
{
    if (m->type != MESSAGE_ASK) return false;
    struct runner_ps *p = connection->ps;
    runner_ps_settle(p);
    visits_ask(p->visiting.visits, connection->visitor, m, clock_ms());
    runner_ps_plan_overlap(p);
    task_flush(&p->task);
    return true;
}

/* ---- what they see ---- */

/* SETUP is about to throw away what was shown. */
void runner_ps_visit_hide(struct runner_ps *p)
{
    visits_show(p->visiting.visits, NULL);
    p->visiting.shown = (struct visit_view){0};
}

static void show(struct runner_ps *p)
{
    const struct setup *setup = p->share && p->has_store ? &p->share->setup : NULL;
    bool is_serving = ps_role_is_serving(p->task.role);
    if (!setup ||
        (p->visiting.shown.slices == setup->slices && p->visiting.shown.has_values == is_serving))
        return;
    struct shard described = {0};
    runner_ps_tables_describe(p, &described);
    p->visiting.shown = (struct visit_view){
        .slices = setup->slices,
        .slice_count = setup->config.follows ? 0 : setup->slice_count, /* one of the two tells */
        .values = p->values.window.base,
        .has_values = is_serving,
        .is_in_use = setup->config.takes_all,
        .is_held_twice = setup->part.is_held_twice,
        .tables = described.tables,
        .table_count = setup->config.follows ? 0 : described.table_count,
    };
    visits_show(p->visiting.visits, &p->visiting.shown);
    visits_changed(p->visiting.visits, ps_role_step(p->task.role));
}

/* After a resize they find their ps again. */
static void tell_verdict(struct runner_ps *p)
{
    p->visiting.has_told = true;
    if (task_has_resized(&p->task)) return;
    visits_end(p->visiting.visits);
    for (const struct connection *l = p->listening.connections; l; l = l->next)
        if (l->visitor != NOBODY_KNOWN) send_verdict(l);
}

void runner_ps_visit_flushed(struct runner_ps *p)
{
    if (p->task.has_ended && !p->visiting.has_told) tell_verdict(p);
    if (!p->task.has_ended) show(p);
}

void runner_ps_visit_applying(struct runner_ps *p)
{
    struct loop *loop = p->task.options.loop;
    while (p->visiting.shown.is_in_use && visits_wait_for_round(p->visiting.visits) &&
           loop_begin_guests_here(loop)) {
        visits_round(p->visiting.visits);
        loop_end_guests_here(loop);
    }
}

void runner_ps_visit_pump(struct runner_ps *p)
{
    struct loop *loop = p->task.options.loop;
    const uint64_t now_ms = clock_ms();
    if (!visits_wait_for_work(p->visiting.visits, now_ms) || !loop_begin_guests(loop)) return;
    bool has_more = true;
    runner_ps_settle(p);
    while (has_more && !loop_guests_had_their_slice(loop))
        has_more = visits_work(p->visiting.visits, now_ms);
    loop_end_guests(loop, has_more);
    runner_ps_plan_overlap(p);
    task_flush(&p->task);
}

void runner_ps_visit_applied(struct runner_ps *p)
{
    visits_changed(p->visiting.visits, ps_role_step(p->task.role));
}
