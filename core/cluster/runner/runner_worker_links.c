/* runner_worker_links.c - a worker's links.
 *
 * A connection begins over tcp. If WELCOME says that the ps runs on this host (same boot id) and
 * listens over a local transport, such as shared memory, a second connection is made there; the ps
 * drops the first when it is greeted on the second. If that fails, or later memory cannot be mapped
 * for lack of descriptors or address space, that transport is given up for this incarnation of the
 * ps, and the connection is made again over tcp: messages on the first one meanwhile were ignored,
 * and the ps sends them again on a new connection. Lost connections are retried until a named
 * limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/counting.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/trace/trace_worker.h"

enum {
    STEADY_MS = 1000, /* a link that lasted for less is not reconnected at once repeatedly */
};

static const struct link_events events;

static void note_trouble(struct runner_worker *w, int ps, const char *why)
{
    snprintf(w->task.peers[ps].trouble, sizeof w->task.peers[ps].trouble, "%s", why);
}

/* Notes why a link ended before its greeting. */
static void note_end(struct runner_worker *w, int ps, err why)
{
    char text[ACTION_TEXT_MAX];
    snprintf(text, sizeof text, "%s%s", error_text(),
             why == ERR_PROTOCOL ? ": another program listens there" : "");
    note_trouble(w, ps, text);
}

static void plan_retry(struct runner_worker *w, int ps)
{
    struct peer *peer = &w->task.peers[ps];
    peer->retry_ms = clock_ms() + task_retry_ms(peer->tries++);
}

static void begin_attempt(struct runner_worker *w, struct attempt *attempt,
                          const struct transport *transport, const char *address)
{
    if (transport->connect(w->options.task.loop, address, &events, attempt, &attempt->link)) {
        attempt->link = NULL;
        note_trouble(w, attempt->ps, error_text());
        plan_retry(w, attempt->ps);
    }
}

void runner_worker_connect(struct runner_worker *w, int ps)
{
    char address[ADDRESS_MAX];
    cluster_find(w->options.task.cluster, JOB_PS, ps, address);
    begin_attempt(w, &w->attempts.first[ps], task_first_transport(&w->options.task), address);
}

static void on_opened(void *context, struct link *link)
{
    struct attempt *attempt = context;
    const struct greeter me = greeter_of(&attempt->worker->task);
    if (greeting_send(&me, link, MESSAGE_HELLO, NULL)) log_line(LOG_WARNING, "%s", error_text());
}

/* Only for the link that is kept: windows belong to their link. */
static void expect_windows(const struct attempt *attempt)
{
    const struct runner_worker *w = attempt->worker;
    const uint64_t bytes = runner_worker_block_bytes(w, attempt->ps);
    const struct window values = {.bytes =
                                      bytes / sizeof(float) * number_bytes(w->task.wire_values)};
    const int home = layout_home(w->session.layout, attempt->ps);
    const struct window rows = {.bytes = rows_window_bytes(&w->session.rows, home)};
    link_expect(attempt->link, &(struct link_windows){values, {.bytes = bytes}, rows});
}

static void accept_peer(struct attempt *attempt, uint64_t incarnation)
{
    struct runner_worker *w = attempt->worker;
    struct peer *peer = &w->task.peers[attempt->ps];
    expect_windows(attempt);
    peer->link = attempt->link;
    peer->incarnation = incarnation;
    peer->came_ms = clock_ms();
    runner_worker_forget_speculation(w);
    w->incoming.values[attempt->ps].ahead = 0;
    w->incoming.values[attempt->ps].is_next = false;
    runner_worker_plan_overlap(w, attempt->ps);
    if (peer->overlap & OVERLAP_IN_PARTS) link_keep_short(attempt->link);
    log_line(LOG_DEBUG, "ps/%d is here over %s (%s)", attempt->ps,
             link_transport(attempt->link)->name, link_peer_name(attempt->link));
    task_peer_up(&w->task, attempt->ps);
}

