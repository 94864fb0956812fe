/* runner_ps.c - see runner_ps.h: a ps' links, and its role's actions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/role/parts.h"
#include "core/cluster/runner/counting.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/trace/trace_ps.h"
#include "core/cluster/runner/listen.h"
#include "core/cluster/role/verdict.h"

enum {
    START_GRACE_MS = 10000, /* a chief that is here waits for another ps, and names it first */
};

static struct connection *connection_of(const struct runner_ps *p, int worker)
{
    for (struct connection *l = p->listening.connections; l; l = l->next)
        if (l->worker == worker) return l;
    return NULL;
}

/* ---- what the role asks for ---- */

enum { HELD_TOLD_MS = 100 }; /* a shorter wait is of no interest to most */

/* How long training stood still for a checkpoint. */
static void note_held(struct runner_ps *p, bool begins)
{
    if (begins) {
        p->held_ns = clock_ns();
        return;
    }
    const double held_ms = (double)(clock_ns() - p->held_ns) * 1e-6;
    log_line(held_ms < HELD_TOLD_MS ? LOG_DEBUG : LOG_INFO,
             "workers waited %.1f ms for the snapshot of a checkpoint", held_ms);
    if (p->timeline.recording) runner_ps_trace_held(p);
    p->held_ns = 0;
}

static void hang_up(struct runner_ps *p, int worker)
{
    struct connection *connection = connection_of(p, worker);
    if (connection) connection_hang_up(connection);
    task_forget_peer(&p->task, worker);
}

/* A save that failed is a warning, unless it has told that the values themselves are lost. */
static err snapshot(struct runner_ps *p, const struct action_snapshot *a)
{
    const err e = runner_ps_snapshot(p, a);
    if (!e && !a->since) p->saving.as_of = a->tag;
    if (!e || e == ERR_LOST) return e;
    log_line(LOG_WARNING, "checkpoint: %s", error_text());
    task_done(&p->task, ACTION_SNAPSHOT, ERR_IO);
    return OK;
}

static void act(struct task *t, const struct action *a)
{
    struct runner_ps *p = (struct runner_ps *)t;
    const bool updates =
        a->type == ACTION_APPLY || a->type == ACTION_FOLD || a->type == ACTION_ADVANCE;
    const uint64_t begin_ns = updates || p->timeline.recording ? clock_ns() : 0;
    err e = OK;
    if (updates || a->type == ACTION_INITIALIZE) p->saving.as_of = 0;
    switch (a->type) {
    case ACTION_SETUP:
        t->counting.counters.at[COUNTER_GENERATION]++;
        runner_ps_visit_hide(p);
        runner_ps_setup(p, &a->setup.message);
        break;
    case ACTION_TURN:
        runner_ps_turn(p, &a->turn);
        break;
    case ACTION_HANG_UP:
        hang_up(p, a->hang_up.worker);
        break;
    case ACTION_SHARE:
        e = runner_ps_share(p, a->share.worker, a->share.is_fresh);
        break;
    case ACTION_INITIALIZE:
        runner_ps_initialize(p, a->initialize.worker, a->initialize.array);
        break;
    case ACTION_REFRESH:
        runner_ps_refresh(p, a->refresh.worker);
        break;
    case ACTION_APPLY:
        runner_ps_visit_applying(p);
        lateness_round(&p->lateness, a->apply.workers, a->apply.worker_count);
        e = runner_ps_apply(p, &a->apply);
        runner_ps_visit_applied(p);
        break;
    case ACTION_FOLD:
        e = runner_ps_fold(p, &a->fold);
        break;
    case ACTION_UNFOLD:
        runner_ps_unfold(p);
        break;
    case ACTION_ADVANCE:
        e = runner_ps_advance(p, &a->advance);
        break;
    case ACTION_TAKE_BACK:
        runner_ps_take_back(p);
        break;
    case ACTION_SNAPSHOT:
        e = snapshot(p, &a->snapshot);
        break;
    case ACTION_DROP:
        runner_ps_snapshot_drop(p, a->drop.tag);
        break;
    case ACTION_HELD:
        note_held(p, a->held.begins);
        break;
    case ACTION_SCALED:
        visits_refuse_scale(p->visiting.visits, a->scaled.code, a->scaled.text);
        break;
    case ACTION_RESIZE:
        visits_scaled(p->visiting.visits, &a->resize.membership, a->resize.step);
        break;
    default:
        break;
    }
    if (p->timeline.recording) runner_ps_trace_acted(p, a, begin_ns);
    if (updates)
        t->counting.counters.at[COUNTER_TIME_APPLY] += (double)(clock_ns() - begin_ns) * 1e-9;
    if (e) t->role->ops->stop(t->role, exit_code_of(e), error_text(), &t->outbox);
}

