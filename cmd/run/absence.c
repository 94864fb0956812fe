/* absence.c - see absence.h. */
#include "cmd/run/absence.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/printable.h"
#include "core/cluster/runner/task.h"
#include "core/cluster/visit/ask.h"
#include "core/cluster/visit/visitor.h"

enum { TELL_MS = 2000, LOOK_MS = 50 };

static bool is_told(const struct run *run, int code)
{
    const bool is_worker = run_kind(run) == RUN_WORKER || run_kind(run) == RUN_CHIEF;
    return is_worker && run->cluster.task >= 0 && code != EXIT_DONE &&
           !exit_code_is_retryable(code);
}

/* Those that are not there yet may still come. */
static void await_ps(struct visitor *v)
{
    const uint64_t since_ms = clock_ms();
    bool is_waiting = true;
    while (is_waiting && clock_ms() - since_ms < TELL_MS && !visitor_refusal(v) &&
           !visitor_verdict(v)->has_come) {
        is_waiting = false;
        visitor_poll(v, LOOK_MS);
        for (int ps = 0; ps < visitor_ps_count(v); ps++) is_waiting |= !visitor_is_up(v, ps);
    }
}

static err tell(const struct run *run, struct visitor *v, const char *why)
{
    char text[VISIT_WHY_MAX]; /* it may name a file in bytes that are no UTF-8 */
    printable_copy(text, sizeof text, why);
    json_t *ask = json_pack("{ss si ss}", "do", "absent", "worker", run->cluster.task, "why", text);
    if (!ask) return fail(ERR_MEMORY, "no memory, or no text, to say why this worker ends");
    err e = OK;
    for (int ps = 0; !e && ps < visitor_ps_count(v); ps++)
        if (visitor_is_up(v, ps)) e = visitor_ask(v, ps, ask);
    json_decref(ask);
    return e ? e : visitor_wait_all(v, TELL_MS);
}

static err visit(const struct run *run, const char *why)
{
    struct loop *loop = NULL;
    struct visitor *visitor = NULL;
    TRY(run_open_loop(run, &loop));
    const struct visitor_options options = {
        .loop = loop, .ps_hosts = &run->cluster.hosts[JOB_PS], .cluster = &run->cluster};
    err e = visitor_open(&options, &visitor);
    if (!e) await_ps(visitor);
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
