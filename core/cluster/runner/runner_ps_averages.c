/* runner_ps_averages.c - averages as a worker that evaluates asks for them.
 *
 * They come to where the worker's next gradient will lie, which is free while it evaluates. Where
 * that is memory of this ps, they are written there; between hosts they leave from where they are
 * kept, a section after the other. A worker that has pushed what no update has taken has no use for
 * them, and asks for none.
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
        .averages.asking = asked->averages.asking,
    };
}

static bool has_some(const struct runner_ps *p, const struct message *m)
{
    return p->share && p->store.average.decay > 0 && runner_ps_block_bytes(p) &&
           ps_role_is_serving(p->task.role) && m->generation == p->share->setup.config.generation;
}

/* To the worker's window of gradients, which it sees itself */
static err show(struct runner_ps *p, int worker, struct message m)
{
    store_show_averages(&p->store, p->windows[worker].gradients.base);
    TRY(p->device->kernels->synchronize(p->device));
    m.averages.flags = AVERAGES_LAST;
    m.length = runner_ps_block_bytes(p);
    return link_send(p->task.peers[worker].link, &m);
}

static err send_sections(const struct runner_ps *p, struct link *link, struct message m)
{
    const struct store *store = &p->store;
    struct range range = {0, 0};
    while (range.end < store->floats) { /* ends: sections are not empty */
        const float *array = store_averages_from(store, range.end, &range);
        m.offset = (uint64_t)range.begin * sizeof *array;
        m.length = (uint64_t)range_count(range) * sizeof *array;
        m.averages.flags = range.end == store->floats ? AVERAGES_LAST : 0;
        TRY(link_send_from(link, &m, array));
    }
    return OK;
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
    } else if (link_shares_memory(link) && p->windows[worker].gradients.base) {
        e = show(p, worker, answer);
    } else {
        e = send_sections(p, link, answer);
    }
    if (e) log_line(LOG_DEBUG, "%s", error_text()); /* the link closes */
    return OK;
}
