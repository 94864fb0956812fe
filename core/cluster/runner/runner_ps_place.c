/* runner_ps_place.c - a place that this ps has by its flags and the job has given up.
 *
 * The job was resized while the ps was away, and it is started again: nobody connects to it, and no
 * worker tells it of the membership that is. So while no chief comes it asks ps/0, as whoever waits
 * for a place does.
 */
#include "core/base/log.h"
#include "core/cluster/runner/runner_ps_inside.h"
#include "core/cluster/visit/visitor.h"

enum {
    ASKS_MS = 2000, /* a chief comes sooner where there is one */
    ASKS_AGAIN_MS =
        10000, /* ps/0 has few places for visitors, and may have a thousand ps to wait with */
};

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

/* It has its place, or is not told: for now. */
static void hear_no_more(struct runner_ps *p, uint64_t waited_ms)
{
    if (visitor_refusal(p->asks_first)) log_line(LOG_DEBUG, "%s", error_text());
    p->asks_after_ms = waited_ms + ASKS_AGAIN_MS;
    runner_ps_has_place(p);
}

void runner_ps_look_for_place(struct runner_ps *p, uint64_t waited_ms)
{
    struct task *t = &p->task;
    if (t->index == 0 || waited_ms < ASKS_MS || waited_ms < p->asks_after_ms) return;
    if (open_visitor(p)) {
        log_line(LOG_DEBUG, "%s", error_text());
        return;
    }
    visitor_poll(p->asks_first, 0);
    const struct membership now = visitor_membership(p->asks_first);
    const struct visitor_verdict *verdict = visitor_verdict(p->asks_first);
    if (verdict->has_come)
        task_end_as_they(t, verdict->code, verdict->text);
    else if (now.resizes > t->options.cluster->resizes && now.count[JOB_PS] <= t->index)
        task_resize(t, &now);
    else if (now.count[JOB_PS] || visitor_refusal(p->asks_first))
        hear_no_more(p, waited_ms);
}

void runner_ps_has_place(struct runner_ps *p)
{
    visitor_close(p->asks_first);
    p->asks_first = NULL;
}