/* The first of transports[] that this ps offers and that works; -1: none. */
static int find_offer(const struct runner_worker *w, const struct greeting *g)
{
    const struct attempt *second = &w->attempts.second[g->task];
    const unsigned given_up = second->given_up == g->incarnation ? second->given_up_for : 0;
    if (!g->boot_id[0] || strcmp(g->boot_id, greeting_boot_id()) != 0) return -1;
    for (int i = 0; i < TRANSPORT_COUNT; i++)
        if (g->offers.at[i][0] && task_takes(&w->options.task, transports[i]) &&
            !(given_up & 1u << i))
            return i;
    return -1;
}

static void drop(struct attempt *attempt)
{
    if (attempt->link) link_close(attempt->link);
    attempt->link = NULL;
}

/* The peer violates the greeting, or is another ps: reconnects, until the limit of the wait for
 * this ps. */
static void break_off(struct attempt *attempt, const char *why)
{
    struct runner_worker *w = attempt->worker;
    log_limited(&w->attempts.wrong, clock_ms(), LOG_WARNING, "%s", why);
    note_trouble(w, attempt->ps, why);
    drop(&w->attempts.first[attempt->ps]);
    drop(&w->attempts.second[attempt->ps]);
    plan_retry(w, attempt->ps);
}

/* true: a second connection was begun, which replaces the first once it is greeted. */
static bool begin_second(struct runner_worker *w, const struct greeting *g)
{
    struct attempt *second = &w->attempts.second[g->task];
    const int offer = find_offer(w, g);
    if (offer < 0) return false;
    second->offer = offer;
    w->task.peers[g->task].incarnation = g->incarnation;
    begin_attempt(w, second, transports[offer], g->offers.at[offer]);
    return second->link;
}

/* The user has chosen a local transport, and this link is over another one. */
static bool is_not_chosen(const struct attempt *attempt)
{
    const struct transport *chosen = attempt->worker->options.task.transport;
    return chosen && chosen->reach == TRANSPORT_WITHIN_HOST;
}

static void welcome(struct attempt *attempt, const struct message *m)
{
    struct runner_worker *w = attempt->worker;
    const struct greeter me = greeter_of(&w->task);
    struct greeting g;
    err e = greeting_read(&me, m, &g);
    if (!e && g.membership.resizes > w->options.task.cluster->resizes) {
        task_resize(&w->task, &g.membership);
        return;
    }
    const bool is_another = !e && g.task != attempt->ps;
    if (is_another)
        e = fail(ERR_INPUT, "ps/%d answers at the address of ps/%d", g.task, attempt->ps);
    if (is_another && w->options.task.cluster->find) { /* the address is out of date */
        break_off(attempt, error_text());
        return;
    }
    if (e) {
        task_end(&w->task, e);
        return;
    }
    struct attempt *first = &w->attempts.first[attempt->ps],
                   *second = &w->attempts.second[attempt->ps];
    if (attempt == first && second->link) {
        (void)fail(ERR_PROTOCOL, "ps/%d sent WELCOME again", attempt->ps);
        break_off(attempt, error_text());
        return;
    }
    if (attempt == second) { /* the ps has closed the first connection */
        drop(first);
    } else if (w->task.has_ended) { /* a verdict needs no shared memory */
    } else if (begin_second(w, &g)) {
        return;
    } else if (is_not_chosen(attempt)) {
        const struct transport *chosen = w->options.task.transport;
        task_end(&w->task, fail(ERR_INPUT, "--transport=%s, but ps/%d offers no %s to this host",
                                chosen->name, attempt->ps, chosen->what));
        return;
    }
    accept_peer(attempt, g.incarnation);
}