/* ---- links ---- */

/* With the thread's error text, which stays as it is until the next failure. */
/* Who is refused tries again and again. */
void connection_refuse(struct connection *connection, err why)
{
    struct runner_ps *p = connection->ps;
    const struct greeter me = greeter_of(&p->task);
    p->task.counting.counters.at[COUNTER_REFUSED]++;
    greeting_refuse(&me, connection->link, &p->logs.refused, why);
    connection_hang_up(connection);
}

/* A ps that has a spec opens no data: it knows the spec as it was written, without what workers
 * have measured. */
static err compare_written(const struct runner_ps *p, const char *name,
                           const struct data_said *data)
{
    char own[17], theirs[17], own_name[TASK_NAME_MAX];
    if (!p->agreed.written || !data->spec || p->agreed.written == data->spec) return OK;
    snprintf(own, sizeof own, "%016" PRIx64, p->agreed.written);
    snprintf(theirs, sizeof theirs, "%016" PRIx64, data->spec);
    return greeting_compare_specs(name, theirs, task_name(JOB_PS, p->task.index, own_name), own);
}

/* Of another spec the data are others, too; and what was measured of them is part of the spec. */
static err compare(const struct runner_ps *p, const char *name, const char *fingerprint,
                   const struct data_said *data)
{
    const bool is_one_spec = data->spec && data->spec == p->agreed.data.spec;
    if (!is_one_spec)
        return greeting_compare_specs(name, fingerprint, p->agreed.spec_of, p->agreed.spec);
    TRY(greeting_compare_data(name, data, p->agreed.data_of, &p->agreed.data));
    const err e = greeting_compare_specs(name, fingerprint, p->agreed.spec_of, p->agreed.spec);
    if (!e) return OK;
    return fail(ERR_INPUT,
                "data.train differs: %s and %s have measured other numbers or words of it; all "
                "workers want the same files",
                name, p->agreed.data_of);
}

/* All specs must be the chief's (or this ps' own, where it has one), and all data. Whoever came
 * before it is held against it now. */
static void compare_earlier(struct runner_ps *p)
{
    char name[TASK_NAME_MAX];
    for (struct connection *l = p->listening.connections, *next; l; l = next) {
        next = l->next;
        if (l->worker == NOBODY_KNOWN) continue;
        struct peer *peer = &p->task.peers[l->worker];
        int worker = l->worker;
        task_name(JOB_WORKER, worker, name);
        const err e = compare(p, name, peer->fingerprint, &peer->data);
        if (!e) continue;
        char why[ERROR_TEXT_MAX];
        snprintf(why, sizeof why, "%s", error_text());
        connection_refuse(l, e);
        task_peer_lost(&p->task, worker, "its spec or its data differ");
        ps_role_note_absent(p->task.role, worker, why, &p->task.outbox);
    }
}

static err check_spec(struct runner_ps *p, const struct greeting *g)
{
    char name[TASK_NAME_MAX];
    task_name(g->job, g->task, name);
    TRY(compare_written(p, name, &g->data));
    TRY(compare(p, name, g->fingerprint, &g->data));
    if (g->task != ps_role_chief(p->task.role)) return OK;
    const bool is_first = !p->agreed.spec[0] || (!p->agreed.data.digest && g->data.digest);
    if (!p->agreed.spec[0]) {
        snprintf(p->agreed.spec, sizeof p->agreed.spec, "%s", g->fingerprint);
        snprintf(p->agreed.spec_of, sizeof p->agreed.spec_of, "%s", name);
    }
    if (!p->agreed.data.digest) {
        p->agreed.data = g->data;
        snprintf(p->agreed.data_of, sizeof p->agreed.data_of, "%s", name);
    }
    if (is_first) compare_earlier(p);
    return OK;
}

