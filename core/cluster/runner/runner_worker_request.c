/* runner_worker_request.c - requests of visitors to a worker, which ps/0 forwards, as well as the
 * replies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_kept.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "core/cluster/runner/trace/trace_worker.h"

/* Training uses the same link: a reply for which its queue has no room is dropped. */
static void send_reply(struct task *t, uint64_t request_id, const char *text, size_t bytes)
{
    struct link *link = t->peers[0].is_up ? t->peers[0].link : NULL;
    const struct message m = {
        .type = MESSAGE_REPLY,
        .job = JOB_WORKER,
        .task = (uint32_t)t->index,
        .reply.request_id = request_id,
        .body = text,
        .body_bytes = (uint32_t)bytes,
    };
    if (link && link_has_room(link, bytes) && link_send(link, &m))
        log_line(LOG_DEBUG, "%s", error_text());
}

void runner_worker_reply(struct runner_worker *w, uint64_t request_id, json_t *json)
{
    struct task *t = &w->task;
    const struct link *link = t->peers[0].link;
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(json);
    const char *said = text ? text : "{\"error\": \"no memory for an answer\", \"code\": 1}";
    char busy[64];
    snprintf(busy, sizeof busy, "{\"error\": \"that worker is busy: try again\", \"code\": %d}",
             exit_code_of(ERR_PEER));
    if (link && !link_has_room(link, strlen(said))) said = busy;
    send_reply(t, request_id, said, strlen(said));
    free(text);
}

void runner_worker_refuse(struct runner_worker *w, uint64_t request_id, int code, const char *why)
{
    runner_worker_reply(w, request_id, json_pack("{ss si}", "error", why, "code", code));
}

static void leave(struct runner_worker *w)
{
    struct task *t = &w->task;
    if (!t->options.leaves_alone) {
        log_limited(
            &t->lines.requests, clock_ms(), LOG_WARNING,
            "a visitor asks this worker to leave, which one that a launcher has started, or "
            "with --on_sigterm=stop, does not");
        return;
    }
    t->role->ops->leave(t->role, EXIT_TERMINATED, "a visitor asks this worker to leave", true,
                        &t->outbox);
    task_flush(t);
}

void runner_worker_heard_request(struct runner_worker *w, int ps, const struct message *m)
{
    struct task *t = &w->task;
    const struct message_request *r = &m->request;
    if (ps != 0 || message_fault(m, FROM_PS)) return;
    switch (r->what) {
    case REQUEST_SAVE:
        log_limited(&t->lines.requests, clock_ms(), LOG_INFO, "a visitor asks for a checkpoint");
        w->folder.is_asked_to_save = true;
        break;
    case REQUEST_LOG:
        runner_worker_reply(w, r->request_id, log_kept_json(r->number, r->last));
        break;
    case REQUEST_SETTING:
        runner_worker_heard_setting(w, m);
        break;
    case REQUEST_PROFILE:
        log_limited(&t->lines.requests, clock_ms(), LOG_INFO, "a visitor asks for a timeline");
        runner_worker_trace_ask(w, r);
        break;
    default:
        leave(w);
    }
}
