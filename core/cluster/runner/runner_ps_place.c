/* runner_ps_place.c - a ps that the job no longer includes, started again with its old flags.
 *
 * The job was resized while the ps was away: nobody connects to it, so no worker tells it the
 * current membership. While no chief connects it asks ps/0, as a task that waits for a place does.
 */
#include "core/base/log.h"
#include "core/cluster/runner/runner_ps_inside.h"
#include "core/cluster/visit/visitor.h"

/* A chief normally connects sooner. ps/0 takes few visitors, and a thousand ps may wait. */
enum { ASKS_MS = 2000, ASKS_AGAIN_MS = 10000 };

static err open_visitor(struct runner_ps *p)
{
    const struct task_options *options = &p->task.options;
    const struct visitor_options visits = {.loop = options->loop,
                                           .ps_hosts = &options->cluster->hosts[JOB_PS],
                                           .cluster = options->cluster,
                                           .only_first = true,
                                           .any_count = true};
    return p->asks_first ? OK : visitor_open(&visits, &p->asks_first);
}

/* It takes part, or got no answer: disconnects for now. A verdict is ignored: it may be of an
 * earlier job at this address. */
static void hear_no_more(struct runner_ps *p, uint64_t now_ms)
{
    if (visitor_refusal(p->asks_first)) log_line(LOG_DEBUG, "%s", error_text());
    p->asks_after_ms = now_ms + ASKS_AGAIN_MS;
    runner_ps_ask_no_more(p);
}

void runner_ps_look_for_place(struct runner_ps *p, uint64_t since_ms, uint64_t now_ms)
{
    struct task *t = &p->task;
    if (t->index == 0 || now_ms < since_ms + ASKS_MS || now_ms < p->asks_after_ms) return;
    if (open_visitor(p)) {
        log_line(LOG_DEBUG, "%s", error_text());
        return;
    }
    visitor_poll(p->asks_first, 0);
    const struct membership now = visitor_membership(p->asks_first);
    if (now.resizes > t->options.cluster->resizes && now.count[JOB_PS] <= t->index)
        task_resize(t, &now);
    else if (now.count[JOB_PS] || visitor_refusal(p->asks_first) ||
             visitor_verdict(p->asks_first)->has_come)
        hear_no_more(p, now_ms);
}

void runner_ps_ask_no_more(struct runner_ps *p)
{
    visitor_close(p->asks_first);
    p->asks_first = NULL;
}