/* Another life of a worker must wait until the first is gone. */
static err check_room(const struct runner_ps *p, const struct greeting *g)
{
    const struct peer *peer = &p->task.peers[g->task];
    if (!peer->link || peer->incarnation == g->incarnation) return OK;
    return fail(ERR_PEER, "worker/%d is already here (%s)", g->task, link_peer_name(peer->link));
}

/* The same life of a worker on a new link has found a better transport. */
static err make_room(struct runner_ps *p, const struct greeting *g)
{
    struct peer *peer = &p->task.peers[g->task];
    TRY(check_room(p, g));
    if (peer->link) connection_hang_up(connection_of(p, g->task));
    peer->link = NULL;
    return OK;
}

/* A worker of a later membership has heard a RESIZE that this ps missed while it was away: the
 * chief sends it to all that are there, and no job is resized without a checkpoint. A chief that
 * was away as well, and leads by its flags, knows of it from the folder. */
static err check_later(const struct runner_ps *p, const struct greeting *g)
{
    char name[TASK_NAME_MAX];
    const struct task *t = &p->task;
    task_name(g->job, g->task, name);
    TRY(greeting_compare_specs(name, g->fingerprint, p->agreed.spec_of, p->agreed.spec));
    if (p->share && !p->share->setup.directory)
        return fail(ERR_INPUT, "%s says that the job was resized, which has no checkpoint_dir",
                    name);
    const int chief = ps_role_chief(t->role);
    const uint64_t known = p->share ? (uint64_t)p->share->setup.mark.resizes : 0;
    if (ps_role_obeys(t->role, chief) && g->membership.resizes > known)
        return fail(ERR_PEER,
                    "%s says that the job was resized, of which worker/%d, the chief, knows "
                    "nothing",
                    name, chief);
    return g->task < t->peer_count ? check_room(p, g) : OK;
}

/* A peer of a later membership is believed; one of an earlier one is told of this one. */
static void bring_together(struct connection *connection, const struct membership *theirs)
{
    struct task *t = &connection->ps->task;
    const struct membership mine = cluster_membership(t->options.cluster);
    uint64_t numbers[MEMBERSHIP_NUMBERS];
    membership_pack(&mine, numbers);
    const struct message m = {.type = MESSAGE_RESIZE,
                              .job = JOB_PS,
                              .task = (uint32_t)t->index,
                              .body = numbers,
                              .body_bytes = sizeof numbers};
    if (theirs->resizes < mine.resizes && link_send(connection->link, &m))
        log_line(LOG_DEBUG, "%s", error_text());
    connection_hang_up(connection);
    if (theirs->resizes > mine.resizes) task_resize(t, theirs);
}

static err greet_worker(struct connection *connection, const struct message *m)
{
    struct runner_ps *p = connection->ps;
    const struct greeter me = greeter_of(&p->task);
    struct greeting g;
    TRY(greeting_check_right(connection->link, RIGHT_TO_TAKE_PART));
    TRY(greeting_read(&me, m, &g));
    const uint64_t resizes = p->task.options.cluster->resizes;
    if (g.membership.resizes > resizes) TRY(check_later(p, &g));
    if (g.membership.resizes != resizes) {
        bring_together(connection, &g.membership);
        return OK;
    }
    const err e = check_spec(p, &g);
    if (e == ERR_INPUT) ps_role_note_absent(p->task.role, g.task, error_text(), &p->task.outbox);
    if (e) return e;
    TRY(make_room(p, &g));
    const struct offers *offers = runner_ps_shares_memory(p, g.task) ? &p->listening.offers : NULL;
    struct peer *peer = &p->task.peers[g.task];
    if (greeting_send(&me, connection->link, MESSAGE_WELCOME, offers)) {
        connection_hang_up(connection);
        if (peer->is_up && !peer->link) task_peer_lost(&p->task, g.task, error_text());
        return OK;
    }
    connection_become_worker(connection, g.task);
    counting_note_back(&p->task, g.task);
    runner_ps_copies_forget(p, g.task);
    peer->link = connection->link;
    runner_ps_plan_overlap(p);
    if (peer->overlap & OVERLAP_IN_PARTS) link_keep_short(connection->link);
    if (peer->incarnation != g.incarnation) peer->came_ms = clock_ms();
    peer->incarnation = g.incarnation;
    snprintf(peer->fingerprint, sizeof peer->fingerprint, "%s", g.fingerprint);
    peer->data = g.data;
    log_line(LOG_DEBUG, "worker/%d is here over %s (%s)", g.task,
             link_transport(connection->link)->name, link_peer_name(connection->link));
    task_peer_up(&p->task, g.task);
    return OK;
}

