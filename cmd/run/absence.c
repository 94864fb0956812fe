/* absence.c - see absence.h. */
#include "cmd/run/absence.h"

#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

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
    SIGNAL_MS = 300, /* for each of two waits before the process ends */
};

static bool is_worker(const struct run *run)
{
    const enum run_kind kind = run_kind(run);
    return (kind == RUN_WORKER || kind == RUN_CHIEF) && run->cluster.task >= 0;
}

/* Waits until all ps are connected, the limit is over, or the job has ended. */
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

struct asked_ps {
    int ps, of; /* how many ps were asked, of how many */
};

static err ask_all(struct visitor *v, json_t *ask, uint64_t limit_ms, struct asked_ps *ret)
{
    err e = OK;
    ret->of = visitor_ps_count(v);
    for (int ps = 0; !e && ps < ret->of; ps++) {
        if (!visitor_is_up(v, ps)) continue;
        e = visitor_ask(v, ps, ask);
        ret->ps++;
    }
    return e ? e : visitor_wait_all(v, limit_ms);
}

/* Drops the reference to `ask`. limit_ms: to connect to the ps, and again for their answers */
static err tell(const struct run *run, json_t *ask, uint64_t limit_ms, struct asked_ps *ret)
{
    struct loop *loop = NULL;
    struct visitor *visitor = NULL;
    err e = ask ? run_open_loop(run, &loop) : fail(ERR_MEMORY, "no memory to tell it");
    const struct visitor_options options = {
        .loop = loop, .ps_hosts = &run->cluster.hosts[JOB_PS], .cluster = &run->cluster};
    if (!e) e = visitor_open(&options, &visitor);
    if (!e) await_ps(visitor, limit_ms);
    if (!e) e = ask_all(visitor, ask, limit_ms, ret);
    visitor_close(visitor);
    loop_close(loop);
    json_decref(ask);
    return e;
}

void run_tell_absence(const struct run *run, int code, const char *why)
{
    char text[VISIT_WHY_MAX]; /* a file name in it may be invalid UTF-8 */
    struct asked_ps asked = {0};
    if (!is_worker(run) || code == EXIT_DONE || exit_code_is_retryable(code)) return;
    tasks_end_at_once(); /* a signal need not wait for what follows */
    if (task_signal_waits()) return;
    printable_copy(text, sizeof text, why);
    json_t *ask = json_pack("{ss si ss}", "do", "absent", "worker", run->cluster.task, "why", text);
    if (tell(run, ask, TELL_MS, &asked))
        log_line(LOG_DEBUG, "not all ps were told why this task ends: %s", error_text());
}

/* ---- a signal before it takes part ---- */

static const struct run *_Atomic opening;
static atomic_bool is_telling; /* a thread tells the ps for `opening`, then ends this process */

static void tell_for(const struct run *run, int signo)
{
    struct asked_ps asked = {0};
    const bool only_me = signo == SIGTERM && task_options_of(run, NULL).leaves_alone;
    json_t *ask = only_me ? json_pack("{ss si}", "do", "stop", "worker", run->cluster.task)
                          : json_pack("{ss}", "do", "stop");
    if (!tell(run, ask, SIGNAL_MS, &asked))
        log_line(run->flags.launched == LAUNCHED_NO ? LOG_INFO : LOG_DEBUG,
                 "SIG%s: %d of %d ps were told", sigabbrev_np(signo), asked.ps, asked.of);
}

/* Called in a separate thread (tasks_end_by) while another one reads data */
static void tell_signal(int signo)
{
    is_telling = true;
    const struct run *run = opening;
    if (run)
        tell_for(run, signo);
    else
        is_telling = false;
}

/* Waits while tell_signal still reads the run, which is about to change or be freed. */
static void await_told(void)
{
    enum { MOST_MS = 3 * SIGNAL_MS }; /* more than both waits */
    const uint64_t since_ms = clock_ms();
    while (is_telling && clock_ms() - since_ms < MOST_MS) clock_pause(LOOK_MS);
}

void run_tell_signal(const struct run *run)
{
    static bool is_known;
    opening = run && is_worker(run) ? run : NULL;
    if (!opening) await_told();
    if (opening && !is_known) tasks_end_by(tell_signal);
    is_known |= opening != NULL;
}