static void welcome_if(struct attempt *attempt, const struct message *m)
{
    struct membership membership;
    if (m->type == MESSAGE_WELCOME) welcome(attempt, m);
    if (m->type == MESSAGE_RESIZE && membership_unpack(m, &membership))
        task_resize(&attempt->worker->task, &membership);
}

/* The ps still has a link of another incarnation of this worker. That is the reason to report while
 * this one waits, not that the ps closes the link. */
static void put_off(struct attempt *attempt, const char *why)
{
    struct runner_worker *w = attempt->worker;
    note_trouble(w, attempt->ps, why);
    attempt->is_put_off = attempt != &w->attempts.first[attempt->ps] ||
                          w->task.peers[attempt->ps].link == attempt->link;
    if (attempt->is_put_off) return;
    link_close(attempt->link);
    attempt->link = NULL;
    plan_retry(w, attempt->ps);
}

static void refused(struct attempt *attempt, const struct message *m)
{
    char text[ACTION_TEXT_MAX];
    message_text(m, text);
    struct task *t = &attempt->worker->task;
    if (exit_code_is_retryable((int)m->refused.exit_code)) {
        put_off(attempt, text);
        return;
    }
    err kind = m->refused.exit_code == EXIT_INPUT ? ERR_INPUT : ERR_PEER;
    task_end_alone(t, fail(kind, "ps/%d refused this worker: %s", attempt->ps, text));
}

/* With num_steps the last step counts from where the job began, with epochs it depends on earlier
 * numbers of workers: only ps/0 still knows that. */
static void note_last_step(struct runner_worker *w, const struct message *m)
{
    const bool is_told = m->type == MESSAGE_STATE && m->state.state == PS_SERVING;
    if (!is_told || w->end.is_known) return;
    w->end.is_known = true;
    w->end.unset = w->options.spec->train.last_step ? w->end.step : m->state.last_step;
    w->end.step = m->state.last_step;
}

/* What ps/0 knew when this process connected. */
static void note_past(struct runner_worker *w, const struct message *m)
{
    struct ledger ledger;
    if (m->type == MESSAGE_STATE && !w->past.is_known) {
        w->past.is_known = true;
        w->past.was_serving = m->state.state == PS_SERVING;
    }
    note_last_step(w, m);
    if (m->type == MESSAGE_LEDGER && w->past.was_serving && ledger_unpack(m, 1, &ledger))
        w->past.has_pushed |= ledger.received > 0;
}

static void hear(struct runner_worker *w, int ps, const struct message *m)
{
    if (m->type == MESSAGE_SCALE) runner_worker_check_scale(w, m);
    if (m->type == MESSAGE_STATE && ps == 0) runner_worker_note_settings(w, m);
    if (ps == 0 && !w->has_adopted) note_past(w, m);
    if (m->type == MESSAGE_VALUES) runner_worker_note_values(w, ps, m);
    if (m->type == MESSAGE_VALUES) runner_worker_count_answered(w);
    if (m->type == MESSAGE_VALUES && !(m->values.flags & VALUES_HELD))
        runner_worker_rows_values(w, ps);
    if (w->trace && m->type == MESSAGE_VALUES) runner_worker_trace_values(w, ps, m);
    task_message(&w->task, ps, m);
    if (m->type == MESSAGE_VALUES) runner_worker_plan_overlap(w, ps);
}

/* After the end only whether a ps knows the verdict matters; one that was lost just before is sent
 * it again. */
static void hear_at_end(struct attempt *attempt, const struct link *link, const struct message *m)
{
    struct runner_worker *w = attempt->worker;
    const bool is_known = w->task.peers[attempt->ps].link == link;
    if (is_known && m->type == MESSAGE_VERDICT) task_message(&w->task, attempt->ps, m);
    if (!is_known && m->type == MESSAGE_WELCOME) welcome(attempt, m);
}