static void greet(struct connection *connection, const struct message *m)
{
    bool is_visitor = false;
    err e = m->type == MESSAGE_HELLO ? greeting_read_visitor(m, &is_visitor)
                                     : fail(ERR_PROTOCOL, "the first message is not HELLO");
    if (!e && is_visitor) {
        e = runner_ps_visit_greet(connection);
    } else if (!e) {
        e = greet_worker(connection, m);
    }
    if (e) connection_refuse(connection, e);
}

/* A peer says HELLO at once, so that the one who has waited longest is none. */
static void refuse_oldest_stranger(struct runner_ps *p)
{
    const err e = fail(ERR_PEER, "it sent nothing, and its place is needed for others");
    connection_refuse(connection_of_oldest_stranger(p), e);
}

static void on_accepted(void *context, struct link *link)
{
    struct runner_ps *p = context;
    if (p->listening.strangers >= TASK_STRANGERS_MAX) refuse_oldest_stranger(p);
    if (!connection_new(p, link)) link_close(link);
}

static void on_turned_away(void *context, struct message *ret_last_words)
{
    struct runner_ps *p = context;
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", error_text());
    log_limited(&p->logs.unserved, clock_ms(), LOG_WARNING, "turned a connection away: %s", why);
    if (p->listening.strangers)
        refuse_oldest_stranger(p); /* so that the next one finds a descriptor */
    (void)fail(ERR_IO, "%s", why);
    const struct greeter me = greeter_of(&p->task);
    *ret_last_words = greeting_refusal(&me, EXIT_LOST_PEER);
}

/* A push or initial values must complete the block; parts are of whole numbers. */
static bool is_whole(const struct runner_ps *p, int worker, const struct message *m)
{
    bool has_it = message_has_stretch(m->type) && !message_fault(m, FROM_WORKER | FROM_CHIEF);
    if (!has_it) return true;
    const struct range range = m->range;
    if (!p->share || range.begin % LAYOUT_ALIGN || range.end % LAYOUT_ALIGN) return false;
    if (m->generation != p->share->setup.config.generation) return true; /* and void */
    const bool is_init = m->type == MESSAGE_INIT, is_push = m->type == MESSAGE_PUSH;
    const struct parts block = parts_of(runner_ps_block_floats(p));
    const struct parts all =
        is_init ? block : parts_front(block, ps_config_moved(&p->share->setup.config));
    const uint64_t parts = parts_in(&all, range);
    if (m->type == MESSAGE_PART) return range_is_empty(range) || (parts && !(parts & FIRST_PART));
    const uint64_t ahead = is_push ? ps_role_ahead(p->task.role, worker, m->push.push) : 0;
    return (parts == parts_all(&all) || (parts ^ ahead) == parts_all(&all)) &&
           (!is_push || runner_ps_tables_have(p, worker, m));
}

static void hear_visitor(struct connection *connection, const struct message *m)
{
    if (runner_ps_visit_message(connection, m)) return;
    log_limited(&connection->ps->logs.wrong, clock_ms(), LOG_WARNING,
                "a visitor (%s) sent %s (%u), which no visitor may send",
                link_peer_name(connection->link), message_name(m->type), m->type);
    connection_hang_up(connection);
}

/* The role has judged the LEAVE. */
static void note_left(struct runner_ps *p, int worker, const struct message *m)
{
    if (m->leave.what == LEAVE_GONE && ps_role_has_left(p->task.role, worker))
        counting_note_left(&p->task, worker);
}

