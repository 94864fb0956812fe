/* task.c - see task.h. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/ending_signals.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/cluster/runner/counting.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/task.h"
#include "core/cluster/role/parts.h"
#include "core/cluster/role/verdict.h"

/* ---- signals: the first asks to end, the second ends at once ---- */

static atomic_int caught_signal;
static atomic_bool caught_report, caught_save; /* SIGUSR1, SIGUSR2 */
static bool has_told_signal;                   /* the roles were told, by the loop */
static atomic_int signal_fd = -1;              /* stays open: a signal may be on its way to it */

/* SIGHUP (terminal closed) counts as SIGTERM, since 128 + SIGHUP is another exit code. */
static int code_of_signal(int signo)
{
    return 128 + (signo == SIGHUP ? SIGTERM : signo);
}

static task_last_act *_Atomic last_acts[TASK_LAST_ACTS_MAX];

enum { LAST_ACTS_MS = 800 };

static void *end_in_time(void *code)
{
    clock_pause(LAST_ACTS_MS);
    _exit((int)(intptr_t)code);
}

/* Limits the last acts, since a server may not answer. */
static void limit_last_acts(int code)
{
    pthread_t thread;
    if (last_acts[0] && !pthread_create(&thread, NULL, end_in_time, (void *)(intptr_t)code))
        pthread_detach(thread);
}

/* The latest act first, and each once: a further signal does not wait for a running one. */
static void end_at_once(int signo)
{
    limit_last_acts(code_of_signal(signo));
    for (int i = TASK_LAST_ACTS_MAX - 1; i >= 0; i--) {
        task_last_act *const act = atomic_exchange(&last_acts[i], NULL);
        if (act) act(signo);
    }
    _exit(code_of_signal(signo));
}

void tasks_end_by(task_last_act *act)
{
    int i = 0;
    while (i < TASK_LAST_ACTS_MAX && last_acts[i]) i++;
    assert(i < TASK_LAST_ACTS_MAX);
    last_acts[i] = act;
}

static void on_signal(int signo)
{
    if (signo == SIGUSR1)
        caught_report = true;
    else if (signo == SIGUSR2)
        caught_save = true;
    else if (atomic_exchange(&caught_signal, signo))
        end_at_once(signo);
    const uint64_t one = 1;
    int kept = errno;
    if (write(signal_fd, &one, sizeof one) < 0) { /* the loop checks caught_signal anyway */
    }
    errno = kept;
}

/* SIGHUP stays ignored if it was from the start (nohup). */
static void handle_signals(void (*handler)(int))
{
    const struct sigaction action = {.sa_handler = handler};
    struct sigaction hangup;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, NULL, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}

static void *take_signals(void *unused)
{
    while (pause() < 0) { /* always: ends with the process */
    }
    return unused;
}

/* A thread of its own handles all signals. oneDNN's matrix products keep the stack pointer in the
 * heap while they run: a handler called there would overwrite memory. Threads that are started
 * later block signals, too. */
