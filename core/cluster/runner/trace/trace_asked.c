/* trace_asked.c - a timeline for a visitor: the chief begins it as soon as possible, and sends it
 * to ps/0. */
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "core/cluster/runner/trace/trace_worker.h"

/* The longest timeline that fits into an answer; longer ones need the hook, which writes files. */
enum { TIMELINE_BYTES_MAX = 6 << 20 };

void runner_worker_trace_refuse_asked(struct runner_worker *w, const char *why)
{
    const struct asked_timeline a = w->hooks.asked;
    w->hooks.asked = (struct asked_timeline){0};
    if (a.is_wanted || a.first_step)
        runner_worker_refuse(w, a.request_id, exit_code_of(ERR_PEER), why);
}

void runner_worker_trace_ask(struct runner_worker *w, const struct message_request *request)
{
    const struct asked_timeline *a = &w->hooks.asked;
    const char *why = NULL;
    if (!runner_worker_leads(w))
        why = "that worker is not the chief any more: try again";
    else if (request->number < 1 || request->number > TIMELINE_STEPS_MAX)
        why = "no timeline has so many steps";
    else if (a->is_wanted || a->first_step)
        why = "another timeline is being made: try again when it is done";
    if (why)
        runner_worker_refuse(w, request->request_id, exit_code_of(ERR_PEER), why);
    else
        w->hooks.asked = (struct asked_timeline){
            .request_id = request->request_id, .is_wanted = true, .steps = (int)request->number};
}

void runner_worker_trace_asked(struct runner_worker *w, uint64_t step)
{
    struct asked_timeline *a = &w->hooks.asked;
    if (!a->is_wanted || !runner_worker_leads(w)) return;
    const bool is_sync = w->options.spec->train.mode == MODE_SYNC;
    const int workers = w->options.task.cluster->hosts[JOB_WORKER].count;
    const uint64_t first = step + 1 + timeline_lead(is_sync, workers);
    const uint64_t last = runner_worker_last_step(w);
    if (last && first > last) {
        runner_worker_trace_refuse_asked(w, "too few steps are left for a timeline");
        return;
    }
    if (!runner_worker_trace_begin(w, first, a->steps))
        return; /* another one is being made: retried at the next step */
    a->is_wanted = false;
    a->first_step = first;
}

static json_t *reply_of(const struct timeline *t)
{
    char *text;
    size_t bytes;
    err e = timeline_text(t, &text, &bytes);
    if (!e && bytes > TIMELINE_BYTES_MAX)
        e = fail(
            ERR_PEER,
            "the timeline of %d steps has %zu bytes, more than %d: ask for fewer steps, or have "
            "the hook \"profiler\" write a file",
            t->steps, bytes, TIMELINE_BYTES_MAX);
    json_t *reply = e ? json_pack("{ss si}", "error", error_text(), "code", exit_code_of(e))
                      : json_pack("{ss%}", "timeline", text, bytes);
    free(text);
    return reply;
}

void runner_worker_trace_reply(struct runner_worker *w, const struct timeline *t)
{
    struct asked_timeline *a = &w->hooks.asked;
    if (a->is_wanted || !a->first_step || t->first_step != a->first_step) return;
    a->first_step = 0;
    runner_worker_reply(w, a->request_id, reply_of(t));
}

void runner_worker_trace_ask_again(struct runner_worker *w)
{
    struct asked_timeline *a = &w->hooks.asked;
    if (a->first_step) *a = (struct asked_timeline){a->request_id, 0, a->steps, true};
}