static void on_message(void *context, struct link *link, const struct message *m)
{
    struct connection *connection = context;
    struct runner_ps *p = connection->ps;
    if (connection_is_stranger(connection)) {
        greet(connection, m);
        return;
    }
    if (connection->visitor != NOBODY_KNOWN) {
        hear_visitor(connection, m);
        return;
    }
    if (m->type == MESSAGE_TRACE) {
        runner_ps_trace_message(p, connection->worker, m);
        return;
    }
    const int worker = connection->worker;
    if (p->task.has_ended) { /* its bytes are read, and nothing else counts */
        if (m->type == MESSAGE_VERDICT) task_message(&p->task, worker, m);
        return;
    }
    if (m->type == MESSAGE_COUNTERS) {
        counting_hear(&p->task, worker, m);
        runner_ps_tell_counted(p, worker, clock_ms());
        return;
    }
    if (m->type == MESSAGE_REPLY) {
        visits_replied(p->visiting.visits, worker, m->reply.request_id, m->body, m->body_bytes);
        return;
    }
    if (m->type == MESSAGE_ROWS) {
        if (runner_ps_tables_heard(p, worker, m))
            connection_break_off(connection);
        else if (p->turns.is_replay)
            task_flush(&p->task);
        return;
    }
    if (m->type == MESSAGE_AVERAGES) {
        if (runner_ps_averages_heard(p, worker, m)) connection_break_off(connection);
        return;
    }
    runner_ps_values_heard(p, worker, m);
    struct message counted = *m;
    task_set_range(&p->task, &counted);
    if (!is_whole(p, worker, &counted)) {
        (void)fail(ERR_PROTOCOL, "%s with %llu bytes from %llu on where a block has %zu",
                   message_name(m->type), (unsigned long long)m->length,
                   (unsigned long long)m->offset, runner_ps_block_bytes(p));
        connection_break_off(connection);
    } else {
        if (p->timeline.recording && m->type == MESSAGE_PART) runner_ps_trace_took(p, worker, m);
        if (p->timeline.recording && m->type == MESSAGE_PUSH)
            runner_ps_trace_received(p, worker, m);
        if (m->type == MESSAGE_PUSH) lateness_came(&p->lateness, worker, clock_ns());
        task_message(&p->task, worker, &counted);
        if (m->type == MESSAGE_LEADS) runner_ps_claimed(p, worker, m);
        if (m->type == MESSAGE_LEAVE) note_left(p, worker, m);
    }
}

static void on_closed(void *context, struct link *link, err why)
{
    struct connection *connection = context;
    struct runner_ps *p = connection->ps;
    int worker = connection->worker;
    if (link_is_of_other_version(link))
        log_limited(&p->logs.refused, clock_ms(), LOG_WARNING, "refused %s: it %s",
                    link_peer_name(link), error_text());
    else if (why == ERR_PROTOCOL && worker == NOBODY_KNOWN)
        log_limited(&p->logs.refused, clock_ms(), LOG_WARNING, "hangs up on %s, which %s",
                    link_peer_name(link), error_text());
    connection_drop(connection);
    if (worker != NOBODY_KNOWN) task_peer_lost(&p->task, worker, error_text());
}

static const struct link_events events = {
    .accepted = on_accepted,
    .turned_away = on_turned_away,
    .message = on_message,
    .place = runner_ps_pool_place,
    .closed = on_closed,
};

/* "; worker/2, worker/3 are not here either", as far as there is room for it */
static const char *others_text(const struct task *t, int chief, char *text, size_t size)
{
    size_t used = 0;
    int count = 0;
    char name[TASK_NAME_MAX];
    text[0] = '\0';
    for (int w = 0; w < t->peer_count; w++) {
        if (w == chief || t->peers[w].is_up) continue;
        if (used + TASK_NAME_MAX + sizeof ", ... are not here either" < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", count ? ", " : "; ",
                                     task_name(JOB_WORKER, w, name));
        else if (text[used - 1] != '.')
            used += (size_t)snprintf(text + used, size - used, ", ...");
        count++;
    }
    if (count) snprintf(text + used, size - used, " %s not here either", count > 1 ? "are" : "is");
    return text;
}

