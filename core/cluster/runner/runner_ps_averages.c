/* runner_ps_averages.c - sends averages to a worker that evaluates.
 *
 * They go to the window for the worker's next gradient, which is free while it evaluates. In shared
 * memory they are written there; between hosts they are sent from a copy for all workers, which
 * lives as long as this ps: data still queued from it may change when another worker asks, or a
 * generation begins. A worker with a push that was not applied does not ask for them.
 */
#include "core/base/log.h"
#include "core/cluster/runner/runner_ps_inside.h"

static struct message answer_to(const struct runner_ps *p, const struct message *asked)
{
    return (struct message){
        .type = MESSAGE_AVERAGES,
        .job = JOB_PS,
        .task = (uint32_t)p->task.index,
        .generation = asked->generation,
        .averages.request_id = asked->averages.request_id,
    };
}

static bool has_some(const struct runner_ps *p, const struct message *m)
{
    return p->share && p->store.average.decay > 0 && runner_ps_block_bytes(p) &&
           ps_role_is_serving(p->task.role) && m->generation == p->share->setup.config.generation;
}

/* Into shared memory */
static err show(struct runner_ps *p, float *to, struct message *m)
{
    store_show_averages(&p->store, to);
    m->averages.flags = AVERAGES_LAST;
    m->length = runner_ps_block_bytes(p);
    return p->device->kernels->synchronize(p->device);
}

static err send_all(struct runner_ps *p, int worker, struct message m)
{
    struct link *link = p->task.peers[worker].link;
    const struct window *seen = &p->windows[worker].gradients, *copy = &p->values.averages;
    if (link_shares_memory(link) && seen->base) {
        TRY(show(p, seen->base, &m));
        return link_send(link, &m);
    }
    TRY(runner_ps_open_averages(p));
    TRY(show(p, copy->base, &m));
    return link_send_from(link, &m, copy->base);
}

err runner_ps_averages_heard(struct runner_ps *p, int worker, const struct message *m)
{
    struct link *link = p->task.peers[worker].link;
    struct message answer = answer_to(p, m);
    const char *fault = message_fault(m, FROM_WORKER | FROM_CHIEF);
    if (fault) return fail(ERR_PROTOCOL, "AVERAGES, %s", fault);
    if (m->length) return fail(ERR_PROTOCOL, "AVERAGES with numbers, which a ps brings");
    err e = OK;
    if (!has_some(p, m)) {
        answer.averages.flags = AVERAGES_NONE;
        e = link_send(link, &answer);
    } else {
        e = send_all(p, worker, answer);
    }
    if (e) log_line(LOG_DEBUG, "%s", error_text()); /* the link closes, or no answer is sent */
    return OK;
}