static void on_message(void *context, struct link *link, const struct message *came)
{
    struct attempt *attempt = context;
    struct runner_worker *w = attempt->worker;
    struct message counted = *came;
    const struct message *const m = &counted;
    task_set_range(&w->task, &counted);
    const bool is_part = message_is_part(m->type);
    if (w->trace && is_part) runner_worker_trace_back(w, attempt->ps, m);
    if (w->task.has_ended) {
        hear_at_end(attempt, link, m);
        return;
    }
    if (m->type == MESSAGE_REFUSED) /* at once, or later when the chief has another spec */
        refused(attempt, m);
    else if (w->task.peers[attempt->ps].link != link)
        welcome_if(attempt, m);
    else if (m->type == MESSAGE_ROWS)
        runner_worker_rows_heard(w, attempt->ps, m);
    else if (m->type == MESSAGE_AVERAGES)
        runner_worker_averages_heard(w, attempt->ps, m);
    else if (m->type == MESSAGE_COUNTERS)
        counting_hear(&w->task, attempt->ps, m);
    else if (m->type == MESSAGE_REQUEST)
        runner_worker_heard_request(w, attempt->ps, m);
    else if (m->type == MESSAGE_AHEAD)
        runner_worker_note_ahead(w, attempt->ps, m);
    else if (m->type == MESSAGE_SHARD)
        runner_worker_take_shard(w, attempt->ps, m);
    else if (m->type == MESSAGE_TRACE)
        runner_worker_trace_message(w, attempt->ps, m);
    else
        hear(w, attempt->ps, m);
}

static void on_shared(void *context, struct link *link, const struct link_windows *windows)
{
    struct attempt *attempt = context;
    struct runner_worker *w = attempt->worker;
    const int ps = runner_worker_bound(w, attempt->ps);
    attempt->has_windows = true;
    w->incoming.windows[attempt->ps] =
        (struct ps_windows){windows->values.base, windows->gradients.base, windows->rows.base,
                            !link_shares_memory(link)};
    if (ps == NOBODY) return;
    float **kept = &w->kept[ps];
    runner_worker_bind(w, ps);
    if (!*kept) return;
    session_put_gradients(&w->session, ps, *kept);
    free(*kept);
    *kept = NULL;
}

/* Windows end with their link. A gradient without answer is kept, since it may have to be sent
 * again. */
static void keep_gradient(struct runner_worker *w, int of)
{
    const int ps = runner_worker_bound(w, of);
    uint64_t bytes = runner_worker_block_bytes(w, of);
    w->incoming.windows[of] = (struct ps_windows){0};
    if (ps == NOBODY || !w->session.replica.gradients[ps]) return;
    free(w->kept[ps]);
    runner_worker_rows_keep(w, ps);
    w->kept[ps] = malloc(bytes);
    if (w->kept[ps])
        session_get_gradients(&w->session, ps, w->kept[ps]);
    else
        task_end(&w->task, fail(ERR_MEMORY, "no memory to keep a gradient of %llu bytes",
                                (unsigned long long)bytes));
    session_unbind(&w->session, ps);
}

/* Reconnects after the role has dropped the link. */
void runner_worker_remake(struct runner_worker *w, int ps)
{
    struct peer *peer = &w->task.peers[ps];
    struct attempt *attempt = w->attempts.second[ps].link == peer->link ? &w->attempts.second[ps]
                                                                        : &w->attempts.first[ps];
    if (!peer->is_up) return;
    drop(attempt);
    if (attempt->has_windows) keep_gradient(w, ps);
    attempt->has_windows = false;
    note_trouble(w, ps, "its link is made anew");
    task_forget_peer(&w->task, ps);
    plan_retry(w, ps);
}