static void note_absent(struct runner_ps *p, int chief, uint64_t waited_ms, uint64_t limit_ms)
{
    const struct task *t = &p->task;
    char others[ACTION_TEXT_MAX], address[ADDRESS_MAX];
    cluster_find(t->options.cluster, JOB_WORKER, chief, address);
    log_line(log_wait_level(waited_ms),
             "waiting for the chief, worker/%d at %s%s, %llu s of %llu s (--start_timeout)%s",
             chief, address, t->peers[chief].is_up ? ", to set this ps up" : "",
             (unsigned long long)waited_ms / 1000, (unsigned long long)limit_ms / 1000,
             others_text(t, chief, others, sizeof others));
}

static void note_passed_by(struct runner_ps *p, uint64_t waited_ms, uint64_t now_ms)
{
    if (!log_wait_is_due(now_ms - waited_ms, p->noted_ms, now_ms)) return;
    p->noted_ms = now_ms;
    log_line(log_wait_level(waited_ms),
             "waiting to be taken in, %llu s: the job goes on with the ps that holds the same",
             (unsigned long long)waited_ms / 1000);
}

/* One that is here has begun to wait for the others before it came. Where the job goes on it has
 * limits of its own for this ps. */
static void watch_chief(struct task *t, uint64_t now_ms)
{
    struct runner_ps *p = (struct runner_ps *)t;
    const int chief = ps_role_chief(t->role);
    const struct peer *peer = &t->peers[chief];
    const uint64_t away_ms = peer->was_up ? peer->lost_ms : t->started_ms;
    const uint64_t since_ms = peer->is_up ? peer->came_ms : away_ms;
    const uint64_t limit_ms = t->options.limits.start_ms + (peer->is_up ? START_GRACE_MS : 0);
    if (ps_role_is_set_up(t->role) || peer->is_up) runner_ps_ask_no_more(p);
    if (ps_role_is_set_up(t->role) || t->has_ended) return;
    if (peer->is_up && ps_role_is_passed_by(t->role)) {
        note_passed_by(p, now_ms - since_ms, now_ms);
        return;
    }
    if (!peer->is_up) runner_ps_look_for_place(p, since_ms, now_ms);
    if (ps_role_is_set_up(t->role) || t->has_ended) return;
    if (now_ms - since_ms < limit_ms) {
        if (!log_wait_is_due(since_ms, p->noted_ms, now_ms)) return;
        p->noted_ms = now_ms;
        note_absent(p, chief, now_ms - since_ms, limit_ms);
        return;
    }
    task_end(t, fail(ERR_TIMEOUT, "the chief (worker/%d at %s) %s within %llu s (--start_timeout)",
                     chief, t->options.cluster->hosts[JOB_WORKER].at[chief],
                     peer->is_up ? "did not set this ps up" : "did not come",
                     (unsigned long long)limit_ms / 1000));
}

static void tick(struct task *t, uint64_t now_ms)
{
    struct runner_ps *p = (struct runner_ps *)t;
    for (struct connection *l = p->listening.connections, *next; l; l = next) {
        next = l->next;
        if (!connection_is_stranger(l) || now_ms - l->since_ms < TASK_GREET_LIMIT_MS) continue;
        log_limited(&p->logs.silent, now_ms, LOG_WARNING, "%s connected and said nothing for %d s",
                    link_peer_name(l->link), TASK_GREET_LIMIT_MS / 1000);
        connection_hang_up(l);
    }
    visits_tick(p->visiting.visits, now_ms);
    runner_ps_turns_tick(p);
    runner_ps_pool_tick(p, now_ms);
    runner_ps_plan_overlap(p);
    watch_chief(t, now_ms);
}

static void hang_up_all(struct task *t)
{
    struct runner_ps *p = (struct runner_ps *)t;
    while (p->listening.connections) connection_hang_up(p->listening.connections);
    for (int w = 0; w < t->peer_count; w++) t->peers[w].link = NULL;
}

static void pump(struct task *t)
{
    struct runner_ps *p = (struct runner_ps *)t;
    runner_ps_snapshot_pump(p);
    runner_ps_copies_pump(p);
    runner_ps_visit_pump(p);
    if (p->timeline.trace) runner_ps_trace_pump(p);
}

static void flushed(struct task *t)
{
    runner_ps_pool_flushed((struct runner_ps *)t);
    runner_ps_tables_pump((struct runner_ps *)t);
    runner_ps_visit_flushed((struct runner_ps *)t);
}