static void divert_signals(void)
{
    sigset_t set = ending_signals();
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    pthread_t thread;
    const int failed = pthread_create(&thread, NULL, take_signals, NULL);
    if (failed) {
        log_line(LOG_WARNING, "cannot start a thread for signals: %s", strerror(failed));
        return;
    }
    pthread_detach(thread);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void tasks_hold_signals(void)
{
    const sigset_t set = ending_signals();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    handle_signals(end_at_once);
}

void tasks_are_started_here(void)
{
    const sigset_t set = ending_signals();
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void tasks_end_at_once(void)
{
    handle_signals(end_at_once);
}

void tasks_reset_signals(void)
{
    handle_signals(SIG_DFL);
}

void tasks_prepare(void)
{
    handle_signals(end_at_once);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* write() then fails with EFBIG, as on a full disk */
    signal(SIGUSR1, SIG_IGN); /* no status and no checkpoint yet */
    signal(SIGUSR2, SIG_IGN);
    divert_signals();
}

static void drain_signal(void *context)
{
    uint64_t count;
    if (read(signal_fd, &count, sizeof count) < 0) return; /* no signal */
}

static void handle_request(int signo)
{
    const struct sigaction asked = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(signo, &asked, NULL);
}

void task_watch_report(void)
{
    handle_request(SIGUSR1);
}

bool task_report_is_wanted(void)
{
    return atomic_exchange(&caught_report, false);
}

static err watch_signals(struct loop *loop)
{
    if (signal_fd < 0) signal_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (signal_fd < 0) return fail(ERR_IO, "eventfd: %s", strerror(errno));
    handle_signals(on_signal);
    handle_request(SIGUSR1);
    handle_request(SIGUSR2);
    return loop_watch(loop, signal_fd, drain_signal, NULL);
}

/* ---- actions ---- */

/* Log lines of a role per LOG_LIMITED_MS: a base, and some for each peer that comes and goes; a
 * peer that reconnects to flood the log is limited. */
enum { LINES_LEAST = 100, LINES_EACH = 10 };

static enum number number_of(const struct task *t, const struct message *m)
{
    switch (m->type) {
    case MESSAGE_PUSH:
    case MESSAGE_PART:
        return t->wire;
    case MESSAGE_VALUES:
    case MESSAGE_AHEAD:
        return t->wire_values;
    default:
        return NUMBER_FLOAT32;
    }
}

void task_set_stretch(const struct task *t, struct message *m)
{
    if (!message_has_stretch(m->type)) return;
    const size_t bytes = number_bytes(number_of(t, m));
    m->offset = (uint64_t)m->range.begin * bytes;
    m->length = (uint64_t)range_count(m->range) * bytes;
}

/* Transports have checked that the stretch is in the window. If it is not of whole numbers, the
 * range is not valid. */
void task_set_range(const struct task *t, struct message *m)
{
    if (!message_has_stretch(m->type)) return;
    const size_t bytes = number_bytes(number_of(t, m));
    const int64_t begin = (int64_t)(m->offset / bytes);
    const bool is_whole = m->offset % bytes == 0 && m->length % bytes == 0;
    m->range = is_whole ? (struct range){begin, begin + (int64_t)(m->length / bytes)}
                        : (struct range){-1, 0};
}

static void send_message(struct task *t, const struct action_send *a)
{
    struct peer *peer = &t->peers[a->peer];
    if (!peer->link) return;
    struct message m = a->message;
    task_set_stretch(t, &m);
    if (t->ops->sending) t->ops->sending(t, a->peer, &m);
    err e = t->ops->send ? t->ops->send(t, a->peer, &m) : link_send(peer->link, &m);
    if (e) log_line(LOG_DEBUG, "%s", error_text()); /* the link closes, and the role is told */
}

static void end_task(struct task *t, const struct action_end *a)
{
    t->has_ended = true;
    t->code = a->code;
    t->ended_ms = clock_ms();
    snprintf(t->text, sizeof t->text, "%s", a->text);
}

static void resize_task(struct task *t, const struct action_resize *a)
{
    char text[MEMBERSHIP_TEXT_MAX];
    end_task(t, &(struct action_end){.code = EXIT_DONE, .text = ""});
    t->resizes_to = a->membership;
    membership_text(&a->membership, text);
    if (a->step)
        log_line(LOG_INFO, "resized to %s at step %llu", text, (unsigned long long)a->step);
    else
        log_line(LOG_INFO, "resized to %s", text); /* it happened while this task was away */
}

static void carry_out(struct task *t, const struct action *a)
{
    switch (a->type) {
    case ACTION_SEND:
        send_message(t, &a->send);
        break;
    case ACTION_LOG:
        log_budgeted(&t->lines.others, LINES_LEAST + LINES_EACH * t->peer_count, clock_ms(),
                     a->log.is_warning ? LOG_WARNING : LOG_INFO, a->log.text);
        break;
    case ACTION_BREACH:
        log_limited(&t->lines.breaches, clock_ms(), LOG_WARNING, "%s", a->breach.text);
        break;
    case ACTION_END:
        end_task(t, &a->end);
        break;
    case ACTION_RESIZE:
        t->ops->act(t, a);
        resize_task(t, &a->resize);
        break;
    default:
        t->ops->act(t, a);
    }
}

void task_flush(struct task *t)
{
    do { /* ends: `flushed` adds actions at most once per step */
        for (int i = 0; i < t->outbox.count; i++) {
            const struct action a = t->outbox.at[i]; /* a copy: acting may add actions */
            if (!t->has_ended || a.type == ACTION_SEND) carry_out(t, &a);
        }
        outbox_empty(&t->outbox);
        if (t->ops->flushed) t->ops->flushed(t);
    } while (t->outbox.count > 0 && !t->has_ended);
}

void task_plan_overlap(struct task *t, int i, struct overlap_link facts)
{
    char name[TASK_NAME_MAX], text[OVERLAP_TEXT_MAX];
    struct peer *peer = &t->peers[i];
    facts.parts = t->options.parts;
    facts.shares_memory = link_shares_memory(peer->link);
    facts.is_near = link_is_near(peer->link);
    const unsigned plan = overlap_of_link(&facts);
    if (plan == peer->overlap) return;
    peer->overlap = plan;
    task_name(t->peer_job, i, name);
    log_limited(&t->lines.replanned, clock_ms(), LOG_DEBUG, "%s: overlap of the link: %s", name,
                overlap_text(plan, text));
}

bool task_overlaps(const struct task *t, unsigned bits)
{
    for (int i = 0; i < t->peer_count; i++)
        if (t->peers[i].link && t->peers[i].overlap & bits) return true;
    return false;
}

void task_flush_since(struct task *t, int before)
{
    for (int i = before; i < t->outbox.count; i++) {
        const struct action a = t->outbox.at[i];
        carry_out(t, &a);
    }
    t->outbox.count = before;
}

void task_peer_up(struct task *t, int peer)
{
    if (t->ends_with != ENDS_WITH_ALL) return; /* the peer may belong to the next job */
    t->peers[peer].is_up = t->peers[peer].was_up = true;
    t->counting.peers_ms = clock_ms();
    t->role->ops->peer_up(t->role, t->peer_job, peer, t->peers[peer].incarnation, &t->outbox);
    task_flush(t);
}

void task_forget_peer(struct task *t, int peer)
{
    t->peers[peer].lost_ms = clock_ms();
    if (t->peers[peer].is_up) {
        t->counting.counters.at[COUNTER_PEERS_LOST]++;
        t->counting.peers_ms = t->peers[peer].lost_ms;
    }
    t->peers[peer].is_up = false;
    t->peers[peer].link = NULL;
}

void task_peer_lost(struct task *t, int peer, const char *why)
{
    task_forget_peer(t, peer);
    t->role->ops->peer_lost(t->role, t->peer_job, peer, why, &t->outbox);
    task_flush(t);
}

void task_message(struct task *t, int peer, const struct message *m)
{
    t->role->ops->message(t->role, t->peer_job, peer, m, &t->outbox);
    task_flush(t);
}

/* Called while the outbox is being carried out: what the role adds is carried out next. */
void task_done(struct task *t, enum action_type done, err result)
{
    t->role->ops->done(t->role, done, result, result ? error_text() : "", &t->outbox);
}

void task_resize(struct task *t, const struct membership *membership)
{
    if (t->has_ended) return;
    t->role->ops->resize(t->role, membership, &t->outbox);
    task_flush(t);
}

bool task_has_resized(const struct task *t)
{
    return t->resizes_to.count[JOB_PS] > 0;
}

void task_end(struct task *t, err why)
{
    if (t->has_ended) return;
    t->role->ops->stop(t->role, exit_code_of(why), why ? error_text() : "", &t->outbox);
    task_flush(t);
}

static void forget_all(struct task *t)
{
    for (int i = 0; i < t->peer_count; i++) {
        t->peers[i].link = NULL;
        t->peers[i].is_up = t->peers[i].was_up = false;
    }
}

void task_end_as_they(struct task *t, int code, const char *text)
{
    if (t->has_ended) return;
    t->ends_with = ENDS_AFTER_ALL;
    forget_all(t);
    t->role->ops->stop(t->role, code, text, &t->outbox);
    task_flush(t);
}

void task_end_alone(struct task *t, err why)
{
    if (t->ends_with == ENDS_WITH_ALL) t->ends_with = ENDS_ALONE;
    forget_all(t);
    task_end(t, why);
}

/* ---- life ---- */

bool task_is_inside(const struct task_options *options)
{
    return options->transport && options->transport->reach == TRANSPORT_WITHIN_PROCESS;
}

const struct transport *task_first_transport(const struct task_options *options)
{
    return task_is_inside(options) ? options->transport : transports[0];
}

bool task_takes(const struct task_options *options, const struct transport *offered)
{
    return offered->reach == TRANSPORT_WITHIN_HOST &&
           (!options->transport || options->transport == offered);
}

uint64_t task_retry_ms(uint32_t tries)
{
    enum { FIRST_MS = 10, MAX_MS = 500 };
    return clock_backoff_ms(FIRST_MS, MAX_MS, tries);
}

err task_open(struct task *t, const struct task_options *options, const struct task_ops *ops,
              struct role *role)
{
    const struct cluster_spec *cluster = options->cluster;
    t->options = *options;
    t->ops = ops;
    t->role = role;
    t->job = cluster->job;
    t->index = cluster->task;
    t->peer_job = t->job == JOB_PS ? JOB_WORKER : JOB_PS;
    t->peer_count = cluster->hosts[t->peer_job].count;
    t->peers = calloc((size_t)t->peer_count, sizeof *t->peers);
    if (!role || !t->peers) return fail(ERR_MEMORY, "no memory for %d peers", t->peer_count);
    TRY(counting_open(t));
    t->started_ms = t->ticked_ms = clock_ms();
    t->role->ops->start(t->role, t->started_ms, &t->outbox);
    task_flush(t);
    return OK;
}

void task_close(struct task *t)
{
    counting_close(t);
    free(t->peers);
    outbox_free(&t->outbox);
}

/* After this task was stopped: excludes that time, as in the role's time (role.h, struct patience),
 * so that peers do not count as late. */
static void leave_out(struct task *t, uint64_t stood_ms, uint64_t now_ms)
{
    for (int i = 0; i < t->peer_count; i++) {
        struct peer *peer = &t->peers[i];
        peer->lost_ms = peer->lost_ms + stood_ms < now_ms ? peer->lost_ms + stood_ms : now_ms;
        peer->came_ms = peer->came_ms + stood_ms < now_ms ? peer->came_ms + stood_ms : now_ms;
    }
    t->started_ms += stood_ms;
    if (t->has_ended)
        t->ended_ms += stood_ms < now_ms - t->ended_ms ? stood_ms : now_ms - t->ended_ms;
}

/* With a coordinator: whether another process has this task's place. */
static bool has_lost_place(const struct task *t)
{
    const struct cluster_spec *cluster = t->options.cluster;
    return cluster->has_lost && cluster->has_lost(cluster->registry);
}

static void tick(struct task *t, uint64_t now_ms)
{
    const uint64_t passed_ms = now_ms - t->ticked_ms;
    if (passed_ms < TASK_TICK_MS) return;
    if (passed_ms > STANDSTILL_MS) leave_out(t, passed_ms - TASK_TICK_MS, now_ms);
    t->ticked_ms = now_ms;
    counting_tick(t, now_ms);
    if (t->has_ended && t->ops->tick_end && !t->has_left) t->ops->tick_end(t, now_ms);
    if (t->has_ended) return;
    if (has_lost_place(t)) {
        task_end_alone(t, fail(ERR_PEER, "this task has lost its place at the coordinator to "
                                         "another one, which continues in its stead"));
        return;
    }
    t->ops->tick(t, now_ms);
    if (t->has_ended) return;
    t->role->ops->tick(t->role, now_ms, &t->outbox);
    task_flush(t);
}

bool task_signal_waits(void)
{
    return caught_signal && !has_told_signal;
}

/* Logs a signal once, to show that it was received, though the end may take a while. */
static void note_signal(const struct task *t, int signo, bool only_me)
{
    const struct task_options *o = &t->options;
    const char *what = only_me             ? "this worker is to leave the job"
                       : task_is_inside(o) ? "the run is to end"
                                           : "the job is to end";
    if (has_told_signal) return;
    has_told_signal = true;
    log_line(o->is_launched ? LOG_DEBUG : LOG_INFO, "SIG%s: %s, within %g s (--stop_timeout)",
             sigabbrev_np(signo), what, (double)o->limits.stop_ms / 1000);
}

static void stop(struct task *t, int signo)
{
    char why[ACTION_TEXT_MAX]; /* the role adds this task's name for others */
    const bool is_worker = t->job == JOB_WORKER;
    const bool only_me = t->options.leaves_alone && is_worker && signo == SIGTERM;
    note_signal(t, signo, only_me);
    if (t->has_ended) return;
    snprintf(why, sizeof why, "stopped by SIG%s", sigabbrev_np(signo));
    t->role->ops->leave(t->role, code_of_signal(signo), why, only_me, &t->outbox);
    task_flush(t);
}

void task_report_memory(const char *what)
{
    const double bytes = memory_resident();
    char memory[64] = "";
    if (bytes > 0) snprintf(memory, sizeof memory, ", %.1f MiB resident", bytes / 1048576);
    log_line(LOG_INFO, "%s%s", what, memory);
}

static void report(struct task *t)
{
    char name[TASK_NAME_MAX], text[OVERLAP_TEXT_MAX];
    task_report_memory(t->role->ops->name);
    for (int i = 0; i < t->peer_count; i++) {
        const struct link *link = t->peers[i].is_up ? t->peers[i].link : NULL;
        task_name(t->peer_job, i, name);
        if (link)
            log_line(LOG_INFO, "%s: here over %s, %zu bytes queued, overlap: %s", name,
                     link_transport(link)->name, link_queued_bytes(link),
                     overlap_text(t->peers[i].overlap, text));
        else
            log_line(LOG_INFO, "%s: not here", name);
    }
    if (t->ops->report) t->ops->report(t);
    counting_report(t);
    t->role->ops->report(t->role, &t->outbox);
    task_flush(t);
}

/* Whether to wait for the peer's acknowledgement: it is connected, or was until just now and may
 * reconnect. */
static bool is_due_an_answer(const struct task *t, int i, uint64_t now_ms)
{
    const struct peer *peer = &t->peers[i];
    const bool is_near = peer->is_up || (peer->was_up && now_ms - peer->lost_ms < TASK_TELL_MS);
    return is_near && t->ops->awaits && t->ops->awaits(t, i);
}

/* A worker may leave when its last messages are sent; a ps when its workers have acknowledged the
 * verdict and closed their links, since unread data would make the kernel reset the connection and
 * discard its last messages. */
static bool may_leave(const struct task *t, uint64_t now_ms)
{
    const uint64_t passed_ms = now_ms - t->ended_ms;
    for (int i = 0; i < t->peer_count && passed_ms < TASK_TELL_MS; i++) {
        const struct peer *peer = &t->peers[i];
        const bool is_idle = !peer->link || (t->job != JOB_PS && link_is_idle(peer->link));
        if (!is_idle && passed_ms < TASK_LINGER_MS) return false;
        if (is_due_an_answer(t, i, now_ms)) return false;
    }
    return true;
}

static bool all_left(struct task *const tasks[], int count, uint64_t now_ms)
{
    bool all = true;
    for (int i = 0; i < count; i++) {
        struct task *t = tasks[i];
        if (!t->has_left && t->has_ended && may_leave(t, now_ms)) {
            t->has_left = true;
            t->ops->hang_up(t);
        }
        all = all && t->has_left;
    }
    return all;
}

static bool all_ended(struct task *const tasks[], int count)
{
    for (int i = 0; i < count; i++)
        if (!tasks[i]->has_ended) return false;
    return true;
}

err tasks_run(struct task *const tasks[], int count)
{
    struct loop *loop = tasks[0]->options.loop;
    enum { LINGER_LOOK_MS = 5 };
    TRY(watch_signals(loop));
    /* Ends: every phase of every role has a limit, checked in tick(). */
    for (uint64_t now_ms = clock_ms(); !all_left(tasks, count, now_ms); now_ms = clock_ms()) {
        bool reports = task_report_is_wanted();
        bool saves = atomic_exchange(&caught_save, false);
        for (int i = 0; i < count; i++) {
            if (caught_signal) stop(tasks[i], caught_signal);
            if (reports) report(tasks[i]);
            if (saves && tasks[i]->ops->save) tasks[i]->ops->save(tasks[i]);
            tick(tasks[i], now_ms);
            if (tasks[i]->ops->pump) tasks[i]->ops->pump(tasks[i]);
        }
        loop_poll(loop, all_ended(tasks, count) ? LINGER_LOOK_MS : TASK_TICK_MS);
    }
    loop_unwatch(loop, signal_fd);
    return OK;
}