/* Gives this transport up for this incarnation of the ps, as the failure would recur. */
static void give_up_offer(struct runner_worker *w, struct attempt *attempt, err why)
{
    const struct transport *transport = transports[attempt->offer];
    const uint64_t incarnation = w->task.peers[attempt->ps].incarnation;
    if (w->options.task.transport == transport) {
        task_end(&w->task,
                 fail_prefix(why, "--transport=%s, but ps/%d", transport->name, attempt->ps));
        return;
    }
    if (attempt->given_up != incarnation) attempt->given_up_for = 0;
    attempt->given_up = incarnation;
    attempt->given_up_for |= 1u << attempt->offer;
    log_line(LOG_INFO, "ps/%d: %s, no %s: %s", attempt->ps,
             task_first_transport(&w->options.task)->name, transport->what, error_text());
}

/* The second connection, while the first one waits for it. It is retried at once only the first
 * time: a ps that looks like a different one on each attempt waits for the usual retry. */
static void second_closed(struct runner_worker *w, struct attempt *attempt, err why)
{
    struct attempt *first = &w->attempts.first[attempt->ps];
    const bool is_first_time = !attempt->given_up;
    give_up_offer(w, attempt, why);
    if (w->task.has_ended) return;
    link_close(first->link);
    first->link = NULL;
    if (is_first_time)
        runner_worker_connect(w, attempt->ps);
    else
        plan_retry(w, attempt->ps);
}

/* Prefers the reason that the ps has sent before it closed the link. */
static err explain_end(struct attempt *attempt, err why)
{
    struct runner_worker *w = attempt->worker;
    if (!attempt->is_put_off) return why;
    attempt->is_put_off = false;
    return fail(attempt == &w->attempts.second[attempt->ps] ? ERR_IO : why, "ps/%d says: %s",
                attempt->ps, w->task.peers[attempt->ps].trouble);
}

static void on_closed(void *context, struct link *link, err why)
{
    struct attempt *attempt = context;
    struct runner_worker *w = attempt->worker;
    struct peer *peer = &w->task.peers[attempt->ps];
    attempt->link = NULL;
    why = explain_end(attempt, why);
    if (attempt->has_windows) keep_gradient(w, attempt->ps);
    attempt->has_windows = false;
    if (link_is_of_other_version(link)) {
        char address[ADDRESS_MAX];
        cluster_find(w->options.task.cluster, JOB_PS, attempt->ps, address);
        task_end_alone(&w->task, fail_prefix(ERR_INPUT, "ps/%d at %s", attempt->ps, address));
        return;
    }
    if (peer->link == link) {
        char reason[ACTION_TEXT_MAX], address[ADDRESS_MAX];
        cluster_find(w->options.task.cluster, JOB_PS, attempt->ps, address);
        snprintf(reason, sizeof reason, "%s: %s", address, error_text());
        if (attempt == &w->attempts.second[attempt->ps] && (why == ERR_IO || why == ERR_MEMORY))
            give_up_offer(w, attempt, why);
        if (clock_ms() - peer->came_ms >= STEADY_MS) peer->tries = 0;
        note_trouble(w, attempt->ps, reason);
        task_peer_lost(&w->task, attempt->ps, reason);
        if (!w->task.has_ended || worker_role_awaits(w->task.role, attempt->ps))
            plan_retry(w, attempt->ps);
        return;
    }
    if (peer->is_up || (w->task.has_ended && !worker_role_awaits(w->task.role, attempt->ps)))
        return;
    note_end(w, attempt->ps, why);
    if (attempt == &w->attempts.second[attempt->ps] && w->attempts.first[attempt->ps].link) {
        second_closed(w, attempt, why);
        return;
    }
    if (attempt == &w->attempts.first[attempt->ps] && w->attempts.second[attempt->ps].link)
        return; /* the link moved to the second connection */
    plan_retry(w, attempt->ps);
}

static const struct link_events events = {
    .opened = on_opened,
    .message = on_message,
    .shared = on_shared,
    .closed = on_closed,
};

/* A ps answers HELLO at once. */
static const char silent[] = "it takes connections and says nothing (is it another program?)";