static bool awaits(const struct task *t, int worker)
{
    return ps_role_awaits(t->role, worker);
}

static void report(const struct task *t)
{
    char text[OVERLAP_TEXT_MAX];
    log_line(LOG_INFO, "overlap of rounds: %s", overlap_text(ps_role_overlap(t->role), text));
}

static const struct task_ops ops = {.act = act,
                                    .flushed = flushed,
                                    .pump = pump,
                                    .report = report,
                                    .count = runner_ps_count,
                                    .send = runner_ps_values_send,
                                    .tick = tick,
                                    .hang_up = hang_up_all,
                                    .awaits = awaits};

/* ---- life ---- */

/* Where it cannot be had, workers stay with what they have come over. */
static void offer(struct runner_ps *p, struct loop *loop, int i)
{
    char name[ADDRESS_MAX];
    snprintf(name, sizeof name, "dtrain-%016llx", (unsigned long long)p->task.incarnation);
    if (transports[i]->listen(loop, name, &events, p, p->listening.offers.at[i],
                              &p->listening.offered[i])) {
        log_line(LOG_INFO, "no %s: %s", transports[i]->what, error_text());
        p->listening.offers.at[i][0] = '\0';
        return;
    }
    listener_set_guests(p->listening.offered[i]);
}

/* Nobody is heard of before the loop runs. */
static err listen_at(struct runner_ps *p, const struct task_options *o)
{
    const char *own = o->cluster->hosts[JOB_PS].at[o->cluster->task];
    if (task_is_inside(o))
        return o->transport->listen(o->loop, own, &events, p, NULL, &p->listening.listener);
    TRY(task_listen(o, &events, p, &p->listening.listener));
    listener_set_guests(p->listening.listener);
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        if (task_takes(o, transports[i])) offer(p, o->loop, i);
    return OK;
}

static err open_parts(struct runner_ps *p, const struct task_options *options)
{
    int workers = options->cluster->hosts[JOB_WORKER].count;
    p->task.incarnation = greeting_draw_incarnation();
    (void)greeting_boot_id(); /* while there is a descriptor to read it by */
    struct ps_options role_options = {
        .task = options->cluster->task,
        .workers = workers,
        .membership = cluster_membership(options->cluster),
        .incarnation = p->task.incarnation,
        .limits = options->limits,
        .is_launched = options->is_launched,
    };
    p->windows = calloc((size_t)workers, sizeof *p->windows);
    p->sources = calloc((size_t)workers, sizeof *p->sources);
    if (!p->windows || !p->sources) return fail(ERR_MEMORY, "no memory for %d workers", workers);
    TRY(lateness_open(&p->lateness, workers));
    TRY(runner_ps_turns_open(p, options, &role_options));
    TRY(listen_at(p, options)); /* which may wait: the role's patience begins afterwards */
    TRY(task_open(&p->task, options, &ops, ps_role_new(&role_options)));
    TRY(runner_ps_visit_open(p));
    if (options->fingerprint) p->agreed.written = strtoull(options->fingerprint, NULL, 16);
    return OK;
}

err runner_ps_open(const struct task_options *options, struct device *device,
                   struct runner_ps **ret)
{
    struct runner_ps *p = calloc(1, sizeof *p);
    if (!p) return fail(ERR_MEMORY, "no memory for a ps");
    p->device = device;
    p->task.options = *options;
    err e = open_parts(p, options);
    if (e) {
        runner_ps_close(p);
        return e;
    }
    *ret = p;
    return OK;
}

void runner_ps_close(struct runner_ps *p)
{
    if (!p) return;
    while (p->listening.connections)
        connection_hang_up(p->listening.connections); /* of a task that was never run */
    if (p->listening.listener) listener_close(p->listening.listener);
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        if (p->listening.offered[i]) listener_close(p->listening.offered[i]);
    visits_close(p->visiting.visits);
    runner_ps_ask_no_more(p);
    runner_ps_snapshot_close(p);
    runner_ps_trace_close(p);
    runner_ps_store_close(p);
    runner_ps_turns_close(p);
    lateness_close(&p->lateness);
    ps_role_free(p->task.role);
    task_close(&p->task);
    free(p);
}

struct task *runner_ps_task(struct runner_ps *p)
{
    return &p->task;
}
