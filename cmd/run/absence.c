/* absence.c - see absence.h. */
#include "cmd/run/absence.h"

#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/run/task_parts.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/printable.h"
#include "core/cluster/runner/task.h"
#include "core/cluster/visit/ask.h"
#include "core/cluster/visit/visitor.h"

enum {
    TELL_MS = 2000,
    LOOK_MS = 50,
    SIGNAL_MS = 300, /* twice, of what last acts have */
};

static bool is_told(const struct run *run, int code)
{
    const bool is_worker = run_kind(run) == RUN_WORKER || run_kind(run) == RUN_CHIEF;
    return is_worker && run->cluster.task >= 0 && code != EXIT_DONE &&
           !exit_code_is_retryable(code);
}

/* Those that are not there yet may still come. */
static void await_ps(struct visitor *v, uint64_t limit_ms)
{
    const uint64_t since_ms = clock_ms();
    bool is_waiting = true;
    while (is_waiting && clock_ms() - since_ms < limit_ms && !visitor_refusal(v) &&
           !visitor_verdict(v)->has_come) {
        is_waiting = false;
        visitor_poll(v, LOOK_MS);
        for (int ps = 0; ps < visitor_ps_count(v); ps++) is_waiting |= !visitor_is_up(v, ps);
    }
}

static err ask_all(struct visitor *v, json_t *ask, uint64_t limit_ms)
{
    err e = OK;
    for (int ps = 0; !e && ps < visitor_ps_count(v); ps++)
        if (visitor_is_up(v, ps)) e = visitor_ask(v, ps, ask);
    json_decref(ask);
    return e ? e : visitor_wait_all(v, limit_ms);
}

static err tell(const struct run *run, struct visitor *v, const char *why)
{
    char text[VISIT_WHY_MAX]; /* it may name a file in bytes that are no UTF-8 */
    printable_copy(text, sizeof text, why);
    json_t *ask = json_pack("{ss si ss}", "do", "absent", "worker", run->cluster.task, "why", text);
    if (!ask) return fail(ERR_MEMORY, "no memory to say why this worker ends");
    return ask_all(v, ask, TELL_MS);
}

static err open_visit(const struct run *run, struct loop **ret_loop, struct visitor **ret)
{
    TRY(run_open_loop(run, ret_loop));
    const struct visitor_options options = {
        .loop = *ret_loop, .ps_hosts = &run->cluster.hosts[JOB_PS], .cluster = &run->cluster};
    return visitor_open(&options, ret);
}

static err visit(const struct run *run, const char *why)
{
    struct loop *loop = NULL;
    struct visitor *visitor = NULL;
    err e = open_visit(run, &loop, &visitor);
    if (!e) await_ps(visitor, TELL_MS);
    if (!e) e = tell(run, visitor, why);
    visitor_close(visitor);
    loop_close(loop);
    return e;
}

void run_tell_absence(const struct run *run, int code, const char *why)
{
    char text[ERROR_TEXT_MAX];
    if (!is_told(run, code)) return;
    tasks_end_at_once(); /* what is done from here on nobody waits for */
    if (task_signal_waits()) return;
    snprintf(text, sizeof text, "%s", why);
    if (visit(run, text)) log_line(LOG_DEBUG, "not everybody knows why: %s", error_text());
}

/* ---- a signal before it takes part ---- */

static const struct run *_Atomic opening;
static atomic_bool is_telling; /* of `opening`, to the end of this process */

static void tell_those_up(const struct run *run, struct visitor *v, json_t *ask, int signo)
{
    int told = 0;
    for (int ps = 0; ps < visitor_ps_count(v); ps++) told += visitor_is_up(v, ps);
    if (!ask_all(v, ask, SIGNAL_MS))
        log_line(run->flags.launched == LAUNCHED_NO ? LOG_INFO : LOG_DEBUG,
                 "SIG%s: %d of %d ps know of it", sigabbrev_np(signo), told, visitor_ps_count(v));
}

static void tell_for(const struct run *run, int signo)
{
    struct loop *loop = NULL;
    struct visitor *visitor = NULL;
    const bool only_me = signo == SIGTERM && task_options_of(run, NULL).leaves_alone;
    json_t *ask = only_me ? json_pack("{ss si}", "do", "stop", "worker", run->cluster.task)
                          : json_pack("{ss}", "do", "stop");
    err e = ask ? open_visit(run, &loop, &visitor) : ERR_MEMORY;
    if (!e) await_ps(visitor, SIGNAL_MS);
    if (!e) tell_those_up(run, visitor, ask, signo);
}

/* In a thread that does nothing else (tasks_end_by), beside the one that reads data. */
static void tell_signal(int signo)
{
    is_telling = true;
    const struct run *run = opening;
    if (run)
        tell_for(run, signo);
    else
        is_telling = false;
}

/* Whoever tells reads the run, which is about to change or to go, and ends this process then. */
static void await_told(void)
{
    enum { MOST_MS = 3 * SIGNAL_MS }; /* more than both waits */
    const uint64_t since_ms = clock_ms();
    while (is_telling && clock_ms() - since_ms < MOST_MS)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
}

void run_tell_signal(const struct run *run)
{
    static bool is_known;
    const enum run_kind kind = run ? run_kind(run) : RUN_LAUNCHER;
    const bool is_worker = kind == RUN_WORKER || kind == RUN_CHIEF;
    opening = is_worker && run->cluster.task >= 0 ? run : NULL;
    if (!opening) await_told();
    if (opening && !is_known) tasks_end_by(tell_signal);
    is_known |= opening != NULL;
}