/* After a network failure a ps still has its values, after a restart it is empty. */
static const char unsaved[] =
    "; nothing is saved (train.checkpoint_dir), so that a ps that has died ends the job when it is "
    "started again, or at this limit; SIGTERM ends a task within --stop_timeout";

/* Logs which ps are missing, and the limit. true: logged. */
static bool watch_start(struct runner_worker *w, int ps, uint64_t now_ms)
{
    const struct peer *peer = &w->task.peers[ps];
    const struct wait_limits *limits = &w->options.task.limits;
    uint64_t since_ms = peer->was_up ? peer->lost_ms : w->task.started_ms;
    uint64_t waited_ms = now_ms > since_ms ? now_ms - since_ms : 0;
    uint64_t limit_ms = peer->was_up ? limits->restart_ms : limits->start_ms;
    char address[ADDRESS_MAX];
    cluster_find(w->options.task.cluster, JOB_PS, ps, address);
    const char *trouble = peer->trouble;
    if (!*trouble) trouble = w->attempts.first[ps].link ? silent : "no answer yet";
    const char *flag = peer->was_up ? "--restart_timeout" : "--start_timeout";
    if (waited_ms >= limit_ms)
        task_end(&w->task, fail(peer->was_up ? ERR_PEER : ERR_TIMEOUT,
                                "ps/%d at %s did not come%s within %llu s (%s): %s", ps, address,
                                peer->was_up ? " back" : "", (unsigned long long)limit_ms / 1000,
                                flag, trouble));
    if (waited_ms >= limit_ms || !log_wait_is_due(since_ms, w->noted_ms, now_ms)) return false;
    const bool is_held_twice = w->options.spec->train.absence.ps_replicas && ps > 0;
    const bool is_lost = peer->was_up && !is_held_twice && !w->options.spec->train.checkpoint.dir;
    log_line(log_wait_level(waited_ms), "waiting for ps/%d at %s: %s, %llu s of %llu s (%s)%s", ps,
             address, trouble, (unsigned long long)waited_ms / 1000,
             (unsigned long long)limit_ms / 1000, flag, is_lost ? unsaved : "");
    return true;
}

static void connect_when_due(struct runner_worker *w, int ps, uint64_t now_ms)
{
    const bool is_idle = !w->attempts.first[ps].link && !w->attempts.second[ps].link;
    if (is_idle && now_ms >= w->task.peers[ps].retry_ms) runner_worker_connect(w, ps);
}

/* Sends a verdict again that was lost with its link. */
void runner_worker_tick_end(struct task *t, uint64_t now_ms)
{
    struct runner_worker *w = (struct runner_worker *)t;
    for (int ps = 0; ps < t->peer_count; ps++)
        if (!t->peers[ps].is_up && t->peers[ps].was_up && worker_role_awaits(w->task.role, ps))
            connect_when_due(w, ps, now_ms);
}

void runner_worker_tick_links(struct task *t, uint64_t now_ms)
{
    struct runner_worker *w = (struct runner_worker *)t;
    bool is_said = false;
    for (int ps = 0; ps < t->peer_count && !t->has_ended; ps++) {
        struct peer *peer = &t->peers[ps];
        if (peer->is_up) continue;
        connect_when_due(w, ps, now_ms);
        if (worker_role_is_without(w->task.role, ps)) continue;
        is_said |= watch_start(w, ps, now_ms);
    }
    if (is_said) w->noted_ms = now_ms;
}

void runner_worker_hang_up(struct task *t)
{
    struct runner_worker *w = (struct runner_worker *)t;
    for (int ps = 0; ps < t->peer_count; ps++) {
        const bool is_home = w->session.replica.gradients && ps < w->session.layout->ps_count;
        if (is_home && w->session.replica.gradients[ps]) session_unbind(&w->session, ps);
        drop(&w->attempts.first[ps]);
        drop(&w->attempts.second[ps]);
        t->peers[ps].link = NULL;
    }
}
